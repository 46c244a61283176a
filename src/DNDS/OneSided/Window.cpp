#include "DNDS/OneSided/Window.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/NodeMemory.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

namespace DNDS {

namespace {

using Detail::WindowLock;

std::string valueOf(const WindowInfo &info, const char *key, const char *otherwise) {
    const auto found = info.find(key);
    return found == info.end() ? otherwise : found->second;
}

MemorySpace spaceOf(const WindowInfo &info) {
    const std::string kind = valueOf(info, "mpi_alloc_memory_kind", "system");
    if (kind == "gpu:device" || kind == "cuda:device")
        return MemorySpace::Device;
    DNDS_CHECK(kind == "system" || kind == "mpi", ArgumentError,
               "the info key mpi_alloc_memory_kind is '{}': give 'system' or 'gpu:device'", kind);
    return MemorySpace::Host;
}

std::string nameOf(const WindowInfo &info) { return valueOf(info, "name", "a window"); }

void requirePopulatable(MemorySpace space, const std::string &name) {
    Device::requireDevice("populate a window to the device");
    DNDS_CHECK(space == MemorySpace::Device, StateError,
               "{}: a window in host memory cannot be populated to the device: make it with mpi_alloc_memory_kind = "
               "gpu:device",
               name);
}

} // namespace

Window Window::allocate(CommunicatorView comm, std::size_t bytes, std::size_t displacementUnit,
                        const WindowInfo &info) {
    const std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(comm);
    RemoteMemory::meetToMake(context, CollectiveCall::MakeWindow, {}, nameOf(info));
    std::shared_ptr<std::byte> memory;
    MemorySpace space = MemorySpace::Host;
    comm.guarded([&] { space = spaceOf(info); });
    requireNodeMemory(*context, space == MemorySpace::Host ? bytes : 0, nameOf(info));
    comm.guarded([&] {
        memory = RemoteMemory::allocate(*context, bytes, space, nameOf(info));
        if (space == MemorySpace::Host) {
            std::memset(memory.get(), 0, bytes);
            return;
        }
        const std::vector<std::byte> zeros(bytes);
        const Device::Stream stream;
        Device::copy(memory.get(), space, zeros.data(), MemorySpace::Host, bytes, stream);
        stream.synchronize();
    });
    return Window(comm, std::move(memory), bytes, displacementUnit, space, info);
}

Window Window::allocateShared(CommunicatorView comm, std::size_t bytes, std::size_t displacementUnit,
                              const WindowInfo &info) {
    const std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(comm);
    const std::string name = nameOf(info);
    RemoteMemory::meetToMake(context, CollectiveCall::MakeWindow, {}, name);
    const NodeTopology &node = context->node();
    const bool alone = comm.size() == 1;
    comm.guarded([&] {
        DNDS_CHECK(spaceOf(info) == MemorySpace::Host, ArgumentError,
                   "{}: shared windows are in host memory: use Window::allocate for device memory", name);
        DNDS_CHECK(node.members.size() == static_cast<std::size_t>(comm.size()), StateError,
                   "{}: rank {} shares memory with {} of {} ranks, not with those of other nodes: split the "
                   "communicator (Communicator::splitNode), or use Window::allocate",
                   name, comm.rank(), node.members.size(), comm.size());
        DNDS_CHECK(alone || node.arena != nullptr, StateError, "{}: rank {} shares no memory with others: {}", name,
                   comm.rank(), node.whyNoArena);
    });
    requireNodeMemory(*context, bytes, name);
    const std::uint64_t before = comm.exclusiveScan(static_cast<std::uint64_t>(bytes));
    const std::uint64_t all = comm.allReduce(static_cast<std::uint64_t>(bytes), MPI_SUM);
    std::shared_ptr<std::byte> memory;
    LentMemory lent{node.arena ? node.arena->nodeRank() : 0, {}};
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        memory = RemoteMemory::allocate(*context, all, MemorySpace::Host, name);
        if (!alone)
            lent.place = node.arena->locate(memory.get()).value();
    });
    comm.broadcast(lent);
    comm.guarded([&] {
        if (comm.rank() != 0) // rank 0 frees it when all have ended the window
            memory = {node.arena, node.arena->translate(lent.owner, lent.place)};
        memory = {memory, memory.get() + before};
        lent.place.offset += before;
        std::memset(memory.get(), 0, bytes);
    });
    return Window(comm, std::move(memory), bytes, displacementUnit, MemorySpace::Host, info,
                  alone ? std::nullopt : std::optional(lent));
}

