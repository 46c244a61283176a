#include "DNDS/OneSided/PeerWaits.hpp"

namespace DNDS {

void PeerWaits::check(int peer, const char *what, double seconds) const {
    const NodeTopology &node = context_->node();
    const auto alive = [&](int rank) {
        return !node.arena || !node.sameNode(rank) || node.arena->alive(node.nodeRank[static_cast<std::size_t>(rank)]);
    };
    if (peer != anyone)
        return checkPeer(alive(peer), peer, what, seconds, patience_);
    for (int rank = 0; rank < context_->comm().size(); ++rank)
        DNDS_CHECK(alive(rank), PeerError, "the process of rank {} has ended while this rank waited for others to {}",
                   rank, what);
    DNDS_CHECK(patience_ <= 0.0 || seconds < patience_, PeerError,
               "waited {:.3g} s for other ranks to {} (DNDS_WAIT_TIMEOUT): has one of them ended, or is it elsewhere?",
               seconds, what);
}

} // namespace DNDS
