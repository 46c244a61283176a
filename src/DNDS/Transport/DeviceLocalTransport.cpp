#include "DNDS/Transport/DeviceLocalTransport.hpp"

#include "DNDS/Base/Error.hpp"

#include <utility>

namespace DNDS {

DeviceLocalTransport::DeviceLocalTransport(TransportPlan plan, std::shared_ptr<ExchangeStream> stream)
    : plan_(std::move(plan)), stream_(std::move(stream)) {
    build();
}

DeviceLocalTransport::~DeviceLocalTransport() {
    try {
        stream_->stream.synchronize(); // a kernel uses the lists
    } catch (const Error &) {          // the device is lost, and so are they
    }
}

void DeviceLocalTransport::build() {
    copy_ = {};
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p) {
            const RowGather &from = plan_.outgoing[k].parts[p];
            const RowScatter &to = plan_.incoming[k].parts[p];
            to.contiguous() ? copy_.addGather(from) : copy_.addBlocks(blocksBetween(from, to));
        }
}

void DeviceLocalTransport::replacePlan(TransportPlan plan) {
    stream_->stream.synchronize();
    plan_ = std::move(plan);
    build();
}

void DeviceLocalTransport::bind(const Endpoints &endpoints) {
    std::size_t segment = 0;
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p, ++segment)
            copy_.point(segment, endpoints.sources[p], endpoints.destinations[p] + plan_.incoming[k].parts[p].offset());
    copy_.prepare(stream_->stream);
}

} // namespace DNDS
