#include "DNDS/Device/Hooks.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/KernelLoading.hpp"
#include "DNDS/Device/Stream.hpp"

#include "EmulatedMemory.hpp"
#include "EmulatedStreams.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <unistd.h>

namespace DNDS::Device {

namespace {

/// The emulated device of this process. Never destroyed: static arrays may outlive anything else.
struct EmulatedDevice {
    EmulatedMemory memory;
    EmulatedStreams streams;

    static EmulatedDevice &instance() {
        static auto *device = new EmulatedDevice;
        return *device;
    }
};

// Options such as "lost" or "no-room" (emulatedDeviceOption) make single requests fail, for tests.
EmulatedMemory &memory() { return EmulatedDevice::instance().memory; }
EmulatedStreams &streams() { return EmulatedDevice::instance().streams; }

/// An event; its handle is the owner's address.
struct EventOwner {
    SharedEvent event = EmulatedStreams::makeEvent();
};
// Queued entries share the event, so that its owner may end before them.
const SharedEvent &eventOf(EventHandle handle) {
    DNDS_CHECK(handle != nullptr, ArgumentError, "this event was moved from");
    return reinterpret_cast<const EventOwner *>(handle)->event;
}

/// Threads of a kernel that run one after the other; blocks run in random order.
constexpr index blockSize = 64;

/// Threads within a block run in order: kernels of DNDS have no barriers.
/// O(blocks) memory for the permutation. A kernel that relies on an order of blocks gives different results from
/// run to run.
void runBlocks(index threads, const KernelBody &body, unsigned seed) {
    std::vector<index> blocks(static_cast<std::size_t>((threads + blockSize - 1) / blockSize));
    std::iota(blocks.begin(), blocks.end(), index{0});
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(seed));
    for (const index block : blocks)
        body(block * blockSize, std::min((block + 1) * blockSize, threads));
}

/// Opens device memory while a kernel runs.
class OpenMemory {
  public:
    OpenMemory() { memory().unlock(); }
    ~OpenMemory() { memory().lock(); }
    OpenMemory(const OpenMemory &) = delete;
    OpenMemory &operator=(const OpenMemory &) = delete;
};

// Unpredictable on purpose: each run of the tests tries other orders.
unsigned freshSeed() {
    thread_local std::mt19937 random(std::random_device{}());
    return static_cast<unsigned>(random());
}

/// A device lost in the middle of a run fails all later requests.
void requireNotLost() { DNDS_CHECK(!emulatedDeviceOption("lost"), StateError, "emulated device: it is lost"); }

} // namespace

std::string_view name() { return "emulated"; }
bool available() { return true; }
std::string unavailableReason() { return {}; }
void requireDevice(std::string_view /*what*/) {}

DeviceInfo deviceInfo() {
    DeviceInfo info;
    info.name = "emulated device";
    std::ifstream("/proc/sys/kernel/random/boot_id") >> info.identity; // one device per machine
    info.memoryBytes =
        static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    info.count = 1;
    return info;
}

std::string sharedScheduler() { return emulatedDeviceOption("takes-turns") ? std::string() : "processes of the host"; }

bool loadsKernelsLazily() { return emulatedDeviceOption("loads-lazily"); }

void useDevice(int number) { DNDS_CHECK(number >= 0, ArgumentError, "device {} does not exist", number); }

// ---------------------------------------------------------------------------------------------------------------------
// Memory

void *allocate(std::size_t bytes) {
    requireNotLost();
    DNDS_CHECK(!emulatedDeviceOption("no-room"), MemoryError, "emulated device: no room for {} bytes", bytes);
    return bytes == 0 ? nullptr : memory().allocate(bytes);
}

// Waits for everything: work that is still queued may use the memory.
void deallocate(void *pointer) noexcept {
    if (!pointer)
        return;
    streams().finishAll();
    memory().deallocate(pointer);
}

// Ordinary memory: copies by the host need no pinning.
void *allocatePinned(std::size_t bytes) {
    if (bytes == 0)
        return nullptr;
    void *pointer = ::operator new (bytes, std::align_val_t{allocationAlignment}, std::nothrow);
    DNDS_CHECK(pointer != nullptr, MemoryError, "no room for {} bytes of pinned host memory", bytes);
    return pointer;
}

void deallocatePinned(void *pointer) noexcept {
    if (!pointer)
        return;
    streams().finishAll();
    ::operator delete (pointer, std::align_val_t{allocationAlignment});
}

void pin(void * /*pointer*/, std::size_t /*bytes*/) {}
// Queued copies may still use the memory.
void unpin(void *pointer) noexcept {
    if (pointer)
        streams().finishAll();
}

// Addresses are checked when the copy is queued, where the caller can be named; the bytes move later.
void copy(void *destination, MemorySpace destinationSpace, const void *source, MemorySpace sourceSpace,
          std::size_t bytes, StreamHandle stream) {
    requireNotLost();
    if (bytes == 0)
        return;
    auto *to = destinationSpace == MemorySpace::Device ? memory().alias(destination, bytes)
                                                       : static_cast<std::byte *>(destination);
    const auto *from =
        sourceSpace == MemorySpace::Device ? memory().alias(source, bytes) : static_cast<const std::byte *>(source);
    streams().push(stream, [=] {
        std::memmove(to, from, bytes);
        countTransfer(destinationSpace, sourceSpace, bytes);
    });
}

