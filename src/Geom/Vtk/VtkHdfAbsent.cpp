// Replaces VtkHdfReader.cpp and VtkHdfWriter.cpp if no HDF5 fits this MPI.
#include "DNDS/Geom/Vtk/VtkHdfReader.hpp"
#include "DNDS/Geom/Vtk/VtkHdfWriter.hpp"

namespace DNDS::Geom {

SourceMesh readVtkHdf(CommunicatorView, const std::string &path, MeshFields *) {
    throw NotBuiltError(fmt::format("{} is a VTKHDF file, which DNDS cannot read: it was built without HDF5", path));
}

class VtkHdfWriter::Implementation {};

VtkHdfWriter::VtkHdfWriter(CommunicatorView, std::string path, const MeshSlice &) {
    throw NotBuiltError(fmt::format("{} cannot be written: DNDS was built without parallel HDF5", path));
}
VtkHdfWriter::VtkHdfWriter(VtkHdfWriter &&) noexcept = default;
VtkHdfWriter &VtkHdfWriter::operator=(VtkHdfWriter &&) noexcept = default;
VtkHdfWriter::~VtkHdfWriter() = default;
void VtkHdfWriter::writeStep(real, std::span<const FieldSlice>, std::span<const FieldSlice>) {}
index VtkHdfWriter::continueFrom(const std::string &, real) { return 0; }
void VtkHdfWriter::close() {}
bool VtkHdfWriter::built() noexcept { return false; }

} // namespace DNDS::Geom
