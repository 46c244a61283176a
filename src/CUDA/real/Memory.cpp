// Device memory: a pool for the process, pinned host memory, memory of other processes.

#include "Check.hpp"
#include "MemoryPool.hpp"
#include "Streams.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

namespace DNDS::Device {

namespace {

// Told explicitly: deducing it from addresses costs a look-up in the driver.
cudaMemcpyKind kindOf(MemorySpace destination, MemorySpace source) {
    if (destination == MemorySpace::Device)
        return source == MemorySpace::Device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    return source == MemorySpace::Device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

// Null when there is no room: the pool then frees unused slabs and tries again.
void *allocateSlab(std::size_t bytes) {
    void *pointer = nullptr;
    const cudaError_t status = cudaMalloc(&pointer, bytes);
    if (status == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        return nullptr;
    }
    check(status, fmt::format("allocating {} bytes", bytes));
    return pointer;
}

/// One pool for each device that this process uses. Never destroyed: the driver may shut down before the last array.
struct Pools {
    std::mutex mutex;
    std::map<int, MemoryPool> pools;

    static Pools &instance() {
        static auto *pools = new Pools;
        return *pools;
    }
    // The caller holds `mutex`.
    MemoryPool &ofThisDevice() {
        int device = 0;
        check(cudaGetDevice(&device), "asking for the device");
        const auto found = pools.find(device);
        if (found != pools.end())
            return found->second;
        MemoryPool::Source source;
        source.allocate = allocateSlab;
        source.free = [](void *slab) { static_cast<void>(cudaFree(slab)); };
        source.fence = makeFence;
        source.blocked = defaultStreamIsClosed;
        return pools.emplace(device, MemoryPool(std::move(source))).first->second;
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// Memory of other processes

using ProcessKey = std::array<std::uint64_t, 2>;

/// Identifies this process among all others, also in other containers.
const ProcessKey &processKey() {
    static const ProcessKey key = [] {
        std::random_device random;
        const auto word = [&] { return std::uint64_t{random()} << 32 | random(); };
        return ProcessKey{word(), word()};
    }();
    return key;
}

constexpr std::uint64_t handleMark = 0x444E445343554431; // "DNDSCUD1"

/// The content of a SharedHandle, sent as bytes to ranks of the same machine.
struct Shared {
    std::uint64_t mark;
    ProcessKey process;
    std::uint64_t address; ///< address in the sharing process
    std::uint64_t offset;  ///< offset from the start of the whole allocation that CUDA shares
    cudaIpcMemHandle_t memory;
};
static_assert(sizeof(Shared) <= sizeof(SharedHandle));

/// Slabs of other processes that are open: CUDA opens each only once.
/// A slab stays open while any pointer into it is in use: `users` counts the pointers, and `pointers` finds the
/// slab of each.
struct OpenSlabs {
    struct Slab {
        std::byte *base;
        int users;
    };
    /// The sharing process and CUDA's handle: processes may have equal handles.
    using Name = std::pair<ProcessKey, std::array<char, sizeof(cudaIpcMemHandle_t)>>;
    std::mutex mutex;
    std::map<Name, Slab> slabs;
    std::multimap<const void *, Name> pointers; ///< pointers handed out

    static OpenSlabs &instance() {
        static auto *slabs = new OpenSlabs;
        return *slabs;
    }
};

} // namespace

// cudaMalloc is slow and may wait for the device: the pool calls it once for a slab.
void *allocate(std::size_t bytes) {
    requireDevice("allocate device memory");
    if (bytes == 0)
        return nullptr;
    const RelaxedCaptureScope relaxed;
    Pools &pools = Pools::instance();
    const std::scoped_lock lock(pools.mutex);
    void *pointer = bytes < SIZE_MAX / 2 ? pools.ofThisDevice().allocate(bytes, allocationAlignment) : nullptr;
    if (!pointer) {
        std::size_t free = 0;
        std::size_t total = 0;
        static_cast<void>(cudaMemGetInfo(&free, &total));
        throw MemoryError(fmt::format("the device has no room for {} bytes ({} of {} are free)", bytes, free, total));
    }
    return pointer;
}

// Never waits for the device: the range becomes reusable when the fence made here has passed. O(slabs + waiting
// ranges).
void deallocate(void *pointer) noexcept {
    if (!pointer)
        return;
    Pools &pools = Pools::instance();
    const std::scoped_lock lock(pools.mutex);
    try {
        requireDevice("free device memory");
        const RelaxedCaptureScope relaxed;
        for (auto &[device, pool] : pools.pools)
            if (pool.deallocate(pointer))
                return;
    } catch (const Error &) { // at exit the driver may shut down before the last array: nothing to free
        return;
    }
    std::terminate(); // a double free, or not device memory
}

// Portable and mapped: usable from every device of the process, and kernels may access it directly.
void *allocatePinned(std::size_t bytes) {
    requireDevice("allocate pinned host memory");
    const RelaxedCaptureScope relaxed;
    void *pointer = nullptr;
    if (bytes > 0)
        check(cudaHostAlloc(&pointer, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
              fmt::format("allocating {} bytes of pinned host memory", bytes));
    return pointer;
}

void deallocatePinned(void *pointer) noexcept {
    if (!pointer)
        return;
    const RelaxedCaptureScope relaxed;
    static_cast<void>(cudaFreeHost(pointer)); // waits for the device
}

void pin(void *pointer, std::size_t bytes) {
    requireDevice("pin host memory");
    const RelaxedCaptureScope relaxed;
    if (bytes > 0)
        check(cudaHostRegister(pointer, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
              fmt::format("pinning {} bytes of host memory", bytes));
}

void unpin(void *pointer) noexcept {
    if (!pointer)
        return;
    const RelaxedCaptureScope relaxed;
    static_cast<void>(cudaHostUnregister(pointer));
}

void copy(void *destination, MemorySpace destinationSpace, const void *source, MemorySpace sourceSpace,
          std::size_t bytes, StreamHandle stream) {
    requireDevice("copy between host and device");
    if (bytes == 0)
        return;
    check(cudaMemcpyAsync(destination, source, bytes, kindOf(destinationSpace, sourceSpace), native(stream)),
          "queueing a copy");
    countTransfer(destinationSpace, sourceSpace, bytes);
}

// CUDA shares whole allocations: the handle names the slab, and the offset is added by the process that opens it.
SharedHandle share(const void *pointer) {
    requireDevice("share device memory");
    Pools &pools = Pools::instance();
    MemoryPool::Location place;
    {
        const std::scoped_lock lock(pools.mutex);
        for (const auto &[device, pool] : pools.pools)
            if (place.slab == nullptr)
                place = pool.locate(pointer);
    }
    DNDS_CHECK(place.slab != nullptr, ArgumentError,
               "only device memory that DNDS allocated in this process can be shared, and {} is not", pointer);
    Shared shared{};
    shared.mark = handleMark;
    shared.process = processKey();
    shared.address = reinterpret_cast<std::uint64_t>(pointer);
    shared.offset = place.offset;
    check(cudaIpcGetMemHandle(&shared.memory, place.slab), "sharing device memory with other processes (CUDA IPC)");
    SharedHandle handle;
    std::memcpy(handle.bytes.data(), &shared, sizeof(shared));
    return handle;
}

// Opened once for all pointers into a slab, whichever rank sends them.
void *openShared(const SharedHandle &handle) {
    requireDevice("open device memory of another process");
    const RelaxedCaptureScope relaxed;
    Shared shared{};
    std::memcpy(&shared, handle.bytes.data(), sizeof(shared));
    DNDS_CHECK(shared.mark == handleMark, ArgumentError, "this is not a handle of shared device memory");
    if (shared.process == processKey())
        return reinterpret_cast<void *>(shared.address); // CUDA does not open a process's own memory
    OpenSlabs &open = OpenSlabs::instance();
    OpenSlabs::Name name{shared.process, {}};
    std::memcpy(name.second.data(), &shared.memory, sizeof(shared.memory));
    const std::scoped_lock lock(open.mutex);
    auto slab = open.slabs.find(name);
    if (slab == open.slabs.end()) {
        void *base = nullptr;
        check(cudaIpcOpenMemHandle(&base, shared.memory, cudaIpcMemLazyEnablePeerAccess),
              "opening device memory of another process (CUDA IPC); it needs processes on one machine that see the "
              "same process numbers, and devices that can access each other");
        slab = open.slabs.emplace(name, OpenSlabs::Slab{static_cast<std::byte *>(base), 0}).first;
    }
    // Pointers into one slab share its opening.
    ++slab->second.users;
    void *pointer = slab->second.base + shared.offset;
    open.pointers.emplace(pointer, name);
    return pointer;
}

// The slab is closed with its last user. The entry is erased even if CUDA fails, as `noexcept` leaves no way to tell.
void closeShared(void *pointer) noexcept {
    if (!pointer)
        return;
    OpenSlabs &open = OpenSlabs::instance();
    const std::scoped_lock lock(open.mutex);
    const auto handedOut = open.pointers.find(pointer);
    if (handedOut == open.pointers.end())
        return; // this process's own memory
    const auto slab = open.slabs.find(handedOut->second);
    open.pointers.erase(handedOut);
    if (--slab->second.users > 0)
        return;
    try {
        requireDevice("close device memory of another process");
        const RelaxedCaptureScope relaxed;
        static_cast<void>(cudaIpcCloseMemHandle(slab->second.base));
    } catch (const Error &) { // the driver has shut down, which freed the memory
    }
    open.slabs.erase(slab);
}

} // namespace DNDS::Device
