#include "DNDS/Sparse/SparseReductions.hpp"

#include "DNDS/Array/BoxKernels.hpp"
#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

using DofKernels::Extremes;
using DofKernels::Operation;
using DofKernels::Reduction;
using DofKernels::Terms;
using DofKernels::VectorBox;

void requireComponent(const SparseField<real> &u, const BlockElements &elements) {
    DNDS_CHECK(elements.component >= -1 && elements.component < u.components(), ArgumentError,
               "component {} of '{}' is asked for, which has {}: give -1 for all", elements.component, u.name(),
               u.components());
}

void requirePartner(const SparseField<real> &u, const SparseField<real> &v) {
    DNDS_CHECK(u.pattern() == v.pattern() && u.components() == v.components(), ArgumentError,
               "'{}' and '{}' are not on one pattern, or have {} and {} components", u.name(), v.name(), u.components(),
               v.components());
}

/// Throws if a change turns the default into `becomes`, another value: absent blocks keep the default, so that only
/// changes that keep it are exact.
void requireDefault(const SparseField<real> &u, real becomes) {
    const real value = u.defaultValue();
    DNDS_CHECK(becomes == value || (std::isnan(becomes) && std::isnan(value)), ArgumentError,
               "absent blocks of '{}' are {}, of which this would make {}: they have no memory for it", u.name(), value,
               becomes);
}

/// The elements of a block as a box of up to four loops, offsets from the view's first cell: cells, or with `ghosts`
/// all of its memory; one component, or all (-1).
template <class T>
ElementBox boxOf(const BlockView<T> &view, rowsize component, bool ghosts) {
    ElementBox box;
    for (int d = 0; d < view.dims(); ++d) {
        const int to = d + maxBlockDims - view.dims();
        const index low = ghosts ? view.ghostsLow(d) : 0;
        box.counts[to] = low + view.extent(d) + (ghosts ? view.ghostsHigh(d) : 0);
        box.strides[to] = view.stride(d);
        box.first -= low * view.stride(d);
    }
    if (component >= 0) {
        box.first += component;
    } else if (ghosts) { // all of the memory: one run
        const index first = std::exchange(box, ElementBox::run(box.size() * view.components())).first;
        box.first = first;
    } else {
        box.counts[3] *= view.components();
        box.strides[3] = 1;
    }
    return box;
}

/// The view of an allocated block in the memory of `on`. Throws StaleError if blocks are in the other space.
template <class TField>
auto viewOf(const SparseStage<TField> &u, int block, const Executor &on) {
    return on.onDevice() ? u.field.template deviceView<DeviceBackend::CUDA>(block, u.stage)
                         : u.field.view(block, u.stage);
}

/// Views of a stage for reading. All absent blocks are views of one block of defaults, made at first use with the size
/// of the largest: partners of allocated blocks need values to read.
/// Memory: one block of the largest size, whatever the number of absent blocks.
class StageReader {
  public:
    StageReader(const ConstSparseVector &u, const Executor &on) : u_(u), on_(on) {}

    BlockView<const real> operator()(int block) {
        if (u_.field.isAllocated(block))
            return viewOf(u_, block, on_);
        const BlockMemory &memory = u_.field.block(block);
        return {defaults(), memory.cells, memory.extent, u_.field.components(), u_.field.components(), 1};
    }

  private:
    const real *defaults() {
        if (host_.empty() && device_.data() == nullptr) {
            index rows = 0;
            for (const BlockMemory &block : u_.field.pattern()->blocks())
                rows = std::max(rows, block.rows);
            const std::size_t elements = toSize(rows * u_.field.components());
            if (on_.onDevice()) {
                device_ = Device::DeviceBuffer<real>(elements);
                DofKernels::fill({device_.data(), elements}, u_.field.defaultValue(), on_);
            } else {
                host_.assign(elements, u_.field.defaultValue());
            }
        }
        return on_.onDevice() ? device_.data() : host_.data();
    }

    ConstSparseVector u_;
    const Executor &on_;
    std::vector<real> host_;
    Device::DeviceBuffer<real> device_;
};

/// The boxes that a change writes: all allocated blocks of `to`, by default with ghosts.
std::vector<VectorBox> changed(const SparseVector &to, const BlockElements &elements) {
    requireComponent(to.field, elements);
    std::vector<VectorBox> boxes;
    for (const int block : to.field.allocatedBlocks()) {
        const auto view = viewOf(to, block, elements.on);
        boxes.push_back(
            {boxOf(view, elements.component, elements.ghosts.value_or(true)), nullptr, nullptr, view.data()});
    }
    return boxes;
}

/// The same for a change by `from`, whose blocks are allocated in `to` first: O(blocks). Errors about arguments come
/// before any allocation.
std::vector<VectorBox> changed(const SparseVector &to, StageReader &from, const SparseField<real> &source,
                               const BlockElements &elements) {
    requireComponent(to.field, elements); // before any block is made
    for (int block = 0; block < to.field.blocks(); ++block)
        if (source.isAllocated(block))
            to.field.allocate(block);
    std::vector<VectorBox> boxes = changed(to, elements);
    for (std::size_t k = 0; const int block : to.field.allocatedBlocks())
        boxes[k++].x = from(block).data();
    return boxes;
}

