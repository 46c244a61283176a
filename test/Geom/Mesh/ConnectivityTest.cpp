#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Repartition/Repartition.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "Geom/Build/WholeMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

using Kind = MeshEntityKind;
using test::BoxCells;
using test::makeBox;
using test::WholeMesh;

constexpr BoxCells volumes[] = {BoxCells::Hexahedra, BoxCells::Hexahedra27, BoxCells::Tetrahedra, BoxCells::Mixed,
                                BoxCells::Polyhedra};
constexpr BoxCells surfaces[] = {BoxCells::Quadrilaterals, BoxCells::Triangles, BoxCells::Polygons};

CommunicatorView everyone() { return {MPI_COMM_WORLD}; }

/// The file number of a cell or a node, or those of the corners of a face or an edge, ascending.
using Id = std::vector<index>;

Id sortedId(Id id) {
    std::sort(id.begin(), id.end());
    return id;
}

/// Calls `visit(id)` for the edges of a face of a whole mesh.
template <class Visit>
void forEdges(const std::vector<index> &corners, Visit &&visit) {
    for (std::size_t k = 0; k < corners.size(); k++)
        visit(sortedId({corners[k], corners[(k + 1) % corners.size()]}));
}

/// The adjacencies of a whole mesh, by brute force.
class SerialConnectivity {
  public:
    explicit SerialConnectivity(const WholeMesh &whole) : volume(whole.dimension == 3) {
        for (std::size_t c = 0; c < whole.cells.size(); c++) {
            const Id cell{static_cast<index>(c)};
            for (const index node : whole.nodesOf(c))
                relate(Kind::Cells, cell, Kind::Nodes, {node});
            for (const auto &corners : whole.facesOf(c)) {
                const Id face = sortedId(corners);
                relate(Kind::Cells, cell, Kind::Faces, face);
                for (const index node : corners)
                    relate(Kind::Faces, face, Kind::Nodes, {node});
                if (volume)
                    forEdges(corners, [&](const Id &edge) {
                        relate(Kind::Cells, cell, Kind::Edges, edge);
                        relate(Kind::Faces, face, Kind::Edges, edge);
                        for (const index node : edge)
                            relate(Kind::Edges, edge, Kind::Nodes, {node});
                    });
            }
        }
    }
    const std::map<Id, std::set<Id>> &rows(Kind from, Kind to) const { return rows_.at({from, to}); }
    /// Empty for nodes that are no corners.
    std::set<Id> row(Kind from, const Id &id, Kind to) const {
        const auto found = rows(from, to).find(id);
        return found == rows(from, to).end() ? std::set<Id>() : found->second;
    }
    const bool volume;

  private:
    void relate(Kind from, const Id &a, Kind to, const Id &b) {
        rows_[{from, to}][a].insert(b);
        rows_[{to, from}][b].insert(a);
    }
    std::map<std::pair<Kind, Kind>, std::map<Id, std::set<Id>>> rows_;
};

Id idOf(const UnstructuredMesh &mesh, Kind kind, index i) {
    if (kind == Kind::Cells)
        return {mesh.cells.fileNumbers[toSize(i)]};
    if (kind == Kind::Nodes)
        return {mesh.nodes.fileNumbers[toSize(i)]};
    Id id;
    for (const LocalIndex node : mesh.adjacency(kind, Kind::Nodes)[i])
        id.push_back(mesh.nodes.fileNumbers[static_cast<std::size_t>(node)]);
    return sortedId(id);
}

int dimensionOf(Kind kind) { return kind == Kind::Cells ? 3 : kind == Kind::Faces ? 2 : kind == Kind::Edges ? 1 : 0; }

/// [entities] whether an own cell has the entity.
std::vector<bool> ofOwnCells(const UnstructuredMesh &mesh, Kind kind) {
    std::vector<bool> result(toSize(mesh.entities(kind).size()), false);
    for (index c = 0; c < mesh.cells.owned; c++)
        for (const LocalIndex i : mesh.adjacency(Kind::Cells, kind)[c])
            result[static_cast<std::size_t>(i)] = true;
    return result;
}

