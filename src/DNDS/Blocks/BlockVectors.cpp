#include "DNDS/Blocks/BlockField.hpp"

#include "DNDS/Array/BoxKernels.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Blocks/BlockBoundary.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace DNDS {

namespace {

using DofKernels::Reduction;
using DofKernels::Terms;
using DofKernels::VectorBox;

/// Merges components inside cells with the last dimension, so that inner loops are contiguous.
ElementBox withComponents(ElementBox box, rowsize components) {
    box.counts[3] *= components;
    box.strides[3] = 1;
    return box;
}

/// The boxes of fields on the pattern of `u`, whose arrays are `x`, `y` and `to`: one for the whole memory if all of it
/// counts, else one for each component and owned box, so that shared points are in one box of one rank.
/// O(owned boxes x components outside). Elements of a rank are in one box each, so sums count none twice.
std::vector<VectorBox> boxesOf(const BlockField<real> &u, const BlockElements &elements, bool ghostsToo, const real *x,
                               const real *y, real *to) {
    const rowsize components = u.components();
    DNDS_CHECK(elements.component >= -1 && elements.component < components, ArgumentError,
               "component {} of '{}' is asked for, which has {}: give -1 for all", elements.component, u.name(),
               components);
    const bool ghosts = elements.ghosts.value_or(ghostsToo);
    const rowsize outside = u.blockPattern()->componentsOutside();
    const rowsize inside = outside > 0 ? 1 : components;
    const bool all = elements.component < 0;
    if (all && ghosts) // without gaps
        return {{ElementBox::run(u.blockPattern()->rows() * inside), x, y, to}};
    std::vector<VectorBox> boxes;
    const rowsize first = all ? 0 : elements.component;
    const rowsize end = all ? std::max(outside, 1) : elements.component + 1;
    for (int b = 0; b < u.blocks(); ++b) {
        const BlockMemory &block = u.block(b);
        for (rowsize c = first; c < end; ++c)
            for (const Box &cells : ghosts ? std::span(&block.extent, 1) : u.blockPattern()->owned(b)) {
                const ElementBox box = BoundaryGeometry::elementsOf(block, cells, inside, c);
                boxes.push_back({all ? withComponents(box, inside) : box, x, y, to});
            }
    }
    return boxes;
}

/// The field's memory where the operation runs; the mutable one makes the other side stale. Throw StaleError.
const real *readable(const BlockField<real> &u, const Executor &on) {
    return on.onDevice() ? u.array().deviceView<DeviceBackend::CUDA>().data() : u.array().view().data();
}
real *writable(BlockField<real> &u, const Executor &on) {
    return on.onDevice() ? u.array().deviceView<DeviceBackend::CUDA>().data() : u.array().view().data();
}

void requirePartner(const BlockField<real> &u, const BlockField<real> &v) {
    DNDS_CHECK(u.blockPattern() == v.blockPattern(), ArgumentError, "'{}' and '{}' differ in their {}", u.name(),
               v.name(), u.blockPattern()->differenceFrom(*v.blockPattern()));
    DNDS_CHECK(u.components() == v.components(), ArgumentError, "'{}' has {} components, '{}' has {}", u.name(),
               u.components(), v.name(), v.components());
}

/// The elements of `u` that change, next to those of `from`, if given. Asks for writing last, so that errors leave `u`
/// as it was.
std::vector<VectorBox> changed(BlockField<real> &u, const BlockField<real> *from, const BlockElements &elements) {
    if (from != nullptr)
        requirePartner(u, *from);
    std::vector<VectorBox> boxes =
        boxesOf(u, elements, true, from != nullptr ? readable(*from, elements.on) : nullptr, nullptr, nullptr);
    real *const to = writable(u, elements.on);
    for (VectorBox &box : boxes)
        box.to = to;
    return boxes;
}

/// The sum over all ranks; `v` may be `u`. Collective.
/// Exact sums have the same bits for any cut of the grid and any ranks. Otherwise blocks and ranks are added in their
/// order, and another cut changes the last bits.
real sumOf(Terms terms, const BlockField<real> &u, const BlockField<real> &v, const BlockElements &elements) {
    const auto boxes = [&] {
        requirePartner(u, v);
        return boxesOf(u, elements, false, readable(u, elements.on), readable(v, elements.on), nullptr);
    };
    if (elements.exact)
        return exactSum(u.array().comm(),
                        [&](WideExactAccumulator &sum) { DofKernels::addExactly(terms, boxes(), sum, elements.on); });
    return DofKernels::reduced(u.array().comm(), Reduction::Sum,
                               [&] { return DofKernels::sum(terms, boxes(), elements.on); });
}

/// The largest over all ranks of the value that `choose` makes of a rank's extrema; minima are negated maxima, so that
/// one kernel and one reduction serve all. Collective.
/// Extremes have no rounding: the same bits for any cut.
real extremeOf(const BlockField<real> &u, const BlockElements &elements, const auto &choose) {
    return DofKernels::reduced(u.array().comm(), Reduction::Max, [&] {
        return choose(
            DofKernels::extremes(boxesOf(u, elements, false, readable(u, elements.on), nullptr, nullptr), elements.on));
    });
}

} // namespace

void setConstant(BlockField<real> &u, real value, const BlockElements &elements) {
    DofKernels::fill(value, changed(u, nullptr, elements), elements.on);
}

void copy(BlockField<real> &to, const BlockField<real> &from, const BlockElements &elements) {
    DofKernels::copy(changed(to, &from, elements), elements.on);
}

void scale(BlockField<real> &u, real factor, const BlockElements &elements) {
    DofKernels::combine(DofKernels::Operation::Multiply, factor, changed(u, nullptr, elements), elements.on);
}

void axpy(BlockField<real> &y, real a, const BlockField<real> &x, const BlockElements &elements) {
    DofKernels::addTo(a, changed(y, &x, elements), elements.on);
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
