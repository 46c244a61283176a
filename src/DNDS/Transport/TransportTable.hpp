/// @file TransportTable.hpp
/// @brief The one place where transports are described, chosen and made.
#pragma once

#include "DNDS/Transport/TransportDescriptor.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

/// The transport for one peer, and why.
struct TransportChoice {
    TransportKind kind = TransportKind::Auto;
    std::string name;
    std::string why;
};

/// The transports of one communicator: at first those of DNDS, to which programs may add their own:
///
///     TransportTable &transports = TransportTable::of(*CommunicatorContext::of(comm));
///     const TransportKind ring = transports.add({.name = "ring", .servesHost = true, .reach = ..., .make = ...});
///     pair.trans.initPersistentPull({.transport = ring});                  // or DNDS_TRANSPORT=ring
///
/// All ranks add the same transports in the same order, before they make exchanges.
class TransportTable {
  public:
    /// That of a communicator. Collective at the first call, Local afterwards.
    static TransportTable &of(CommunicatorContext &context);

    /// With the transports that come with DNDS. Local.
    TransportTable();

    /// Adds a transport; the kind by which exchanges ask for it. Local; on all ranks alike. Throws ArgumentError where
    /// the name is taken, or the descriptor incomplete.
    TransportKind add(TransportDescriptor transport);

    /// The descriptor; null if no transport has this kind. Local.
    const TransportDescriptor *find(TransportKind kind) const noexcept;
    /// The same; throws ArgumentError instead.
    const TransportDescriptor &at(TransportKind kind) const;
    /// The kind of that name; throws ArgumentError that lists the names. Local.
    TransportKind kindOf(std::string_view name) const;
    /// The name of a kind; "unknown" if no transport has it. Local.
    std::string_view nameOf(TransportKind kind) const noexcept;

    /// Calls `prepare` of all transports that serve `space`. Collective.
    void prepare(CommunicatorContext &context, MemorySpace space) const;

    /// Chooses for this rank and `peer`, for rows in `space`; both of them come to the same answer. Local, after
    /// `prepare`. `requested` comes from the caller; where it is Auto, DNDS_TRANSPORT counts, if it names a transport
    /// that serves `space`. Throws ArgumentError when one of them names an unknown transport, or `requested`
    /// one that does not serve `space`; StateError when the transport that was asked for cannot be used here.
    TransportChoice choose(const CommunicatorContext &context, int peer, TransportKind requested,
                           MemorySpace space = MemorySpace::Host) const;

    /// One transport for each plan, in the order in which they are to be started.
    /// Local. Throws as they do.
    std::vector<std::unique_ptr<Transport>> make(std::map<TransportKind, TransportPlan> plans,
                                                 const TransportSetup &setup) const;

  private:
    struct RequestedTransport;
    /// By the caller, else by DNDS_TRANSPORT. Throws as `choose`.
    RequestedTransport requestedTransport(TransportKind requested, MemorySpace space) const;
    /// As `at`, for transports that share the descriptor.
    const std::shared_ptr<const TransportDescriptor> &line(TransportKind kind) const;
    /// The names that may be given, for messages.
    std::string choices() const;
    /// Keeps `lines_` in order.
    void insert(TransportDescriptor transport);

    std::vector<std::shared_ptr<const TransportDescriptor>> lines_; ///< in descending preference
    /// Number of transports added by the program.
    int added_ = 0;
};

} // namespace DNDS