SharedHandle share(const void *pointer) { return memory().share(pointer); }

void *openShared(const SharedHandle &handle) {
    DNDS_CHECK(!emulatedDeviceOption("no-sharing"), StateError, "emulated device: sharing memory is refused");
    return memory().open(handle);
}

void closeShared(void *pointer) noexcept {
    if (!pointer)
        return;
    streams().finishAll();
    memory().close(pointer);
}

// All ranks share the host's memory, so atomics always work, unless a test asks otherwise.
std::string whyNoAtomics(const std::string & /*identity*/) {
    return emulatedDeviceOption("no-peer-atomics") ? "emulated device: atomic operations on another rank's memory are "
                                                     "refused"
                                                   : std::string();
}

// ---------------------------------------------------------------------------------------------------------------------
// Streams, events, graphs

StreamHandle createStream(Priority /*priority*/) { return streams().create(); }
void destroyStream(StreamHandle stream) noexcept {
    if (stream)
        streams().destroy(stream);
}
void synchronize(StreamHandle stream) {
    requireNotLost();
    streams().synchronize(stream);
}
void synchronizeAll() {
    requireNotLost();
    streams().synchronizeAll();
}
void recordUse(void *stream) { streams().recordUse(static_cast<StreamHandle>(stream)); }

EventHandle createEvent() { return reinterpret_cast<EventHandle>(new EventOwner); }
void destroyEvent(EventHandle event) noexcept { delete reinterpret_cast<EventOwner *>(event); }
void recordEvent(EventHandle event, StreamHandle stream) {
    requireNotLost();
    streams().record(eventOf(event), stream);
}
// Returns at once; only the stream waits.
void waitEvent(StreamHandle stream, EventHandle event) {
    requireNotLost();
    streams().wait(stream, eventOf(event));
}
bool eventReached(EventHandle event) {
    requireNotLost();
    return streams().reached(eventOf(event));
}
void synchronizeEvent(EventHandle event) {
    requireNotLost();
    streams().synchronize(eventOf(event));
}

void beginCapture(StreamHandle stream) {
    DNDS_CHECK(!emulatedDeviceOption("no-graphs"), StateError, "emulated device: capturing work is refused");
    streams().beginCapture(stream);
}
GraphHandle endCapture(StreamHandle stream) { return streams().endCapture(stream); }
bool isCapturing(StreamHandle stream) { return streams().isCapturing(stream); }
void launchGraph(GraphHandle graph, StreamHandle stream) {
    DNDS_CHECK(graph != nullptr, ArgumentError, "this graph has no work: capture some first");
    streams().launch(*graph, stream);
}
void destroyGraph(GraphHandle graph) noexcept { EmulatedStreams::destroy(graph); }

void callHost(StreamHandle stream, void (*function)(void *), void *argument) {
    requireNotLost();
    streams().push(stream, [function, argument] { function(argument); });
}

// ---------------------------------------------------------------------------------------------------------------------
// Kernels

// Memory is open only while the kernel runs; its blocks run in random order.
void launchHostKernel(StreamHandle stream, index threads, KernelBody body) {
    requireNotLost();
    DNDS_CHECK(!emulatedDeviceOption("no-kernels"), StateError, "emulated device: kernels cannot be launched");
    if (threads <= 0)
        return;
    streams().push(stream, [threads, body = std::move(body)] {
        const OpenMemory open;
        runBlocks(threads, body, freshSeed());
    });
}

void checkLaunch(std::string_view /*kernel*/) {}

// For code that runs at once in the caller's thread: everything queued before has to be complete.
void beginKernel(StreamHandle stream) {
    streams().synchronize(stream);
    memory().unlock();
}

void endKernel(StreamHandle /*stream*/) noexcept { memory().lock(); }

// ---------------------------------------------------------------------------------------------------------------------
// Messages: an MPI that accepts device memory, one that does not, and two that claim to but do not

void *messageAddress(void *pointer, std::size_t bytes) {
    if (bytes == 0 || emulatedDeviceOption("crashing-mpi"))
        return pointer;
    if (emulatedDeviceOption("lying-mpi")) { // transfers bytes, but not from or to the device
        static auto *elsewhere = new std::map<void *, std::vector<std::byte>>;
        std::vector<std::byte> &bytesElsewhere = (*elsewhere)[pointer];
        bytesElsewhere.resize(std::max(bytes, bytesElsewhere.size()));
        return bytesElsewhere.data();
    }
    return memory().alias(pointer, bytes);
}

std::string whyNoMessages() {
    for (const char *mpi : {"gpu-aware-mpi", "lying-mpi", "crashing-mpi"})
        if (emulatedDeviceOption(mpi))
            return {};
    return "the MPI of the emulated device does not take its memory";
}

} // namespace DNDS::Device
