#include "EmulatedStreams.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS::Device {

/// Work and its dependencies, by number within its graph.
struct EmulatedNode {
    EmulatedWork work;
    std::vector<std::size_t> after;
};

/// A graph under construction, shared by its streams and events.
/// Nodes are only appended: an edge leads from a lower to a higher number, so the graph has no cycle.
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

/// All members are guarded by the mutex of EmulatedStreams.
/// A record is passed if `reached` is at least its number: streams run entries in order, but records of one event
/// on several streams may pass in any order, hence the maximum in runOne.
struct EventImpl {
    std::uint64_t recorded = 0; ///< number of records
    std::uint64_t reached = 0;  ///< the latest of these records that the device has passed
    std::exception_ptr failure; ///< failure of the stream at the last record
    std::shared_ptr<EmulatedCapture> capture;
    std::vector<std::size_t> captured; ///< nodes that precede the event
};

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

namespace {

// Lists are short: a search for each node.
void appendMissing(std::vector<std::size_t> &to, const std::vector<std::size_t> &from) {
    for (const std::size_t node : from)
        if (std::find(to.begin(), to.end(), node) == to.end())
            to.push_back(node);
}

// Runs nodes in a random topological order: any node without open predecessors may run next, which exposes missing
// dependencies. O(nodes + edges). Method: Kahn, Topological sorting of large networks, Communications of the ACM 5,
// 1962.
void runNodes(const std::vector<EmulatedNode> &nodes, std::mt19937 &random) {
    std::vector<std::size_t> missing(nodes.size());
    std::vector<std::vector<std::size_t>> before(nodes.size());
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        missing[i] = nodes[i].after.size();
        for (const std::size_t earlier : nodes[i].after)
            before[earlier].push_back(i);
        if (missing[i] == 0)
            ready.push_back(i);
    }
    while (!ready.empty()) {
        std::swap(ready[random() % ready.size()], ready.back());
        const std::size_t node = ready.back();
        ready.pop_back();
        nodes[node].work();
        for (const std::size_t later : before[node])
            if (--missing[later] == 0)
                ready.push_back(later);
    }
}

} // namespace

EmulatedStreams::EmulatedStreams() : default_(new StreamImpl), random_(std::random_device{}()) {}

// Priorities are ignored: any order that dependencies allow occurs anyway.
StreamHandle EmulatedStreams::create() {
    auto stream = std::make_unique<StreamImpl>();
    const Lock lock(mutex_);
    streams_.insert(stream.get());
    return stream.release();
}

// A captured stream that disappears can no longer be joined back: its graph is void.
void EmulatedStreams::destroy(StreamHandle stream) noexcept {
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return stream->idle(); });
    if (stream->capture)
        stream->capture->broken = true;
    streams_.erase(stream);
    lock.unlock();
    delete stream;
}

// The caller holds the mutex. The threads start with the first work and run until the process ends.
void EmulatedStreams::enqueue(StreamImpl &stream, EmulatedEntry entry) {
    if (!started_) {
        for (int i = 0; i < 2; ++i) // so that kernels run concurrently
            std::thread([this] { runForever(); }).detach();
        started_ = true;
    }
    stream.entries.push_back(std::move(entry));
    changed_.notify_all();
}

// Captured work becomes a node that depends on the stream's latest nodes, and runs only when the graph is launched.
// O(1). Work of one stream runs in the order of the pushes; between streams, only events order it.
void EmulatedStreams::push(StreamHandle handle, EmulatedWork work) {
    const Lock lock(mutex_);
    StreamImpl &stream = resolve(handle);
    if (stream.capture) {
        stream.capture->nodes.push_back({std::move(work), stream.captured});
        stream.captured = {stream.capture->nodes.size() - 1};
        return;
    }
    enqueue(stream, {std::move(work), nullptr, nullptr, 0});
}

// As in CUDA, the failed call also voids the graph.
void EmulatedStreams::refuseCapturing(const StreamImpl &stream, const char *what) {
    if (!stream.capture)
        return;
    stream.capture->broken = true;
    throw StateError(fmt::format("a stream cannot be {} while its work is captured for a graph", what));
}

// Reported once, by the first call that waits.
void EmulatedStreams::throwFailure(std::exception_ptr &failure) {
    if (failure)
        std::rethrow_exception(std::exchange(failure, nullptr));
}

