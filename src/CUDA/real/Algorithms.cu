#include "DNDS/Device/AlgorithmHooks.hpp"

#include "Check.hpp"
#include "Streams.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/DeviceBuffer.hpp"

#include <cub/device/device_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <limits>

namespace DNDS::Device::Hooks {

namespace {

// The results do not depend on the order in which CUB applies these.
struct Smaller {
    DNDS_HOST_DEVICE real operator()(real a, real b) const { return b < a ? b : a; }
};
struct Larger {
    DNDS_HOST_DEVICE real operator()(real a, real b) const { return b > a ? b : a; }
};
struct Plus {
    DNDS_HOST_DEVICE FixedPoint::Wide operator()(FixedPoint::Wide a, FixedPoint::Wide b) const { return a + b; }
};
struct MagnitudeIn {
    Column column;
    DNDS_HOST_DEVICE real operator()(index row) const { return FixedPoint::magnitude(column(row)); }
};
struct IntegerIn {
    Column column;
    Scale scale;
    DNDS_HOST_DEVICE FixedPoint::Wide operator()(index row) const { return scale.toInteger(column(row)); }
};

/// Queues `*result` = `of(0)`, `of(1)`, ... combined by `join`. Calls CUB twice: for the size of its scratch memory,
/// and with it.
template <class Of, class T, class Join>
void reduce(const char *what, StreamHandle stream, index count, const Of &of, T *result, Join join, T first) {
    const auto terms = thrust::make_transform_iterator(thrust::counting_iterator<index>(0), of);
    std::size_t bytes = 0;
    check(cub::DeviceReduce::Reduce(nullptr, bytes, terms, result, count, join, first, native(stream)), what);
    const DeviceBuffer<std::byte> scratch(bytes > 0 ? bytes : 1);
    check(cub::DeviceReduce::Reduce(scratch.data(), bytes, terms, result, count, join, first, native(stream)), what);
}

} // namespace

std::size_t scratchOfMinimum(std::size_t count) {
    std::size_t bytes = 0;
    check(cub::DeviceReduce::Reduce(nullptr, bytes, static_cast<const real *>(nullptr), static_cast<real *>(nullptr),
                                    static_cast<index>(count), Smaller{}, std::numeric_limits<real>::infinity()),
          "preparing to find the smallest element");
    return bytes > 0 ? bytes : 1; // CUB takes null as a query for the size
}

void minimum(StreamHandle stream, std::span<const real> x, real *result, std::span<std::byte> scratch) {
    std::size_t bytes = scratch.size();
    check(cub::DeviceReduce::Reduce(scratch.data(), bytes, x.data(), result, static_cast<index>(x.size()), Smaller{},
                                    std::numeric_limits<real>::infinity(), native(stream)),
          "finding the smallest element");
}

void largestMagnitude(StreamHandle stream, const Column &column, real *result) {
    reduce("finding the largest magnitude", stream, column.size, MagnitudeIn{column}, result, Larger{}, real{0});
}

void integerSum(StreamHandle stream, const Column &column, const Scale &scale, FixedPoint::Wide *result) {
    reduce("adding up exactly", stream, column.size, IntegerIn{column, scale}, result, Plus{}, FixedPoint::Wide{0});
}

} // namespace DNDS::Device::Hooks
