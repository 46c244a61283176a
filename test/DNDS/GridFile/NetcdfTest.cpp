// NetcdfReader and NetcdfWriter against each other, and against files made by hand.
#include "DNDS/GridFile/Netcdf.hpp"

#include "DNDS/GridFile/Parts.hpp"
#include "support/TemporaryFile.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include <sys/mount.h>

namespace DNDS {
namespace {

using Geom::test::TemporaryFile;
using test::PaddedBox;
using test::partsOf;

CommunicatorView world() { return MPI_COMM_WORLD; }

template <class T>
std::vector<Slab> slabsOf(std::vector<PaddedBox<T>> &boxes, bool masked = false) {
    std::vector<Slab> slabs;
    for (PaddedBox<T> &box : boxes) {
        slabs.push_back(slabOf(box.data(), box.start, box.count, box.strides));
        if (masked)
            slabs.back().mask = box.maskData();
    }
    return slabs;
}

template <class T>
std::vector<WrittenSlab> writtenOf(std::vector<PaddedBox<T>> &boxes) {
    std::vector<WrittenSlab> slabs;
    for (PaddedBox<T> &box : boxes)
        slabs.push_back(slabOf(static_cast<const T *>(box.data()), box.start, box.count, box.strides));
    return slabs;
}

template <class T>
T valueAt(index global) {
    if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(global) / 8 - 3;
    else
        return static_cast<T>(global * 7 + 1); // wraps around, too
}

template <class T>
void fill(std::vector<PaddedBox<T>> &boxes, const std::vector<index> &shape) {
    for (PaddedBox<T> &box : boxes)
        box.forEach(shape, [&](index global, std::size_t place) { box.memory[place] = valueAt<T>(global); });
}

/// Writes a file of one variable of all ranks, cut along `cut`.
template <class T>
void writeFile(const std::string &path, NetcdfFormat format, const std::vector<index> &shape, std::size_t cut,
               int deflate = 0) {
    NetcdfWriter file(world(), path, {.format = format, .deflate = deflate});
    std::vector<std::string> names;
    for (std::size_t d = 0; d < shape.size(); d++) {
        names.push_back("d" + std::to_string(d));
        file.dimension(names.back(), shape[d]);
    }
    file.variable("v", elementKindOf<T>(), names, {{"units", "m/s"}});
    auto boxes = partsOf<T>(shape, cut, T{99});
    fill(boxes, shape);
    file.write("v", writtenOf(boxes), true);
    file.close();
}

template <class T>
void expectFile(const std::string &path, const std::vector<index> &shape, std::size_t cut, bool raw) {
    NetcdfReader file(world(), path);
    EXPECT_EQ(file.variable("v").kind, elementKindOf<T>());
    EXPECT_EQ(file.variable("v").text("units"), "m/s");
    auto boxes = partsOf<T>(shape, cut, T{99});
    file.read("v", slabsOf(boxes), {.raw = raw, .fill = 0});
    index elements = 0;
    for (const PaddedBox<T> &box : boxes) {
        box.forEach(shape, [&](index global, std::size_t place) {
            elements++;
            if (raw || std::is_floating_point_v<T>) {
                ASSERT_EQ(box.memory[place], valueAt<T>(global)) << global;
            }
        });
        EXPECT_EQ(static_cast<index>(std::count(box.memory.begin(), box.memory.end(), T{99})) >=
                      static_cast<index>(box.memory.size()) - elements,
                  true)
            << "memory around the box was written";
    }
}

class Formats : public ::testing::TestWithParam<NetcdfFormat> {};

TEST_P(Formats, EveryTypeComesBackWhateverTheCut) {
    if (!NetcdfReader::built())
        GTEST_SKIP() << "built without NetCDF";
    const std::vector<index> shape{3, 4, 5};
    const auto both = [&]<class T>(T) {
        const TemporaryFile file(".nc");
        writeFile<T>(file.path(), GetParam(), shape, 1);
        for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{2}})
            expectFile<T>(file.path(), shape, cut, true);
        expectFile<T>(file.path(), shape, 2, false);
    };
    both(std::int8_t{});
    both(std::int16_t{});
    both(std::int32_t{});
    both(float{});
    both(double{});
    if (GetParam() == NetcdfFormat::Cdf2) {
        const TemporaryFile file(".nc");
        EXPECT_THROW(writeFile<std::uint16_t>(file.path(), GetParam(), shape, 1), LayoutError);
        return;
    }
    both(std::uint8_t{});
    both(std::uint16_t{});
    both(std::uint32_t{});
    both(std::int64_t{});
    both(std::uint64_t{});
}

std::string formatName(const ::testing::TestParamInfo<NetcdfFormat> &info) {
    constexpr std::array names{"Automatic", "Cdf2", "Cdf5", "Netcdf4"};
    return names[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Netcdf, Formats,
                         ::testing::Values(NetcdfFormat::Automatic, NetcdfFormat::Cdf2, NetcdfFormat::Cdf5,
                                           NetcdfFormat::Netcdf4),
                         formatName);

TEST(NetcdfAbsent, SaysSoInsteadOfReading) {
    if (NetcdfReader::built())
        GTEST_SKIP() << "built with NetCDF";
    EXPECT_THROW(NetcdfReader(world(), "a.nc"), NotBuiltError);
    EXPECT_THROW(NetcdfWriter(world(), "a.nc"), NotBuiltError);
}

class Netcdf : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!NetcdfReader::built())
            GTEST_SKIP() << "built without NetCDF";
    }
};

