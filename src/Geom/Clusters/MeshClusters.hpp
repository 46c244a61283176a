/// @file MeshClusters.hpp
/// @brief Clusters of cells: cut before a mesh is partitioned, then blocks of sparse fields on the partitioned mesh.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Sparse/SparseField.hpp"
#include "DNDS/Sparse/SparsePattern.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// The cluster of each cell of a mesh, the same on any number of ranks: from `cutClusters`, which numbers clusters
/// along a Hilbert curve, or from the program. All cells of a cluster have one owner, whichever rank that is, so that
/// decisions for a cluster do not depend on ranks, either. Each rank has the part of its cells of the source, as read
/// from the file: after partitioning, ranks ask each other (see MeshClusters).
///
///     SourceMesh source = readMesh(comm, path);
///     const SourceClusters cut = cutClusters(comm, source);
///     UnstructuredMesh mesh = buildMesh(comm, std::move(source),
///                                       {.partitioner = Partitioner::Given, .givenPart = cut.parts(comm.size())});
///     const MeshClusters clusters(mesh, cut);
struct SourceClusters {
    index count = 0;               ///< number of clusters, on all ranks
    std::vector<index> firstCells; ///< [ranks + 1] number of the first cell of the source on each rank
    std::vector<index> clusterOf;  ///< [own cells of the source] from 0 to count - 1

    /// `MeshOptions::givenPart`, [own cells of the source]: each rank gets an equal number of consecutive clusters,
    /// which along the curve are compact. Local. O(own cells).
    std::vector<int> parts(int ranks) const;
    /// The same for costs of cells, [own cells of the source], in any unit: each rank gets consecutive clusters of a
    /// nearly equal share, at most 1 % more than the best such cut. Collective. O(count) memory on each rank. Throws
    /// ArgumentError on all ranks for costs that are negative, not finite or not one a cell.
    std::vector<int> parts(const CommunicatorView &comm, std::span<const real> costs) const;
    /// Checks this rank's part: throws ArgumentError, on this rank alone, for numbers outside [0, count) and lists of
    /// other lengths. Local. O(own cells).
    void require(const CommunicatorView &comm) const;
};

/// Cuts clusters of about `cellsPerCluster` cells; 4,096 are a good size. Collective. Cost: a message to each rank that
/// has nodes of this rank's cells in its block, and 16 reductions of 15 numbers per cluster. Throws ArgumentError on
/// all ranks for fewer than one cell.
SourceClusters cutClusters(CommunicatorView comm, const SourceMesh &source, index cellsPerCluster = 4096);

/// The clusters that a rank owns. Each is a block of sparse fields whose cells have one index: first its own, in the
/// order of the file, from 0 to n - 1, then ghosts, from n on: cells of other clusters, and images of its own. Ghosts
/// have the layers of the mesh's ghosts and share faces or nodes, as these do (`MeshOptions::ghostLayers`, `ghostsBy`:
/// for stencils across faces choose Faces, which sends half as much or less). Immutable.
///
///     SparseField<real> u("radical", clusters.pattern(), {.stages = 2, .allocationThreshold = 1e-8});
///     for (const int b : u.allocatedBlocks()) {
///         const auto v = std::as_const(u).view(b);
///         for (index i = 0; i < v.extent(0); ++i)
///             for (const LocalIndex j : clusters.neighbours(b, i))
///                 ...                     // v(j): across a face; clusters.cells(b)[i]: of the mesh, for its metrics
///     }
///
/// After the mesh was repartitioned, with `repartitionTargets` below or any targets that keep clusters whole, make them
/// again of the same SourceClusters. Blocks and their cells are the same, so that fields follow:
///
///     const std::vector<int> targets = repartitionTargets(clusters, costs);     // costs: [own clusters]
///     Repartition move(mesh, targets, options);
///     move.onCells(gas).commit();
///     clusters = MeshClusters(mesh, cut);
///     u = u.moved(clusters.pattern());
class MeshClusters {
  public:
    /// Each cluster has all its cells on one rank of `mesh`, whichever. Keeps no reference to either. Collective; a
    /// query for the cells' clusters and a sparse exchange. Cost O(cells of blocks, ghosts included); memory of 4 bytes
    /// a cluster on each rank. Throws ArgumentError on all ranks for a cluster that is split, naming it and two of its
    /// ranks, and for a mesh without ghosts.
    MeshClusters(const UnstructuredMesh &mesh, const SourceClusters &clusters);

    /// For sparse fields. Its blocks' numbers are the clusters'; `ranks()` are their owners.
    const std::shared_ptr<const SparsePattern> &pattern() const noexcept { return pattern_; }
    /// The mesh's cells, own ones first, then ghosts, of this rank's block `local`: [own + ghosts]. Throws IndexError
    /// if the block does not exist.
    std::span<const LocalIndex> cells(int local) const { return piece(local).cells; }
    /// The layer of each of `cells`: 0 for own ones, 1 for the first layer of ghosts. Throws IndexError.
    std::span<const std::uint8_t> layers(int local) const { return piece(local).layers; }
    /// The indices in the block of the cells across the faces of its cell `i`, which may be a ghost, in the order of
    /// `UnstructuredMesh::cellFaces`; `noEntity` at the boundary, `notLocal` for cells outside of the block, beyond
    /// ghosts of the last layer. Throws IndexError.
    std::span<const LocalIndex> neighbours(int local, index i) const {
        const Piece &of = piece(local);
        DNDS_CHECK(i >= 0 && toSize(i) < of.cells.size(), IndexError, "cluster {} has {} cells and ghosts, none {}",
                   of.cluster, of.cells.size(), i);
        return std::span(of.neighbours)
            .subspan(toSize(of.starts[toSize(i)]), toSize(of.starts[toSize(i) + 1] - of.starts[toSize(i)]));
    }

