/// @file NodeEdge.hpp
/// @brief The flags by which a writer and a reader on one node take turns: the protocol alone, no MPI and no arrays.
#pragma once

#include <atomic>
#include <cstdint>

namespace DNDS {

/// What one side sees of the other in an epoch.
enum class EdgeState : unsigned char {
    Waiting, ///< the other side has not come so far
    Open,    ///< go ahead: the reader wants the rows / the rows have arrived
    Offered, ///< the rows lie in the writer's memory, for whichever side comes first to move them on
    Refused, ///< the other side does not take part in this epoch
    Closed   ///< the other side is gone
};

/// One directed edge: a writer (who owns the rows) and a reader (whose memory they go to). It lies in the reader's
/// arena.
///
/// Epochs count up from `initialEpoch` and wrap around; both sides are at most one epoch apart as long as neither
/// refuses, and the order is judged by signed difference. Each side writes only its own cache lines:
///
///     reader: open(e)   "my old ghosts are no longer needed: write"      writer: polls, copies rows, then
///     reader: polls     <------------------------------------------      arrive(e) "the rows of epoch e are there"
///
/// The release store of `arrive` and the acquire load of the reader's poll order the rows before their use, those of
/// `open` order the reader's last use of old rows before they are overwritten. Non-temporal stores need a store fence
/// before `arrive`.
///
/// A writer that does not want to wait for a late reader copies the rows to memory of its own and offers them. Then
/// neither side depends on the other one's next call, as with a message that is under way: the reader takes the rows
/// when it comes (`take`, copy, `taken`), or the writer finds the reader ready, withdraws the offer and writes as usual
/// (`withdraw`, copy, `arrive`). One compare-and-swap decides between the two.
class NodeEdge {
  public:
    /// Close to wrap-around, so that every long run passes it.
    static constexpr std::uint32_t initialEpoch = static_cast<std::uint32_t>(-1000);

    NodeEdge() = default;
    explicit NodeEdge(std::uint32_t epoch) : opened_(word(epoch, epoch)), arrived_(word(epoch, epoch)) {}

    // The reader's side.

    /// The writer may overwrite the destination now.
    void open(std::uint32_t epoch) noexcept { takePart(opened_, epoch); }
    /// The writer is to skip this epoch.
    void refuseToRead(std::uint32_t epoch) noexcept { skip(opened_, epoch); }
    /// Whether the rows of `epoch` are there, or offered.
    EdgeState pollArrival(std::uint32_t epoch) const noexcept {
        const EdgeState state = poll(arrived_, writerClosed_, epoch);
        if (state != EdgeState::Open && offer_.load(std::memory_order_acquire) == offerWord(epoch, Offer::Made))
            return EdgeState::Offered;
        return state;
    }
    /// Takes what was offered, unless the writer withdraws it. If true, the reader copies the rows and calls `taken`.
    bool take(std::uint32_t epoch) noexcept { return decide(epoch, Offer::BeingTaken); }
    void taken(std::uint32_t epoch) noexcept {
        offer_.store(offerWord(epoch, Offer::Taken), std::memory_order_release);
    }
    void closeReader() noexcept { readerClosed_.store(1, std::memory_order_release); }

    // The writer's side.

