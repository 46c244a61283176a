#include "DNDS/Exchange/MakeTransports.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Exchange/LocalTransport.hpp"
#include "DNDS/Exchange/MessageTransport.hpp"

#include <array>
#include <utility>

namespace DNDS {

namespace {

constexpr std::array<std::pair<TransportKind, std::string_view>, 4> names{{{TransportKind::Auto, "auto"},
                                                                           {TransportKind::Datatype, "datatype"},
                                                                           {TransportKind::Packed, "packed"},
                                                                           {TransportKind::Local, "local"}}};

} // namespace

std::string_view transportName(TransportKind kind) {
    for (const auto &[known, name] : names)
        if (known == kind)
            return name;
    return "unknown";
}

TransportKind transportFromName(std::string_view name) {
    for (const auto &[kind, known] : names)
        if (known == name)
            return kind;
    throw ArgumentError(fmt::format("there is no transport '{}': choose auto, datatype or packed", name));
}

TransportChoice chooseTransport(int rank, int peer, const ExchangeOptions &options) {
    if (rank == peer)
        return {TransportKind::Local, "rows of this rank itself"};
    TransportKind kind = options.transport;
    std::string why = "asked for by the caller";
    if (kind == TransportKind::Auto) {
        if (const std::string wish = readEnvironment().transport; !wish.empty()) {
            kind = transportFromName(wish);
            why = "asked for by DNDS_TRANSPORT";
        }
    }
    DNDS_CHECK(kind != TransportKind::Local, ArgumentError,
               "the local transport serves rows of one's own rank only: choose auto, datatype or packed");
    if (kind == TransportKind::Auto)
        return {TransportKind::Packed, "the default between ranks"};
    return {kind, std::move(why)};
}

std::unique_ptr<Transport> makeTransport(TransportKind kind, TransportPlan plan) {
    switch (kind) {
    case TransportKind::Local:
        return std::make_unique<LocalTransport>(std::move(plan));
    case TransportKind::Datatype:
        return std::make_unique<DatatypeTransport>(std::move(plan));
    case TransportKind::Packed:
        return std::make_unique<PackedTransport>(std::move(plan));
    case TransportKind::Auto:
        break;
    }
    throw ArgumentError(fmt::format("no transport is called '{}'", transportName(kind)));
}

} // namespace DNDS
