#include "Geom/Mesh/BuildMesh.hpp"

#include "Geom/Mesh/MeshMetrics.hpp"
#include "Geom/Mesh/MeshView.hpp"
#include "Geom/Mesh/PeriodicNodes.hpp"
#include "Geom/Mesh/WholeMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

namespace DNDS::Geom {
namespace {

using test::BoxCells;
using test::BoxOptions;
using test::makeBox;
using test::WholeMesh;

/// A cell of the mesh repeated periodically: its number and by how much it is moved.
using Copy = std::pair<index, std::array<int, 3>>;

/// The serial reference: the whole mesh, repeated to both sides in periodic directions, with nodes told apart by where
/// they are alone. It knows neither keys nor links nor images.
class Reference {
  public:
    Reference(const WholeMesh &mesh, int layers) : mesh_(mesh) {
        std::array<int, 3> reach{};
        for (const auto &connection : mesh.periodic)
            for (std::size_t d = 0; d < 3; d++)
                if (connection.transform.translation[d] != 0.0) {
                    reach[d] = layers + 1;
                    period_[d] = connection.transform.translation[d];
                }
        for (int x = -reach[0]; x <= reach[0]; x++)
            for (int y = -reach[1]; y <= reach[1]; y++)
                for (int z = -reach[2]; z <= reach[2]; z++)
                    addCopies({x, y, z});
    }
    /// Cells within so many layers of cells of `part`, those excluded.
    std::set<Copy> ghosts(const std::vector<int> &part, int rank, bool byNodes, int layers) const {
        std::set<Copy> seen;
        std::set<Copy> front;
        for (std::size_t c = 0; c < part.size(); c++)
            if (part[c] == rank)
                front.insert({static_cast<index>(c), {}});
        const std::set<Copy> own = front;
        seen = front;
        for (int layer = 0; layer < layers; layer++) {
            std::set<Copy> next;
            for (const Copy &copy : front)
                for (const Copy &other : byNodes ? aroundNodes(copy) : behindFaces(copy))
                    if (seen.insert(other).second)
                        next.insert(other);
            front = next;
        }
        for (const Copy &copy : own)
            seen.erase(copy);
        return seen;
    }
    /// Cells around a node of the unmoved mesh, repeated ones among them.
    std::set<Copy> atNode(index node) const {
        const auto &cells = ofNode_.at(placeOf(node, {}));
        return {cells.begin(), cells.end()};
    }
    std::set<Copy> behindFaces(const Copy &copy) const {
        std::set<Copy> result;
        for (const auto &face : mesh_.facesOf(static_cast<std::size_t>(copy.first)))
            for (const Copy &other : ofFace_.at(placesOf(face, copy.second)))
                if (other != copy)
                    result.insert(other);
        return result;
    }
    /// Cells of a face of the unmoved mesh.
    std::vector<Copy> cellsOfFace(const std::vector<index> &face) const { return ofFace_.at(placesOf(face, {})); }

