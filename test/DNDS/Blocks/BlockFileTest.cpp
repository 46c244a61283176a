#include "DNDS/Blocks/BlockFile.hpp"

#include "DNDS/Blocks/NdArray.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace DNDS {
namespace {

using Geom::test::TemporaryFile;

CommunicatorView here() { return MPI_COMM_WORLD; }

/// A number for each cell of up to 3 dimensions and each component.
template <class View>
auto numberOf(const View &v, index i, index j, index k, rowsize c) {
    return static_cast<std::remove_const_t<typename View::Element>>(
        static_cast<double>(v.global(i, 0) * 10000 + v.global(j, 1) * 100 + v.global(k, 2)) + 0.25 * c);
}

template <class Field, class Visit>
void forAll(Field &field, Visit &&visit) {
    for (int b = 0; b < field.blocks(); ++b) {
        const auto v = field.view(b);
        for (index i = 0; i < v.extent(0); ++i)
            for (index j = 0; j < v.extent(1); ++j)
                for (index k = 0; k < v.extent(2); ++k)
                    for (rowsize c = 0; c < field.components(); ++c)
                        visit(v, i, j, k, c);
    }
}

template <class T>
void fillField(BlockField<T> &field) {
    forAll(field, [](const auto &v, index i, index j, index k, rowsize c) { v(i, j, k, c) = numberOf(v, i, j, k, c); });
}

template <class T>
void expectField(const BlockField<T> &field) {
    index wrong = 0;
    forAll(field, [&](const auto &v, index i, index j, index k, rowsize c) {
        wrong += v(i, j, k, c) == numberOf(v, i, j, k, c) ? 0 : 1;
    });
    EXPECT_EQ(wrong, 0);
}

std::shared_ptr<const BlockGrid> manyBlocks() {
    return BlockGrid::blocksOf(here(), {"box", Box::ofShape(std::vector<index>{7, 8, 9}), {}}, {3, 3, 4});
}

TEST(BlockFile, TheShortWayReadsWhatItWrote) {
    if (!NetcdfReader::built())
        GTEST_SKIP() << "built without NetCDF";
    const TemporaryFile path(".nc");
    NdArray<float> out("out");
    out.decompose(here(), {7, 8, 9}, 0, {0, 0, -1}, {1, 1, 1});
    fillField(out.field());
    out.writeNetcdf(path.path(), "temp", {"z", "y", "x"}, {{"units", "K"}});
    NdArray<double> in("in");
    in.decompose(here(), {7, 8, 9}, 0, {}, {2, 0, 1});
    in.readNetcdfAuto(path.path(), "temp");
    expectField(in.field());
    NdArray<double> wrong("wrong");
    wrong.decompose(here(), {7, 9, 8});
    EXPECT_THROW(wrong.readNetcdfAuto(path.path(), "temp"), LayoutError);
    EXPECT_THROW(in.readNetcdfAuto(path.path(), "tem"), ArgumentError);
}

TEST(BlockFile, StepsAndComponentsOfManyBlocks) {
    if (!NetcdfReader::built())
        GTEST_SKIP() << "built without NetCDF";
    for (const ComponentOrder order : {ComponentOrder::Inside, ComponentOrder::Outside}) {
        const TemporaryFile path(".nc");
        BlockField<double> out("out", here(), manyBlocks(), {.ghosts = {1, 1, 1}, .components = 3, .order = order});
        fillField(out);
        {
            NetcdfWriter file(here(), path.path());
            file.unlimited("time");
            std::vector<std::string> names{"time"};
            const std::vector<index> shape = fileShape(out);
            for (std::size_t d = 0; d < shape.size(); ++d) {
                names.push_back("d" + std::to_string(d));
                file.dimension(names.back(), shape[d]);
            }
            file.variable("u", ElementKind::Float64, names);
            BlockField<double> zero("zero", here(), out.blockPattern(), 3);
            writeNetcdf(file, "u", zero, {0});
            writeNetcdf(file, "u", out, {1});
            file.close();
        }
        NdArray<double> in("in");
        in.decompose(here(), {.shape = {7, 8, 9}, .components = 3, .order = order});
        in.readNetcdfAuto(path.path(), "u", -1);
        expectField(in.field());
        in.readNetcdfAuto(path.path(), "u", 0);
        forAll(in.field(), [](const auto &v, index i, index j, index k, rowsize c) { EXPECT_EQ(v(i, j, k, c), 0); });
    }
}

TEST(BlockFile, MasksHaveThePatternOfTheField) {
    if (!NetcdfReader::built())
        GTEST_SKIP() << "built without NetCDF";
    const TemporaryFile path(".nc");
    NdArray<double> out("out");
    out.decompose(here(), {7, 8, 9});
    fillField(out.field());
    forAll(out.field(), [](const auto &v, index i, index j, index k, rowsize) {
        if (v.global(j, 1) == 3)
            v(i, j, k) = std::numeric_limits<double>::quiet_NaN();
    });
    out.writeNetcdf(path.path(), "u", {}, {{"_FillValue", -999.0}});
    NdArray<double> in("in");
    in.decompose(here(), {7, 8, 9}, 0, {}, {1, 1, 1});
    BlockField<std::uint8_t> mask("mask", here(), in.field().blockPattern());
    readNetcdf(NetcdfReader(here(), path.path()), "u", in.field(), {.fill = -1}, &mask);
    forAll(in.field(), [&](const auto &v, index i, index j, index k, rowsize c) {
        const bool missing = v.global(j, 1) == 3;
        EXPECT_EQ(v(i, j, k), missing ? -1 : numberOf(v, i, j, k, c));
        EXPECT_EQ(mask.view()(i, j, k), missing ? 1 : 0);
    });
    BlockField<std::uint8_t> other("other", here(), manyBlocks(), {});
    EXPECT_THROW(readNetcdf(NetcdfReader(here(), path.path()), "u", in.field(), {}, &other), LayoutError);
}

TEST(BlockFile, CheckpointsAreReadByAnyRanksAndBlocks) {
    const TemporaryFile path(".h5");
    if (!CheckpointWriter::built())
        GTEST_SKIP() << "built without HDF5";
    BlockField<double> out("out", here(), manyBlocks(), {.ghosts = {1, 1, 1}, .components = 2});
    fillField(out);
    {
        const CellRows<double> rows = cellRows(out);
        CheckpointWriter file(here(), path.path(), {.mesh = out.grid()->cellsSignature()});
        file.add("u", rows.values, rows.ids);
        file.write();
    }
    const auto turned = BlockGrid::make({{"turned", Box({0, 0, 0}, {8, 7, 9}), {}}}, {});
    EXPECT_THROW(CheckpointReader(here(), path.path(), {.mesh = turned->cellsSignature()}), ArgumentError)
        << "as many cells, with other numbers";
    NdArray<double> in("in");
    in.decompose(
        here(),
        {.shape = {7, 8, 9}, .ranks = (here().size() + 1) / 2, .components = 2, .order = ComponentOrder::Outside});
    CellRows<double> rows = cellRows(in.field());
    CheckpointReader(here(), path.path(), {.mesh = in.grid().cellsSignature()}).read("u", rows.values, rows.ids);
    setCells(in.field(), rows);
    expectField(in.field());
    rows.values.resize(rows.values.size() + 1, 2);
    EXPECT_THROW(setCells(in.field(), rows), LayoutError);
}

TEST(BlockFile, FieldsOfFewerDimensionsAreFlatInVtk) {
    const BlockField<double> flat("flat", here(), BlockGrid::cut(here(), std::vector<index>{6, 8}, {}, {}),
                                  {.components = 2});
    const VtkGridField field = vtkField(flat);
    EXPECT_EQ(field.name, "flat");
    EXPECT_EQ(field.components, 2);
    for (const WrittenSlab &slab : field.slabs) {
        EXPECT_EQ(slab.start.size(), 4U);
        EXPECT_EQ(slab.start.front(), 0);
        EXPECT_EQ(slab.count.front(), 1);
        EXPECT_EQ(slab.count.back(), 2);
    }
    const BlockField<double> outside("outside", here(), flat.grid(),
                                     {.components = 2, .order = ComponentOrder::Outside});
    EXPECT_THROW((void)vtkField(outside), ArgumentError);
}

TEST(BlockFile, SeveralIndexSpacesHaveIdsOfTheirOwn) {
    const auto grid = BlockGrid::make({{"a", Box({0, 0}, {2, 3}), {}}, {"b", Box({5, 5}, {7, 9}), {}}},
                                      {{Box({0, 0}, {2, 3}), 0, 0}, {Box({5, 5}, {7, 9}), here().size() - 1, 1}});
    const BlockField<float> field("two", here(), grid, {});
    std::vector<index> expected;
    if (here().rank() == 0)
        for (index id = 0; id < 6; ++id)
            expected.push_back(id);
    if (here().rank() == here().size() - 1)
        for (index id = 6; id < 14; ++id)
            expected.push_back(id);
    EXPECT_EQ(cellIds(field), expected);
    EXPECT_THROW(fileShape(field), ArgumentError);
}

} // namespace
} // namespace DNDS
