// Replaces HdfDescription.cpp if no HDF5 fits this MPI.
#include "DNDS/Base/Error.hpp"
#include "DNDS/Serialize/HdfDescription.hpp"

namespace DNDS::Detail {

namespace {
constexpr const char *reason = "checkpoints need HDF5, but DNDS was built without it";
}

FileImage makeImage(CheckpointContent &) { throw NotBuiltError(reason); }
std::string headerOf(const FileImage &, std::uint64_t) { throw NotBuiltError(reason); }
FileImage readImage(const DurableFile &file) { throw NotBuiltError(fmt::format("{}: {}", file.path(), reason)); }
CheckpointContent contentOf(const FileImage &, const std::string &) { throw NotBuiltError(reason); }
std::uint64_t identityOf(const DurableFile &) { throw NotBuiltError(reason); }
bool hasHdf5() noexcept { return false; }

} // namespace DNDS::Detail
