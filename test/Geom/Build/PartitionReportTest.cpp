#include "DNDS/Geom/Build/BuildMesh.hpp"

#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace DNDS::Geom {
namespace {

BoxMeshOptions boxOf(BoxCells fill, bool periodic) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {6, 4, 4};
    options.shuffled = true;
    options.periodic = {periodic, false, periodic};
    options.seed = DNDS::test::seed();
    return options;
}

UnstructuredMesh meshOf(CommunicatorView comm, const BoxMeshOptions &box, GhostNeighbours by,
                        const std::vector<int> *given = nullptr) {
    MeshOptions options;
    options.partitioner = given == nullptr ? Partitioner::Curve : Partitioner::Given;
    if (given != nullptr)
        options.givenPart = *given;
    options.ghostsBy = by;
    return buildMesh(comm, makeBoxMesh(box, comm), options);
}

/// The parts of all cells in the order of the file, on every rank.
std::vector<int> inFileOrder(const UnstructuredMesh &mesh, std::span<const int> part) {
    const std::vector<real> field(part.begin(), part.end());
    const FileOrder order(mesh);
    const std::vector<real> block = order.cellValues(field, 1);
    std::vector<int> all(static_cast<std::size_t>(order.mesh().cells.globalSize), 0);
    for (std::size_t c = 0; c < block.size(); c++)
        all[static_cast<std::size_t>(order.mesh().cells.first) + c] = static_cast<int>(block[c]);
    mesh.comm.allReduce(all.data(), static_cast<int>(all.size()), MPI_SUM);
    return all;
}

class PartitionReports : public ::testing::TestWithParam<std::tuple<BoxCells, bool, GhostNeighbours, Partitioner>> {};

TEST_P(PartitionReports, SayWhatAMeshOfThesePartsHas) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto [fill, periodic, by, partitioner] = GetParam();
    const BoxMeshOptions box = boxOf(fill, periodic);
    const UnstructuredMesh mesh = meshOf(comm, box, by);
    const std::vector<int> part = partitionCells(mesh, comm.size(), partitioner);
    const PartitionReport report = reportPartition(mesh, part, comm.size(), by);

    const std::vector<int> all = inFileOrder(mesh, part);
    const SourceMesh block = makeBoxMesh(box, comm);
    const auto first = all.begin() + block.cells.first;
    const std::vector<int> given(first, first + block.cells.size());
    const UnstructuredMesh built = meshOf(comm, box, by, &given);
    const auto &own = report.parts[static_cast<std::size_t>(comm.rank())];
    EXPECT_EQ(own.cells, built.cells.owned);
    EXPECT_EQ(own.ghosts, built.cells.ghosts);
    const PeerRows &owners = built.cells.pattern->owners();
    EXPECT_EQ(own.peers,
              std::count_if(owners.ranks.begin(), owners.ranks.end(), [&](int rank) { return rank != comm.rank(); }));
    index cut = 0;
    index inner = 0;
    const auto faceCells = built.faceCells.view();
    for (index face = 0; face < built.faces.owned; face++)
        if (const LocalIndex other = faceCells(face, 1); other >= 0) {
            const GlobalMapping &global = *built.cells.mapping().global();
            const index weight = built.cells.images[static_cast<std::size_t>(other)] == 0 ? 2 : 1; // periodic: twice
            inner += weight;
            cut += global.owner(built.cells.mapping().toGlobal(faceCells(face, 0))).rank !=
                           global.owner(built.cells.mapping().toGlobal(other)).rank
                       ? weight
                       : 0;
        }
    EXPECT_EQ(2 * report.cut, comm.allReduce(cut, MPI_SUM));
    EXPECT_EQ(2 * report.innerFaces, comm.allReduce(inner, MPI_SUM));
    const index largest = comm.allReduce(built.cells.owned, MPI_MAX);
    EXPECT_NEAR(report.imbalance,
                static_cast<real>(largest * comm.size()) / static_cast<real>(block.cells.globalSize) - 1, 1e-12);
    if (comm.rank() == 0) {
        index linked = 0;
        index ghosts = 0;
        for (const auto &link : report.links)
            linked += link.ghosts;
        for (const auto &p : report.parts)
            ghosts += p.ghosts;
        EXPECT_EQ(linked, ghosts);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Boxes, PartitionReports,
    ::testing::Values(std::tuple{BoxCells::Tetrahedra, false, GhostNeighbours::Nodes, Partitioner::Graph},
                      std::tuple{BoxCells::Tetrahedra, true, GhostNeighbours::Faces, Partitioner::Curve},
                      std::tuple{BoxCells::Hexahedra, true, GhostNeighbours::Nodes, Partitioner::Graph},
                      std::tuple{BoxCells::MixedVolume, false, GhostNeighbours::Faces, Partitioner::Graph},
                      std::tuple{BoxCells::Polyhedra, false, GhostNeighbours::Nodes, Partitioner::Curve}));