/// Rows of smaller entities, and of larger ones where `complete`, are those of the whole mesh; others are part of them.
void checkRows(const UnstructuredMesh &mesh, const SerialConnectivity &serial, Kind from, Kind to, bool complete) {
    SCOPED_TRACE("from " + std::to_string(static_cast<int>(from)) + " to " + std::to_string(static_cast<int>(to)));
    const LocalAdjacency &rows = mesh.adjacency(from, to);
    EXPECT_EQ(&rows, &mesh.adjacency(from, to));
    ASSERT_EQ(rows.size(), mesh.entities(from).size());
    const bool down = dimensionOf(from) > dimensionOf(to);
    const std::vector<bool> near = down ? std::vector<bool>() : ofOwnCells(mesh, from);
    for (index i = 0; i < rows.size(); i++) {
        std::set<Id> row;
        for (const LocalIndex entry : rows[i])
            EXPECT_TRUE(row.insert(idOf(mesh, to, entry)).second) << "twice in row " << i;
        const std::set<Id> expected = serial.row(from, idOf(mesh, from, i), to);
        if (down || (complete && near[toSize(i)])) {
            EXPECT_EQ(row, expected) << "row " << i;
        } else {
            EXPECT_TRUE(std::includes(expected.begin(), expected.end(), row.begin(), row.end())) << "row " << i;
        }
    }
}

/// Each edge of the whole mesh is owned once, by a rank that has it in an own cell; ghosts know their owners.
void checkEdges(const UnstructuredMesh &mesh, const SerialConnectivity &serial, index nodes) {
    const MeshEntities &edges = mesh.entities(Kind::Edges);
    const LocalAdjacency &edgeNodes = mesh.adjacency(Kind::Edges, Kind::Nodes);
    const std::vector<bool> near = ofOwnCells(mesh, Kind::Edges);
    ArrayPair<ParArray<index, 1>> field;
    field.initPair("edges", mesh.comm);
    field.father->resize(edges.owned);
    attachField(field, edges);
    std::vector<index> codes;
    for (index e = 0; e < edges.size(); e++) {
        const Id id = idOf(mesh, Kind::Edges, e);
        ASSERT_EQ(edgeNodes.rowSize(e), 2);
        EXPECT_EQ(mesh.nodes.fileNumbers[static_cast<std::size_t>(edgeNodes[e][0])], id[0]) << "orientation";
        EXPECT_LT(id[0], id[1]);
        for (const LocalIndex node : edgeNodes[e])
            EXPECT_EQ(mesh.nodes.images[static_cast<std::size_t>(node)], edges.images[toSize(e)]);
        codes.push_back(id[0] * nodes + id[1]);
        if (e < edges.owned) {
            EXPECT_TRUE(near[toSize(e)]);
            (*field.father)(e, 0) = codes.back();
        }
    }
    field.trans.pullOnce();
    for (index e = 0; e < edges.size(); e++)
        EXPECT_EQ(field(e, 0), codes[toSize(e)]) << "edge " << e << " of " << edges.owned;
    codes.resize(toSize(edges.owned));
    codes = mesh.comm.allGatherV(std::span<const index>(codes));
    std::sort(codes.begin(), codes.end());
    std::vector<index> expected;
    for (const auto &[id, row] : serial.rows(Kind::Edges, Kind::Nodes))
        expected.push_back(id[0] * nodes + id[1]);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(codes, expected);
}

void checkAll(const UnstructuredMesh &mesh, const WholeMesh &whole, const MeshOptions &options) {
    const SerialConnectivity serial(whole);
    if (serial.volume)
        checkEdges(mesh, serial, static_cast<index>(whole.points.size()));
    const bool periodic = !whole.periodic.empty();
    const bool byNodes = options.ghostLayers > 0 && options.ghostsBy == GhostNeighbours::Nodes;
    std::vector<Kind> kinds{Kind::Cells, Kind::Faces, Kind::Nodes};
    if (serial.volume)
        kinds.push_back(Kind::Edges);
    for (const Kind from : kinds)
        for (const Kind to : kinds) {
            // A periodic face has the nodes of one side only.
            const bool connectsSides = from == Kind::Faces ? to == Kind::Cells : to == Kind::Faces;
            if (from == to || (periodic && connectsSides))
                continue;
            const bool ofFaces = from == Kind::Faces && options.ghostLayers > 0;
            checkRows(mesh, serial, from, to, byNodes || ofFaces);
        }
}

/// [nodes] the number of the node's position, the same on both sides of a periodic boundary.
std::vector<index> places(const WholeMesh &whole) {
    std::array<long long, 3> period{};
    for (const auto &connection : whole.periodic)
        for (std::size_t d = 0; d < 3; d++)
            if (connection.transform.translation[d] != 0.0)
                period[d] = std::llround(1e6 * std::abs(connection.transform.translation[d]));
    std::map<std::array<long long, 3>, index> known;
    std::vector<index> result;
    for (const auto &point : whole.points) {
        std::array<long long, 3> at{};
        for (std::size_t d = 0; d < 3; d++) {
            at[d] = std::llround(1e6 * point[d]);
            if (period[d] != 0)
                at[d] = (at[d] + period[d]) % period[d];
        }
        result.push_back(known.emplace(at, static_cast<index>(known.size())).first->second);
    }
    return result;
}