void EmulatedStreams::synchronize(StreamHandle handle) {
    Lock lock(mutex_);
    StreamImpl &stream = resolve(handle);
    refuseCapturing(stream, "waited for");
    changed_.wait(lock, [&] { return stream.idle(); });
    throwFailure(stream.failure);
}

// Failures stay with their streams, for the next call that waits.
void EmulatedStreams::finishAll() noexcept {
    Lock lock(mutex_);
    changed_.wait(lock, [&] {
        return std::all_of(streams_.begin(), streams_.end(), [](const StreamImpl *stream) { return stream->idle(); });
    });
}

// Freed memory waits for all streams anyway: only arguments are checked.
void EmulatedStreams::recordUse(StreamHandle handle) {
    const Lock lock(mutex_);
    DNDS_CHECK(handle == nullptr || streams_.count(handle) == 1, ArgumentError,
               "emulated device: this is not one of its streams, and others do not reach its memory");
    DNDS_CHECK(!resolve(handle).capture, StateError,
               "a stream's use of memory cannot be recorded while its work is captured for a graph: call recordUse "
               "after the graph was launched");
}

void EmulatedStreams::synchronizeAll() {
    {
        const Lock lock(mutex_);
        for (const StreamImpl *stream : streams_)
            refuseCapturing(*stream, "waited for");
    }
    finishAll();
    const Lock lock(mutex_);
    for (StreamImpl *stream : streams_)
        throwFailure(stream->failure);
}

// ---------------------------------------------------------------------------------------------------------------------
// Events

SharedEvent EmulatedStreams::makeEvent() { return std::make_shared<EventImpl>(); }

// The event keeps the number of the record: later records do not move waits that were queued before.
void EmulatedStreams::record(const SharedEvent &event, StreamHandle handle) {
    const Lock lock(mutex_);
    StreamImpl &stream = resolve(handle);
    event->capture = stream.capture;
    event->captured = stream.captured;
    if (stream.capture)
        return;
    enqueue(stream, {nullptr, event, nullptr, ++event->recorded});
}

// A wait for an event of a capture pulls the stream into that capture, as in CUDA.
// No deadlock: a wait names a record that was queued before it, so the first entry in the order of queueing can
// always run.
void EmulatedStreams::wait(StreamHandle handle, const SharedEvent &event) {
    const Lock lock(mutex_);
    StreamImpl &stream = resolve(handle);
    const bool inCapture = event->capture && !event->capture->ended;
    if (inCapture && !stream.capture) {
        if (&stream == default_) {
            event->capture->broken = true;
            throw StateError("the default stream cannot join the capture of a graph");
        }
        stream.capture = event->capture;
        stream.captured.clear();
        stream.capture->streams.push_back(&stream);
    }
    if (stream.capture) {
        if (stream.capture != event->capture) {
            stream.capture->broken = true;
            throw StateError("a stream whose work is captured for a graph cannot wait for an event outside of it");
        }
        appendMissing(stream.captured, event->captured);
        return;
    }
    if (event->recorded > event->reached)
        enqueue(stream, {nullptr, nullptr, event, event->recorded});
}

bool EmulatedStreams::reached(const SharedEvent &event) {
    const Lock lock(mutex_);
    if (event->capture && !event->capture->ended) {
        event->capture->broken = true;
        throw StateError("an event cannot be queried while it is captured for a graph");
    }
    if (event->reached < event->recorded)
        return false;
    throwFailure(event->failure);
    return true;
}

void EmulatedStreams::synchronize(const SharedEvent &event) {
    Lock lock(mutex_);
    if (event->capture && !event->capture->ended) {
        event->capture->broken = true;
        throw StateError("an event cannot be waited for while it is captured for a graph");
    }
    // Records made after this call are not waited for.
    const std::uint64_t version = event->recorded;
    changed_.wait(lock, [&] { return event->reached >= version; });
    throwFailure(event->failure);
}

// ---------------------------------------------------------------------------------------------------------------------
// Graphs

void EmulatedStreams::beginCapture(StreamHandle stream) {
    DNDS_CHECK(stream != nullptr, ArgumentError, "the default stream cannot be captured; make one of your own");
    const Lock lock(mutex_);
    DNDS_CHECK(!stream->capture, StateError, "the work of this stream is already being captured");
    stream->capture = std::make_shared<EmulatedCapture>();
    stream->capture->streams.push_back(stream);
    stream->captured.clear();
}

