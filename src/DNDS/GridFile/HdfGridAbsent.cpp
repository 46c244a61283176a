// Replaces HdfDataset.cpp, HdfGrid.cpp and VtkImage.cpp if no HDF5 fits this MPI.
#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/Slab.hpp"

namespace DNDS {

namespace {

[[noreturn]] void failWithoutHdf(const std::string &path) {
    throw NotBuiltError(fmt::format("{}: DNDS was built without parallel HDF5", path));
}

} // namespace

std::vector<index> hdfDatasetShape(CommunicatorView, const std::string &path, const std::string &) {
    failWithoutHdf(path);
}
void readHdfDataset(CommunicatorView, const std::string &path, const std::string &, std::span<const Slab>) {
    failWithoutHdf(path);
}
void writeHdfDataset(CommunicatorView, const std::string &path, const std::string &, const std::vector<index> &,
                     ElementKind, std::span<const WrittenSlab>, bool) {
    failWithoutHdf(path);
}
void writeVtkImage(CommunicatorView, const std::string &path, const std::array<index, 3> &, const std::array<real, 3> &,
                   const std::array<real, 3> &, std::span<const VtkGridField>, VtkPlacement) {
    failWithoutHdf(path);
}

} // namespace DNDS
