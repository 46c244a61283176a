/// @file Window.hpp
/// @brief Windows with the words and rules of MPI-4: memory of each rank that others access in epochs.
#pragma once

#include "DNDS/OneSided/SymmetricHeap.hpp"
#include "DNDS/OneSided/WindowView.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Defined where windows have `populateToDevice` and `WindowView`.
#define DNDS_WINDOW_DEVICE_INITIATED 1

namespace DNDS {

/// Keys and values, as MPI_Info. Windows know `name`, which messages say, `mpi_alloc_memory_kind` (`system`,
/// `gpu:device`), where `allocate` takes memory, and `win_populate_to_device` (`true`, `false`), which calls
/// `populateToDevice`. Others are ignored.
using WindowInfo = std::map<std::string, std::string>;

/// An MPI window, by other means: loads, stores and atomic operations of the processor where memory is mapped, MPI's
/// puts and gets and requests to the owner elsewhere (see `RemoteMemory`). Passive target, memory model unified.
///
/// Elements of accumulating operations are integers of 8 to 64 bits and reals of 32 or 64; each element is changed
/// atomically, and the operations of one rank on one element happen in its order. Displacements count the target's
/// units.
///
///     Window window = Window::allocate(comm, 1000 * sizeof(double), sizeof(double));
///     window.lock(LockType::Shared, neighbour);
///     window.accumulate(values, 10, neighbour, 40, AccumulateOp::Sum);
///     window.unlock(neighbour);
///
/// Operations are Local and throw as those of `RemoteMemory`, and StateError without a lock of the target; each of
/// these revokes the communicator. After `recover` the window goes on with the bytes that are there, and no rank has a
/// lock. Unlike with MPI, an origin's buffer may be changed as soon as put and accumulate return, and what get and
/// getAccumulate fetch is there.
class Window {
  public:
    /// `bytes` new bytes, zeroed, which may differ between ranks. Collective. Throws on all ranks: MemoryError as
    /// heaps do, and what is wrong with `info`.
    static Window allocate(CommunicatorView comm, std::size_t bytes, std::size_t displacementUnit,
                           const WindowInfo &info = {});
    /// The same in one piece: a rank's bytes begin where those of the rank before it end, so that `sharedQuery(0)` is
    /// the memory of all. Words that are changed atomically lie at multiples of their size only where the bytes of the
    /// ranks before are such multiples. Collective. Throws also StateError where ranks cannot map each other's memory,
    /// and ArgumentError for device memory.
    static Window allocateShared(CommunicatorView comm, std::size_t bytes, std::size_t displacementUnit,
                                 const WindowInfo &info = {});
    /// Over `count` objects of an allocation of a heap, which must outlive the window. Collective. Throws on all ranks
    /// what an access to them would.
    template <class T>
    static Window create(SymmetricHeap &heap, SymmetricPointer<T> memory, std::size_t count) {
        heap.requireAllocated(memory, count);
        return Window(CommunicatorView(heap.communicator()), unowned(heap.own(memory)), count * sizeof(T), sizeof(T),
                      heap.space(), {{"name", "a window over an allocation of " + heap.name()}});
    }
    /// Over memory of the caller, which must outlive the window; `bytes` may be 0. On the host only memory in the
    /// node's arena (sons, and what `RemoteMemory::allocate` gives) is mapped by other ranks of the node. Words that
    /// are changed atomically lie at multiples of their size: aligned displacements do not help where `base` is not.
    /// Collective.
    static Window create(CommunicatorView comm, void *base, std::size_t bytes, std::size_t displacementUnit,
                         MemorySpace space = MemorySpace::Host, const WindowInfo &info = {});
    Window(Window &&other) noexcept = default;
    Window &operator=(Window &&other) noexcept = default;
    Window(const Window &) = delete;
    Window &operator=(const Window &) = delete;
    /// Collective, as `RemoteMemory`.
    ~Window() = default;

    /// This rank, and the number of ranks. Local.
    int rank() const { return core().data->rank(); }
    int ranks() const { return core().data->ranks(); }

    /// A rank's memory, as MPI_Win_shared_query; its base is null where loads and stores of the host do not reach it.
    using Shared = WindowShared;
    Shared sharedQuery(int rank) const;
    /// This rank's memory in the window's space: for kernels and other libraries, where it is on the device.
    void *own() const { return core().data->own(); }
    /// The keys that are known, and their values in force.
    WindowInfo info() const;
    /// The attribute that says where windows are to be accessed from: Device after `populateToDevice`.
    MemorySpace residing() const { return core().populated ? MemorySpace::Device : MemorySpace::Host; }
    /// Allows kernels to access the window, until it is freed. Throws NotBuiltError without a device; StateError for
    /// host memory, which kernels of the device do not reach.
    void populateToDevice();
    /// For kernels, in the window's space; device memory first needs `populateToDevice`, or throws StateError.
    WindowView view(KernelWaits waits = KernelWaits::No) const;

