// Checkpoints whose checksums are right, and whose numbers are not.
#include "CheckpointCase.hpp"
#include "DNDS/Array/ArrayMatrices.hpp"
#include "fuzz/CheckpointBytes.hpp"

#include <functional>

namespace DNDS {
namespace {

using namespace test;
using Geom::fuzz::CheckpointParts;

/// A file in which `change` has its way with array `name`, which has 20 rows.
std::string crafted(const TemporaryFolder &folder, const std::string &name,
                    const std::function<void(CheckpointArray &, std::array<std::string, 3> &)> &change) {
    std::string path = folder.file("crafted.h5");
    if (world().rank() == 0) {
        CheckpointParts parts = Geom::fuzz::partsOf(Geom::fuzz::soundCheckpoint());
        for (std::size_t a = 0; a < parts.data.size(); a++)
            if (parts.content.arrays[a].name == name)
                change(parts.content.arrays[a], parts.data[a]);
        overwrite(path, Geom::fuzz::bytesOf(parts));
    }
    world().barrier();
    return path;
}

std::string opening(const std::string &path) {
    return failureOf<DataError>([&] { CheckpointReader(world(), path, {.anyMesh = true}); });
}

TEST(CraftedCheckpoint, WithoutAChangeIsRead) {
    const TemporaryFolder folder;
    const std::string path = crafted(folder, "", {});
    const CheckpointReader reader(world(), path, {.anyMesh = true});
    reader.verify();
    Array<real, 3> fixed;
    reader.read("fixed", fixed, std::vector<index>{7 + 3 * 5});
    EXPECT_EQ(fixed(0, 1), 5.0);
}

/// Arrays have widths of 31 bits: larger widths were truncated, and rows were written past the array's end.
TEST(CraftedCheckpoint, OfAWidthBeyond31BitsIsRefused) {
    const TemporaryFolder folder;
    const auto empty = [](index width) {
        return [width](CheckpointArray &array, auto &) {
            array.rows = array.elements = 0;
            array.width = width;
            array.listed = false;
        };
    };
    EXPECT_CONTAINS(opening(crafted(folder, "fixed", empty((index{1} << 32) + 5))), "impossible sizes");
    world().barrier();
    EXPECT_EQ(opening(crafted(folder, "fixed", empty(5))), "");
}

TEST(CraftedCheckpoint, OfElementsThatAreNoWholeNumbersIsRefused) {
    const TemporaryFolder folder;
    const std::string path = crafted(folder, "fixed", [](CheckpointArray &array, auto &) { array.elementBytes = 12; });
    EXPECT_CONTAINS(opening(path), "impossible sizes");
}

/// Nothing in the file has the size of such rows.
TEST(CraftedCheckpoint, OfAnyNumberOfRowsWithoutBytesTakesNoMemory) {
    const TemporaryFolder folder;
    constexpr index manyRows = index{1} << 39;
    const std::string path =
        crafted(folder, "none", [](CheckpointArray &array, auto &) { array.rows = array.blockRows = manyRows; });
    const CheckpointReader reader(world(), path, {.anyMesh = true});
    reader.verify();
    Array<real, DynamicSize> none;
    reader.read("none", none, std::vector<index>{0, manyRows - 1});
    EXPECT_EQ(none.size(), 2);
}

TEST(CraftedCheckpoint, OfNegativeShapesIsRefused) {
    const TemporaryFolder folder;
    const std::string path = crafted(folder, "matrices.shapes", [](CheckpointArray &, auto &data) {
        const std::array<rowsize, 2> shape{-2, -2}; // row 2 has 4 elements
        data[0].replace(2 * sizeof shape, sizeof shape, reinterpret_cast<const char *>(shape.data()), sizeof shape);
    });
    const CheckpointReader reader(world(), path, {.anyMesh = true});
    ArrayEigenMatrix<NonUniformSize, NonUniformSize> matrices("matrices", world());
    EXPECT_CONTAINS(failureOf<DataError>([&] { reader.read("matrices", matrices, std::vector<index>{2}); }),
                    "row 2 of matrices has 4 elements");
    reader.read("matrices", matrices, std::vector<index>{1});
    EXPECT_EQ(matrices.matColSize(0), 1);
}

TEST(CraftedCheckpoint, OfIdsThatDoNotAscendIsRefused) {
    const TemporaryFolder folder;
    const std::string path = crafted(folder, "fixed", [](CheckpointArray &, auto &data) {
        data[2].replace(0, sizeof(index), data[2].substr(sizeof(index), sizeof(index)));
    });
    EXPECT_CONTAINS(failureOf<DataError>([&] { CheckpointReader(world(), path).verify(); }), "do not ascend");
}

} // namespace
} // namespace DNDS
