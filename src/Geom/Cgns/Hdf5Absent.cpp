// Replaces Hdf5Source.cpp if no HDF5 was found.

#include "DNDS/Geom/Cgns/TreeSource.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Geom::Cgns {

std::unique_ptr<TreeSource> openHdf5(const std::string &path) {
    throw NotBuiltError(fmt::format("{}: this build has no HDF5 and cannot read CGNS files of the HDF5 type", path));
}

std::vector<std::string> hdf5Names(const std::string &) { return {}; }

} // namespace DNDS::Geom::Cgns
