#include "DNDS/Transport/RowGather.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace DNDS {

namespace {

/// Runs shorter than this (in bytes, on average) are copied row by row: a block copy costs about as much as fetching a
/// few cache lines (measured in bench/exchange).
constexpr std::size_t longRunBytes = 512;

/// Distance of prefetching, in rows: about two kilobytes of source, which covers the latency of memory; more than
/// 16 rows did not pay at any width. Of short rows a processor has enough loads in flight by itself, and
/// prefetching would only add work.
constexpr std::size_t rowsAhead(std::size_t stride) {
    return stride <= 16 ? std::numeric_limits<std::size_t>::max() : std::clamp<std::size_t>(2560 / stride, 4, 16);
}

/// Block copies of `longRunBytes` and a little more wait for their first lines, too: the processor finds the others by
/// itself once it has seen these.
constexpr std::size_t runsAhead = 4;
constexpr std::size_t runBytesAhead = 256;

/// Copies rows of a width known to the compiler.
/// The compiler turns each memcpy into a few moves. The loop is bound by the latency of scattered rows, hence the
/// prefetches.
template <std::size_t Stride>
void copyRowsFixed(const std::byte *base, const std::uint32_t *rows, std::size_t count, std::size_t, std::byte *to) {
    constexpr std::size_t ahead = rowsAhead(Stride);
    constexpr std::size_t line = 64;
    const std::size_t fetched = count > ahead ? count - ahead : 0;
    std::size_t k = 0;
    for (; k < fetched; ++k) {
        const std::byte *next = base + std::size_t{rows[k + ahead]} * Stride;
        for (std::size_t at = 0; at < Stride; at += line)
            __builtin_prefetch(next + at);
        std::memcpy(to + k * Stride, base + std::size_t{rows[k]} * Stride, Stride);
    }
    for (; k < count; ++k)
        std::memcpy(to + k * Stride, base + std::size_t{rows[k]} * Stride, Stride);
}

/// The same for any width: one line of each row is fetched ahead.
void copyRowsAny(const std::byte *base, const std::uint32_t *rows, std::size_t count, std::size_t stride,
                 std::byte *to) {
    const std::size_t ahead = rowsAhead(stride);
    for (std::size_t k = 0; k < count; ++k) {
        if (ahead < count - k)
            __builtin_prefetch(base + std::size_t{rows[k + ahead]} * stride);
        std::memcpy(to + k * stride, base + std::size_t{rows[k]} * stride, stride);
    }
}

/// Calls `copy(from, bytes)` for each run, with the beginning of later runs fetched ahead.
template <class Copy>
void forEachRun(std::span<const ByteBlock> runs, const std::byte *base, Copy &&copy) {
    for (std::size_t k = 0; k < runs.size(); ++k) {
        if (runsAhead < runs.size() - k) {
            const ByteBlock &next = runs[k + runsAhead];
            for (std::size_t at = 0; at < std::min(next.bytes, runBytesAhead); at += 64)
                __builtin_prefetch(base + next.offset + at);
        }
        copy(base + runs[k].offset, runs[k].bytes);
    }
}

} // namespace

std::vector<ByteBlock> joinRows(const RowList &rows, const RowPart &part) {
    // Consecutive rows become one run, empty rows none. O(rows).
    std::vector<ByteBlock> runs;
    rows.forEach([&](index row) {
        const std::size_t begin = part.begin(row);
        const std::size_t bytes = part.begin(row + 1) - begin;
        if (bytes == 0)
            return;
        if (!runs.empty() && runs.back().offset + runs.back().bytes == begin)
            runs.back().bytes += bytes;
        else
            runs.push_back({begin, bytes});
    });
    return runs;
}

// A table of function pointers, looked up once a gather: the copy loop has no branch on the width.
RowGather::CopyRows RowGather::copyRowsOf(std::size_t stride) {
    CopyRows found = copyRowsAny;
    const auto choose = [&]<std::size_t... Strides>(std::index_sequence<Strides...> /*known*/) {
        ((found = stride == Strides ? copyRowsFixed<Strides> : found), ...);
    };
    choose(std::index_sequence<4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 120, 128, 160, 200, 256>());
    return found;
}

