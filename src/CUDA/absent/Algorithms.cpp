#include "DNDS/Device/AlgorithmHooks.hpp"

#include <exception>

// Never called: requireDevice throws before.
namespace DNDS::Device::Hooks {

real sum(StreamHandle /*stream*/, std::span<const real> /*x*/) { std::terminate(); }
std::size_t scratchOfMinimum(std::size_t /*count*/) { std::terminate(); }
void minimum(StreamHandle /*stream*/, std::span<const real> /*x*/, real * /*result*/,
             std::span<std::byte> /*scratch*/) {
    std::terminate();
}
void largestMagnitude(StreamHandle /*stream*/, const Column & /*column*/, real * /*result*/) { std::terminate(); }
void integerSum(StreamHandle /*stream*/, const Column & /*column*/, const Scale & /*scale*/,
                FixedPoint::Wide * /*result*/) {
    std::terminate();
}
void exclusiveScan(StreamHandle /*stream*/, std::span<const index> /*counts*/, std::span<index> /*starts*/) {
    std::terminate();
}
void sortByKey(StreamHandle /*stream*/, std::span<index> /*keys*/, std::span<index> /*values*/) { std::terminate(); }
void multiply(StreamHandle /*stream*/, real /*alpha*/, const MatrixRows<const real> & /*a*/,
              const MatrixRows<const real> & /*b*/, real /*beta*/, const MatrixRows<real> & /*c*/) {
    std::terminate();
}

} // namespace DNDS::Device::Hooks