  private:
    using Place = std::array<long long, 3>;
    Place placeOf(index node, const std::array<int, 3> &move) const {
        Place place;
        for (std::size_t d = 0; d < 3; d++)
            place[d] = std::llround(1e6 * (mesh_.points[static_cast<std::size_t>(node)][d] + move[d] * period_[d]));
        return place;
    }
    std::set<Place> placesOf(const std::vector<index> &face, const std::array<int, 3> &move) const {
        std::set<Place> places;
        for (const index node : face)
            places.insert(placeOf(node, move));
        return places;
    }
    void addCopies(const std::array<int, 3> &move) {
        for (std::size_t c = 0; c < mesh_.cells.size(); c++) {
            for (const auto &face : mesh_.facesOf(c))
                ofFace_[placesOf(face, move)].push_back({static_cast<index>(c), move});
            for (const index node : mesh_.nodesOf(c))
                ofNode_[placeOf(node, move)].push_back({static_cast<index>(c), move});
        }
    }
    std::set<Copy> aroundNodes(const Copy &copy) const {
        std::set<Copy> result;
        for (const index node : mesh_.nodesOf(static_cast<std::size_t>(copy.first)))
            for (const Copy &other : ofNode_.at(placeOf(node, copy.second)))
                result.insert(other);
        return result;
    }
    const WholeMesh &mesh_;
    std::array<real, 3> period_{};
    std::map<std::set<Place>, std::vector<Copy>> ofFace_;
    std::map<Place, std::vector<Copy>> ofNode_;
};

/// Who owns each entity of the file, checked to be owned once: -1 for those that nobody has.
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

std::array<int, 3> moveOf(const UnstructuredMesh &mesh, int image, const WholeMesh &whole) {
    std::array<int, 3> move{};
    for (const auto &step : mesh.images[static_cast<std::size_t>(image)].steps)
        for (std::size_t d = 0; d < 3; d++)
            if (whole.periodic[static_cast<std::size_t>(step.connection)].transform.translation[d] != 0.0)
                move[d] += step.times;
    return move;
}

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

/// Each face of each local cell: nodes, cells on both sides, orientation, patches.
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
                EXPECT_EQ(mesh.facePatches[static_cast<std::size_t>(f)],
                          marks == marksOf.end() ? unassigned : *marks->second.begin());
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

/// Own faces and those shared are all faces of own cells, and every face of the whole mesh is owned once.
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

/// Cells around each node of own cells, across periodic boundaries, too.
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

/// Builds a box and compares everything with the reference.
void compare(const BoxOptions &box, MeshOptions options, bool randomPart = true) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const WholeMesh whole = makeBox(box);
    SourceMesh source = whole.slice(comm, randomPart);
    if (randomPart) {
        std::mt19937_64 random(test::rankSeed());
        options.partitioner = Partitioner::Given;
        for (index c = 0; c < source.cells.size(); c++) // the last of several ranks gets nothing
            options.givenPart.push_back(
                static_cast<int>(random() % static_cast<unsigned>(std::max(1, comm.size() - 1))));
    }
    MeshReport report;
    options.report = &report;
    const UnstructuredMesh mesh = buildMesh(comm, std::move(source), options);
    const Reference reference(whole, options.ghostLayers);
    checkCells(mesh, whole, reference, options);
    checkFaces(mesh, whole, reference);
    checkFaceOwners(mesh, whole);
    checkNodes(mesh, whole);
    if (options.ghostsBy == GhostNeighbours::Nodes && options.ghostLayers > 0)
        checkNodeCells(mesh, whole, reference);
    checkPulls(mesh);
    checkMetrics(mesh, report);
    real volume = 1.0;
    for (int d = 0; d < whole.dimension; d++)
        volume *= static_cast<real>(box.counts[static_cast<std::size_t>(d)]);
    EXPECT_NEAR(report.volume, volume, 1e-12 * volume);
    EXPECT_EQ(report.cellsTotal, static_cast<index>(whole.cells.size()));
}

constexpr BoxCells allCells[] = {BoxCells::Hexahedra, BoxCells::Hexahedra27, BoxCells::Tetrahedra,
                                 BoxCells::Mixed,     BoxCells::Polyhedra,   BoxCells::Quadrilaterals,
                                 BoxCells::Triangles, BoxCells::Polygons};

TEST(BuildMesh, OfEveryTypeOnRandomPartsEqualsTheReference) {
    for (const BoxCells cells : allCells)
        for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes}) {
            SCOPED_TRACE(fmt::format("cells {}, ghosts by {}", static_cast<int>(cells), static_cast<int>(by)));
            compare({.cells = cells, .counts = {4, 3, 3}}, {.ghostsBy = by});
        }
}

TEST(BuildMesh, PartitionedByGraphAndCurveEqualsTheReference) {
    for (const Partitioner partitioner : {Partitioner::Graph, Partitioner::Curve})
        for (const BoxCells cells : {BoxCells::Mixed, BoxCells::Triangles, BoxCells::Polyhedra})
            compare({.cells = cells, .counts = {5, 4, 4}},
                    {.partitioner = partitioner, .cellOrder = CellOrder::ReverseCuthillMcKee}, false);
}

TEST(BuildMesh, HasDeepGhosts) {
    for (const int layers : {0, 2, 3})
        for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes}) {
            if (layers == 0 && by == GhostNeighbours::Nodes)
                continue;
            SCOPED_TRACE(fmt::format("{} layers by {}", layers, static_cast<int>(by)));
            const BoxOptions box{.cells = BoxCells::Hexahedra, .counts = {7, 4, 3}};
            if (layers > 0)
                compare(box, {.partitioner = Partitioner::Graph, .ghostsBy = by, .ghostLayers = layers}, false);
            compare({.cells = BoxCells::Tetrahedra, .counts = {3, 2, 2}},
                    {.partitioner = Partitioner::Curve, .ghostsBy = by, .ghostLayers = std::max(1, layers)}, false);
        }
}

TEST(BuildMesh, OfOneCell) {
    for (const BoxCells cells : {BoxCells::Hexahedra, BoxCells::Quadrilaterals, BoxCells::Polyhedra})
        for (const bool randomPart : {false, true})
            compare({.cells = cells, .counts = {1, 1, 1}}, {}, randomPart);
}

