// RawFile, HdfDataset and VtkGridFile.
#include "DNDS/GridFile/Netcdf.hpp"
#include "DNDS/GridFile/Parts.hpp"
#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

namespace DNDS {
namespace {

using Geom::test::TemporaryFile;
using test::PaddedBox;
using test::partsOf;

CommunicatorView all() { return MPI_COMM_WORLD; }

template <class T>
std::vector<PaddedBox<T>> numbered(const std::vector<index> &shape, std::size_t cut) {
    auto boxes = partsOf<T>(shape, cut, T{99});
    for (PaddedBox<T> &box : boxes)
        box.forEach(shape, [&](index global, std::size_t place) { box.memory[place] = static_cast<T>(global); });
    return boxes;
}

template <class T, class Pointer>
auto slabs(std::vector<PaddedBox<T>> &boxes, Pointer) {
    std::vector<decltype(slabOf(Pointer{}, {}, {}))> list;
    for (PaddedBox<T> &box : boxes)
        list.push_back(slabOf(Pointer{box.data()}, box.start, box.count, box.strides));
    return list;
}

template <class T>
void expectNumbered(const std::vector<PaddedBox<T>> &boxes, const std::vector<index> &shape) {
    for (const PaddedBox<T> &box : boxes)
        box.forEach(shape, [&](index global, std::size_t place) {
            ASSERT_EQ(box.memory[place], static_cast<T>(global)) << global;
        });
}

template <class Act>
std::string complaint(Act &&act) {
    try {
        act();
    } catch (const Error &error) {
        return error.message();
    }
    return "";
}

const std::vector<index> shape{4, 3, 5};

TEST(RawFile, ComesBackInBothByteOrdersWhateverTheCut) {
    for (const std::endian order : {std::endian::little, std::endian::big}) {
        const TemporaryFile path(".raw");
        const RawFileLayout layout{shape, ElementKind::Int32, 7, order};
        auto out = numbered<std::int32_t>(shape, 1);
        writeRawFile(all(), path.path(), layout, slabs(out, static_cast<const std::int32_t *>(nullptr)));
        for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
            auto in = partsOf<std::int32_t>(shape, cut, 99);
            readRawFile(all(), path.path(), layout, slabs(in, static_cast<std::int32_t *>(nullptr)));
            expectNumbered(in, shape);
        }
        std::ifstream file(path.path(), std::ios::binary);
        std::string bytes(std::istreambuf_iterator<char>(file), {});
        ASSERT_EQ(bytes.size(), 7u + 60 * 4);
        EXPECT_EQ(bytes.substr(7 + 4, 4),
                  order == std::endian::big ? std::string("\0\0\0\1", 4) : std::string("\1\0\0\0", 4));
    }
}

TEST(RawFile, OtherSizesAndTypesAreRefused) {
    const TemporaryFile path(".raw", "12345678");
    double memory[2] = {};
    const auto read = [&](const RawFileLayout &layout) {
        return complaint([&] { readRawFile(all(), path.path(), layout, std::vector{slabOf(memory, {0}, {1})}); });
    };
    EXPECT_EQ(read({{1}, ElementKind::Float64}), "");
    EXPECT_NE(read({{2}, ElementKind::Float64}).find("has 8 bytes"), std::string::npos);
    EXPECT_NE(read({{1}, ElementKind::Float64, 1}).find("has 8 bytes"), std::string::npos);
    EXPECT_NE(read({{2}, ElementKind::Float32}).find("holds float32, but memory is float64"), std::string::npos);
    EXPECT_NE(read({{index{1} << 40, index{1} << 40}, ElementKind::Float64}).find("elements"), std::string::npos);
}

TEST(HdfDataset, RefusesValuesThatMemoryCannotHold) {
    if (!CheckpointWriter::built())
        GTEST_SKIP() << "built without HDF5";
    const TemporaryFile path(".h5");
    const double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> values{1, 1e300, -3e9, 0.5, infinity, std::nan("")};
    const std::vector<index> all6{6};
    writeHdfDataset(all(), path.path(), "u", all6, ElementKind::Float64,
                    std::vector{slabOf(values.data(), {0}, {all().rank() == 0 ? index{6} : 0})});
    const auto read = [&](auto number, index at) {
        const std::string message =
            complaint([&] { readHdfDataset(all(), path.path(), "u", std::vector{slabOf(&number, {at}, {1})}); });
        return message.empty() ? fmt::format("{}", number) : message;
    };
    EXPECT_EQ(read(std::int32_t{}, 0), "1");
    EXPECT_NE(read(float{}, 1).find("1e+300 does not fit float32"), std::string::npos) << read(float{}, 1);
    EXPECT_NE(read(std::int32_t{}, 2).find("-3000000000 does not fit int32"), std::string::npos)
        << read(std::int32_t{}, 2);
    EXPECT_NE(read(std::int64_t{}, 3).find("0.5 does not fit int64"), std::string::npos) << read(std::int64_t{}, 3);
    EXPECT_NE(read(std::int64_t{}, 4).find("inf does not fit int64"), std::string::npos) << read(std::int64_t{}, 4);
    EXPECT_NE(read(std::int64_t{}, 5).find("nan does not fit int64"), std::string::npos) << read(std::int64_t{}, 5);
    EXPECT_EQ(read(float{}, 4), "inf");
    EXPECT_EQ(read(float{}, 5), "nan");
}

TEST(HdfDataset, ComesBackConvertedWhateverTheCut) {
    if (!CheckpointWriter::built())
        GTEST_SKIP() << "built without HDF5";
    const TemporaryFile path(".h5");
    auto out = numbered<float>(shape, 2);
    writeHdfDataset(all(), path.path(), "fields/u", shape, ElementKind::Float32,
                    slabs(out, static_cast<const float *>(nullptr)));
    auto more = numbered<std::int64_t>(shape, 0);
    writeHdfDataset(all(), path.path(), "fields/ids", shape, ElementKind::Int64,
                    slabs(more, static_cast<const std::int64_t *>(nullptr)), true);
    EXPECT_EQ(hdfDatasetShape(all(), path.path(), "fields/u"), shape);
    for (const char *name : {"fields/u", "/fields/ids"}) {
        auto in = partsOf<double>(shape, 1, 99);
        readHdfDataset(all(), path.path(), name, slabs(in, static_cast<double *>(nullptr)));
        expectNumbered(in, shape);
    }
    const std::string unknown = complaint([&] { (void)hdfDatasetShape(all(), path.path(), "fields/v"); });
    EXPECT_NE(unknown.find("fields/ids, fields/u"), std::string::npos) << unknown;
    double value = 0;
    EXPECT_THROW(readHdfDataset(all(), path.path(), "fields/u", std::vector{slabOf(&value, {0}, {1})}), LayoutError);
    const TemporaryFile text(".h5", "nothing");
    EXPECT_NE(complaint([&] { (void)hdfDatasetShape(all(), text.path(), "u"); }).find("is no HDF5 file"),
              std::string::npos);
}

TEST(VtkGridFile, FieldsOfOtherGridsAreRefused) {
    double memory[64] = {};
    const auto field = [&](const char *name, std::vector<index> count) {
        VtkGridField made{name, 1, ElementKind::Float64, {}};
        made.slabs.push_back(slabOf(static_cast<const double *>(memory), {0, 0, 0}, std::move(count)));
        return made;
    };
    const TemporaryFile path(".vtr");
    const std::array<std::vector<real>, 3> points{{{0, 1, 2}, {0, 1}, {0}}};
    const auto write = [&](const std::vector<VtkGridField> &fields) {
        return complaint([&] { writeVtkRectilinear(all(), path.path(), points, fields); });
    };
    EXPECT_EQ(write({field("u", {1, 1, 2})}), "");
    EXPECT_NE(write({field("u", {1, 2, 2})}).find("field 'u'"), std::string::npos);
    EXPECT_NE(write({field("u", {1, 1, 2}), field("u", {1, 1, 2})}).find("two fields"), std::string::npos);
    EXPECT_NE(write({field("", {1, 1, 2})}).find("no name"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(path.path())) << "what was written before stays";
}

} // namespace
} // namespace DNDS