Window Window::create(CommunicatorView comm, void *base, std::size_t bytes, std::size_t displacementUnit,
                      MemorySpace space, const WindowInfo &info) {
    const std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(comm);
    RemoteMemory::meetToMake(context, CollectiveCall::MakeWindow, {}, nameOf(info));
    comm.guarded([&] {
        DNDS_CHECK(base != nullptr || bytes == 0, ArgumentError, "{}: {} bytes are to lie in no memory", nameOf(info),
                   bytes);
    });
    return Window(comm, unowned(base), bytes, displacementUnit, space, info);
}

Window::Window(CommunicatorView comm, std::shared_ptr<std::byte> memory, std::size_t bytes, std::size_t unit,
               MemorySpace space, const WindowInfo &info, std::optional<LentMemory> lent) {
    const std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(comm);
    const auto n = static_cast<std::size_t>(comm.size());
    const std::string name = nameOf(info);
    const bool populated = valueOf(info, "win_populate_to_device", "false") == "true";
    comm.guarded([&] { // before there is anything that only all ranks together destroy
        DNDS_CHECK(unit > 0, ArgumentError, "{}: the displacement unit is 0: give at least 1", name);
        if (populated)
            requirePopulatable(space, name);
        if (memory == nullptr) // a rank without memory still has a place, in which nothing is
            memory = RemoteMemory::allocate(*context, 1, space, name);
    });
    const std::size_t lockBytes = 1024 + n * (sizeof(std::uint32_t) + sizeof(std::uint64_t));
    core_ = std::make_unique<Core>(comm, lockBytes, space, name);
    Core &core = *core_;
    core.unitsHere = comm.allGather(static_cast<std::uint64_t>(unit));
    comm.guarded([&] {
        core.heldHere.resize(n);
        core.info = info;
    });
    core.lock = core.locks.allocate<std::uint64_t>(WindowLock::words);
    core.held = core.locks.allocate<std::uint32_t>(n);
    core.units = core.locks.allocate<std::uint64_t>(n);
    const std::uint64_t zeros[WindowLock::words] = {};
    core.locks.put(core.lock, zeros, WindowLock::words, comm.rank());
    core.locks.put(core.held, core.heldHere.data(), n, comm.rank());
    core.locks.put(core.units, core.unitsHere.data(), n, comm.rank());
    try {
        core.data = std::make_unique<RemoteMemory>(context, std::move(memory), bytes, space, name, lent);
    } catch (const std::exception &) { // on all ranks, which destroy the locks together: not by the exception
        core_.reset();
        throw;
    }
    core.populated = populated;
    comm.guarded([&] { core.locks.core_->context->enlist(core); });
    core.locks.barrier();
}

void Window::Core::renew() {
    std::ranges::fill(heldHere, 0U);
    const std::uint64_t zeros[WindowLock::words] = {};
    RemoteMemory &words = *locks.core_->memory;
    words.restore(lock.offset(), zeros, sizeof zeros);
    words.restore(held.offset(), heldHere.data(), heldHere.size() * sizeof(std::uint32_t));
}

Window::Shared Window::sharedQuery(int rank) const {
    core_->data->check(RemoteCall::Get, rank, 0, 0);
    return {core_->data->bytes(rank), core_->unitsHere[static_cast<std::size_t>(rank)], core_->data->mapped(rank)};
}

WindowInfo Window::info() const {
    return {{"name", core_->data->name()},
            {"mpi_alloc_memory_kind", core_->data->space() == MemorySpace::Host ? "system" : "gpu:device"},
            {"win_populate_to_device", core_->populated ? "true" : "false"}};
}

void Window::populateToDevice() {
    requirePopulatable(core_->data->space(), core_->data->name());
    core_->populated = true;
}

