// Takes the place of HdfDescription.cpp where no HDF5 fits this MPI.
#include "DNDS/Base/Error.hpp"
#include "DNDS/Serialize/HdfDescription.hpp"

namespace DNDS::Detail {

namespace {
constexpr const char *reason = "checkpoints need HDF5, and DNDS was built without";
}

FileImage makeImage(CheckpointContent &) { throw NotBuiltError(reason); }
CheckpointContent readDescription(const std::string &path) { throw NotBuiltError(fmt::format("{}: {}", path, reason)); }
bool hasHdf5() noexcept { return false; }

} // namespace DNDS::Detail