TEST_F(Netcdf, CompressedFilesAreNetcdf4) {
    const std::vector<index> shape{2, 9};
    const TemporaryFile file(".nc");
    writeFile<double>(file.path(), NetcdfFormat::Automatic, shape, 1, 4);
    EXPECT_EQ(NetcdfReader(world(), file.path()).content().format, "NetCDF-4");
    expectFile<double>(file.path(), shape, 0, true);
    const TemporaryFile classic(".nc");
    EXPECT_THROW(writeFile<double>(classic.path(), NetcdfFormat::Cdf5, shape, 1, 4), ArgumentError);
}

/// 3 steps of 5 cells: rank 0 alone has cells where there are more ranks.
void writeSteps(const std::string &path, NetcdfFormat format, index begin, index end, bool append) {
    NetcdfWriter file(world(), path, {.format = format, .append = append});
    if (!append) {
        file.unlimited("time");
        file.coordinate("x", {10, 8, 6, 4, 2}, {{"units", "degrees_north"}});
        file.variable("time", ElementKind::Float64, {"time"}, {{"units", "hours since 2000-01-01"}});
        file.variable("u", ElementKind::Float32, {"time", "x"});
    }
    for (index step = begin; step < end; step++) {
        const double now = static_cast<double>(step) * 0.5;
        std::vector<WrittenSlab> time;
        if (world().rank() == 0)
            time.push_back(slabOf(&now, {step}, {1}));
        file.write("time", time);
        const index own = world().rank() == world().size() - 1 ? 5 : 0;
        std::vector<float> values(5);
        for (index i = 0; i < 5; i++)
            values[static_cast<std::size_t>(i)] = static_cast<float>(step * 10 + i);
        file.write("u", slabOf(static_cast<const float *>(values.data()), {step, 0}, {1, own}));
        EXPECT_EQ(file.length("time"), step + 1);
    }
    file.close();
}

TEST_F(Netcdf, StepsAreAppendedAndPickedByIndexAndByValue) {
    for (const NetcdfFormat format : {NetcdfFormat::Cdf2, NetcdfFormat::Cdf5, NetcdfFormat::Netcdf4}) {
        const TemporaryFile path(".nc");
        writeSteps(path.path(), format, 0, 2, false);
        writeSteps(path.path(), format, 2, 3, true);
        const NetcdfReader file(world(), path.path());
        EXPECT_EQ(file.values("time"), (std::vector<real>{0, 0.5, 1}));
        EXPECT_EQ(file.values("x"), (std::vector<real>{10, 8, 6, 4, 2}));
        EXPECT_EQ(file.shape("u"), (std::vector<index>{3, 5}));
        EXPECT_EQ(file.content().dimensions[0].unlimited, true);
        const auto stepOf = [&](const DimensionPick &pick) {
            std::vector<double> values(5);
            file.read("u", slabOf(values.data(), {0}, {5}), {.picks = {pick}});
            return values;
        };
        EXPECT_EQ(stepOf(atIndex("time", -1)), (std::vector<double>{20, 21, 22, 23, 24}));
        EXPECT_EQ(stepOf(atIndex("time", 0)), (std::vector<double>{0, 1, 2, 3, 4}));
        EXPECT_EQ(stepOf(atValue("time", 0.6)), (std::vector<double>{10, 11, 12, 13, 14}));
        std::vector<float> column(3); // decreasing coordinates
        file.read("u", slabOf(column.data(), {0}, {3}), {.picks = {atValue("x", 7.9)}});
        EXPECT_EQ(column, (std::vector<float>{1, 11, 21}));
        float one = 0;
        file.read("u", slabOf(&one, {}, {}), {.picks = {atValue("x", -100), atIndex("time", 1)}});
        EXPECT_EQ(one, 14);
        EXPECT_THROW(stepOf(atIndex("time", 3)), ArgumentError);
        EXPECT_THROW(stepOf(atIndex("tim", 0)), ArgumentError);
    }
}

/// A variable of shorts with attributes, and its values by `write`.
void writeShorts(const std::string &path, std::vector<std::int16_t> values, std::vector<NetcdfAttribute> attributes,
                 std::vector<std::string> *notes = nullptr) {
    NetcdfWriter file(world(), path);
    file.dimension("x", static_cast<index>(values.size()));
    file.variable("p", ElementKind::Int16, {"x"}, std::move(attributes));
    std::vector<WrittenSlab> slabs;
    if (world().rank() == 0)
        slabs.push_back(
            slabOf(static_cast<const std::int16_t *>(values.data()), {0}, {static_cast<index>(values.size())}));
    file.write("p", slabs, true);
    if (notes != nullptr)
        *notes = file.notes();
    file.close();
}

NetcdfAttribute shorts(const char *name, std::vector<std::int64_t> values) {
    return {name, ElementKind::Int16, std::move(values)};
}

