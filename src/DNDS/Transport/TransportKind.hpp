/// @file TransportKind.hpp
/// @brief Names of the transports of an exchange.
#pragma once

#include <string_view>

namespace DNDS {

/// Method of moving the bytes of an exchange. Transports added by a program (`TransportTable::add`) get new numbers.
enum class TransportKind : unsigned char {
    Auto,       ///< chosen for each peer by `TransportTable::choose`
    Datatype,   ///< MPI derived datatypes directly from and into the arrays
    Packed,     ///< rows gathered into one buffer a peer, received directly into the destination
    NodeShared, ///< the owner writes into the reader's memory; between ranks of one node
    Local,      ///< a copy within this rank, for rows that it pulls from itself
    Staged,     ///< device rows: packed into pinned memory, sent as messages, unpacked on the device
    Direct,     ///< device rows: packed on the device, sent from and to device memory by a GPU-aware MPI
    Peer        ///< device rows: packed on the device, read there by the peer's device; between ranks of one node
};

/// The name of a transport that comes with DNDS: "auto", "datatype", "packed", "node-shared", "local", "staged",
/// "direct", "peer"; "added" for others, whose names `TransportTable` knows.
std::string_view transportName(TransportKind kind);
/// The kind of that name; throws ArgumentError that lists the names.
TransportKind transportFromName(std::string_view name);

} // namespace DNDS
