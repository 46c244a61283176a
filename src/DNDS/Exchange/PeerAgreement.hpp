/// @file PeerAgreement.hpp
/// @brief Checks that ranks working in rounds agree: one word a peer and round.
#pragma once

#include "DNDS/Link/MessageLink.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

class ExchangePattern;

/// In each round each rank tells its peers one word, a hash of its next action, and learns theirs. Ranks that
/// are about to do different things find out before they wait for each other for ever, and no rank waits in the round
/// itself:
///
///     PeerAgreement agreement(context, "plan 'step'", PeerAgreement::peersOf(patterns));
///     for (;;) {
///         agreement.begin(hash);                 // throws if the words of the round before differ
///         while (!exchange.ready())
///             agreement.look();                  // throws if a peer's word of this round has arrived, and differs
///     }
///
/// A rank is at most one round ahead of its peers. A disagreement revokes the communicator like any other error;
/// rounds start over with `recover`. It may be destroyed at any time. One thread of a rank uses it at a time; see
/// Exchange about threads and forks. Rank itself as peer costs nothing.
class PeerAgreement final : public Recoverable {
  public:
    /// `peers`: ranks of the communicator, in any order, perhaps repeated, each of which has this rank as peer; this
    /// rank is left out. `what` names the rounds in messages. Collective; two reductions. Throws on all
    /// ranks: MemoryError.
    PeerAgreement(std::shared_ptr<CommunicatorContext> context, std::string_view what, std::span<const int> peers);
    ~PeerAgreement() override;

    /// The ranks that this rank exchanges rows with by any of the patterns. Local.
    static std::vector<int> peersOf(std::span<const std::shared_ptr<const ExchangePattern>> patterns);

    /// Ends the round before as `finish` does, and tells peers the word of the next one. Local, but waits for peers
    /// still to begin the round before. Cost O(peers). Throws as `finish`.
    void begin(std::uint64_t word);
    /// Whether the words of all peers of this round have arrived; true before the first round. Local, does not wait.
    /// Throws StateError naming a peer whose word differs, RevokedError, StateError if the communicator was freed.
    bool look();
    /// Waits until `look` is true; other exchanges of the thread progress meanwhile. Throws as `look`; PeerError as
    /// all waits.
    void finish();

    bool settle() noexcept override;
    void renew() override;

  private:
    /// Throws StateError outside of MPI's lifetime, or if the communicator was freed.
    void requireUsable() const;
    /// Receives arrived words; true if none is missing.
    bool receive();

    std::shared_ptr<CommunicatorContext> context_;
    /// Name of the rounds, for messages.
    std::string what_;
    /// Ascending, without this rank; index k is that of the link.
    std::vector<int> peers_;
    /// Made within the agreement of the constructor; never empty afterwards.
    std::optional<MessageLink> link_;
    std::vector<std::size_t> missing_; ///< peers whose words of this round have not arrived
    /// This rank's word of the present round, and the number of rounds begun since set-up or recovery.
    std::uint64_t word_ = 0;
    std::uint64_t round_ = 0;
};

} // namespace DNDS
