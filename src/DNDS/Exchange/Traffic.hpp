/// @file Traffic.hpp
/// @brief From a pattern and arrays' row layouts to the bytes that go to and come from each peer.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Exchange/Transport.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace DNDS {

/// The bytes of one exchange on this rank, for all peers (itself included). Parts of all arrays are numbered through.
struct Traffic {
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    std::vector<std::size_t> destinationBytes; ///< of each part, where the destination is a staging buffer (pushes)

    /// Whether peers would notice no difference: the same peers and bytes.
    bool sameAs(const Traffic &other) const;
};

/// Lays out the traffic. Local. Cost O(rows exchanged).
Traffic planTraffic(const ExchangePattern &pattern, Direction direction, std::span<const RowLayout> fathers,
                    std::span<const RowLayout> sons);

/// The addresses of the parts: sources and destinations of the arrays themselves, in a push without the destinations.
Endpoints endpointsOf(Direction direction, std::span<const RowLayout> fathers, std::span<const RowLayout> sons);

/// Whether a layout can replace `bound` without new plans: the same rows of the same widths at another address.
bool sameRows(const RowLayout &bound, const RowLayout &now);
/// Whether a layout is in the very memory of `bound`.
bool sameMemory(const RowLayout &bound, const RowLayout &now);

/// Checks that all ranks agree about what each pair of them exchanges, about the order in which exchanges are created
/// (`tag`) and about the transport. Collective; one reduction when all is well. `mine` is what this rank caught while
/// planning, if anything; its exception, or LayoutError naming the pair that disagrees, is thrown on all ranks.
void agreeOnTraffic(CommunicatorContext &context, const Traffic &traffic, std::uint64_t signature, int tag,
                    std::span<const TransportKind> kinds, const std::exception_ptr &mine);

} // namespace DNDS
