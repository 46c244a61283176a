/// @file SymmetricHeap.hpp
/// @brief Memory with the same layout on every rank, which any rank reads and writes.
#pragma once

#include "DNDS/Base/BlockAllocator.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/OneSided/HeapView.hpp"
#include "DNDS/OneSided/RemoteMemory.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace DNDS {

/// Whether kernels may wait for other ranks.
enum class KernelWaits : unsigned char { No, Yes };

/// One range of memory a rank, in which all ranks allocate together and get the same offsets.
///
///     SymmetricHeap heap(comm, 1 << 20);
///     const auto inbox = heap.allocate<double>(100);
///     const auto filled = heap.allocate<std::uint64_t>(1);
///     heap.putSignal(inbox, values, 100, filled, 1, SignalOp::Set, next); // the next rank's inbox, then its word
///     heap.waitUntil(filled, Comparison::Equal, std::uint64_t{1});
///     use(inbox.local());
///
/// Memory of ranks on this node is read and written in place. Elsewhere (other nodes, virtual ones too) puts and gets
/// go through MPI, and the owner carries out atomic operations: see `MessageAccess` for when it does. `path` says which
/// it is. docs/one_sided.md has what each operation promises, and what it costs.
///
/// Operations are Local and throw
/// - IndexError for a rank that does not exist, and beyond the allocation
/// - StateError for memory that was freed, or a heap that was moved from
/// - ArgumentError for a null pointer, one of another heap, and words of atomic operations that are not aligned
/// - PeerError where the process of a rank has ended, or after DNDS_WAIT_TIMEOUT seconds of waiting
/// - what a kernel with a view of this heap did wrong before.
/// Each of these revokes the communicator: waits on other ranks, and calls that do not move by loads and stores, throw
/// RevokedError, which names the rank. So does an exception that destroys the heap. After `recover` the heap goes on,
/// with its allocations and what is in them, signals, too.
///
/// Ranks on other nodes are reached from the thread that made the heap, or from any where MPI allows all to call it.
class SymmetricHeap {
  public:
    using Completion = FarAccess::Completion;

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
    /// Where this rank's own objects are in the heap's space. Local; checks nothing.
    template <class T>
    T *own(SymmetricPointer<T> pointer) const {
        return reinterpret_cast<T *>(core().table.own + pointer.offset());
    }
    /// How this rank reaches the memory of another one, for people.
    std::string path(int rank) const { return core().memory->path(rank); }
    /// Bytes that are free, and the largest piece of them.
    std::size_t freeBytes() const { return core().blocks.freeBytes(); }
    std::size_t largestFree() const { return core().blocks.largestFree(); }

    /// `count` objects on each rank, uninitialised, at a multiple of 128 bytes. Collective. Throws on all ranks:
    /// ArgumentError where ranks ask for different amounts, MemoryError that says how much is free.
    template <class T>
    SymmetricPointer<T> allocate(std::size_t count) {
        static_assert(std::is_trivially_copyable_v<T>, "other ranks write the bytes");
        const Detail::HeapBlock block = allocateBytes(count, sizeof(T));
        return {&core().table, block.begin, block.serial};
    }
    /// Frees an allocation on all ranks, after all have completed their operations. `pointer` may point anywhere in it.
    /// Collective. Throws on all ranks where they free different ones, or one that was freed.
    template <class T>
    void free(SymmetricPointer<T> pointer) {
        freeBlock(pointer.heap(), pointer.begin(), pointer.serial());
    }

    /// Throws on all ranks what an access to `count` own objects would: for windows over them. Collective.
    template <class T>
    void requireAllocated(SymmetricPointer<T> pointer, std::size_t count) {
        core().memory->meet(CollectiveCall::MakeWindowOver);
        communicator().guarded([&] {
            if (const AccessFault fault = faultOf(pointer, count, rank()); fault != AccessFault::None)
                throwFault(fault, RemoteCall::Put, rank(), pointer.offset(), pointer.begin(), bytesOf<T>(count),
                           sizeof(T));
        });
    }

