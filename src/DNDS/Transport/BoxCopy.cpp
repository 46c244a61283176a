#include "DNDS/Transport/BoxCopy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace DNDS {

namespace {

/// The runs of one innermost loop; `Bytes` is their length where the compiler knows it, else 0.
template <bool toPacked, std::size_t Bytes, class InArray, class InMessage>
InMessage *copyLine(InArray *at, index count, index stride, std::size_t bytes, InMessage *packed) {
    // A constant length turns memcpy into a few moves.
    const std::size_t length = Bytes > 0 ? Bytes : bytes;
    for (index run = 0; run < count; ++run) {
        if constexpr (toPacked)
            std::memcpy(packed, at + run * stride, length);
        else
            std::memcpy(at + run * stride, packed, length);
        packed += length;
    }
    return packed;
}

/// All runs of a box. Returns where the packed bytes end.
/// O(runs). The order of loops is the order of packed bytes, on the sending and on the receiving side.
template <bool toPacked, class InArray, class InMessage>
InMessage *copyBoxRuns(const RowBox &runs, std::size_t bytes, InArray *base, InMessage *packed) {
    const auto lines = [&]<std::size_t Bytes>() {
        runs.forEachLine([&](index start) {
            packed = copyLine<toPacked, Bytes>(base + start, runs.counts.back(), runs.strides.back(), bytes, packed);
        });
    };
    withRunLength(bytes, lines);
    return packed;
}

} // namespace

// O(boxes). The innermost loop is absorbed into the run if its rows are consecutive: copies then see the longest
// runs.
BoxCopy::BoxCopy(const RowList &rows, std::size_t stride) : bytes_(static_cast<std::size_t>(rows.count()) * stride) {
    if (bytes_ == 0)
        return;
    std::vector<ByteBox> boxes;
    boxes.reserve(rows.boxes()->size());
    for (const RowBox &box : *rows.boxes()) {
        // From rows to bytes: strides are multiplied by the row's width, and a loop over consecutive rows becomes a
        // longer run.
        ByteBox made{box, stride};
        RowBox &runs = made.runs;
        if (box.strides.back() == 1) { // the innermost loop becomes the run
            made.bytes *= static_cast<std::size_t>(box.counts.back());
            std::copy_backward(box.counts.begin(), box.counts.end() - 1, runs.counts.end());
            std::copy_backward(box.strides.begin(), box.strides.end() - 1, runs.strides.end());
            runs.counts.front() = 1;
            runs.strides.front() = 0;
        }
        runs.first *= static_cast<index>(stride);
        for (index &step : runs.strides)
            step *= static_cast<index>(stride);
        boxes.push_back(made);
    }
    boxes_ = std::make_shared<const std::vector<ByteBox>>(std::move(boxes));
}

BoxCopy::BoxCopy(std::vector<ByteBox> boxes) {
    for (const ByteBox &box : boxes)
        bytes_ += box.size();
    if (bytes_ > 0)
        boxes_ = std::make_shared<const std::vector<ByteBox>>(std::move(boxes));
}

void BoxCopy::gather(const std::byte *base, std::byte *to) const {
    for (const ByteBox &box : boxes())
        to = copyBoxRuns<true>(box.runs, box.bytes, base, to);
}

void BoxCopy::scatter(const std::byte *from, std::byte *base) const {
    for (const ByteBox &box : boxes())
        from = copyBoxRuns<false>(box.runs, box.bytes, base, from);
}

// O(runs). Neighbours are joined also across boxes, so that datatypes have few blocks.
std::vector<ByteBlock> BoxCopy::blocks() const {
    std::vector<ByteBlock> blocks;
    forEachRun([&](std::size_t offset, std::size_t bytes) {
        if (!blocks.empty() && blocks.back().offset + blocks.back().bytes == offset)
            blocks.back().bytes += bytes;
        else
            blocks.push_back({offset, bytes});
    });
    return blocks;
}

} // namespace DNDS
