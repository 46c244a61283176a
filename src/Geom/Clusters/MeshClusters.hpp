/// @file MeshClusters.hpp
/// @brief Clusters of a partitioned mesh as blocks of sparse fields.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Clusters/SourceClusters.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Sparse/SparsePattern.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// The clusters that a rank owns. Each is a block of sparse fields whose cells have one index: first its own, in the
/// order of the file, from 0 to n - 1, then ghosts, from n on: the cells of other clusters (and images of its own) that
/// share a face with it. Immutable.
///
///     SparseField<real> u("radical", pieces.pattern(), {.stages = 2, .allocationThreshold = 1e-8});
///     for (const int b : u.allocatedBlocks()) {
///         const auto v = std::as_const(u).view(b);
///         for (index i = 0; i < v.extent(0); ++i)
///             for (const LocalIndex j : pieces.neighbours(b, i))      // v(j): across a face; pieces.cells(b)[i]: of
///             the
///                 ...                                                 // mesh, for its metrics
///     }
class MeshClusters {
  public:
    /// `mesh` was built with `clusters.parts(...)` and a layer of ghosts at least. Collective; one sparse exchange and
    /// a query for the cells' clusters. Cost O(cells). Throws ArgumentError on all ranks for a mesh of another
    /// partition or without ghosts.
    MeshClusters(const UnstructuredMesh &mesh, const SourceClusters &clusters);

    /// For sparse fields. Its blocks' numbers are the clusters'.
    const std::shared_ptr<const SparsePattern> &pattern() const noexcept { return pattern_; }
    /// The mesh's cells, own ones first, then ghosts, of this rank's block `local`: [own + ghosts]. Throws IndexError
    /// if the block does not exist.
    std::span<const LocalIndex> cells(int local) const { return piece(local).cells; }
    /// The indices in the block of the cells across the faces of its own cell `i`, in the order of
    /// `UnstructuredMesh::cellFaces`; `noEntity` at the boundary. Throws IndexError.
    std::span<const LocalIndex> neighbours(int local, index i) const {
        const Piece &of = piece(local);
        DNDS_CHECK(i >= 0 && i < of.own, IndexError, "cluster {} has {} cells of its own, none {}", of.cluster, of.own,
                   i);
        return std::span(of.neighbours)
            .subspan(toSize(of.starts[toSize(i)]), toSize(of.starts[toSize(i) + 1] - of.starts[toSize(i)]));
    }

  private:
    struct Piece {
        index cluster = 0;
        index own = 0;
        std::vector<LocalIndex> cells;
        std::vector<index> starts{0}; ///< [own + 1], into `neighbours`
        std::vector<LocalIndex> neighbours;
    };
    class Maker;

    const Piece &piece(int local) const {
        DNDS_CHECK(local >= 0 && toSize(local) < pieces_.size(), IndexError, "this rank has {} clusters, none {}",
                   pieces_.size(), local);
        return pieces_[toSize(local)];
    }

    std::vector<Piece> pieces_;
    std::shared_ptr<const SparsePattern> pattern_;
};

} // namespace DNDS::Geom
