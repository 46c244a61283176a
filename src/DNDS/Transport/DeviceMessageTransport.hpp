/// @file DeviceMessageTransport.hpp
/// @brief Rows of device memory in MPI messages: by way of pinned host memory, or straight from device memory.
#pragma once

#include "DNDS/Transport/DeviceRowCopy.hpp"
#include "DNDS/Transport/ExchangeStream.hpp"
#include "DNDS/Transport/MessageLayout.hpp"
#include "DNDS/Transport/MessageTransport.hpp"

#include <memory>
#include <vector>

namespace DNDS {

/// One kernel packs the rows for all peers into one buffer, MPI moves it, one kernel unpacks what came from all peers.
/// Only rows that move are touched. The buffers are pinned host memory (staged: works with every MPI) or device memory
/// (direct: needs an MPI that takes device pointers). They stay where they are, so that requests are made once and MPI
/// can keep what it registered.
///
/// `start` queues the packing and returns; the sends leave as soon as it has run, which `progress` notices. So, unlike
/// with host memory, this rank's rows may leave only when it next waits for any exchange.
class DeviceMessageTransport final : public PersistentMessages {
  public:
    enum class Buffers : unsigned char { Pinned, OnDevice };

    DeviceMessageTransport(Buffers buffers, TransportPlan plan, const TransportSetup &setup);
    ~DeviceMessageTransport() override { stream_->drain(); } // kernels use the buffers

    void replacePlan(TransportPlan plan) override;
    void bind(const Endpoints &endpoints) override;
    void start() override;
    bool progress() override;
    std::string awaited() const override;
    bool settle() noexcept override {
        packing_ = false;
        return PersistentMessages::settle();
    }
    void renew(const CommunicatorContext &context) override;

  private:
    /// One buffer for all messages of a direction, where kernels reach it and where MPI does.
    struct Buffer {
        HostDeviceBuffer pinned;                  ///< staged
        Device::DeviceBuffer<std::byte> onDevice; ///< direct
        std::byte *forKernels = nullptr;
        std::byte *forMpi = nullptr;
    };

    /// Makes buffers, copies and requests for the plan.
    void build();
    Buffer makeBuffer(std::size_t bytes) const;

    /// Kind of memory; the stream that packs and unpacks, which is the exchange's.
    Buffers buffers_;
    std::shared_ptr<ExchangeStream> stream_;
    /// Places of messages and parts in the two buffers.
    MessageLayout outgoing_;
    MessageLayout incoming_;
    /// One segment a message and part, in the order of the plan.
    DeviceRowCopy pack_;
    DeviceRowCopy unpack_;
    Buffer sendBuffer_;
    Buffer receiveBuffer_;
    std::vector<ByteCount> sizes_; ///< one a message: outgoing, then incoming
    /// The kernel that packs has run; and the kernel that unpacks, which reads the receive buffer.
    Device::Event packed_;
    Device::Event unpacked_;
    bool packing_ = false; ///< sends wait for `packed_`
};

TransportDescriptor describeStagedTransport();
TransportDescriptor describeDirectTransport();

} // namespace DNDS