TEST_F(Netcdf, PackedValuesAreMaskedThenScaled) {
    const TemporaryFile path(".nc");
    // The negative scale turns the order around: the range is of the packed numbers.
    writeShorts(path.path(), {-32767, 0, 100, 200, 300, 7},
                {{"scale_factor", -0.5},
                 {"add_offset", 1000.0},
                 shorts("_FillValue", {0}),
                 shorts("missing_value", {7}),
                 shorts("valid_range", {-32767, 250})});
    const NetcdfReader file(world(), path.path());
    std::vector<double> values(6);
    Slab slab = slabOf(values.data(), {0}, {6});
    std::vector<std::uint8_t> mask(6, 9);
    slab.mask = mask.data();
    file.read("p", slab);
    EXPECT_EQ(mask, (std::vector<std::uint8_t>{0, 1, 0, 0, 1, 1}));
    EXPECT_EQ(values[0], 1000 + 32767 * 0.5);
    EXPECT_TRUE(std::isnan(values[1]) && std::isnan(values[4]) && std::isnan(values[5]));
    EXPECT_EQ(values[2], 950);
    EXPECT_EQ(values[3], 900);
    file.read("p", slab, {.fill = -1});
    EXPECT_EQ(values[4], -1);
    std::vector<std::int16_t> raw(6);
    file.read("p", slabOf(raw.data(), {0}, {6}), {.raw = true});
    EXPECT_EQ(raw, (std::vector<std::int16_t>{-32767, 0, 100, 200, 300, 7}));
    std::vector<int> integers(6);
    EXPECT_THROW(file.read("p", slabOf(integers.data(), {0}, {6})), LayoutError);
}

/// The mask of a variable of the shorts 0, 100, ..., 500 with these attributes.
std::vector<std::uint8_t> maskOf(std::vector<NetcdfAttribute> attributes) {
    const TemporaryFile path(".nc");
    writeShorts(path.path(), {0, 100, 200, 300, 400, 500}, std::move(attributes));
    const NetcdfReader file(world(), path.path());
    std::vector<double> values(6);
    std::vector<std::uint8_t> mask(6, 9);
    Slab slab = slabOf(values.data(), {0}, {6});
    slab.mask = mask.data();
    file.read("p", slab);
    return mask;
}

