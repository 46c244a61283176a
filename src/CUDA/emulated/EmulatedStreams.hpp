/// @file EmulatedStreams.hpp
/// @brief Queues of work that threads run late and in random order, emulating a device.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>

namespace DNDS::Device {

using EmulatedWork = std::function<void()>;

/// Shared: waiting work may outlive the event.
using SharedEvent = std::shared_ptr<EventImpl>;
struct EmulatedEntry;

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

    static SharedEvent makeEvent();
    void record(const SharedEvent &event, StreamHandle stream);
    void wait(StreamHandle stream, const SharedEvent &event);
    bool reached(const SharedEvent &event);
    void synchronize(const SharedEvent &event);

    void beginCapture(StreamHandle stream);
    GraphHandle endCapture(StreamHandle stream);
    bool isCapturing(StreamHandle stream);
    void launch(const GraphImpl &graph, StreamHandle stream);
    static void destroy(GraphHandle graph) noexcept;

  private:
    using Lock = std::unique_lock<std::mutex>;

    StreamImpl &resolve(StreamHandle stream) { return stream ? *stream : *default_; }
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

    /// Guards all streams, events and captures.
    std::mutex mutex_;
    std::condition_variable changed_; ///< work was added or finished
    /// The stream of null handles. Never deleted.
    StreamImpl *const default_;
    std::set<StreamImpl *> streams_{default_};
    /// Chooses the order of work.
    std::mt19937 random_;
    /// The threads run.
    bool started_ = false;
};

} // namespace DNDS::Device
