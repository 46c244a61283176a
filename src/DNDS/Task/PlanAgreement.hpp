/// @file PlanAgreement.hpp
/// @brief Whether the ranks of a plan leave out the same pulls in each run.
#pragma once

#include "DNDS/Exchange/PeerAgreement.hpp"
#include "DNDS/Task/PlanModel.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace DNDS::Task {

/// Tells peers what a run of a plan is about to do, and explains where they disagree.
class PlanAgreement {
  public:
    /// Between the ranks that exchange rows in `plan`. Refers to graph and plan. Collective.
    PlanAgreement(const GraphModel &graph, const PlanModel &plan);

    /// Begins run `run` on this rank. Local, but waits for peers that are more than a run behind. Throws StateError
    /// where a peer did something else in the run before.
    void begin(index run, const std::vector<bool> &dropped);
    /// Throws StateError where a peer does something else in this run, as far as is known by now. Local.
    void look();

  private:
    template <class Work>
    void explaining(const Work &work) const;

    const GraphModel &graph_;
    const PlanModel &plan_;
    std::optional<PeerAgreement> words_; ///< none where nobody has peers
    index run_ = 0;
    std::vector<bool> dropped_; ///< [transfers] in this run
};

} // namespace DNDS::Task