TEST_F(Netcdf, LimitsInTheUnpackedTypeAreValues) {
    const auto reals = [](const char *name, std::vector<real> values, ElementKind kind = ElementKind::Float64) {
        return NetcdfAttribute{name, kind, std::move(values)};
    };
    using Mask = std::vector<std::uint8_t>;
    // (2.4 - 1.7) / 0.007 and (4.5 - 1.7) / 0.007 are a little below 100 and 400: that is rounding.
    EXPECT_EQ(maskOf({{"scale_factor", 0.007}, {"add_offset", 1.7}, reals("valid_range", {2.4, 4.5})}),
              (Mask{1, 0, 0, 0, 0, 1}));
    EXPECT_EQ(maskOf({{"scale_factor", -0.5}, {"add_offset", 1000.0}, {"valid_min", 800.0}}), (Mask{0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(maskOf({{"scale_factor", -0.5}, reals("valid_range", {-100, 0})}), (Mask{0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(maskOf({{"scale_factor", 0.01}, reals("valid_range", {1, 1e9})}), (Mask{1, 0, 0, 0, 0, 0}));
    // Between two packed numbers: 99.995, 100.005 and 399.995 times the scale.
    EXPECT_EQ(maskOf({{"scale_factor", 200.0}, {"valid_min", 19999.0}}), (Mask{1, 0, 0, 0, 0, 0}));
    EXPECT_EQ(maskOf({{"scale_factor", 200.0}, {"valid_min", 20001.0}}), (Mask{1, 1, 0, 0, 0, 0}));
    EXPECT_EQ(maskOf({{"scale_factor", 200.0}, {"valid_max", 79999.0}}), (Mask{0, 0, 0, 0, 1, 1}));
    EXPECT_EQ(maskOf({{"scale_factor", -200.0}, {"valid_min", -79999.0}}), (Mask{0, 0, 0, 0, 1, 1}));
    // Not the unpacked type, which is double; and without a scale: packed numbers.
    EXPECT_EQ(maskOf({reals("scale_factor", {0.01}, ElementKind::Float32),
                      {"add_offset", 0.0},
                      reals("valid_max", {300}, ElementKind::Float32)}),
              (Mask{0, 0, 0, 0, 1, 1}));
    EXPECT_EQ(maskOf({{"valid_max", 300.0}}), (Mask{0, 0, 0, 0, 1, 1}));
    EXPECT_EQ(maskOf({{"scale_factor", 0.01}, shorts("valid_min", {100}), {"valid_max", 3.0}}),
              (Mask{1, 0, 0, 0, 1, 1}));
}

TEST_F(Netcdf, UnsignedComesFirstForAttributesToo) {
    const TemporaryFile path(".nc");
    writeShorts(path.path(), {-1, -2, 5, -32768, -32767},
                {{"_Unsigned", "true"}, shorts("_FillValue", {-1}), shorts("valid_range", {0, -3})});
    const NetcdfReader file(world(), path.path());
    std::vector<int> values(5, -7);
    Slab slab = slabOf(values.data(), {0}, {5});
    std::vector<std::uint8_t> mask(5, 9);
    slab.mask = mask.data();
    file.read("p", slab);
    EXPECT_EQ(mask, (std::vector<std::uint8_t>{1, 1, 0, 0, 0}));
    EXPECT_EQ(values, (std::vector<int>{0, 0, 5, 32768, 32769}));
    EXPECT_THROW(file.read("p", slabOf(values.data(), {0}, {5})), DataError) << "missing integers without a place";
    std::vector<std::int16_t> narrow(5);
    Slab small = slabOf(narrow.data(), {0}, {5});
    small.mask = mask.data();
    EXPECT_THROW(file.read("p", small), DataError) << "32768 does not fit";
}

TEST_F(Netcdf, AFillValueThatDoesNotFitIsDroppedAndSaidSo) {
    const TemporaryFile path(".nc");
    std::vector<std::string> notes;
    writeShorts(path.path(), {1, -32767},
                {{"_FillValue", std::numeric_limits<real>::quiet_NaN()}, {"missing_value", "none"}}, &notes);
    EXPECT_NE(fmt::format("{}", fmt::join(notes, ";")).find("_FillValue of 'p' does not fit"), std::string::npos);
    const NetcdfReader file(world(), path.path());
    EXPECT_EQ(file.variable("p").attribute("_FillValue"), nullptr);
    ASSERT_EQ(file.notes().size(), 1u);
    EXPECT_NE(file.notes()[0].find("missing_value of 'p' is text"), std::string::npos);
    std::vector<float> values(2);
    file.read("p", slabOf(values.data(), {0}, {2}));
    EXPECT_EQ(values[0], 1);
    EXPECT_TRUE(std::isnan(values[1])) << "the default fill value";
}

TEST_F(Netcdf, ValuesArePackedAgainAsTheyWere) {
    const TemporaryFile path(".nc");
    const TemporaryFile again(".nc");
    const std::vector<std::int16_t> packed{-32000, -5, 0, 3, 32000, -999};
    writeShorts(path.path(), packed, {{"scale_factor", 0.013}, {"add_offset", -3.7}, shorts("_FillValue", {-999})});
    const NetcdfReader in(world(), path.path());
    std::vector<double> values(6);
    in.read("p", slabOf(values.data(), {0}, {6}));
    {
        NetcdfWriter out(world(), again.path());
        out.like(in.variable("p"));
        const index own = world().rank() == 0 ? 6 : 0;
        out.write("p", slabOf(static_cast<const double *>(values.data()), {0}, {own}));
        values[0] = 1e9;
        EXPECT_THROW(out.write("p", slabOf(static_cast<const double *>(values.data()), {0}, {own})), DataError);
        out.close();
    }
    std::vector<std::int16_t> back(6);
    const NetcdfReader reread(world(), again.path());
    reread.read("p", slabOf(back.data(), {0}, {6}), {.raw = true});
    EXPECT_EQ(back, packed);
    EXPECT_EQ(reread.variable("p").attributes, in.variable("p").attributes);
}

TEST_F(Netcdf, TypesOfAttributesChooseTheFormat) {
    const auto formatWith = [&](const NetcdfAttribute &ofVariable, const NetcdfAttribute &ofFile) {
        const TemporaryFile path(".nc");
        writeShorts(path.path(), {1}, {ofVariable});
        std::string format = NetcdfReader(world(), path.path()).content().format;
        NetcdfWriter file(world(), path.path());
        file.attribute(ofFile);
        file.close();
        return format + " " + NetcdfReader(world(), path.path()).content().format;
    };
    const NetcdfAttribute wide("id", ElementKind::Int64, std::vector<std::int64_t>{3'000'000'000});
    EXPECT_EQ(formatWith({"id", 3.0}, {"title", "t"}), "CDF-2 CDF-2");
    EXPECT_EQ(formatWith(wide, wide), "CDF-5 CDF-5");
    const TemporaryFile path(".nc");
    NetcdfWriter file(world(), path.path(), {.format = NetcdfFormat::Cdf2});
    file.attribute(wide);
    EXPECT_THROW(file.close(), LayoutError);
}

TEST_F(Netcdf, NumbersOfAttributesThatDoNotFitAreRefused) {
    const TemporaryFile path(".nc");
    NetcdfWriter file(world(), path.path());
    EXPECT_THROW(file.attribute(shorts("valid_range", {0, 40000})), LayoutError);
    file.dimension("x", 1);
    EXPECT_THROW(file.variable("v", ElementKind::Int16, {"x"}, {shorts("valid_max", {40000})}), LayoutError);
}

template <class Act>
std::string messageOf(Act &&act) {
    try {
        act();
    } catch (const Error &error) {
        return error.message();
    }
    return "";
}

TEST_F(Netcdf, FilesClaimTheConventionsOfTheProgramOnly) {
    for (const bool claims : {false, true}) {
        const TemporaryFile path(".nc");
        NetcdfWriter file(world(), path.path());
        if (claims)
            file.attribute({"Conventions", "CF-1.6"});
        file.dimension("x", 2);
        file.variable("p", ElementKind::Int16, {"x"});
        file.close();
        const NetcdfReader back(world(), path.path());
        ASSERT_EQ(back.content().attributes.size(), claims ? 1U : 0U);
        if (claims) {
            EXPECT_EQ(back.content().attributes[0], NetcdfAttribute("Conventions", "CF-1.6"));
        }
    }
}

TEST_F(Netcdf, AnAxisIsDeclaredAgainWithTheSameNumbersOnly) {
    const TemporaryFile path(".nc");
    NetcdfWriter file(world(), path.path());
    const GridAxis axis{"x", {0, 1, 3}};
    EXPECT_EQ(file.axis(axis), "x");
    EXPECT_EQ(file.axis(axis), "x") << "of another field";
    EXPECT_NE(messageOf([&] {
                  file.axis({"x", {0, 1, 4}});
              }).find("'x' was declared with other numbers"),
              std::string::npos);
    EXPECT_NE(messageOf([&] { file.axis({"x", {0, 1}}); }), "");
    file.close();
    std::vector<double> centres(2);
    NetcdfReader(world(), path.path()).read("x", slabOf(centres.data(), {0}, {2}));
    EXPECT_EQ(centres, (std::vector<double>{0.5, 2}));
}

TEST_F(Netcdf, BytesHaveNoDefaultFillValue) {
    const TemporaryFile path(".nc");
    const std::vector<std::int8_t> bytes{-127, -128, -1, 127};
    NetcdfWriter out(world(), path.path());
    out.dimension("x", 4);
    out.variable("p", ElementKind::Int8, {"x"});
    out.write("p", slabOf(bytes.data(), {0}, {world().rank() == 0 ? 4 : 0}), true);
    out.close();
    std::vector<double> values(4);
    NetcdfReader(world(), path.path()).read("p", slabOf(values.data(), {0}, {4}));
    EXPECT_EQ(values, (std::vector<double>{-127, -128, -1, 127}));
}

TEST_F(Netcdf, ErrorsListWhatThereIsOnAllRanks) {
    const TemporaryFile path(".nc");
    writeSteps(path.path(), NetcdfFormat::Cdf2, 0, 1, false);
    const NetcdfReader file(world(), path.path());
    std::vector<float> values(5);
    const auto read = [&](const char *name, std::vector<index> start, std::vector<index> count) {
        return messageOf([&] { file.read(name, slabOf(values.data(), std::move(start), std::move(count))); });
    };
    EXPECT_NE(read("v", {0}, {1}).find("float32 u(time: 1 (unlimited), x: 5)"), std::string::npos)
        << read("v", {0}, {1});
    EXPECT_NE(read("u", {0}, {5}).find("has 2 dimensions (1 x 5)"), std::string::npos);
    // Only the last rank's box is outside: all ranks throw.
    const index count = world().rank() == world().size() - 1 ? 6 : 5;
    EXPECT_NE(read("u", {0, 0}, {1, count}).find("1 x 6 elements"), std::string::npos);
    EXPECT_EQ(read("u", {0, 0}, {1, 5}), "");
    const auto shape = [&](std::vector<index> wanted) {
        return messageOf([&] { (void)picksFor(file.variable("u"), wanted, 0); });
    };
    EXPECT_EQ(shape({5}), "");
    EXPECT_EQ(shape({1, 5}), "");
    const NetcdfDimension one{"one", 1, false}, three{"three", 3, false}, five{"five", 5, false};
    const auto picked = [&](std::vector<NetcdfDimension> dimensions, const std::vector<index> &wanted, index step) {
        std::string text;
        NetcdfVariable variable;
        variable.dimensions = std::move(dimensions);
        for (const DimensionPick &pick : picksFor(variable, wanted, step))
            text += fmt::format("{} {} ", pick.dimension, pick.at);
        return text;
    };
    EXPECT_EQ(picked({one, five, {"last", 1, false}}, {1, 5}, 0), "last 0 ");
    EXPECT_EQ(picked({one, five, {"last", 1, false}}, {5, 1}, -1), "one 0 ");
    EXPECT_EQ(picked({three, one, five, {"last", 1, false}}, {1, 5}, 2), "three 2 last 0 ");
    EXPECT_EQ(picked({{"time", 1, false}, one, five}, {1, 5}, 0), "time 0 ");
    EXPECT_EQ(picked({{"steps", 1, true}, one, five}, {1, 5}, -1), "steps -1 ");
    EXPECT_EQ(picked({three, one, five, {"last", 1, false}}, {5}, -1), "three -1 one 0 last 0 ");
    EXPECT_NE(shape({4}).find("dimension x has 5 elements, not 4"), std::string::npos);
    EXPECT_NE(shape({5, 1, 1}).find("must be picked"), std::string::npos);
    EXPECT_NE(messageOf([&] { NetcdfReader(world(), path.path() + ".no"); }).find("cannot be opened"),
              std::string::npos);
    EXPECT_NE(messageOf([&] { NetcdfWriter(world(), "/nowhere/a.nc").close(); }).find("cannot be created"),
              std::string::npos);
    const TemporaryFile text(".nc", "no grid at all");
    EXPECT_NE(messageOf([&] { NetcdfReader(world(), text.path()); }).find("is no NetCDF file"), std::string::npos);
}

TEST_F(Netcdf, LargeVariablesAreCdf5) {
    constexpr index cells = (index{1} << 29) + 3;
    const TemporaryFile path(".nc");
    NetcdfWriter out(world(), path.path());
    out.dimension("x", cells);
    out.variable("u", ElementKind::Float64, {"x"});
    const double last = 7.5;
    const index own = world().rank() == world().size() - 1 ? 1 : 0;
    out.write("u", slabOf(&last, {cells - 1}, {own})); // the rest is a hole that takes no room
    EXPECT_NE(fmt::format("{}", fmt::join(out.notes(), ";")).find("format CDF-5: 'u' has 2 GiB or more"),
              std::string::npos);
    out.close();
    const NetcdfReader in(world(), path.path());
    EXPECT_EQ(in.content().format, "CDF-5");
    double value = 0;
    in.read("u", slabOf(&value, {cells - 1}, {1}));
    EXPECT_EQ(value, 7.5);
}

TEST_F(Netcdf, DeclarationsThatDifferAreRefused) {
    if (world().size() == 1)
        GTEST_SKIP() << "needs two ranks";
    const TemporaryFile path(".nc");
    NetcdfWriter file(world(), path.path());
    file.dimension("x", world().rank() == 1 ? 4 : 3);
    EXPECT_NE(messageOf([&] { file.define(); }).find("this rank declares dimension x 4"), std::string::npos);
}

TEST_F(Netcdf, FilesWithElementsThatNobodyWroteAreComplete) {
    for (const NetcdfFormat format : {NetcdfFormat::Cdf2, NetcdfFormat::Cdf5, NetcdfFormat::Netcdf4}) {
        const TemporaryFile path(".nc");
        NetcdfWriter file(world(), path.path(), {.format = format});
        file.dimension("x", 10);
        file.unlimited("t");
        file.variable("a", ElementKind::Float64, {"t", "x"});
        file.variable("b", ElementKind::Int16, {"t", "x"});
        file.variable("declared", ElementKind::Float32, {"x"});
        const std::vector<double> a(10, 2.5);
        const std::vector<std::int16_t> b(3, 7);
        const index own = world().rank() == 0 ? 1 : 0;
        for (index step = 0; step < 3; ++step)
            file.write("a", slabOf(a.data(), {step, 0}, {own, 10}));
        file.write("b", slabOf(b.data(), {0, 0}, {own, 3}));
        file.close();
        const NetcdfReader back(world(), path.path());
        EXPECT_EQ(back.shape("b"), (std::vector<index>{3, 10}));
        std::vector<double> read(30);
        back.read("a", slabOf(read.data(), {0, 0}, {3, 10}));
        EXPECT_EQ(read, std::vector<double>(30, 2.5));
        std::vector<std::int16_t> first(3);
        back.read("b", slabOf(first.data(), {0, 0}, {1, 3}), {.raw = true});
        EXPECT_EQ(first, b);
        std::vector<float> declared(10, 1);
        back.read("declared", slabOf(declared.data(), {0}, {10}), {.raw = true});
        const std::vector<float> zeros(10, 0);
        EXPECT_TRUE(format == NetcdfFormat::Netcdf4 || declared == zeros);
    }
}

TEST_F(Netcdf, StepsThatNobodyWroteAreMissing) {
    for (const NetcdfFormat format : {NetcdfFormat::Cdf2, NetcdfFormat::Cdf5, NetcdfFormat::Netcdf4}) {
        const TemporaryFile path(".nc");
        const std::vector<double> values{1, 2, 3};
        const index own = world().rank() == world().size() - 1 ? 1 : 0;
        const auto write = [&](NetcdfWriter &file, const char *name, index step) {
            file.write(name, slabOf(values.data(), {step, 0}, {own, 3}));
        };
        {
            NetcdfWriter file(world(), path.path(), {.format = format});
            file.dimension("x", 3);
            file.unlimited("t");
            for (const char *name : {"each", "late", "early", "never"})
                file.variable(name, ElementKind::Float64, {"t", "x"},
                              name[0] == 'l' ? std::vector<NetcdfAttribute>{{"_FillValue", -9.0}}
                                             : std::vector<NetcdfAttribute>{});
            for (index step = 0; step < 3; ++step)
                write(file, "each", step);
            write(file, "early", 0);
            write(file, "late", 2);
            write(file, "late", 1); // the other way round
            file.close();
        }
        {
            NetcdfWriter file(world(), path.path(), {.append = true});
            write(file, "each", 4);
            file.close();
        }
        const NetcdfReader back(world(), path.path());
        const std::vector<std::pair<const char *, std::vector<int>>> there{{"each", {1, 1, 1, 0, 1}},
                                                                           {"late", {0, 1, 1, 0, 0}},
                                                                           {"early", {1, 0, 0, 0, 0}},
                                                                           {"never", {0, 0, 0, 0, 0}}};
        for (const auto &[name, steps] : there) {
            ASSERT_EQ(back.shape(name), (std::vector<index>{5, 3}));
            std::vector<double> read(15);
            back.read(name, slabOf(read.data(), {0, 0}, {5, 3}));
            for (std::size_t k = 0; k < 15; ++k)
                if (steps[k / 3] == 1)
                    EXPECT_EQ(read[k], values[k % 3]) << name << ", step " << k / 3;
                else
                    EXPECT_TRUE(std::isnan(read[k])) << name << ", step " << k / 3 << ": " << read[k];
        }
    }
}

TEST_F(Netcdf, ClosedFilesStayAsTheyAre) {
    const TemporaryFile path(".nc");
    const auto expectClosed = [](NetcdfWriter &file) {
        const double value = 1;
        EXPECT_THROW(file.close(), StateError);
        EXPECT_THROW(file.write("a", slabOf(&value, {0, 0}, {0, 0})), StateError);
        EXPECT_THROW(file.define(), StateError);
        EXPECT_THROW(file.unlimited("t"), StateError);
    };
    const std::vector<double> values(5, 4);
    const index own = world().rank() == 0 ? 1 : 0;
    NetcdfWriter file(world(), path.path());
    file.unlimited("t");
    file.dimension("x", 5);
    file.variable("a", ElementKind::Float64, {"t", "x"});
    file.write("a", slabOf(values.data(), {0, 0}, {own, 5}));
    file.close();
    expectClosed(file);
    NetcdfWriter more(world(), path.path(), {.append = true});
    more.write("a", slabOf(values.data(), {1, 0}, {own, 5}));
    more.close();
    expectClosed(more);
    const NetcdfWriter other = std::move(more);
    EXPECT_EQ(other.path(), path.path());
    EXPECT_THROW(more.close(), StateError); // NOLINT: moved from
    NetcdfReader back(world(), path.path());
    std::vector<double> read(10);
    back.read("a", slabOf(read.data(), {0, 0}, {2, 5}));
    EXPECT_EQ(read, std::vector<double>(10, 4));
    const NetcdfReader taken = std::move(back);
    EXPECT_THROW(back.read("a", slabOf(read.data(), {0, 0}, {2, 5})), StateError); // NOLINT: moved from
    EXPECT_THROW((void)back.notes(), StateError);                                  // NOLINT: moved from
}

TEST_F(Netcdf, WhatRanksAskForMustBeTheSame) {
    const TemporaryFile path(".nc");
    writeSteps(path.path(), NetcdfFormat::Automatic, 0, 3, false);
    world().barrier();
    const NetcdfReader file(world(), path.path());
    const NetcdfVariable *steps = nullptr;
    for (const NetcdfVariable &variable : file.content().variables)
        if (variable.dimensions.size() > 1)
            steps = &variable;
    ASSERT_NE(steps, nullptr);
    const std::string &first = steps->dimensions.front().name;
    std::vector<index> shape = steps->shape();
    shape.erase(shape.begin());
    const std::vector<index> none(shape.size(), 0);
    double value = 0;
    const bool last = world().rank() + 1 == world().size();
    const std::string wrong = messageOf(
        [&] { file.read(steps->name, slabOf(&value, none, none), {.picks = {atIndex(first, last ? 99 : 0)}}); });
    EXPECT_NE(wrong.find(world().size() == 1 ? "has no place 99" : "place 99"), std::string::npos) << wrong;
    EXPECT_NE(messageOf([&] {
                  file.read(steps->name, slabOf(&value, none, none), {.picks = {atIndex(first, 99)}});
              }).find("has no place 99"),
              std::string::npos);
}

TEST_F(Netcdf, DimensionsWithoutElementsAndStepsBeyondTheFormat) {
    const TemporaryFile path(".nc");
    NetcdfWriter file(world(), path.path(), {.format = NetcdfFormat::Cdf2});
    EXPECT_THROW(file.dimension("none", 0), ArgumentError);
    file.unlimited("t");
    file.dimension("x", 4);
    file.variable("a", ElementKind::Float32, {"t", "x"});
    const std::vector<float> values(4, 1);
    const index own = world().rank() == 0 ? 1 : 0;
    EXPECT_NE(messageOf([&] {
                  file.write("a", slabOf(values.data(), {index{1} << 33, 0}, {own, 4}));
              }).find("at most"),
              std::string::npos);
    EXPECT_THROW(file.write("a", slabOf(values.data(), {0, 0}, {index{1} << 62, 4})), LayoutError);
    file.write("a", slabOf(values.data(), {0, 0}, {own, 4}));
    file.close();
}

TEST_F(Netcdf, TruncatedFilesAreRefused) {
    for (const NetcdfFormat format : {NetcdfFormat::Cdf2, NetcdfFormat::Cdf5, NetcdfFormat::Netcdf4}) {
        const TemporaryFile path(".nc");
        if (format == NetcdfFormat::Netcdf4)
            writeFile<double>(path.path(), format, {40, 50}, 0);
        else
            writeSteps(path.path(), format, 0, 3, false);
        world().barrier();
        if (world().rank() == 0)
            std::filesystem::resize_file(path.path(), std::filesystem::file_size(path.path()) - 8);
        world().barrier();
        const std::string message = messageOf([&] { NetcdfReader(world(), path.path()); });
        EXPECT_NE(message.find(format == NetcdfFormat::Netcdf4 ? "NetCDF cannot open it" : "is truncated"),
                  std::string::npos)
            << message;
    }
}

/// A file system of 1 MiB, where this process may mount one; it goes with the object. Collective.
class SmallDisk {
  public:
    SmallDisk() {
        if (world().rank() == 0) {
            std::filesystem::create_directory(place_.path());
            mounted_ = ::mount("none", place_.path().c_str(), "tmpfs", MS_NOSUID, "size=1m") == 0 ? 1 : 0;
        }
        mounted_ = world().allReduce(mounted_, MPI_MAX);
    }
    SmallDisk(const SmallDisk &) = delete;
    SmallDisk &operator=(const SmallDisk &) = delete;
    ~SmallDisk() {
        world().barrier();
        if (world().rank() == 0 && mounted_ != 0)
            ::umount2(place_.path().c_str(), MNT_DETACH);
    }
    bool mounted() const { return mounted_ != 0; }
    std::string file(const char *name) const { return place_.path() + "/" + name; }

  private:
    TemporaryFile place_{".disk"};
    int mounted_ = 0;
};

class FullDisk : public ::testing::TestWithParam<std::pair<NetcdfFormat, int>> {};

/// No rank waits for one that found no room; what was written before can be read.
TEST_P(FullDisk, IsAnErrorOnAllRanks) {
    if (!NetcdfReader::built())
        GTEST_SKIP() << "built without NetCDF";
    const SmallDisk disk;
    if (!disk.mounted())
        GTEST_SKIP() << "no right to mount a small file system";
    const auto [format, deflate] = GetParam();
    constexpr index cells = 10'000; // 80 kB a step
    const std::string path = disk.file("a.nc");
    const auto declare = [&](NetcdfWriter &file, index fixed) {
        file.unlimited("t");
        file.dimension("x", cells);
        file.dimension("n", fixed);
        file.variable("u", ElementKind::Float64, {"t", "x"});
        file.variable("v", ElementKind::Float64, {"n", "x"});
    };
    if (deflate == 0) {
        NetcdfWriter file(world(), path, {.format = format});
        declare(file, 20);
        EXPECT_NE(messageOf([&] { file.define(); }).find("has no room for"), std::string::npos);
    }
    world().barrier();
    EXPECT_FALSE(std::filesystem::exists(path));
    world().barrier();
    std::vector<double> noise(cells);
    std::mt19937_64 random(1);
    for (double &value : noise)
        value = std::ldexp(static_cast<double>(random()), -32); // zlib makes it no shorter by much
    const index begin = cells * world().rank() / world().size();
    const index own = cells * (world().rank() + 1) / world().size() - begin;
    index steps = 0;
    {
        NetcdfWriter file(world(), path, {.format = format, .deflate = deflate});
        declare(file, 2);
        std::string message;
        while (message.empty() && steps < 30) {
            message = messageOf([&] { file.write("u", slabOf(noise.data() + begin, {steps, begin}, {1, own})); });
            steps += message.empty() ? 1 : 0;
        }
        EXPECT_NE(message.find("has no room for"), std::string::npos) << message;
        EXPECT_GE(steps, 3);
        EXPECT_LT(steps, 20);
        EXPECT_NE(messageOf([&] { file.write("u", slabOf(noise.data(), {29, 0}, {1, 1})); }), "") << "again";
        file.close();
    }
    const NetcdfReader back(world(), path);
    std::vector<double> read(cells);
    for (index step = 0; step < steps; step++) {
        back.read("u", slabOf(read.data(), {step, 0}, {1, cells}), {.raw = true});
        EXPECT_EQ(read, noise) << step;
    }
}

INSTANTIATE_TEST_SUITE_P(Netcdf, FullDisk,
                         ::testing::Values(std::pair{NetcdfFormat::Cdf5, 0}, std::pair{NetcdfFormat::Netcdf4, 0},
                                           std::pair{NetcdfFormat::Netcdf4, 3}));

TEST_F(Netcdf, SpaceThatWasNotUsedIsGivenBack) {
    const SmallDisk disk;
    if (!disk.mounted())
        GTEST_SKIP() << "no right to mount a small file system";
    const std::string path = disk.file("a.nc");
    writeFile<double>(path, NetcdfFormat::Netcdf4, {10, 100}, 0);
    world().barrier();
    const auto space = std::filesystem::space(path);
    EXPECT_LE(space.capacity - space.free, std::filesystem::file_size(path) + 16'384);
    world().barrier();
}

/// The steps of the text of a manifest's checks: sums of raw numbers.
TEST_F(Netcdf, FilesOfOthersHaveTheSumsOfTheManifest) {
    const std::string folder = DNDS_TEST_MESHES;
    if (!std::filesystem::exists(folder + "/eraint_uvz.nc"))
        GTEST_SKIP() << folder << " has no NetCDF files";
    const auto sumOf = [&]<class T>(const std::string &path, const char *name, T) {
        const NetcdfReader file(world(), path);
        const std::vector<index> shape = file.shape(name);
        auto boxes = partsOf<T>(shape, shape.size() - 1, T{});
        file.read(name, slabsOf(boxes), {.raw = true});
        double sum = 0;
        for (const PaddedBox<T> &box : boxes)
            box.forEach(shape, [&](index, std::size_t place) { sum += static_cast<double>(box.memory[place]); });
        return world().allReduce(sum, MPI_SUM);
    };
    EXPECT_EQ(sumOf(folder + "/eraint_uvz.nc", "z", std::int16_t{}), 2271761917);
    EXPECT_EQ(sumOf(folder + "/eraint_uvz.nc", "u", std::int16_t{}), 8838801966);
    EXPECT_EQ(sumOf(folder + "/eraint_uvz.nc", "v", std::int16_t{}), -2176930381);
    EXPECT_NEAR(sumOf(folder + "/nc4uvt.nc", "T", float{}), 26941411.96, 0.01);
    EXPECT_NEAR(sumOf(folder + "/nc4uvt.nc", "grp1/U", float{}), 866883.1721, 0.001);
}

} // namespace
} // namespace DNDS
