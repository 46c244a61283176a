/// @file ForBoxes.hpp
/// @brief Loops over boxes of elements in memory, on the host or in kernels.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/ParallelFor.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace DNDS {

/// The elements `first + i[0] * strides[0] + ... + i[3] * strides[3]` of some memory, 0 <= i[d] < counts[d]. The last
/// dimension is the innermost loop. Trivially copyable.
struct ElementBox {
    index first = 0;
    index counts[4] = {1, 1, 1, 1}; // NOLINT: plain arrays, for kernels
    index strides[4] = {};          // NOLINT

    /// `count` elements without gaps, from the first on.
    static ElementBox run(index count) { return {0, {1, 1, 1, count}, {0, 0, 0, 1}}; }
    /// The number of lines along the last dimension, and of elements.
    DNDS_HOST_DEVICE index lines() const { return counts[0] * counts[1] * counts[2]; }
    DNDS_HOST_DEVICE index size() const { return lines() * counts[3]; }
    /// The first element of line `n`, in C order; its indices go to `at`.
    DNDS_HOST_DEVICE index lineStart(index n, index *at) const {
        index start = first;
        for (int d = 2; d >= 0; --d) {
            at[d] = n % counts[d];
            n /= counts[d];
            start += at[d] * strides[d];
        }
        return start;
    }
};

inline namespace DNDS_DEVICE_COMPILATION {

/// Some boxes, and the parts into which they are cut: small enough for the arguments of a kernel.
template <class TBox>
struct BoxBatch {
    static constexpr std::size_t capacity = 2900 / (sizeof(TBox) + sizeof(index));

    TBox boxes[capacity];        // NOLINT: plain arrays, for kernels
    index starts[capacity] = {}; // NOLINT: the first part of each box
    int count = 0;
    index parts = 0;

    /// Puts the next boxes into the batch, cut into `partsOf(box)` parts each, and removes them from `left`.
    template <class PartsOf>
    void take(std::span<const TBox> &left, const PartsOf &partsOf) {
        count = 0;
        parts = 0;
        for (; toSize(count) < capacity && !left.empty(); left = left.subspan(1))
            if (const index some = partsOf(left.front()); some > 0) {
                boxes[count] = left.front();
                starts[count++] = parts;
                parts += some;
            }
    }
    /// The box of a part, and the part's number in this box.
    DNDS_HOST_DEVICE const TBox &boxOf(index &part) const {
        // Linear: a batch has a few dozen boxes at most.
        int b = count - 1;
        while (starts[b] > part)
            --b;
        part -= starts[b];
        return boxes[b];
    }
};

/// A functor over elements of boxes as a kernel.
template <class TBox, class Functor>
struct KernelOfBoxes {
    Functor functor;
    BoxBatch<TBox> batch;

    /// Calls the functor for element `element` of the boxes.
    DNDS_HOST_DEVICE void operator()(index element) const {
        const TBox &box = batch.boxOf(element);
        index at[4]; // NOLINT
        at[3] = element % box.counts[3];
        const index start = box.lineStart(element / box.counts[3], at);
        functor(box, at, start + at[3] * box.strides[3]);
    }
};

/// Calls `functor(box, at, element)` for all elements of boxes, in any order, possibly concurrently: `TBox` is an
/// ElementBox or derived from it, `at` has the four indices in the box, `element` is the place in memory. Boxes do not
/// overlap. Local; as `parallelFor`. On the device one kernel runs for some twenty boxes, which travel in its
/// arguments: nothing is copied there first, and captured graphs keep them.
template <class TBox, class Functor>
void forBoxes(const Executor &executor, std::span<const TBox> boxes, const Functor &functor) {
    if (executor.onDevice()) {
        KernelOfBoxes<TBox, Functor> kernel{functor, {}};
        while (!boxes.empty()) {
            kernel.batch.take(boxes, [](const TBox &box) { return box.size(); });
            parallelFor(executor, kernel.batch.parts, kernel);
        }
        return;
    }
    for (const TBox &box : boxes)
        Launch::runOnHost(executor.threads(), box.counts[3] > 0 ? box.lines() : 0, [&](index line) {
            index at[4]; // NOLINT
            const index start = box.lineStart(line, at);
            if (box.strides[3] == 1) // vectorises
                for (at[3] = 0; at[3] < box.counts[3]; ++at[3])
                    functor(box, at, start + at[3]);
            else
                for (at[3] = 0; at[3] < box.counts[3]; ++at[3])
                    functor(box, at, start + at[3] * box.strides[3]);
        });
}

} // namespace DNDS_DEVICE_COMPILATION

} // namespace DNDS
