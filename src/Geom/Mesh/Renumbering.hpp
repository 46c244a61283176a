/// @file Renumbering.hpp
/// @brief Final local and global numbers for one kind of entity, such that pulls are few long copies.
#pragma once

#include "DNDS/Index/Mappings.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// A copy of an entity of this or another rank: its global number before renumbering, and its image.
struct GhostEntity {
    index global;
    int image;
};

struct Renumbering {
    /// Entities are renumbered within their rank: its range of global numbers stays the same.
    std::shared_ptr<const GhostMapping> mapping; ///< with the final numbers
    std::vector<LocalIndex> newOfOld;            ///< [owned + ghosts], ghosts in the order in which they were given
};

/// Orders owned entities: first the uncopied ones, in the order `base` (entry k is the k-th entity; empty:
/// unchanged), then the others by the ranks that copy them (`localityOrder`). Ghosts are ordered by final global
/// number, then image. Collective; three sparse exchanges. O(entities) memory.
Renumbering renumber(std::shared_ptr<const GlobalMapping> global, std::span<const GhostEntity> ghosts,
                     std::span<const index> base);

/// Cells in reverse Cuthill-McKee order of their graph (CSR of local neighbours; those outside the rows are skipped):
/// entry k is the k-th cell. Local. O(neighbours log degree).
///
/// Method: Cuthill and McKee, Reducing the bandwidth of sparse symmetric matrices, ACM 1969; George's reversal; each
/// part of the graph starts at an end found by two breadth-first searches.
std::vector<index> reverseCuthillMcKee(std::span<const index> starts, std::span<const LocalIndex> neighbours);

} // namespace DNDS::Geom
