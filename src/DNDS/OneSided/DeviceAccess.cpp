#include "DNDS/OneSided/DeviceAccess.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/PendingBarrier.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <span>

namespace DNDS {

DeviceAccess::DeviceAccess(std::shared_ptr<CommunicatorContext> context, std::byte *base,
                           const std::vector<std::uint64_t> &bytes, const std::string &name)
    : context_(std::move(context)), waits_(*context_), rank_(context_->comm().rank()) {
    const CommunicatorView &comm = context_->comm();
    DeviceTopology::of(*context_); // tries what openPeers relies on
    Device::SharedHandle handle;
    comm.guarded([&] {
        bases_.resize(bytes.size());
        opened_.resize(bytes.size());
        bases_[static_cast<std::size_t>(rank_)] = base;
        handle = Device::share(base);
    });
    const auto handles = comm.allGatherV(std::span<const Device::SharedHandle>(&handle, 1));
    comm.guarded([&] {
        openPeers(name);
        for (std::size_t rank = 0; rank < handles.size(); ++rank)
            if (static_cast<int>(rank) != rank_) {
                opened_[rank] = Device::SharedMemory(handles[rank]);
                bases_[rank] = opened_[rank].as<std::byte>();
            }
        deviceBases_ = Device::DeviceBuffer<std::byte *>(bases_.size());
        deviceBytes_ = Device::DeviceBuffer<std::uint64_t>(bytes.size());
        pinned_.reset(new (Device::allocatePinned(sizeof(Pinned))) Pinned);
        Device::copy(deviceBases_.data(), MemorySpace::Device, bases_.data(), MemorySpace::Host,
                     bases_.size() * sizeof(std::byte *), stream_);
        Device::copy(deviceBytes_.data(), MemorySpace::Device, bytes.data(), MemorySpace::Host,
                     bytes.size() * sizeof(std::uint64_t), stream_);
        stream_.synchronize();
    });
    findWaits();
}

DeviceAccess::~DeviceAccess() = default;

void DeviceAccess::openPeers(const std::string &name) {
    const auto devices = DeviceTopology::madeFor(*context_);
    for (int rank = 0; rank < context_->comm().size(); ++rank)
        DNDS_CHECK(
            rank == rank_ || devices->reaches(rank), StateError,
            "{}: device memory of rank {} is out of rank {}'s reach ({}). Heaps in device memory need ranks that "
            "share a node and open each other's memory; heaps in host memory have no such limit",
            name, rank, rank_, devices->whyNot(rank));
}

void DeviceAccess::findWaits() {
    const CommunicatorView &comm = context_->comm();
    std::uint64_t identity = 0;
    comm.guarded([&] { identity = std::hash<std::string>{}(Device::deviceInfo().identity); });
    const std::vector<std::uint64_t> all = comm.allGather(identity);
    comm.guarded([&] {
        const auto same = std::ranges::count(all, identity);
        if (same > 1 && Device::name() == "cuda")
            whyNoWaits_ = fmt::format("{} ranks share this rank's GPU, and their kernels take turns: one that waits "
                                      "for another rank keeps it from running. Use one rank a GPU, or wait on the host",
                                      same);
    });
}

RemoteTable DeviceAccess::table() const {
    return {deviceBases_.data(), deviceBytes_.data(), &pinned_->faults, rank_, static_cast<int>(bases_.size())};
}

void DeviceAccess::put(int rank, std::size_t offset, const void *from, std::size_t bytes, Completion completion) {
    Device::copy(bases_[static_cast<std::size_t>(rank)] + offset, MemorySpace::Device, from, MemorySpace::Host, bytes,
                 stream_);
    if (completion == Completion::Now)
        stream_.synchronize();
}

void DeviceAccess::get(int rank, std::size_t offset, void *to, std::size_t bytes, Completion completion) {
    Device::copy(to, MemorySpace::Host, bases_[static_cast<std::size_t>(rank)] + offset, MemorySpace::Device, bytes,
                 stream_);
    if (completion == Completion::Now)
        stream_.synchronize();
}

std::uint64_t DeviceAccess::atomic(int rank, std::size_t offset, const AtomicRequest &request, Completion completion) {
    Detail::launchAtomic(stream_, bases_[static_cast<std::size_t>(rank)] + offset, request, &pinned_->result);
    if (completion == Completion::AtQuiet)
        return 0;
    stream_.synchronize();
    return pinned_->result;
}

void DeviceAccess::close() {
    stream_.synchronize();
    opened_.clear();
    PendingBarrier closed(*context_); // owners free their memory after it
    waits_.waitFor(
        PeerWaits::anyone, "close a heap", [&] { return closed.reached(); }, [] {});
}

} // namespace DNDS
