/// @file NodeEdge.hpp
/// @brief The flags by which a writer and a reader on one node take turns: only the protocol, without MPI and arrays.
#pragma once

#include <atomic>
#include <cstdint>

namespace DNDS {

/// One side's view of the other in an epoch.
enum class EdgeState : unsigned char {
    Waiting, ///< the other side is not there yet
    Open,    ///< go ahead: the reader wants the rows / the rows are there
    Offered  ///< the rows lie in the writer's memory, for the side that comes first to move them on
};

/// Set once by a side that will not access the other's memory any more.
using ClosedFlag = std::atomic<std::uint32_t>;

/// A flag in memory shared by two ranks, written by one and polled by the other: the last epoch that its writer has
/// reached. Epochs count up from `initialEpoch`, wrap around, and are compared by signed difference. Release stores and
/// acquire loads: stores before `reach` are visible to the side that polled Open.
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

    /// For the writing side.
    void reach(std::uint32_t epoch) noexcept { epoch_.store(epoch, std::memory_order_release); }
    /// Counts epochs up to this one, if another flag has told the other side; orders nothing.
    void catchUp(std::uint32_t epoch) noexcept {
        if (epoch_.load(std::memory_order_relaxed) != epoch)
            epoch_.store(epoch, std::memory_order_relaxed);
    }

    /// For the polling side: Waiting or Open.
    EdgeState poll(std::uint32_t epoch) const noexcept {
        return since(epoch_.load(std::memory_order_acquire), epoch) >= 0 ? EdgeState::Open : EdgeState::Waiting;
    }

  private:
    /// The last epoch reached; one side stores, the other loads.
    std::atomic<std::uint32_t> epoch_;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && ClosedFlag::is_always_lock_free,
              "flags between processes must be lock-free");

/// One directed edge: a writer (the owner of the rows) and a reader (whose memory they go to). It lies in the reader's
/// arena.
///
/// Both sides are at most one epoch apart. Each side writes only its own cache lines:
///
///     reader: open(e)   "my old ghosts are no longer needed: write"      writer: polls, copies rows, then
///     reader: polls     <------------------------------------------      arrive(e) "the rows of epoch e are there"
///
/// The release store of `arrive` and the acquire load of the reader's poll order the rows before their use, those of
/// `open` order the reader's last use of old rows before they are overwritten. Non-temporal stores need a store fence
/// before `arrive`.
///
/// A writer that does not want to wait for a late reader copies the rows to its own memory and offers them. Then
/// neither side depends on the other one's next call, as with a message in flight: the reader takes the rows
/// when it arrives (`take`, copy, `taken`), or the writer finds the reader ready, withdraws the offer and writes
/// (`withdraw`, copy, `arrive`). One compare-and-swap decides between the two.
class NodeEdge {
  public:
    static constexpr std::uint32_t initialEpoch = EpochFlag::initialEpoch;

    NodeEdge() = default;
    explicit NodeEdge(std::uint32_t epoch) : opened_(epoch), arrived_(epoch) {}

    // The reader's side.

    /// The writer may overwrite the destination now.
    void open(std::uint32_t epoch) noexcept { opened_.reach(epoch); }
    /// Whether the rows of `epoch` are there, or offered.
    EdgeState pollArrival(std::uint32_t epoch) const noexcept {
        const EdgeState state = arrived_.poll(epoch);
        if (state != EdgeState::Open && offer_.load(std::memory_order_acquire) == offerWord(epoch, Offer::Made))
            return EdgeState::Offered;
        return state;
    }
    /// Takes the offer, unless the writer withdraws it. If true, the reader copies the rows and calls `taken`.
    bool take(std::uint32_t epoch) noexcept { return decide(epoch, Offer::BeingTaken); }
    void taken(std::uint32_t epoch) noexcept {
        offer_.store(offerWord(epoch, Offer::Taken), std::memory_order_release);
    }

    // The writer's side.

    /// Whether the destination may be overwritten for `epoch`.
    EdgeState pollOpening(std::uint32_t epoch) const noexcept { return opened_.poll(epoch); }
    /// All rows of `epoch` are written.
    void arrive(std::uint32_t epoch) noexcept { arrived_.reach(epoch); }
    /// All rows of `epoch` lie in the writer's memory, which stays as it is until they are taken or withdrawn.
    void offer(std::uint32_t epoch) noexcept {
        // The epoch before is over. If its rows were taken from an offer, `arrived_` has not counted it; counts that
        // lag by 2^31 epochs would look as if they were ahead. The cache line is written anyway.
        arrived_.catchUp(epoch - 1);
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
    /// Withdraws the offer unless the reader has begun to take it. If true, the reader will not access it.
    bool withdraw(std::uint32_t epoch) noexcept { return decide(epoch, Offer::Withdrawn); }
    /// Whether the reader has finished with the offer.
    bool wasTaken(std::uint32_t epoch) const noexcept {
        return offer_.load(std::memory_order_acquire) == offerWord(epoch, Offer::Taken);
    }
    void closeWriter() noexcept { writerClosed_.store(1, std::memory_order_release); }

    /// Resets it to its initial state, while neither side uses it.
    void renew() noexcept {
        opened_.reach(initialEpoch);
        arrived_.reach(initialEpoch);
        offer_.store(0, std::memory_order_release);
    }

    /// Set once the writer will not access the edge any more; then its memory may be reused.
    const ClosedFlag &writerClosed() const noexcept { return writerClosed_; }

  private:
    /// Transitions in one epoch: to Made by the writer; from Made to BeingTaken by the reader or to Withdrawn by
    /// the writer, by compare-and-swap; from BeingTaken to Taken by the reader. A later offer overwrites the end
    /// state.
    enum class Offer : std::uint32_t { None, Made, BeingTaken, Taken, Withdrawn };

    /// Epoch and state in one word: an old offer cannot be taken for a new one.
    static std::uint64_t offerWord(std::uint32_t epoch, Offer offer) {
        return std::uint64_t{epoch} << 32U | static_cast<std::uint32_t>(offer);
    }
    /// From Made to `next`; false where the other side was first. Acquire orders after the decision what the winner
    /// does: the reader's loads of the offered rows, the writer's stores to the reader's memory.
    bool decide(std::uint32_t epoch, Offer next) noexcept {
        std::uint64_t made = offerWord(epoch, Offer::Made);
        return offer_.compare_exchange_strong(made, offerWord(epoch, next), std::memory_order_acq_rel);
    }

    /// Two lines apart, because processors fetch lines in pairs.
    alignas(128) EpochFlag opened_;
    alignas(128) EpochFlag arrived_;
    std::atomic<std::uint64_t> offer_{0};
    ClosedFlag writerClosed_{0};
};

} // namespace DNDS
