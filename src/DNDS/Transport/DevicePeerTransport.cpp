#include "DNDS/Base/Environment.hpp"
#include "DNDS/Device/SharedMemory.hpp"
#include "DNDS/Transport/DeviceRowCopy.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"
#include "DNDS/Transport/ExchangeStream.hpp"
#include "DNDS/Transport/MessageLayout.hpp"
#include "DNDS/Transport/NodeTransport.hpp"
#include "DNDS/Transport/PeerEdge.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

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

/// Sources whose exchange was destroyed while readers still had them open. Guarded by the lock in `retire`.
std::vector<std::unique_ptr<PackedSource>> &retiredSources() {
    static auto *const sources = new std::vector<std::unique_ptr<PackedSource>>; // some outlive the process's statics
    return *sources;
}

/// Keeps a source, if there is one, until its readers have closed it, and frees closed ones. Not parked with the
/// communicator: its recovery does not wait for readers that live on.
void retire(std::unique_ptr<PackedSource> source) noexcept {
    static std::mutex retiring; // exchanges may be destroyed on any thread
    const std::lock_guard lock(retiring);
    const std::exception_ptr failure = attempt([&] {
        auto &retired = retiredSources();
        if (source)
            retired.push_back(std::move(source));
        std::erase_if(retired, [](const auto &old) { return old->unused(); });
    });
    if (failure)
        static_cast<void>(source.release()); // it stays taken
}

PackedSource::PackedSource(std::shared_ptr<NodeArena> arena, std::size_t bytes, std::size_t readers)
    : arena_(std::move(arena)), buffer_(bytes) {
    // The destructor does not run where the constructor throws.
    const OnFailure undo([&] { free(); });
    records_.reserve(readers);
    for (std::size_t k = 0; k < readers; ++k)
        records_.push_back(new (allocateData(*arena_, sizeof(PeerRecord), alignof(PeerRecord), "flags of an exchange"))
                               PeerRecord{});
}

void PackedSource::free() noexcept {
    for (PeerRecord *record : records_)
        arena_->deallocate(record, sizeof(PeerRecord), alignof(PeerRecord));
}

DevicePeerTransport::DevicePeerTransport(TransportPlan plan, const TransportSetup &setup)
    : NodeTransport(std::move(plan), setup), stream_(setup.stream), incomingPeers_(plan_.incoming.size()),
      outgoing_(plan_.outgoing), incoming_(plan_.incoming) {
    // A good moment to free sources that readers have closed since.
    retire(nullptr);
    build();
    for (const Incoming &incoming : plan_.incoming)
        notes_.expect(incoming.peer);
    if (plan_.outgoing.empty())
        return;
    // Two buffers, for even and odd epochs, in one allocation with one handle.
    source_ = std::make_unique<PackedSource>(arena_, 2 * secondBuffer(), plan_.outgoing.size());
    const Device::SharedHandle handle = Device::share(source_->memory());
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k) {
        PeerRecord *record = source_->records()[k];
        record->buffer = handle;
        record->begin[0] = outgoing_.begin(k);
        record->begin[1] = secondBuffer() + outgoing_.begin(k);
        notes_.tell(plan_.outgoing[k].peer, *arena_->locate(record));
    }
}

DevicePeerTransport::~DevicePeerTransport() {
    if (inForkedChild()) // the flags are the parent's
        return;
    stream_->drain(); // kernels read what peers packed, and the lists
    for (IncomingPeer &writer : incomingPeers_) {
        // Closed before the flag tells the owner so: afterwards it may free the memory.
        writer.memory = {};
        if (writer.record != nullptr)
            writer.record->edge.closeReader();
    }
    if (!source_)
        return;
    if (!connected_) // not looked up yet
        for (PeerRecord *record : source_->records())
            record->edge.closeReader();
    retire(std::move(source_));
}

// Lists differ between the two sets only in the addresses that `bind` gives them.
void DevicePeerTransport::build() {
    // Two equal sets of copies that differ in the buffer they are pointed at: switching buffers costs no upload.
    for (Copies &copies : copies_) {
        copies.pack = {};
        copies.unpack = {};
        for (const Outgoing &outgoing : plan_.outgoing)
            for (const RowGather &part : outgoing.parts)
                copies.pack.addGather(part);
        for (const Incoming &incoming : plan_.incoming)
            for (const RowScatter &part : incoming.parts)
                copies.unpack.addScatter(part);
    }
}

void DevicePeerTransport::lookUpRecords() {
    // Records of all first, so that all are closed in the end, also where the memory of one cannot be opened.
    forEachOf(incomingPeers_.size(),
              [&](std::size_t k) { incomingPeers_[k].record = lookUp<PeerRecord>(plan_.incoming[k].peer, k); });
    forEachOf(incomingPeers_.size(), [&](std::size_t k) {
        incomingPeers_[k].memory = Device::SharedMemory(incomingPeers_[k].record->buffer);
    });
}

void DevicePeerTransport::replacePlan(TransportPlan plan) {
    stream_->stream.synchronize();
    plan_ = std::move(plan);
    build();
}

