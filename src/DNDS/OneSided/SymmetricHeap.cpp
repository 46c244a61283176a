#include "DNDS/OneSided/SymmetricHeap.hpp"

#include "DNDS/Base/BlockAllocator.hpp"
#include "DNDS/Mpi/NodeMemory.hpp"

#include <algorithm>

namespace DNDS {

namespace {

using Detail::HeapBlock;
using Detail::HeapPlace;
using Detail::heapUnit;

/// Rounded up to whole units; at least one, so that allocations differ in their offsets.
std::size_t inUnits(std::size_t bytes) {
    return (std::max<std::size_t>(bytes, 1) + heapUnit - 1) / heapUnit * heapUnit;
}

} // namespace

SymmetricHeap::Core::Core(std::size_t heapBytes)
    : blocks(std::make_unique<BlockAllocator>(heapBytes)), size(heapBytes) {}

SymmetricHeap::Core::~Core() = default;

SymmetricHeap::SymmetricHeap(CommunicatorView comm, std::size_t bytes, MemorySpace space, std::string name) {
    // Arguments are compared before anything is allocated; the memory of a node's ranks together is checked before
    // any of them takes it.
    const std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(comm);
    const auto [size, where] =
        RemoteMemory::meetToMake(context, CollectiveCall::MakeHeap, {bytes, static_cast<std::uint64_t>(space)}, name);
    DNDS_CHECK(!size.differ(), ArgumentError, "{}: rank {} gives {} bytes, but rank {} gives {}: give all the same",
               name, size.minRank, size.min, size.maxRank, size.max);
    DNDS_CHECK(!where.differ(), ArgumentError,
               "{}: rank {} asks for host memory, but rank {} for device memory: give all the same", name,
               where.minRank, where.maxRank);
    DNDS_CHECK(bytes <= RemoteMemory::maxBytes, MemoryError, "{}: no room for {} bytes", name, bytes);
    if (space == MemorySpace::Host)
        requireNodeMemory(*context, inUnits(bytes), name);
    std::shared_ptr<std::byte> memory;
    const std::uint64_t number = context->nextSerial();
    comm.guarded([&] {
        core_ = std::make_unique<Core>(inUnits(bytes));
        core_->context = context;
        core_->number = number;
        memory = RemoteMemory::allocate(*context, core_->size, space, name);
    });
    std::byte *own = memory.get();
    core_->memory.emplace(context, std::move(memory), core_->size, space, std::move(name));
    static_cast<RemoteTable &>(core_->table) = core_->memory->table();
    core_->table.heap = &core_->table;
    core_->table.own = own;
    core_->table.space = space;
}

SymmetricHeap::~SymmetricHeap() = default;

/// The table of the host, with the addresses and the proxy that kernels use.
HeapView SymmetricHeap::view(KernelWaits waits) const {
    Detail::HeapTable table = core().table;
    static_cast<RemoteTable &>(table) = core().memory->kernelTable(waits);
    return HeapView(table);
}

std::size_t SymmetricHeap::freeBytes() const { return core().blocks->freeBytes(); }

std::size_t SymmetricHeap::largestFree() const { return core().blocks->largestFree(); }

void SymmetricHeap::throwMoved() { throw StateError("this symmetric heap was moved from"); }

/// Cost: one reduction and one agreement, O(log(ranks)) messages, and a search of the free list.
/// Replicated state machine: equal calls in equal order keep the allocators of all ranks equal.
HeapPlace SymmetricHeap::allocateBytes(std::size_t count, std::size_t objectBytes) {
    const CommunicatorView &comm = core().context->comm();
    // All ranks run the same allocator on the same requests in the same order, and so get the same offset without
    // telling each other; `meet` compares the requests and counts them. One unit in front of the allocation holds
    // its description.
    const std::size_t bytes =
        count > RemoteMemory::maxBytes / objectBytes ? RemoteMemory::maxBytes : count * objectBytes;
    const auto [size, before] = core().memory->meet(CollectiveCall::Allocate, {bytes, core().calls});
    DNDS_CHECK(!size.differ(), ArgumentError,
               "{}: rank {} allocates {} bytes, but rank {} allocates {}: make all ranks allocate and free the same in "
               "the same order",
               core().memory->name(), size.minRank, size.min, size.maxRank, size.max);
    DNDS_CHECK(!before.differ(), ArgumentError,
               "{}: rank {} has allocated {} times before, but rank {} {} times: make all ranks allocate the same",
               core().memory->name(), before.minRank, before.min, before.maxRank, before.max);
    const std::size_t needed = inUnits(bytes) + heapUnit;
    HeapBlock block;
    comm.guarded([&] {
        const auto found = core().blocks->allocate(needed, heapUnit);
        DNDS_CHECK(found.has_value(), MemoryError,
                   "{}: no room for {} bytes (and {} of its own): {} of {} bytes are free, the largest piece has {}",
                   core().memory->name(), bytes, heapUnit, core().blocks->freeBytes(), core().size,
                   core().blocks->largestFree());
        ++core().calls;
        // A serial that no other allocation of the communicator has: pointers to freed memory are noticed even if
        // the place was allocated again.
        block = {(core().number << 32U) + core().calls, *found + heapUnit, bytes};
        core().live.emplace(block.begin, block);
        writeBlock(block.begin, block);
    });
    return {&core().table, block.begin, block.begin, block.serial};
}

/// `meet` is the barrier that makes this safe: all operations of all ranks are complete before any rank reuses the
/// memory.
/// Cost: as an allocation. A serial is never used again, so a stale pointer is detected even where its place is taken.
void SymmetricHeap::freeBlock(const HeapPlace &place) {
    const CommunicatorView &comm = core().context->comm();
    const auto found = core().live.find(place.begin);
    // Known before the meeting, so that a rank with a wrong pointer still takes part.
    const bool mine = place.heap == &core().table && found != core().live.end() && found->second.serial == place.serial;
    const auto [known, which] = core().memory->meet(CollectiveCall::Free, {mine ? 1U : 0U, place.serial});
    DNDS_CHECK(!which.differ(), ArgumentError, "{}: ranks {} and {} free different allocations", core().memory->name(),
               which.minRank, which.maxRank);
    DNDS_CHECK(known.min == 1, StateError, "{}: what is freed is not allocated in this heap, or was freed before",
               core().memory->name());
    comm.guarded([&] {
        // All ranks free the same range in the same call: their allocators stay alike. The description is cleared,
        // which makes old pointers errors.
        core().blocks->release(place.begin - heapUnit, inUnits(found->second.bytes) + heapUnit);
        writeBlock(place.begin, {});
        core().live.erase(found);
    });
}

/// Each rank writes its own copy of the description, and checks read only that: no message, whatever the target.
void SymmetricHeap::writeBlock(std::uint64_t begin, const HeapBlock &block) {
    core().memory->address(rank(), begin - heapUnit).put(0, &block, sizeof(block));
}

AccessFault SymmetricHeap::checkLive(const HeapPlace &place, int rank, std::uint64_t bytes,
                                     std::uint64_t alignment) const {
    // In device memory the host has the descriptions in `live`: reading them there would cost a copy an access.
    if (place.heap != &core().table)
        return AccessFault::Foreign;
    const auto found = core().live.find(place.begin);
    return core().table.checkIn(found == core().live.end() ? HeapBlock{} : found->second, place, rank, bytes,
                                alignment);
}

void SymmetricHeap::throwFault(AccessFault fault, RemoteCall call, int rank, const HeapPlace &place,
                               std::uint64_t bytes, std::uint64_t object) const {
    if (fault == AccessFault::Range) {
        const HeapBlock &block = core().live.at(place.begin);
        // In elements, as the program counts; messages of other faults count bytes.
        const auto size = static_cast<std::int64_t>(object);
        throw IndexError(fmt::format(
            "{}: {} of {} elements of {} bytes from element {} of an allocation of {} on rank {}: beyond its ends",
            core().memory->name(), remoteCallName(call), bytes / object, object,
            static_cast<std::int64_t>(place.offset - place.begin) / size, block.bytes / object, rank));
    }
    core().memory->throwFault(fault, call, rank, place.offset, bytes);
}

void SymmetricHeap::refuse(AccessFault fault, RemoteCall call, int rank, const HeapPlace &place, std::uint64_t bytes,
                           std::uint64_t object) const {
    core().memory->checked(call, [&] { throwFault(fault, call, rank, place, bytes, object); });
}

} // namespace DNDS
