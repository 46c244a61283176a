// Sums of cells' contributions at nodes: the same bits however many ranks there are, and whatever they own.

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Mesh/PeriodicNodes.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace DNDS::Geom {
namespace {

using Source = std::function<SourceMesh(CommunicatorView)>;
using NodeSums = std::function<std::vector<real>(const UnstructuredMesh &)>; ///< [own nodes]

/// Contribution of a cell: of many sizes and both signs, so that sums depend on order.
real contribution(const UnstructuredMesh &mesh, LocalIndex cell) {
    const auto number = static_cast<real>(mesh.cells.fileNumbers[static_cast<std::size_t>(cell)]);
    return std::sin(1.7 * number) * std::exp(10 * std::sin(0.3 * number));
}

std::vector<real> gathered(const UnstructuredMesh &mesh, const LocalAdjacency &nodeCells) {
    std::vector<real> sums(toSize(mesh.nodes.owned));
    for (index n = 0; n < mesh.nodes.owned; n++)
        for (const LocalIndex c : nodeCells[n])
            sums[toSize(n)] += contribution(mesh, c);
    return sums;
}

/// From own cells into own nodes and ghosts, which are pushed.
template <class T>
std::vector<T> pushed(const UnstructuredMesh &mesh) {
    ArrayPair<ParArray<T, 1>> sums;
    sums.initPair("sums", mesh.comm);
    sums.father->resize(mesh.nodes.owned);
    attachField(sums, mesh.nodes);
    for (LocalIndex c = 0; c < mesh.cells.owned; c++)
        for (const LocalIndex n : mesh.cellNodes[c])
            sums(n, 0) += contribution(mesh, c);
    sums.trans.pushOnce(PushOp::Sum);
    return {sums.father->data(), sums.father->data() + mesh.nodes.owned};
}

std::vector<real> pushedExactly(const UnstructuredMesh &mesh) {
    std::vector<real> sums;
    for (const ExactAccumulator &sum : pushed<ExactAccumulator>(mesh))
        sums.push_back(sum.value());
    return sums;
}

/// Fails unless sums over all partitions are, to the bit, those of one rank alone.
void expectOneAnswer(const Source &source, const NodeSums &sumsOf) {
    const UnstructuredMesh whole = buildMesh(MPI_COMM_SELF, source(MPI_COMM_SELF));
    const std::vector<real> alone = sumsOf(whole);
    std::vector<real> expected(alone.size());
    for (std::size_t n = 0; n < alone.size(); n++)
        expected.at(toSize(whole.nodes.fileNumbers[n])) = alone[n];
    for (const Partitioner partitioner : {Partitioner::Graph, Partitioner::Curve, Partitioner::Given}) {
        SourceMesh blocks = source(MPI_COMM_WORLD);
        MeshOptions options;
        options.partitioner = partitioner;
        options.cellOrder = partitioner == Partitioner::Graph ? CellOrder::ReverseCuthillMcKee : CellOrder::Curve;
        if (partitioner == Partitioner::Given) // scattered
            for (index c = 0; c < blocks.cells.size(); c++)
                options.givenPart.push_back(static_cast<int>((blocks.cells.first + c) / 3 % DNDS::test::worldSize()));
        const UnstructuredMesh mesh = buildMesh(MPI_COMM_WORLD, std::move(blocks), options);
        const std::vector<real> sums = sumsOf(mesh);
        index wrong = 0;
        for (std::size_t n = 0; n < sums.size(); n++)
            wrong += std::bit_cast<std::uint64_t>(sums[n]) ==
                             std::bit_cast<std::uint64_t>(expected.at(toSize(mesh.nodes.fileNumbers[n])))
                         ? 0
                         : 1;
        EXPECT_EQ(wrong, 0) << "of " << sums.size() << " nodes, partitioner " << static_cast<int>(partitioner);
    }
}

Source boxOf(BoxCells fill, bool periodic = false) {
    return [=](CommunicatorView comm) {
        BoxMeshOptions options;
        options.fill = fill;
        options.cells = {6, 5, 4};
        options.shuffled = true;
        options.periodic = {periodic, periodic, false};
        return makeBoxMesh(options, comm);
    };
}

TEST(NodeSums, GatheredInTheOrderOfTheFileDoNotDependOnThePartition) {
    for (const BoxCells fill : {BoxCells::Tetrahedra, BoxCells::MixedVolume, BoxCells::Triangles})
        expectOneAnswer(boxOf(fill), [](const auto &mesh) { return gathered(mesh, mesh.nodeCells); });
}

TEST(NodeSums, GatheredAcrossPeriodicBoundariesDoNotDependOnThePartition) {
    for (const BoxCells fill : {BoxCells::Tetrahedra, BoxCells::Triangles})
        expectOneAnswer(boxOf(fill, true),
                        [](const auto &mesh) { return gathered(mesh, nodeCellsAcrossPeriodic(mesh)); });
}

TEST(NodeSums, PushedAsAccumulatorsDoNotDependOnThePartition) {
    for (const BoxCells fill : {BoxCells::Tetrahedra, BoxCells::MixedVolume, BoxCells::Triangles})
        expectOneAnswer(boxOf(fill), pushedExactly);
}

TEST(NodeSums, OfRealNumbersPushedAreNearTheExactOnes) {
    const UnstructuredMesh mesh = buildMesh(MPI_COMM_WORLD, boxOf(BoxCells::Tetrahedra)(MPI_COMM_WORLD));
    const std::vector<real> rounded = pushed<real>(mesh);
    const std::vector<real> exact = pushedExactly(mesh);
    for (std::size_t n = 0; n < exact.size(); n++)
        EXPECT_NEAR(rounded[n], exact[n], 1e-9);
}

TEST(NodeSums, NodeCellsAreInTheOrderOfTheFile) {
    const UnstructuredMesh mesh = buildMesh(MPI_COMM_WORLD, boxOf(BoxCells::Tetrahedra)(MPI_COMM_WORLD));
    for (index n = 0; n < mesh.nodes.size(); n++)
        for (rowsize k = 1; k < mesh.nodeCells.rowSize(n); k++)
            EXPECT_LT(mesh.cells.fileNumbers[static_cast<std::size_t>(mesh.nodeCells[n][k - 1])],
                      mesh.cells.fileNumbers[static_cast<std::size_t>(mesh.nodeCells[n][k])]);
}

class NodeSumsOfFiles : public testing::TestWithParam<const char *> {};

TEST_P(NodeSumsOfFiles, DoNotDependOnThePartition) {
    const std::string path = std::string(DNDS_TEST_MESHES "/") + GetParam();
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << path << " is not here";
    const Source source = [&](CommunicatorView comm) { return readMesh(comm, path); };
    expectOneAnswer(source, [](const auto &mesh) {
        std::vector<real> sums = gathered(mesh, mesh.nodeCells);
        const std::vector<real> exact = pushedExactly(mesh);
        for (std::size_t n = 0; n < sums.size(); n++) {
            EXPECT_NEAR(sums[n], exact[n], 1e-8);
            sums[n] = std::bit_cast<real>(3 * std::bit_cast<std::uint64_t>(sums[n]) +
                                          std::bit_cast<std::uint64_t>(exact[n])); // tells of any bit of either
        }
        return sums;
    });
}

INSTANTIATE_TEST_SUITE_P(Public, NodeSumsOfFiles, testing::Values("naca0012_inv.su2", "bend_mixed.cgns"),
                         [](const auto &file) {
                             std::string name = file.param;
                             return name.substr(0, name.find('.'));
                         });

} // namespace
} // namespace DNDS::Geom
