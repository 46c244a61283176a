#include "DNDS/Serialize/Checkpoint.hpp"

#include "CheckpointCase.hpp"

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/ArrayMatrices.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

namespace DNDS {
namespace {

/// Ids live until `write`: temporary ones are refused by the compiler.
template <class Ids>
concept CanAdd = requires(CheckpointWriter &writer, const Array<real, 2> &array, Ids &&ids) {
    writer.add("u", array, std::forward<Ids>(ids));
};
static_assert(CanAdd<std::vector<index> &> && CanAdd<const std::vector<index> &> && CanAdd<std::span<const index>>);
static_assert(!CanAdd<std::vector<index>>);

using namespace test;

constexpr CheckpointOptions smallBlocks{256};
constexpr index rows = 211;

struct Particle {
    std::int32_t kind;
    float mass;
    char name[3];
    bool operator==(const Particle &) const = default;
};

/// Element `j` of row `id`.
template <class T>
T elementOf(index id, index j) {
    if constexpr (std::is_same_v<T, Particle>)
        return {
            static_cast<std::int32_t>(id), static_cast<float>(j) + 0.5F, {'a', static_cast<char>('a' + id % 20), 0}};
    else if constexpr (requires { std::tuple_size<T>::value; }) {
        T element{};
        for (std::size_t k = 0; k < element.size(); k++)
            element[k] = elementOf<typename T::value_type>(id, j * 7 + static_cast<index>(k));
        return element;
    } else if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(std::sin(static_cast<double>(id * 131 + j)));
    else
        return static_cast<T>(id * 37 + j);
}

index sizeOf(index id) { return (id * 7) % 5; } // 0 to 4

template <class TArray>
void shapeRows(TArray &array, const std::vector<index> &ids, rowsize width) {
    const auto count = static_cast<index>(ids.size());
    if constexpr (isFixedLayout(TArray::layout))
        array.resize(count, width);
    else {
        const auto sizes = [&](index i) { return sizeOf(ids[static_cast<std::size_t>(i)]); };
        if constexpr (TArray::layout == ArrayLayout::Max)
            array.resize(count, width, sizes);
        else
            array.resize(count, sizes);
    }
}

template <class TArray>
TArray filled(const std::vector<index> &ids, rowsize width) {
    TArray array;
    shapeRows(array, ids, width);
    for (index i = 0; i < array.size(); i++)
        for (rowsize j = 0; j < array.rowSize(i); j++)
            array(i, j) = elementOf<typename TArray::Element>(ids[static_cast<std::size_t>(i)], j);
    return array;
}

template <class TArray>
void expectRows(const TArray &array, const std::vector<index> &ids, rowsize width) {
    ASSERT_EQ(array.size(), static_cast<index>(ids.size()));
    for (index i = 0; i < array.size(); i++) {
        const index id = ids[static_cast<std::size_t>(i)];
        ASSERT_EQ(array.rowSize(i), isFixedLayout(TArray::layout) ? width : sizeOf(id)) << id;
        for (rowsize j = 0; j < array.rowSize(i); j++)
            ASSERT_TRUE(array(i, j) == elementOf<typename TArray::Element>(id, j)) << "row " << id << ", element " << j;
    }
}

/// Writes on all ranks, and reads on the first 1, 2, ... ranks, with another partition; of many ranks, on 1, 2 and all.
template <class TArray>
void roundTrip(rowsize width, const std::function<index(index)> &id) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.h5");
    const std::vector<index> ids = spreadIds(world(), rows, 1, id);
    const auto array = filled<TArray>(ids, width);
    CheckpointWriter writer(world(), path, smallBlocks);
    writer.add("array", array, ids);
    EXPECT_GT(writer.write(), 0);
    for (int ranks = 1; ranks <= world().size(); ranks += ranks == 2 && world().size() > 4 ? world().size() - 2 : 1) {
        const Communicator some = Communicator::split(world(), world().rank() < ranks ? 0 : MPI_UNDEFINED, 0);
        if (!some.valid())
            continue;
        const std::vector<index> others = spreadIds(some.view(), rows, static_cast<unsigned>(ranks) + 10, id);
        const CheckpointReader reader(some.view(), path,
                                      {.readers = std::max(0, ranks - 2)}); // all, one, more than one
        EXPECT_GT(reader.array("array").blocks(), 1);
        TArray back;
        const std::uint64_t version = back.version();
        reader.read("array", back, others);
        EXPECT_NE(back.version(), version);
        expectRows(back, others, width);
        const std::vector<index> all{id(3), id(rows - 1), id(3), id(0)}; // several ranks want the same
        reader.read("array", back, all);
        expectRows(back, all, width);
        const std::vector<index> block = reader.ownBlock("array");
        EXPECT_EQ(static_cast<index>(block.size()), EvenSplit(rows, ranks).size(some.view().rank()));
        EXPECT_EQ(some.view().allReduce(static_cast<index>(block.size()), MPI_SUM), rows);
        reader.read("array", back, block);
        expectRows(back, block, width);
        reader.verify();
    }
}

template <class TArray>
class CheckpointOf : public testing::Test {};
using AllArrays =
    testing::Types<Array<real, 5>, Array<float, DynamicSize>, Array<std::uint8_t, 3>, Array<index, NonUniformSize>,
                   Array<std::int16_t, NonUniformSize, 4>, Array<real, NonUniformSize, DynamicSize>,
                   Array<std::array<real, 3>, 2>, Array<std::array<std::uint32_t, 2>, NonUniformSize>,
                   Array<Particle, 3>, Array<real, 3, 3, 64>, Array<std::int32_t, NonUniformSize, 5, 32>>;
TYPED_TEST_SUITE(CheckpointOf, AllArrays);

TYPED_TEST(CheckpointOf, IsReadByAnyNumberOfRanks) {
    const rowsize width = TypeParam::rowSizeStatic > 0  ? TypeParam::rowSizeStatic
                          : TypeParam::rowMaxStatic > 0 ? TypeParam::rowMaxStatic
                                                        : 4;
    roundTrip<TypeParam>(width, [](index row) { return row; });
    roundTrip<TypeParam>(width, [](index row) { return row * row * 1000003 + 5; });
}

TEST(Checkpoint, HasTheSameBytesOnAnyNumberOfRanksAndOfWriters) {
    const TemporaryFolder folder;
    const auto write = [&](CommunicatorView comm, const std::string &path, int writers) {
        const std::vector<index> ids = spreadIds(comm, rows, 3);
        const std::vector<index> others = spreadIds(comm, rows, 4, [](index row) { return 2 * row; });
        const auto fixed = filled<Array<real, 5>>(ids, 5);
        const auto ragged = filled<Array<index, NonUniformSize>>(others, 0);
        const Array<real, 2> none;
        CheckpointOptions options = smallBlocks;
        options.writers = writers;
        CheckpointWriter writer(comm, path, options);
        writer.set("time", 0.1);
        writer.add("ragged", ragged, others);
        writer.add("fixed", fixed, ids);
        writer.add("none", none, {});
        writer.write();
    };
    write(world(), folder.file("all.h5"), 0);
    write(world(), folder.file("by two.h5"), 2);
    if (world().rank() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1100)); // HDF5's times of objects are in seconds
        write(MPI_COMM_SELF, folder.file("one.h5"), 0);
        EXPECT_TRUE(contentOf(folder.file("all.h5")) == contentOf(folder.file("one.h5")));
        EXPECT_TRUE(contentOf(folder.file("by two.h5")) == contentOf(folder.file("one.h5")));
        EXPECT_EQ(folder.names(), (std::vector<std::string>{"all.h5", "by two.h5", "one.h5"}));
    }
}

