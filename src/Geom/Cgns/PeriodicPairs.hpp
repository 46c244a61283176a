/// @file PeriodicPairs.hpp
/// @brief Pairs of faces and nodes of periodic connections, as a CGNS file lists them. Part of CgnsWriter.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <array>
#include <span>
#include <vector>

namespace DNDS::Geom::Detail {

/// This rank's share of the two sides of one connection, by their numbers in the file.
struct PeriodicPairs {
    struct Sides {
        std::array<std::vector<index>, 2> paired; ///< entry k of both is one pair; the first ones ascend
        std::array<std::vector<index>, 2> alone;  ///< without a partner
    };
    Sides faces; ///< elements
    Sides nodes; ///< pairs of sides that the mesh gives by nodes
};

/// Pairs the sides of each connection, without duplicates: [connections]. Collective; O(own marked faces and nodes)
/// memory on average. `faceElements` are [own listed faces] numbers of elements. Faces are matched by `matchPeriodic`,
/// nodes to the nearest, at most 10^-5 of the size of the mesh apart. Throws DataError on all ranks if two faces or
/// nodes of a first side match the same one.
std::vector<PeriodicPairs> pairPeriodic(CommunicatorContext &context, const SourceMesh &mesh,
                                        std::span<const index> faceElements);

} // namespace DNDS::Geom::Detail