    /// Copies `count` objects to another rank. `from` may be changed afterwards; `quiet` completes it.
    template <class T>
    void put(SymmetricPointer<T> to, const T *from, std::size_t count, int rank) {
        check(RemoteCall::Put, to, count, rank);
        core().memory->put(rank, to.offset(), from, count * sizeof(T));
    }
    /// The same; `from` must stay as it is until `quiet`.
    template <class T>
    void putNbi(SymmetricPointer<T> to, const T *from, std::size_t count, int rank) {
        check(RemoteCall::Put, to, count, rank);
        core().memory->put(rank, to.offset(), from, count * sizeof(T), Completion::AtQuiet);
    }
    /// Copies `count` objects from another rank; they are there when it returns.
    template <class T>
    void get(T *to, SymmetricPointer<T> from, std::size_t count, int rank) {
        check(RemoteCall::Get, from, count, rank);
        core().memory->get(rank, from.offset(), to, count * sizeof(T));
    }
    /// The same; they are there after `quiet`.
    template <class T>
    void getNbi(T *to, SymmetricPointer<T> from, std::size_t count, int rank) {
        check(RemoteCall::Get, from, count, rank);
        core().memory->get(rank, from.offset(), to, count * sizeof(T), Completion::AtQuiet);
    }
    /// One object; words of 2, 4 and 8 bytes are never torn.
    template <class T>
    void putValue(SymmetricPointer<T> to, const std::type_identity_t<T> &value, int rank) {
        put(to, &value, 1, rank);
    }
    template <class T>
    T getValue(SymmetricPointer<T> from, int rank) {
        T value;
        get(&value, from, 1, rank);
        return value;
    }
    /// `to[k * toStride] = from[k * fromStride]` for k < count. Strides are positive, in objects. Off the node each
    /// object is a message: for few, or on one node.
    template <class T>
    void putStrided(SymmetricPointer<T> to, std::size_t toStride, const T *from, std::size_t fromStride,
                    std::size_t count, int rank) {
        static_cast<void>(span(RemoteCall::Put, count, fromStride));
        check(RemoteCall::Put, to, span(RemoteCall::Put, count, toStride), rank);
        core().memory->putStrided(rank, to.offset(), toStride * sizeof(T), from, fromStride * sizeof(T), sizeof(T),
                                  count);
    }
    template <class T>
    void getStrided(T *to, std::size_t toStride, SymmetricPointer<T> from, std::size_t fromStride, std::size_t count,
                    int rank) {
        static_cast<void>(span(RemoteCall::Get, count, toStride));
        check(RemoteCall::Get, from, span(RemoteCall::Get, count, fromStride), rank);
        core().memory->getStrided(rank, from.offset(), fromStride * sizeof(T), to, toStride * sizeof(T), sizeof(T),
                                  count);
    }

    /// Atomic operations on a word of 8 to 64 bits. `set` and `add` are complete after `quiet`; the others return what
    /// the word was, and are complete then.
    template <AtomicWord T>
    T fetch(SymmetricPointer<T> word, int rank) {
        return atomic(AtomicOp::Fetch, word, T{}, T{}, rank, Completion::Now);
    }
    template <AtomicWord T>
    void set(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) {
        atomic(AtomicOp::Set, word, value, T{}, rank, Completion::AtQuiet);
    }
    template <AtomicWord T>
    void add(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) {
        atomic(AtomicOp::Add, word, value, T{}, rank, Completion::AtQuiet);
    }
    template <AtomicWord T>
    T fetchAdd(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) {
        return atomic(AtomicOp::Add, word, value, T{}, rank, Completion::Now);
    }
    template <AtomicWord T>
    T swap(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) {
        return atomic(AtomicOp::Swap, word, value, T{}, rank, Completion::Now);
    }
    /// Sets the word to `value` if it has the bits of `expected`; returns what it was, and is complete then.
    template <AtomicWord T>
    T compareSwap(SymmetricPointer<T> word, std::type_identity_t<T> expected, std::type_identity_t<T> value, int rank) {
        return atomic(AtomicOp::CompareSwap, word, value, expected, rank, Completion::Now);
    }
    /// The word becomes its minimum, maximum, And or Or with `value`. Complete after `quiet`.
    template <AtomicWord T>
    void min(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) {
        atomic(AtomicOp::Min, word, value, T{}, rank, Completion::AtQuiet);
    }
    template <AtomicWord T>
    void max(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) {
        atomic(AtomicOp::Max, word, value, T{}, rank, Completion::AtQuiet);
    }
    template <AtomicWord T>
    void bitAnd(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) {
        static_assert(std::is_integral_v<T>, "And and Or are for words that are integers");
        atomic(AtomicOp::And, word, value, T{}, rank, Completion::AtQuiet);
    }
    template <AtomicWord T>
    void bitOr(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) {
        static_assert(std::is_integral_v<T>, "And and Or are for words that are integers");
        atomic(AtomicOp::Or, word, value, T{}, rank, Completion::AtQuiet);
    }
    /// Any of the above as a value; with Completion::AtQuiet what it returns means nothing.
    template <AtomicWord T>
    T atomic(AtomicOp op, SymmetricPointer<T> word, std::type_identity_t<T> operand, std::type_identity_t<T> compare,
             int rank, Completion completion = Completion::Now) {
        check(RemoteCall::Atomic, word, 1, rank, sizeof(T));
        if (!suits<T>(op)) [[unlikely]]
            core().memory->refuse(AccessFault::Real, RemoteCall::Atomic, rank, word.offset(), sizeof(T));
        return core().memory->atomic(rank, word.offset(), op, T{operand}, T{compare}, completion);
    }

