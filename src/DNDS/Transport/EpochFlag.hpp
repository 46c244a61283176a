/// @file EpochFlag.hpp
/// @brief One flag by which a rank tells another one how far it has come: the atom of all protocols within a node.
#pragma once

#include <atomic>
#include <cstdint>

namespace DNDS {

/// What one side sees of the other in an epoch.
enum class EdgeState : unsigned char {
    Waiting, ///< the other side has not come so far
    Open,    ///< go ahead: the reader wants the rows / the rows are there
    Offered, ///< the rows lie in the writer's memory, for whichever side comes first to move them on
    Refused, ///< the other side does not take part in this epoch
    Closed   ///< the other side is gone
};

/// Set once by a side that will not touch the memory of the other one any more.
using ClosedFlag = std::atomic<std::uint32_t>;

/// A flag in memory that two ranks share, written by one and polled by the other. Epochs count up from `initialEpoch`,
/// wrap around, and are judged by signed difference. Release stores and acquire loads: what a side did before
/// `takePart` is seen by whoever polled Open.
///
/// The flag holds the last epoch that its side has come to and the last one that it took part in: a side that refuses
/// does not wait, so it may be ahead, and what it did in the epoch before must then still be seen.
class EpochFlag {
  public:
    /// Close to wrap-around, so that every long run passes it.
    static constexpr std::uint32_t initialEpoch = static_cast<std::uint32_t>(-1000);

    EpochFlag() noexcept : EpochFlag(initialEpoch) {}
    explicit EpochFlag(std::uint32_t epoch) noexcept : word_(word(epoch, epoch)) {}

    /// Epochs from `earlier` to `epoch`.
    static std::int32_t since(std::uint32_t epoch, std::uint32_t earlier) noexcept {
        return static_cast<std::int32_t>(epoch - earlier);
    }

    // The side that writes.

    void takePart(std::uint32_t epoch) noexcept { word_.store(word(epoch, epoch), std::memory_order_release); }
    void refuse(std::uint32_t epoch) noexcept {
        const auto took = static_cast<std::uint32_t>(word_.load(std::memory_order_relaxed)); // written here only
        word_.store(word(epoch, took), std::memory_order_release);
    }
    /// Counts epochs up to this one as taken part in, where another flag told the other side; orders nothing.
    void catchUp(std::uint32_t epoch) noexcept {
        if (static_cast<std::uint32_t>(word_.load(std::memory_order_relaxed) >> 32U) != epoch)
            word_.store(word(epoch, epoch), std::memory_order_relaxed);
    }

    // The side that polls.

    /// Never Offered. What the other side did before it closed counts.
    EdgeState poll(std::uint32_t epoch, const ClosedFlag &closed) const noexcept {
        EdgeState state = judge(word_.load(std::memory_order_acquire), epoch);
        if (state == EdgeState::Waiting && closed.load(std::memory_order_acquire) != 0) {
            state = judge(word_.load(std::memory_order_acquire), epoch);
            if (state == EdgeState::Waiting)
                state = EdgeState::Closed;
        }
        return state;
    }

  private:
    static std::uint64_t word(std::uint32_t epoch, std::uint32_t took) { return std::uint64_t{epoch} << 32U | took; }
    static EdgeState judge(std::uint64_t word, std::uint32_t epoch) noexcept {
        if (static_cast<std::uint32_t>(word) == epoch)
            return EdgeState::Open;
        return since(static_cast<std::uint32_t>(word >> 32U), epoch) < 0 ? EdgeState::Waiting : EdgeState::Refused;
    }

    std::atomic<std::uint64_t> word_;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && ClosedFlag::is_always_lock_free,
              "flags between processes must be lock-free");

} // namespace DNDS
