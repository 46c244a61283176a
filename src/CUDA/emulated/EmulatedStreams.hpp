/// @file EmulatedStreams.hpp
/// @brief Queues of work that threads run late and in random order, emulating a device.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <vector>

namespace DNDS::Device {

using EmulatedWork = std::function<void()>;

/// Work and its dependencies, by number within its graph.
struct EmulatedNode {
    EmulatedWork work;
    std::vector<std::size_t> after;
};

/// A graph under construction, shared by its streams and events.
struct EmulatedCapture {
    std::vector<EmulatedNode> nodes;
    std::vector<StreamHandle> streams; ///< streams that joined; the first one began the capture
    bool broken = false;               ///< whether an operation occurred that graphs cannot hold
    bool ended = false;
};

/// Nodes are numbered in the order of capture.
struct GraphImpl {
    std::vector<EmulatedNode> nodes;
};

/// Shared: waiting work may outlive the event.
struct EventImpl {
    std::uint64_t recorded = 0; ///< number of records
    std::uint64_t reached = 0;  ///< the latest of these records that the device has passed
    std::exception_ptr failure; ///< failure of the stream at the last record
    std::shared_ptr<EmulatedCapture> capture;
    std::vector<std::size_t> captured; ///< nodes that precede the event
};
using SharedEvent = std::shared_ptr<EventImpl>;

/// One step of a stream: work, a record of an event, or a wait for one.
struct EmulatedEntry {
    EmulatedWork work;
    SharedEvent record; ///< event to record, if set
    SharedEvent wait;   ///< event to wait for, if set, until `version` has been passed
    std::uint64_t version = 0;
};

/// A queue. All members are guarded by EmulatedStreams' mutex.
struct StreamImpl {
    std::deque<EmulatedEntry> entries;
    bool running = false;       ///< whether the front entry is executing
    std::exception_ptr failure; ///< failure of a kernel, not yet reported
    std::shared_ptr<EmulatedCapture> capture;
    std::vector<std::size_t> captured; ///< nodes that the next node depends on

    bool idle() const { return entries.empty() && !running; }
};

/// The queues and their threads. Never destroyed, since static arrays may outlive everything else.
/// Thread-safe.
class EmulatedStreams {
  public:
    EmulatedStreams();

    StreamHandle create();
    void destroy(StreamHandle stream) noexcept;
    void push(StreamHandle stream, EmulatedWork work);
    void synchronize(StreamHandle stream);
    void synchronizeAll();
    /// Waits without reporting failures.
    void finishAll() noexcept;
    /// Only checks the stream: freeing memory waits for all streams anyway.
    void recordUse(StreamHandle stream);

    void record(const SharedEvent &event, StreamHandle stream);
    void wait(StreamHandle stream, const SharedEvent &event);
    bool reached(const SharedEvent &event);
    void synchronize(const SharedEvent &event);

    void beginCapture(StreamHandle stream);
    std::unique_ptr<GraphImpl> endCapture(StreamHandle stream);
    bool isCapturing(StreamHandle stream);
    void launch(const GraphImpl &graph, StreamHandle stream);

  private:
    using Lock = std::unique_lock<std::mutex>;

    StreamImpl &resolve(StreamHandle stream) { return stream ? *stream : default_; }
    void enqueue(StreamImpl &stream, EmulatedEntry entry);
    /// Throws StateError if the stream is captured.
    static void refuseCapturing(const StreamImpl &stream, const char *what);
    static void throwFailure(std::exception_ptr &failure);
    /// A random stream whose first entry may run; null if none may.
    StreamImpl *chooseRunnable();
    /// The loop of each thread.
    void runForever();
    /// Runs a stream's first entry, without the lock. Failures of work stay with the stream until a caller waits.
    void runOne(Lock &lock, StreamImpl &stream);

    std::mutex mutex_;
    std::condition_variable changed_; ///< work was added or finished
    StreamImpl default_;
    std::set<StreamImpl *> streams_{&default_};
    std::mt19937 random_;
    bool started_ = false;
};

/// Runs nodes in a random order that respects their dependencies.
void runNodes(const std::vector<EmulatedNode> &nodes, std::mt19937 &random);

} // namespace DNDS::Device