    /// Puts, then changes the signal: whoever sees the signal sees what was put, and all that a fence before covers.
    template <class T>
    void putSignal(SymmetricPointer<T> to, const T *from, std::size_t count, SymmetricPointer<std::uint64_t> signal,
                   std::uint64_t value, SignalOp op, int rank) {
        check(RemoteCall::Signal, signal, 1, rank, sizeof(value));
        put(to, from, count, rank);
        core().memory->signal(rank, signal.offset(), value, op == SignalOp::Add);
    }
    /// Waits until this rank's word compares with `value` as told, and returns the word. What was put before the
    /// signal is seen afterwards. Serves other ranks meanwhile.
    template <AtomicWord T>
    T waitUntil(SymmetricPointer<T> word, Comparison comparison, std::type_identity_t<T> value) {
        check(RemoteCall::Wait, word, 1, rank(), sizeof(T));
        return core().memory->waitUntil(word.offset(), comparison, T{value});
    }
    /// Whether this rank's word compares so now; serves other ranks.
    template <AtomicWord T>
    bool test(SymmetricPointer<T> word, Comparison comparison, std::type_identity_t<T> value) {
        check(RemoteCall::Wait, word, 1, rank(), sizeof(T));
        core().memory->progress();
        return holds(core().memory->atomic(rank(), word.offset(), AtomicOp::Fetch, T{}), comparison, T{value});
    }

    /// Puts, signals and atomic operations to one rank before it are seen there before those after it. Not gets.
    void fence() { core().memory->fence(); }
    /// All operations of this rank are complete, and seen by all.
    void quiet() { core().memory->complete(); }
    /// `quiet` on all ranks. Collective.
    void barrier() { core().memory->barrier(); }
    /// Serves other ranks' atomic operations on this rank's words, where these come as messages; returns whether there
    /// was anything to do. For long computations.
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
    friend class Window; // whose locks are released by a recovery

    struct Core {
        explicit Core(std::size_t heapBytes) : blocks(heapBytes), size(heapBytes) {}

        std::shared_ptr<CommunicatorContext> context;
        Detail::HeapTable table;
        BlockAllocator blocks;
        std::size_t size;
        std::map<std::uint64_t, Detail::HeapBlock> live; ///< by their offsets
        /// Of the heap, on its communicator: allocations of two heaps differ in their serials.
        std::uint64_t number = 0;
        std::uint64_t calls = 0;
        std::optional<RemoteMemory> memory; ///< always there in a heap
    };

    Core &core() const {
        if (core_ == nullptr) [[unlikely]]
            throwMoved();
        return *core_;
    }
    [[noreturn]] static void throwMoved();
    std::size_t span(RemoteCall call, std::size_t count, std::size_t stride) const;
    template <class T>
    AccessFault faultOf(SymmetricPointer<T> pointer, std::size_t count, int rank, std::size_t alignment = 1) const {
        const Detail::HeapTable &table = core().table;
        const std::uint64_t bytes = bytesOf<T>(count);
        return table.space == MemorySpace::Host ? table.checkBlock(pointer.heap(), rank, pointer.offset(),
                                                                   pointer.begin(), pointer.serial(), bytes, alignment)
                                                : checkLive(pointer.heap(), rank, pointer.offset(), pointer.begin(),
                                                            pointer.serial(), bytes, alignment);
    }
    template <class T>
    void check(RemoteCall call, SymmetricPointer<T> pointer, std::size_t count, int rank,
               std::size_t alignment = 1) const {
        core().memory->checkKernels();
        if (const AccessFault fault = faultOf(pointer, count, rank, alignment); fault != AccessFault::None) [[unlikely]]
            refuse(fault, call, rank, pointer.offset(), pointer.begin(), bytesOf<T>(count), sizeof(T));
    }
    template <class T>
    static std::uint64_t bytesOf(std::size_t count) noexcept {
        return count > PTRDIFF_MAX / sizeof(T) ? UINT64_MAX : count * sizeof(T);
    }
    AccessFault checkLive(const Detail::HeapTable *heap, int rank, std::uint64_t offset, std::uint64_t begin,
                          std::uint64_t serial, std::uint64_t bytes, std::uint64_t alignment) const;
    [[noreturn]] void throwFault(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset,
                                 std::uint64_t begin, std::uint64_t bytes, std::uint64_t object) const;
    /// The same, and revokes the communicator with it.
    [[noreturn]] void refuse(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset, std::uint64_t begin,
                             std::uint64_t bytes, std::uint64_t object) const;
    Detail::HeapBlock allocateBytes(std::size_t count, std::size_t objectBytes);
    void freeBlock(const Detail::HeapTable *heap, std::uint64_t begin, std::uint64_t serial);
    void writeBlock(std::uint64_t begin, const Detail::HeapBlock &block);

    std::unique_ptr<Core> core_;
};

} // namespace DNDS
