#include "DNDS/OneSided/Window.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/NodeMemory.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

namespace DNDS {

namespace {

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
    // Data, then the window's own words at the next multiple of 128 bytes.
    const std::size_t all = bytes < RemoteMemory::maxBytes ? bytes + 128 + wordBytes(comm.size()) : bytes;
    // The ranks of a node together, before any of them takes memory: too little is an error on all ranks.
    requireNodeMemory(*context, space == MemorySpace::Host ? all : 0, nameOf(info));
    comm.guarded([&] {
        memory = RemoteMemory::allocate(*context, all, space, nameOf(info));
        if (space == MemorySpace::Host) {
            std::memset(memory.get(), 0, bytes);
            return;
        }
        const std::vector<std::byte> zeros(bytes);
        const Device::Stream stream;
        Device::copy(memory.get(), space, zeros.data(), MemorySpace::Host, bytes, stream);
        stream.synchronize();
    });
    return Window(comm, std::move(memory), bytes, displacementUnit, space, info, Room::Behind);
}

/// Rank 0 allocates one piece for all ranks, without touching it: each rank zeroes its own part, so that the pages are
/// near it.
/// Parts follow each other in rank order by a prefix sum of their sizes, as MPI_Win_allocate_shared lays them out.
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
    // Rank 0 allocates for all, and lends each rank the part after those of the lower ranks.
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
    return Window(comm, std::move(memory), bytes, displacementUnit, MemorySpace::Host, info, Room::None,
                  alone ? std::nullopt : std::optional(lent));
}

/// The window's words get memory of their own, as the caller's has no room for them.
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

/// Memory of the window's words: 128 bytes and 12 for each rank. They lie on cache lines apart from the data, so that
/// polling a lock does not slow puts.
Window::Window(CommunicatorView comm, std::shared_ptr<std::byte> memory, std::size_t bytes, std::size_t unit,
               MemorySpace space, const WindowInfo &info, Room room, std::optional<LentMemory> lent) {
    const std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(comm);
    const std::string name = nameOf(info);
    const std::size_t extra = wordBytes(comm.size());
    std::shared_ptr<std::byte> words;
    comm.guarded([&] { // before there is anything that only all ranks together destroy
        DNDS_CHECK(unit > 0, ArgumentError, "{}: the displacement unit is 0: give at least 1", name);
        core_ = std::make_unique<Core>();
        core_->context = context;
        core_->populated = valueOf(info, "win_populate_to_device", "false") == "true";
        if (core_->populated)
            requirePopulatable(space, name);
        if (memory == nullptr) // a rank without memory still has an empty place
            memory = RemoteMemory::allocate(*context, 1, space, name);
        if (room == Room::None)
            words = RemoteMemory::allocate(*context, extra, space, name);
        core_->info = info;
        core_->held.resize(static_cast<std::size_t>(comm.size()));
    });
    // Everything in which a rank can fail alone is done. From here on, memory is destroyed by all ranks together.
    core_->units = comm.allGather(static_cast<std::uint64_t>(unit));
    try {
        core_->data = std::make_unique<RemoteMemory>(context, std::move(memory), bytes, space, name, lent,
                                                     room == Room::Behind ? extra : 0);
        if (room == Room::None)
            core_->ownWords = std::make_unique<RemoteMemory>(context, std::move(words), 0, space,
                                                             "the locks of " + name, std::nullopt, extra);
    } catch (const std::exception &) { // on all ranks, which destroy what there is together: not by the exception
        core_.reset();
        throw;
    }
    comm.guarded([&] {
        // Words are written before any rank may take a lock: the barrier follows.
        core_->renew();
        context->enlist(*core_);
    });
    core_->data->barrier();
}

/// O(ranks). Tickets of failed waits are forgotten with the words; see WindowVerbs::lock.
void Window::Core::renew() {
    // Afterwards no rank has a lock: each resets its own words, and a recovery ends when all ranks have done so.
    std::ranges::fill(held, 0U);
    const int ranks = data->ranks();
    std::vector<std::byte> all(wordBytes(ranks));
    std::memcpy(all.data() + Units, units.data(), units.size() * sizeof(std::uint64_t));
    words().restore(words().behind(), all.data(), all.size());
}

Window::Shared Window::sharedQuery(int rank) const {
    core().data->check(RemoteCall::Get, rank, 0, 0);
    return {core().data->bytes(rank), unitOf(rank), core().data->mapped(rank)};
}

WindowInfo Window::info() const {
    return {{"name", core().data->name()},
            {"mpi_alloc_memory_kind", core().data->space() == MemorySpace::Host ? "system" : "gpu:device"},
            {"win_populate_to_device", core().populated ? "true" : "false"}};
}

void Window::populateToDevice() {
    requirePopulatable(core().data->space(), core().data->name());
    core().populated = true;
}

WindowView Window::view(KernelWaits waits) const {
    DNDS_CHECK(core().data->space() == MemorySpace::Host || core().populated, StateError,
               "{} is to be accessed by kernels, but was not populated to the device: call populateToDevice",
               core().data->name());
    // Two tables if the window's words are in memory of their own: the caller's memory has no room after it.
    const RemoteTable data = core().data->kernelTable(waits);
    return {data, core().ownWords ? core().ownWords->kernelTable(waits) : data, core().data->space()};
}

void Window::setHeld(int rank, std::uint32_t how) const {
    const auto at = static_cast<std::size_t>(rank);
    // Kept twice: for the host's checks, and in the window's words for kernels.
    core().held[at] = how;
    core().words().addressBehind(this->rank()).put(heldAt(ranks()) + at * sizeof(how), &how, sizeof(how));
}

std::string whyNoDeviceWindows(CommunicatorView comm) {
    const std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(comm);
    const DeviceTopology &devices = DeviceTopology::of(*context);
    // The answer is the same on all ranks: two reductions tell whether each has a device and each reaches all
    // others. Ranks out of reach do no harm where kernels have a proxy.
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
