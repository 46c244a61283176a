/// @file Revocation.hpp
/// @brief A communicator is one failure domain: a failure on one of its ranks stops all of them.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace DNDS {

class CommunicatorView;
struct NodeTopology;

/// State of failures among the ranks of one node, in memory that they share. Zeroed memory: none has failed.
struct RevocationRecord {
    static constexpr std::size_t maxBytes = 1000;

    std::atomic<std::uint32_t> failed; ///< the first rank that failed, plus one; 0: none has
    std::atomic<std::uint32_t> told;   ///< 1: `text` is complete
    std::array<char, maxBytes> text;   ///< the call that failed there, and its error; ended by 0
};

/// State of a communicator's revocation. After ULFM's MPI_Comm_revoke (Bland, Bouteiller, Herault, Bosilca,
/// Dongarra: Post-failure recovery of MPI communication capability, IJHPCA 27(3), 2013).
///
/// The first rank that fails writes its record, which all ranks of its node poll while they wait. Between nodes the
/// notice spreads along a binomial graph: each rank that learns of it sends it to the ranks whose numbers differ from
/// its own by a power of two, so that it arrives after log2(ranks) hops, with O(log2(ranks)) small messages a rank,
/// even if many ranks are busy elsewhere. Part of CommunicatorContext; functions are Local, for any thread.
class Revocation {
  public:
    /// For a communicator of one rank, which is never revoked, and before `connect`.
    Revocation();
    Revocation(const Revocation &) = delete;
    Revocation &operator=(const Revocation &) = delete;
    ~Revocation();

    /// `comm` is private: no other message has tag 0 there. `identity` is the same on all ranks and differs from that
    /// of earlier communicators: MPI may deliver late messages of a freed one to its successor. Throws MemoryError.
    void connect(const CommunicatorView &comm, const NodeTopology &node, std::uint64_t identity);

    /// Whether some rank has failed, as far as this node knows. One load.
    bool revoked() const noexcept { return record_->failed.load(std::memory_order_acquire) != 0; }
    /// Throws RevokedError if some rank has failed. One load, and with other nodes a probe of MPI in some calls
    /// only, as it costs more than a short pull.
    void requireValid(SourceLocation where = SourceLocation::current()) {
        constexpr unsigned callsPerProbe = 16;
        static thread_local unsigned calls = 0;
        if (otherNodes_ && ++calls % callsPerProbe == 0)
            listen();
        if (revoked()) [[unlikely]]
            throwRevoked(where);
    }
    /// Reports a failure of this rank: the others are told `call` and `why`. Does nothing if another rank was first.
    /// `caller`: a destructor may run on a thread that may not call MPI; then the next call tells other nodes.
    enum class Caller : unsigned char { Call, Destructor };
    void revoke(std::string_view call, std::string_view why, Caller caller = Caller::Call) noexcept;
    /// Looks for a notice from other nodes. One probe of MPI; without other nodes it does nothing.
    void listen() noexcept;
    [[noreturn]] void throwRevoked(SourceLocation where);

    /// For `CommunicatorContext::recover`, between two meetings of all ranks: forgets the failure.
    void forget() noexcept;

  private:
    struct Notice;
    struct Sent;

    /// Writes the record, unless another rank was first; `failed` as there.
    void note(std::uint32_t failed, std::string_view text) noexcept;
    /// Sends the notice to all neighbours, unless that was done in this generation.
    void forward() noexcept;
    /// The text in the record; waits up to a second for the rank that is writing it.
    std::string text() const;

    RevocationRecord own_{}; ///< used where ranks share no memory
    /// The first rank's of this node, in shared memory; `own_` without such.
    RevocationRecord *record_ = &own_;
    std::shared_ptr<void> memory_; ///< owner of the record's memory
    bool first_ = true;            ///< first of the ranks that share the record
    bool alone_ = true;            ///< the communicator has one rank
    /// Notices have to be sent and looked for.
    bool otherNodes_ = false;
    /// The context's private duplicate, for notices.
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0;
    /// The thread that connected it: without MPI_THREAD_MULTIPLE only that one may call MPI in a destructor.
    std::thread::id maker_ = std::this_thread::get_id();
    std::vector<int> neighbours_; ///< on other nodes
    std::mutex mutex_;            ///< guards the members below
    /// The identity of the communicator plus the number of recoveries; equal on all ranks outside of `recover`.
    std::uint64_t generation_ = 0;
    /// The notice of this generation was sent to the neighbours.
    bool forwarded_ = false;
    std::vector<std::unique_ptr<Sent>> sent_; ///< this generation's and earlier ones': MPI may still read them
};

namespace Detail {

/// The text of an exception, without the place where it was thrown. Local.
std::string textOf(const std::exception_ptr &failure);

} // namespace Detail
} // namespace DNDS
