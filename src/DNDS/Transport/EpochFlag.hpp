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
    Closed   ///< the other side is gone
};

/// Set once by a side that will not touch the memory of the other one any more.
using ClosedFlag = std::atomic<std::uint32_t>;

/// A flag in memory that two ranks share, written by one and polled by the other: the last epoch that its writer has
/// come to. Epochs count up from `initialEpoch`, wrap around, and are judged by signed difference. Release stores and
/// acquire loads: what a side did before `reach` is seen by the side that polled Open.
class EpochFlag {
  public:
    /// Close to wrap-around, so that every long run passes it.
    static constexpr std::uint32_t initialEpoch = static_cast<std::uint32_t>(-1000);

    EpochFlag() noexcept : EpochFlag(initialEpoch) {}
    explicit EpochFlag(std::uint32_t epoch) noexcept : epoch_(epoch) {}

    /// Epochs from `earlier` to `epoch`.
    static std::int32_t since(std::uint32_t epoch, std::uint32_t earlier) noexcept {
        return static_cast<std::int32_t>(epoch - earlier);
    }

    /// The side that writes.
    void reach(std::uint32_t epoch) noexcept { epoch_.store(epoch, std::memory_order_release); }
    /// Counts epochs up to this one, where another flag told the other side; orders nothing.
    void catchUp(std::uint32_t epoch) noexcept {
        if (epoch_.load(std::memory_order_relaxed) != epoch)
            epoch_.store(epoch, std::memory_order_relaxed);
    }

    /// The side that polls: Waiting, Open or Closed. What the other side did before it closed counts.
    EdgeState poll(std::uint32_t epoch, const ClosedFlag &closed) const noexcept {
        if (reached(epoch))
            return EdgeState::Open;
        if (closed.load(std::memory_order_acquire) == 0)
            return EdgeState::Waiting;
        return reached(epoch) ? EdgeState::Open : EdgeState::Closed;
    }

  private:
    bool reached(std::uint32_t epoch) const noexcept {
        return since(epoch_.load(std::memory_order_acquire), epoch) >= 0;
    }

    std::atomic<std::uint32_t> epoch_;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && ClosedFlag::is_always_lock_free,
              "flags between processes must be lock-free");

} // namespace DNDS