    /// Whether the destination may be overwritten for `epoch`.
    EdgeState pollOpening(std::uint32_t epoch) const noexcept { return poll(opened_, readerClosed_, epoch); }
    /// All rows of `epoch` are written.
    void arrive(std::uint32_t epoch) noexcept { takePart(arrived_, epoch); }
    /// All rows of `epoch` lie in the writer's memory, which stays as it is until they are taken or withdrawn.
    void offer(std::uint32_t epoch) noexcept {
        // The epoch before is over. If its rows were taken from an offer, `arrived_` has not counted it; counts that
        // stay behind for 2^31 epochs would look as if they were ahead. The cache line is written anyway.
        if (static_cast<std::uint32_t>(arrived_.load(std::memory_order_relaxed) >> 32U) != epoch - 1)
            arrived_.store(word(epoch - 1, epoch - 1), std::memory_order_relaxed);
        offer_.store(offerWord(epoch, Offer::Made), std::memory_order_release);
    }
    /// After `offer`. Open: the rows were taken, or the reader is ready and the offer can be withdrawn.
    EdgeState pollOffer(std::uint32_t epoch) const noexcept {
        const EdgeState opening = pollOpening(epoch); // first: a reader that took the rows may be in its next epoch
        const std::uint64_t offer = offer_.load(std::memory_order_acquire);
        if (offer == offerWord(epoch, Offer::Taken))
            return EdgeState::Open;
        return offer == offerWord(epoch, Offer::BeingTaken) ? EdgeState::Waiting : opening;
    }
    /// Takes the offer back unless the reader has begun to take it. If true, the reader will not touch it.
    bool withdraw(std::uint32_t epoch) noexcept { return decide(epoch, Offer::Withdrawn); }
    /// Whether the reader is done with what was offered.
    bool wasTaken(std::uint32_t epoch) const noexcept {
        return offer_.load(std::memory_order_acquire) == offerWord(epoch, Offer::Taken);
    }
    /// No rows come in this epoch.
    void refuseToWrite(std::uint32_t epoch) noexcept { skip(arrived_, epoch); }
    void closeWriter() noexcept { writerClosed_.store(1, std::memory_order_release); }

    /// Set once the writer will not touch the edge any more; then its memory may be reused.
    const std::atomic<std::uint32_t> &writerClosed() const noexcept { return writerClosed_; }

  private:
    /// The last epoch that a side has come to, and the last one that it took part in. A side that refuses does not
    /// wait, so it may be ahead; what it did in the epoch before must then still be seen.
    static std::uint64_t word(std::uint32_t epoch, std::uint32_t taken) { return std::uint64_t{epoch} << 32U | taken; }

    static void takePart(std::atomic<std::uint64_t> &flag, std::uint32_t epoch) noexcept {
        flag.store(word(epoch, epoch), std::memory_order_release);
    }
    static void skip(std::atomic<std::uint64_t> &flag, std::uint32_t epoch) noexcept {
        const auto taken = static_cast<std::uint32_t>(flag.load(std::memory_order_relaxed)); // only this side writes it
        flag.store(word(epoch, taken), std::memory_order_release);
    }

    enum class Offer : std::uint32_t { None, Made, BeingTaken, Taken, Withdrawn };

    static std::uint64_t offerWord(std::uint32_t epoch, Offer offer) {
        return std::uint64_t{epoch} << 32U | static_cast<std::uint32_t>(offer);
    }
    bool decide(std::uint32_t epoch, Offer next) noexcept {
        std::uint64_t made = offerWord(epoch, Offer::Made);
        return offer_.compare_exchange_strong(made, offerWord(epoch, next), std::memory_order_acq_rel);
    }

    static EdgeState poll(const std::atomic<std::uint64_t> &flag, const std::atomic<std::uint32_t> &closed,
                          std::uint32_t epoch) noexcept {
        EdgeState state = judge(flag.load(std::memory_order_acquire), epoch);
        if (state == EdgeState::Waiting && closed.load(std::memory_order_acquire) != 0) {
            state = judge(flag.load(std::memory_order_acquire), epoch); // what it did before closing counts
            if (state == EdgeState::Waiting)
                state = EdgeState::Closed;
        }
        return state;
    }
    static EdgeState judge(std::uint64_t flag, std::uint32_t epoch) noexcept {
        if (static_cast<std::uint32_t>(flag) == epoch)
            return EdgeState::Open;
        const auto ahead = static_cast<std::int32_t>(static_cast<std::uint32_t>(flag >> 32U) - epoch);
        return ahead < 0 ? EdgeState::Waiting : EdgeState::Refused;
    }

    /// Two lines apart, because processors fetch lines in pairs.
    alignas(128) std::atomic<std::uint64_t> opened_{word(initialEpoch, initialEpoch)};
    std::atomic<std::uint32_t> readerClosed_{0};
    alignas(128) std::atomic<std::uint64_t> arrived_{word(initialEpoch, initialEpoch)};
    std::atomic<std::uint64_t> offer_{0};
    std::atomic<std::uint32_t> writerClosed_{0};
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "flags between processes must be lock-free");

} // namespace DNDS
