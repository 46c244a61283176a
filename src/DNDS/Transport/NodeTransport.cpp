#include "DNDS/Transport/NodeTransport.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"

#include <utility>

namespace DNDS {

NodeTransport::NodeTransport(TransportPlan plan, const TransportSetup &setup)
    : plan_(std::move(plan)), arena_(setup.context.node().arena), crowded_(setup.context.node().crowded),
      round_(setup.round) {
    DNDS_CHECK(arena_ != nullptr, StateError, "there is no shared memory on this node: {}",
               setup.context.node().whyNoArena);
    const auto rankOf = [&](int peer) { return setup.context.node().nodeRank(peer); };
    for (const Outgoing &outgoing : plan_.outgoing)
        readerRanks_.push_back(rankOf(outgoing.peer));
    for (const Incoming &incoming : plan_.incoming)
        writerRanks_.push_back(rankOf(incoming.peer));
}

void *NodeTransport::allocateRecord(std::size_t bytes, std::size_t alignment) {
    return allocateData(*arena_, bytes, alignment, "flags of an exchange");
}

void NodeTransport::publish(int nodeRank, const void *record) noexcept {
    arena_->publish(nodeRank, round_, *arena_->locate(record));
}

std::byte *NodeTransport::lookUpBytes(int nodeRank, int peer) {
    const auto place = arena_->lookUp(nodeRank, round_);
    DNDS_CHECK(place.has_value(), StateError,
               "rank {} did not set up this exchange at the same time: ranks set up exchanges in different orders",
               peer);
    return arena_->translate(nodeRank, *place);
}

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
