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

std::size_t scratchOfMinimum(std::size_t /*count*/) { notBuilt("find the smallest element"); }
void minimum(StreamHandle /*stream*/, std::span<const real> /*x*/, real * /*result*/,
             std::span<std::byte> /*scratch*/) {
    notBuilt("find the smallest element");
}
void largestMagnitude(StreamHandle /*stream*/, const Column & /*column*/, real * /*result*/) {
    notBuilt("find the largest magnitude");
}
void integerSum(StreamHandle /*stream*/, const Column & /*column*/, const Scale & /*scale*/,
                FixedPoint::Wide * /*result*/) {
    notBuilt("add up exactly");
}

} // namespace DNDS::Device::Hooks