  private:
    /// One cluster of this rank; a cell's index in `cells` is its row in sparse fields.
    struct Piece {
        index cluster = 0;
        index own = 0;                      ///< number of cells of the cluster itself, which come first
        std::vector<LocalIndex> cells;      ///< cells of the mesh: own ones in file order, then ghosts by cluster
        std::vector<std::uint8_t> layers;   ///< [cells]
        std::vector<index> starts{0};       ///< [cells + 1], into `neighbours`
        std::vector<LocalIndex> neighbours; ///< rows in this piece, `noEntity` or `notLocal`
    };
    class Maker;

    /// Throws IndexError if the block does not exist.
    const Piece &piece(int local) const {
        DNDS_CHECK(local >= 0 && toSize(local) < pieces_.size(), IndexError, "this rank has {} clusters, none {}",
                   pieces_.size(), local);
        return pieces_[toSize(local)];
    }

    std::vector<Piece> pieces_;                    ///< ascending clusters
    std::shared_ptr<const SparsePattern> pattern_; ///< shared with the fields, which may outlive this
};

/// For each block of this rank, the indices in it of the cells that share a node with each of its cells, ghosts and the
/// cell itself included, ascending: [blocks] of [own + ghosts] rows. Complete for all but ghosts of the last layer, of
/// which the cells in the block are listed. Local. O(entries): some 30 a hexahedron, 70 a tetrahedron. Throws
/// ArgumentError for a mesh with ghosts by faces.
///
///     const std::vector<LocalAdjacency> around = nodeNeighbours(mesh, clusters);
///     for (const LocalIndex j : around[b].view()[i])
///         sum += v(j);
std::vector<LocalAdjacency> nodeNeighbours(const UnstructuredMesh &mesh, const MeshClusters &clusters);

/// Targets for `Repartition` that give ranks equal shares of the costs of clusters: [own cells]. `costs` are those of
/// this rank's blocks, in any unit. Each rank gets a run of consecutive clusters, and few clusters move: see
/// `BlockGrid::rebalanced` for the bound. Collective. Throws on all ranks ArgumentError for costs that
/// are negative, not finite or not one a block, and for a negative imbalance.
std::vector<int> repartitionTargets(const MeshClusters &clusters, std::span<const real> costs, real imbalance = 0.1);

namespace Detail {

/// A field of this rank's cells whose values `set` fills in. The slice owns its values.
template <class Set>
FieldSlice filledField(std::string name, int components, index cells, Set &&set) {
    const auto values = std::make_shared<std::vector<real>>(toSize(cells * components));
    set(*values);
    return {std::move(name), components, *values, values};
}

/// Appends the values of a field and its `.allocated` flags. Cells of clusters are scattered to their places in the
/// mesh; every own cell of the mesh is in one cluster, so all values are set. Memory on the device is copied block by
/// block.
template <class T>
void appendFields(const MeshClusters &clusters, const SparseField<T> &field, std::vector<FieldSlice> &fields) {
    DNDS_CHECK(field.pattern() == clusters.pattern(), ArgumentError,
               "'{}' is not on these clusters: make it with their pattern", field.name());
    index cells = 0;
    for (int b = 0; b < field.blocks(); ++b)
        cells += field.block(b).cells.size();
    const auto width = toSize(field.components());
    fields.push_back(filledField(field.name(), static_cast<int>(width), cells, [&](std::vector<real> &values) {
        std::vector<std::byte> copy;
        for (int b = 0; b < field.blocks(); ++b) {
            const T *const here = field.isAllocated(b) ? field.hostView(b, copy).data() : nullptr;
            for (index i = 0; i < field.block(b).cells.size(); ++i)
                for (std::size_t c = 0; c < width; ++c)
                    values[toSize(clusters.cells(b)[toSize(i)]) * width + c] =
                        static_cast<real>(here != nullptr ? here[toSize(i) * width + c] : field.defaultValue());
        }
    }));
    fields.push_back(filledField(field.name() + ".allocated", 1, cells, [&](std::vector<real> &values) {
        for (int b = 0; b < field.blocks(); ++b)
            for (index i = 0; i < field.block(b).cells.size(); ++i)
                values[toSize(clusters.cells(b)[toSize(i)])] = field.isAllocated(b) ? 1 : 0;
    }));
}

} // namespace Detail

/// Two fields of cells for each sparse field, for all writers of meshes: its values, the default where a cluster is
/// absent, and `<name>.allocated`, 1 where it is present and 0 elsewhere. Copies; stage 0.
///
///     MeshWriter writer(mesh, "species.vtkhdf");
///     writer.writeStep(time, {.cells = fieldsOf(clusters, dust, soot)});
///     writer.close();
///
/// Local. O(cells). Throws ArgumentError for fields on other clusters; MemoryError.
template <class... T>
std::vector<FieldSlice> fieldsOf(const MeshClusters &clusters, const SparseField<T> &...fields) {
    std::vector<FieldSlice> slices;
    (Detail::appendFields(clusters, fields, slices), ...);
    return slices;
}

} // namespace DNDS::Geom
