/// @file DevicePeerTransport.hpp
/// @brief Between ranks of one node: each device reads packed rows straight from the other's memory.
#pragma once

#include "DNDS/Transport/DeviceLane.hpp"
#include "DNDS/Transport/DeviceRowCopy.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"
#include "DNDS/Transport/MessageLayout.hpp"
#include "DNDS/Transport/PackedSource.hpp"
#include "DNDS/Transport/PeerFailure.hpp"
#include "DNDS/Transport/Transport.hpp"

#include <memory>
#include <vector>

namespace DNDS {

/// One kernel packs the rows for all readers into a buffer that they have opened, one kernel of each reader copies its
/// rows from the buffers of all owners into the destination. No byte passes through the host. `PeerEdge` is the
/// protocol; arrays need not be shared, so that resizing and swapping them costs nothing here.
class DevicePeerTransport final : public Transport {
  public:
    /// Local. `round` is the context's number of this set-up; `patience` the seconds to wait for a peer, 0 for ever.
    /// Throws MemoryError, and StateError where the device does not share memory.
    DevicePeerTransport(TransportPlan plan, const CommunicatorContext &context, std::uint64_t round,
                        std::shared_ptr<DeviceLane> lane, double patience);
    ~DevicePeerTransport() override;

    TransportKind kind() const noexcept override { return TransportKind::Peer; }
    void connect() override;
    void adopt(TransportPlan plan) override;
    void bind(const Endpoints &endpoints) override;
    void start() override;
    bool progress() override;
    void wait() override;
    void checkPeers(double secondsWaited) override;
    void refuse() override;
    void abandon() noexcept override;

  private:
    /// A rank that this one reads from.
    struct Writer {
        int nodeRank = -1;
        PeerRecord *record = nullptr;
        Device::SharedMemory memory;
        bool pending = false;
        bool arrived = false;
    };
    /// Two launches, one for each buffer.
    struct Copies {
        DeviceRowCopy pack;
        DeviceRowCopy unpack;
    };

    void build();
    void progressPacking();
    void progressReading();
    /// Reading of this epoch has run, or is left out: its buffers may be packed anew.
    void giveBack();
    /// Readers get no rows in this epoch, if they have none yet.
    void refuseReaders();
    /// Where the second buffer begins behind the first.
    std::size_t secondBuffer() const noexcept { return outgoing_.next(); }

    TransportPlan plan_;
    std::shared_ptr<NodeArena> arena_;
    std::shared_ptr<DeviceTopology> devices_;
    std::shared_ptr<DeviceLane> lane_;
    std::vector<int> readers_; ///< their ranks on the node
    std::vector<Writer> writers_;
    std::uint64_t round_;
    double patience_;
    bool crowded_;
    MessageLayout outgoing_;
    MessageLayout incoming_;
    std::unique_ptr<PackedSource> source_;
    Copies copies_[2];
    Device::Event packed_;
    Device::Event read_;
    std::uint32_t epoch_ = PeerEdge::initialEpoch;
    enum class Packing : unsigned char { Done, WaitingForReaders, Running } packing_ = Packing::Done;
    bool reading_ = false; ///< rows of this epoch were not all seen yet
    bool connected_ = false;
    PeerFailure failure_;
};

} // namespace DNDS
