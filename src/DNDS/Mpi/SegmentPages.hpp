/// @file SegmentPages.hpp
/// @brief The parts of a segment of shared memory that are backed by memory, and the unused ones among these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace DNDS {

/// Counts the blocks in each granule (64 KiB) of a segment, and remembers which granules have memory. Makes no system
/// calls and knows no addresses. Local; all functions cost O(bytes / granule).
class SegmentPages {
  public:
    static constexpr std::size_t granule = std::size_t{1} << 16U;

    struct Range {
        std::size_t begin = 0;
        std::size_t bytes = 0;
    };

    /// `bytes`: a multiple of the granule.
    explicit SegmentPages(std::size_t bytes) : blocks_(bytes / granule), hasMemory_(bytes / granule) {}

    /// Adds a block of `bytes` > 0 bytes at `begin`. Calls `reserve(Range)` for each range without memory; if that
    /// throws, the block is not added, but ranges reserved before keep their memory.
    template <class Reserve>
    void take(std::size_t begin, std::size_t bytes, const Reserve &reserve) {
        const std::size_t first = begin / granule;
        const std::size_t end = (begin + bytes + granule - 1) / granule;
        // First memory for all runs of granules without it, counted as unused, so that an exception half-way leaves
        // the sums right; then the block, which turns them to used ones.
        for (std::size_t g = first; g < end; ++g) {
            std::size_t to = g;
            while (to < end && !hasMemory_[to])
                ++to;
            if (to == g)
                continue;
            reserve(Range{g * granule, (to - g) * granule});
            for (std::size_t reserved = g; reserved < to; ++reserved)
                hasMemory_[reserved] = true;
            unused_ += (to - g) * granule;
        }
        for (std::size_t g = first; g < end; ++g)
            if (blocks_[g]++ == 0)
                unused_ -= granule;
    }

    /// Removes a block. Returns the surrounding range without blocks, but with memory; perhaps empty.
    Range release(std::size_t begin, std::size_t bytes) noexcept {
        std::size_t first = begin / granule;
        std::size_t end = (begin + bytes + granule - 1) / granule;
        for (std::size_t g = first; g < end; ++g)
            if (--blocks_[g] == 0)
                unused_ += granule;
        // Only the first and the last granule can hold other blocks.
        if (!isUnused(first))
            ++first;
        if (end > first && !isUnused(end - 1))
            --end;
        if (end <= first)
            return {};
        while (first > 0 && isUnused(first - 1))
            --first;
        while (end < blocks_.size() && isUnused(end))
            ++end;
        return {first * granule, (end - first) * granule};
    }

    /// Notes that a range from `release` or `nextUnused` has no memory any more.
    void noteReturned(const Range &range) noexcept {
        for (std::size_t g = range.begin / granule; g < (range.begin + range.bytes) / granule; ++g)
            hasMemory_[g] = false;
        unused_ -= range.bytes;
    }

    /// The first whole range with memory and without blocks that begins at `from` or later; empty if none does.
    Range nextUnused(std::size_t from) const noexcept {
        std::size_t first = from / granule;
        while (first < blocks_.size() && !isUnused(first))
            ++first;
        std::size_t end = first;
        while (end < blocks_.size() && isUnused(end))
            ++end;
        return {first * granule, (end - first) * granule};
    }

    /// Bytes with memory and without blocks. O(1).
    std::size_t unusedBytes() const noexcept { return unused_; }

  private:
    bool isUnused(std::size_t g) const noexcept { return hasMemory_[g] && blocks_[g] == 0; }

    // Granule g covers bytes [g, g + 1) times 64 KiB.
    std::vector<std::uint32_t> blocks_; ///< [granules] blocks that have a byte in it
    std::vector<bool> hasMemory_;       ///< [granules] whether the system has reserved its memory
    /// Bytes of granules with memory and without blocks.
    std::size_t unused_ = 0;
};

} // namespace DNDS
