#include "DNDS/Index/SortUnique.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

namespace DNDS {

namespace {

/// Up to here comparisons are cheaper than the buckets of a radix pass, which cost the same for any length.
constexpr std::size_t shortList = 64;

/// A bitmap pays off with this many values per word: each word costs a mispredicted branch.
constexpr std::uint64_t valuesPerWord = 2;

/// Distinct values of a dense range: sets a bit for each value, which removes duplicates, and reads the words in order.
/// O(n + range / 64) time, range / 8 bytes.
std::vector<index> byBitmap(std::span<const index> values, index least, std::uint64_t range) {
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(range / 64) + 1, 0);
    for (const index value : values) {
        const auto offset = static_cast<std::uint64_t>(value - least);
        bits[static_cast<std::size_t>(offset / 64)] |= std::uint64_t{1} << (offset % 64);
    }
    // A word yields up to 64 values; the list has room for them, because all are distinct.
    std::vector<index> sorted(values.size());
    std::size_t count = 0;
    for (std::size_t word = 0; word < bits.size(); ++word) {
        const index base = least + static_cast<index>(word * 64);
        for (std::uint64_t left = bits[word]; left != 0; left &= left - 1)
            sorted[count++] = base + std::countr_zero(left);
    }
    sorted.resize(count);
    return sorted;
}

/// Sorts distances from the least value, in as few passes of at most 11 bits as the range needs.
/// O(n) per pass, and two buffers of n distances. Invariant: a pass is stable, so the order of lower digits survives.
/// Method: radix sort from the least significant digit (Knuth, The Art of Computer Programming 3, section 5.2.5).
template <class Distance>
std::vector<index> byRadix(std::span<const index> values, index least, std::uint64_t range) {
    constexpr int maxBits = 11;
    const int bits = static_cast<int>(std::bit_width(range));
    const int passes = (bits + maxBits - 1) / maxBits;
    const int digitBits = (bits + passes - 1) / passes;
    const std::size_t buckets = std::size_t{1} << digitBits;

    const std::size_t count = values.size();
    const auto space = std::make_unique_for_overwrite<Distance[]>(2 * count);
    Distance *from = space.get();
    Distance *to = from + count;
    for (std::size_t i = 0; i < count; ++i)
        from[i] = static_cast<Distance>(static_cast<std::uint64_t>(values[i]) - static_cast<std::uint64_t>(least));
    // 8 KiB of counters, which stay in the first-level cache. 32 bits suffice: longer lists are sorted by
    // comparison.
    std::array<std::uint32_t, std::size_t{1} << maxBits> start;
    for (int pass = 0; pass < passes; ++pass) {
        const int shift = pass * digitBits;
        const auto digit = [&](Distance value) { return static_cast<std::size_t>(value >> shift) & (buckets - 1); };
        std::fill_n(start.begin(), buckets, 0U);
        for (std::size_t i = 0; i < count; ++i)
            ++start[digit(from[i])];
        std::uint32_t sum = 0;
        for (std::size_t b = 0; b < buckets; ++b)
            sum += std::exchange(start[b], sum);
        for (std::size_t i = 0; i < count; ++i)
            to[start[digit(from[i])]++] = from[i];
        std::swap(from, to);
    }
    const auto distinct = static_cast<std::size_t>(std::unique(from, from + count) - from);
    std::vector<index> sorted(distinct);
    for (std::size_t i = 0; i < distinct; ++i)
        sorted[i] =
            static_cast<index>(static_cast<std::uint64_t>(least) + from[i]); // unsigned: a range may exceed 2^63
    return sorted;
}

} // namespace

// Chooses by length and range: already sorted, short or huge (std::sort), dense (bitmap), else radix sort.
// All methods remove duplicates after or while they sort. Local; memory O(n), and range / 8 bytes for the bitmap,
// which is at most 4 n bytes by the test below.
std::vector<index> sortedUnique(std::span<const index> values) {
    // Strictly ascending lists, as from an earlier call, only cost this look.
    if (std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end())
        return {values.begin(), values.end()};
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const auto range = static_cast<std::uint64_t>(*most) - static_cast<std::uint64_t>(*least);
    if (values.size() <= shortList || values.size() > std::numeric_limits<std::uint32_t>::max()) {
        std::vector<index> sorted(values.begin(), values.end());
        std::sort(sorted.begin(), sorted.end());
        sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
        return sorted;
    }
    if (range / 64 <= values.size() / valuesPerWord)
        return byBitmap(values, *least, range);
    return range <= std::numeric_limits<std::uint32_t>::max() ? byRadix<std::uint32_t>(values, *least, range)
                                                              : byRadix<std::uint64_t>(values, *least, range);
}

} // namespace DNDS
