/// @file PeriodicLinks.hpp
/// @brief Finds which faces of the two sides of a periodic connection are the same, by where they are.
#pragma once

#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/PeriodicImages.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"

namespace DNDS::Geom {

/// `other` brought next to `node` by `step` is at the same place.
struct NodePartner {
    index node;  ///< as the file numbers it
    index other; ///< as the file numbers it
    int step;
    friend auto operator<=>(const NodePartner &,
                            const NodePartner &) = default; // NOLINT(modernize-use-nullptr): false alarm
};

struct PeriodicResult {
    index pairs = 0;                   ///< of faces, on all ranks
    Finding unmatched;                 ///< marked faces without a partner; they stay boundary faces
    std::vector<NodePartner> partners; ///< of nodes of this rank's cells; ascending
};

/// Links faces marked as sides of periodic connections with their partners. Collective. After `markFaces`.
///
/// Faces meet as `matchPeriodic` says; those with cells on both sides are left alone. Throws DataError on all ranks
/// where two faces meet the same one.
PeriodicResult linkPeriodic(const GlobalMapping &nodeBlocks, CellRecords &cells, const SourceMesh &source,
                            const ImageTable &images);

} // namespace DNDS::Geom
