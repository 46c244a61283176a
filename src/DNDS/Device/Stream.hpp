/// @file Stream.hpp
/// @brief Order of work on the device.
///
/// - `Stream`, `Event`: owners of a device stream and of a device event
/// - `Graph`: device work that is captured once and launched many times
/// - `recordUse`: for streams that DNDS did not make, but whose work uses memory of DNDS
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <memory>
#include <utility>

namespace DNDS::Device {

/// Owns a queue of device work: its copies and kernels run in order, concurrently with other streams. Move-only.
///
///     Device::Stream stream;
///     field.toDevice(stream);   // queued
///     stream.synchronize();     // now the device has it
///
/// Local. The constructor throws NotBuiltError without a device back end; the destructor waits for the work.
class Stream {
  public:
    /// A new stream; kernels of a higher priority start first where both wait.
    explicit Stream(Priority priority = Priority::Normal) : handle_(createStream(priority)) {}

    /// The handle to pass on; null (the default stream) in a moved-from object.
    StreamHandle handle() const noexcept { return handle_.get(); }
    operator StreamHandle() const noexcept { return handle_.get(); }

    /// Returns when everything queued so far has run.
    void synchronize() const { Device::synchronize(handle_.get()); }

  private:
    std::unique_ptr<StreamImpl, EndBy<destroyStream>> handle_;
};

/// A point in a stream that other streams and the host wait for. Move-only; Local.
///
///     Device::Event packed;
///     packed.record(boundary);          // after what is queued now
///     packed.holdBack(interior);        // later work on interior runs after it
///     packed.synchronize();             // the host waits, too
///
/// The constructor throws NotBuiltError without a device. Waiting for an event that was never recorded returns at once.
class Event {
  public:
    Event() : handle_(createEvent()) {}

    /// Null in a moved-from object.
    EventHandle handle() const noexcept { return handle_.get(); }

    /// The event happens when the work queued on `stream` until now has run. Returns at once.
    void record(StreamHandle stream) const { recordEvent(handle_.get(), stream); }
    /// Makes later work on `stream` wait for the event; returns at once.
    void holdBack(StreamHandle stream) const { waitEvent(stream, handle_.get()); }
    bool reached() const { return eventReached(handle_.get()); }
    void synchronize() const { synchronizeEvent(handle_.get()); }

  private:
    std::unique_ptr<EventImpl, EndBy<destroyEvent>> handle_;
};

/// Work queued on `later` from now on runs after the work that `earlier` holds now.
inline void runAfter(StreamHandle later, StreamHandle earlier) {
    const Event event;
    event.record(earlier);
    event.holdBack(later);
}

/// Kernels and copies captured from a stream and from streams joined to it by events. Replaying costs one launch.
/// Move-only; Local.
///
///     const auto step = Device::Graph::capture(stream, [&] {
///         parallelFor(Executor::device(stream), faces, flux);
///         parallelFor(Executor::device(stream), cells, update);
///     });
///     for (int i = 0; i < steps; ++i)
///         step.launch(stream);
///
/// Kernel arguments and addresses are those of the capture: numbers that change from step to step belong in device
/// memory. Nothing may be allocated, waited for or sent while capturing, and memory that the graph uses must stay.
class Graph {
  public:
    /// Empty; cannot be launched.
    Graph() = default;

    /// Captures what `work` queues on `stream`, which must not be the default stream. Nothing runs. If `work` throws,
    /// the capture ends. @throws StateError if something cannot be captured.
    template <class Work>
    static Graph capture(StreamHandle stream, Work &&work) {
        beginCapture(stream);
        {
            const OnFailure undo([&] { // the active exception says more than that of the capture
                static_cast<void>(attempt([&] { destroyGraph(endCapture(stream)); }));
            });
            std::forward<Work>(work)();
        }
        Graph graph;
        graph.handle_.reset(endCapture(stream));
        return graph;
    }

    /// Whether there is a graph to launch.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /// Queues the graph as one entry of `stream`. @throws ArgumentError for an empty graph.
    void launch(StreamHandle stream) const { launchGraph(handle_.get(), stream); }

  private:
    std::unique_ptr<GraphImpl, EndBy<destroyGraph>> handle_;
};

/// Keeps device memory that is freed from now on from being reused until all work queued so far on `stream`, a
/// `cudaStream_t` of this process's device, has run. DNDS's own streams and the default stream need no such call.
///
///     myKernel<<<blocks, threads, 0, stream>>>(u.deviceView<DeviceBackend::CUDA>());
///     Device::recordUse(stream); // after the work is queued, before the memory is freed: arrays resized or destroyed
///
/// The stream may be destroyed afterwards. Local, thread-safe, does not wait. @throws NotBuiltError without a device;
/// StateError while the stream is captured (call it after the graph was launched); ArgumentError on the emulated device
/// for streams that are not its own.
void recordUse(void *stream);

} // namespace DNDS::Device
