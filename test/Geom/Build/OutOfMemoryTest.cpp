// One rank alone has no memory for its n-th allocation, for many n: the work must end on all ranks, with an error on
// each, and must succeed afterwards in the same process. This program replaces operator new
// (support/FailingAllocations.hpp).

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Repartition/Repartition.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "support/FailingAllocations.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace DNDS::Geom {
namespace {

using DNDS::test::failEverywhere;
using DNDS::test::Outcome;
using DNDS::test::worldRank;
using DNDS::test::worldSize;
using test::TemporaryFile;

BoxMeshOptions smallBox() {
    BoxMeshOptions box{.fill = BoxCells::MixedVolume, .cells = {4, 3, 3}, .shuffled = true};
    box.periodic[1] = true;
    return box;
}

UnstructuredMesh buildSmallBox(const MeshOptions &options = {}) {
    return buildMesh(MPI_COMM_WORLD, makeBoxMesh(smallBox(), MPI_COMM_WORLD), options);
}

TEST(OutOfMemory, EndsBuildMeshOnAllRanks) {
    for (const auto &[partitioner, by] : {std::pair(Partitioner::Graph, GhostNeighbours::Nodes),
                                          std::pair(Partitioner::Curve, GhostNeighbours::Faces)}) {
        MeshOptions options;
        options.partitioner = partitioner;
        options.ghostsBy = by;
        failEverywhere(25, [&] {
            failTogether(MPI_COMM_WORLD, [&] { EXPECT_LT(computeMetrics(buildSmallBox(options)).closure, 1e-9); });
        });
    }
}

/// Whatever fails, mesh and field are as they were.
TEST(OutOfMemory, EndsRepartitioningOnAllRanks) {
    UnstructuredMesh mesh = buildSmallBox();
    auto u = mesh.field<2>("u");
    auto p = mesh.nodes.field<1>("p");
    for (index c = 0; c < mesh.cells.owned; c++)
        (*u.father)(c, 1) = static_cast<real>(mesh.cells.fileNumbers[toSize(c)]);
    u.trans.pullOnce();
    const std::uint64_t before = u.hash();
    const index owned = mesh.cells.owned;
    std::vector<int> targets;
    for (const index cell : mesh.cells.ownFileNumbers())
        targets.push_back(static_cast<int>(cell / 3 % worldSize()));
    failEverywhere(
        25,
        [&] {
            failTogether(MPI_COMM_WORLD, [&] {
                Repartition move(mesh, targets);
                move.onCells(u).onNodes(p);
                EXPECT_EQ(u.hash(), before);
                EXPECT_EQ(mesh.cells.owned, owned);
            });
        },
        Outcome::ThrowsOrDoesWithout); // exchanges keep what was destroyed in flight
    EXPECT_EQ(u.hash(), before);
    Repartition move(mesh, targets);
    move.onCells(u).onNodes(p);
    move.commit();
    for (index c = 0; c < mesh.cells.owned; c++)
        EXPECT_EQ(std::as_const(u)(c, 1), static_cast<real>(mesh.cells.fileNumbers[toSize(c)]));
}

TEST(OutOfMemory, EndsReportsOfPartitionsOnAllRanks) {
    const UnstructuredMesh mesh = buildSmallBox();
    const auto work = [&] {
        failTogether(MPI_COMM_WORLD, [&] {
            const std::vector<int> part = partitionCells(mesh, 3, Partitioner::Graph);
            EXPECT_EQ(reportPartition(mesh, part, 3, GhostNeighbours::Nodes).parts.size(), 3U);
        });
    };
    failEverywhere(6, work, Outcome::ThrowsOrDoesWithout); // memory shared by ranks may stay allocated
}

TEST(OutOfMemory, EndsReadingOfTextOnAllRanks) {
    const TemporaryFile file(".su2", "NDIME= 2\nNELEM= 4\n5 0 1 4 0\n5 1 2 4 1\n5 2 3 4 2\n5 3 0 4 3\nNPOIN= 5\n0 0 0\n"
                                     "1 0 1\n1 1 2\n0 1 3\n0.5 0.5 4\nNMARK= 1\nMARKER_TAG= wall\nMARKER_ELEMS= 2\n"
                                     "3 0 1\n3 1 2\n");
    failEverywhere(25, [&] { EXPECT_EQ(readMesh(MPI_COMM_WORLD, file.path()).globalNodes, 5); });
}

TEST(OutOfMemory, EndsReadingAndWritingOfCgnsOnAllRanks) {
    if (!canWriteCgns())
        GTEST_SKIP() << "built without the CGNS library";
    for (const BoxCells fill : {BoxCells::MixedVolume, BoxCells::Polyhedra}) {
        const TemporaryFile file(".cgns");
        BoxMeshOptions box = smallBox();
        box.fill = fill;
        const SourceMesh mesh = makeBoxMesh(box, MPI_COMM_WORLD);
        failEverywhere(6, [&] { writeCgns(MPI_COMM_WORLD, file.path(), mesh); });
        failEverywhere(25, [&] { EXPECT_GT(readMesh(MPI_COMM_WORLD, file.path()).globalNodes, 0); });
    }
}

class OutOfMemoryIn : public ::testing::TestWithParam<const char *> {};

TEST_P(OutOfMemoryIn, EndsReadingAndBuildingOnAllRanks) {
    const std::string path = std::string(DNDS_TEST_MESHES "/") + GetParam();
    if (!canWriteCgns() || !std::filesystem::exists(path))
        GTEST_SKIP() << path << " is not there, or cannot be read";
    failEverywhere(
        8, [&] { failTogether(MPI_COMM_WORLD, [&] { buildMesh(MPI_COMM_WORLD, readMesh(MPI_COMM_WORLD, path)); }); });
}

// ADF and MIXED without offsets, several zones, polyhedra, periodic sides.
INSTANTIATE_TEST_SUITE_P(PublicMeshes, OutOfMemoryIn,
                         ::testing::Values("bend_mixed.cgns", "bump3_3zones.cgns", "atb45_ngon_v42.cgns",
                                           "cube_wedge_periodic_v42.cgns"));

TEST(OutOfMemory, EndsWritingOfVtkOnAllRanks) {
    if (!VtkHdfWriter::built())
        GTEST_SKIP() << "built without parallel HDF5";
    const UnstructuredMesh mesh = buildSmallBox();
    const TemporaryFile file(".vtkhdf");
    failEverywhere(25, [&] {
        failTogether(MPI_COMM_WORLD, [&] {
            MeshWriter writer(mesh, file.path(), {.ranks = true});
            const std::vector<real> field(static_cast<std::size_t>(mesh.cells.owned), 1.0);
            writer.writeStep(0.0, {.cells = {{"one", 1, field}}});
            writer.close();
        });
    });
}

TEST(OutOfMemory, EndsTheFirstUseOfACommunicatorOnAllRanks) {
    const auto work = [] {
        const Communicator own = Communicator::duplicate(CommunicatorView(MPI_COMM_WORLD));
        EXPECT_TRUE(CommunicatorContext::of(own.view())->alive());
    };
    failEverywhere(25, work, Outcome::ThrowsOrDoesWithout); // memory that ranks share is no must
}

TEST(OutOfMemory, EndsBothDiscoveriesOfPeersOnAllRanks) {
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    for (const PeerDiscovery discovery : {PeerDiscovery::AllToAll, PeerDiscovery::Consensus})
        failEverywhere(25, [&] {
            failTogether(MPI_COMM_WORLD, [&] {
                for (int round = 0; round < 3; round++) {
                    RankLists outgoing;
                    for (int rank = 0; rank < worldSize(); rank++)
                        outgoing.append(rank, std::vector<index>(20000, worldRank())); // too long to be sent at once
                    EXPECT_EQ(sparseExchange(*context, outgoing, discovery).size(),
                              static_cast<std::size_t>(worldSize()));
                }
            });
        });
}

} // namespace
} // namespace DNDS::Geom
