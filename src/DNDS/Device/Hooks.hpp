/// @file Hooks.hpp
/// @brief The seam through which a device joins DNDS at link time: memory, streams, events, graphs, kernels.
///
/// Everything here is only declared. Exactly one of `src/CUDA/real`, `src/CUDA/emulated` and `src/CUDA/absent` defines
/// it, so that nothing else in DNDS is compiled differently with a device. `emulated` is host memory posing as a
/// device: the host may not touch it outside copies and kernels, which makes a forgotten transfer fault, and threads
/// run what streams hold late and in random order, which makes a forgotten wait show. In `absent`, whatever needs a
/// device throws `NotBuiltError`.
///
/// These are the bare functions; `Stream`, `Event`, `Graph`, `SharedMemory` and `parallelFor` are what one uses. All
/// are Local. Whatever fails throws: NotBuiltError where no device is available, MemoryError without room, StateError
/// for everything else that the device reports, ArgumentError where the emulated device finds a mistake.
#pragma once

#include "DNDS/Base/MemorySpace.hpp"
#include "DNDS/Base/Types.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace DNDS::Device {

struct StreamImpl;
/// Names a queue of device work whose entries run in order; null is the default stream. Streams do not wait for each
/// other, nor for the default stream. `Stream` owns one.
using StreamHandle = StreamImpl *;

struct EventImpl;
/// Names a point in a stream. `Event` owns one.
using EventHandle = EventImpl *;

struct GraphImpl;
/// Names work that was captured, to be run again and again. `Graph` owns one.
using GraphHandle = GraphImpl *;

// ---------------------------------------------------------------------------------------------------------------------
// The device

/// The back end that was linked: "cuda", "emulated" or "absent".
std::string_view name();

/// Whether a device can be used in this process. The answer does not change while the process runs.
bool available();

/// Why `available()` is false and what to do about it; empty where a device is available.
std::string unavailableReason();

/// What is known of the device in use.
struct DeviceInfo {
    std::string name;            ///< as its maker calls it
    std::string identity;        ///< the same text in two processes says: the same device
    std::size_t memoryBytes = 0; ///< in total
    int number = 0;              ///< of the device among `count`
    int count = 0;               ///< of devices that this process sees
};
DeviceInfo deviceInfo();

/// Chooses one of several devices for this process: `number` modulo how many it sees; ranks pass `rankOnMachine`, or
/// `rankByLauncher` before MPI has started. Call it first: what was allocated before stays where it is.
void useDevice(int number);

// ---------------------------------------------------------------------------------------------------------------------
// Memory

/// The alignment in bytes of what `allocate` returns, at least.
inline constexpr std::size_t allocationAlignment = 256;

/// Allocates uninitialised device memory, which other processes may open by `share`; null for 0 bytes. A real device
/// keeps memory that was given back for later allocations.
void *allocate(std::size_t bytes);

/// Gives memory from `allocate` back, once all work that was queued before has run; null is allowed. A real device is
/// not waited for: the memory is handed out again when that work has run.
void deallocate(void *pointer) noexcept;

/// Host memory that copies reach at full speed and without holding up the caller, and that kernels may read and write.
/// Aligned as device memory; null for 0 bytes.
void *allocatePinned(std::size_t bytes);
void deallocatePinned(void *pointer) noexcept;

/// Makes host memory of others, in whole pages, pinned until `unpin`.
void pin(void *pointer, std::size_t bytes);
void unpin(void *pointer) noexcept;

/// Queues a copy of `bytes` bytes on `stream`. It may run at any time until the stream was waited for, so the caller
/// keeps both sides alive, does not write the source and does not read the destination until then.
void copy(void *destination, MemorySpace destinationSpace, const void *source, MemorySpace sourceSpace,
          std::size_t bytes, StreamHandle stream);

/// Names device memory in a message to another process of the same machine, with the offset into its allocation.
struct SharedHandle {
    std::array<std::byte, 128> bytes{};
};