/// A rank's part of reductions over a field, or a pair of fields. Blocks that are absent in both are counted, not
/// visited: each of their elements contributes the same term.
/// O(blocks + elements of allocated blocks). The absent part of a sum is one product, count x term, whatever the number
/// of blocks, so that reductions cost what the allocated blocks cost.
struct Contributions {
    StageReader x, y;
    std::vector<VectorBox> boxes;
    index absent = 0; ///< elements that have the default

    Contributions(const ConstSparseVector &u, const ConstSparseVector &v, const BlockElements &elements)
        : x(u, elements.on), y(v, elements.on) {
        requireComponent(u.field, elements);
        requirePartner(u.field, v.field);
        for (int block = 0; block < u.field.blocks(); ++block) {
            const BlockMemory &memory = u.field.block(block);
            const BlockView<const real> shape(nullptr, memory.cells, memory.extent, u.field.components(),
                                              u.field.components(), 1);
            const ElementBox box = boxOf(shape, elements.component, elements.ghosts.value_or(false));
            if (u.field.isAllocated(block) || v.field.isAllocated(block))
                boxes.push_back({box, x(block).data(), y(block).data(), nullptr});
            else
                absent += box.size();
        }
    }
};

real termOf(Terms terms, real x, real y) {
    return terms == Terms::Products ? x * y : terms == Terms::Magnitudes ? std::fabs(x) : x;
}

CommunicatorView commOf(const ConstSparseVector &u) { return u.field.pattern()->context()->comm(); }

/// The sum over all ranks; `v` may be `u`. The bits of exact sums depend neither on the distribution nor on which
/// blocks are allocated. Otherwise terms are added in the order of blocks and ranks.
real sumOf(Terms terms, const ConstSparseVector &u, const ConstSparseVector &v, const BlockElements &elements) {
    const real background = termOf(terms, u.field.defaultValue(), v.field.defaultValue());
    if (!elements.exact)
        return DofKernels::reduced(commOf(u), Reduction::Sum, [&] {
            const Contributions mine(u, v, elements);
            const real there = DofKernels::sum(terms, mine.boxes, elements.on);
            return mine.absent > 0 ? there + static_cast<real>(mine.absent) * background : there;
        });
    return exactSum(commOf(u), [&](WideExactAccumulator &sum) {
        const Contributions mine(u, v, elements);
        DofKernels::addExactly(terms, mine.boxes, sum, elements.on);
        sum.addRepeated(background, mine.absent);
    });
}

/// The maximum over all ranks of `choose(extrema of this rank)`: minima are negated, so that one reduction serves both.
/// One reduction of one number. The default takes part if some element of this rank is absent.
real extremeOf(const ConstSparseVector &u, const BlockElements &elements, const auto &choose) {
    return DofKernels::reduced(commOf(u), Reduction::Max, [&] {
        const Contributions mine(u, u, elements);
        Extremes found = DofKernels::extremes(mine.boxes, elements.on);
        if (const real value = u.field.defaultValue(); mine.absent > 0 && !std::isnan(found.min))
            found = {value > found.min ? found.min : value, value < found.max ? found.max : value}; // a NaN stays
        return choose(found);
    });
}

} // namespace

void setConstant(const SparseVector &u, real value, const BlockElements &elements) {
    DofKernels::fill(value, changed(u, elements), elements.on);
}

void copy(const SparseVector &to, const ConstSparseVector &from, const BlockElements &elements) {
    requirePartner(to.field, from.field);
    requireDefault(to.field, from.field.defaultValue());
    StageReader source(from, elements.on);
    DofKernels::copy(changed(to, source, from.field, elements), elements.on);
}

void scale(const SparseVector &u, real factor, const BlockElements &elements) {
    requireDefault(u.field, u.field.defaultValue() * factor);
    DofKernels::combine(Operation::Multiply, factor, changed(u, elements), elements.on);
}

void axpy(const SparseVector &y, real a, const ConstSparseVector &x, const BlockElements &elements) {
    requirePartner(y.field, x.field);
    requireDefault(y.field, y.field.defaultValue() + a * x.field.defaultValue());
    StageReader source(x, elements.on);
    DofKernels::addTo(a, changed(y, source, x.field, elements), elements.on);
}

real dot(const ConstSparseVector &u, const ConstSparseVector &v, const BlockElements &elements) {
    return sumOf(Terms::Products, u, v, elements);
}

real sum(const ConstSparseVector &u, const BlockElements &elements) { return sumOf(Terms::Elements, u, u, elements); }

real norm1(const ConstSparseVector &u, const BlockElements &elements) {
    return sumOf(Terms::Magnitudes, u, u, elements);
}

real norm2(const ConstSparseVector &u, const BlockElements &elements) {
    return std::sqrt(sumOf(Terms::Products, u, u, elements));
}

real normInf(const ConstSparseVector &u, const BlockElements &elements) {
    const real largest = extremeOf(u, elements, [](const Extremes &found) { return std::max(found.max, -found.min); });
    return largest < 0 ? 0 : largest; // no elements
}

real min(const ConstSparseVector &u, const BlockElements &elements) {
    return -extremeOf(u, elements, [](const Extremes &found) { return -found.min; });
}

real max(const ConstSparseVector &u, const BlockElements &elements) {
    return extremeOf(u, elements, [](const Extremes &found) { return found.max; });
}

} // namespace DNDS
