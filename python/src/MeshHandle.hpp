/// @file MeshHandle.hpp
/// @brief A partitioned mesh and its report, for Python.
#pragma once

#include "Arguments.hpp"
#include "Comm.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Clusters/MeshClusters.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace DNDS::Python {

/// The data that NumPy views of a mesh keep alive. It never changes.
struct MeshData {
    Geom::UnstructuredMesh mesh;
    Geom::MeshReport report;
    std::uint64_t fingerprint; ///< fingerprint of the mesh: see Geom::fingerprint
    Geom::GhostNeighbours ghostsBy;
    Geom::CellOrder cellOrder;
    std::shared_ptr<const Geom::SourceClusters> cut{};    ///< if it was built of clusters
    std::shared_ptr<const Geom::MeshClusters> clusters{}; ///< of `cut`
};

/// A mesh of this rank, shared with all views of its parts.
struct Mesh {
    CommPtr comm;
    std::shared_ptr<const MeshData> data;
    /// From corners, and from maps, on first request.
    std::array<std::shared_ptr<const Geom::MeshMetrics>, 2> metrics{};

    const Geom::UnstructuredMesh &mesh() const { return data->mesh; }
};

/// The cells, nodes, faces or edges of a mesh.
struct Entities {
    Mesh owner;
    const Geom::MeshEntities *entities;

    const char *name() const {
        const Geom::UnstructuredMesh &mesh = owner.mesh();
        return entities == &mesh.cells   ? "cells"
               : entities == &mesh.nodes ? "nodes"
               : entities == &mesh.faces ? "faces"
                                         : "edges";
    }
};

/// Rows of local numbers, kept by a mesh.
struct Adjacency {
    std::shared_ptr<const Geom::LocalAdjacency> rows;
};

/// Blocks of a mesh from a file or a generator; consumed by Mesh.build.
class Source {
  public:
    Source(CommPtr comm, Geom::SourceMesh &&mesh)
        : comm_(std::move(comm)), mesh_(std::make_shared<Geom::SourceMesh>(std::move(mesh))) {}

    const CommPtr &comm() const noexcept { return comm_; }
    /// The blocks, shared with views of them. Throws StateError if they were consumed.
    const std::shared_ptr<Geom::SourceMesh> &mesh() const;
    /// Consumes them. Coordinates shown by views stay with the views. Throws StateError without them.
    Geom::SourceMesh take();

  private:
    CommPtr comm_;
    std::shared_ptr<Geom::SourceMesh> mesh_;
};

/// Clusters of cells of a source, for Python.
struct Clusters {
    CommPtr comm;
    std::shared_ptr<const Geom::SourceClusters> cut;
};

/// The rank of each cell of the source: equal numbers of clusters, or, where any rank gives costs, equal shares of
/// these. Collective. Throws as `SourceClusters::parts`.
std::vector<int> partsOf(CommunicatorView comm, const Geom::SourceClusters &cut,
                         const std::optional<std::vector<real>> &costs);
/// The targets of own cells by which ranks have equal shares of the cells, or, where any rank gives costs of own cells,
/// of these, and clusters stay whole. Collective. Throws ArgumentError on all ranks.
std::vector<int> targetsOf(CommunicatorView comm, const MeshData &data, const std::optional<std::vector<real>> &costs);
/// A list of numbers, unless it is None. Throws ArgumentError.
std::optional<std::vector<real>> costsOrNone(nanobind::handle given, const char *what);

inline constexpr Words<Geom::Partitioner, 2> partitioners{
    {{"graph", Geom::Partitioner::Graph}, {"curve", Geom::Partitioner::Curve}}};
inline constexpr Words<Geom::GhostNeighbours, 2> ghostNeighbours{
    {{"nodes", Geom::GhostNeighbours::Nodes}, {"faces", Geom::GhostNeighbours::Faces}}};

inline constexpr Words<Geom::MeshEntityKind, 4> entityKinds{{{"cells", Geom::MeshEntityKind::Cells},
                                                             {"nodes", Geom::MeshEntityKind::Nodes},
                                                             {"faces", Geom::MeshEntityKind::Faces},
                                                             {"edges", Geom::MeshEntityKind::Edges}}};

void bindSource(nanobind::module_ &module);
void bindSourceClusters(nanobind::module_ &module);
void bindMesh(nanobind::module_ &module);
/// Adds lists of entities, adjacencies and boundaries to the class that `bindMesh` made.
void bindMeshLists(nanobind::module_ &module);
void bindMeshParts(nanobind::module_ &module);
void bindMeshOutput(nanobind::module_ &module);
/// Adds point location, probes and wall distances.
void bindProbes(nanobind::module_ &module);
/// Adds clusters, and sparse fields on them; after `bindSparse`, too.
void bindMeshClusters(nanobind::module_ &module);

} // namespace DNDS::Python