/// [cells] the cells that share an entity with each, by brute force.
std::vector<std::set<index>> neighboursOf(const WholeMesh &whole, Kind through) {
    const std::vector<index> place = places(whole);
    std::vector<std::set<Id>> has(whole.cells.size());
    std::map<Id, std::set<index>> of;
    for (std::size_t c = 0; c < whole.cells.size(); c++) {
        for (auto corners : whole.facesOf(c)) {
            for (index &node : corners)
                node = place[toSize(node)];
            if (through == Kind::Faces || whole.dimension == 2)
                has[c].insert(sortedId(corners));
            if (through == Kind::Edges && whole.dimension == 3)
                forEdges(corners, [&](const Id &edge) { has[c].insert(edge); });
        }
        if (through == Kind::Nodes) {
            has[c].clear();
            for (const index node : whole.nodesOf(c))
                has[c].insert({place[toSize(node)]});
        }
        for (const Id &id : has[c])
            of[id].insert(static_cast<index>(c));
    }
    std::vector<std::set<index>> result(whole.cells.size());
    for (std::size_t c = 0; c < has.size(); c++)
        for (const Id &id : has[c])
            result[c].insert(of[id].begin(), of[id].end());
    return result;
}

void checkGhosts(const UnstructuredMesh &mesh, const WholeMesh &whole, Kind through, int layers) {
    SCOPED_TRACE(std::to_string(layers) + " layers through " + std::to_string(static_cast<int>(through)));
    const auto own = mesh.cells.ownFileNumbers();
    const auto neighbours = neighboursOf(whole, through);
    std::set<index> expected(own.begin(), own.end());
    for (int layer = 0; layer < layers; layer++)
        for (const index cell : std::set<index>(expected))
            expected.insert(neighbours[toSize(cell)].begin(), neighbours[toSize(cell)].end());
    for (const index cell : own)
        expected.erase(cell);

    ArrayPair<ParArray<index, 1>> field;
    field.initPair("numbers", mesh.comm);
    field.father->resize(mesh.cells.owned);
    std::copy(own.begin(), own.end(), field.father->data());
    field.transAttach();
    field.trans.usePattern(mesh.ghostsBy(through, layers));
    field.trans.createMPITypes();
    field.trans.pullOnce();
    std::set<index> ghosts;
    for (index i = mesh.cells.owned; i < field.size(); i++)
        EXPECT_TRUE(ghosts.insert(field(i, 0)).second) << "a ghost twice";
    EXPECT_EQ(ghosts, expected);
}

TEST(Connectivity, OfRandomMeshesIsThatOfTheWholeMesh) {
    for (const auto &list : {std::span<const BoxCells>(volumes), std::span<const BoxCells>(surfaces)})
        for (const BoxCells cells : list) {
            SCOPED_TRACE(static_cast<int>(cells));
            const WholeMesh whole = makeBox({.cells = cells, .counts = {3, 2, 3}});
            const MeshOptions options;
            checkAll(buildMesh(everyone(), whole.slice(everyone(), true), options), whole, options);
        }
}

TEST(Connectivity, OfPeriodicMeshesIsThatOfTheWholeMesh) {
    for (const BoxCells cells : volumes) {
        SCOPED_TRACE(static_cast<int>(cells));
        const WholeMesh whole = makeBox({.cells = cells, .counts = {4, 2, 3}, .periodic = {true, false, true}});
        const MeshOptions options;
        checkAll(buildMesh(everyone(), whole.slice(everyone()), options), whole, options);
    }
}

TEST(Connectivity, KnowsEdgesWithoutGhostsWithGhostsByFacesAndWithSeveralLayers) {
    const WholeMesh whole = makeBox({.cells = BoxCells::Mixed, .counts = {4, 3, 3}});
    for (const MeshOptions &options : {MeshOptions{.ghostLayers = 0}, MeshOptions{.ghostLayers = 2},
                                       MeshOptions{.ghostsBy = GhostNeighbours::Faces, .ghostLayers = 1}})
        checkAll(buildMesh(everyone(), whole.slice(everyone()), options), whole, options);
}

