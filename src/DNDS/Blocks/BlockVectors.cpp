#include "DNDS/Blocks/BlockVectors.hpp"

#include "DNDS/Array/BoxKernels.hpp"
#include "DNDS/Base/Attempt.hpp"
#include "DNDS/Blocks/BlockBoundary.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

using DofKernels::Reduction;
using DofKernels::Terms;

/// Merges components inside cells with the last dimension.
ElementBox withComponents(ElementBox box, rowsize components) {
    box.counts[3] *= components;
    box.strides[3] = 1;
    return box;
}

std::vector<ElementBox> boxesOf(const BlockField<real> &u, const BlockElements &elements, bool ghostsToo) {
    const rowsize components = u.components();
    DNDS_CHECK(elements.component >= -1 && elements.component < components, ArgumentError,
               "component {} of '{}' is asked for, which has {}: give -1 for all", elements.component, u.name(),
               components);
    const bool ghosts = elements.ghosts.value_or(ghostsToo);
    const rowsize outside = u.blockPattern()->componentsOutside();
    const rowsize inside = outside > 0 ? 1 : components;
    const bool all = elements.component < 0;
    if (all && ghosts) // without gaps
        return {ElementBox::run(u.blockPattern()->rows() * inside)};
    std::vector<ElementBox> boxes;
    const rowsize first = all ? 0 : elements.component;
    const rowsize end = all ? std::max(outside, 1) : elements.component + 1;
    for (int b = 0; b < u.blocks(); ++b) {
        const BlockMemory &block = u.block(b);
        for (rowsize c = first; c < end; ++c)
            for (const Box &cells : ghosts ? std::span(&block.extent, 1) : u.blockPattern()->owned(b)) {
                boxes.push_back(BoundaryGeometry::elementsOf(block, cells, inside, c));
                if (all)
                    boxes.back() = withComponents(boxes.back(), inside);
            }
    }
    return boxes;
}

const real *readable(const BlockField<real> &u, const Executor &on) {
    return on.onDevice() ? u.array().deviceView<DeviceBackend::CUDA>().data() : u.array().view().data();
}
real *writable(BlockField<real> &u, const Executor &on) {
    return on.onDevice() ? u.array().deviceView<DeviceBackend::CUDA>().data() : u.array().view().data();
}

void requirePartner(const BlockField<real> &u, const BlockField<real> &v) {
    DNDS_CHECK(u.blockPattern() == v.blockPattern() && u.components() == v.components(), ArgumentError,
               "'{}' and '{}' are not on one pattern, or have {} and {} components: make both with one BlockPattern",
               u.name(), v.name(), u.components(), v.components());
}

real reduced(const BlockField<real> &u, Reduction reduction, const auto &body) {
    real value = 0;
    const std::exception_ptr failure = attempt([&] { value = body(); });
    DofKernels::reduceOrThrow(u.array().comm(), {&value, 1}, reduction, failure);
    return value;
}

/// The sum over all ranks; `v` may be `u`.
real sumOf(Terms terms, const BlockField<real> &u, const BlockField<real> &v, const BlockElements &elements) {
    const auto ofRank = [&](const auto &add) {
        requirePartner(u, v);
        return add(terms, readable(u, elements.on), readable(v, elements.on), boxesOf(u, elements, false), elements.on);
    };
    if (!elements.exact)
        return reduced(u, Reduction::Sum,
                       [&] { return ofRank([](auto... arguments) { return DofKernels::sum(arguments...); }); });
    WideExactAccumulator mine;
    u.array().comm().guarded(
        [&] { mine = ofRank([](auto... arguments) { return DofKernels::exactSum(arguments...); }); });
    WideExactAccumulator total;
    for (const WideExactAccumulator &one : u.array().comm().allGatherV(std::span<const WideExactAccumulator>(&mine, 1)))
        total += one;
    return total.value();
}

/// The largest over all ranks of what `choose` makes of a rank's extrema.
real extremeOf(const BlockField<real> &u, const BlockElements &elements, const auto &choose) {
    return reduced(u, Reduction::Max, [&] {
        return choose(DofKernels::extremes(readable(u, elements.on), boxesOf(u, elements, false), elements.on));
    });
}

} // namespace

void setConstant(BlockField<real> &u, real value, const BlockElements &elements) {
    const auto boxes = boxesOf(u, elements, true);
    DofKernels::fill(writable(u, elements.on), value, boxes, elements.on);
}

void copy(BlockField<real> &to, const BlockField<real> &from, const BlockElements &elements) {
    requirePartner(to, from);
    const auto boxes = boxesOf(to, elements, true);
    const real *source = readable(from, elements.on);
    DofKernels::copy(writable(to, elements.on), source, boxes, elements.on);
}

void scale(BlockField<real> &u, real factor, const BlockElements &elements) {
    const auto boxes = boxesOf(u, elements, true);
    DofKernels::combine(DofKernels::Operation::Multiply, writable(u, elements.on), factor, boxes, elements.on);
}

void axpy(BlockField<real> &y, real a, const BlockField<real> &x, const BlockElements &elements) {
    requirePartner(y, x);
    const auto boxes = boxesOf(y, elements, true);
    const real *source = readable(x, elements.on);
    DofKernels::addTo(writable(y, elements.on), a, source, boxes, elements.on);
}

real dot(const BlockField<real> &u, const BlockField<real> &v, const BlockElements &elements) {
    return sumOf(Terms::Products, u, v, elements);
}

real sum(const BlockField<real> &u, const BlockElements &elements) { return sumOf(Terms::Elements, u, u, elements); }

real norm1(const BlockField<real> &u, const BlockElements &elements) {
    return sumOf(Terms::Magnitudes, u, u, elements);
}

real norm2(const BlockField<real> &u, const BlockElements &elements) {
    return std::sqrt(sumOf(Terms::Products, u, u, elements));
}

real normInf(const BlockField<real> &u, const BlockElements &elements) {
    const real largest = extremeOf(u, elements, [](const auto &found) { return std::max(found.max, -found.min); });
    return largest < 0 ? 0 : largest; // no elements
}

real min(const BlockField<real> &u, const BlockElements &elements) {
    return -extremeOf(u, elements, [](const auto &found) { return -found.min; });
}

real max(const BlockField<real> &u, const BlockElements &elements) {
    return extremeOf(u, elements, [](const auto &found) { return found.max; });
}

} // namespace DNDS
