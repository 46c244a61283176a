/// @file PlanHistory.hpp
/// @brief State that earlier runs of a plan have left in its arrays, and transfers that a run leaves out because of it.
#pragma once

#include "DNDS/Link/MessageLink.hpp"
#include "DNDS/Task/Plan.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace DNDS::Task {

/// Decides which pulls a run leaves out, from the versions of arrays, and agrees on that with peers. Local unless
/// noted otherwise.
/// Versions are counters that each write to an array raises (ArrayBase), so a test costs O(arrays) and reads no rows.
/// A pull moves messages, hence all peers must drop the same ones: ranks decide each for itself, and tell
/// their peers one word a run, a hash of the decisions. Ranks that are about to do different things find out before
/// they deadlock. Words are compared one run late, so that no rank waits for them.
class PlanHistory final : public Recoverable {
  public:
    /// Refers to both, which outlive it.
    PlanHistory(const GraphModel &graph, const PlanModel &plan);
    ~PlanHistory() override;

    /// Called when the plan is made. Collective. Throws MemoryError on all ranks.
    void connect();
    /// Begins run `run`: decides from this rank's knowledge which transfers it leaves out, and tells peers. Returns
    /// their number. Local, but waits for peers that are more than a run late. Throws StateError if a peer decided
    /// differently in the run before.
    index begin(index run);
    /// Whether the words of all peers of this run have arrived. Does not wait. Throws StateError if a peer decided
    /// differently.
    bool look();
    /// Whether this run leaves the transfer out.
    /// Valid from `begin` to the next `begin`.
    bool isDropped(std::size_t transfer) const { return dropped_[transfer]; }
    const std::vector<bool> &dropped() const noexcept { return dropped_; }
    /// Mark of ghosts of the array that are finished as far as necessary: a number of plan, array and the finisher's
    /// inputs, since a swap moves the mark with the contents; 0 where there is nothing to finish.
    std::uint64_t finisherOf(std::size_t array) const;

    /// Records a complete run.
    /// Local; writes versions into the arrays: marks written ones and, where the plan leaves all ghosts current,
    /// records that they were pulled from the present version.
    void noteOutcome();
    /// After runs that only some ranks completed: ghosts are stale for all plans.
    void forgetPulls();

    /// For the communicator's recovery: see Recoverable.
    bool settle() noexcept override;
    void renew() override;

  private:
    struct Contents;
    Contents contentsOf(std::size_t array) const;
    /// Throws StateError that says what this rank has decided.
    [[noreturn]] void throwDisagreement(int peer) const;

    const GraphModel &graph_;
    const PlanModel &plan_;
    /// Link and context: empty if the plan has no transfers, which is the same on all ranks.
    std::shared_ptr<CommunicatorContext> context_;
    /// Carries one word to and from each peer a run.
    std::optional<MessageLink> link_;
    std::vector<int> peers_;           ///< ranks that exchange rows with this one; index k is that of the link
    std::vector<std::size_t> missing_; ///< peers whose words of this run have not arrived
    std::uint64_t word_ = 0;           ///< this rank's word of this run
    index run_ = 0;                    ///< since set-up or recovery
    /// First of a range of numbers, one an array, unique in this process; marks of finished ghosts are made from
    /// them.
    std::uint64_t firstFinisher_;
    std::vector<bool> dropped_;  ///< [transfers] in this run
    std::vector<Contents> left_; ///< [arrays] contents after the last run
};

} // namespace DNDS::Task
