// Replaces AdfSource.cpp and CgnsOutput.cpp if there is no CGNS library.
#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "DNDS/Geom/Cgns/CgnsOutput.hpp"
#include "DNDS/Geom/Cgns/TreeSource.hpp"

namespace DNDS::Geom::Detail {

// The constructor throws: the other members exist for the linker only.
CgnsOutput::CgnsOutput(std::string path, bool) {
    throw NotBuiltError(fmt::format("{} cannot be written: DNDS was built without the CGNS library", path));
}
CgnsOutput::~CgnsOutput() = default;
CgnsOutput::Node CgnsOutput::add(Node, const std::string &, const char *) { return 0; }
CgnsOutput::Node CgnsOutput::addText(Node, const std::string &, const char *, const std::string &) { return 0; }
CgnsOutput::Node CgnsOutput::addIntegers(Node, const std::string &, const char *, Type, const std::vector<index> &,
                                         bool) {
    return 0;
}
CgnsOutput::Node CgnsOutput::addReals(Node, const std::string &, const char *, const std::vector<real> &, bool) {
    return 0;
}
CgnsOutput::Node CgnsOutput::addArray(Node, const std::string &, const char *, Type, index, bool) { return 0; }
void CgnsOutput::write(Node, index, index, const void *, bool) {}
void CgnsOutput::close() {}

} // namespace DNDS::Geom::Detail

bool DNDS::Geom::canWriteCgns() noexcept { return false; }

std::unique_ptr<DNDS::Geom::Cgns::TreeSource> DNDS::Geom::Cgns::openAdf(const std::string &path) {
    throw NotBuiltError(
        fmt::format("{}: this build has no CGNS library and cannot read CGNS files of the ADF type", path));
}