TEST(Checkpoint, KeepsValuesToTheBit) {
    const TemporaryFolder folder;
    CheckpointWriter writer(world(), folder.file("values.h5"));
    const std::vector<real> numbers{-0.0, std::numeric_limits<real>::infinity(), 5e-324, std::nan("7")};
    const std::string text = "{\"a\": 1,\n \"ü\": []}";
    writer.set("numbers", numbers);
    writer.set("step", 1234567890123);
    writer.set("time", 0.1);
    writer.set("text", text);
    writer.set("empty", "");
    writer.set("list", std::vector<index>{1, -2});
    writer.set("nothing", std::vector<real>{});
    writer.write();
    writer.set("time", 0.2); // and once more, in place of the first
    writer.write();
    const CheckpointReader reader(world(), folder.file("values.h5"));
    EXPECT_EQ(reader.integer("step"), 1234567890123);
    EXPECT_EQ(reader.number("time"), 0.2);
    EXPECT_EQ(reader.text("text"), text);
    EXPECT_EQ(reader.text("empty"), "");
    EXPECT_EQ(reader.integers("list"), (std::vector<index>{1, -2}));
    EXPECT_TRUE(reader.numbers("nothing").empty());
    ASSERT_EQ(reader.numbers("numbers").size(), numbers.size());
    EXPECT_EQ(std::memcmp(reader.numbers("numbers").data(), numbers.data(), numbers.size() * sizeof(real)), 0);
    EXPECT_TRUE(reader.has("step"));
    EXPECT_FALSE(reader.has("steps"));
    EXPECT_CONTAINS(failureOf<ArgumentError>([&] { (void)reader.number("tim"); }), "value time: 1 numbers");
    EXPECT_CONTAINS(failureOf<LayoutError>([&] { (void)reader.number("step"); }),
                    "step is no floating-point number: read it by integer(\"step\")");
    EXPECT_CONTAINS(failureOf<LayoutError>([&] { (void)reader.integer("list"); }), "list of 2");
    EXPECT_CONTAINS(failureOf<ArgumentError>([&] { writer.set("a", std::string(70000, 'x')); }), "make it an array");
}

