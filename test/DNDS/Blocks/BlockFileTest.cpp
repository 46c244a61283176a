#include "DNDS/Blocks/BlockFile.hpp"

#include "DNDS/Blocks/NdArray.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
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

/// A number for each node, face or edge, the same at all places that a period gives it.
real numberOfPoint(const IndexSpace &space, const IndexVector &point) {
    index number = 0;
    for (int d = 0; d < space.cells.dims; ++d) {
        const index n = space.cells.extent(d);
        const index at = point[toSize(d)] - space.cells.lower[toSize(d)];
        number = 100 * number + (space.periodic[toSize(d)] ? (at % n + n) % n : at);
    }
    return static_cast<real>(number);
}

/// Calls `visit(value, number)` for the points of all blocks without ghosts.
template <class Field, class Visit>
void forAllPoints(Field &field, Visit &&visit) {
    for (int b = 0; b < field.blocks(); ++b) {
        const auto v = field.view(b);
        forEachCell(field.block(b).cells, [&](const IndexVector &p) {
            visit(v(v.local(p[0], 0), v.local(p[1], 1), v.local(p[2], 2)), numberOfPoint(field.grid()->spaces()[0], p));
        });
    }
}

TEST(BlockFile, NodesFacesAndEdgesAreInFilesOnce) {
    const IndexSpace space{"box", Box({-1, 2, 0}, {5, 7, 6}), {true, false, false}};
    int kind = 0;
    for (const Centring &centring : {Centring::nodes(), Centring::faces(0), Centring::edges(2)}) {
        SCOPED_TRACE(kind);
        const BlockFieldOptions options{.ghosts = {1, 0, 1}, .centring = centring};
        BlockField<double> out("out", here(), BlockGrid::blocksOf(here(), space, {3, 3, 4}), options);
        const std::vector<std::vector<index>> shapes{{6, 6, 7}, {6, 5, 6}, {6, 6, 6}};
        EXPECT_EQ(fileShape(out), shapes[toSize(kind)]);
        ++kind;
        std::vector<index> ids = here().allGatherV(std::span<const index>(cellIds(out)));
        std::ranges::sort(ids);
        EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
        EXPECT_EQ(static_cast<index>(ids.size()), out.blockPattern()->filePoints().size());
        forAllPoints(out, [](double &value, real number) { value = number; });
        BlockField<double> in("in", here(), BlockGrid::cut(here(), space), options);
        const auto expectAll = [&] {
            in.exchangeGhosts();
            index wrong = 0;
            forAllPoints(std::as_const(in), [&](double value, real number) { wrong += value == number ? 0 : 1; });
            EXPECT_EQ(wrong, 0);
            std::ranges::fill(std::span(in.array().view().data(), toSize(in.array().size())), -1);
        };
        if (NetcdfReader::built()) {
            const TemporaryFile path(".nc");
            NetcdfWriter file(here(), path.path());
            const std::vector<std::string> names{"x", "y", "z"};
            for (std::size_t d = 0; d < 3; ++d) {
                std::vector<real> places; // of nodes or middles of cells
                for (index i = 0; i < fileShape(out)[d]; ++i)
                    places.push_back(static_cast<real>(i) + (centring.nodal[d] ? 0 : 0.5));
                file.coordinate(names[d], places, {{"units", "m"}});
            }
            file.variable("u", ElementKind::Float64, names);
            writeNetcdf(file, "u", out);
            file.close();
            readNetcdf(NetcdfReader(here(), path.path()), "u", in);
            expectAll();
            EXPECT_EQ(NetcdfReader(here(), path.path()).values("y").front(), centring.nodal[1] ? 0 : 0.5);
        }
        if (CheckpointWriter::built()) {
            const TemporaryFile path(".h5");
            const CellRows<double> rows = cellRows(out);
            CheckpointWriter file(here(), path.path(), {.mesh = out.grid()->cellsSignature()});
            file.add("u", rows.values, rows.ids);
            file.write();
            CellRows<double> back = cellRows(in);
            CheckpointReader(here(), path.path(), {.mesh = in.grid()->cellsSignature()})
                .read("u", back.values, back.ids);
            setCells(in, back);
            expectAll();
        }
    }
}

