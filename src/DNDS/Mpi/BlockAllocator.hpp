/// @file BlockAllocator.hpp
/// @brief Hands out ranges of a given span of memory, by offset.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace DNDS {

/// First-fit allocation in [0, size) with free ranges joined when they meet. Knows no addresses. Local; O(free ranges).
class BlockAllocator {
  public:
    explicit BlockAllocator(std::size_t size) : free_{{0, size}} {}

    /// A range of `bytes` bytes at a multiple of `alignment` (a power of two), or nothing where there is no room.
    std::optional<std::size_t> allocate(std::size_t bytes, std::size_t alignment) {
        for (auto range = free_.begin(); range != free_.end(); ++range) {
            const auto [begin, size] = *range;
            const std::size_t start = (begin + alignment - 1) & ~(alignment - 1);
            if (start - begin > size || size - (start - begin) < bytes)
                continue;
            free_.erase(range);
            if (start > begin)
                free_.emplace(begin, start - begin);
            if (const std::size_t end = start + bytes; end < begin + size)
                free_.emplace(end, begin + size - end);
            return start;
        }
        return std::nullopt;
    }

    /// Gives a range back.
    void release(std::size_t begin, std::size_t bytes) {
        if (bytes == 0)
            return;
        const auto next = free_.lower_bound(begin);
        std::size_t end = begin + bytes;
        if (next != free_.end() && next->first == end) {
            end += next->second;
            free_.erase(next);
        }
        if (auto previous = free_.lower_bound(begin); previous != free_.begin()) {
            --previous;
            if (previous->first + previous->second == begin) {
                previous->second = end - previous->first;
                return;
            }
        }
        free_.emplace(begin, end - begin);
    }

  private:
    std::map<std::size_t, std::size_t> free_; ///< begin -> size
};

} // namespace DNDS
