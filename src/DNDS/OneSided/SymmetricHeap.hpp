/// @file SymmetricHeap.hpp
/// @brief Memory with the same layout on every rank, which any rank reads and writes.
#pragma once

#include "DNDS/Device/Hooks.hpp"
#include "DNDS/OneSided/KernelViews.hpp"
#include "DNDS/OneSided/RemoteMemory.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace DNDS {

class BlockAllocator;

/// One range of memory a rank, in which all ranks allocate together and get the same offsets: OpenSHMEM's symmetric
/// heap, with a communicator instead of all processes. An object's place on any rank follows from its place on one, so
/// that no addresses are exchanged.
///
///     SymmetricHeap heap(comm, 1 << 20);
///     const auto inbox = heap.allocate<double>(100);
///     const auto filled = heap.allocate<std::uint64_t>(1);
///     heap.putSignal(inbox, values, 100, filled, 1, SignalOp::Set, next); // the next rank's inbox, then its word
///     heap.waitUntil(filled, Comparison::Equal, std::uint64_t{1});
///     use(inbox.local());
///
/// Memory of ranks on this node is read and written in place. On other nodes (virtual ones too) puts and gets go
/// through MPI, and the owner carries out atomic operations: see `MessageService` for when it does. `path` names the
/// way to a rank; docs/guides/one_sided.md lists guarantees and costs of each operation.
///
/// Operations are Local and throw
/// - IndexError for a rank that does not exist, and beyond the allocation
/// - StateError for memory that was freed, or a heap that was moved from
/// - ArgumentError for a null pointer, one of another heap, and words of atomic operations that are not aligned
/// - PeerError where the process of a rank has ended, or after DNDS_WAIT_TIMEOUT seconds of waiting
/// - the fault that a kernel with a view of this heap has recorded.
/// Each of these revokes the communicator: waits on other ranks, and calls that do not move by loads and stores, throw
/// RevokedError, which names the rank. So does an exception that destroys the heap. After `recover` the heap continues,
/// with its allocations and what is in them, signals, too.
///
/// Ranks on other nodes are reached from the thread that made the heap; with MPI_THREAD_MULTIPLE from any thread.
class SymmetricHeap : public HeapVerbs<SymmetricHeap, std::size_t> {
  public:
    using Completion = DNDS::Completion;

    /// `bytes` bytes on each rank. Allocations take their size rounded up to a multiple of 128 bytes, and 128 more.
    /// Collective. Throws on all ranks: ArgumentError where ranks differ in `bytes` or `space`, MemoryError
    /// (of the host: before any is taken, where the ranks of a node ask for more than it has), NotBuiltError without a
    /// device.
    SymmetricHeap(CommunicatorView comm, std::size_t bytes, MemorySpace space = MemorySpace::Host,
                  std::string name = "a symmetric heap");
    SymmetricHeap(SymmetricHeap &&other) noexcept = default;
    SymmetricHeap &operator=(SymmetricHeap &&other) noexcept = default;
    SymmetricHeap(const SymmetricHeap &) = delete;
    SymmetricHeap &operator=(const SymmetricHeap &) = delete;
    /// Collective: waits for all ranks, as `RemoteMemory`.
    ~SymmetricHeap();

    /// This rank and the number of ranks; the memory it lies in, and its name. Local.
    int rank() const { return core().memory->rank(); }
    int ranks() const { return core().memory->ranks(); }
    MemorySpace space() const { return core().table.space; }
    const std::string &name() const { return core().memory->name(); }
    /// DNDS's duplicate of the communicator.
    const CommunicatorView &communicator() const { return core().context->comm(); }
    /// This rank's own objects in the heap's space. Local; checks nothing.
    template <class T>
    T *own(SymmetricPointer<T> pointer) const {
        return reinterpret_cast<T *>(core().table.own + pointer.offset());
    }
    /// The path to the memory of another rank, as readable text.
    std::string path(int rank) const { return core().memory->path(rank); }
    /// Free bytes, and the largest contiguous piece: the most that `allocate` can return, with its 128 bytes.
    std::size_t freeBytes() const;
    std::size_t largestFree() const;

    /// `count` objects on each rank, uninitialised, at a multiple of 128 bytes. Collective. Throws on all ranks:
    /// ArgumentError where ranks ask for different amounts, MemoryError that says how much is free.
    template <class T>
    SymmetricPointer<T> allocate(std::size_t count) {
        static_assert(std::is_trivially_copyable_v<T>, "other ranks write the bytes");
        return SymmetricPointer<T>(allocateBytes(count, sizeof(T)));
    }
    /// Frees an allocation on all ranks, after all have completed their operations. `pointer` may point anywhere in it.
    /// Collective. Throws on all ranks where they free different ones, or one that was freed.
    template <class T>
    void free(SymmetricPointer<T> pointer) {
        freeBlock(pointer.place());
    }

    /// Throws on all ranks what an access to `count` own objects would: for windows over them. Collective.
    template <class T>
    void requireAllocated(SymmetricPointer<T> pointer, std::size_t count) {
        core().memory->meet(CollectiveCall::MakeWindowOver);
        communicator().guarded([&] {
            const std::uint64_t bytes = Detail::bytesOf<T>(count);
            if (const AccessFault fault = faultOf(pointer.place(), rank(), bytes, 1); fault != AccessFault::None)
                throwFault(fault, RemoteCall::Put, rank(), pointer.place(), bytes, sizeof(T));
        });
    }

