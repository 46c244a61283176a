/// @file Hooks.hpp
/// @brief The interface that a device back end implements: memory, streams, events, graphs, kernels.
///
/// Everything here is only declared. Exactly one of `src/CUDA/real`, `src/CUDA/emulated` and `src/CUDA/absent` defines
/// it at link time, so nothing else in DNDS is compiled differently with a device. `emulated` is host memory posing as
/// a device: host access outside copies and kernels faults, which exposes a forgotten transfer; streams run late and in
/// random order, which exposes a forgotten wait. In `absent`, whatever needs a device throws `NotBuiltError`.
///
/// Programs use `Stream`, `Event`, `Graph`, `SharedMemory` and `parallelFor` instead of these functions. All are Local.
/// They throw NotBuiltError if no device is available, MemoryError, StateError for other errors of the device, and
/// ArgumentError for mistakes that the emulated device finds.
/// `KernelScope` marks where host code stands in for a device kernel.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace DNDS::Device {

struct StreamImpl;
/// A queue of device work that runs in order; null is the default stream. Streams do not wait for each other, nor for
/// the default stream. `Stream` owns one.
using StreamHandle = StreamImpl *;

struct EventImpl;
/// A point in a stream. `Event` owns one.
using EventHandle = EventImpl *;

struct GraphImpl;
/// Captured work that can be launched repeatedly. `Graph` owns one.
using GraphHandle = GraphImpl *;

