#include "DNDS/Exchange/MessagePlan.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <array>

namespace DNDS {

namespace {

/// Bytes of these rows in one part: O(1), except for lists of rows with widths of their own.
std::size_t bytesOf(const RowList &rows, const RowPart &part) {
    if (rows.isRange())
        return part.begin(rows.first() + rows.count()) - part.begin(rows.first());
    if (part.offsets == nullptr)
        return static_cast<std::size_t>(rows.count()) * part.stride;
    std::size_t sum = 0;
    rows.forEach([&](index row) { sum += part.begin(row + 1) - part.begin(row); });
    return sum;
}

/// Adds to a hash the widths of the rows of a part whose rows have widths of their own.
std::uint64_t widthsOf(const RowList &rows, const RowPart &part, std::uint64_t before) {
    if (part.offsets == nullptr)
        return before;
    ContentHash hash;
    hash.add(before);
    rows.forEach([&](index row) { hash.add(static_cast<std::uint64_t>(part.begin(row + 1) - part.begin(row))); });
    return hash.value();
}

/// Calls `function` for each part of all layouts, in the order in which parts are numbered.
template <class Function>
void forEachPart(std::span<const RowLayout> layouts, Function &&function) {
    for (const RowLayout &layout : layouts)
        for (int p = 0; p < layout.partCount; ++p)
            function(layout.parts[static_cast<std::size_t>(p)]);
}

/// The facts on which sender and receiver must agree. All are words, hashed in this order; `fingerprint` adds the
/// ranks, so that two errors do not cancel in the sum.
struct MessageTerms {
    std::uint64_t bytes;
    std::uint64_t signature;
    std::uint64_t kind;
    std::uint64_t widths;

