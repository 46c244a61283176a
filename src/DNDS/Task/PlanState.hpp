/// @file PlanState.hpp
/// @brief What a plan keeps between runs.
#pragma once

#include "DNDS/Exchange/PeerAgreement.hpp"
#include "DNDS/Exchange/PushedRows.hpp"
#include "DNDS/Task/Plan.hpp"
#include "DNDS/Task/ReduceRows.hpp"
#include "DNDS/Task/Trace.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace DNDS::Task {

struct Plan::State {
    State(GraphModel model, const CommunicatorView &comm, const Executor &where, const CompileOptions &chosen);
    ~State();

    void record();
    /// Makes the exchanges of all transfers. Collective.
    void connect();

    /// Which transfers are left out of this run, from what this rank knows. Local.
    void chooseTransfers();
    /// Tells peers what this run will do. Local, but waits for peers that are more than a run behind.
    void agree();
    /// Throws where a peer does something else, as far as is known by now.
    void requireAgreement();
    /// Runs `work` of the agreement; remembers that there is none if it throws.
    template <class Work>
    void atPeers(const Work &work);
    [[noreturn]] void throwDisagreement(const StateError &error);
    /// Whether a call takes place in this run.
    bool isDue(const TaskModel &task) const { return (statistics.runs - 1) % task.every == 0; }
    /// Anything but a part.
    void run(const Operation &operation);
    /// Lets exchanges in flight go on. Does not throw: whoever waits for them will.
    void progress() noexcept;
    /// Makes the ghosts zero that the part will add to.
    void zeroGhosts(const Part &part, const Executor &where);
    /// Runs `work`; names the part in what it throws.
    template <class Work>
    void inTask(const Part &part, const Work &work) {
        try {
            work();
        } catch (...) {
            rethrowFrom(graph.tasks[part.task], &part);
        }
    }
    /// The exception being handled, with the task in front of its text; of the same type where it is one of DNDS.
    [[noreturn]] static void rethrowFrom(const TaskModel &task, const Part *part);
    void start(const Transfer &transfer, Device::StreamHandle stream);
    void wait(const Transfer &transfer, std::optional<Device::StreamHandle> stream);
    /// Helps with chunks meanwhile; `check(seconds)` now and then. Throws where ranks do not run the same.
    template <class IsReady, class Check>
    void waitUntil(const IsReady &isReady, const Check &check);
    /// Calls the functor of a call or a swap, or does the step of its exchange.
    void call(const TaskModel &task);
    /// Whether pull `transfer` is followed by finish number `k`.
    bool finishes(const Transfer &transfer, std::size_t k) const;
    void finish(std::size_t k, const PartRows &finished, const Executor &where);
    /// Whether pulls of the array have to be finished.
    bool isFinished(std::size_t array) const;
    /// What marks ghosts of the array that are finished as far as they have to be: a number of plan and array, since a
    /// swap takes the mark along; 0 where there is nothing to finish.
    std::uint64_t finisherOf(std::size_t array) const { return isFinished(array) ? firstFinisher + array : 0; }
    /// Finds what reductions need of this rank, and starts them.
    void startReductions();
    /// Waits for those of the last run. Throws PeerError where that has failed on some rank.
    void collectReductions();
    void awaitReductions();
    /// Throws PeerError where a rank of this node has ended, or after DNDS_WAIT_TIMEOUT seconds.
    void checkRanks(double seconds) const;
    void requireReduction(Reduction chosen) const;
    std::span<const real> valuesOf(Reduction chosen, const std::vector<real> &all) const;
    void reduceNothing();
    std::vector<double> measureExchanges();
    /// Whether a plan that computes ghosts again is taken to be faster than this one.
    bool recomputingPays(PlanModel &other);
    /// Ends a run that failed here in operation `next`, or before it where that has not begun: peers are told by the
    /// exchanges that are left.
    void giveUp(std::size_t next, bool begins) noexcept;
    /// No run follows before `recover`: peers that begin one are told, and reductions get no values of this rank.
    void leaveRuns() noexcept;
    /// Takes part no more in the exchanges of this run from operation `next` on.
    void refuseRest(std::size_t next) noexcept;
    void giveUpCalled(std::size_t next) noexcept;
    void noteOutcome();
    void forgetPulls();
    void requireWritten() const;
    /// Throws StateError where an array was destroyed. Comes before all that looks at arrays.
    void requireArrays() const;
    /// That arrays are those that the parts were made for.
    void requireSameRows() const;

    /// Contents of an array at some moment.
    struct Contents {
        std::uint64_t father = 0, son = 0; ///< versions
        bool operator==(const Contents &other) const = default;
    };
    Contents contentsOf(std::size_t array) const;

    /// What must not change of an array.
    struct Rows {
        const void *father = nullptr, *son = nullptr, *pattern = nullptr;
        index owned = 0, size = 0;
        bool operator==(const Rows &other) const = default;
    };
    Rows rowsOf(std::size_t array) const;

    /// Throws StateError where the communicator was freed.
    void requireCommunicator() const;
    void endRun() noexcept {
        running = false;
        runningHere.pop_back();
    }
    /// Throws StateError in a call of another plan's run, where one of the two writes an array of the other.
    void requireOwnArrays() const;

    /// Plans whose runs this thread is in, the outermost first.
    static thread_local std::vector<const State *> runningHere;

    GraphModel graph;
    CommunicatorView comm;
    std::shared_ptr<CommunicatorContext> context;
    std::uint64_t firstFinisher; ///< [arrays] numbers from here on belong to no other plan of the process
    Executor executor;
    CompileOptions options;
    PlanModel plan;
    std::vector<std::unique_ptr<Exchange>> exchanges;
    struct Traffic {
        std::size_t sent = 0, received = 0; ///< bytes, each time
    };
    std::vector<Traffic> traffic;                ///< [exchanges]
    std::map<std::size_t, GhostZeroing> zeroing; ///< by task that adds
    std::vector<bool> dropped;                   ///< [transfers] in this run
    std::vector<index> boundIn;                  ///< [tasks] the run in which views were taken last
    std::vector<Contents> left;                  ///< [arrays] by the last run
    std::vector<std::uint64_t> halfWritten;      ///< [arrays] version that a run which failed left, or 0
    std::vector<Rows> rows;                      ///< [arrays] when it was compiled
    bool failed = false;
    bool running = false;
    bool starting = false; ///< an exchange is being started, or its start threw
    PlanStatistics statistics;
    std::unique_ptr<PendingReduction> reduction; ///< null for none
    std::vector<std::size_t> firstResult;        ///< [reductions + 1] columns before each
    std::vector<real> results, resultsBefore;    ///< [columns] of the last run, and of the one before
    index reducedRuns = 0;                       ///< runs whose reductions were started
    index collectedRuns = 0;
    std::unique_ptr<PeerAgreement> agreement; ///< null where nobody has peers
    bool disagrees = false;
    Trace *trace = nullptr;                   ///< null where nothing is recorded
    std::vector<std::string_view> traceNames; ///< [tasks], then [transfers]
    std::vector<double> startedAt;            ///< [exchanges] for the recording
    std::unique_ptr<HostRunner> host;         ///< null on the device
    std::unique_ptr<DeviceRunner> device;     ///< null on the host. Last: it goes before the memory that it uses
};

} // namespace DNDS::Task
