/// @file PeerEdge.hpp
/// @brief The flags by which a rank whose device packs rows and a rank whose device reads them take turns.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace DNDS {

/// One directed edge in memory that the two ranks' hosts share. The packing rank has two buffers, used in turn, so that
/// it packs an epoch while the reader still holds the one before, and neither waits for the other's next call.
///
///     writer: packs epoch e once the reader has taken e - 2, and when the kernel has run: packed(e)
///     reader: sees that e is packed, has its device copy the rows, and when that has run: taken(e)
///
/// The hosts wait for their own kernels and for these flags, kernels wait for nothing: so it works where ranks share a
/// device whose kernels never run beside each other. The flags are in host memory because nothing here is recorded in a
/// graph; epochs count up from `initialEpoch`, wrap around, and are judged by signed difference. Each side writes only
/// its own cache lines.
class PeerEdge {
  public:
    /// Close to wrap-around, so that every long run passes it.
    static constexpr std::uint32_t initialEpoch = static_cast<std::uint32_t>(-1000);

    enum class State : unsigned char {
        Waiting, ///< the writer has not come so far
        Packed,  ///< the rows are in the buffer of this epoch
        Refused, ///< the writer does not take part in this epoch
        Closed   ///< the writer is gone
    };

    // The writer's side.

    /// Whether the buffer of `epoch` is free. A reader that is gone needs none.
    bool mayPack(std::uint32_t epoch) const noexcept {
        return since(taken_.load(std::memory_order_acquire), epoch - 2) >= 0 || readerIsClosed();
    }
    void packed(std::uint32_t epoch) noexcept { slot(epoch).store(word(epoch, epoch), std::memory_order_release); }
    /// What was packed in this buffer before is still there for a reader that is behind.
    void refuse(std::uint32_t epoch) noexcept {
        const auto last = static_cast<std::uint32_t>(slot(epoch).load(std::memory_order_relaxed)); // only written here
        slot(epoch).store(word(epoch, last), std::memory_order_release);
    }
    void closeWriter() noexcept { writerClosed_.store(1, std::memory_order_release); }
    bool readerIsClosed() const noexcept { return readerClosed_.load(std::memory_order_acquire) != 0; }

    // The reader's side.

    State poll(std::uint32_t epoch) const noexcept {
        State state = judge(slot(epoch).load(std::memory_order_acquire), epoch);
        if (state == State::Waiting && writerClosed_.load(std::memory_order_acquire) != 0) {
            state = judge(slot(epoch).load(std::memory_order_acquire), epoch); // what it did before closing counts
            if (state == State::Waiting)
                state = State::Closed;
        }
        return state;
    }
    /// The reader's device is done with all epochs up to this one, or skips them.
    void taken(std::uint32_t epoch) noexcept { taken_.store(epoch, std::memory_order_release); }
    /// The reader will not touch the writer's memory any more.
    void closeReader() noexcept { readerClosed_.store(1, std::memory_order_release); }

  private:
    static std::int32_t since(std::uint32_t epoch, std::uint32_t earlier) noexcept {
        return static_cast<std::int32_t>(epoch - earlier);
    }
    /// The last epoch that the writer has come to with this buffer, and the last one whose rows are in it.
    static constexpr std::uint64_t word(std::uint32_t epoch, std::uint32_t packed) {
        return std::uint64_t{epoch} << 32U | packed;
    }
    static State judge(std::uint64_t slot, std::uint32_t epoch) noexcept {
        if (static_cast<std::uint32_t>(slot) == epoch)
            return State::Packed;
        return since(static_cast<std::uint32_t>(slot >> 32U), epoch) < 0 ? State::Waiting : State::Refused;
    }
    std::atomic<std::uint64_t> &slot(std::uint32_t epoch) noexcept { return slots_[epoch % 2]; }
    const std::atomic<std::uint64_t> &slot(std::uint32_t epoch) const noexcept { return slots_[epoch % 2]; }

    alignas(128) std::array<std::atomic<std::uint64_t>, 2> slots_{word(initialEpoch, initialEpoch),
                                                                  word(initialEpoch, initialEpoch)};
    std::atomic<std::uint32_t> writerClosed_{0};
    alignas(128) std::atomic<std::uint32_t> taken_{initialEpoch};
    std::atomic<std::uint32_t> readerClosed_{0};
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "flags between processes must be lock-free");

} // namespace DNDS