    std::uint64_t fingerprint(int sender, int receiver) const {
        ContentHash hash;
        for (const std::uint64_t term :
             {static_cast<std::uint64_t>(sender), static_cast<std::uint64_t>(receiver), bytes, signature, kind, widths})
            hash.add(term);
        return hash.value();
    }
};

/// Hashed with a rank, so that sums over ranks show a difference.
std::uint64_t keyOf(const ExchangeIdentity &identity, int rank) {
    ContentHash hash;
    hash.add(static_cast<std::uint64_t>(rank));
    hash.add(static_cast<std::uint64_t>(identity.tag));
    hash.add(identity.pattern);
    hash.addText(identity.names);
    return hash.value();
}

/// Throws StateError on all ranks unless all create what rank 0 does. Collective.
void requireSameOrder(const CommunicatorView &comm, const ExchangeIdentity &identity) {
    // Called after a difference was found, to name it: by the arrays' names if these differ, else by tag and
    // mapping, which count the set-up calls.
    std::vector<std::string> mine;
    comm.guarded([&] { mine = {identity.names, fmt::format("{} on mapping {}", identity.tag, identity.pattern)}; });
    requireSame(comm, mine, [&](std::size_t k, const std::string *first) {
        constexpr const char *advice = "create mappings and exchanges in the same order on all ranks";
        DNDS_CHECK(k > 0, StateError, "rank {} makes the exchange of '{}' where rank 0 makes that of '{}': {}",
                   comm.rank(), identity.names, *first, advice);
        throw StateError(
            fmt::format("rank {} makes an exchange of '{}' (number {}) where rank 0 makes another one (number {}): {}",
                        comm.rank(), identity.names, mine[k], *first, advice));
    });
}

} // namespace

// Addresses and row numbers may differ: peers see only sizes, widths and their order.
bool MessagePlan::sameAs(const MessagePlan &other) const {
    const auto same = [](const auto &a, const auto &b) {
        const auto bytes = [](const auto &part) { return part.bytes(); };
        return a.peer == b.peer && a.bytes == b.bytes && a.widths == b.widths &&
               std::ranges::equal(a.parts, b.parts, {}, bytes, bytes);
    };
    return std::ranges::equal(outgoing, other.outgoing, same) && std::ranges::equal(incoming, other.incoming, same);
}

// Invariant: a message between two ranks has the same parts and rows in the same order on both ends, so that they have
// to agree on lengths only.
MessagePlan planMessages(const ExchangePattern &pattern, Direction direction, std::span<const RowLayout> fathers,
                         std::span<const RowLayout> sons) {
    const bool pull = direction == Direction::Pull;
    const PeerRows &source = pull ? pattern.readers() : pattern.owners();
    const PeerRows &destination = pull ? pattern.owners() : pattern.readers();

    // In a pull, rows of fathers are sent to readers, and rows of sons are received from owners; a push is the
    // converse. Rows without bytes make no message: both sides know, since they agree on widths.
    MessagePlan plan;
    for (std::size_t k = 0; k < source.size(); ++k) {
        const RowList &rows = source.lists[k];
        Outgoing outgoing{.peer = source.ranks[k], .parts = {}};
        forEachPart(pull ? fathers : sons, [&](const RowPart &part) {
            outgoing.parts.emplace_back(rows, part);
            outgoing.bytes += outgoing.parts.back().bytes();
            outgoing.widths = widthsOf(rows, part, outgoing.widths);
        });
        if (outgoing.bytes > 0)
            plan.outgoing.push_back(std::move(outgoing));
    }
    for (std::size_t k = 0; k < destination.size(); ++k) {
        const RowList &rows = destination.lists[k];
        Incoming incoming{.peer = destination.ranks[k], .parts = {}};
        std::size_t p = 0;
        forEachPart(pull ? sons : fathers, [&](const RowPart &part) {
            // A push receives each part of all peers, one after another, in a staging buffer; a pull writes to the
            // sons themselves.
            plan.destinationBytes.resize(std::max(plan.destinationBytes.size(), p + 1), 0);
            const RowScatter &to = incoming.parts.emplace_back(
                pull ? RowScatter(rows, part) : RowScatter(plan.destinationBytes[p], bytesOf(rows, part)));
            incoming.bytes += to.bytes();
            incoming.widths = widthsOf(rows, part, incoming.widths);
            plan.destinationBytes[p++] += to.bytes();
        });
        if (incoming.bytes > 0)
            plan.incoming.push_back(std::move(incoming));
    }
    return plan;
}

// O(peers x parts). Both ends of a pair choose the same transport, so the messages of each transport match among
// themselves.
std::map<TransportKind, TransportPlan> splitByTransport(const MessagePlan &plan, const Channel &channel,
                                                        const PeerKinds &kinds) {
    // Peers keep their order within each transport's plan. Copies of gathers and scatters share their lists.
    std::map<TransportKind, TransportPlan> plans;
    const auto planOf = [&](int peer) -> TransportPlan & {
        TransportPlan &ofKind = plans[kinds.at(peer)];
        ofKind.channel = channel;
        return ofKind;
    };
    for (const Outgoing &outgoing : plan.outgoing)
        planOf(outgoing.peer).outgoing.push_back(outgoing);
    for (const Incoming &incoming : plan.incoming)
        planOf(incoming.peer).incoming.push_back(incoming);
    return plans;
}

Endpoints endpointsOf(Direction direction, std::span<const RowLayout> fathers, std::span<const RowLayout> sons) {
    // A push has no destinations among the arrays: its staging buffers follow (State::endpoints).
    Endpoints endpoints;
    const bool pull = direction == Direction::Pull;
    forEachPart(pull ? fathers : sons, [&](const RowPart &part) { endpoints.sources.push_back(part.base); });
    if (pull)
        forEachPart(sons, [&](const RowPart &part) { endpoints.destinations.push_back(part.base); });
    return endpoints;
}

// O(parts): row offsets are compared by address and generation, not by contents.
bool sameRows(const RowLayout &bound, const RowLayout &now) {
    if (bound.rows != now.rows || bound.partCount != now.partCount || bound.space != now.space ||
        bound.signature != now.signature)
        return false;
    for (int p = 0; p < bound.partCount; ++p) {
        const RowPart &a = bound.parts[static_cast<std::size_t>(p)];
        const RowPart &b = now.parts[static_cast<std::size_t>(p)];
        // Row offsets in other memory may hold other widths.
        if (a.stride != b.stride || (a.offsets == nullptr) != (b.offsets == nullptr) ||
            (a.offsets != nullptr && (a.offsets != b.offsets || a.generation != b.generation)))
            return false;
    }
    return true;
}

bool sameMemory(const RowLayout &bound, const RowLayout &now) {
    for (int p = 0; p < bound.partCount; ++p) {
        const RowPart &a = bound.parts[static_cast<std::size_t>(p)];
        const RowPart &b = now.parts[static_cast<std::size_t>(p)];
        if (a.generation != b.generation || a.base != b.base)
            return false;
    }
    return true;
}

// O(peers) hashes and one reduction of two words where all agree. A rank that failed while planning takes part with
// its failure, so the others do not wait for it.
void agreeOnPlan(CommunicatorContext &context, const MessagePlan &plan, const ExchangeIdentity &identity,
                 const PeerKinds &kinds, const std::exception_ptr &mine) {
    const CommunicatorView &comm = context.comm();
    // Each side computes the terms of a message from its own arrays, options and choice of transport.
    const auto terms = [&](int peer, std::size_t bytes, std::uint64_t widths) {
        return MessageTerms{bytes, identity.signature, static_cast<std::uint64_t>(kinds.at(peer)), widths};
    };

    // A sum over all ranks that is 0 if all agree, and by accident with a probability of 2^-64: for each pair the
    // sender adds the fingerprint of its terms and the receiver subtracts that of its own; each rank adds the key
    // of its exchange with its own number, and subtracts it with the next rank's number. One reduction of two words
    // replaces messages between all pairs.
    std::array<std::uint64_t, 2> sums{mine ? 1U : 0U, 0};
    if (!mine) {
        for (const Outgoing &out : plan.outgoing)
            sums[1] += terms(out.peer, out.bytes, out.widths).fingerprint(comm.rank(), out.peer);
        for (const Incoming &in : plan.incoming)
            sums[1] -= terms(in.peer, in.bytes, in.widths).fingerprint(in.peer, comm.rank());
        sums[1] += keyOf(identity, comm.rank()) - keyOf(identity, (comm.rank() + 1) % comm.size());
    }
    comm.allReduce(sums.data(), 2, MPI_SUM);
    if (sums[0] != 0)
        comm.agree(mine);
    if (sums[1] == 0) [[likely]]
        return;

    requireSameOrder(comm, identity);
    // Some pair disagrees: senders tell their terms, so that the message can name the pair and the difference.
    RankLists told;
    for (const Outgoing &out : plan.outgoing) {
        const MessageTerms t = terms(out.peer, out.bytes, out.widths);
        const std::array<index, 4> values{static_cast<index>(t.bytes), static_cast<index>(t.signature),
                                          static_cast<index>(t.kind), static_cast<index>(t.widths)};
        told.append(out.peer, values);
    }
    const RankLists heard = sparseExchange(context, told);
    comm.guarded([&] {
        for (std::size_t k = 0; k < heard.size(); ++k) {
            const auto values = heard.list(k);
            const int sender = heard.ranks[k];
            // Checked from the most to the least telling: the transport, the size, the layout, the widths of rows.
            const auto in = std::ranges::find(plan.incoming, sender, &Incoming::peer);
            const bool expected = in != plan.incoming.end();
            const MessageTerms here = terms(sender, expected ? in->bytes : 0, expected ? in->widths : 0);
            DNDS_CHECK(static_cast<std::uint64_t>(values[2]) == here.kind, ArgumentError,
                       "rank {} uses transport '{}' where rank {} uses '{}' for '{}': choose the same on all ranks "
                       "(options, DNDS_TRANSPORT)",
                       sender, transportName(static_cast<TransportKind>(values[2])), comm.rank(),
                       transportName(static_cast<TransportKind>(here.kind)), identity.names);
            DNDS_CHECK(static_cast<std::uint64_t>(values[0]) == here.bytes, LayoutError,
                       "rank {} sends {} bytes of '{}' where rank {} expects {}: row widths or sizes differ between "
                       "them; call createMPITypes after changing them",
                       sender, values[0], identity.names, comm.rank(), here.bytes);
            DNDS_CHECK(static_cast<std::uint64_t>(values[1]) == here.signature, LayoutError,
                       "'{}' of rank {} and of rank {} differ in type, layout, width or operation: choose the same on "
                       "all ranks",
                       identity.names, sender, comm.rank());
            DNDS_CHECK(static_cast<std::uint64_t>(values[3]) == here.widths, LayoutError,
                       "the rows of '{}' that rank {} sends have other widths than those that rank {} has room for: "
                       "call createMPITypes after changing them",
                       identity.names, sender, comm.rank());
        }
    });
    throw LayoutError(
        fmt::format("ranks disagree about which of them exchange rows of '{}': make mappings and exchanges "
                    "in the same order on all ranks",
                    identity.names));
}

} // namespace DNDS