TEST(Checkpoint, ChoosesTheShapeOfMatricesWhereRowsTell) {
    const TemporaryFolder folder;
    const std::vector<index> ids = spreadIds(world(), 20, 1);
    ArrayEigenMatrix<DynamicSize, 2> array("matrices", world(), 3, 2);
    array.resize(static_cast<index>(ids.size()));
    for (index i = 0; i < array.size(); i++)
        array[i].setConstant(static_cast<real>(ids[static_cast<std::size_t>(i)]));
    ArrayEigenMatrix<NonUniformSize, DynamicSize> lists("lists", world());
    lists.resize(array.size(), [](index) { return std::pair(2, 3); });
    CheckpointWriter writer(world(), folder.file("matrices.h5"), smallBlocks);
    writer.add("matrices", array, ids);
    writer.add("lists", lists, ids);
    writer.write();

    const CheckpointReader reader(world(), folder.file("matrices.h5"));
    ArrayEigenMatrix<DynamicSize, 2> tall("tall", world());
    ArrayEigenMatrix<3, DynamicSize> wide("wide", world());
    reader.read("matrices", tall, ids);
    reader.read("matrices", wide, ids);
    EXPECT_EQ(tall.commonShape(), (MatrixShape{3, 2}));
    EXPECT_EQ(wide.commonShape(), (MatrixShape{3, 2}));
    EXPECT_EQ(tall.hash(), array.hash());
    EXPECT_EQ(wide.hash(), array.hash());
    ArrayEigenMatrix<DynamicSize, DynamicSize> open("open", world());
    ArrayEigenMatrix<DynamicSize, 4> odd("odd", world());
    ArrayEigenMatrix<NonUniformSize, DynamicSize> differing("differing", world());
    for (ArrayBase *unfit : std::initializer_list<ArrayBase *>{&open, &odd})
        EXPECT_CONTAINS(failureOf<LayoutError>([&] { reader.read("matrices", *unfit, ids); }), "choose it first");
    EXPECT_CONTAINS(failureOf<LayoutError>([&] { reader.read("lists", differing, ids); }), "choose it first");
    EXPECT_EQ(open.size() + odd.size() + differing.size(), 0);
    open.resize(0, 2, 3);
    reader.read("matrices", open, ids);
    EXPECT_EQ(open.commonShape(), (MatrixShape{2, 3}));
}

