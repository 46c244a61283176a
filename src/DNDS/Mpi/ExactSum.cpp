#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
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

/// Rows of a block in all columns before the next block: 2048 rows of five doubles take 80 KiB.
constexpr index blockRows = 2048;

/// Calls `visit(k, part)` for parts of all columns, row by row: columns may share memory, which stays in the cache.
template <class Visit>
void forParts(std::span<const Column> columns, const Visit &visit) {
    index rows = 0;
    for (const Column &column : columns)
        rows = std::max(rows, column.size);
    for (index begin = 0; begin < rows; begin += blockRows)
        for (std::size_t k = 0; k < columns.size(); ++k) {
            Column part = columns[k];
            part.size = std::min(blockRows, part.size - begin);
            if (part.size <= 0)
                continue;
            part.values += begin * part.stride;
            if (part.factors != nullptr)
                part.factors += begin * part.stride;
            visit(k, part);
        }
}

/// Two numbers side by side: every processor that this is compiled for computes with both at once.
using Pair [[gnu::vector_size(16)]] = real;
using PairBits [[gnu::vector_size(16)]] = std::int64_t;
using Words [[gnu::vector_size(16)]] = std::int16_t;

/// The terms of a part of a column, side by side. They are stored, since a compiler that contracts a product and the
/// addition after it would skip the product's rounding in some places and not in others.
class Terms {
  public:
    explicit Terms(const Column &part) : pairs_((part.size + 1) / 2) {
        values_[static_cast<std::size_t>(2 * pairs_ - 1)] = 0; // the partner of a last one that has none
        if (part.stride != 1)
            store(part.size, part);
        else if (part.factors == nullptr)
            store(part.size, [values = part.values](index i) { return values[i]; });
        else
            store(part.size,
                  [values = part.values, factors = part.factors](index i) { return values[i] * factors[i]; });
    }

    /// The largest magnitude, cut to the leading five bits, of which a scale takes the exponent; infinity if a term is
    /// not finite. Bits of magnitudes compare as the magnitudes do, and so do their leading words, which all processors
    /// compare eight at once.
    real largest() const {
        constexpr auto notSign = std::numeric_limits<std::int64_t>::max();
        constexpr PairBits magnitude{notSign, notSign};
        Words most{};
        for (index n = 0; n < pairs_; ++n) {
            const auto words = std::bit_cast<Words>(bits(pair(n)) & magnitude);
            most = words > most ? words : most;
        }
        const PairBits found = std::bit_cast<PairBits>(most);
        const std::int64_t word = std::max(found[0], found[1]) >> 48;
        if (word >= 0x7ff0)
            return std::numeric_limits<real>::infinity();
        if (word > 0)
            return std::bit_cast<real>(word << 48);
        real largest = 0; // zero, or tiny
        for (index i = 0; i < 2 * pairs_; ++i)
            largest = std::max(largest, std::fabs(values_[static_cast<std::size_t>(i)]));
        return largest;
    }

    /// The sum of `scale.toInteger(term)`.
    Wide sum(const Scale &scale) const {
        const real unit = scale.toReal(1);
        if (unit > 0x1p-970 && unit < 0x1p820 && std::fegetround() == FE_TONEAREST)
            return sumOfMultiples(unit);
        Wide sum = 0;
        for (index i = 0; i < 2 * pairs_; ++i)
            sum += scale.toInteger(values_[static_cast<std::size_t>(i)]);
        return sum;
    }

  private:
    template <class Term>
    void store(index count, const Term &term) {
        real *const to = values_.data();
        for (index i = 0; i < count; ++i)
            to[i] = term(i);
    }
    Pair pair(index n) const {
        Pair loaded;
        std::memcpy(&loaded, &values_[static_cast<std::size_t>(2 * n)], sizeof loaded);
        return loaded;
    }

    /// The same without conversions: adding and subtracting 1.5 * 2^52 multiples of a power of two rounds to such a
    /// multiple, exactly (Rump, Ogita and Oishi, Accurate Floating-Point Summation, 2008). Terms have less than 80 bits
    /// in multiples of `unit`: their high halves are rounded first, then what remains. Neither sum is rounded: 1024
    /// numbers of at most 41 bits have 51.
    Wide sumOfMultiples(real unit) const {
        constexpr real rounding = 0x1.8p52;
        const real highUnit = std::ldexp(unit, FixedPoint::halfResolution);
        const Pair toHigh = rounding * highUnit - Pair{};
        const Pair toLow = rounding * unit - Pair{};
        const Pair one = unit - Pair{};
        constexpr auto minus = std::numeric_limits<std::int64_t>::min();
        constexpr PairBits signBit{minus, minus};
        Pair highs{};
        Pair lows{};
        for (index n = 0; n < pairs_; ++n) {
            const Pair terms = pair(n);
            const Pair high = (terms + toHigh) - toHigh;
            const Pair remainder = terms - high;
            Pair low = (remainder + toLow) - toLow;
            // Towards zero: where the rest has the other sign than the term, `low` is one too far from zero.
            const PairBits sign = bits(terms) & signBit;
            const PairBits tooFar = numbers(bits(remainder - low) ^ sign) < 0.0;
            low -= numbers(tooFar & (bits(one) | sign));
            highs += high;
            lows += low;
        }
        Wide sum = 0;
        for (int i = 0; i < 2; ++i)
            sum += (static_cast<Wide>(highs[i] / highUnit) << FixedPoint::halfResolution) +
                   static_cast<Wide>(lows[i] / unit);
        return sum;
    }
    static PairBits bits(Pair numbers) { return std::bit_cast<PairBits>(numbers); }
    static Pair numbers(PairBits bits) { return std::bit_cast<Pair>(bits); }

    index pairs_;
    std::array<real, blockRows> values_;
};

/// The columns of a callback, which is called in each of the two passes: nothing is copied. It outlives the result.
ExactRows rowsOf(const ExactColumns &listed) {
    const auto columns = [&listed](std::size_t count) {
        std::vector<Column> found = listed();
        DNDS_CHECK(found.size() == count, ArgumentError, "{} columns are given for {} sums", found.size(), count);
        return found;
    };
    const auto findLargest = [columns](std::span<real> largest) {
        std::ranges::fill(largest, 0.0);
        forParts(columns(largest.size()),
                 [&](std::size_t k, const Column &part) { largest[k] = std::max(largest[k], Terms(part).largest()); });
    };
    const auto add = [columns](std::span<const std::optional<Scale>> scales, std::span<Wide> sums) {
        std::ranges::fill(sums, Wide{0});
        forParts(columns(sums.size()), [&](std::size_t k, const Column &part) {
            if (scales[k])
                sums[k] += Terms(part).sum(*scales[k]);
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