TEST(BuildMesh, HasPeriodicImages) {
    for (const BoxCells cells : {BoxCells::Hexahedra, BoxCells::Tetrahedra, BoxCells::Mixed, BoxCells::Polyhedra})
        for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes})
            for (const int layers : {1, 2}) {
                SCOPED_TRACE(
                    fmt::format("cells {}, {} layers by {}", static_cast<int>(cells), layers, static_cast<int>(by)));
                compare({.cells = cells, .counts = {4, 3, 3}, .periodic = {true, false, false}},
                        {.ghostsBy = by, .ghostLayers = layers});
            }
}

TEST(BuildMesh, IsPeriodicInAllDirectionsAndOneCellWide) {
    for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes})
        for (const int layers : {1, 2}) {
            SCOPED_TRACE(fmt::format("{} layers by {}", layers, static_cast<int>(by)));
            const MeshOptions options{.ghostsBy = by, .ghostLayers = layers};
            compare({.counts = {3, 1, 2}, .periodic = {true, true, true}}, options);
            compare({.counts = {1, 1, 1}, .periodic = {true, true, true}}, options);
            compare({.cells = BoxCells::Quadrilaterals, .counts = {3, 1, 1}, .periodic = {true, true, false}}, options);
            compare({.cells = BoxCells::Triangles, .counts = {1, 4, 1}, .periodic = {true, false, false}}, options,
                    false);
        }
}

/// One side in two connections of the same motion: where they meet, cells are no ghosts twice.
TEST(BuildMesh, TakesTwoConnectionsOfOneMotionAsOne) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    WholeMesh whole = makeBox({.counts = {3, 4, 3}, .periodic = {true, false, false}});
    whole.periodic.push_back(whole.periodic[0]);
    whole.periodic[1].name = "upper half";
    int moved = 0;
    for (std::size_t f = 0; f < whole.faces.size(); f++) {
        real height = 0;
        for (const index node : whole.faces[f].nodes)
            height += whole.points[static_cast<std::size_t>(node)][1] / static_cast<real>(whole.faces[f].nodes.size());
        if (whole.faceMarks[f] < 0 && height > 2.0) {
            whole.faceMarks[f] -= 2;
            moved++;
        }
    }
    EXPECT_EQ(moved, 2 * 2 * 3);
    for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes}) {
        const MeshOptions options{.ghostsBy = by};
        const UnstructuredMesh mesh = buildMesh(comm, whole.slice(comm), options);
        const Reference reference(whole, options.ghostLayers);
        checkCells(mesh, whole, reference, options);
        checkFaces(mesh, whole, reference);
        if (by == GhostNeighbours::Nodes)
            checkNodeCells(mesh, whole, reference);
    }
}

TEST(BuildMesh, RefusesFacesWithTwoPartnersInTheSameWords) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    WholeMesh whole = makeBox({.counts = {3, 3, 3}, .periodic = {true, false, false}, .jitter = false});
    whole.periodic.push_back(whole.periodic[0]); // and the side again, one row higher
    whole.periodic[1].transform.translation[1] = 1.0;
    for (std::size_t f = 0, count = whole.faces.size(); f < count; f++)
        if (whole.faceMarks[f] < 0) {
            const auto again = whole.faces[f];
            whole.faces.push_back(again);
            whole.faceMarks.push_back(whole.faceMarks[f] - 2);
        }
    const auto complaint = [&](CommunicatorView on) -> std::string {
        try {
            (void)buildMesh(on, whole.slice(on));
        } catch (const DataError &error) {
            return error.message().substr(0, error.message().rfind(" (rank "));
        }
        return "none";
    };
    const std::string together = complaint(comm);
    EXPECT_NE(together.find("is periodic with two others"), std::string::npos) << together;
    EXPECT_EQ(together, complaint(CommunicatorView(MPI_COMM_SELF)));
}