TEST(Checkpoint, KeepsMatricesOfDifferingShapes) {
    using Matrices = ArrayEigenMatrix<NonUniformSize, NonUniformSize>;
    const TemporaryFolder folder;
    const auto shapeOf = [](index id) { return std::pair<rowsize, rowsize>(id % 3, 1 + id % 2); };
    const auto fill = [&](Matrices &array, ArrayEigenMatrixBatch &batch, const std::vector<index> &ids) {
        array.resize(static_cast<index>(ids.size()),
                     [&](index i) { return shapeOf(ids[static_cast<std::size_t>(i)]); });
        batch.resize(array.size());
        for (index i = 0; i < array.size(); i++) {
            const auto id = static_cast<real>(ids[static_cast<std::size_t>(i)]);
            array[i].setConstant(id);
            batch.setRow(i, std::vector<Eigen::MatrixXd>{Eigen::MatrixXd::Constant(2, 1, id), Eigen::MatrixXd(0, 3)});
        }
        batch.compress();
    };
    const std::vector<index> ids = spreadIds(world(), 50, 1);
    Matrices array("matrices", world());
    ArrayEigenMatrixBatch batch("batch", world());
    fill(array, batch, ids);
    ArrayDof<5, 1> dof;
    dof.initPair("dof", world());
    dof.father->resize(static_cast<index>(ids.size()));
    for (index i = 0; i < dof.father->size(); i++)
        (*dof.father)[i].setConstant(static_cast<real>(ids[static_cast<std::size_t>(i)]));
    CheckpointWriter writer(world(), folder.file("matrices.h5"), smallBlocks);
    writer.add("matrices", array, ids);
    writer.add("batch", batch, ids);
    writer.add("dof", *dof.father, ids);
    writer.write();

    const std::vector<index> others = spreadIds(world(), 50, 2);
    Matrices expected("matrices", world()), found("found", world());
    ArrayEigenMatrixBatch expectedBatch("batch", world()), foundBatch("found", world());
    fill(expected, expectedBatch, others);
    const CheckpointReader reader(world(), folder.file("matrices.h5"));
    reader.read("matrices", found, others);
    reader.read("batch", foundBatch, others);
    reader.read("dof", *dof.father, others);
    EXPECT_EQ(found.hash(), expected.hash());
    EXPECT_EQ(foundBatch.hash(), expectedBatch.hash());
    for (index i = 0; i < found.size(); i++) {
        const index id = others[static_cast<std::size_t>(i)];
        EXPECT_EQ(found.matRowSize(i), shapeOf(id).first);
        EXPECT_EQ((*dof.father)[i](4), static_cast<real>(id));
    }
    // A damaged checkpoint changes nothing: matrices keep their shapes, too.
    world().barrier();
    if (world().rank() == 0) {
        std::string content = contentOf(reader.path());
        content[static_cast<std::size_t>(reader.array("matrices").values.values)] ^= 1;
        overwrite(reader.path(), content);
    }
    world().barrier();
    EXPECT_CONTAINS(failureOf<DataError>([&] { reader.read("matrices", found, ids); }), "matrices");
    EXPECT_EQ(found.hash(), expected.hash());
}