TEST(PartitionCells, CutsTheCurveAlikeOnAnyNumberOfRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const CommunicatorView alone(MPI_COMM_SELF);
    const BoxMeshOptions box = boxOf(BoxCells::MixedSurface, false);
    const auto partsOf = [&](CommunicatorView view) {
        const UnstructuredMesh mesh = meshOf(view, box, GhostNeighbours::Faces);
        return inFileOrder(mesh, partitionCells(mesh, 5, Partitioner::Curve));
    };
    const std::vector<int> parts = partsOf(comm);
    EXPECT_EQ(parts, partsOf(alone));
    EXPECT_EQ(*std::max_element(parts.begin(), parts.end()), 4);
}

TEST(PartitionReport, NeedsNoGhostsOnOneRankUnlessPeriodic) {
    const auto meshWith = [](int layers, bool periodic) {
        MeshOptions options;
        options.ghostLayers = layers;
        options.ghostsBy = GhostNeighbours::Nodes;
        return buildMesh(MPI_COMM_SELF, makeBoxMesh(boxOf(BoxCells::Hexahedra, periodic), MPI_COMM_SELF), options);
    };
    const UnstructuredMesh bare = meshWith(0, false);
    const std::vector<int> part = partitionCells(bare, 3, Partitioner::Graph);
    const PartitionReport without = reportPartition(bare, part, 3);
    const PartitionReport with = reportPartition(meshWith(1, false), part, 3);
    EXPECT_EQ(without.cut, with.cut);
    for (std::size_t p = 0; p < 3; p++) {
        EXPECT_EQ(without.parts[p].ghosts, with.parts[p].ghosts);
        EXPECT_EQ(without.parts[p].faces, with.parts[p].faces);
        EXPECT_GT(without.parts[p].ghosts, 0);
    }
    const UnstructuredMesh periodic = meshWith(0, true);
    EXPECT_THROW(partitionCells(periodic, 3, Partitioner::Graph), ArgumentError);
    EXPECT_THROW(reportPartition(periodic, part, 3), ArgumentError);
}

TEST(PartitionReport, RefusesWrongPartsOnAllRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const UnstructuredMesh mesh = meshOf(comm, boxOf(BoxCells::Triangles, false), GhostNeighbours::Faces);
    std::vector<int> part(static_cast<std::size_t>(mesh.cells.owned), 0);
    if (comm.rank() == 0)
        part.front() = 2;
    EXPECT_THROW(reportPartition(mesh, part, 2), ArgumentError);
    part.assign(part.size(), 0);
    if (comm.rank() == comm.size() - 1)
        part.push_back(0);
    EXPECT_THROW(reportPartition(mesh, part, 2), ArgumentError);
    EXPECT_THROW(partitionCells(mesh, 0, Partitioner::Curve), ArgumentError);
    EXPECT_THROW(partitionCells(mesh, 2, Partitioner::Given), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
