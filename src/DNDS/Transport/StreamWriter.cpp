#include "DNDS/Transport/StreamWriter.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace DNDS {

namespace {

/// Copies whole cache lines to a line's start; the source may have any alignment.
void streamLines(std::byte *to, const std::byte *from, std::size_t bytes) noexcept {
#if defined(__SSE2__)
    for (std::size_t at = 0; at < bytes; at += 64) {
        const auto *source = reinterpret_cast<const __m128i *>(from + at);
        auto *target = reinterpret_cast<__m128i *>(to + at);
        const __m128i a = _mm_loadu_si128(source);
        const __m128i b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2);
        const __m128i d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
#else
    std::memcpy(to, from, bytes);
#endif
}

/// Runs of at least this many bytes are streamed from their source.
constexpr std::size_t directRun = 4096;

} // namespace

// Local; the caller fences (`endStreaming`) before it publishes the bytes.
void streamRun(std::byte *to, const std::byte *from, std::size_t bytes) noexcept {
    // Non-temporal stores go to whole aligned lines; the bytes before and after them are stored ordinarily.
    const std::size_t head = std::min(bytes, (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64);
    const std::size_t whole = (bytes - head) / 64 * 64;
    std::memcpy(to, from, head);
    streamLines(to + head, from + head, whole);
    std::memcpy(to + head + whole, from + head + whole, bytes - head - whole);
}

void endStreaming() noexcept {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

// The stage is written before it is read, so it is not cleared.
StreamWriter::StreamWriter(std::byte *to) noexcept // NOLINT(cppcoreguidelines-pro-type-member-init)
    : skip_(reinterpret_cast<std::uintptr_t>(to) % line), fill_(skip_) {
    lineStart_ = to - skip_;
}

// Invariant: `lineStart_` is aligned to a line, and byte k of the stage goes to lineStart_ + k. Partial lines are
// stored ordinarily: their other bytes may be another writer's.
void StreamWriter::flush() noexcept {
    // Whole lines leave the stage; the rest moves to its start, which stays congruent to the destination modulo the
    // line.
    const std::size_t whole = fill_ / line * line;
    if (whole == 0)
        return;
    std::size_t done = 0;
    if (skip_ > 0) {
        std::memcpy(lineStart_ + skip_, stage_.data() + skip_, line - skip_);
        skip_ = 0;
        done = line;
    }
    streamLines(lineStart_ + done, stage_.data() + done, whole - done);
    std::memmove(stage_.data(), stage_.data() + whole, fill_ - whole);
    lineStart_ += whole;
    fill_ -= whole;
}

// O(bytes). Runs of 4 KiB and more skip the stage, whose copy would be a second pass over them.
void StreamWriter::append(const std::byte *from, std::size_t bytes) noexcept {
    if (bytes >= directRun) {
        // Complete the current line, then stream the rest from its source.
        const std::size_t head = (line - fill_ % line) % line;
        std::memcpy(room(head), from, head);
        advance(head);
        flush();
        const std::size_t whole = (bytes - head) / line * line;
        streamLines(lineStart_, from + head, whole);
        lineStart_ += whole;
        from += head + whole;
        bytes -= head + whole;
    }
    while (bytes > 0) {
        const std::size_t part = std::min(bytes, stageBytes);
        std::memcpy(room(part), from, part);
        advance(part);
        from += part;
        bytes -= part;
    }
}

// Stores exactly the bytes that are left. The writer may continue after it, at the next byte.
void StreamWriter::finish() noexcept {
    flush();
    if (fill_ > skip_)
        std::memcpy(lineStart_ + skip_, stage_.data() + skip_, fill_ - skip_);
    endStreaming();
    lineStart_ += fill_;
    skip_ = reinterpret_cast<std::uintptr_t>(lineStart_) % line;
    lineStart_ -= skip_;
    fill_ = skip_;
}

} // namespace DNDS
