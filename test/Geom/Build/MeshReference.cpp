#include "Geom/Build/MeshReference.hpp"

#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Mesh/PeriodicNodes.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace DNDS::test {

using namespace Geom;

namespace {

// A view of temporary metrics or of a temporary mesh does not compile.
template <class Mesh, class Metrics>
constexpr bool canBeViewed = requires(Mesh &&mesh, Metrics &&metrics) {
    viewOf(std::forward<Mesh>(mesh), std::forward<Metrics>(metrics));
};
static_assert(canBeViewed<const UnstructuredMesh &, MeshMetrics &>);
static_assert(!canBeViewed<UnstructuredMesh &, MeshMetrics>);
static_assert(!canBeViewed<UnstructuredMesh, MeshMetrics &>);
static_assert(!canBeViewed<UnstructuredMesh, MeshMetrics>);

/// Owner of each entity of the file, checked to be unique: -1 for entities without owner.
std::vector<int> ownersOf(CommunicatorView comm, const MeshEntities &entities, std::size_t total) {
    std::vector<int> owners(2 * total, 0); // count, and sum of ranks
    for (index i = 0; i < entities.owned; i++) {
        const auto number = static_cast<std::size_t>(entities.fileNumbers[toSize(i)]);
        owners[number]++;
        owners[total + number] += comm.rank();
    }
    comm.allReduce(owners.data(), static_cast<int>(owners.size()), MPI_SUM);
    std::vector<int> result(total);
    for (std::size_t i = 0; i < total; i++) {
        EXPECT_LE(owners[i], 1) << "entity " << i << " of the file is owned twice";
        result[i] = owners[i] == 1 ? owners[total + i] : -1;
    }
    return result;
}

/// A field that owners fill is right in all ghosts after a pull; `valueOf` is a fact about a local entity.
template <class ValueOf>
void checkPull(const UnstructuredMesh &mesh, const MeshEntities &entities, ValueOf &&valueOf) {
    ArrayPair<ParArray<index, 1>> field;
    field.initPair("field", mesh.comm);
    field.father->resize(entities.owned);
    for (index i = 0; i < entities.owned; i++)
        (*field.father)(i, 0) = valueOf(i);
    attachField(field, entities);
    field.trans.pullOnce();
    ASSERT_EQ(field.size(), entities.size());
    for (index i = 0; i < entities.size(); i++)
        EXPECT_EQ(field(i, 0), valueOf(i)) << "entity " << i << " of " << entities.owned << " owned ones";
}

} // namespace

void checkCells(const UnstructuredMesh &mesh, const WholeMesh &whole, const Reference &reference,
                const MeshOptions &options) {
    const auto owners = ownersOf(mesh.comm, mesh.cells, whole.cells.size());
    EXPECT_EQ(std::count(owners.begin(), owners.end(), -1), 0);
    if (options.partitioner == Partitioner::Given) {
        const index total = mesh.comm.allReduce(mesh.cells.owned, MPI_SUM);
        EXPECT_EQ(total, static_cast<index>(whole.cells.size()));
    }
    std::set<Copy> ghosts;
    for (index c = 0; c < mesh.cells.size(); c++) {
        const auto number = static_cast<std::size_t>(mesh.cells.fileNumbers[toSize(c)]);
        EXPECT_EQ(mesh.cells.fileIds[toSize(c)], whole.cells[number].fileId);
        EXPECT_EQ(mesh.cellTypes[toSize(c)], whole.cells[number].type);
        EXPECT_EQ(mesh.cellLayers[toSize(c)] == 0, c < mesh.cells.owned);
        if (c >= mesh.cells.owned) {
            const Copy ghost{static_cast<index>(number), moveOf(mesh, mesh.cells.images[toSize(c)], whole)};
            EXPECT_TRUE(ghosts.insert(ghost).second) << "a ghost twice";
        }
        std::set<index> nodes;
        for (const LocalIndex n : mesh.cellNodes[c])
            nodes.insert(mesh.nodes.fileNumbers[static_cast<std::size_t>(n)]);
        const auto expected = whole.nodesOf(number);
        EXPECT_EQ(nodes, std::set<index>(expected.begin(), expected.end()));
        EXPECT_EQ(mesh.cellFaces[c].size(), static_cast<rowsize>(whole.facesOf(number).size()));
    }
    EXPECT_EQ(ghosts, reference.ghosts(owners, mesh.comm.rank(), options.ghostsBy == GhostNeighbours::Nodes,
                                       options.ghostLayers));
}

