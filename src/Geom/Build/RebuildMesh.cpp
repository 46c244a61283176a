#include "DNDS/Geom/Build/RebuildMesh.hpp"

#include "DNDS/Geom/Build/AssembleMesh.hpp"
#include "DNDS/Geom/Build/FaceLinks.hpp"
#include "DNDS/Geom/Build/MovedCells.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

namespace DNDS::Geom {

namespace {

// All checks of this function throw on all ranks.
void checkTargets(const UnstructuredMesh &mesh, std::span<const int> targets, const MeshOptions &options) {
    const CommunicatorView &comm = mesh.comm;
    comm.guarded([&] {
        (void)mesh.cells.builtPattern();
        DNDS_CHECK(static_cast<index>(mesh.curvePositions.size()) == mesh.cells.owned, StateError,
                   "the mesh has {} own cells, but positions on the curve of {}: it is not one of buildMesh",
                   mesh.cells.owned, mesh.curvePositions.size());
        checkGhostLayers(options);
        DNDS_CHECK(static_cast<index>(targets.size()) == mesh.cells.owned, ArgumentError,
                   "{} targets are given for {} own cells", targets.size(), mesh.cells.owned);
        for (std::size_t c = 0; c < targets.size(); ++c)
            DNDS_CHECK(targets[c] >= 0 && targets[c] < comm.size(), ArgumentError, "cell {} is given to rank {} of {}",
                       c, targets[c], comm.size());
    });
    requireSameSettings(comm, "Repartition", [&] {
        return std::vector<std::string>{fmt::format("ghostLayers = {}", options.ghostLayers),
                                        fmt::format("ghostsBy = {}", static_cast<int>(options.ghostsBy)),
                                        fmt::format("cellOrder = {}", static_cast<int>(options.cellOrder))};
    });
}

/// Coordinates of owned nodes, by their local numbers.
std::vector<Point> ownPoints(const UnstructuredMesh &mesh) {
    std::vector<Point> points;
    points.reserve(toSize(mesh.nodes.owned));
    const auto coordinates = mesh.coordinates.view();
    for (index node = 0; node < mesh.nodes.owned; ++node)
        points.push_back({coordinates(node, 0), coordinates(node, 1), coordinates(node, 2)});
    return points;
}

/// The nodes of all ranks in blocks by file number; nodes of no cell are at the origin. Collective.
/// Four words a node in one exchange; O(own nodes + block) memory. Blocks may differ from those of the reader:
/// owners of nodes and keys of faces depend on file numbers only, and blocks only say which rank answers.
SourceMesh nodesInBlocks(const UnstructuredMesh &mesh, std::span<const Point> points) {
    SourceMesh source;
    source.origin = mesh.origin;
    source.periodic = mesh.periodic;
    index last = -1;
    for (const index number : mesh.nodes.ownFileNumbers())
        last = std::max(last, number);
    const EvenSplit blocks(mesh.comm.allReduce(last, MPI_MAX) + 1, mesh.comm.size());
    const RankLists incoming = sparseExchange(
        *mesh.nodes.mapping().global()->context(),
        packByRank(
            mesh.comm.size(), toSize(mesh.nodes.owned),
            [&](std::size_t i) { return blocks.owner(mesh.nodes.fileNumbers[i]); }, [](std::size_t) { return 4; },
            [&](std::size_t i, index *words) {
                *words++ = mesh.nodes.fileNumbers[i];
                for (const real x : points[i])
                    *words++ = packReal(x);
            }));
    const auto block = blocks.part(mesh.comm.rank());
    source.coordinates.resize(toSize(block.size()));
    for (RecordReader reader(incoming.values); !reader.atEnd();) {
        const index number = reader.next();
        source.coordinates[toSize(number - block.begin)] = reader.nextPoint();
    }
    return source;
}

/// Copies the description of the mesh as a whole.
void describeLike(const UnstructuredMesh &before, UnstructuredMesh &mesh) {
    mesh.origin = before.origin;
    mesh.dimension = before.dimension;
    mesh.planar = before.planar;
    mesh.periodic = before.periodic;
    for (const MeshPatch &patch : before.patches)
        mesh.patches.push_back({patch.name, patch.kind, patch.family, {}});
}

/// The steps of `build` without reading, checking and partitioning. File numbers make the result equal to a mesh
/// built from the file with the same parts: blocks of nodes, keys of faces, and orders depend on nothing else. Links
/// across periodic boundaries depend on positions and are found again.
std::pair<UnstructuredMesh, Redistribute> rebuild(const UnstructuredMesh &before, std::span<const int> targets,
                                                  const MeshOptions &options) {
    const CommunicatorView &comm = before.comm;
    checkTargets(before, targets, options);
    UnstructuredMesh mesh(comm);
    describeLike(before, mesh);
    const std::vector<Point> points = ownPoints(before);
    // The same bounds as at the first build: they decide which images a transform makes.
    const auto [lower, upper] = nodeBoundsOf(comm, points);
    auto [cells, rows] = moveCells(before, targets);
    const SourceMesh source = nodesInBlocks(before, points);
    const auto nodeBlocks = GlobalMapping::create(comm, source.nodes());
    // A mesh without ghosts on several ranks does not know its neighbours: faces are matched as at the first build.
    if (comm.size() > 1 && before.ghostLayers == 0)
        linkFaces(*nodeBlocks, cells.cells, before.origin);
    ImageTable images(source.periodic, lower, upper);
    const PeriodicResult periodic = linkPeriodic(*nodeBlocks, cells.cells, source, images);
    const CellNumbers numbers = assembleMesh(
        mesh, std::move(cells), {*nodeBlocks, source.coordinates, periodic.partners}, images, options, nullptr);
    // `rows` has the order of moveCells, which assembleMesh has permuted within the rank.
    const std::vector<index> places(numbers.newOfOld.begin(), numbers.newOfOld.begin() + mesh.cells.owned);
    return {std::move(mesh), rows.permuted(places)};
}

} // namespace

std::pair<UnstructuredMesh, Redistribute> rebuildMesh(const UnstructuredMesh &before, std::span<const int> targets,
                                                      const MeshOptions &options) {
    const ActivityScope activity("rebuildMesh");
    return failTogether(before.comm, [&] { return rebuild(before, targets, options); });
}

} // namespace DNDS::Geom
