// Streams, events and graphs.

#include "Streams.hpp"

#include "Check.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Stream.hpp"

#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace DNDS::Device {

namespace {

cudaEvent_t native(EventHandle event) {
    DNDS_CHECK(event != nullptr, ArgumentError, "this event was moved from");
    return reinterpret_cast<cudaEvent_t>(event);
}

/// Marks the end of the work that a stream held when this was made. Without timing: such events are cheaper to record
/// and query.
class RecordedEvent {
  public:
    explicit RecordedEvent(cudaStream_t stream) {
        check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event");
        const cudaError_t status = cudaEventRecord(event_, stream);
        if (status != cudaSuccess)
            static_cast<void>(cudaEventDestroy(event_));
        check(status, "recording an event");
    }
    RecordedEvent(const RecordedEvent &) = delete;
    RecordedEvent &operator=(const RecordedEvent &) = delete;
    ~RecordedEvent() { static_cast<void>(cudaEventDestroy(event_)); }

    /// Also true after a device error, when no work runs any more; the next CUDA call reports the reason.
    bool passed() const noexcept {
        if (cudaEventQuery(event_) != cudaErrorNotReady)
            return true;
        // A pending event counts as an error in CUDA.
        static_cast<void>(cudaGetLastError());
        return false;
    }

  private:
    cudaEvent_t event_ = nullptr;
};
/// Shared by all ranges that were freed while it was pending.
using SharedRecord = std::shared_ptr<const RecordedEvent>;

/// The streams of this process. Never destroyed, as arrays may outlive anything else.
/// The lock order is that of the pool, then this: no function takes the pool's lock while it holds `mutex`.
struct Streams {
    std::mutex mutex; ///< also held where a stream may begin or join a capture, so that none does during a query of all
    std::set<cudaStream_t> streams{nullptr};
    std::vector<SharedRecord> uses; ///< uses by other streams, not yet known to be complete

    static Streams &instance() {
        static auto *streams = new Streams;
        return *streams;
    }
    void forgetPassedUses() {
        std::erase_if(uses, [](const SharedRecord &use) { return use->passed(); });
    }
};

// Not for the default stream while others are captured: see defaultStreamIsClosed.
bool captures(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &status), "asking whether a stream is captured");
    return status != cudaStreamCaptureStatusNone;
}

} // namespace

bool defaultStreamIsClosed() {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t answer = cudaStreamIsCapturing(nullptr, &status);
    if (answer != cudaErrorStreamCaptureImplicit)
        return false;
    static_cast<void>(cudaGetLastError());
    return true;
}

// Streams without work need no event. The default stream, while closed, gets its event at the first query afterwards,
// which may wait for later work, too, but is safe.
// O(streams) queries, and an event for each busy stream. Work queued later does not delay the fence, unlike a query
// of the stream itself. A poll stops at the first pending event.
std::function<bool()> makeFence() {
    std::vector<SharedRecord> records;
    Streams &all = Streams::instance();
    const std::scoped_lock lock(all.mutex);
    bool defaultLater = defaultStreamIsClosed();
    for (cudaStream_t stream : all.streams) {
        if ((stream == nullptr && defaultLater) || captures(stream))
            continue;
        const cudaError_t status = cudaStreamQuery(stream);
        if (status == cudaSuccess)
            continue;
        static_cast<void>(cudaGetLastError());
        if (status != cudaErrorNotReady)
            check(status, "asking for a stream");
        records.push_back(std::make_shared<RecordedEvent>(stream));
    }
    all.forgetPassedUses();
    records.insert(records.end(), all.uses.begin(), all.uses.end());
    return [records = std::move(records), defaultLater]() mutable {
        if (defaultLater) {
            if (defaultStreamIsClosed())
                return false;
            records.push_back(std::make_shared<RecordedEvent>(nullptr));
            defaultLater = false;
        }
        while (!records.empty() && records.back()->passed())
            records.pop_back();
        return records.empty();
    };
}

// Streams of other libraries: fences do not know them otherwise.
// One event a call: the record covers work queued on that stream before it, and every later fence includes it until
// it has passed.
void recordUse(void *stream) {
    requireDevice("record a stream's use of memory");
    const RelaxedCaptureScope relaxed;
    const auto user = static_cast<cudaStream_t>(stream);
    Streams &all = Streams::instance();
    const std::scoped_lock lock(all.mutex);
    // The default stream cannot be captured, and must not be asked while others are.
    DNDS_CHECK(user == nullptr || !captures(user), StateError,
               "a stream's use of memory cannot be recorded while its work is captured for a graph: call recordUse "
               "after the graph was launched");
    // Own streams are asked by each fence.
    if (all.streams.contains(user))
        return;
    all.forgetPassedUses();
    all.uses.push_back(std::make_shared<RecordedEvent>(user));
}

