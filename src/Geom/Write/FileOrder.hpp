/// @file FileOrder.hpp
/// @brief Restores the file order of a partitioned mesh and its fields, for writers.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Index/GlobalMapping.hpp"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// A mesh in the order of its file, cut into blocks of nearly equal size, one per rank. Apart from the cuts, the blocks
/// do not depend on the partition or the number of ranks.
///
/// Memory is in proportion to a rank's part of the mesh and its block. All functions but `mesh` and `comm` are
/// Collective.
class FileOrder {
  public:
    /// Sends cells, coordinates and boundary faces to their blocks. Two sparse exchanges for each of them.
    ///
    /// Nodes of no cell were dropped when the mesh was built: later nodes have lower numbers than in the file. Boundary
    /// faces are in the order of their cells in the file, with their corners only; sides of periodic connections are
    /// marked as in the source; faces of no patch are omitted.
    explicit FileOrder(const UnstructuredMesh &mesh);

    /// This rank's blocks, in the form of readers. Local.
    const SourceMesh &mesh() const noexcept { return source_; }
    SourceMesh &&take() noexcept { return std::move(source_); }
    const CommunicatorView &comm() const { return context_->comm(); }

    /// The rows of this rank's block of cells (nodes) from the owned rows of all ranks: `owned` are [owned x
    /// components], the result is [block x components]. Throws ArgumentError on all ranks if sizes do not match.
    std::vector<real> cellValues(std::span<const real> owned, int components) const;
    std::vector<real> nodeValues(std::span<const real> owned, int components) const;

  private:
    /// Destinations of owned entities, and places of received ones.
    /// Made once: fields of every step take the same way.
    struct Route {
        std::vector<int> ranks;    ///< [owned] rank of the block
        std::vector<index> places; ///< [block] block row of the k-th entity received
    };
    void sendNodes(const UnstructuredMesh &mesh);
    void sendCells(const UnstructuredMesh &mesh);
    void sendFaces(const UnstructuredMesh &mesh);
    std::vector<real> sendValues(const Route &route, std::span<const real> owned, int components) const;

    std::shared_ptr<CommunicatorContext> context_;
    /// This rank's block.
    SourceMesh source_;
    Route cells_;
    Route nodes_;
    std::vector<index> newNumbers_; ///< [nodes of the mesh] in the file order, without unused ones
};

/// The reverse of FileOrder: sends values in file order to the owners of entities. `blockValues` are [own rows of the
/// SourceMesh x components], as in `MeshField`; the result is [owned entities x components]. Collective; two sparse
/// exchanges. Throws ArgumentError on all ranks if the blocks do not cover all entities.
std::vector<real> takeFromFileOrder(const UnstructuredMesh &mesh, const MeshEntities &entities,
                                    std::span<const real> blockValues, int components = 1);

} // namespace DNDS::Geom
