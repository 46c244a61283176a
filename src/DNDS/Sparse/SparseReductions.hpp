/// @file SparseReductions.hpp
/// @brief Sparse fields as vectors, in which absent blocks have the default value: set, copy, scale, add, products,
/// norms, sums and extrema.
///
///     axpy({u, 1}, timeStep, {u, 2});                        // stage 1 += timeStep * stage 2
///     const real residual = norm2({u, 2});
///     const real mass = sum(u, {.component = 0, .exact = true, .on = Executor::device(stream)});
///
/// These are the calls of BlockField.hpp, for the dense field that has the default value where blocks are absent: on
/// the host, or on the device where blocks are there; exact sums and extrema have the bits of the dense field.
///
/// Changes are Local, O(blocks) and the elements of allocated ones, and on the device they are queued. They act on
/// allocated blocks, and allocate blocks of the first field where the second one has some; none is freed. Reductions
/// are Collective, wait for the device, and count absent blocks without visiting them. Errors of one rank are thrown on
/// all ranks.
///
/// Throw ArgumentError for a missing component, a second field on another pattern or with another number of components,
/// and changes after which absent blocks would have another value than the default; IndexError for a missing stage;
/// StaleError if blocks are not in the memory of `on`; what allocates, also MemoryError, and StateError in an exchange.
///
/// `sums`, `norms2`, `extrema` and `DroppedSums` are for each component of fields of any type: blocks on the device are
/// copied to the host, one by one.
#pragma once

#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Sparse/SparseField.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// A stage of a field, as an argument: `{u, 1}`; `u` itself is its stage 0. A reference: the field must outlive it.
template <class TField>
struct SparseStage {
    TField &field;
    int stage;

    /// Implicit, so that fields are arguments. Local.
    SparseStage(TField &u, int number = 0) : field(u), stage(number) {} // NOLINT
};
using SparseVector = SparseStage<SparseField<real>>;
using ConstSparseVector = SparseStage<const SparseField<real>>;

/// u = value, in allocated blocks; absent ones keep the default.
void setConstant(const SparseVector &u, real value, const BlockElements &elements = {});
/// to = from
void copy(const SparseVector &to, const ConstSparseVector &from, const BlockElements &elements = {});
/// u *= factor
void scale(const SparseVector &u, real factor, const BlockElements &elements = {});
/// y += a x
void axpy(const SparseVector &y, real a, const ConstSparseVector &x, const BlockElements &elements = {});

/// The sum of the products of all elements with their partners.
real dot(const ConstSparseVector &u, const ConstSparseVector &v, const BlockElements &elements = {});
/// The sum of all elements; of their magnitudes; the Euclidean norm; the largest magnitude, 0 without elements.
real sum(const ConstSparseVector &u, const BlockElements &elements = {});
real norm1(const ConstSparseVector &u, const BlockElements &elements = {});
real norm2(const ConstSparseVector &u, const BlockElements &elements = {});
real normInf(const ConstSparseVector &u, const BlockElements &elements = {});
/// The smallest and the largest element; +infinity and -infinity without elements.
real min(const ConstSparseVector &u, const BlockElements &elements = {});
real max(const ConstSparseVector &u, const BlockElements &elements = {});

namespace Detail {

/// Calls `visit(first, count)` for runs of consecutive elements: the cells of a block without ghosts, a line at a time
/// in C order.
template <class T, class Visit>
void forEachRun(const BlockView<T> &view, Visit &&visit) {
    forEachLine(view.cells(),
                [&](const IndexVector &cell, index count) { visit(view.addressOf(cell), count * view.components()); });
}

/// The same for all allocated blocks of a field, wherever they are.
template <class T, class Visit>
void forEachRun(const SparseField<T> &field, Visit &&visit) {
    std::vector<std::byte> copy;
    for (const int b : field.allocatedBlocks())
        forEachRun(field.hostView(b, copy), visit);
}

/// Number of cells of this rank's absent blocks.
template <class T>
index absentCells(const SparseField<T> &field) {
    index cells = 0;
    for (int b = 0; b < field.blocks(); ++b)
        if (!field.isAllocated(b))
            cells += field.block(b).cells.size();
    return cells;
}

/// The sum of each component over all cells, each mapped by `map`, in any order: absent blocks contribute multiples
/// of the mapped default.
template <class T, class Map>
std::vector<real> exactSumsOf(const SparseField<T> &field, Map map) {
    const auto components = toSize(field.components());
    const auto add = [&](std::span<WideExactAccumulator> sums) {
        const index absent = absentCells(field);
        for (WideExactAccumulator &sum : sums)
            sum.addRepeated(map(static_cast<real>(field.defaultValue())), absent);
        std::vector<std::byte> copy;
        std::vector<real> values;
        for (const int block : field.allocatedBlocks()) {
            values.clear();
            forEachRun(field.hostView(block, copy), [&](const T *first, index count) {
                for (index i = 0; i < count; ++i)
                    values.push_back(map(static_cast<real>(first[i])));
            });
            FixedPoint::addColumns(FixedPoint::columnsOf(values, components), sums);
        }
    };
    std::vector<real> result(components);
    exactSums(field.pattern()->context()->comm(), add, result);
    return result;
}

} // namespace Detail

/// The sum of each component over all cells of all ranks: [components]. Bitwise equal to the dense field's, on any
/// number of ranks; see `exactSums`. Absent blocks cost nothing. Collective; one reduction.
template <class T>
std::vector<real> sums(const SparseField<T> &field) {
    return Detail::exactSumsOf(field, [](real value) { return value; });
}