void checkFaces(const UnstructuredMesh &mesh, const WholeMesh &whole, const Reference &reference) {
    std::map<std::set<index>, std::set<int>> marksOf;
    std::map<std::set<index>, index> fileIdOf;
    for (std::size_t f = 0; f < whole.faces.size(); f++) {
        const std::set<index> key(whole.faces[f].nodes.begin(), whole.faces[f].nodes.end());
        fileIdOf[key] = whole.faces[f].fileId;
        if (whole.faceMarks[f] >= 0)
            marksOf[key].insert(whole.faceMarks[f]);
    }
    std::vector<int> timesSeen(toSize(mesh.faces.size()), 0);
    const int unassigned = static_cast<int>(mesh.patches.size()) - 1;
    for (index c = 0; c < mesh.cells.size(); c++) {
        const auto number = static_cast<std::size_t>(mesh.cells.fileNumbers[toSize(c)]);
        const auto move = moveOf(mesh, mesh.cells.images[toSize(c)], whole);
        std::set<std::set<index>> faces;
        for (const auto &face : whole.facesOf(number))
            faces.insert({face.begin(), face.end()});
        for (rowsize k = 0; k < mesh.cellFaces[c].size(); k++) {
            const LocalIndex f = mesh.cellFaces[c][k];
            const LocalIndex behind = mesh.cellCells[c][k];
            timesSeen[static_cast<std::size_t>(f)]++;
            const bool first = mesh.faceCells[f][0] == c && mesh.faceCells[f][1] == behind;
            EXPECT_TRUE(first || (mesh.faceCells[f][1] == c && mesh.faceCells[f][0] == behind));
            std::vector<index> nodes;
            for (const LocalIndex n : mesh.faceNodes[f])
                nodes.push_back(mesh.nodes.fileNumbers[static_cast<std::size_t>(n)]);
            const std::set<index> key(nodes.begin(), nodes.end());
            const bool samePlace =
                mesh.faces.images[static_cast<std::size_t>(f)] == mesh.cells.images[toSize(c)] && faces.count(key) == 1;
            if (!samePlace)
                continue; // a periodic face named by the cell on its other side: checked there
            std::vector<Copy> sides = reference.cellsOfFace({key.begin(), key.end()});
            ASSERT_LE(sides.size(), 2U);
            std::set<Copy> others;
            for (Copy side : sides)
                if (side != Copy{static_cast<index>(number), {}}) {
                    for (std::size_t d = 0; d < 3; d++)
                        side.second[d] += move[d];
                    others.insert(side);
                }
            if (behind == noEntity) {
                EXPECT_TRUE(others.empty());
                const auto marks = marksOf.find(key);
                EXPECT_EQ(mesh.facePatches(f), marks == marksOf.end() ? unassigned : *marks->second.begin());
            } else if (behind >= 0) {
                const auto at = static_cast<std::size_t>(behind);
                const Copy other{mesh.cells.fileNumbers[at], moveOf(mesh, mesh.cells.images[at], whole)};
                EXPECT_EQ(others, std::set<Copy>{other});
                if (mesh.cells.images[at] == mesh.cells.images[toSize(c)]) {
                    EXPECT_EQ(first, mesh.cells.fileNumbers[toSize(c)] < other.first);
                }
            } else {
                EXPECT_EQ(behind, notLocal);
                EXPECT_GE(c, mesh.cells.owned);
                EXPECT_EQ(others.size(), 1U);
            }
            const auto id = fileIdOf.find(key);
            EXPECT_EQ(mesh.faces.fileIds[static_cast<std::size_t>(f)], id == fileIdOf.end() ? 0 : id->second);
        }
    }
    for (index f = 0; f < mesh.faces.size(); f++)
        EXPECT_EQ(timesSeen[toSize(f)], (mesh.faceCells[f][0] >= 0) + (mesh.faceCells[f][1] >= 0));
}

