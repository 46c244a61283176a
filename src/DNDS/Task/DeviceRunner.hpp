/// @file DeviceRunner.hpp
/// @brief Runs a plan on two streams of the device, from graphs where they can be captured.
#pragma once

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Task/PlanState.hpp"

#include <map>
#include <optional>
#include <vector>

namespace DNDS::Task {

/// Work queued at once: parts that follow each other in a stream, or another step.
/// Batches are the unit of dependence between the streams (one event each) and of capture. A transfer, call or swap
/// is a batch of its own.
/// A batch waits for batches with smaller numbers only, and the host queues batches by number: the two streams cannot
/// wait for each other in a circle.
struct DeviceBatch {
    /// Boundary has the high priority: peers wait for its results.
    enum StreamId : std::size_t { Inner, Boundary };

    StreamId streamId = Boundary;
    /// Indices into PlanModel::steps, in the order of queueing.
    std::vector<std::size_t> steps;
    /// Batches of the other stream that must end first; ascending. Those of the same stream are ordered by the
    /// stream.
    std::vector<std::size_t> waits;
    bool awaited = false; ///< a batch of the other stream waits for it
    bool known = false;   ///< ran once, so that nothing is initialised during capture
    /// Recorded after the batch in each run if it is `awaited`.
    Device::Event event;
    /// Captured graphs by DeviceRunner::memoryKey: kernels in them hold addresses, and swaps alternate between a few.
    /// Empty entries are captured by the next run with their key.
    std::map<std::uint64_t, Device::Graph> graphs;
};

/// The device's side of a plan. Parts that the next exchange sends, or that need the results of the last one, run on a
/// stream of high priority, as do exchanges; the others on a second stream. Consecutive parts of a stream
/// are a batch: run directly the first time, captured the second time, replayed from then on. Local.
/// Protocol of a run: both streams first wait for the user's stream, the batches are queued in the plan's order, then
/// the user's stream waits for both. So the user's stream sees a run as one piece of work, and the host is free
/// between waits for peers.
/// No deadlock with peers: the host blocks in Wait steps and before calls only, and all batches before such a step have
/// been queued on both streams by then, including all work that peers wait for.
class Plan::DeviceRunner {
  public:
    /// Copies lists of rows to the device. Throws NotBuiltError, MemoryError.
    explicit DeviceRunner(State &state);
    ~DeviceRunner();

    /// Queues a run after the work on the executor's stream. The host waits for exchanges and before calls only.
    void start();
    /// The stream on which calls queue work: after the steps that they depend on.
    Executor executor() const { return Executor::device(boundary_.handle()); }
    /// Waits for all queued work.
    void wait();
    /// The same, ignoring errors.
    void abandon() noexcept;

    const PlanGraphs &use() const noexcept { return use_; }
    /// The rows of list `k` of a reduction, on the device.
    const PartRows &reducedRows(std::size_t reduction, std::size_t k) const;

  private:
    struct Rows;
    struct Times;
    using Batch = DeviceBatch;
    using StreamId = DeviceBatch::StreamId;
    static constexpr StreamId Inner = DeviceBatch::Inner, Boundary = DeviceBatch::Boundary;

    /// Copies lists of rows to the device.
    void copyRows(Rows &rows, const std::vector<LocalIndex> &list) const;
    void copySums(Rows &rows, const Part &part) const;
    /// Groups the steps into batches, each in a stream.
    /// O(steps + dependences), once.
    void makeBatches();
    std::size_t streamIdOf(const PlanStep &step) const;
    /// Ends the open batch.
    void close(std::optional<Batch> &open);
    /// Queues a batch, which starts when the batches it depends on have ended.
    void issue(Batch &batch);
    void runBatch(Batch &batch);
    void runParts(const Batch &batch);
    void runPart(const Part &part, const Rows &rows);
    Device::StreamHandle streamOf(DeviceBatch::StreamId streamId) const;
    /// While tracing: runs one of `work`, which queues the step, between two time stamps.
    template <class Work>
    void record(std::size_t step, DeviceBatch::StreamId streamId, const Work &work);
    /// Copies arrays that the host has written to the device.
    void bringToDevice();
    /// Takes the views of the batch's tasks, once a run. Not while capturing: views are taken by the host, and the
    /// captured kernels keep them by value.
    void bind(const Batch &batch);
    /// Runs `work` directly, captures it, or launches its graph.
    template <class Work>
    void replay(Batch &batch, const Work &work);
    /// Key of a captured graph: the memory of all arrays, and the pulls that this run leaves out.
    /// O(arrays). A generation is the number of an allocation, so equal keys mean equal addresses.
    std::uint64_t memoryKey() const;
    /// Runs a call or a swap: launches without waiting, exchanges after all queued work, others with their arrays on
    /// the host.
    void runCallOrSwap(const PlanStep &step);

    State &state_;
    // Streams before everything that is queued on them.
    Device::Stream inner_;
    Device::Stream boundary_{Device::Priority::High};
    std::vector<Batch> batches_;
    /// [steps] The batch of each step.
    std::vector<std::size_t> batchOf_;
    std::vector<Times> times_;                   ///< [steps], while tracing
    std::vector<Rows> rows_;                     ///< [parts]
    std::vector<Rows> finishRows_;               ///< [finishes]
    std::vector<std::vector<Rows>> reducedRows_; ///< [reductions][lists]
    std::optional<Batch> whole_;                 ///< all batches, if they are device work only
    PlanGraphs use_;
};

} // namespace DNDS::Task