void RowGather::copyRuns(std::vector<ByteBlock> runs) {
    bytes_ = 0;
    for (const ByteBlock &run : runs)
        bytes_ += run.bytes;
    const auto shared = std::make_shared<const std::vector<ByteBlock>>(std::move(runs));
    runs_ = *shared;
    hold_ = shared;
}

RowGather::RowGather(index first, index last, const RowPart &part) : RowGather(RowList(first, last), part) {}

RowGather::RowGather(std::span<const index> rows, const RowPart &part) : RowGather(RowList(rows), part) {}

// Descriptions from cheap to expensive; row numbers of 4 bytes cost a quarter of a run's 16.
RowGather::RowGather(const RowList &rows, const RowPart &part) {
    // The cheapest description that fits: one run; boxes; row numbers, if rows have one width and runs are short;
    // else runs.
    if (rows.isRange()) {
        const std::size_t begin = part.begin(rows.first());
        const std::size_t bytes = part.begin(rows.first() + rows.count()) - begin;
        if (bytes > 0)
            copyRuns({{begin, bytes}});
        return;
    }
    if (part.offsets == nullptr && rows.boxes() != nullptr) {
        boxes_ = BoxCopy(rows, part.stride);
        bytes_ = boxes_.bytes();
        return;
    }
    if (part.offsets == nullptr) {
        bytes_ = static_cast<std::size_t>(rows.count()) * part.stride;
        if (bytes_ == 0)
            return;
        stride_ = part.stride;
        // Short runs of rows of one width: row by row.
        if (bytes_ / rows.extent().runs < longRunBytes && rows.numbers() != nullptr) {
            firstRow_ = static_cast<std::size_t>(rows.extent().least);
            copyRows_ = copyRowsOf(stride_);
            rows_ = *rows.numbers();
            hold_ = rows.numbers();
            return;
        }
    }
    copyRuns(joinRows(rows, part));
}

void RowGather::gather(const std::byte *base, std::byte *to) const {
    if (boxes_.bytes() > 0)
        return boxes_.gather(base, to);
    if (copyRows_ != nullptr) {
        copyRows_(base + firstRow_ * stride_, rows_.data(), rows_.size(), stride_, to);
        return;
    }
    forEachRun(runs_, base, [&](const std::byte *from, std::size_t bytes) {
        std::memcpy(to, from, bytes);
        to += bytes;
    });
}

void RowGather::gather(const std::byte *base, StreamWriter &to) const {
    if (boxes_.bytes() > 0)
        return boxes_.forEachRun([&](std::size_t offset, std::size_t bytes) { to.append(base + offset, bytes); });
    if (copyRows_ == nullptr) {
        forEachRun(runs_, base, [&](const std::byte *from, std::size_t bytes) { to.append(from, bytes); });
        return;
    }
    // Rows shorter than `longRunBytes` fit the stage many times.
    const std::size_t atOnce = StreamWriter::stageBytes / stride_;
    for (std::size_t k = 0; k < rows_.size(); k += atOnce) {
        const std::size_t count = std::min(atOnce, rows_.size() - k);
        copyRows_(base + firstRow_ * stride_, rows_.data() + k, count, stride_, to.room(count * stride_));
        to.advance(count * stride_);
    }
}

std::vector<ByteBlock> RowGather::blocks() const {
    if (boxes_.bytes() > 0)
        return boxes_.blocks();
    if (copyRows_ == nullptr)
        return {runs_.begin(), runs_.end()};
    // Back from row numbers to runs: for datatypes, copies between boxes, and debug checks.
    std::vector<index> rows(rows_.size());
    std::transform(rows_.begin(), rows_.end(), rows.begin(),
                   [&](std::uint32_t row) { return static_cast<index>(firstRow_ + row); });
    RowPart part;
    part.stride = stride_;
    return joinRows(RowList(rows), part);
}

std::vector<ByteBox> RowGather::byteBoxes() const {
    if (boxes_.bytes() > 0)
        return {boxes_.boxes().begin(), boxes_.boxes().end()};
    std::vector<ByteBox> boxes;
    for (const ByteBlock &run : blocks())
        boxes.push_back({RowBox{static_cast<index>(run.offset)}, run.bytes});
    return boxes;
}

} // namespace DNDS