// Members leave the capture before anything is checked, so that streams are usable after a failure.
// O(nodes + edges): a search backward from the end finds the nodes that precede it.
GraphHandle EmulatedStreams::endCapture(StreamHandle stream) {
    const Lock lock(mutex_);
    DNDS_CHECK(stream && stream->capture, StateError, "no work of this stream is being captured");
    const std::shared_ptr<EmulatedCapture> capture = stream->capture;
    // As in CUDA.
    DNDS_CHECK(capture->streams.front() == stream, StateError,
               "the capture of a graph must end on the stream where it began");
    const std::vector<std::size_t> ends = stream->captured;
    capture->ended = true;
    for (StreamImpl *member : streams_)
        if (member->capture == capture) {
            member->capture = nullptr;
            member->captured.clear();
        }
    DNDS_CHECK(!capture->broken, StateError,
               "the graph is void: something was done while capturing that a graph cannot hold");
    // every node must precede the end of the stream that began
    std::vector<bool> joined(capture->nodes.size(), false);
    std::vector<std::size_t> open = ends;
    while (!open.empty()) {
        const std::size_t node = open.back();
        open.pop_back();
        if (joined[node])
            continue;
        joined[node] = true;
        open.insert(open.end(), capture->nodes[node].after.begin(), capture->nodes[node].after.end());
    }
    DNDS_CHECK(std::find(joined.begin(), joined.end(), false) == joined.end(), StateError,
               "the graph is void: a stream that joined the capture was not joined back by an event");
    return new GraphImpl{std::move(capture->nodes)};
}

bool EmulatedStreams::isCapturing(StreamHandle stream) {
    const Lock lock(mutex_);
    return resolve(stream).capture != nullptr;
}

// The whole graph is one entry of the stream, with an order of its own at each launch.
void EmulatedStreams::launch(const GraphImpl &graph, StreamHandle stream) {
    unsigned seed = 0;
    {
        const Lock lock(mutex_);
        seed = static_cast<unsigned>(random_());
    }
    push(stream, [nodes = graph.nodes, random = std::mt19937(seed)]() mutable { runNodes(nodes, random); });
}

void EmulatedStreams::destroy(GraphHandle graph) noexcept { delete graph; }

// ---------------------------------------------------------------------------------------------------------------------
// The threads

// Streams are queues; an entry may run if it is the first of its queue and the event that it waits for has been
// recorded. Any such entry is chosen, so programs that rely on more order than they ask for fail sooner or later.
StreamImpl *EmulatedStreams::chooseRunnable() {
    std::vector<StreamImpl *> runnable;
    for (StreamImpl *stream : streams_) {
        if (stream->running || stream->entries.empty())
            continue;
        const EmulatedEntry &next = stream->entries.front();
        if (!next.wait || next.wait->reached >= next.version)
            runnable.push_back(stream);
    }
    return runnable.empty() ? nullptr : runnable[random_() % runnable.size()];
}

// Starts one time in four up to 0.2 ms late: work that is rarely late hides races.
void EmulatedStreams::runOne(Lock &lock, StreamImpl &stream) {
    EmulatedEntry entry = std::move(stream.entries.front());
    stream.entries.pop_front();
    stream.running = true;
    if (entry.work) {
        const auto late = std::chrono::microseconds(random_() % 4 == 0 ? random_() % 200 : 0);
        lock.unlock();
        if (late.count() > 0)
            std::this_thread::sleep_for(late);
        const std::exception_ptr failure = attempt([&] { entry.work(); });
        entry.work = nullptr; // release its captures before others see that it has run
        lock.lock();
        if (failure && !stream.failure)
            stream.failure = failure;
    }
    if (entry.record) {
        entry.record->reached = std::max(entry.record->reached, entry.version);
        entry.record->failure = stream.failure;
    }
    stream.running = false;
    changed_.notify_all();
}

// The mutex is free while work runs and while nothing can.
void EmulatedStreams::runForever() {
    Lock lock(mutex_);
    while (true) {
        StreamImpl *stream = nullptr;
        changed_.wait(lock, [&] { return (stream = chooseRunnable()) != nullptr; });
        runOne(lock, *stream);
    }
}

} // namespace DNDS::Device
