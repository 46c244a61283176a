/// @file PeriodicLinks.hpp
/// @brief Matches the faces of the two sides of a periodic connection by position.
#pragma once

#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/PeriodicImages.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"

namespace DNDS::Geom {

/// `other`, moved next to `node` by `step`, is at the same place.
/// Both directions are listed, each with the step that belongs to it.
struct NodePartner {
    index node;  ///< number in the file
    index other; ///< number in the file
    int step;
    friend auto operator<=>(const NodePartner &,
                            const NodePartner &) = default; // NOLINT(modernize-use-nullptr): false alarm
};

struct PeriodicResult {
    index pairs = 0;                   ///< number of pairs of faces, on all ranks
    Finding unmatched;                 ///< marked faces without a partner; they stay boundary faces
    real offset = 0;                   ///< largest distance between matched corners, by the connection's transform
    real relativeOffset = 0;           ///< largest ratio of this distance to the shortest edge of the face
    std::vector<NodePartner> partners; ///< partners of nodes of this rank's cells; ascending
};

/// Links faces marked as sides of periodic connections with their partners. Collective. After `markFaces`.
///
/// Faces are matched by `matchPeriodic`; faces with cells on both sides are skipped. Throws DataError on all ranks if
/// two faces match the same one.
PeriodicResult linkPeriodic(const GlobalMapping &nodeBlocks, CellRecords &cells, const SourceMesh &source,
                            const ImageTable &images);

} // namespace DNDS::Geom
