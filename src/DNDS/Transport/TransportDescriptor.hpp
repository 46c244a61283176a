/// @file TransportDescriptor.hpp
/// @brief Everything that the rest of DNDS knows about one transport.
#pragma once

#include "DNDS/Transport/ExchangeStream.hpp"
#include "DNDS/Transport/Transport.hpp"
#include "DNDS/Transport/TransportTypes.hpp"

#include <functional>
#include <memory>
#include <string>

namespace DNDS {

/// Whether a transport can move rows between this rank and a peer, and the reason.
struct Reach {
    bool usable = false;
    /// If it is not usable: whether another transport is used without an error although this one was requested,
    /// because it is not meant for this peer (one on another node, say).
    bool fallBack = false;
    std::string why; ///< readable reason; may be empty where it is usable anyway

    /// Usable; not usable, an error if this transport was requested (`no`), or a reason to use another one
    /// (`notMeantFor`).
    static Reach yes(std::string why = {}) { return {true, false, std::move(why)}; }
    static Reach no(std::string why) { return {false, false, std::move(why)}; }
    static Reach notMeantFor(std::string why) { return {false, true, std::move(why)}; }
};

/// Arguments of a transport's constructor, besides its plan.
struct TransportSetup {
    CommunicatorContext &context;
    std::shared_ptr<ExchangeStream> stream; ///< stream of an exchange of device memory; null for others
};

/// One line of the table of transports. A new transport is a class, a function that returns its descriptor, and that
/// function in the list at the end of this file and in `TransportTable.cpp`.
struct TransportDescriptor {
    TransportKind kind = TransportKind::Auto;
    std::string name; ///< its name in DNDS_TRANSPORT and in reports
    bool servesHost = false;
    bool servesDevice = false;
    bool withinRank = false; ///< for rows that a rank pulls from itself; `reach` is not called then
    /// Peers may need this rank while it waits for another exchange: to write their rows, or to send its own once they
    /// are packed.
    bool needsProgress = false;
    /// Peers write to destinations allocated in the node's shared memory (`NodeArena`).
    bool destinationsInArena = false;
    /// `progress` polls by calls of MPI, which then makes progress by itself.
    bool pollsMpi = false;
    /// An exchange starts its transports in ascending order, messages first, as they take longest.
    int order = 0;
    /// The usable transport of the highest preference is chosen; 0: only on request.
    int preference = 0;
    /// Makes the state shared by all exchanges of a communicator, as attachments of the context
    /// (`CommunicatorContext::attach`). Collective; called before each set-up of an exchange in a served space.
    /// Optional.
    std::function<void(CommunicatorContext &)> prepare;
    /// Whether `peer` can be reached; both ranks of a pair must give the same answer. Local.
    std::function<Reach(const CommunicatorContext &, int peer)> reach;
    /// The transport for the peers in the plan. Local; may throw.
    std::function<std::unique_ptr<Transport>(TransportPlan, const TransportSetup &)> make;

    /// Whether it moves rows between arrays in this memory space.
    bool serves(MemorySpace space) const noexcept { return space == MemorySpace::Device ? servesDevice : servesHost; }
};

/// The transports, each in a source of its own.
TransportDescriptor describeDatatypeTransport();
TransportDescriptor describePackedTransport();
TransportDescriptor describeNodeSharedTransport();
TransportDescriptor describeLocalTransport();
TransportDescriptor describeStagedTransport();
TransportDescriptor describeDirectTransport();
TransportDescriptor describePeerTransport();

} // namespace DNDS
