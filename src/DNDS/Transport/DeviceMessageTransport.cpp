#include "DNDS/Base/Environment.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Transport/DeviceRowCopy.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"
#include "DNDS/Transport/ExchangeStream.hpp"
#include "DNDS/Transport/MessageLayout.hpp"
#include "DNDS/Transport/MessageTransport.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

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

DeviceMessageTransport::DeviceMessageTransport(Buffers buffers, TransportPlan plan, const TransportSetup &setup)
    : PersistentMessages(std::move(plan)), buffers_(buffers), stream_(setup.stream) {
    build();
}

DeviceMessageTransport::Buffer DeviceMessageTransport::makeBuffer(std::size_t bytes) const {
    // Kernels and MPI see the buffer at different addresses on the emulated device, and at the same one elsewhere.
    Buffer buffer;
    if (buffers_ == Buffers::Pinned) {
        buffer.pinned = HostDeviceBuffer(bytes, Device::pinnedHostMemory());
        buffer.forKernels = buffer.forMpi = buffer.pinned.write(MemorySpace::Host, "staging of an exchange");
    } else {
        buffer.onDevice = Device::DeviceBuffer<std::byte>(bytes);
        buffer.forKernels = buffer.onDevice.data();
        buffer.forMpi = static_cast<std::byte *>(Device::messageAddress(buffer.forKernels, bytes));
    }
    return buffer;
}

void DeviceMessageTransport::build() {
    // Everything that depends on the rows' bytes but not on the arrays' addresses: kernels pack to and unpack from
    // fixed buffers, so that requests and their registered memory outlive swaps of arrays.
    receives_.clear();
    sends_.clear();
    pack_ = {};
    unpack_ = {};
    sizes_.clear();
    outgoing_ = MessageLayout(plan_.outgoing);
    incoming_ = MessageLayout(plan_.incoming);
    sendBuffer_ = makeBuffer(outgoing_.total());
    receiveBuffer_ = makeBuffer(incoming_.total());
    sizes_.reserve(outgoing_.size() + incoming_.size());
    for (std::size_t k = 0; k < outgoing_.size(); ++k) {
        for (const RowGather &part : plan_.outgoing[k].parts)
            pack_.addGather(part);
        const ByteCount &size = sizes_.emplace_back(outgoing_.bytes(k));
        addSend(sendBuffer_.forMpi + outgoing_.begin(k), size.count(), size.type());
    }
    for (std::size_t k = 0; k < incoming_.size(); ++k) {
        for (const RowScatter &part : plan_.incoming[k].parts)
            unpack_.addScatter(part);
        const ByteCount &size = sizes_.emplace_back(incoming_.bytes(k));
        addReceive(receiveBuffer_.forMpi + incoming_.begin(k), size.count(), size.type());
    }
}

void DeviceMessageTransport::replacePlan(TransportPlan plan) {
    // Kernels in flight may still use the lists and buffers that are replaced.
    stream_->stream.synchronize();
    plan_ = std::move(plan);
    build();
}

// O(messages x parts), without communication: only kernels learn new addresses, MPI's requests do not change.
void DeviceMessageTransport::bind(const Endpoints &endpoints) {
    for (std::size_t k = 0, segment = 0; k < outgoing_.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p, ++segment)
            pack_.point(segment, endpoints.sources[p], sendBuffer_.forKernels + outgoing_.part(k, p),
                        buffers_ == Buffers::Pinned ? MemorySpace::Host : MemorySpace::Device);
    for (std::size_t k = 0, segment = 0; k < incoming_.size(); ++k)
        for (std::size_t p = 0; p < plan_.incoming[k].parts.size(); ++p, ++segment)
            unpack_.point(segment, receiveBuffer_.forKernels + incoming_.part(k, p),
                          endpoints.destinations[p] + plan_.incoming[k].parts[p].offset());
    pack_.prepare(stream_->stream);
    unpack_.prepare(stream_->stream);
}

void DeviceMessageTransport::start() {
    unpacked_.synchronize(); // of the round before: the messages of this one go to the same buffer
    // Receives are posted while the kernel packs.
    pack_.launch(stream_->stream);
    packed_.record(stream_->stream);
    packing_ = true;
    received_ = false;
    sent_ = false;
    receives_.startAll();
}

// Sends: packing, in flight, sent. Receives: in flight, received, unpacking queued. True when all messages have
// moved: the unpacking kernel may still run, and later work on the stream comes after it.
bool DeviceMessageTransport::progress() {
    // MPI knows nothing of streams: sends may only start when the host has seen that the kernel has run.
    if (packing_ && packed_.reached()) {
        packing_ = false;
        sends_.startAll();
    }
    if (!received_ && receives_.testAll()) {
        received_ = true;
        unpack_.launch(stream_->stream);
        unpacked_.record(stream_->stream);
    }
    sent_ = sent_ || (!packing_ && sends_.testAll());
    return received_ && sent_;
}

std::string DeviceMessageTransport::awaited() const {
    return received_ && packing_ ? "the device to pack rows" : PersistentMessages::awaited();
}

void DeviceMessageTransport::renew(const CommunicatorContext &context) {
    stream_->stream.synchronize();
    plan_.channel = context.renewed(plan_.channel);
    build();
}

/// The common part of the lines of the table.
TransportDescriptor describe(DeviceMessageTransport::Buffers buffers) {
    TransportDescriptor transport;
    transport.servesDevice = transport.needsProgress = true;
    transport.make = [buffers](TransportPlan plan, const TransportSetup &setup) {
        return std::make_unique<DeviceMessageTransport>(buffers, std::move(plan), setup);
    };
    return transport;
}

} // namespace

TransportDescriptor describeStagedTransport() {
    TransportDescriptor transport = describe(DeviceMessageTransport::Buffers::Pinned);
    transport.kind = TransportKind::Staged;
    transport.name = "staged";
    transport.order = 4;
    transport.preference = 10;
    transport.reach = [](const CommunicatorContext &, int) {
        return Reach::yes(readEnvironment().forceHostStaging ? forcedStaging : "");
    };
    return transport;
}

TransportDescriptor describeDirectTransport() {
    TransportDescriptor transport = describe(DeviceMessageTransport::Buffers::OnDevice);
    transport.kind = TransportKind::Direct;
    transport.name = "direct";
    transport.order = 5;
    transport.preference = 20;
    transport.prepare = [](CommunicatorContext &context) { DeviceTopology::of(context); };
    transport.reach = [](const CommunicatorContext &context, int) {
        const Environment environment = readEnvironment();
        if (environment.forceHostStaging)
            return Reach::notMeantFor(forcedStaging);
        if (environment.disableGpuAwareMpi)
            return Reach::no("DNDS_DISABLE_GPU_AWARE_MPI is set");
        const auto devices = DeviceTopology::madeFor(context);
        return devices->mpiTakesDeviceMemory() ? Reach::yes(devices->aboutMpi()) : Reach::no(devices->aboutMpi());
    };
    return transport;
}

} // namespace DNDS
