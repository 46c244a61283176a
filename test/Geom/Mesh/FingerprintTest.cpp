#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

namespace DNDS::Geom {
namespace {

BoxMeshOptions boxOf(BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {5, 4, 3};
    options.jitter = 0.1;
    options.shuffled = true;
    return options;
}

std::uint64_t fingerprintOf(CommunicatorView comm, const BoxMeshOptions &box, const MeshOptions &options = {}) {
    return fingerprint(buildMesh(comm, makeBoxMesh(box, comm), options));
}

class Fingerprints : public ::testing::TestWithParam<BoxCells> {};

TEST_P(Fingerprints, AreThoseOfTheMeshOnAnyPartition) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    BoxMeshOptions box = boxOf(GetParam());
    box.periodic = {false, GetParam() != BoxCells::Polyhedra, false};
    const std::uint64_t alone = fingerprintOf(CommunicatorView(MPI_COMM_SELF), box);
    EXPECT_EQ(fingerprintOf(comm, box), alone);
    EXPECT_EQ(fingerprintOf(comm, box, {.partitioner = Partitioner::Curve}), alone);
    EXPECT_EQ(fingerprintOf(comm, box, {.ghostsBy = GhostNeighbours::Faces, .ghostLayers = 2}), alone);
}

TEST_P(Fingerprints, DifferForOtherNodesOrOrders) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const BoxMeshOptions box = boxOf(GetParam());
    BoxMeshOptions moved = box, ordered = box, larger = box;
    moved.jitter = 0.1000001;
    ordered.shuffled = false;
    larger.cells[0]++;
    const std::uint64_t found = fingerprintOf(comm, box);
    EXPECT_NE(found, fingerprintOf(comm, moved));
    EXPECT_NE(found, fingerprintOf(comm, ordered));
    EXPECT_NE(found, fingerprintOf(comm, larger));
}

INSTANTIATE_TEST_SUITE_P(Boxes, Fingerprints,
                         ::testing::Values(BoxCells::MixedSurface, BoxCells::MixedVolume, BoxCells::Polyhedra));

} // namespace
} // namespace DNDS::Geom
