/// @file DevicePeerTransport.hpp
/// @brief Between ranks of one node: each device reads packed rows directly from the other's memory.
#pragma once

#include "DNDS/Device/SharedMemory.hpp"
#include "DNDS/Transport/DeviceRowCopy.hpp"
#include "DNDS/Transport/ExchangeStream.hpp"
#include "DNDS/Transport/MessageLayout.hpp"
#include "DNDS/Transport/NodeTransport.hpp"
#include "DNDS/Transport/PeerEdge.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace DNDS {

/// A writer's record for one reader, in memory that their hosts share.
struct PeerRecord {
    PeerEdge edge;
    Device::SharedHandle buffer;     ///< handle of both buffers
    std::uint64_t begin[2] = {0, 0}; ///< begin of the reader's message in each of them
};

/// Device memory with packed rows that other ranks of the node read, and a record for each of them. It outlives its
/// exchange until all readers have closed it. Local.
class PackedSource {
  public:
    /// Throws MemoryError.
    PackedSource(std::shared_ptr<NodeArena> arena, std::size_t bytes, std::size_t readers);
    PackedSource(const PackedSource &) = delete;
    PackedSource &operator=(const PackedSource &) = delete;
    ~PackedSource() { free(); }

    std::byte *memory() const noexcept { return buffer_.data(); }
    const std::vector<PeerRecord *> &records() const noexcept { return records_; }
    /// Whether no reader will access it any more.
    bool unused() const noexcept {
        return std::ranges::all_of(records_, [](const PeerRecord *record) { return record->edge.readerIsClosed(); });
    }

  private:
    /// Frees the records; the buffer frees itself.
    void free() noexcept;

    /// Memory of the records, which readers map.
    std::shared_ptr<NodeArena> arena_;
    Device::DeviceBuffer<std::byte> buffer_;
    /// One a reader, in the order of the plan.
    std::vector<PeerRecord *> records_;
};

/// One kernel packs the rows for all readers into a buffer that they have opened, one kernel of each reader copies its
/// rows from the buffers of all owners into the destination. No byte passes through the host. `PeerEdge` is the
/// protocol; arrays need not be shared, so that resizing and swapping them costs nothing here.
class DevicePeerTransport final : public NodeTransport {
  public:
    /// Local. Throws MemoryError.
    DevicePeerTransport(TransportPlan plan, const TransportSetup &setup);
    ~DevicePeerTransport() override;

    static TransportDescriptor describe();
    void replacePlan(TransportPlan plan) override;
    void bind(const Endpoints &endpoints) override;
    void start() override;
    bool progress() override;
    bool settle() noexcept override;
    void renew(const CommunicatorContext &context) override;

  private:
    /// A rank that this one reads from.
    struct IncomingPeer {
        /// In the writer's arena; its packed rows, opened here; and whether this epoch's were not seen yet.
        PeerRecord *record = nullptr;
        Device::SharedMemory memory;
        bool pending = false;
    };
    /// Two launches, one for each buffer.
    struct Copies {
        DeviceRowCopy pack;
        DeviceRowCopy unpack;
    };

    void lookUpRecords() override;
    bool waitsForReader(std::size_t k) const override {
        return packing_ == Packing::WaitingForReaders && !source_->records()[k]->edge.mayPack(epoch_);
    }
    bool waitsForWriter(std::size_t k) const override { return reading_ && incomingPeers_[k].pending; }

    /// Makes the lists of both copies for the plan.
    void build();
    /// As the writer: packs when all readers have released the buffer, and tells them when the kernel has run.
    void progressPacking();
    /// As a reader: launches the copy when all writers have packed.
    void progressReading();
    /// The kernel that reads this epoch has run: its buffers may be packed again.
    void giveBack();
    /// Distance of the second buffer from the first.
    std::size_t secondBuffer() const noexcept { return outgoing_.next(); }

    std::shared_ptr<ExchangeStream> stream_;
    /// One for each of `plan_.incoming`.
    std::vector<IncomingPeer> incomingPeers_;
    MessageLayout outgoing_;
    MessageLayout incoming_;
    /// This rank's packed rows; null where it sends none.
    std::unique_ptr<PackedSource> source_;
    /// By `epoch_ % 2`, as the buffers.
    Copies copies_[2];
    /// The kernel that packs this epoch's rows, and the kernel that reads the writers'.
    Device::Event packed_;
    Device::Event read_;
    enum class Packing : unsigned char { Done, WaitingForReaders, Running } packing_ = Packing::Done;
    bool reading_ = false; ///< some rows of this epoch were not seen yet
};

} // namespace DNDS
