// One rank alone has no memory for its n-th allocation, for many n: the work must end on all ranks, with an error on
// each, and must succeed afterwards in the same process. This program replaces operator new.

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/SparseExchange.hpp"
#include "Geom/BoxMesh.hpp"
#include "Geom/Mesh/BuildMesh.hpp"
#include "Geom/Mesh/MeshMetrics.hpp"
#include "Geom/Mesh/PartitionReport.hpp"
#include "Geom/Mesh/WriteMesh.hpp"
#include "Geom/ReadMesh.hpp"
#include "Geom/TemporaryFile.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <set>

namespace {

thread_local std::int64_t allocations = 0; ///< since it was set to 0
thread_local std::int64_t failsAt = 0;     ///< none fails where it is 0
thread_local bool failed = false;

void *allocate(std::size_t bytes) {
    if (++allocations == failsAt) {
        failed = true;
        throw std::bad_alloc();
    }
    if (void *memory = std::malloc(bytes == 0 ? 1 : bytes))
        return memory;
    throw std::bad_alloc();
}

} // namespace

void *operator new(std::size_t bytes) { return allocate(bytes); }
void *operator new[](std::size_t bytes) { return allocate(bytes); }
// Those who ask in this way do without.
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept { return std::malloc(bytes); }
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept { std::free(memory); }

namespace DNDS::Geom {
namespace {

using DNDS::test::worldRank;
using DNDS::test::worldSize;
using test::TemporaryFile;

/// The first ones, and others over all of `count` allocations: the same on all ranks.
std::set<std::int64_t> chosen(std::int64_t count, int samples) {
    std::set<std::int64_t> numbers;
    for (std::int64_t n = 1; n <= count; n += 1 + n / 2)
        numbers.insert(n);
    for (int k = 1; k <= samples; k++)
        numbers.insert(std::max<std::int64_t>(1, count * k / samples));
    return numbers;
}

/// What work may make of an allocation that fails.
enum class Outcome : unsigned char { Throws, ThrowsOrDoesWithout };

/// Runs `work` again and again, and another of one rank's allocations fails each time.
template <class Work>
void failEverywhere(int samples, Work &&work, Outcome outcome = Outcome::Throws) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    work(); // what is made once for the process is made here
    for (const int victim : {0, comm.size() - 1}) {
        allocations = 0;
        work();
        const std::int64_t count = comm.allReduce(comm.rank() == victim ? allocations : 0, MPI_MAX);
        int failures = 0;
        for (const std::int64_t n : chosen(count, samples)) {
            SCOPED_TRACE(testing::Message() << "allocation " << n << " of " << count << " of rank " << victim);
            failed = false;
            allocations = 0;
            failsAt = comm.rank() == victim ? n : 0;
            int threw = 0;
            try {
                work();
            } catch (const std::exception &) {
                threw = 1;
            }
            failsAt = 0;
            ASSERT_EQ(comm.allReduce(threw, MPI_SUM), threw * comm.size()) << "some ranks threw and others did not";
            const int ranOut = comm.allReduce(failed ? 1 : 0, MPI_MAX);
            if (outcome == Outcome::Throws) {
                EXPECT_EQ(ranOut, threw);
            }
            failures += threw;
        }
        EXPECT_GT(failures, std::min<std::int64_t>(count, samples) / 3);
        work();
    }
}

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

TEST(OutOfMemory, EndsReportsOfPartitionsOnAllRanks) {
    const UnstructuredMesh mesh = buildSmallBox();
    const auto work = [&] {
        failTogether(MPI_COMM_WORLD, [&] {
            const std::vector<int> part = partitionCells(mesh, 3, Partitioner::Graph);
            EXPECT_EQ(reportPartition(mesh, part, 3, GhostNeighbours::Nodes).parts.size(), 3U);
        });
    };
    failEverywhere(6, work, Outcome::ThrowsOrDoesWithout); // memory that ranks share may not be given back
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
            writer.writeStep(0.0, {}, {{"one", 1, field}});
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
