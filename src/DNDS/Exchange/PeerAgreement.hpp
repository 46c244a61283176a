/// @file PeerAgreement.hpp
/// @brief Whether ranks that work in rounds agree: one word a peer and round.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace DNDS {

class ExchangePattern;

/// In each round each rank tells its peers one word, a hash of what it is about to do, and learns theirs. Ranks that
/// are about to do different things find out before they wait for each other for ever, and nobody waits in the round
/// itself:
///
///     PeerAgreement agreement(context, "plan 'step'", PeerAgreement::peersOf(patterns));
///     for (;;) {
///         agreement.begin(hash);                 // throws where the words of the round before differ
///         while (!exchange.ready())
///             if (agreement.disagreeing())       // a peer's word of this round has come, and differs
///                 agreement.finish();            // throws
///     }
///
/// A rank is at most one round ahead of its peers. A disagreement is for good: `begin`, `finish` and `disagreeing`
/// report it from then on, and the rank's other peers are told in the place of its next word that it has left, so that
/// all ranks that are connected by peers stop. To go on, make a new one on all ranks.
///
/// It may be destroyed at any time: peers that go on learn that this rank has left. One thread of a rank uses it at a
/// time; see Exchange about threads and forks. Rank itself as peer costs nothing.
class PeerAgreement {
  public:
    /// `peers`: ranks of the communicator, in any order, also several times; this rank is left out. `what` the rounds
    /// are of, for messages. Collective; two reductions. Throws on all ranks: IndexError for ranks that there are not,
    /// ArgumentError where a rank is not a peer of its peers, MemoryError.
    PeerAgreement(std::shared_ptr<CommunicatorContext> context, std::string_view what, std::span<const int> peers);
    PeerAgreement(const PeerAgreement &) = delete;
    PeerAgreement &operator=(const PeerAgreement &) = delete;
    ~PeerAgreement();

    /// The ranks that this rank exchanges rows with by any of the patterns. Local.
    static std::vector<int> peersOf(std::span<const std::shared_ptr<const ExchangePattern>> patterns);

    /// Ends the round before as `finish` does, and tells peers the word of the next one. Local, but waits for peers
    /// that have not begun the round before. Cost O(peers). Throws as `finish`; StateError after `leave`.
    void begin(std::uint64_t word);
    /// The first peer found whose word differs from this rank's, or that has left, of those whose words of this round
    /// have come. Local, does not wait; one call of MPI at most. Throws as `begin` does where the communicator is gone.
    std::optional<int> disagreeing();
    /// Waits until the words of all peers of this round are there; other exchanges of the thread go on meanwhile. Does
    /// nothing before the first round and where it is done already. Local. Throws at once StateError naming a peer
    /// whose word differs, and PeerError for one that has left; PeerError when a peer's process has ended or after
    /// DNDS_WAIT_TIMEOUT (then it may be called again); StateError where the communicator was freed.
    void finish();
    /// This rank begins no further round: peers that do throw PeerError. Local, does not wait.
    void leave();

    /// How often `begin` has begun a round. Local.
    std::uint64_t rounds() const noexcept;

  private:
    struct State;
    void requireUsable() const;

    std::shared_ptr<CommunicatorContext> context_;
    std::shared_ptr<State> state_; ///< shared with the context when it is destroyed
};

} // namespace DNDS
