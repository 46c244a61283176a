#include "DNDS/Transport/LocalTransport.hpp"

#include "DNDS/Transport/DeviceLocalTransport.hpp"

namespace DNDS {

void LocalTransport::start() {
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p)
            plan_.outgoing[k].parts[p].gather(endpoints_.sources[p],
                                              endpoints_.destinations[p] + plan_.incoming[k].parts[p].offset);
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
