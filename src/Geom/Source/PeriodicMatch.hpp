/// @file PeriodicMatch.hpp
/// @brief Which faces (or nodes) of the two sides of periodic connections are the same, by where they are.
#pragma once

#include "DNDS/Geom/Source/Point.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Index/GlobalMapping.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <limits>
#include <vector>

namespace DNDS::Geom {

/// A face of one side of a periodic connection, where it is compared: those of first sides are moved to the second. A
/// node is a face of one corner.
struct PeriodicFace {
    int connection;
    int side;
    index cell; ///< with `slot`, what the caller calls the face: not looked at
    int slot;
    index fileId; ///< for the caller's messages
    real reach;   ///< how far away its partner may be
    std::vector<index> nodes;
    std::vector<Point> corners;

    Point centre() const;
    index words() const { return 7 + 4 * static_cast<index>(nodes.size()); }
    void write(index *to) const;
    static PeriodicFace read(RecordReader &reader);
};

/// Brings faces to where they are compared: fills `corners` from `nodes`, and `reach`, a fifth of the shortest distance
/// between two neighbouring corners; the reach of nodes stays as it is. Collective.
void placeFaces(const GlobalMapping &nodeBlocks, const SourceMesh &source, std::vector<PeriodicFace> &faces);

/// What a face of a first side found at the second.
struct PeriodicMatch {
    real distance = std::numeric_limits<real>::infinity();
    index cell = -1; ///< as the caller called it; -1: none
    int slot = 0;
    std::vector<index> nodes; ///< of the other face, in the order of this one's
};

/// The best match of each face of a first side: [faces], none for others. Collective.
///
/// A face meets the one of the second side whose centre is nearest, within reach; corners are matched in the same way.
/// Faces meet at ranks chosen by a hash of where they are: O(own faces) memory, on average, and three sparse exchanges.
std::vector<PeriodicMatch> matchPeriodic(CommunicatorContext &context, const std::vector<PeriodicFace> &faces);

} // namespace DNDS::Geom