TEST(Connectivity, IsThatOfTheNewMeshAfterRepartition) {
    for (const BoxCells cells : {BoxCells::Mixed, BoxCells::Polyhedra}) {
        const WholeMesh whole = makeBox({.cells = cells, .counts = {4, 3, 3}});
        MeshOptions options;
        UnstructuredMesh mesh = buildMesh(everyone(), whole.slice(everyone()), options);
        static_cast<void>(mesh.adjacency(Kind::Edges, Kind::Cells));
        const auto targetOf = [](index cell) { return static_cast<int>(cell * 7919 % test::worldSize()); };
        std::vector<int> targets;
        for (const index cell : mesh.cells.ownFileNumbers())
            targets.push_back(targetOf(cell));
        Repartition(mesh, targets, options).commit();
        checkAll(mesh, whole, options);
        if (cells == BoxCells::Polyhedra) // whose faces may begin with another corner
            continue;
        SourceMesh source = whole.slice(everyone());
        options.partitioner = Partitioner::Given;
        for (index c = 0; c < source.cells.size(); c++)
            options.givenPart.push_back(targetOf(source.cells.first + c));
        const UnstructuredMesh anew = buildMesh(everyone(), std::move(source), options);
        for (const Kind to : {Kind::Nodes, Kind::Faces, Kind::Cells})
            EXPECT_EQ(mesh.adjacency(Kind::Edges, to).hash(), anew.adjacency(Kind::Edges, to).hash());
        EXPECT_TRUE(std::ranges::equal(mesh.entities(Kind::Edges).mapping().ghosts(),
                                       anew.entities(Kind::Edges).mapping().ghosts()));
    }
}

TEST(Connectivity, InTwoDimensionsEdgesAreFaces) {
    const UnstructuredMesh mesh = buildMesh(everyone(), makeBox({.cells = BoxCells::Triangles}).slice(everyone()));
    EXPECT_EQ(&mesh.entities(Kind::Edges), &mesh.faces);
    EXPECT_EQ(&mesh.adjacency(Kind::Cells, Kind::Edges), &mesh.cellFaces);
    for (const auto &[from, to] : {std::pair(Kind::Faces, Kind::Edges), std::pair(Kind::Edges, Kind::Faces)}) {
        const LocalAdjacency &same = mesh.adjacency(from, to);
        ASSERT_EQ(same.size(), mesh.faces.size());
        for (index f = 0; f < same.size(); f++) {
            ASSERT_EQ(same.rowSize(f), 1);
            EXPECT_EQ(same[f][0], f);
        }
    }
}

TEST(Connectivity, GhostsAreReachedThroughNodesEdgesAndFaces) {
    for (const BoxCells cells : {BoxCells::Mixed, BoxCells::Triangles})
        for (const bool periodic : {false, true}) {
            SCOPED_TRACE(static_cast<int>(cells));
            const WholeMesh whole =
                makeBox({.cells = cells, .counts = {6, 3, 3}, .periodic = {periodic, false, periodic}});
            const UnstructuredMesh mesh = buildMesh(everyone(), whole.slice(everyone()));
            for (const Kind through : {Kind::Nodes, Kind::Edges, Kind::Faces})
                checkGhosts(mesh, whole, through, 2);
        }
    const WholeMesh whole = makeBox({.cells = BoxCells::Tetrahedra});
    checkGhosts(buildMesh(everyone(), whole.slice(everyone()), {.ghostsBy = GhostNeighbours::Faces}), whole,
                Kind::Faces, 2);
}

// Layers thinner than a cell is wide, and sides that match only nearly.
TEST(Connectivity, PeriodicNeighboursAreThoseOfTheFacesForThinCellsAndInexactSides) {
    for (const BoxCells cells : {BoxCells::Hexahedra27, BoxCells::Mixed, BoxCells::Polyhedra})
        for (const real apart : {0.0, 0.02}) {
            const real thickness = cells == BoxCells::Polyhedra && apart > 0 ? 1 : 0.005;
            SCOPED_TRACE(fmt::format("{}, cells {} thick, sides {} apart", static_cast<int>(cells), thickness, apart));
            WholeMesh whole =
                makeBox({.cells = cells, .counts = {4, 2, 8}, .periodic = {true, false, true}, .jitter = apart > 0});
            for (auto &point : whole.points)
                point[2] *= thickness;
            for (auto &connection : whole.periodic)
                connection.transform.translation[2] *= thickness;
            WholeMesh moved = whole;
            for (auto &point : moved.points)
                if (point[2] > 7.75 * thickness)
                    point[1] += apart;
            const UnstructuredMesh mesh = buildMesh(everyone(), moved.slice(everyone()));
            for (const Kind through : {Kind::Nodes, Kind::Edges})
                checkGhosts(mesh, whole, through, 1);
        }
}