// Non-blocking: CUDA's legacy default stream does not order itself with it. Events do.
StreamHandle createStream(Priority priority) {
    requireDevice("create a stream");
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for stream priorities");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority == Priority::High ? greatest : least),
          "creating a stream");
    Streams &all = Streams::instance();
    const std::scoped_lock lock(all.mutex);
    all.streams.insert(stream);
    return reinterpret_cast<StreamHandle>(stream);
}

// Waits first: makeFence no longer asks this stream, whose work may use memory that is freed now.
void destroyStream(StreamHandle stream) noexcept {
    if (!stream)
        return;
    const RelaxedCaptureScope relaxed; // or a thread that captures would lose its graph
    static_cast<void>(cudaStreamSynchronize(native(stream)));
    Streams &all = Streams::instance();
    const std::scoped_lock lock(all.mutex);
    all.streams.erase(native(stream));
    static_cast<void>(cudaStreamDestroy(native(stream)));
}

void synchronize(StreamHandle stream) {
    if (!available())
        return;
    requireDevice("wait for a stream"); // the default stream is that of the thread's device
    const RelaxedCaptureScope relaxed;
    check(cudaStreamSynchronize(native(stream)), "waiting for a stream");
}

void synchronizeAll() {
    if (!available())
        return;
    requireDevice("wait for the device");
    check(cudaDeviceSynchronize(), "waiting for the device");
}

EventHandle createEvent() {
    requireDevice("create an event");
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
    return reinterpret_cast<EventHandle>(event);
}

void destroyEvent(EventHandle event) noexcept {
    if (event)
        static_cast<void>(cudaEventDestroy(reinterpret_cast<cudaEvent_t>(event)));
}

void recordEvent(EventHandle event, StreamHandle stream) {
    requireDevice("record an event");
    check(cudaEventRecord(native(event), native(stream)), "recording an event");
}

void waitEvent(StreamHandle stream, EventHandle event) {
    requireDevice("wait for an event");
    Streams &all = Streams::instance();
    const std::scoped_lock lock(all.mutex); // the stream may join a capture
    check(cudaStreamWaitEvent(native(stream), native(event), 0), "making a stream wait for an event");
}

bool eventReached(EventHandle event) {
    const RelaxedCaptureScope relaxed;
    const cudaError_t status = cudaEventQuery(native(event));
    if (status == cudaErrorNotReady) {
        static_cast<void>(cudaGetLastError());
        return false;
    }
    check(status, "asking for an event");
    return true;
}

// The function must not call CUDA; the driver runs it in a thread of its own.
void callHost(StreamHandle stream, void (*function)(void *), void *argument) {
    requireDevice("queue a call of the host");
    check(cudaLaunchHostFunc(native(stream), function, argument), "queueing a call of the host");
}

void synchronizeEvent(EventHandle event) {
    const RelaxedCaptureScope relaxed;
    check(cudaEventSynchronize(native(event)), "waiting for an event");
}

// ---------------------------------------------------------------------------------------------------------------------
// Graphs

/// Instantiated: the graph itself is destroyed after that.
struct GraphImpl {
    cudaGraphExec_t executable = nullptr;
};

// Relaxed mode: allocations and other streams are not affected; only work queued on these streams is captured.
void beginCapture(StreamHandle stream) {
    requireDevice("capture a graph");
    DNDS_CHECK(stream != nullptr, ArgumentError, "the default stream cannot be captured; make one of your own");
    Streams &all = Streams::instance();
    const std::scoped_lock lock(all.mutex);
    check(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeRelaxed), "beginning the capture of a graph");
}

GraphHandle endCapture(StreamHandle stream) {
    auto result = std::make_unique<GraphImpl>();
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(native(stream), &graph),
          "ending the capture of a graph (streams that joined must be joined back by events, and nothing may be "
          "waited for meanwhile)");
    // Without it, all kernels would run with the priority of the stream that launches the graph.
    const cudaError_t status =
        cudaGraphInstantiate(&result->executable, graph, cudaGraphInstantiateFlagUseNodePriority);
    static_cast<void>(cudaGraphDestroy(graph));
    check(status, "making a captured graph executable");
    return result.release();
}

// Also asked in builds that run without a device; nothing is captured then.
bool isCapturing(StreamHandle stream) {
    if (!available())
        return false;
    requireDevice("ask whether a stream is captured");
    return captures(native(stream));
}

void launchGraph(GraphHandle graph, StreamHandle stream) {
    DNDS_CHECK(graph != nullptr, ArgumentError, "this graph has no work: capture some first");
    requireDevice("launch a graph");
    check(cudaGraphLaunch(graph->executable, native(stream)), "launching a graph");
}

void destroyGraph(GraphHandle graph) noexcept {
    if (!graph)
        return;
    static_cast<void>(cudaGraphExecDestroy(graph->executable));
    delete graph;
}

} // namespace DNDS::Device
