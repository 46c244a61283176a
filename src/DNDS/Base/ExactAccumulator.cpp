#include "DNDS/Base/ExactAccumulator.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>

#ifdef __FAST_MATH__
#error "Exact sums need IEEE arithmetic: -ffast-math turns (x + c) - c into x. Leave it out for DNDS itself"
#endif

namespace DNDS {

namespace {

/// Two numbers side by side: every processor that this is compiled for computes with both at once.
using Pair [[gnu::vector_size(16)]] = real;
using Magnitudes [[gnu::vector_size(16)]] = std::int64_t;
using Words [[gnu::vector_size(16)]] = std::int16_t;

Pair pairAt(std::span<const real> terms, std::size_t at) {
    Pair loaded;
    std::memcpy(&loaded, &terms[at], sizeof loaded);
    return loaded;
}

/// The biased exponent of the largest magnitude. Bits of magnitudes compare as the magnitudes do, and so do their
/// leading words, of which all processors compare eight at once.
int largestExponent(std::span<const real> terms) {
    constexpr auto notSign = std::numeric_limits<std::int64_t>::max();
    constexpr Magnitudes mask{notSign, notSign};
    Words most{};
    for (std::size_t at = 0; at < terms.size(); at += 2) {
        const auto words = std::bit_cast<Words>(std::bit_cast<Magnitudes>(pairAt(terms, at)) & mask);
        most = words > most ? words : most;
    }
    const auto found = std::bit_cast<Magnitudes>(most);
    return static_cast<int>(std::max(found[0], found[1]) >> 52);
}

/// Rows of a block in all columns before the next block: 2048 rows of five doubles take 80 KiB.
constexpr index blockRows = 2048;

} // namespace

/// Without conversions to integers: adding and subtracting 1.5 * 2^52 multiples of a power of two rounds to the nearest
/// multiple, ties to even (Rump, Ogita and Oishi, Accurate Floating-Point Summation, 2008). The differences are exact,
/// and so are the sums: 2048 numbers of at most 40 bits have 51.
template <class Part>
void BasicExactAccumulator<Part>::addBlock(std::span<const real> terms) {
    BasicExactAccumulator block;
    block.top_ = (largestExponent(terms) + 53) / partBits;
    // Otherwise units would be subnormal, or a rounding constant overflow; infinities and NaN have the highest
    // exponent.
    if (block.top_ < 4 || block.top_ > 51 || std::fegetround() != FE_TONEAREST) {
        for (const real term : terms)
            *this += term;
        return;
    }
    constexpr real perPart = 0x1p40;
    const real unit = std::ldexp(1.0, static_cast<int>(partBits * block.top_) - 1075);
    const Pair toHigh = 0x1.8p52 * unit - Pair{};
    const Pair toMiddle = toHigh / perPart;
    const Pair toLow = toMiddle / perPart;
    Pair highs{};
    Pair middles{};
    Pair lows{};
    for (std::size_t at = 0; at < terms.size(); at += 2) {
        const Pair term = pairAt(terms, at);
        const Pair high = (term + toHigh) - toHigh;
        const Pair rest = term - high;
        const Pair middle = (rest + toMiddle) - toMiddle;
        highs += high;
        middles += middle;
        lows += (rest - middle + toLow) - toLow;
    }
    const auto total = [](Pair of) { return of[0] + of[1]; };
    block.high_ = static_cast<std::int64_t>(total(highs) / unit);
    block.middle_ = static_cast<std::int64_t>(total(middles) / unit * perPart);
    block.low_ = static_cast<std::int64_t>(total(lows) / unit * perPart * perPart);
    *this += block;
}

// Few terms do not pay for a block. The last one of an odd number is added by itself.
template <class Part>
void BasicExactAccumulator<Part>::addAll(std::span<const real> terms) {
    while (terms.size() >= 16) {
        const std::size_t count = std::min<std::size_t>(terms.size() / 2 * 2, blockRows);
        addBlock(terms.first(count));
        terms = terms.subspan(count);
    }
    for (const real term : terms)
        *this += term;
}

template class BasicExactAccumulator<std::int64_t>;
template class BasicExactAccumulator<FixedPoint::Wide>;

namespace FixedPoint {

// Block by block of all columns: they may share memory, which stays in the cache. Products are stored, since a compiler
// that contracts one and the addition after it would skip the product's rounding in some places and not in others.
void addColumns(std::span<const Column> columns, std::span<WideExactAccumulator> sums) {
    DNDS_CHECK(columns.size() == sums.size(), ArgumentError, "{} columns are given for {} sums", columns.size(),
               sums.size());
    index rows = 0;
    for (const Column &column : columns)
        rows = std::max(rows, column.size);
    std::array<real, blockRows> terms; // NOLINT
    for (index begin = 0; begin < rows; begin += blockRows)
        for (std::size_t k = 0; k < columns.size(); ++k) {
            const Column &column = columns[k];
            const index count = std::min(blockRows, column.size - begin);
            if (count <= 0)
                continue;
            const real *const values = column.values + begin * column.stride;
            if (column.stride == 1 && column.factors == nullptr) {
                sums[k].addAll({values, toSize(count)});
                continue;
            }
            if (column.stride == 1)
                for (index i = 0; i < count; ++i)
                    terms[toSize(i)] = values[i] * column.factors[begin + i];
            else
                for (index i = 0; i < count; ++i)
                    terms[toSize(i)] = column(begin + i);
            sums[k].addAll(std::span(terms).first(toSize(count)));
        }
}

} // namespace FixedPoint

std::string_view elementKindName(ElementKind kind) {
    static constexpr std::array<std::string_view, elementKinds> names{"opaque", "int8",    "uint8",   "int16",
                                                                      "uint16", "int32",   "uint32",  "int64",
                                                                      "uint64", "float32", "float64", "accumulator"};
    return names.at(static_cast<std::size_t>(kind));
}

} // namespace DNDS