TEST(Connectivity, RefusesWhatDoesNotExist) {
    const WholeMesh whole = makeBox({});
    const UnstructuredMesh mesh = buildMesh(everyone(), whole.slice(everyone()), {.ghostsBy = GhostNeighbours::Faces});
    test::expectContains(test::messageOnAll<StateError>([&] { mesh.ghostsBy(Kind::Edges, 1); }), "a layer of ghosts");
    test::expectContains(test::messageOnAll<ArgumentError>([&] { mesh.ghostsBy(Kind::Cells, 1); }), "through cells");
    EXPECT_THROW(mesh.adjacency(Kind::Faces, Kind::Faces), ArgumentError);
    const UnstructuredMesh none(everyone());
    EXPECT_THROW(none.adjacency(Kind::Nodes, Kind::Faces), StateError);
    test::expectContains(test::messageOnAll<StateError>([&] { none.entities(Kind::Edges); }), "was not built");
}

TEST(Connectivity, EdgesOfGhostsThatNoOwnCellHasAreAnErrorOnAllRanks) {
    UnstructuredMesh mesh =
        buildMesh(everyone(), makeBox({.periodic = {true, false, false}, .turnSome = false}).slice(everyone()));
    if (mesh.comm.rank() == 0) // diagonals in place of edges
        for (index c = mesh.cells.owned; c < mesh.cells.size(); c++)
            std::swap(mesh.cellNodes[c][0], mesh.cellNodes[c][1]);
    const std::string message = test::messageOnAll<DataError>([&] { mesh.entities(Kind::Edges); });
    test::expectContains(message, "the edge between nodes");
    test::expectContains(message, "dnds-mesh check");
}

TEST(Connectivity, RowsAreComposedTransposedAndRestricted) {
    const LocalAdjacency rows = makeAdjacency("rows", everyone(), std::vector<index>{0, 3, 3, 5},
                                              std::vector<LocalIndex>{2, noEntity, 0, 1, 2});
    const auto expectRows = [](const LocalAdjacency &made, const std::vector<std::vector<LocalIndex>> &expected) {
        ASSERT_EQ(made.size(), static_cast<index>(expected.size()));
        for (index i = 0; i < made.size(); i++)
            EXPECT_TRUE(std::ranges::equal(made[i], expected[toSize(i)])) << "row " << i;
    };
    expectRows(transpose("inverse", rows, 3), {{0}, {2}, {0, 2}});
    expectRows(compose("twice", rows, rows), {{1, 2, 0}, {}, {1, 2}});
    expectRows(restricted("part", rows, std::vector<LocalIndex>{2, 0}, std::vector<LocalIndex>{5, noEntity, 7}),
               {{7}, {7, 5}});
    const LocalAdjacency one = makeAdjacency("one", everyone(), std::vector<index>{0, 1}, std::vector<LocalIndex>{0});
    EXPECT_THROW(compose("short", rows, one), IndexError);
    EXPECT_THROW(restricted("none", rows, std::vector<LocalIndex>{3}, {}), IndexError);
}

struct KnownMesh {
    const char *file;
    index nodes, faces, cells; ///< as in its manifest
};
class ConnectivityOfFiles : public testing::TestWithParam<KnownMesh> {};

// Solids without holes: nodes - edges + faces - cells is 1.
TEST_P(ConnectivityOfFiles, HasTheEulerCharacteristicOfABall) {
    const KnownMesh known = GetParam();
    const std::string path = std::string(DNDS_TEST_MESHES "/") + known.file;
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << "no " << path;
    const UnstructuredMesh mesh = buildMesh(everyone(), readMesh(everyone(), path));
    const auto total = [&](Kind kind) { return mesh.entities(kind).mapping().global()->globalSize(); };
    EXPECT_EQ(total(Kind::Nodes), known.nodes);
    EXPECT_EQ(total(Kind::Faces), known.faces);
    EXPECT_EQ(total(Kind::Cells), known.cells);
    EXPECT_EQ(total(Kind::Edges), known.nodes + known.faces - known.cells - 1);
}

INSTANTIATE_TEST_SUITE_P(Public, ConnectivityOfFiles,
                         testing::Values(KnownMesh{"bend_mixed.cgns", 1259, 3838, 1288},
                                         KnownMesh{"tut21_hex.cgns", 2106, 5232, 1584},
                                         KnownMesh{"atb45_ngon_v34.cgns", 792, 1676, 460}),
                         [](const auto &mesh) {
                             const std::string name = mesh.param.file;
                             return name.substr(0, name.find('.'));
                         });

} // namespace
} // namespace DNDS::Geom
