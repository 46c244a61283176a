#include "DNDS/Transport/BoxCopy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace DNDS {

namespace {

/// Calls `function.operator()<Bytes>()` with a length that the compiler knows, 0 for others: one or two cells of one
/// value, or of five, are what faces across the fastest dimension have.
template <class Function>
void withLength(std::size_t bytes, Function &&function) {
    switch (bytes) {
    case 4:
        return function.template operator()<4>();
    case 8:
        return function.template operator()<8>();
    case 16:
        return function.template operator()<16>();
    case 32:
        return function.template operator()<32>();
    case 40:
        return function.template operator()<40>();
    case 64:
        return function.template operator()<64>();
    case 80:
        return function.template operator()<80>();
    default:
        return function.template operator()<0>();
    }
}

/// The runs of one innermost loop.
template <std::size_t Bytes>
void copyLine(const std::byte *from, index fromStride, std::byte *to, index toStride, index count, std::size_t bytes) {
    const std::size_t length = Bytes > 0 ? Bytes : bytes;
    for (index run = 0; run < count; ++run)
        std::memcpy(to + run * toStride, from + run * fromStride, length);
}

/// All runs of a box, to or from packed bytes. Returns where these end.
template <bool toPacked, class InArray, class InMessage>
InMessage *copyBoxRuns(const RowBox &runs, std::size_t bytes, InArray *base, InMessage *packed) {
    const index count = runs.counts.back();
    const auto length = static_cast<index>(bytes);
    withLength(bytes, [&]<std::size_t Bytes>() {
        runs.forEachLine([&](index start) {
            if constexpr (toPacked)
                copyLine<Bytes>(base + start, runs.strides.back(), packed, length, count, bytes);
            else
                copyLine<Bytes>(packed, length, base + start, runs.strides.back(), count, bytes);
            packed += count * length;
        });
    });
    return packed;
}

/// One loop over both sides.
struct Loop {
    index count, from, to;
};

/// The loops of a box, the bytes of a run being the innermost one.
std::vector<std::pair<index, index>> loopsOf(const RowBox &runs, std::size_t bytes) {
    std::vector<std::pair<index, index>> loops{{static_cast<index>(bytes), 1}};
    for (std::size_t k = RowBox::loops; k-- > 0;)
        if (runs.counts[k] > 1)
            loops.emplace_back(runs.counts[k], runs.strides[k]);
    return loops;
}

/// The loops of both with common counts, the innermost first; empty where there are none.
std::vector<Loop> commonLoops(std::vector<std::pair<index, index>> from, std::vector<std::pair<index, index>> to) {
    std::vector<Loop> loops;
    std::size_t f = 0, t = 0;
    while (f < from.size() && t < to.size()) {
        auto &[fromCount, fromStride] = from[f];
        auto &[toCount, toStride] = to[t];
        const index count = std::min(fromCount, toCount);
        if (fromCount % count != 0 || toCount % count != 0)
            return {};
        if (!loops.empty() && fromStride == loops.back().count * loops.back().from &&
            toStride == loops.back().count * loops.back().to)
            loops.back().count *= count;
        else
            loops.push_back({count, fromStride, toStride});
        fromStride *= count;
        toStride *= count;
        f += (fromCount /= count) == 1 ? 1U : 0U;
        t += (toCount /= count) == 1 ? 1U : 0U;
    }
    return f == from.size() && t == to.size() ? loops : std::vector<Loop>{};
}

} // namespace

BoxCopy::BoxCopy(const RowList &rows, std::size_t stride) : bytes_(static_cast<std::size_t>(rows.count()) * stride) {
    if (bytes_ == 0)
        return;
    std::vector<ByteBox> boxes;
    boxes.reserve(rows.boxes()->size());
    for (const RowBox &box : *rows.boxes()) {
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

void BoxCopy::gather(const std::byte *base, std::byte *to) const {
    for (std::size_t k = 0; boxes_ != nullptr && k < boxes_->size(); ++k)
        to = copyBoxRuns<true>((*boxes_)[k].runs, (*boxes_)[k].bytes, base, to);
}

void BoxCopy::scatter(const std::byte *from, std::byte *base) const {
    for (std::size_t k = 0; boxes_ != nullptr && k < boxes_->size(); ++k)
        from = copyBoxRuns<false>((*boxes_)[k].runs, (*boxes_)[k].bytes, base, from);
}

std::optional<BoxToBoxCopy> BoxToBoxCopy::between(const BoxCopy &from, const BoxCopy &to) {
    BoxToBoxCopy copy;
    if (from.bytes() != to.bytes() || from.bytes() == 0)
        return {};
    std::vector<BoxCopy::ByteBox> sources(from.boxes_->rbegin(), from.boxes_->rend()); // the next one last
    std::vector<BoxCopy::ByteBox> destinations(to.boxes_->rbegin(), to.boxes_->rend());
    while (!sources.empty()) {
        const std::size_t bytes = std::min(sources.back().size(), destinations.back().size());
        const auto source = takeFront(sources, bytes), destination = takeFront(destinations, bytes);
        if (!source || !destination)
            return {};
        const auto pair = pairOf(*source, *destination);
        if (!pair)
            return {};
        copy.pairs_.push_back(*pair);
    }
    return copy;
}

/// The first `bytes` bytes of the next box, which is the last of the list; of a longer one only where it is one run.
std::optional<BoxCopy::ByteBox> BoxToBoxCopy::takeFront(std::vector<BoxCopy::ByteBox> &boxes, std::size_t bytes) {
    BoxCopy::ByteBox front = boxes.back();
    if (front.size() == bytes) {
        boxes.pop_back();
        return front;
    }
    if (front.runs.size() > 1)
        return {};
    boxes.back().runs.first += static_cast<index>(bytes);
    boxes.back().bytes -= bytes;
    front.bytes = bytes;
    return front;
}

std::optional<BoxToBoxCopy::Pair> BoxToBoxCopy::pairOf(const BoxCopy::ByteBox &from, const BoxCopy::ByteBox &to) {
    const std::vector<Loop> loops = commonLoops(loopsOf(from.runs, from.bytes), loopsOf(to.runs, to.bytes));
    if (loops.empty() || loops.size() > RowBox::loops + 1)
        return {};
    Pair pair{{}, {}, static_cast<std::size_t>(loops.front().count)};
    pair.from.first = from.runs.first;
    pair.to.first = to.runs.first;
    for (std::size_t k = 1; k < loops.size(); ++k) {
        const std::size_t at = RowBox::loops - k;
        pair.from.counts[at] = pair.to.counts[at] = loops[k].count;
        pair.from.strides[at] = loops[k].from;
        pair.to.strides[at] = loops[k].to;
    }
    return pair;
}

void BoxToBoxCopy::copy(const std::byte *from, std::byte *to) const {
    for (const Pair &pair : pairs_)
        withLength(pair.bytes, [&]<std::size_t Bytes>() {
            pair.from.forEachLine(pair.to, [&](index source, index destination) {
                copyLine<Bytes>(from + source, pair.from.strides.back(), to + destination, pair.to.strides.back(),
                                pair.from.counts.back(), pair.bytes);
            });
        });
}

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
