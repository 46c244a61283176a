/// @file PeerEdge.hpp
/// @brief The flags by which a rank whose device packs rows and a rank whose device reads them take turns.
#pragma once

#include "DNDS/Transport/NodeEdge.hpp"

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
/// graph. Each side writes only its own cache lines.
class PeerEdge {
  public:
    static constexpr std::uint32_t initialEpoch = EpochFlag::initialEpoch;

    // The writer's side.

    /// Whether the buffer of `epoch` is free.
    bool mayPack(std::uint32_t epoch) const noexcept {
        return EpochFlag::since(taken_.load(std::memory_order_acquire), epoch - 2) >= 0;
    }
    void packed(std::uint32_t epoch) noexcept { slots_[epoch % 2].reach(epoch); }
    bool readerIsClosed() const noexcept { return readerClosed_.load(std::memory_order_acquire) != 0; }

    // The reader's side.

    /// Open: the rows are in the buffer of this epoch.
    EdgeState poll(std::uint32_t epoch) const noexcept { return slots_[epoch % 2].poll(epoch); }
    /// The reader's device is done with all epochs up to this one.
    void taken(std::uint32_t epoch) noexcept { taken_.store(epoch, std::memory_order_release); }
    /// The reader will not touch the writer's memory any more.
    void closeReader() noexcept { readerClosed_.store(1, std::memory_order_release); }

    /// While neither side uses it: as it was when it was made.
    void renew() noexcept {
        for (EpochFlag &slot : slots_)
            slot.reach(initialEpoch);
        taken_.store(initialEpoch, std::memory_order_release);
    }

  private:
    alignas(128) std::array<EpochFlag, 2> slots_; ///< for even and odd epochs
    /// The last epoch whose buffer the reader's device has read; written by the reader, as the flag after it.
    alignas(128) std::atomic<std::uint32_t> taken_{initialEpoch};
    ClosedFlag readerClosed_{0};
};

} // namespace DNDS