void checkFaceOwners(const UnstructuredMesh &mesh, const WholeMesh &whole) {
    std::set<LocalIndex> ofOwn;
    for (index c = 0; c < mesh.cells.owned; c++)
        for (const LocalIndex f : mesh.cellFaces[c])
            ofOwn.insert(f);
    std::set<LocalIndex> expected(mesh.sharedFaces.begin(), mesh.sharedFaces.end());
    for (LocalIndex f = 0; f < mesh.faces.owned; f++)
        expected.insert(f);
    EXPECT_EQ(ofOwn, expected);
    std::set<std::set<index>> faces;
    for (std::size_t c = 0; c < whole.cells.size(); c++)
        for (const auto &face : whole.facesOf(c))
            faces.insert({face.begin(), face.end()});
    EXPECT_EQ(mesh.comm.allReduce(mesh.faces.owned, MPI_SUM), static_cast<index>(faces.size()));
}

void checkNodes(const UnstructuredMesh &mesh, const WholeMesh &whole) {
    (void)ownersOf(mesh.comm, mesh.nodes, whole.points.size());
    for (index n = 0; n < mesh.nodes.size(); n++) {
        const auto at = static_cast<std::size_t>(mesh.nodes.fileNumbers[toSize(n)]);
        const Point moved =
            mesh.images[static_cast<std::size_t>(mesh.nodes.images[toSize(n)])].motion(whole.points[at]);
        for (rowsize d = 0; d < 3; d++)
            EXPECT_NEAR(mesh.coordinates(n, d), moved[static_cast<std::size_t>(d)], 1e-12);
        for (const LocalIndex c : mesh.nodeCells[n]) {
            const auto row = mesh.cellNodes[c];
            EXPECT_EQ(std::count(row.begin(), row.end(), static_cast<LocalIndex>(n)), 1);
        }
    }
    index entries = 0;
    for (index c = 0; c < mesh.cells.size(); c++)
        entries += mesh.cellNodes[c].size();
    EXPECT_EQ(mesh.nodeCells.dataSize(), entries);
}

void checkNodeCells(const UnstructuredMesh &mesh, const WholeMesh &whole, const Reference &reference) {
    const LocalAdjacency around = nodeCellsAcrossPeriodic(mesh);
    for (index c = 0; c < mesh.cells.owned; c++)
        for (const LocalIndex n : mesh.cellNodes[c]) {
            std::set<Copy> found;
            for (const LocalIndex other : around[n]) {
                const auto at = static_cast<std::size_t>(other);
                EXPECT_TRUE(
                    found.insert({mesh.cells.fileNumbers[at], moveOf(mesh, mesh.cells.images[at], whole)}).second);
            }
            EXPECT_EQ(found, reference.atNode(mesh.nodes.fileNumbers[static_cast<std::size_t>(n)]));
        }
}

void checkPulls(const UnstructuredMesh &mesh) {
    checkPull(mesh, mesh.cells, [&](index i) { return mesh.cells.fileNumbers[toSize(i)]; });
    checkPull(mesh, mesh.nodes, [&](index i) { return mesh.nodes.fileNumbers[toSize(i)]; });
    checkPull(mesh, mesh.faces, [&](index i) { return mesh.faces.fileIds[toSize(i)]; });
    // Faces know their nodes, beginning with the same one and in the same direction everywhere.
    checkPull(mesh, mesh.faces, [&](index i) {
        std::uint64_t hash = 0;
        for (const LocalIndex n : mesh.faceNodes[i])
            hash = mixBits(hash ^ static_cast<std::uint64_t>(mesh.nodes.fileNumbers[static_cast<std::size_t>(n)]));
        return static_cast<index>(hash);
    });
}

void checkMetrics(const UnstructuredMesh &mesh, const MeshReport &report) {
    const MeshMetrics metrics = computeMetrics(mesh);
    EXPECT_LT(metrics.closure, 1e-13);
    const MeshView view = viewOf(mesh, metrics);
    real volume = 0.0;
    for (index c = 0; c < view.cells; c++) {
        EXPECT_GT(view.volumes(c, 0), 0.0);
        volume += c < view.ownedCells ? view.volumes(c, 0) : 0.0;
    }
    EXPECT_NEAR(mesh.comm.allReduce(volume, MPI_SUM), report.volume, 1e-12 * report.volume);
    for (index f = 0; f < view.faces; f++) {
        // The normal leaves the first cell.
        for (const int side : {0, 1}) {
            const LocalIndex c = view.faceCells(f, side);
            if (c < 0)
                continue;
            real outward = 0.0;
            for (rowsize d = 0; d < 3; d++)
                outward += (view.faceCentres(f, d) - view.centroids(c, d)) * view.areaVectors(f, d);
            EXPECT_GT(side == 0 ? outward : -outward, 0.0);
        }
    }
}

} // namespace DNDS::test
