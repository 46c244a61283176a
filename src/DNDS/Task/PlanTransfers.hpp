/// @file PlanTransfers.hpp
/// @brief The exchanges that a plan makes.
#pragma once

#include "DNDS/Exchange/PushedRows.hpp"
#include "DNDS/Task/Plan.hpp"
#include "DNDS/Task/Trace.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace DNDS::Task {

struct PlanStatistics;

/// The recording of a plan, if there is one: see Trace.
struct PlanTrace {
    Trace *trace = nullptr;              ///< null where nothing is recorded
    std::vector<std::string_view> names; ///< [tasks], then [transfers]

    /// Takes names for the recording that is active, if there is one. Collective.
    void begin(const GraphModel &graph, const PlanModel &plan, const CommunicatorView &comm);
    /// Runs `work`, and records that as a part of a task.
    template <class Work>
    void record(std::size_t task, index rows, int thread, const Work &work) const {
        const double begin = trace != nullptr ? Trace::now() : 0.0;
        work();
        if (trace != nullptr)
            trace->record({.kind = Trace::Kind::Part,
                           .name = names[task],
                           .begin = begin,
                           .end = Trace::now(),
                           .rows = rows,
                           .thread = thread});
    }
};

/// "pull of 'u' and 'v'". Local.
std::string nameOf(const GraphModel &graph, const Transfer &transfer);

/// Starts and completes the pulls and pushes of a plan.
/// Exchanges are collective objects: all ranks make them in the order of the plan's transfers, and start and finish
/// them in the order of its steps. One exchange is in flight at most once at a time; OrderSteps ensures that.
class PlanTransfers {
  public:
    /// Refers to all of them, which outlive it.
    PlanTransfers(const GraphModel &graph, PlanModel &plan, const PlanTrace &trace, PlanStatistics &statistics);
    ~PlanTransfers();

    /// Makes the exchanges, one for several transfers of the same arrays. Collective.
    void connect(const Executor &executor, const ExchangeOptions &options);

    /// Counts a transfer that a replayed graph makes. Local.
    void count(const Transfer &transfer);
    /// Starts a transfer after what `stream` holds. Local.
    void start(const Transfer &transfer, Device::StreamHandle stream);
    /// Whether a transfer that was started would be complete without waiting. Local.
    bool ready(const Transfer &transfer) { return exchanges_[transfer.exchange]->ready(); }
    /// Completes it. `began`: when the rank began to wait for it.
    void finish(const Transfer &transfer, std::optional<Device::StreamHandle> stream, double began);
    /// Progresses exchanges in flight. Local, does not wait.
    void progress();
    /// On a communicator of one rank: ends what a run that failed has left. Local.
    void endAlone() noexcept;
    /// Makes the ghosts zero that the part will add to. Local.
    void zeroGhosts(const Part &part, const Executor &where);

    /// Whether all exchanges may be captured in a graph of the device. Local.
    bool capturable() const;
    /// The paths of the exchanges to each peer. Local.
    std::vector<PeerPath> paths() const;
    std::size_t exchanges() const noexcept { return exchanges_.size(); }

  private:
    struct Traffic;

    const GraphModel &graph_;
    PlanModel &plan_;
    const PlanTrace &trace_;
    PlanStatistics &statistics_;
    std::vector<std::shared_ptr<Exchange>> exchanges_;
    std::vector<Traffic> traffic_;                ///< [exchanges]
    std::map<std::size_t, GhostZeroing> zeroing_; ///< keyed by the adding task
};

} // namespace DNDS::Task
