#include "DNDS/Transport/NodeTransport.hpp"

#include <utility>

namespace DNDS {

NodeTransport::NodeTransport(TransportPlan plan, const TransportSetup &setup)
    : plan_(std::move(plan)), context_(setup.context.shared_from_this()), arena_(context_->node().arena) {
    DNDS_CHECK(arena_ != nullptr, StateError, "there is no shared memory on this node: {}",
               context_->node().whyNoArena);
}

// O(peers), for messages of waits that have become long. The first peer that is awaited stands for all.
std::string NodeTransport::awaited() const {
    for (std::size_t k = 0; k < plan_.incoming.size(); ++k)
        if (waitsForWriter(k))
            return fmt::format("rank {} to send rows", plan_.incoming[k].peer);
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        if (waitsForReader(k))
            return fmt::format("rank {} to take rows", plan_.outgoing[k].peer);
    return "rows";
}

} // namespace DNDS
