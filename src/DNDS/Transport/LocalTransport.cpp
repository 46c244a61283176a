#include "DNDS/Transport/LocalTransport.hpp"

#include "DNDS/Transport/DeviceLocalTransport.hpp"

#include <cstring>
#include <utility>

namespace DNDS {

void LocalTransport::replacePlan(TransportPlan plan) {
    plan_ = std::move(plan);
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

void LocalTransport::start() {
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p)
            if (const RowScatter &to = plan_.incoming[k].parts[p]; to.contiguous())
                plan_.outgoing[k].parts[p].gather(endpoints_.sources[p], endpoints_.destinations[p] + to.offset());
    for (const Scattered &part : scattered_) {
        part.boxes.copy(endpoints_.sources[part.part], endpoints_.destinations[part.part], nullptr);
        for (const Device::CopyBlock &block : part.blocks)
            std::memcpy(endpoints_.destinations[part.part] + block.destination,
                        endpoints_.sources[part.part] + block.source, block.bytes);
    }
}

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