WindowView Window::view(KernelWaits waits) const {
    DNDS_CHECK(core_->data->space() == MemorySpace::Host || core_->populated, StateError,
               "{} is to be accessed by kernels, but was not populated to the device: call populateToDevice",
               core_->data->name());
    const HeapView locks = core_->locks.view(waits); // throws where kernels must not wait
    return {core_->data->kernelTable(),
            locks,
            core_->lock,
            core_->held,
            core_->units,
            waits == KernelWaits::Yes ? locks.patience() : 0};
}

void Window::setHeld(int rank, std::uint32_t how) {
    core_->heldHere[static_cast<std::size_t>(rank)] = how;
    core_->locks.putValue(core_->held + rank, how, this->rank());
}

void Window::requireUnlocked(int rank) const {
    core_->data->checked(RemoteCall::Lock, [&] {
        DNDS_CHECK(core_->heldHere[static_cast<std::size_t>(rank)] == 0, StateError,
                   "{}: rank {} is locked by this rank already", core_->data->name(), rank);
    });
}

void Window::requireAnyLocked() const {
    if (std::ranges::none_of(core_->heldHere, [](std::uint32_t how) { return how != 0; }))
        core_->data->refuse(AccessFault::NotLocked, RemoteCall::Flush, anyRank, 0, 0);
}

void Window::lock(LockType type, int rank) {
    RemoteMemory &data = *core_->data;
    SymmetricHeap &locks = core_->locks;
    core_->checkKernels();
    if (const AccessFault fault = data.faultOf(rank, 0, 0); fault != AccessFault::None)
        data.refuse(fault, RemoteCall::Lock, rank, 0, 0);
    requireUnlocked(rank);
    const std::uint64_t ticket = WindowLock::draw(locks, core_->lock, rank);
    const auto what = [&] {
        const std::uint64_t holder = locks.fetch(core_->lock + WindowLock::Holder, rank);
        return fmt::format("other ranks to let go of the lock of rank {} of '{}'{}", rank, data.name(),
                           holder != 0 ? fmt::format(", which rank {} holds", holder - 1) : std::string());
    };
    data.waitFor(RemoteCall::Lock, what, [&] { return WindowLock::served(locks, core_->lock, rank, ticket, type); });
    WindowLock::enter(locks, core_->lock, rank, type);
    setHeld(rank, static_cast<std::uint32_t>(type));
    data.sync();
}

void Window::unlock(int rank) {
    requireLocked(RemoteCall::Unlock, rank);
    core_->complete();
    release(rank);
}

/// After all operations there are complete.
void Window::release(int rank) {
    const auto type = static_cast<LockType>(core_->heldHere[static_cast<std::size_t>(rank)]);
    setHeld(rank, 0);
    WindowLock::leave(core_->locks, core_->lock, rank, type);
}

void Window::lockAll() {
    core_->checkKernels();
    for (int rank = 0; rank < ranks(); ++rank)
        requireUnlocked(rank);
    for (int rank = 0; rank < ranks(); ++rank)
        lock(LockType::Shared, rank);
}

void Window::unlockAll() {
    for (int rank = 0; rank < ranks(); ++rank)
        requireLocked(RemoteCall::Unlock, rank);
    core_->complete();
    for (int rank = 0; rank < ranks(); ++rank)
        release(rank);
}

void Window::flush(int rank) {
    requireLocked(RemoteCall::Flush, rank);
    flushAll();
}

void Window::flushAll() {
    core_->checkKernels(); // what a kernel did wrong comes first
    requireAnyLocked();
    core_->complete();
}

std::string whyNoDeviceWindows(CommunicatorView comm) {
    const std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(comm);
    const DeviceTopology &devices = DeviceTopology::of(*context);
    int unreached = -1;
    for (int rank = 0; rank < comm.size(); ++rank)
        if (rank != comm.rank() && !devices.reaches(rank))
            unreached = rank;
    if (comm.allReduce(Device::available() ? 1 : 0, MPI_MIN) == 0)
        return Device::available() ? "another rank has no device" : Device::unavailableReason();
    if (comm.allReduce(unreached, MPI_MAX) < 0 || RemoteMemory::whyNoDeviceProxy(true).empty())
        return {};
    return unreached >= 0 ? fmt::format("rank {}: {}", unreached, devices.whyNot(unreached))
                          : std::string("another rank cannot reach the device memory of all");
}

} // namespace DNDS
