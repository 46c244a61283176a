/// @file BlockAllocator.hpp
/// @brief Hands out ranges of a given span of memory, by offset.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace DNDS {

/// First-fit allocation in [0, size); adjacent free ranges are merged. Knows no addresses. Local; O(free ranges).
class BlockAllocator {
  public:
    /// `size` bytes, all of them free.
    explicit BlockAllocator(std::size_t size) : free_{{0, size}} {}

    /// A range of `bytes` bytes at a multiple of `alignment` (a power of two); nothing if none is free.
    std::optional<std::size_t> allocate(std::size_t bytes, std::size_t alignment) {
        // First fit in ascending order of addresses, which tends to keep the long free ranges at the high end
        // (Knuth, The Art of Computer Programming, volume 1, section 2.5: Dynamic storage allocation).
        for (auto range = free_.begin(); range != free_.end(); ++range) {
            const auto [begin, size] = *range;
            const std::size_t start = (begin + alignment - 1) & ~(alignment - 1);
            if (start - begin > size || size - (start - begin) < bytes)
                continue;
            // If allocating the map entry throws, nothing has changed.
            const std::size_t end = start + bytes;
            // Padding in front stays a free range of its own under its old key; the rest of the range is entered
            // under a new key. Nodes of the map are reused where the number of ranges does not grow.
            if (start > begin) {
                if (end < begin + size)
                    free_.emplace(end, begin + size - end);
                range->second = start - begin;
            } else if (end < begin + size) {
                auto rest = free_.extract(range);
                rest.key() = end;
                rest.mapped() = begin + size - end;
                free_.insert(std::move(rest));
            } else {
                free_.erase(range);
            }
            return start;
        }
        return std::nullopt;
    }

    /// Free bytes in all, and of the largest range.
    std::size_t freeBytes() const noexcept {
        std::size_t sum = 0;
        for (const auto &[begin, size] : free_)
            sum += size;
        return sum;
    }
    std::size_t largestFree() const noexcept {
        std::size_t largest = 0;
        for (const auto &[begin, size] : free_)
            largest = size > largest ? size : largest;
        return largest;
    }

    /// Frees a range. Throws std::bad_alloc; the range then stays taken.
    void release(std::size_t begin, std::size_t bytes) {
        if (bytes == 0)
            return;
        // Merges with the next and the previous free range, so that free ranges are never adjacent. O(log(free
        // ranges)). Only a range with taken neighbours on both sides needs a new node, and may throw.
        const auto next = free_.lower_bound(begin);
        const bool joinsNext = next != free_.end() && next->first == begin + bytes;
        const std::size_t end = joinsNext ? next->first + next->second : begin + bytes;
        if (next != free_.begin()) {
            const auto previous = std::prev(next);
            if (previous->first + previous->second == begin) {
                previous->second = end - previous->first;
                if (joinsNext)
                    free_.erase(next);
                return;
            }
        }
        if (!joinsNext) {
            free_.emplace(begin, bytes);
            return;
        }
        auto joined = free_.extract(next);
        joined.key() = begin;
        joined.mapped() = end - begin;
        free_.insert(std::move(joined));
    }

  private:
    /// Invariant: free ranges are disjoint and never adjacent, so that a request fails only if no gap is long enough.
    std::map<std::size_t, std::size_t> free_; ///< begin -> size
};

} // namespace DNDS
