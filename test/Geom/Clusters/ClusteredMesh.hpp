/// @file ClusteredMesh.hpp
/// @brief Meshes in clusters, and sparse fields that diffuse on them.
#pragma once

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Clusters/MeshClusters.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Sparse/SparseField.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace DNDS::Geom::test {

inline CommunicatorView world() { return {MPI_COMM_WORLD}; }

inline std::vector<std::pair<const char *, BoxMeshOptions>> meshes() {
    BoxMeshOptions hexahedra;
    hexahedra.fill = BoxCells::Hexahedra;
    hexahedra.cells = {9, 8, 7};
    hexahedra.periodic = {true, false, true};
    BoxMeshOptions tetrahedra;
    tetrahedra.cells = {4, 5, 4};
    tetrahedra.jitter = 0.1;
    tetrahedra.shuffled = true;
    BoxMeshOptions polyhedra;
    polyhedra.fill = BoxCells::Polyhedra;
    polyhedra.cells = {6, 6, 5};
    BoxMeshOptions triangles;
    triangles.fill = BoxCells::Triangles;
    triangles.cells = {16, 12, 1};
    triangles.periodic = {true, true, false};
    return {{"hexahedra", hexahedra}, {"tetrahedra", tetrahedra}, {"polyhedra", polyhedra}, {"triangles", triangles}};
}

/// The rank of a cluster on `ranks` of them.
using RankOf = std::function<int(index cluster, int ranks)>;

/// A mesh in clusters, on the ranks of a communicator.
struct Clustered {
    SourceClusters cut;
    MeshOptions options;
    UnstructuredMesh mesh;
    MeshClusters clusters;

    Clustered(const CommunicatorView &comm, const BoxMeshOptions &box, index size, const MeshOptions &ghosts = {},
              const RankOf &rankOf = {})
        : Clustered(comm, makeBoxMesh(box, comm), size, ghosts, rankOf) {}
    Clustered(const CommunicatorView &comm, SourceMesh source, index size, const MeshOptions &ghosts = {},
              const RankOf &rankOf = {})
        : cut(cutClusters(comm, source, size)), options(withParts(comm, ghosts, cut, rankOf)),
          mesh(buildMesh(comm, std::move(source), options)), clusters(mesh, cut) {}
    static MeshOptions withParts(const CommunicatorView &comm, MeshOptions options, const SourceClusters &cut,
                                 const RankOf &rankOf) {
        options.partitioner = Partitioner::Given;
        options.givenPart = cut.parts(comm.size());
        for (std::size_t c = 0; rankOf && c < options.givenPart.size(); ++c)
            options.givenPart[c] = rankOf(cut.clusterOf[c], comm.size());
        return options;
    }
    /// A value of an own cell of the start: something in few clusters.
    real start(index cluster, LocalIndex cell) const {
        ContentHash hash;
        hash.add(static_cast<std::uint64_t>(cluster));
        return hash.value() % 5 == 0 ? 1 + static_cast<real>(mesh.cells.fileNumbers[toSize(cell)] % 7) : 0;
    }
};

/// Owners that follow no order.
inline int scattered(index cluster, int ranks) { return static_cast<int>((cluster * 7919 + cluster / 3) % ranks); }

/// One step of diffusion: the same operations in the same order for each way to store the field.
template <class Neighbours, class Value>
real diffused(const Neighbours &neighbours, real here, const Value &value) {
    real change = 0;
    for (const LocalIndex j : neighbours)
        if (j != noEntity)
            change += value(j) - here;
    return here + 0.1 * change;
}

/// A sparse field on clusters, `steps` later.
inline SparseField<real> sparseRun(const Clustered &on, int steps, const SparseFieldOptions &thresholds) {
    SparseFieldOptions options = thresholds;
    options.stages = 2;
    SparseField<real> u("u", on.clusters.pattern(), options);
    for (int b = 0; b < u.blocks(); ++b) {
        const auto cells = on.clusters.cells(b);
        for (index i = 0; i < u.block(b).cells.extent(0); ++i)
            if (const real value = on.start(u.block(b).block, cells[toSize(i)]); value != 0) {
                u.allocate(b);
                u.view(b)(i) = value;
            }
    }
    for (int step = 0; step < steps; ++step) {
        u.exchangeGhosts();
        for (const int b : u.allocatedBlocks()) {
            const auto now = std::as_const(u).view(b);
            const auto next = u.view(b, 1);
            for (index i = 0; i < now.extent(0); ++i)
                next(i) = diffused(on.clusters.neighbours(b, i), now(i), [&](LocalIndex j) { return now(j); });
        }
        u.swapStages(0, 1);
    }
    return u;
}

} // namespace DNDS::Geom::test