/// A handle to the memory at `pointer` and behind it, to the end of its allocation. The memory stays with its owner,
/// who gives it back when nobody has it open any more.
SharedHandle share(const void *pointer);

/// Where this process reaches what a process on this machine shared; in the process that shared it, its own address.
/// @throws StateError where the two processes cannot share memory; ArgumentError where the handle is none, or old.
void *openShared(const SharedHandle &handle);
/// Takes what `openShared` returned; null is allowed.
void closeShared(void *pointer) noexcept;

/// What is given to MPI in place of device memory from `allocate`, where MPI takes device memory: on a real device the
/// pointer itself. The emulated device has an MPI that takes its memory where DNDS_EMULATED_DEVICE says so.
void *messageAddress(void *pointer, std::size_t bytes);

/// Why MPI cannot be given device memory of this back end, whatever it says of itself; empty where it may be asked.
std::string whyNoMessages();

// ---------------------------------------------------------------------------------------------------------------------
// Streams and events

/// Whether blocks of kernels that wait go ahead of those of other streams; a hint.
enum class Priority : unsigned char { Normal, High };

/// Makes a stream that does not wait for the default stream.
StreamHandle createStream(Priority priority = Priority::Normal);

/// Finishes the stream's work and destroys it; null is allowed.
void destroyStream(StreamHandle stream) noexcept;

/// Returns when everything queued on `stream` has run. @throws what a kernel of the stream reported.
void synchronize(StreamHandle stream);

/// Returns when everything queued on all streams of this process has run.
void synchronizeAll();

EventHandle createEvent();
void destroyEvent(EventHandle event) noexcept; ///< whoever waits for it still does; null is allowed

/// Moves the event to the end of what `stream` holds now.
void recordEvent(EventHandle event, StreamHandle stream);
/// What is queued on `stream` from now on runs after what the event's last record stood behind. Returns at once, and
/// does nothing for an event that was never recorded.
void waitEvent(StreamHandle stream, EventHandle event);
/// Whether everything before the event's last record has run; true for an event that was never recorded.
bool eventReached(EventHandle event);
/// Returns when it has.
void synchronizeEvent(EventHandle event);

// ---------------------------------------------------------------------------------------------------------------------
// Graphs

/// From now on work for `stream` is written down instead of run, and so is that of streams that wait for events
/// recorded there. Waiting on the host for any of these streams throws StateError until `endCapture`.
void beginCapture(StreamHandle stream);
/// The work written down. The streams that joined must have been joined back by events. @throws StateError where they
/// were not, or where something was done that cannot be captured; the capture has ended then, too.
GraphHandle endCapture(StreamHandle stream);
bool isCapturing(StreamHandle stream);
/// Queues all of the graph's work as one entry of `stream`. Memory that it names must still be there.
void launchGraph(GraphHandle graph, StreamHandle stream);
void destroyGraph(GraphHandle graph) noexcept; ///< null is allowed

// ---------------------------------------------------------------------------------------------------------------------
// Kernels; parallelFor calls these

/// Does the work of threads first, ..., last - 1 of a kernel.
using KernelBody = std::function<void(index first, index last)>;

/// Queues a kernel that the host compiler compiled. Only the emulated device can run it: blocks of threads in random
/// order. An exception is thrown by the next call that waits for the stream. @throws NotBuiltError elsewhere.
void launchHostKernel(StreamHandle stream, index threads, KernelBody body);

/// Throws what was wrong with the kernel that was just launched. Real device only; `requireDevice` comes first.
void checkLaunch(std::string_view kernel);

/// Throws NotBuiltError, saying what cannot be done and why, where no device is available.
void requireDevice(std::string_view what);

/// Announces a kernel on `stream`: under `emulated` the work queued there runs first, then device memory opens to the
/// host until the matching `endKernel`. Does nothing under `real`. Use `KernelScope`.
void beginKernel(StreamHandle stream);
void endKernel(StreamHandle stream) noexcept;

} // namespace DNDS::Device