/// A file knows which points it has: another centring is refused, and other periods find the points that both have.
TEST(BlockFile, CheckpointsDoNotMixUpPoints) {
    if (!CheckpointWriter::built())
        GTEST_SKIP() << "built without HDF5";
    const auto fieldOn = [](const Centring &centring, const std::array<bool, 4> &periodic) {
        const IndexSpace space{"plane", Box({0, 0}, {9, 7}), {periodic[0], periodic[1]}};
        return BlockField<double>("u", here(), BlockGrid::blocksOf(here(), space, {4, 3}), {.centring = centring});
    };
    const auto numberOf = [](const IndexVector &p) { return static_cast<double>(100 * p[0] + p[1]); };
    const std::vector<Centring> centrings{Centring::cells(), Centring::nodes(), Centring::faces(0)};
    for (const Centring &centring : centrings) {
        BlockField<double> out = fieldOn(centring, {true, false});
        for (int b = 0; b < out.blocks(); ++b)
            forEachCell(out.block(b).cells, [&](const IndexVector &p) {
                out.view(b)(p[0] - out.block(b).cells.lower[0], p[1] - out.block(b).cells.lower[1]) = numberOf(p);
            });
        const TemporaryFile path(".h5");
        const CellRows<double> rows = cellRows(out);
        CheckpointWriter file(here(), path.path(), {.mesh = out.grid()->cellsSignature()});
        file.add("u", rows.values, rows.ids);
        file.write();
        for (const Centring &other : centrings)
            for (const std::array<bool, 4> &periods : {std::array<bool, 4>{true, false}, {true, true}}) {
                BlockField<double> in = fieldOn(other, periods);
                CellRows<double> back = cellRows(in);
                const CheckpointReader reader(here(), path.path(), {.mesh = in.grid()->cellsSignature()});
                if (other.in(2).nodal != centring.in(2).nodal) {
                    if (periods[1])
                        continue;
                    EXPECT_FALSE(
                        test::messageOnAll<DataError>([&] { reader.read("u", back.values, back.ids); }).empty());
                    continue;
                }
                reader.read("u", back.values, back.ids);
                setCells(in, back);
                in.exchangeGhosts();
                for (int b = 0; b < in.blocks(); ++b)
                    forEachCell(in.block(b).cells, [&](const IndexVector &p) {
                        const auto shared = [&](int d) {
                            return periods[toSize(d)] && p[toSize(d)] == (d == 0 ? 9 : 7);
                        };
                        const IndexVector owner{shared(0) ? 0 : p[0], shared(1) ? 0 : p[1]};
                        EXPECT_EQ(in.view(b)(p[0] - in.block(b).cells.lower[0], p[1] - in.block(b).cells.lower[1]),
                                  numberOf(owner));
                    });
            }
    }
}

TEST(BlockFile, ArraysOfNodesAreCutAsTheirCells) {
    NdArray<double> nodes("nodes");
    nodes.decompose(
        here(), {.shape = {7, 8, 9}, .ghosts = {1, 1, 1}, .periodic = {false, true}, .centring = Centring::nodes()});
    NdArray<double> cells("cells");
    cells.decompose(here(), {.shape = {7, 8, 9}, .periodic = {false, true}});
    EXPECT_EQ(nodes.globalShape(), (std::vector<index>{8, 8, 10}));
    EXPECT_EQ(nodes.localCore(), Centring::nodes().pointsOf(cells.localCore()));
    EXPECT_EQ(nodes.ownerOf({0, 8, 0}), nodes.ownerOf({0, 0, 0})) << "across the period";
    EXPECT_EQ(nodes.ownerOf({7, 7, 9}), cells.ownerOf({6, 7, 8}));
    EXPECT_EQ(nodes.ownerOf({8, 0, 0}), -1);
    if (!NetcdfReader::built())
        GTEST_SKIP() << "built without NetCDF";
    const TemporaryFile path(".nc");
    forAllPoints(nodes.field(), [](double &value, real number) { value = number; });
    nodes.writeNetcdf(path.path(), "u");
    NdArray<double> in("in");
    in.decompose(here(), {.shape = {7, 8, 9}, .periodic = {false, true}, .centring = Centring::nodes()});
    in.readNetcdfAuto(path.path(), "u");
    in.exchangeGhosts();
    index wrong = 0;
    forAllPoints(std::as_const(in.field()), [&](double value, real number) { wrong += value == number ? 0 : 1; });
    EXPECT_EQ(wrong, 0);
    EXPECT_THROW(cells.readNetcdfAuto(path.path(), "u"), LayoutError);
}

/// The numbers of a variable of any shape.
std::vector<real> numbersOf(const NetcdfReader &file, const std::string &name) {
    const std::vector<index> shape = file.variable(name).shape();
    index size = 1;
    for (const index n : shape)
        size *= n;
    std::vector<real> numbers(toSize(size));
    file.read(name, slabOf(numbers.data(), std::vector<index>(shape.size()), shape));
    return numbers;
}

