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
    std::vector<StreamHandle> streams; ///< that joined; the first one began
    bool broken = false;               ///< an operation that graphs cannot hold
    bool ended = false;
};

struct GraphImpl {
    std::vector<EmulatedNode> nodes;
};

/// Shared: waiting work may outlive the event.
struct EventImpl {
    std::uint64_t recorded = 0; ///< number of records
    std::uint64_t reached = 0;  ///< the latest of these records that the device has passed
    std::exception_ptr failure; ///< of the stream when it was recorded last
    std::shared_ptr<EmulatedCapture> capture;
    std::vector<std::size_t> captured; ///< the nodes before it
};
using SharedEvent = std::shared_ptr<EventImpl>;

struct EmulatedEntry {
    EmulatedWork work;
    SharedEvent record; ///< if set, passes it
    SharedEvent wait;   ///< if set, runs when `version` of it was passed
    std::uint64_t version = 0;
};

struct StreamImpl {
    std::deque<EmulatedEntry> entries;
    bool running = false;       ///< the front entry is at work
    std::exception_ptr failure; ///< of a kernel, not reported yet
    std::shared_ptr<EmulatedCapture> capture;
    std::vector<std::size_t> captured; ///< the nodes that the next one waits for

    bool idle() const { return entries.empty() && !running; }
};

/// The queues and the threads. Never destroyed: static arrays may outlive anything else.
/// Thread-safe.
class EmulatedStreams {
  public:
    EmulatedStreams();

    StreamHandle create();
    void destroy(StreamHandle stream) noexcept;
    void push(StreamHandle stream, EmulatedWork work);
    void synchronize(StreamHandle stream);
    void synchronizeAll();
    /// Does not report failures.
    void finishAll() noexcept;
    /// Only checks: freeing memory finishes all streams.
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
    static void refuseCapturing(const StreamImpl &stream, const char *what);
    static void throwFailure(std::exception_ptr &failure);
    StreamImpl *chooseRunnable();
    void runForever();
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