    /// Waits until the comparison of this rank's word with `value` holds, and returns the word. Puts that were complete
    /// before the word was changed are visible then. Serves other ranks meanwhile.
    template <AtomicWord T>
    T waitUntil(SymmetricPointer<T> word, Comparison comparison, std::type_identity_t<T> value) {
        address(AccessFault::None, RemoteCall::Wait, word, sizeof(T), rank(), sizeof(T));
        return core().memory->waitUntil(word.offset(), comparison, T{value});
    }
    /// Earlier puts, signals and atomic operations on a rank are seen there before later ones; gets are not ordered.
    void fence() { core().memory->fence(); }
    /// Completes all operations of this rank: all ranks see their effects.
    void quiet() { core().memory->complete(); }
    /// `quiet` on all ranks. Collective.
    void barrier() { core().memory->barrier(); }
    /// Serves other ranks' requests for this rank's memory that have arrived as messages; true if there were any. Call
    /// it in long computations.
    bool progress() { return core().memory->progress(); }

    /// For kernels in this heap's space. Throws StateError where they are to wait and must not: where kernels of ranks
    /// that share a GPU take turns, or kernels are loaded at their first launch.
    HeapView view(KernelWaits waits = KernelWaits::No) const;
    /// Waits for the stream, then as `barrier`: what kernels there have put is seen by all ranks. Collective.
    void barrier(Device::StreamHandle stream) {
        Device::synchronize(stream);
        barrier();
    }
    /// Throws what kernels with a view of this heap did wrong. Call it after the stream was synchronised; the
    /// operations above do it, too.
    void checkKernels() { core().memory->checkKernels(); }

  private:
    friend class HeapVerbs<SymmetricHeap, std::size_t>;

    /// At a fixed address, which pointers and views of the heap refer to, wherever the heap is moved.
    struct Core {
        explicit Core(std::size_t heapBytes);
        ~Core();

        std::shared_ptr<CommunicatorContext> context;
        /// For pointers and for the host's checks; views for kernels are copies with other bases.
        Detail::HeapTable table;
        /// Offsets in use. The same state on all ranks, as all make the same calls: no rank asks another for an offset.
        std::unique_ptr<BlockAllocator> blocks;
        std::size_t size;
        std::map<std::uint64_t, Detail::HeapBlock> live; ///< present allocations, keyed by offset
        /// Number of the heap on its communicator: the upper half of the serials, which differ between heaps.
        std::uint64_t number = 0;
        /// Number of allocations made.
        std::uint64_t calls = 0;
        std::optional<RemoteMemory> memory; ///< set by the constructor, when all ranks have allocated
    };

    Core &core() const {
        if (core_ == nullptr) [[unlikely]]
            throwMoved();
        return *core_;
    }
    [[noreturn]] static void throwMoved();
    /// The fault of an access by the host; the description is read where it lies, if loads reach it.
    AccessFault faultOf(const Detail::HeapPlace &place, int rank, std::uint64_t bytes, std::uint64_t alignment) const {
        const Detail::HeapTable &table = core().table;
        return table.space == MemorySpace::Host ? table.check(place, rank, bytes, alignment)
                                                : checkLive(place, rank, bytes, alignment);
    }
    /// The address of an access; throws if it is wrong, and a kernel's fault. A Wait serves other ranks.
    template <class T>
    HostRemoteAddress address(AccessFault fault, RemoteCall call, SymmetricPointer<T> pointer, std::uint64_t bytes,
                              int rank, std::uint64_t alignment) const {
        RemoteMemory &memory = *core().memory;
        memory.checkKernels();
        if (fault == AccessFault::None)
            fault = faultOf(pointer.place(), rank, bytes, alignment);
        if (fault != AccessFault::None) [[unlikely]]
            refuse(fault, call, rank, pointer.place(), bytes, sizeof(T));
        if (call == RemoteCall::Wait)
            memory.progress();
        return memory.address(rank, pointer.offset());
    }
    /// As HeapTable::check, by `live` instead of the descriptions in the heap's memory.
    AccessFault checkLive(const Detail::HeapPlace &place, int rank, std::uint64_t bytes, std::uint64_t alignment) const;
    [[noreturn]] void throwFault(AccessFault fault, RemoteCall call, int rank, const Detail::HeapPlace &place,
                                 std::uint64_t bytes, std::uint64_t object) const;
    /// The same, and revokes the communicator with it.
    void refuse(AccessFault fault, RemoteCall call, int rank, const Detail::HeapPlace &place, std::uint64_t bytes,
                std::uint64_t object) const;
    Detail::HeapPlace allocateBytes(std::size_t count, std::size_t objectBytes);
    void freeBlock(const Detail::HeapPlace &place);
    /// Writes the description in front of this rank's allocation; an empty one marks it as freed.
    void writeBlock(std::uint64_t begin, const Detail::HeapBlock &block);

    std::unique_ptr<Core> core_;
};

} // namespace DNDS