    // Epochs

    /// Waits until this rank may access `rank`'s memory. Rank by rank in one order, or exclusive locks may wait for
    /// each other.
    void lock(LockType type, int rank);
    /// Completes all operations there and lets others in.
    void unlock(int rank);
    /// Shared locks of all ranks, or of none where it throws. O(ranks).
    void lockAll();
    /// All of them, or none where a kernel did wrong. O(ranks).
    void unlockAll();
    /// Completes all operations on that rank's memory, there too.
    void flush(int rank);
    /// The same for all ranks; throws StateError where none is locked.
    void flushAll();
    /// Origins may be reused; here they always may.
    void flushLocal(int rank) const { requireLocked(RemoteCall::Flush, rank); }
    void flushLocalAll() const { requireAnyLocked(); }
    /// Loads of this rank see what others have put and completed, and their gets what it has stored.
    void sync() { core().data->sync(); }
    /// Completes the operations of all ranks. Collective.
    void barrier() { core().data->barrier(); }
    /// Serves other ranks' locks and atomic operations, where these come as messages; returns whether there was
    /// anything to do. For loops that compute, or look at this rank's memory by themselves.
    bool progress() {
        const bool any = core().locks.progress();
        return core().data->progress() || any;
    }
    /// Whether the word at this rank's displacement `at` compares so with `value` now, whose type says what lies there;
    /// serves other ranks. Needs no lock.
    template <AtomicWord T>
    bool test(std::size_t at, Comparison comparison, T value) {
        const std::size_t offset = locateOwn(at, sizeof(T));
        progress();
        const bool so = holds(core().data->atomic(rank(), offset, AtomicOp::Fetch, T{}), comparison, value);
        if (so)
            sync();
        return so;
    }
    /// Waits for that, and returns the word: what was completed before it was set is seen afterwards. Serves other
    /// ranks meanwhile. Needs no lock.
    template <AtomicWord T>
    T waitUntil(std::size_t at, Comparison comparison, T value) {
        return core().data->waitUntil(locateOwn(at, sizeof(T)), comparison, value);
    }

    // Operations on `count` elements from displacement `at` of the target

    /// Copies `count` elements to the target, from its displacement `at` on. Complete after `flush` or `unlock`.
    template <class T>
    void put(const T *origin, std::size_t count, int rank, std::size_t at) {
        const std::size_t offset = locate(RemoteCall::Put, rank, at, bytesOf<T>(count), 1);
        core().data->put(rank, offset, origin, count * sizeof(T));
    }
    /// Copies `count` elements from the target, after this rank's own puts there; they are in `origin` when it returns.
    template <class T>
    void get(T *origin, std::size_t count, int rank, std::size_t at) {
        const std::size_t offset = locate(RemoteCall::Get, rank, at, bytesOf<T>(count), 1);
        core().data->fence(); // MPI orders nothing, but users of one process expect their own puts
        core().data->get(rank, offset, origin, count * sizeof(T));
    }
    /// Changes `count` elements of the target, each atomically, by those at `origin`. Complete after `flush` or
    /// `unlock`.
    template <AtomicWord T>
    void accumulate(const T *origin, std::size_t count, int rank, std::size_t at, AccumulateOp op) {
        const std::size_t offset = locate(RemoteCall::Atomic, rank, at, bytesOf<T>(count), sizeof(T));
        for (std::size_t k = 0; k < count && op != AccumulateOp::NoOp; ++k)
            core().data->atomic(rank, offset + k * sizeof(T), typed<T>(op), origin[k], T{},
                                RemoteMemory::Completion::AtQuiet);
    }
    /// The elements as they were before go to `result`.
    template <AtomicWord T>
    void getAccumulate(const T *origin, T *result, std::size_t count, int rank, std::size_t at, AccumulateOp op) {
        const std::size_t offset = locate(RemoteCall::Atomic, rank, at, bytesOf<T>(count), sizeof(T));
        for (std::size_t k = 0; k < count; ++k)
            result[k] = core().data->atomic(rank, offset + k * sizeof(T), typed<T>(op),
                                            op == AccumulateOp::NoOp ? T{} : origin[k]);
    }
    template <AtomicWord T>
    T fetchAndOp(T origin, int rank, std::size_t at, AccumulateOp op) {
        T result;
        getAccumulate(&origin, &result, 1, rank, at, op);
        return result;
    }
    /// Sets the element to `origin` if it has the bits of `compare`; returns what it was.
    template <AtomicWord T>
    T compareAndSwap(T origin, T compare, int rank, std::size_t at) {
        const std::size_t offset = locate(RemoteCall::Atomic, rank, at, sizeof(T), sizeof(T));
        return core().data->atomic(rank, offset, AtomicOp::CompareSwap, origin, compare);
    }