TEST(Checkpoint, IsWrittenAgainWithTheShapesOfThen) {
    using Matrices = ArrayEigenMatrix<NonUniformSize, NonUniformSize>;
    const TemporaryFolder folder;
    const std::vector<index> ids = spreadIds(world(), 20, 1);
    Matrices array("matrices", world()), found("found", world());
    CheckpointWriter writer(world(), folder.file("again.h5"), smallBlocks);
    writer.add("matrices", array, std::span<const index>(ids));
    for (const auto &[high, wide] : {std::pair<rowsize, rowsize>(2, 3), {3, 2}, {1, 4}}) {
        array.resize(static_cast<index>(ids.size()), [shape = std::pair(high, wide)](index) { return shape; });
        for (index i = 0; i < array.size(); i++)
            array[i](0, 1) = static_cast<real>(ids[static_cast<std::size_t>(i)]);
        writer.write();
        CheckpointReader(world(), folder.file("again.h5")).read("matrices", found, ids);
        EXPECT_EQ(found.hash(), array.hash());
        for (index i = 0; i < found.size(); i++)
            EXPECT_EQ(found[i].rows(), high);
    }
}

TEST(Checkpoint, TakesBlocksOfAnySize) {
    const TemporaryFolder folder;
    const std::vector<index> ids = spreadIds(world(), rows, 1);
    auto array = filled<Array<std::uint8_t, 1>>(ids, 1);
    CheckpointWriter writer(world(), folder.file("one.h5"), {.blockBytes = std::numeric_limits<index>::max()});
    writer.add("array", array, ids);
    writer.write();
    const CheckpointReader reader(world(), folder.file("one.h5"));
    EXPECT_EQ(reader.array("array").blocks(), 1);
    Array<std::uint8_t, 1> found;
    reader.read("array", found, ids);
    EXPECT_EQ(found.hash(), array.hash());
}

TEST(Checkpoint, ReplacesRowsThatAreCurrentOnTheDevice) {
    if (!Device::available())
        GTEST_SKIP() << "there is no device";
    const TemporaryFolder folder;
    const std::vector<index> ids = spreadIds(world(), rows, 1);
    auto array = filled<Array<real, 5>>(ids, 5);
    CheckpointWriter writer(world(), folder.file("device.h5"), smallBlocks);
    writer.add("array", array, ids);
    writer.write();
    auto target = filled<Array<real, 5>>(ids, 5);
    target.toDevice();
    static_cast<void>(target.rowLayout(MemorySpace::Device, Access::Write)); // as a kernel that writes
    EXPECT_EQ(target.valid(MemorySpace::Host), target.size() == 0);
    CheckpointReader(world(), folder.file("device.h5")).read("array", target, ids);
    EXPECT_EQ(target.hash(), array.hash());
}

TEST(Checkpoint, ReadsPaddedRowsIntoCsrAndBack) {
    const TemporaryFolder folder;
    const std::vector<index> ids = spreadIds(world(), rows, 1);
    const auto padded = filled<Array<real, NonUniformSize, 6>>(ids, 6);
    CheckpointWriter writer(world(), folder.file("a.h5"), smallBlocks);
    writer.add("array", padded, ids);
    writer.write();
    const CheckpointReader reader(world(), folder.file("a.h5"));
    const std::vector<index> others = spreadIds(world(), rows, 2);
    Array<real, NonUniformSize> csr;
    reader.read("array", csr, others);
    expectRows(csr, others, 0);
    Array<real, NonUniformSize, 3> narrow;
    narrow.setName("narrow");
    EXPECT_CONTAINS(failureOf<LayoutError>([&] { reader.read("array", narrow, others); }), "do not fit");
}

// ---------------------------------------------------------------------------------------------------------------------
// Errors

