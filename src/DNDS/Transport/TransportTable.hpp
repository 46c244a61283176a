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

/// The transports of one communicator: at first those that come with DNDS, to which programs may add their own:
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

    /// Null where there is no such transport. Local.
    const TransportDescriptor *find(TransportKind kind) const noexcept;
    /// The same; throws ArgumentError where there is none.
    const TransportDescriptor &at(TransportKind kind) const;
    /// The kind of that name; throws ArgumentError that lists the names. Local.
    TransportKind kindOf(std::string_view name) const;
    /// The other way round; "unknown" where there is none. Local.
    std::string_view nameOf(TransportKind kind) const noexcept;

    /// Calls `prepare` of all transports that serve `space`. Collective.
    void prepare(CommunicatorContext &context, MemorySpace space) const;

    /// Chooses for this rank and `peer`, for rows in `space`; both of them come to the same answer. Local, after
    /// `prepare`. `requested` comes from the caller; where it is Auto, DNDS_TRANSPORT counts, if it names a transport
    /// that serves `space`. Throws ArgumentError when one of them names a transport that there is not, or `requested`
    /// one that does not serve `space`; StateError when the transport that was asked for cannot be used here.
    TransportChoice choose(const CommunicatorContext &context, int peer, TransportKind requested,
                           MemorySpace space = MemorySpace::Host) const;

    /// One transport for each plan, in the order in which they are to be started.
    /// Local. Throws as they do.
    std::vector<std::unique_ptr<Transport>> make(std::map<TransportKind, TransportPlan> plans,
                                                 const TransportSetup &setup) const;

  private:
    struct RequestedTransport {
        const TransportDescriptor *transport = nullptr;
        const char *why = "";
    };
    RequestedTransport requestedTransport(TransportKind requested, MemorySpace space) const;
    const std::shared_ptr<const TransportDescriptor> &line(TransportKind kind) const;
    std::string choices() const;
    void insert(TransportDescriptor transport);

    std::vector<std::shared_ptr<const TransportDescriptor>> lines_; ///< in descending preference
    int added_ = 0;
};

} // namespace DNDS
