/// @file Window.hpp
/// @brief Windows with the terms and rules of MPI-4: memory of each rank that others access in epochs.
#pragma once

#include "DNDS/OneSided/KernelViews.hpp"
#include "DNDS/OneSided/SymmetricHeap.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Defined in versions with `populateToDevice` and `WindowView`.
#define DNDS_WINDOW_DEVICE_INITIATED 1

namespace DNDS {

/// Keys and values, as MPI_Info. Windows know `name`, for messages, `mpi_alloc_memory_kind` (`system`,
/// `gpu:device`), the memory of `allocate`, and `win_populate_to_device` (`true`, `false`), which calls
/// `populateToDevice`. Others are ignored.
using WindowInfo = std::map<std::string, std::string>;

/// An MPI window by other means: loads, stores and atomic operations of the processor on mapped memory, otherwise MPI's
/// puts and gets and requests to the owner (see `RemoteMemory`). Passive target, memory model unified.
///
/// Elements of accumulating operations are integers of 8 to 64 bits and reals of 32 or 64; each element is changed
/// atomically, and the operations of one rank on one element happen in its order. Displacements count the target's
/// units. Under an exclusive lock, elements of memory from `allocate` that is mapped are changed by loads and stores:
/// one thread of the rank accumulates at a time, and the target does not change them otherwise.
///
///     Window window = Window::allocate(comm, 1000 * sizeof(double), sizeof(double));
///     window.lock(LockType::Shared, neighbour);
///     window.accumulate(values, 10, neighbour, 40, AccumulateOp::Sum);
///     window.unlock(neighbour);
///
/// Operations are Local and throw as those of `RemoteMemory`, and StateError without a lock of the target; each of
/// these revokes the communicator. After `recover` the window works again with its current bytes, and no rank has a
/// lock. Unlike with MPI, an origin's buffer may be changed as soon as put and accumulate return, and get and
/// getAccumulate return only when their results are there.
class Window : public WindowVerbs<Window, std::size_t> {
  public:
    /// `bytes` new bytes, zeroed, which may differ between ranks. Collective. Throws on all ranks: MemoryError as
    /// heaps do, and errors in `info`.
    static Window allocate(CommunicatorView comm, std::size_t bytes, std::size_t displacementUnit,
                           const WindowInfo &info = {});
    /// The same in one piece: a rank's bytes begin at the end of the previous rank's, so that `sharedQuery(0)` is
    /// the memory of all. Words changed atomically are aligned only if the bytes of all ranks before are multiples of
    /// the words' size. Collective. Throws also StateError if ranks cannot map each other's memory,
    /// and ArgumentError for device memory.
    static Window allocateShared(CommunicatorView comm, std::size_t bytes, std::size_t displacementUnit,
                                 const WindowInfo &info = {});
    /// Over `count` objects of an allocation of a heap, which must outlive the window. Collective. Throws on all ranks
    /// as an access to them would.
    template <class T>
    static Window create(SymmetricHeap &heap, SymmetricPointer<T> memory, std::size_t count) {
        heap.requireAllocated(memory, count);
        return Window(CommunicatorView(heap.communicator()), unowned(heap.own(memory)), count * sizeof(T), sizeof(T),
                      heap.space(), {{"name", "a window over an allocation of " + heap.name()}});
    }
    /// Over memory of the caller, which must outlive the window and, if that is destroyed after a failure, the next
    /// `recover` or the communicator; `bytes` may be 0. On the host, other ranks of the node map only memory in the
    /// node's arena (sons, and memory from `RemoteMemory::allocate`). Words that
    /// are changed atomically must be aligned: aligned displacements do not help if `base` is not.
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
    /// This rank's memory in the window's space: for kernels and other libraries if it is on the device.
    void *own() const { return core().data->own(); }
    /// The known keys and their values in force.
    WindowInfo info() const;
    /// The memory space of accesses: Device after `populateToDevice`.
    MemorySpace residing() const { return core().populated ? MemorySpace::Device : MemorySpace::Host; }
    /// Allows kernels to access the window, until it is freed. Throws NotBuiltError without a device; StateError for
    /// host memory, which kernels of the device do not reach.
    void populateToDevice();
    /// For kernels, in the window's space; device memory first needs `populateToDevice`, or throws StateError.
    WindowView view(KernelWaits waits = KernelWaits::No) const;

    /// Loads of this rank see completed puts of others, and gets of others see this rank's stores.
    void sync() const { core().data->sync(); }
    /// Completes the operations of all ranks. Collective.
    void barrier() { core().data->barrier(); }
    /// Serves other ranks' requests (locks, atomic operations) that have arrived as messages; true if there were any.
    /// For loops that compute, or poll this rank's memory themselves.
    bool progress() { return core().data->progress(); }
    /// Waits for a word that `test` accepts, and returns it: writes completed before it was set are visible then.
    /// Serves other ranks meanwhile. Needs no lock.
    template <AtomicWord T>
    T waitUntil(std::size_t at, Comparison comparison, T value) {
        addressOf<T>(RemoteCall::Wait, 1, rank(), at, sizeof(T));
        return core().data->waitUntil(at * unitOf(rank()), comparison, value);
    }