TEST(CheckpointErrors, AreTheSameOnAllRanks) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.h5");
    std::vector<index> ids = spreadIds(world(), rows, 1);
    auto array = filled<Array<real, 5>>(ids, 5);
    array.setName("five");
    const auto writing = [&](const std::vector<index> &of) {
        return failureOf<ArgumentError>([&] {
            CheckpointWriter writer(world(), path, smallBlocks);
            writer.add("array", array, of);
            writer.write();
        });
    };
    std::vector<index> bad = ids;
    if (!bad.empty() && world().rank() == 0)
        bad[0] = -4;
    EXPECT_CONTAINS(writing(bad), "id -4 is negative");
    bad = ids;
    if (world().rank() == 0)
        bad[1] = bad[0];
    EXPECT_CONTAINS(writing(bad), "two rows have the id");
    for (index &id : bad)
        id = 1000 * id + 7;
    EXPECT_CONTAINS(writing(bad), "two rows have the id");
    bad = ids;
    std::replace(bad.begin(), bad.end(), rows - 2, index{1}); // in the blocks of other ranks
    EXPECT_CONTAINS(writing(bad), "ids must be unique over all ranks");
    bad.resize(bad.size() > 0 ? bad.size() - 1 : 0);
    EXPECT_CONTAINS(writing(bad), "ids are given");
    if (world().size() > 1) {
        EXPECT_CONTAINS(failureOf<ArgumentError>([&] {
                            CheckpointWriter writer(world(), path);
                            writer.add(world().rank() == 1 ? "b" : "a", array, ids);
                            writer.write();
                        }),
                        "arrays, their order or their types differ between ranks");
        for (const CheckpointOptions &other :
             {CheckpointOptions{512}, CheckpointOptions{256, 7}, CheckpointOptions{256, {}, 1}})
            EXPECT_CONTAINS(failureOf<ArgumentError>([&] {
                                CheckpointWriter writer(world(), path, world().rank() == 1 ? other : smallBlocks);
                                writer.add("array", array, ids);
                                writer.write();
                            }),
                            "options (blockBytes, mesh, writers) differ between ranks");
    }
    EXPECT_CONTAINS(failureOf<ArgumentError>([&] {
                        CheckpointWriter writer(world(), path);
                        writer.add("a/b", array, ids);
                        writer.write();
                    }),
                    "must not be empty or contain /");
    EXPECT_CONTAINS(failureOf<DataError>([&] { CheckpointWriter(world(), folder.file("missing/a.h5")).write(); }),
                    "No such file or directory");
    Array<real, NonUniformSize> loose;
    loose.setName("loose");
    loose.resize(static_cast<index>(ids.size()));
    if (world().allReduce(loose.isCompressed() ? 1 : 0, MPI_MAX) == 0) {
        EXPECT_CONTAINS(failureOf<StateError>([&] {
                            CheckpointWriter writer(world(), path);
                            writer.add("loose", loose, ids);
                            writer.write();
                        }),
                        "compress");
    }
    world().barrier();
    EXPECT_TRUE(folder.names().empty());

    CheckpointWriter writer(world(), path, smallBlocks);
    writer.add("array", array, ids);
    writer.add("same", array, ids);
    writer.write();
    const CheckpointReader reader(world(), path);
    if (world().size() > 1) {
        EXPECT_CONTAINS(
            failureOf<ArgumentError>([&] { reader.read(world().rank() == 1 ? "same" : "array", array, ids); }),
            "read arrays in the same order on all ranks");
    }
    Array<float, 5> floats;
    Array<real, 4> four;
    Array<real, NonUniformSize> csr;
    EXPECT_CONTAINS(failureOf<LayoutError>([&] { reader.read("array", floats, ids); }),
                    "elements of array are float64[8]");
    EXPECT_CONTAINS(failureOf<LayoutError>([&] { reader.read("array", four, ids); }), "have 5 elements");
    EXPECT_CONTAINS(failureOf<LayoutError>([&] { reader.read("array", csr, ids); }), "differing sizes");
    EXPECT_CONTAINS(failureOf<ArgumentError>([&] { reader.read("arr", array, ids); }),
                    "array array: float64[8] x 5, 211 rows");
    bad = ids;
    if (world().rank() == 0)
        bad[0] = rows;
    EXPECT_CONTAINS(failureOf<DataError>([&] { reader.read("array", array, bad); }), "no row with the id 211");
    EXPECT_CONTAINS(failureOf<DataError>([&] { CheckpointReader(world(), folder.file("b.h5")); }),
                    "b.h5 cannot be opened: No such file");
}

} // namespace
} // namespace DNDS