/// For std::unique_ptr: ends what it owns by a function of this interface.
template <auto end>
struct EndBy {
    /// `pointer` is not null.
    template <class T>
    void operator()(T *pointer) const noexcept {
        end(pointer);
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// The device

/// The linked back end: "cuda", "emulated" or "absent".
std::string_view name();

/// Whether this process can use a device. The answer does not change.
bool available();

/// Why `available()` is false and what to do about it; else empty.
std::string unavailableReason();

/// Properties of the device in use.
struct DeviceInfo {
    std::string name;            ///< the vendor's name
    std::string identity;        ///< two processes with equal texts use the same device
    std::size_t memoryBytes = 0; ///< in total
    int number = 0;              ///< number of the device, of `count`
    int count = 0;               ///< devices visible to this process
};
DeviceInfo deviceInfo();

/// The scheduler that runs kernels of several processes concurrently on the device in use: those of processes with
/// equal texts. Empty: they take turns, and one that waits for another's keeps it from running.
std::string sharedScheduler();

/// Selects one of several devices for this process: `number` modulo the number of visible devices. Ranks pass
/// `rankOnMachine`, or `rankByLauncher` before MPI_Init. Call it first: memory allocated before stays where it is.
void useDevice(int number);

// ---------------------------------------------------------------------------------------------------------------------
// Memory

/// The minimum alignment in bytes of `allocate`.
inline constexpr std::size_t allocationAlignment = 256;

/// Allocates uninitialised device memory, which other processes may open through `share`; null for 0 bytes. A real
/// device pools freed memory.
void *allocate(std::size_t bytes);

/// Frees memory from `allocate` after all work queued before has run; null is allowed. A real device does not wait: the
/// pool reuses the memory when that work has run.
void deallocate(void *pointer) noexcept;

/// Pinned host memory: copies run at full speed and asynchronously, and kernels may read and write it. Aligned as
/// device memory; null for 0 bytes.
void *allocatePinned(std::size_t bytes);
void deallocatePinned(void *pointer) noexcept;

/// Pins host memory allocated elsewhere, in whole pages, until `unpin`.
void pin(void *pointer, std::size_t bytes);
void unpin(void *pointer) noexcept;

/// Queues a copy of `bytes` bytes on `stream`. It may run at any time until the stream has been waited for: until then
/// keep both sides alive, do not write the source and do not read the destination.
void copy(void *destination, MemorySpace destinationSpace, const void *source, MemorySpace sourceSpace,
          std::size_t bytes, StreamHandle stream);

/// Device memory in a message to another process on this machine, with the offset into its allocation.
struct SharedHandle {
    std::array<std::byte, 128> bytes{};
};

/// A handle to the memory from `pointer` to the end of its allocation. The owner keeps the memory and frees it only
/// when no process has it open.
SharedHandle share(const void *pointer);

/// Maps memory that another process on this machine shared; in the process that shared it, returns its own address.
/// @throws StateError if the two processes cannot share memory; ArgumentError for an invalid or outdated handle.
void *openShared(const SharedHandle &handle);
/// Closes what `openShared` returned; null is allowed.
void closeShared(void *pointer) noexcept;

/// Why kernels of this process cannot change words in memory of another device atomically, of which `identity` is in
/// its `DeviceInfo`; empty where they can. Loads and stores may reach it all the same.
std::string whyNoAtomics(const std::string &identity);

/// The pointer to pass to a GPU-aware MPI for device memory from `allocate`: on a real device the pointer itself. The
/// emulated device has such an MPI if DNDS_EMULATED_DEVICE says so.
void *messageAddress(void *pointer, std::size_t bytes);

/// Why MPI must not be given device memory of this back end, whatever MPI claims; empty if it may.
std::string whyNoMessages();

// ---------------------------------------------------------------------------------------------------------------------
// Streams and events

/// Whether waiting blocks of kernels are scheduled before those of other streams, also in captured graphs; a hint.
enum class Priority : unsigned char { Normal, High };

/// Creates a stream that does not wait for the default stream.
StreamHandle createStream(Priority priority = Priority::Normal);

/// Finishes the stream's work and destroys it; null is allowed.
void destroyStream(StreamHandle stream) noexcept;

/// Returns when everything queued on `stream` has run. @throws what a kernel of the stream reported.
void synchronize(StreamHandle stream);

/// Returns when everything queued on all streams of this process has run.
void synchronizeAll();

/// Creates an event, which was never recorded yet.
EventHandle createEvent();
void destroyEvent(EventHandle event) noexcept; ///< streams that wait for it still do; null is allowed

/// Records the event at the end of what `stream` holds now.
void recordEvent(EventHandle event, StreamHandle stream);
/// Later work on `stream` waits for the event's last record. Returns at once; does nothing for an event never recorded.
void waitEvent(StreamHandle stream, EventHandle event);
/// Whether all work before the event's last record has run; true for an event never recorded.
bool eventReached(EventHandle event);
/// Returns when all work before the event's last record has run.
void synchronizeEvent(EventHandle event);

// ---------------------------------------------------------------------------------------------------------------------
// Graphs

/// From now on work for `stream` is captured instead of run, as is that of streams that wait for events recorded there.
/// Waiting on the host for any of these streams throws StateError until `endCapture`.
void beginCapture(StreamHandle stream);
/// Ends the capture and returns its work. @throws StateError, with the capture ended, if a stream that joined was not
/// joined back by events, or if something was done that cannot be captured.
GraphHandle endCapture(StreamHandle stream);
bool isCapturing(StreamHandle stream);
/// Queues the graph as one entry of `stream`. The memory it uses must still exist.
void launchGraph(GraphHandle graph, StreamHandle stream);
void destroyGraph(GraphHandle graph) noexcept; ///< null is allowed

/// Queues a call of `function(argument)` on the host, in some thread; captured like other work. It must not throw, nor
/// use the device. `argument` has to live until it has run, and as long as graphs that captured it.
void callHost(StreamHandle stream, void (*function)(void *), void *argument);

// ---------------------------------------------------------------------------------------------------------------------
// Kernels; parallelFor calls these

/// Does the work of kernel threads first, ..., last - 1.
using KernelBody = std::function<void(index first, index last)>;

/// Queues a kernel compiled by the host compiler. Only the emulated device runs it: blocks of threads in random order.
/// The next call that waits for the stream throws its exception. @throws NotBuiltError elsewhere.
void launchHostKernel(StreamHandle stream, index threads, KernelBody body);

/// Throws the launch error of the last kernel, if any. Real device only; call `requireDevice` before.
void checkLaunch(std::string_view kernel);

/// Throws NotBuiltError if no device is available: "cannot `what`: reason".
void requireDevice(std::string_view what);

/// Announces a kernel on `stream`: under `emulated` the work queued there runs first, then the host may access device
/// memory until the matching `endKernel`. Does nothing under `real`. Use `KernelScope`.
void beginKernel(StreamHandle stream);
void endKernel(StreamHandle stream) noexcept;

/// Acts as one kernel launch on a stream: on the emulated device, code inside the scope may touch device memory and
/// sees the results of all work queued on the stream before. Free on a real device. Scopes nest. Local.
///
///     auto view = field.deviceView<DeviceBackend::CUDA>();
///     Device::KernelScope kernel(stream);
///     for (index i = 0; i < view.size(); ++i) view(i, 0) *= 2;   // emulated only
///
/// Device memory is open to all threads of the process while any scope is alive.
class KernelScope {
  public:
    /// Begins the scope: on the emulated device it returns when the work queued on `stream` has run. Null is the
    /// default stream.
    explicit KernelScope(StreamHandle stream = nullptr) : stream_(stream) { beginKernel(stream_); }
    ~KernelScope() { endKernel(stream_); }
    KernelScope(const KernelScope &) = delete;
    KernelScope &operator=(const KernelScope &) = delete;

  private:
    StreamHandle stream_;
};

} // namespace DNDS::Device