  private:
    friend class WindowVerbs<Window, std::size_t>;

    /// At a fixed address, for the context's list of recoverable objects.
    struct Core final : Recoverable {
        ~Core() override { context->delist(*this); }
        bool settle() noexcept override { return true; }
        /// Releases all locks of this rank's memory, and this rank's of others'.
        void renew() override;
        RemoteMemory &words() const noexcept { return ownWords ? *ownWords : *data; }
        /// Throws errors of kernels.
        void checkKernels() {
            data->checkKernels();
            if (ownWords)
                ownWords->checkKernels();
        }
        std::shared_ptr<CommunicatorContext> context;
        /// By rank: this rank's lock of it (LockType, 0: none), and its displacement unit.
        std::vector<std::uint32_t> held;
        std::vector<std::uint64_t> units;
        WindowInfo info;
        bool populated = false;
        /// The window's memory, which its own words may follow.
        std::unique_ptr<RemoteMemory> data;
        std::unique_ptr<RemoteMemory> ownWords; ///< null if they follow the data
    };
    /// Whether the window's words (locks, units) follow its data, in memory that the window allocates; else they are in
    /// memory of their own.
    enum class Room : bool { None, Behind };

    /// Over `memory`; `lent` as for RemoteMemory. Collective.
    Window(CommunicatorView comm, std::shared_ptr<std::byte> memory, std::size_t bytes, std::size_t unit,
           MemorySpace space, const WindowInfo &info, Room room = Room::None, std::optional<LentMemory> lent = {});
    /// Memory that the window does not free.
    static std::shared_ptr<std::byte> unowned(void *base) {
        return {std::shared_ptr<void>{}, static_cast<std::byte *>(base)};
    }
    std::uint64_t unitOf(int rank) const { return core().units[static_cast<std::size_t>(rank)]; }
    std::uint32_t held(int rank) const { return core().held[static_cast<std::size_t>(rank)]; }
    /// Notes this rank's lock of `rank`, for the host and for kernels.
    void setHeld(int rank, std::uint32_t how) const;
    /// Whether no other rank can change a rank's memory: this one has its exclusive lock, and the memory is from
    /// `allocate`, so that no other object refers to it. Then accumulate needs no atomic operations.
    bool isAlone(int rank) const {
        return held(rank) == static_cast<std::uint32_t>(LockType::Exclusive) && !core().ownWords;
    }
    /// Throws errors of kernels, then `fault`; else true: kernels' views answer false instead of throwing.
    bool isRight(AccessFault fault, RemoteCall call, int rank) const {
        core().checkKernels();
        if (fault != AccessFault::None) [[unlikely]]
            core().data->refuse(fault, call, rank, 0, 0);
        return true;
    }
    /// The host can always wait for locks.
    AccessFault whyNoLocks(int /*rank*/) const noexcept { return AccessFault::None; }
    /// The lock of a rank's memory: words after its data, or in memory of their own.
    HostRemoteAddress lockOf(int rank) const { return core().words().addressBehind(rank); }
    template <class Done>
    bool waitForLock(const HostRemoteAddress &lock, int rank, const Done &done) const {
        const auto what = [&] {
            const auto holder = lock.fetchAtomic(Holder, AtomicOp::Fetch, std::uint64_t{0});
            return fmt::format("other ranks to let go of the lock of rank {} of '{}'{}", rank, core().data->name(),
                               holder != 0 ? fmt::format(", which rank {} holds", holder - 1) : std::string());
        };
        core().data->waitFor(RemoteCall::Lock, what, done);
        return true;
    }
    void complete() const {
        core().checkKernels();
        core().data->complete();
        core().checkKernels();
    }
    /// The address of an access; throws if it is wrong. Gets come after this rank's puts; a Wait serves other ranks.
    HostRemoteAddress address(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset, std::uint64_t bytes,
                              std::uint64_t alignment) const {
        core().checkKernels();
        RemoteMemory &data = *core().data;
        if (fault == AccessFault::None)
            fault = data.faultOf(rank, offset, bytes, alignment);
        if (fault != AccessFault::None) [[unlikely]]
            data.refuse(fault, call, rank, offset, bytes);
        if (call == RemoteCall::Get)
            data.fence(); // MPI orders nothing, but programs expect gets to see their own puts
        if (call == RemoteCall::Wait)
            data.progress();
        return data.address(rank, offset);
    }

    Core &core() const {
        DNDS_CHECK(core_ != nullptr, StateError, "this window was moved from");
        return *core_;
    }

    /// Null after a move.
    std::unique_ptr<Core> core_;
};

/// Whether kernels can access windows in device memory on the ranks of `comm`: the info key `device_initiated` of the
/// proposal. The reason why not, or empty. Collective at the first call.
std::string whyNoDeviceWindows(CommunicatorView comm);

} // namespace DNDS
