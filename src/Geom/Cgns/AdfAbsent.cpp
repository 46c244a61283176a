// Replaces AdfSource.cpp if no CGNS library was found.

#include "DNDS/Geom/Cgns/NodeSource.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Geom::Cgns {

std::unique_ptr<NodeSource> openAdf(const std::string &path) {
    throw NotBuiltError(
        fmt::format("{}: this build has no CGNS library and cannot read CGNS files of the ADF type", path));
}

} // namespace DNDS::Geom::Cgns
