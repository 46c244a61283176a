/// @file StreamWriter.hpp
/// @brief Writes bytes past the caches, for a reader on another core.
#pragma once

#include <array>
#include <cstddef>

namespace DNDS {

/// Whether `all` bytes in runs of `run` bytes are copied past the caches: they exceed a core's share of these, and
/// partial lines are few.
constexpr bool isStreamed(std::size_t run, std::size_t all) noexcept {
    return run >= 512 && all >= std::size_t{16} << 20U;
}

/// Copies `bytes` bytes past the caches, partial lines at either end ordinarily; `endStreaming` orders them before the
/// caller's next release store. Local.
void streamRun(std::byte *to, const std::byte *from, std::size_t bytes) noexcept;
void endStreaming() noexcept;

/// Collects bytes in a stage that stays in the nearest cache and writes whole cache lines of it with non-temporal
/// stores, which do not first fetch the reader's copy of the line. Without such stores (other processors than x86) it
/// copies ordinarily.
///
///     StreamWriter out(to);
///     while (...) { fill(out.room(bytes)); out.advance(bytes); }
///     out.finish();          // also fences: a release store afterwards publishes the bytes
///
/// Local. A partial line at either end is written with ordinary stores.
class StreamWriter {
  public:
    /// Largest argument of `room`.
    static constexpr std::size_t stageBytes = 16384;

    /// Writes from `to` on, at any alignment.
    explicit StreamWriter(std::byte *to) noexcept;

    /// A place for the next `bytes` bytes, at most `stageBytes`.
    std::byte *room(std::size_t bytes) noexcept {
        if (fill_ + bytes > stage_.size())
            flush();
        return stage_.data() + fill_;
    }
    /// Marks `bytes` bytes of the last `room` as filled.
    void advance(std::size_t bytes) noexcept { fill_ += bytes; }
    /// Appends bytes from `from`; long runs go directly, without the stage.
    void append(const std::byte *from, std::size_t bytes) noexcept;
    /// Writes the rest, and orders all stores before the caller's next release store.
    void finish() noexcept;

  private:
    static constexpr std::size_t line = 64;

    /// Writes the whole lines of the stage.
    void flush() noexcept;

    std::byte *lineStart_; ///< start of the line of the stage's first byte
    std::size_t skip_;     ///< bytes of the first line before `to`
    std::size_t fill_;     ///< bytes in the stage, the skipped ones included
    /// Congruent to the destination modulo a line, so that its lines are the destination's.
    alignas(line) std::array<std::byte, stageBytes + 2 * line> stage_;
};

} // namespace DNDS
