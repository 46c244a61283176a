// Loops over elements that the host and the device compile from one functor. Elements do not depend on each other, so
// any order gives the same result.
#include "DNDS/Array/DofPartition.hpp"

#include "DNDS/Device/ParallelFor.hpp"

#include <iterator>

namespace DNDS::DofKernels {

using namespace Partition;

namespace {

/// x[i] = x[i] op a.
template <class Apply>
struct WithNumber {
    Apply apply;
    real *x;
    real a;
    DNDS_HOST_DEVICE void operator()(index i) const { x[i] = apply(x[i], a); }
};

/// x[i] = x[i] op y[i].
template <class Apply>
struct WithElements {
    Apply apply;
    real *x;
    const real *y;
    DNDS_HOST_DEVICE void operator()(index i) const { x[i] = apply(x[i], y[i]); }
};

// y += a x, without a product in memory.
struct AddScaled {
    real *y;
    real a;
    const real *x;
    DNDS_HOST_DEVICE void operator()(index i) const { y[i] += a * x[i]; }
};

} // namespace

void combine(Operation operation, std::span<real> x, real a, const Executor &on) {
    withOperation(operation, [&](auto apply) {
        parallelFor(on, std::ssize(x), WithNumber<decltype(apply)>{apply, x.data(), a});
    });
}

void combine(Operation operation, std::span<real> x, std::span<const real> y, const Executor &on) {
    withOperation(operation, [&](auto apply) {
        parallelFor(on, std::ssize(x), WithElements<decltype(apply)>{apply, x.data(), y.data()});
    });
}

void fill(std::span<real> x, real value, const Executor &on) {
    parallelFor(on, std::ssize(x), WithNumber<Second>{{}, x.data(), value});
}

void addTo(std::span<real> y, real a, std::span<const real> x, const Executor &on) {
    parallelFor(on, std::ssize(y), AddScaled{y.data(), a, x.data()});
}

namespace {

/// The same for elements of boxes.
template <class Apply>
struct BoxWithNumber {
    Apply apply;
    real a;
    DNDS_HOST_DEVICE void operator()(const VectorBox &box, const index * /*at*/, index i) const {
        real &element = Device::asGlobal(box.to)[i];
        element = apply(element, a);
    }
};

struct CopyBox {
    DNDS_HOST_DEVICE void operator()(const VectorBox &box, const index * /*at*/, index i) const {
        Device::asGlobal(box.to)[i] = Device::asGlobal(box.x)[i];
    }
};

struct AddScaledBox {
    real a;
    DNDS_HOST_DEVICE void operator()(const VectorBox &box, const index * /*at*/, index i) const {
        Device::asGlobal(box.to)[i] += a * Device::asGlobal(box.x)[i];
    }
};

} // namespace

void combine(Operation operation, real a, Boxes boxes, const Executor &on) {
    withOperation(operation, [&](auto apply) { forBoxes(on, boxes, BoxWithNumber<decltype(apply)>{apply, a}); });
}

void fill(real value, Boxes boxes, const Executor &on) { forBoxes(on, boxes, BoxWithNumber<Second>{{}, value}); }

void copy(Boxes boxes, const Executor &on) { forBoxes(on, boxes, CopyBox()); }

void addTo(real a, Boxes boxes, const Executor &on) { forBoxes(on, boxes, AddScaledBox{a}); }

} // namespace DNDS::DofKernels