/// The square root of the sum of squares of each component: [components]. As `sums`. Squares that are too large or too
/// small for a number make it infinite, NaN or 0.
template <class T>
std::vector<real> norms2(const SparseField<T> &field) {
    std::vector<real> result = Detail::exactSumsOf(field, [](real value) { return value * value; });
    for (real &norm : result)
        norm = std::sqrt(norm);
    return result;
}

/// A field's loss with blocks that exchanges have freed, and with deposits that pushes have dropped: the sum of their
/// values beyond the default, since this object was made. The rest of a conservative scheme's loss has left through
/// faces whose ghosts were the default.
///
///     const DroppedSums<real> dropped(dust);
///     const real before = sums(dust)[0];
///     ...                                                           // steps
///     const real throughFaces = before - sums(dust)[0] - dropped.sums()[0];
///
/// Costs a pass over each freed block, and over a block for each dropped deposit. A field reports to the latest
/// DroppedSums made of it.
template <class T>
class DroppedSums {
  public:
    /// A weight, say the volume, of a cell of this rank's block `local`, counted from 0 in C order.
    using Weight = std::function<real(int local, index cell)>;

    /// Local; ranks give the same weights. Throws StateError during an exchange.
    explicit DroppedSums(SparseField<T> &field, const Weight &weight = {})
        : counts_(std::make_shared<Counts>(Counts{
              nullptr, field.defaultValue(), {}, std::vector<WideExactAccumulator>(toSize(field.components()))})) {
        follow(field, weight);
    }
    /// Continues with the field that `SparseField::moved` made, with a weight for its blocks; the field before it is
    /// not counted any more. Local. Throws as above.
    void follow(SparseField<T> &field, const Weight &weight = {}) {
        field.onFree([counts = counts_, number = counts_->followed + 1](int local, const std::byte *stage0) {
            if (number == counts->followed)
                counts->add(local, stage0);
        });
        ++counts_->followed;
        counts_->pattern = field.pattern();
        counts_->weight = weight;
    }
    DroppedSums(DroppedSums &&) noexcept = default;
    DroppedSums &operator=(DroppedSums &&) = delete;
    DroppedSums(const DroppedSums &) = delete;
    DroppedSums &operator=(const DroppedSums &) = delete;
    /// Weights are not evaluated any more.
    ~DroppedSums() {
        if (counts_)
            counts_->ended = true;
    }

    /// The loss of each component, on all ranks: [components]. The same bits on any number of ranks. Collective.
    std::vector<real> sums() const {
        std::vector<real> result(counts_->sums.size());
        const auto add = [this](auto sums) { std::ranges::copy(counts_->sums, sums.begin()); };
        exactSums(counts_->pattern->context()->comm(), add, result);
        return result;
    }

  private:
    /// The sums so far, and how to count. The field's function holds it too, and may be called after this object was
    /// destroyed: then `ended` is set.
    struct Counts {
        std::shared_ptr<const SparsePattern> pattern;
        T background;
        Weight weight;
        std::vector<WideExactAccumulator> sums;
        bool ended = false; ///< DroppedSums was destroyed, and the weight may refer to freed memory
        int followed = 0;   ///< fields; the last one is counted

        /// Adds the difference from the default as two terms: values that are the default cost a comparison.
        void add(int local, const std::byte *stage0) {
            if (ended)
                return;
            const BlockMemory &block = pattern->blocks()[toSize(local)];
            const auto components = static_cast<rowsize>(sums.size());
            const BlockView<const T> view(reinterpret_cast<const T *>(stage0), block.cells, block.extent, components,
                                          components, 1);
            std::size_t at = 0; // of the elements of all cells
            Detail::forEachRun(view, [&](const T *first, index count) {
                for (std::size_t i = 0; i < toSize(count); ++i, ++at) {
                    if (first[i] == background)
                        continue;
                    const real volume = weight ? weight(local, static_cast<index>(at / sums.size())) : 1;
                    sums[at % sums.size()] += volume * static_cast<real>(first[i]);
                    sums[at % sums.size()] -= volume * static_cast<real>(background);
                }
            });
        }
    };

    std::shared_ptr<Counts> counts_; ///< shared with the field
};

/// The least and the largest value of one component; NaN if there is a NaN.
struct Extrema {
    real least = std::numeric_limits<real>::infinity();
    real largest = -std::numeric_limits<real>::infinity();
};

/// The extrema of each component over all cells of all ranks: [components]. The default counts if some block is absent.
/// Collective; one reduction, which carries errors of any rank.
template <class T>
std::vector<Extrema> extrema(const SparseField<T> &field) {
    const auto components = toSize(field.components());
    std::vector<real> most(2 * components, -std::numeric_limits<real>::infinity()); // the largest, minus the least
    const auto raise = [](real &to, real value) { to = value > to || std::isnan(value) ? value : to; }; // NaN stays
    const auto take = [&](std::size_t c, real value) {
        raise(most[2 * c], value);
        raise(most[2 * c + 1], -value);
    };
    const std::exception_ptr failure = attempt([&] {
        for (std::size_t c = 0; c < components && Detail::absentCells(field) > 0; ++c)
            take(c, static_cast<real>(field.defaultValue()));
        Detail::forEachRun(field, [&](const T *first, index count) {
            for (std::size_t i = 0; i < toSize(count); ++i)
                take(i % components, static_cast<real>(first[i]));
        });
    });
    DofKernels::reduceOrThrow(field.pattern()->context()->comm(), most, DofKernels::Reduction::Max, failure);
    std::vector<Extrema> result;
    for (std::size_t c = 0; c < components; ++c)
        result.push_back({-most[2 * c + 1], most[2 * c]});
    return result;
}

} // namespace DNDS