  private:
    struct Core final : Recoverable {
        Core(CommunicatorView comm, std::size_t lockBytes, MemorySpace space, const std::string &name)
            : locks(comm, lockBytes, space, "the locks of " + name) {}
        ~Core() override { locks.core_->context->delist(*this); }
        bool settle() noexcept override { return true; }
        /// Releases all locks of this rank's memory, and this rank's of others'.
        void renew() override;
        /// Throws what a kernel did wrong.
        void checkKernels() {
            locks.checkKernels();
            data->checkKernels();
        }
        /// Completes this rank's operations; throws what a kernel did wrong.
        void complete() {
            locks.checkKernels();
            data->complete();
            locks.checkKernels();
        }
        SymmetricHeap locks;
        SymmetricPointer<std::uint64_t> lock;  ///< [WindowLock::words]
        SymmetricPointer<std::uint32_t> held;  ///< [ranks] of this rank: for kernels
        SymmetricPointer<std::uint64_t> units; ///< [ranks] of this rank
        std::vector<std::uint32_t> heldHere;
        std::vector<std::uint64_t> unitsHere;
        WindowInfo info;
        bool populated = false;
        std::unique_ptr<RemoteMemory> data;
    };

    Window(CommunicatorView comm, std::shared_ptr<std::byte> memory, std::size_t bytes, std::size_t unit,
           MemorySpace space, const WindowInfo &info, std::optional<LentMemory> lent = {});
    static std::shared_ptr<std::byte> unowned(void *base) {
        return {std::shared_ptr<void>{}, static_cast<std::byte *>(base)};
    }
    template <class T>
    static std::uint64_t bytesOf(std::size_t count) noexcept {
        return count > PTRDIFF_MAX / sizeof(T) ? UINT64_MAX : count * sizeof(T);
    }
    template <class T>
    AtomicOp typed(AccumulateOp op) const {
        core().data->checked(RemoteCall::Atomic, [&] {
            DNDS_CHECK(std::is_integral_v<T> || (op != AccumulateOp::BitAnd && op != AccumulateOp::BitOr),
                       ArgumentError, "{}: BitAnd and BitOr are for integers", core().data->name());
        });
        return atomicOpOf(op);
    }
    void requireLocked(RemoteCall call, int rank) const {
        if (rank < 0 || rank >= ranks())
            core().data->refuse(AccessFault::Rank, call, rank, 0, 0);
        if (core().heldHere[static_cast<std::size_t>(rank)] == 0)
            core().data->refuse(AccessFault::NotLocked, call, rank, 0, 0);
    }
    void requireUnlocked(int rank) const;
    void requireAnyLocked() const;
    void release(int rank);
    std::size_t locate(RemoteCall call, int rank, std::size_t at, std::size_t bytes, std::size_t alignment) const {
        core().checkKernels();
        if (rank < 0 || rank >= ranks()) [[unlikely]]
            core().data->refuse(AccessFault::Rank, call, rank, at, bytes);
        const std::uint64_t offset = offsetOf(rank, at);
        const AccessFault fault = core().heldHere[static_cast<std::size_t>(rank)] == 0
                                      ? AccessFault::NotLocked
                                      : core().data->faultOf(rank, offset, bytes, alignment);
        if (fault != AccessFault::None) [[unlikely]]
            core().data->refuse(fault, call, rank, offset, bytes);
        return offset;
    }
    std::uint64_t offsetOf(int rank, std::size_t at) const noexcept {
        const std::uint64_t unit = core().unitsHere[static_cast<std::size_t>(rank)];
        return at > UINT64_MAX / unit ? UINT64_MAX : at * unit;
    }
    std::size_t locateOwn(std::size_t at, std::size_t bytes) const {
        core().checkKernels();
        const std::uint64_t offset = offsetOf(rank(), at);
        if (const AccessFault fault = core().data->faultOf(rank(), offset, bytes, bytes); fault != AccessFault::None)
            core().data->refuse(fault, RemoteCall::Wait, rank(), offset, bytes);
        return offset;
    }
    void setHeld(int rank, std::uint32_t how);

    Core &core() const {
        DNDS_CHECK(core_ != nullptr, StateError, "this window was moved from");
        return *core_;
    }

    std::unique_ptr<Core> core_;
};

/// Whether kernels can access windows in device memory on the ranks of `comm`: the info key `device_initiated` of the
/// proposal. Why not, or empty. Collective at the first call.
std::string whyNoDeviceWindows(CommunicatorView comm);

} // namespace DNDS
