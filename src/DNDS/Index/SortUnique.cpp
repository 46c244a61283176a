#include "DNDS/Index/SortUnique.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <utility>

namespace DNDS {

namespace {

constexpr std::size_t shortList = 64;

std::vector<index> byBitmap(std::span<const index> values, index least, std::uint64_t range) {
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(range / 64) + 1, 0);
    for (const index value : values) {
        const auto offset = static_cast<std::uint64_t>(value - least);
        bits[static_cast<std::size_t>(offset / 64)] |= std::uint64_t{1} << (offset % 64);
    }
    // Every word stores up to 64 values; the list is long enough for all of them because they are distinct.
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

std::vector<index> byRadix(std::span<const index> values, index least, std::uint64_t range) {
    constexpr int digitBits = 11;
    constexpr std::size_t buckets = std::size_t{1} << digitBits;
    const int passes = (static_cast<int>(std::bit_width(range)) + digitBits - 1) / digitBits;

    std::vector<index> from(values.begin(), values.end());
    std::vector<index> to(values.size());
    std::array<std::size_t, buckets> start{};
    for (int pass = 0; pass < passes; ++pass) {
        const int shift = pass * digitBits;
        const auto digit = [&](index value) {
            return static_cast<std::size_t>((static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(least)) >> shift) &
                   (buckets - 1);
        };
        start.fill(0);
        for (const index value : from)
            ++start[digit(value)];
        std::size_t sum = 0;
        for (std::size_t &bucket : start)
            sum += std::exchange(bucket, sum);
        for (const index value : from)
            to[start[digit(value)]++] = value;
        from.swap(to);
    }
    from.erase(std::unique(from.begin(), from.end()), from.end());
    return from;
}

} // namespace

std::vector<index> sortedUnique(std::span<const index> values) {
    const bool ascending = std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
    if (ascending)
        return {values.begin(), values.end()};
    if (values.size() <= shortList) {
        std::vector<index> sorted(values.begin(), values.end());
        std::sort(sorted.begin(), sorted.end());
        sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
        return sorted;
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const auto range = static_cast<std::uint64_t>(*most) - static_cast<std::uint64_t>(*least);
    return range / 64 <= values.size() ? byBitmap(values, *least, range) : byRadix(values, *least, range);
}

} // namespace DNDS
