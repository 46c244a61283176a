#include "DNDS/Transport/BoxToBox.hpp"
#include "DNDS/Transport/DeviceRowCopy.hpp"
#include "DNDS/Transport/StreamWriter.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

#include <cstring>
#include <utility>

namespace DNDS {

namespace {

/// Copies in `start`, as a message would leave in `start`.
class LocalTransport final : public Transport {
  public:
    explicit LocalTransport(TransportPlan plan) { LocalTransport::replacePlan(std::move(plan)); }

    void replacePlan(TransportPlan plan) override;
    void bind(const Endpoints &endpoints) override { endpoints_ = endpoints; }
    void start() override;
    bool progress() override { return true; }

  private:
    struct Scattered { ///< a part whose destination is several runs
        std::size_t part;
        BoxToBox boxes;
        std::vector<Device::CopyBlock> blocks; ///< for rows that are no boxes
    };

    TransportPlan plan_;
    std::vector<Scattered> scattered_;
    Endpoints endpoints_;
};

/// Copies within this rank's device memory, by one kernel on the stream of the exchange.
class DeviceLocalTransport final : public Transport {
  public:
    DeviceLocalTransport(TransportPlan plan, std::shared_ptr<ExchangeStream> stream) : stream_(std::move(stream)) {
        DeviceLocalTransport::replacePlan(std::move(plan));
    }
    ~DeviceLocalTransport() override { stream_->drain(); } // a kernel uses the lists

    void replacePlan(TransportPlan plan) override;
    void bind(const Endpoints &endpoints) override;
    void start() override { copy_.launch(stream_->stream); }
    bool progress() override { return true; }

  private:
    TransportPlan plan_;
    std::shared_ptr<ExchangeStream> stream_;
    DeviceRowCopy copy_;
};

// O(runs), or O(boxes) where both sides are boxes. `start` then only copies: O(bytes), without allocation.
void LocalTransport::replacePlan(TransportPlan plan) {
    plan_ = std::move(plan);
    // A plan of one rank: message k is sent and received here, `outgoing[k]` and `incoming[k]` are its two ends.
    // Lists for destinations of several runs are made here, so that `start` only copies.
    scattered_.clear();
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p)
            if (const RowScatter &to = plan_.incoming[k].parts[p]; !to.contiguous()) {
                const RowGather &from = plan_.outgoing[k].parts[p];
                if (to.boxes().bytes() > 0)
                    scattered_.push_back({p, BoxToBox(from.byteBoxes(), to.boxes()), {}});
                else
                    scattered_.push_back({p, {}, blocksBetween(from, to)});
            }
}

// Complete on return. Source and destination are different memory: father and son, or staging.
void LocalTransport::start() {
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p)
            if (const RowScatter &to = plan_.incoming[k].parts[p]; to.contiguous()) {
                const RowGather &from = plan_.outgoing[k].parts[p];
                std::byte *const place = endpoints_.destinations[p] + to.offset();
                // Large copies go past the caches, as those of `BoxToBox`.
                if (!isStreamed(from.bytes(), from.bytes())) {
                    from.gather(endpoints_.sources[p], place);
                    continue;
                }
                StreamWriter past(place);
                from.gather(endpoints_.sources[p], past);
                past.finish();
            }
    for (const Scattered &part : scattered_) {
        part.boxes.copy(endpoints_.sources[part.part], endpoints_.destinations[part.part], nullptr);
        for (const Device::CopyBlock &block : part.blocks)
            std::memcpy(endpoints_.destinations[part.part] + block.destination,
                        endpoints_.sources[part.part] + block.source, block.bytes);
    }
}

// The same on the device: one segment a part, all copied by one kernel.
void DeviceLocalTransport::replacePlan(TransportPlan plan) {
    stream_->stream.synchronize();
    plan_ = std::move(plan);
    copy_ = {};
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p) {
            const RowGather &from = plan_.outgoing[k].parts[p];
            const RowScatter &to = plan_.incoming[k].parts[p];
            to.contiguous() ? copy_.addGather(from) : copy_.addBlocks(blocksBetween(from, to));
        }
}

void DeviceLocalTransport::bind(const Endpoints &endpoints) {
    std::size_t segment = 0;
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p, ++segment)
            copy_.point(segment, endpoints.sources[p], endpoints.destinations[p] + plan_.incoming[k].parts[p].offset());
    copy_.prepare(stream_->stream);
}

} // namespace

TransportDescriptor describeLocalTransport() {
    TransportDescriptor transport;
    transport.kind = TransportKind::Local;
    transport.name = "local";
    transport.servesHost = transport.servesDevice = transport.withinRank = true;
    transport.order = 3;
    transport.preference = 10;
    transport.reach = [](const CommunicatorContext &, int) { return Reach::notMeantFor("another rank"); };
    transport.make = [](TransportPlan plan, const TransportSetup &setup) -> std::unique_ptr<Transport> {
        if (setup.stream)
            return std::make_unique<DeviceLocalTransport>(std::move(plan), setup.stream);
        return std::make_unique<LocalTransport>(std::move(plan));
    };
    return transport;
}

} // namespace DNDS
