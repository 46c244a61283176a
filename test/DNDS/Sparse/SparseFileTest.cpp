#include "DNDS/Sparse/SparseFile.hpp"

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"

#include <cstdio>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

/// All numbers of a dataset, on every rank.
std::vector<double> contentOf(const std::string &path, const std::string &dataset) {
    const std::vector<index> shape = hdfDatasetShape(world(), path, dataset);
    index count = 1;
    for (const index n : shape)
        count *= n;
    std::vector<double> values(toSize(count));
    const std::array slabs{slabOf(values.data(), std::vector<index>(shape.size()), shape)};
    readHdfDataset(world(), path, dataset, slabs);
    return values;
}

TEST(SparseFile, ValuesDefaultsAndFlagsInOneCall) {
    const auto made = [] { // another one for each field: equal grids will do
        return BlockGrid::blocksOf(world(), {"plane", Box({0, 0}, {6, 8}), {true, true}}, {3, 4});
    };
    const auto grid = made();
    const auto pattern = SparsePattern::make(world(), grid, {1, 1});
    SparseField<real> dust("dust", pattern, {}, 0.5);
    SparseField<std::int32_t> count("count", SparsePattern::make(world(), made(), {1, 1}), {.components = 2}, 7);
    if (const int b = pattern->localOf(grid->blockOf({4, 1})); b >= 0) { // rows 3 to 5, columns 0 to 3
        dust.allocate(b);
        dust.view(b)(1, 1) = 42;
    }
    if (const int b = pattern->localOf(grid->blockOf({0, 5})); b >= 0) { // rows 0 to 2, columns 4 to 7
        count.allocate(b);
        count.view(b)(0, 1, 1) = 9;
    }
    const std::string path = "sparse_file_test.np" + std::to_string(world().size()) + ".vtkhdf";
    try {
        writeSparse(path, {.spacing = {0.5, 0.25, 1}}, dust, count);
    } catch (const NotBuiltError &) {
        GTEST_SKIP() << "built without HDF5";
    }
    const std::string data = "VTKHDF/CellData/";
    const std::vector<double> values = contentOf(path, data + "dust");
    const std::vector<double> there = contentOf(path, data + "dust.allocated");
    const std::vector<double> counts = contentOf(path, data + "count");
    const std::vector<double> counted = contentOf(path, data + "count.allocated");
    ASSERT_EQ(values.size(), 48U);
    ASSERT_EQ(counts.size(), 96U);
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < 8; ++j) {
            const bool dusty = i >= 3 && j < 4;
            const bool many = i < 3 && j >= 4;
            EXPECT_EQ(there[8 * i + j], dusty ? 1 : 0);
            EXPECT_EQ(values[8 * i + j], i == 4 && j == 1 ? 42 : 0.5);
            EXPECT_EQ(counted[8 * i + j], many ? 1 : 0);
            EXPECT_EQ(counts[2 * (8 * i + j)], 7);
            EXPECT_EQ(counts[2 * (8 * i + j) + 1], i == 0 && j == 5 ? 9 : 7);
        }
    world().barrier();
    if (world().rank() == 0)
        std::remove(path.c_str());
}

TEST(SparseFile, GridsThatVtkDoesNotHave) {
    const auto refused = [](const std::vector<IndexSpace> &spaces, const std::vector<index> &shape) {
        const auto grid = BlockGrid::blocksOf(world(), spaces, shape);
        const SparseField<real> u("u", SparsePattern::make(world(), grid, {}));
        return messageOnAll<ArgumentError>([&] { writeSparse("never.vtkhdf", {}, u); });
    };
    EXPECT_FALSE(refused({{"a", Box({0}, {4}), {}}, {"b", Box({0}, {4}), {}}}, {2}).empty());
    EXPECT_FALSE(refused({{"a", Box({0, 0, 0, 0}, {2, 2, 2, 2}), {}}}, {1, 1, 1, 2}).empty());
    const auto fieldOn = [](index length) {
        const IndexSpace space{"a", Box({0}, {length}), {}};
        return SparseField<real>("u", SparsePattern::make(world(), BlockGrid::blocksOf(world(), space, {2}), {}));
    };
    expectContains(messageOnAll<ArgumentError>([&] { writeSparse("never.vtkhdf", {}, fieldOn(4), fieldOn(6)); }),
                   "on different grids");
}

} // namespace
} // namespace DNDS::test
