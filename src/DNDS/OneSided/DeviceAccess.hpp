/// @file DeviceAccess.hpp
/// @brief Operations of the host on device memory of other ranks.
#pragma once

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/SharedMemory.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/OneSided/MessageAccess.hpp"
#include "DNDS/OneSided/RemoteAccess.hpp"
#include "DNDS/OneSided/RemoteTable.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

namespace Detail {

/// A rank's description of its device.
struct DeviceOfRank {
    std::string identity;  ///< as in `Device::DeviceInfo`
    std::string scheduler; ///< `Device::sharedScheduler()`
    bool lazy = false;     ///< `Device::loadsKernelsLazily()`
};

/// Why kernels of ranks on these devices must not wait for each other; empty where each has its own, or the kernels of
/// ranks that share one run concurrently, and all kernels are loaded before any of them runs.
std::string whyNoKernelWaits(std::span<const DeviceOfRank> devices);

} // namespace Detail

/// Operations of the host on device memory. Memory of reachable ranks is opened once (CUDA IPC), then copies and
/// kernels operate on it in order on one stream; for the memory of other ranks the owner is asked (`MessageAccess`).
/// Kernels get the same addresses by `table`.
class DeviceAccess final : public RemoteAccess {
  public:
    /// Collective. `base` is this rank's device memory. Throws on all ranks: NotBuiltError without a device,
    /// ArgumentError for memory that DNDS did not allocate, StateError as `MessageAccess`.
    DeviceAccess(std::shared_ptr<CommunicatorContext> context, std::byte *base, const std::vector<std::uint64_t> &bytes,
                 const std::string &name);
    ~DeviceAccess() override;

    /// By rank: device addresses in this process; null for ranks that are reached by requests.
    const std::vector<std::byte *> &bases() const noexcept { return bases_; }
    /// The table in device memory.
    RemoteTable table() const;
    /// Why kernels must not wait for other ranks; empty if they may. The same on all ranks, or some would wait for
    /// others that do not.
    const std::string &whyNoWaits() const noexcept { return whyNoWaits_; }
    /// Why this rank's GPU cannot change words of a rank's memory atomically; empty if it can.
    const std::string &whyNoAtomics(int rank) const { return whyNoAtomics_[static_cast<std::size_t>(rank)]; }
    /// Why a rank is reached by requests.
    const std::string &whyNotReached(int rank) const { return devices_->whyNot(rank); }
    /// Whether any rank reaches another one by requests: the same on all ranks.
    bool sendsRequests() const noexcept { return messages_ != nullptr; }

    void operate(const RemoteOperation &operation, const void *from, void *to, Completion completion) override;
    void fence() override {} // the stream keeps the order
    void quiet() override;
    void sync() override {}
    bool progress() noexcept override { return messages_ != nullptr && messages_->progress(); }
    void renew() override;
    void stop() noexcept override {
        if (messages_)
            messages_->stop();
    }
    void close() override;

  private:
    struct Pinned;

    /// The handle of this rank's memory, or an error that says which memory can be shared.
    static Device::SharedHandle shareOrExplain(const std::byte *base, const std::string &name);
    std::byte *base(int rank) const noexcept { return bases_[static_cast<std::size_t>(rank)]; }
    /// Fills in `whyNoWaits_` and `whyNoAtomics_`.
    void findAbilities(const std::vector<Detail::DeviceOfRank> &devices);
    /// The devices of all ranks, by rank. Collective.
    std::vector<Detail::DeviceOfRank> gatherDevices() const;

    /// The communicator, this rank in it, and which ranks' devices it reaches.
    std::shared_ptr<CommunicatorContext> context_;
    int rank_;
    std::shared_ptr<DeviceTopology> devices_;
    /// [ranks] addresses in this process, null where requests are sent, and the mappings that keep them valid.
    std::vector<std::byte *> bases_;
    std::vector<Device::SharedMemory> opened_;
    Device::Stream stream_;
    /// Copies for kernels of what the host knows by rank.
    Device::DeviceBuffer<std::byte *> deviceBases_;
    Device::DeviceBuffer<std::uint64_t> deviceBytes_;
    Device::DeviceBuffer<std::uint8_t> deviceNoAtomics_; ///< empty if all may be changed
    std::shared_ptr<Pinned> pinned_;
    std::mutex mutex_; ///< guards the stream and `pinned_->result`: the proxy's thread operates, too
    std::string whyNoWaits_;
    std::vector<std::string> whyNoAtomics_;   ///< indexed by rank
    std::unique_ptr<MessageAccess> messages_; ///< the last member: it uses the others; null if no rank needs it
};

namespace Detail {

/// The same values in device memory.
template <class T>
Device::DeviceBuffer<T> toDeviceBuffer(const std::vector<T> &values) {
    const Device::Stream stream;
    Device::DeviceBuffer<T> buffer(values.size());
    Device::copy(buffer.data(), MemorySpace::Device, values.data(), MemorySpace::Host, values.size() * sizeof(T),
                 stream);
    stream.synchronize();
    return buffer;
}

/// Queues the operation on a word in device memory; `result`, in pinned memory, becomes the word's previous value.
void launchAtomic(Device::StreamHandle stream, void *word, const AtomicRequest &request, std::uint64_t *result);

} // namespace Detail

} // namespace DNDS
