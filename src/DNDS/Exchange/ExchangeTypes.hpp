/// @file ExchangeTypes.hpp
/// @brief Types of exchanges: directions, operations, and paths to peers.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Transport/TransportKind.hpp"

#include <cstddef>
#include <string>

namespace DNDS {

/// Combination of pushed ghost rows with the owner's row. Contributions are applied in ascending order of their rank,
/// so that results do not depend on the order of arrival. Floating-point sums do depend on the distribution of terms
/// over ranks; those of `ExactAccumulator` do not. `GhostsAfterPush` sets the ghosts' contents after the push.
enum class PushOp : unsigned char {
    Replace, ///< the row of the highest contributing rank stays
    Sum,     ///< element-wise sum of the owner's row and all contributions; again at each push
    Min,
    Max
};

/// Contents of ghosts after a push. A push only sends them: a program that adds to ghosts and pushes with PushOp::Sum
/// has to zero them before adding again, or the first contributions are added a second time.
enum class GhostsAfterPush : unsigned char {
    Keep, ///< the pushed values
    Zero  ///< zero, ready for the next contributions; with PushOp::Sum only, as zero changes no sum
};

/// Path of one exchange to one peer.
struct PeerPath {
    int peer = 0;
    TransportKind transport = TransportKind::Auto;
    std::string name;          ///< name of the transport
    std::string why;           ///< the reason for this transport, and for a slot, readable
    std::size_t bytesSent = 0; ///< bytes of each run
    std::size_t bytesReceived = 0;
    /// Bytes of these that pass through a slot, because the peer cannot write them in place as the transport could.
    std::size_t bytesThroughSlot = 0;
    index rowsSent = 0;
    index rowsReceived = 0;
};

/// The copies of the arrays that an exchange moves.
enum class ExchangeSpace : unsigned char {
    Auto, ///< the requested transport's space; else the device's where all arrays are current there, on all ranks,
          ///< when the exchange is made; else the host's
    Host,
    Device
};

/// Choices a caller can make for one exchange.
struct ExchangeOptions {
    TransportKind transport = TransportKind::Auto; ///< Auto also reads the environment variable DNDS_TRANSPORT
    ExchangeSpace space = ExchangeSpace::Auto;
    GhostsAfterPush ghosts = GhostsAfterPush::Keep; ///< for pushes; pulls ignore it
};

} // namespace DNDS
