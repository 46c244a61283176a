/// @file PeriodicMatch.hpp
/// @brief Matches the faces (or nodes) of the two sides of periodic connections by position.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <limits>
#include <vector>

namespace DNDS::Geom {

/// Faces of both sides match up to this part of their shortest edge.
inline constexpr real periodicReach = 0.2;

/// A face of one side of a periodic connection, in the frame of the second side. A node is a face of one corner.
/// Made on the rank that has the face's cell. Messages carry it in `words()` words: connection, side, cell, slot,
/// file id, reach, number of nodes, then a node and three coordinates for each corner.
struct PeriodicFace {
    /// Index into SourceMesh::periodic.
    int connection;
    /// 0: the side that the connection's transform moves; 1: the side where it arrives.
    int side;
    index cell; ///< with `slot`, the caller's name of the face; not used here
    int slot;
    index fileId; ///< for the caller's messages
    real reach;   ///< largest distance to its partner
    /// Global nodes of the corners, in the face's order.
    std::vector<index> nodes;
    /// Their positions in the frame of side 1: those of side 0 after the transform. Filled by placeFaces.
    std::vector<Point> corners;

    Point centre() const;
    index words() const { return 7 + 4 * static_cast<index>(nodes.size()); }
    void write(index *to) const;
    static PeriodicFace read(RecordReader &reader);
};

/// Moves faces to the common frame: fills `corners` from `nodes`, and `reach`, a fifth of the shortest distance between
/// neighbouring corners; for nodes `reach` is kept. Collective.
void placeFaces(const GlobalMapping &nodeBlocks, const SourceMesh &source, std::vector<PeriodicFace> &faces);

/// The match of a face of a first side.
/// `distance` is between centres; infinite without a match.
struct PeriodicMatch {
    real distance = std::numeric_limits<real>::infinity();
    index cell = -1; ///< the caller's number; -1: none
    int slot = 0;
    real offset = 0;          ///< the largest distance of matched corners
    std::vector<index> nodes; ///< nodes of the other face, in the order of this one's
};

/// The best match of each face of a first side: [faces], none for others. Collective.
///
/// The match is the face of the second side with the nearest centre within reach; corners are matched in the same way.
/// Ranks compare faces by a hash of position: O(own faces) memory on average, three sparse exchanges.
std::vector<PeriodicMatch> matchPeriodic(CommunicatorContext &context, const std::vector<PeriodicFace> &faces);

} // namespace DNDS::Geom