void DevicePeerTransport::bind(const Endpoints &endpoints) {
    // Both buffers of this rank's readers, and both of each writer this rank reads from. Segments are in the order
    // in which `build` added them.
    for (std::size_t b = 0; b < 2; ++b) {
        std::size_t segment = 0;
        for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
            for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p, ++segment)
                copies_[b].pack.point(segment, endpoints.sources[p],
                                      source_->memory() + b * secondBuffer() + outgoing_.part(k, p));
        segment = 0;
        for (std::size_t k = 0; k < incomingPeers_.size(); ++k) {
            const std::byte *message =
                incomingPeers_[k].memory.as<const std::byte>() + incomingPeers_[k].record->begin[b];
            for (std::size_t p = 0; p < plan_.incoming[k].parts.size(); ++p, ++segment)
                copies_[b].unpack.point(segment, message + (incoming_.part(k, p) - incoming_.begin(k)),
                                        endpoints.destinations[p] + plan_.incoming[k].parts[p].offset());
        }
        copies_[b].pack.prepare(stream_->stream);
        copies_[b].unpack.prepare(stream_->stream);
    }
}

void DevicePeerTransport::giveBack() {
    for (IncomingPeer &writer : incomingPeers_)
        writer.record->edge.taken(epoch_);
}

// Double buffering by the parity of epochs: packing epoch e needs readers to be done with e - 2, so ranks may be an
// epoch apart. The host waits for its own kernel of the previous epoch only.
void DevicePeerTransport::start() {
    read_.synchronize(); // queued in the epoch before; writers need it for the one after this
    giveBack();
    ++epoch_;
    for (IncomingPeer &writer : incomingPeers_)
        writer.pending = true;
    reading_ = !incomingPeers_.empty();
    packing_ = plan_.outgoing.empty() ? Packing::Done : Packing::WaitingForReaders;
    progress();
}

bool DevicePeerTransport::progress() {
    progressPacking();
    progressReading();
    return packing_ == Packing::Done && !reading_;
}

void DevicePeerTransport::progressPacking() {
    if (packing_ == Packing::WaitingForReaders) {
        // All readers at once: one kernel packs for all of them, so that the slowest one decides.
        for (const PeerRecord *record : source_->records())
            if (!record->edge.mayPack(epoch_))
                return;
        copies_[epoch_ % 2].pack.launch(stream_->stream);
        packed_.record(stream_->stream);
        packing_ = Packing::Running;
    }
    if (packing_ == Packing::Running && packed_.reached()) {
        for (PeerRecord *record : source_->records())
            record->edge.packed(epoch_);
        packing_ = Packing::Done;
    }
}

// O(writers) loads until the last one has packed. Polls are not repeated for writers that have packed (`pending`).
void DevicePeerTransport::progressReading() {
    if (!reading_)
        return;
    bool all = true;
    for (IncomingPeer &writer : incomingPeers_) {
        if (!writer.pending)
            continue;
        writer.pending = writer.record->edge.poll(epoch_) == EdgeState::Waiting;
        all = all && !writer.pending;
    }
    // Likewise: one kernel unpacks from all writers when the last of them has packed.
    if (!all)
        return;
    reading_ = false;
    copies_[epoch_ % 2].unpack.launch(stream_->stream);
    read_.record(stream_->stream);
}

bool DevicePeerTransport::settle() noexcept {
    packing_ = Packing::Done;
    reading_ = false;
    stream_->drain(); // kernels that this rank has launched, which wait for nothing
    return true;
}

void DevicePeerTransport::renew(const CommunicatorContext & /*context*/) {
    // The writer owns the records and resets the edges, between two meetings of a recovery: no peer polls them
    // then.
    epoch_ = EpochFlag::initialEpoch;
    if (source_)
        for (PeerRecord *record : source_->records())
            record->edge.renew();
    for (IncomingPeer &writer : incomingPeers_)
        writer.pending = false;
}

} // namespace

TransportDescriptor describePeerTransport() {
    TransportDescriptor transport;
    transport.kind = TransportKind::Peer;
    transport.name = "peer";
    transport.servesDevice = transport.needsProgress = true;
    transport.order = 6;
    transport.preference = 30;
    transport.prepare = [](CommunicatorContext &context) { DeviceTopology::of(context); };
    transport.reach = [](const CommunicatorContext &context, int peer) {
        if (readEnvironment().forceHostStaging)
            return Reach::notMeantFor(forcedStaging);
        if (!context.node().sameNode(peer))
            return Reach::notMeantFor("on another node");
        const auto devices = DeviceTopology::madeFor(context);
        return devices->reaches(peer) ? Reach::yes("on this node, where devices read each other's memory")
                                      : Reach::no("on this node, but " + devices->whyNot(peer));
    };
    transport.make = [](TransportPlan plan, const TransportSetup &setup) {
        return std::make_unique<DevicePeerTransport>(std::move(plan), setup);
    };
    return transport;
}

} // namespace DNDS