TEST(BuildMesh, ReportsTheSameForEveryNumberOfRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const WholeMesh whole = makeBox({.cells = BoxCells::Mixed, .counts = {5, 4, 3}, .periodic = {false, false, true}});
    const auto build = [&](CommunicatorView on) {
        MeshReport report;
        MeshOptions options;
        options.report = &report;
        (void)buildMesh(on, whole.slice(on), options);
        return report;
    };
    const MeshReport report = build(comm);
    const MeshReport serial = build(CommunicatorView(MPI_COMM_SELF));
    EXPECT_EQ(report.measure, serial.measure); // to the bit
    EXPECT_EQ(report.volume, serial.volume);
    EXPECT_LT(report.measure, report.volume);
    EXPECT_NEAR(report.volume, 60.0, 1e-12);
    EXPECT_EQ(report.warnings, serial.warnings);
    EXPECT_EQ(report.innerFaces, serial.innerFaces);
    EXPECT_EQ(report.boundaryFaces, serial.boundaryFaces);
    EXPECT_EQ(report.periodicPairs, serial.periodicPairs);
    EXPECT_EQ(report.turnedCells, static_cast<index>((whole.cells.size() + 2) / 3));
    EXPECT_EQ(report.unassignedFaces, 0);
    ASSERT_EQ(report.patches.size(), 4U);
    EXPECT_EQ(report.patches[0].name, "x0");
    EXPECT_EQ(report.patches[0].faces, 4 * 3);
    EXPECT_EQ(report.patches[2].faces, 5 * 3);
    EXPECT_EQ(report.periodicPairs * 2 + 2 * (4 * 3 + 5 * 3), report.boundaryFaces);
    for (std::size_t d = 0; d < 3; d++) {
        EXPECT_EQ(report.lower[d], serial.lower[d]);
        EXPECT_EQ(report.upper[d], serial.upper[d]);
    }
}

TEST(BuildMesh, TakesPatchesByNodesFacesTwiceAndInside) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    WholeMesh whole = makeBox({.counts = {4, 3, 2}, .jitter = false, .turnSome = false});
    const auto nodesAt = [&](std::size_t d, real x, int mark) {
        for (std::size_t n = 0; n < whole.points.size(); n++)
            if (whole.points[n][d] == x)
                whole.nodeMarks.push_back({mark, static_cast<index>(n)});
    };
    whole.patches.push_back({"top by nodes", "", ""});
    nodesAt(2, 2.0, 6);
    // Only the side x = 0 stays listed, twice, in two patches; then a patch inside at x = 2.
    whole.patches.push_back({"x0 again", "", ""});
    whole.patches.push_back({"inside", "", ""});
    std::vector<WholeMesh::Element> faces;
    std::vector<int> marks;
    for (std::size_t f = 0; f < whole.faces.size(); f++)
        if (whole.faceMarks[f] == 0) {
            faces.insert(faces.end(), 2, whole.faces[f]);
            marks.insert(marks.end(), {0, 7});
        }
    for (std::size_t c = 0; c < whole.cells.size(); c++)
        for (const auto &face : whole.facesOf(c))
            if (std::all_of(face.begin(), face.end(),
                            [&](index n) { return whole.points[static_cast<std::size_t>(n)][0] == 2.0; })) {
                faces.push_back({ElementType::Quad4, face, 99});
                marks.push_back(8);
            }
    faces.push_back({ElementType::Quad4, {0, 1, 2, 3}, 77}); // no face of any cell, numbered at random as nodes are
    marks.push_back(0);
    whole.faces = faces;
    whole.faceMarks = marks;
    MeshReport report;
    MeshOptions options;
    options.report = &report;
    const UnstructuredMesh mesh = buildMesh(comm, whole.slice(comm), options);
    EXPECT_EQ(report.patches[0].faces, 6);
    EXPECT_EQ(report.patches[6].faces, 12);
    EXPECT_EQ(report.patches[7].faces, 6);
    EXPECT_EQ(report.patches[8].faces, 6);
    EXPECT_EQ(report.patches[8].innerFaces, 6);
    EXPECT_EQ(report.unassignedFaces, report.boundaryFaces - 6 - 12);
    EXPECT_EQ(report.boundaryFaces, 2 * (12 + 8 + 6));
    ASSERT_EQ(report.warnings.size(), 3U);
    EXPECT_NE(report.warnings[0].find("1 boundary elements are no face of a cell, the first is 77"), std::string::npos);
    EXPECT_NE(report.warnings[1].find("6 of 6 faces of 'inside' are inside the mesh"), std::string::npos);
}

/// Cells and nodes come back in the order of curves and of exchange: inner cells first.
TEST(BuildMesh, PutsInnerCellsFirst) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const WholeMesh whole = makeBox({.counts = {12, 6, 6}});
    const UnstructuredMesh mesh = buildMesh(comm, whole.slice(comm));
    for (const MeshEntities *entities : {&mesh.cells, &mesh.nodes, &mesh.faces}) {
        const auto boundary = entities->pattern->boundaryRows();
        if (!boundary.empty()) {
            EXPECT_EQ(boundary.front(), entities->owned - static_cast<index>(boundary.size()));
        }
    }
}

} // namespace
} // namespace DNDS::Geom
