/// @file MessagePlan.hpp
/// @brief From a pattern and arrays' row layouts to the bytes that go to and come from each peer.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Transport/Transport.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

/// The messages of one exchange to and from this rank, for all peers (itself included): which rows of which part, and
/// how many bytes. Parts of all arrays are numbered through.
struct MessagePlan {
    /// One message a peer, ascending; peers with no bytes to move have none.
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    std::vector<std::size_t> destinationBytes; ///< each part's, where the destination is a staging buffer (pushes)

    /// Whether peers see the same messages: the same peers, bytes and row widths.
    bool sameAs(const MessagePlan &other) const;
};

/// Lays out the messages. Local. Cost O(rows exchanged).
MessagePlan planMessages(const ExchangePattern &pattern, Direction direction, std::span<const RowLayout> fathers,
                         std::span<const RowLayout> sons);

/// The transport to each peer.
using PeerKinds = std::map<int, TransportKind>;

/// One plan for each transport. Local.
std::map<TransportKind, TransportPlan> splitByTransport(const MessagePlan &plan, const Channel &channel,
                                                        const PeerKinds &kinds);

/// The addresses of the parts: sources and destinations of the arrays themselves, in a push without the destinations.
Endpoints endpointsOf(Direction direction, std::span<const RowLayout> fathers, std::span<const RowLayout> sons);

/// Whether a layout can replace `bound` without new plans: the same rows of the same widths at another address.
bool sameRows(const RowLayout &bound, const RowLayout &now);
/// Whether a layout is in the very memory of `bound`.
bool sameMemory(const RowLayout &bound, const RowLayout &now);

/// Distinguishes exchanges of a communicator: ranks that create them in different orders differ here, even
/// if all of them have the same shape.
struct ExchangeIdentity {
    int tag = 0;
    std::uint64_t pattern = 0;   ///< its serial number
    std::string names;           ///< the arrays' names
    std::uint64_t signature = 0; ///< hash of rows and layouts: pairs that exchange rows must agree about it
};

/// Checks that all ranks create the same exchange, and agree about what each pair of them exchanges and by which
/// transport. Collective; one reduction when all is well. Throws on all ranks: `mine`, which is what this rank caught
/// while planning, if anything; StateError naming arrays that differ; LayoutError or ArgumentError naming the pair of
/// ranks that disagrees.
void agreeOnPlan(CommunicatorContext &context, const MessagePlan &plan, const ExchangeIdentity &identity,
                 const PeerKinds &kinds, const std::exception_ptr &mine);

} // namespace DNDS
