/// @file MeshAdvection.hpp
/// @brief The same blobs on tetrahedra: sparse fields on clusters of an unstructured mesh.
#pragma once

#include "Advection.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Clusters/MeshClusters.hpp"

#include <vector>

namespace SparseAdvection {

/// Upwind finite volumes of first order on a periodic box of tetrahedra, in clusters.
class MeshRun {
  public:
    /// `bricks` in each direction, of six tetrahedra each, and about `clusterCells` cells a cluster. Collective.
    MeshRun(const DNDS::CommunicatorView &comm, const Setup &setup, index bricks, index clusterCells,
            const DNDS::SparseFieldOptions &thresholds);
    void step();
    /// Seconds that each cluster of this rank has taken since the last move, all species together.
    const std::vector<real> &seconds() const { return seconds_; }
    /// Moves clusters to other ranks, so that all have equal shares of these seconds. Collective.
    void rebalance();
    /// Of all ranks' blocks that hold cells. Collective.
    double shareAllocated() const;
    /// Of each species on all ranks. Collective.
    std::vector<real> masses() const;
    /// Amounts lost with freed clusters: as above.
    std::vector<real> dropped() const;
    real timeStep() const { return timeStep_; }
    index cells() const;

  private:
    void build(const DNDS::CommunicatorView &comm, index bricks, index clusterCells);
    /// Volumes, and what the winds carry through faces. Collective.
    void measure();
    void start(DNDS::SparseField<real> &field, const Species &species) const;
    void makeExchange();
    DNDS::DroppedSums<real>::Weight weight() const;

    Setup setup_;
    DNDS::Geom::SourceClusters cut_;
    DNDS::Geom::MeshOptions options_; ///< for moves, too
    std::unique_ptr<DNDS::Geom::UnstructuredMesh> mesh_;
    std::unique_ptr<DNDS::Geom::MeshClusters> clusters_;
    real timeStep_ = 0;
    std::vector<std::vector<real>> volumes_; ///< [blocks][own cells]
    std::vector<std::vector<std::array<real, 3>>> centres_;
    std::vector<std::vector<std::vector<real>>> courants_; ///< [species][blocks][faces of own cells]: outwards
    std::vector<real> seconds_;                            ///< [blocks]
    std::vector<DNDS::SparseField<real>> fields_;
    std::vector<DNDS::DroppedSums<real>> dropped_;
    std::unique_ptr<DNDS::SparseFields> exchange_;
};

} // namespace SparseAdvection