TEST(BlockFile, StaggeredFieldsHaveCoordinatesOfTheirPoints) {
    if (!NetcdfReader::built())
        GTEST_SKIP() << "built without NetCDF";
    const TemporaryFile path(".nc");
    const IndexSpace space{"earth", Box::ofShape(std::vector<index>{3, 4}), {false, true}};
    const auto grid = BlockGrid::blocksOf(here(), space, {2, 2});
    const BlockField<float> p("p", here(), grid, {});
    const BlockField<float> u("u", here(), grid, {.components = 2, .centring = Centring::faces(1)});
    const BlockField<float> v("v", here(), grid, {.centring = Centring::faces(0)});
    const BlockField<float> three("three", here(), grid, {.components = 3}); // beside two in the same file
    const std::vector<GridAxis> axes{{"lat", {90, 20, -20, -90}, {{"units", "degrees_north"}}, {50, 0, -50}},
                                     {"lon", {0, 90, 180, 270, 360}, {{"units", "degrees_east"}}}};
    NetcdfWriter file(here(), path.path());
    file.variable("p", ElementKind::Float32, declareAxes(file, p, axes));
    file.variable("u", ElementKind::Float32, declareAxes(file, u, axes));
    file.variable("v", ElementKind::Float32, declareAxes(file, v, axes));
    file.variable("three", ElementKind::Float32, declareAxes(file, three, axes));
    EXPECT_THROW(declareAxes(file, p, std::span(axes).first(1)), ArgumentError);
    EXPECT_THROW(declareAxes(file, p, std::vector<GridAxis>{axes[0], {"x", {0, 1, 2, 3}}}), ArgumentError);
    EXPECT_THROW(file.axis({"y", {0, 1, 1}}), ArgumentError);
    EXPECT_THROW(file.axis({"y", {0, 1, 2}, {}, {0.5}}), ArgumentError);
    EXPECT_THROW(file.axis({"y", {}}), ArgumentError);
    writeNetcdf(file, "p", p);
    writeNetcdf(file, "u", u);
    writeNetcdf(file, "v", v);
    writeNetcdf(file, "three", three);
    file.close();
    const NetcdfReader in(here(), path.path());
    const auto dimensionsOf = [&](const std::string &name) {
        std::vector<std::string> names;
        for (const NetcdfDimension &dimension : in.variable(name).dimensions)
            names.push_back(dimension.name);
        return names;
    };
    EXPECT_EQ(dimensionsOf("p"), (std::vector<std::string>{"lat", "lon"}));
    EXPECT_EQ(dimensionsOf("u"), (std::vector<std::string>{"lat", "lon_node", "component2"}));
    EXPECT_EQ(dimensionsOf("v"), (std::vector<std::string>{"lat_node", "lon"}));
    EXPECT_EQ(dimensionsOf("three"), (std::vector<std::string>{"lat", "lon", "component3"}));
    EXPECT_EQ(in.values("lat"), (std::vector<real>{50, 0, -50}));
    EXPECT_EQ(in.values("lon"), (std::vector<real>{45, 135, 225, 315}));
    EXPECT_EQ(in.values("lat_node"), axes[0].nodes);
    EXPECT_EQ(in.values("lon_node"), (std::vector<real>{0, 90, 180, 270}));
    EXPECT_EQ(numbersOf(in, "lat_bnds"), (std::vector<real>{90, 20, 20, -20, -20, -90}));
    EXPECT_EQ(numbersOf(in, "lon_bnds"), (std::vector<real>{0, 90, 90, 180, 180, 270, 270, 360}));
    EXPECT_EQ(in.variable("lon").text("bounds"), "lon_bnds");
    EXPECT_EQ(in.variable("lon_node").text("bounds"), "");
    EXPECT_EQ(in.variable("lon_node").text("units"), "degrees_east");
    EXPECT_EQ(in.content().attributes.size(), 1U);
    EXPECT_EQ(in.content().attributes.front(), NetcdfAttribute("Conventions", "CF-1.8"));
}

TEST(BlockFile, AnArrayOfNodesIsWrittenWithItsCoordinates) {
    if (!NetcdfReader::built())
        GTEST_SKIP() << "built without NetCDF";
    const TemporaryFile path(".nc");
    NdArray<double> nodes("nodes");
    nodes.decompose(here(), {.shape = {2, 3}, .centring = Centring::nodes()});
    nodes.writeNetcdfOn(std::vector<GridAxis>{{"y", {0, 1, 3}}, {"x", {4, 3, 2, 0}}}, path.path(), "psi",
                        {{"units", "m2 s-1"}});
    const NetcdfReader in(here(), path.path());
    EXPECT_EQ(in.variable("psi").description(), "float64 psi(y_node: 3, x_node: 4)");
    EXPECT_EQ(in.values("x_node"), (std::vector<real>{4, 3, 2, 0}));
    EXPECT_EQ(in.content().variables.size(), 3U);
}

TEST(BlockFile, APeriodWithoutBlocksAtItsLowerEndIsRefused) {
    const IndexSpace space{"ring", Box({0}, {9}), {true}};
    const auto grid = BlockGrid::make({space}, {{Box({4}, {9}), 0, 0}});
    BlockField<double> field("ring", here(), grid, {.centring = Centring::nodes()});
    EXPECT_EQ(fileShape(field), std::vector<index>{9});
    if (here().rank() == 0) {
        EXPECT_THROW((void)fileSlabs(field), ArgumentError) << "node 9 is node 0, which no block has";
    }
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
