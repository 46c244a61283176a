/// @file Parts.hpp
/// @brief For tests only: boxes of a shape that ranks have, and numbers to fill them with.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "support/MpiTest.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace DNDS::test {

/// A box with its elements in memory: dimensions in reverse order, with a margin of one on both sides of each.
template <class T>
struct PaddedBox {
    std::vector<index> start;
    std::vector<index> count;
    std::vector<index> strides;
    std::vector<T> memory;
    std::vector<std::uint8_t> mask;
    index first = 0; ///< the place of `start` in memory

    PaddedBox(std::vector<index> from, std::vector<index> size, T outside)
        : start(std::move(from)), count(std::move(size)) {
        index stride = 1;
        for (const index n : count) {
            strides.push_back(stride);
            first += stride;
            stride *= n + 2;
        }
        memory.assign(static_cast<std::size_t>(stride), outside);
        mask.assign(memory.size(), 9);
    }

    T *data() { return memory.data() + first; }
    std::uint8_t *maskData() { return mask.data() + first; }

    /// Calls `visit(global, place)` for each element: its number in `shape` and its place in memory.
    template <class Visit>
    void forEach(const std::vector<index> &shape, Visit &&visit) const {
        index elements = 1;
        for (const index n : count)
            elements *= n;
        for (index k = 0; k < elements; k++) {
            index rest = k;
            index global = 0;
            index factor = 1;
            index place = first;
            for (std::size_t d = count.size(); d-- > 0;) {
                const index i = rest % count[d];
                rest /= count[d];
                global += (start[d] + i) * factor;
                factor *= shape[d];
                place += i * strides[d];
            }
            visit(global, static_cast<std::size_t>(place));
        }
    }
};

/// This rank's part of a shape, cut along a dimension, in two boxes where it has two elements; nothing on some ranks
/// where there are few elements.
template <class T>
std::vector<PaddedBox<T>> partsOf(const std::vector<index> &shape, std::size_t cut, T outside) {
    const index begin = shape[cut] * worldRank() / worldSize();
    const index end = shape[cut] * (worldRank() + 1) / worldSize();
    const index middle = begin + (end - begin) / 2;
    std::vector<PaddedBox<T>> boxes;
    for (const auto &[from, to] : {std::pair{begin, middle}, std::pair{middle, end}}) {
        std::vector<index> start(shape.size(), 0);
        std::vector<index> count = shape;
        start[cut] = from;
        count[cut] = to - from;
        if (to > from)
            boxes.emplace_back(start, count, outside);
    }
    return boxes;
}

} // namespace DNDS::test
