#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <vector>

namespace DNDS {

namespace {

using FixedPoint::Wide;

/// A sum in parts that integer reductions add.
using Limbs = std::array<std::int64_t, 3>;
constexpr int limbBits = FixedPoint::halfResolution;

/// Low limbs are in [0, 2^40), the highest is signed: sums of each limb over up to 2^23 ranks fit 64 bits. MPI has
/// no reduction of 128-bit integers.
/// Digits to the base 2^40: sum = limbs[0] + 2^40 limbs[1] + 2^80 limbs[2].
Limbs toLimbs(Wide sum) {
    constexpr Wide limb = Wide{1} << limbBits;
    Limbs limbs{};
    for (std::int64_t &part : limbs) {
        part = static_cast<std::int64_t>(sum & (limb - 1));
        sum >>= limbBits;
    }
    limbs[2] += static_cast<std::int64_t>(sum) << limbBits; // the sign, and higher bits
    return limbs;
}

/// From limbs that were summed over ranks: low ones may exceed 2^40, so carries are resolved here.
Wide toWide(const Limbs &limbs) {
    return (static_cast<Wide>(limbs[2]) << (2 * limbBits)) + (static_cast<Wide>(limbs[1]) << limbBits) +
           static_cast<Wide>(limbs[0]);
}

using FixedPoint::Column;
using FixedPoint::Scale;

/// Calls `visit(k, part)` for parts of all columns, row by row: columns may share memory, which stays in the cache.
template <class Visit>
void forParts(std::span<const Column> columns, const Visit &visit) {
    // Rows of a block in all columns before the next block. A block of 2048 rows of five doubles takes 80 KiB.
    constexpr index together = 2048;
    index rows = 0;
    for (const Column &column : columns)
        rows = std::max(rows, column.size);
    for (index begin = 0; begin < rows; begin += together)
        for (std::size_t k = 0; k < columns.size(); ++k) {
            Column part = columns[k];
            part.size = std::min(together, part.size - begin);
            if (part.size <= 0)
                continue;
            part.values += begin * part.stride;
            if (part.factors != nullptr)
                part.factors += begin * part.stride;
            visit(k, part);
        }
}

/// Calls `visit(value)` for each value of a column.
template <class Visit>
void forValues(const Column &column, const Visit &visit) {
    if (column.factors == nullptr)
        for (index i = 0; i < column.size; ++i)
            visit(column.values[i * column.stride]);
    else
        for (index i = 0; i < column.size; ++i)
            visit(column.values[i * column.stride] * column.factors[i * column.stride]);
}

/// The columns of a callback, which is called in each of the two passes: nothing is copied. It outlives the result.
ExactRows rowsOf(const ExactColumns &listed) {
    const auto columns = [&listed](std::size_t count) {
        std::vector<Column> found = listed();
        DNDS_CHECK(found.size() == count, ArgumentError, "{} columns are given for {} sums", found.size(), count);
        return found;
    };
    const auto findLargest = [columns](std::span<real> largest) {
        std::ranges::fill(largest, 0.0);
        forParts(columns(largest.size()), [&](std::size_t k, const Column &part) {
            real found = largest[k];
            forValues(part, [&](real value) { found = std::max(found, FixedPoint::magnitude(value)); });
            largest[k] = found;
        });
    };
    const auto add = [columns](std::span<const std::optional<Scale>> scales, std::span<Wide> sums) {
        std::ranges::fill(sums, Wide{0});
        forParts(columns(sums.size()), [&](std::size_t k, const Column &part) {
            if (!scales[k])
                return;
            const Scale scale = *scales[k];
            Wide sum = 0;
            forValues(part, [&](real value) { sum += scale.toInteger(value); });
            sums[k] += sum;
        });
    };
    // Called once each: the cost of std::function does not depend on the number of values.
    return {findLargest, add};
}

/// `reduce(numbers, op, body)` calls `body`, then reduces the `numbers` that it has filled in over all ranks. Cost: two
/// passes over the values and two reductions. Sources: see Reductions.hpp.
/// Invariant: maxima and integer sums are associative, and every rank rounds the same integer, so the result has the
/// same bits for any number of ranks and any distribution of rows.
template <class Reduce>
void sumsOver(const Reduce &reduce, const ExactRows &rows, std::span<real> sums) {
    const std::size_t columns = sums.size();
    // First pass: the scale of each column from its largest magnitude, the same on all ranks. Second pass:
    // integers, of which the sum is exact in any order. Rounded once, at the end, on each rank alike.
    std::vector<real> largest(columns, 0.0); // magnitudes; infinite where some value is not finite
    reduce(largest, MPI_MAX, [&] { rows.findLargest(largest); });
    // Columns without a scale are left out of the second pass: all zero, or not finite anywhere.

    std::vector<std::optional<Scale>> scales(columns);
    for (std::size_t k = 0; k < columns; k++)
        if (std::isfinite(largest[k]) && largest[k] != 0.0)
            scales[k].emplace(largest[k]);
    std::vector<std::int64_t> parts(3 * columns, 0);
    reduce(parts, MPI_SUM, [&] {
        std::vector<Wide> own(columns);
        rows.add(scales, own);
        for (std::size_t k = 0; k < columns; k++)
            std::ranges::copy(toLimbs(own[k]), parts.begin() + static_cast<std::ptrdiff_t>(3 * k));
    });
    for (std::size_t k = 0; k < columns; k++)
        if (scales[k])
            sums[k] = scales[k]->toReal(toWide({parts[3 * k], parts[3 * k + 1], parts[3 * k + 2]}));
        else
            sums[k] = largest[k] == 0.0 ? 0.0 : std::numeric_limits<real>::quiet_NaN();
}

} // namespace

// Two MPI_Allreduce calls, of columns + 1 and of 3 columns + 1 numbers.
void exactSums(CommunicatorView comm, const ExactRows &rows, std::span<real> sums) {
    const auto reduce = [&]<class T>(std::vector<T> &numbers, MPI_Op op, const auto &body) {
        // Whether a rank has failed travels as one more number of the reduction, so that success costs nothing
        // more; only after a failure do ranks agree on its text.
        const std::exception_ptr failure = attempt([&] { body(); }); // thrown on all ranks
        numbers.push_back(failure ? 1 : 0);
        comm.allReduce(numbers.data(), static_cast<int>(numbers.size()), op);
        if (numbers.back() > 0)
            comm.agree(failure);
        numbers.pop_back();
    };
    sumsOver(reduce, rows, sums);
}

// Two reductions of O(log ranks) messages each. A failure of another rank interrupts them, unlike MPI's.
void exactSums(MessageReduction &messages, const ExactRows &rows, std::span<real> sums) {
    const auto reduce = [&]<class T>(std::vector<T> &numbers, MPI_Op op, const auto &body) {
        body(); // throws at once
        constexpr auto largest = [](T a, T b) noexcept { return std::max(a, b); };
        constexpr auto sum = [](T a, T b) noexcept { return a + b; };
        messages.reduce(std::span(numbers), op == MPI_MAX ? combineEach<T, largest> : combineEach<T, sum>);
    };
    sumsOver(reduce, rows, sums);
}

void exactSums(MessageReduction &messages, const ExactColumns &columns, std::span<real> sums) {
    exactSums(messages, rowsOf(columns), sums);
}

void exactSums(CommunicatorView comm, const ExactColumns &columns, std::span<real> sums) {
    exactSums(comm, rowsOf(columns), sums);
}

void exactSums(CommunicatorView comm, std::span<const real> rows, std::span<real> sums) {
    exactSums(
        comm, [&] { return FixedPoint::columnsOf(rows, sums.size()); }, sums);
}

} // namespace DNDS
