#include "DNDS/Device/Algorithms.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/AlgorithmHooks.hpp"

// Sizes are checked here, once for all back ends: hooks are called with a device and sizes that match.
namespace DNDS::Device {

real sum(StreamHandle stream, std::span<const real> x) {
    requireDevice("sum elements");
    return x.empty() ? 0.0 : Hooks::sum(stream, x);
}

// Scratch memory is allocated once, so that the call itself can be captured in a graph.
Minimum::Minimum(index count) : count_(static_cast<std::size_t>(count)) {
    requireDevice("find the smallest element");
    scratch_ = DeviceBuffer<std::byte>(Hooks::scratchOfMinimum(count_));
}

void Minimum::operator()(StreamHandle stream, std::span<const real> x, real *result) const {
    DNDS_CHECK(x.size() == count_, ArgumentError, "{} elements are given to a Minimum made for {}", x.size(), count_);
    Hooks::minimum(stream, x, result, {scratch_.data(), scratch_.size()});
}

// Without elements nothing is launched: a launch of no threads is an error of CUDA.
void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts) {
    requireDevice("compute offsets");
    DNDS_CHECK(counts.size() == starts.size(), ArgumentError, "{} counts are given for {} starts", counts.size(),
               starts.size());
    if (!counts.empty())
        Hooks::exclusiveScan(stream, counts, starts);
}

void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values) {
    requireDevice("sort");
    DNDS_CHECK(keys.size() == values.size(), ArgumentError, "{} keys are given for {} values", keys.size(),
               values.size());
    if (!keys.empty())
        Hooks::sortByKey(stream, keys, values);
}

} // namespace DNDS::Device
