#include "DNDS/Device/AlgorithmHooks.hpp"

#include "DNDS/Base/Error.hpp"

// Without a device these are never called: requireDevice throws before. They are also part of CUDA builds by toolkits
// without CUB.
namespace DNDS::Device::Hooks {

namespace {

[[noreturn]] void notBuilt(const char *what) {
    throw NotBuiltError(
        fmt::format("cannot {} on the device: DNDS was built by a CUDA toolkit without CUB; install its "
                    "package cuda-cccl (or nvidia-cuda-cccl) and build again",
                    what));
}

} // namespace

real sum(StreamHandle /*stream*/, std::span<const real> /*x*/) { notBuilt("sum elements"); }
std::size_t scratchOfMinimum(std::size_t /*count*/) { notBuilt("find the smallest element"); }
void minimum(StreamHandle /*stream*/, std::span<const real> /*x*/, real * /*result*/,
             std::span<std::byte> /*scratch*/) {
    notBuilt("find the smallest element");
}
void exclusiveScan(StreamHandle /*stream*/, std::span<const index> /*counts*/, std::span<index> /*starts*/) {
    notBuilt("compute offsets");
}
void sortByKey(StreamHandle /*stream*/, std::span<index> /*keys*/, std::span<index> /*values*/) { notBuilt("sort"); }

} // namespace DNDS::Device::Hooks
