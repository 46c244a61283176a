#include "DNDS/Storage/ArrayBase.hpp"

#include "CountingMemory.hpp"

#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Storage/Array.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using Csr = Array<index, NonUniformSize>;
using Padded = Array<real, NonUniformSize, 4>;
using PaddedAtRunTime = Array<real, NonUniformSize, DynamicSize>;
using Fixed = Array<real, DynamicSize>;
using Static = Array<real, 5>;

static_assert(!std::is_default_constructible_v<ArrayBase> && !std::is_copy_constructible_v<ArrayBase> &&
                  !std::is_destructible_v<ArrayBase>,
              "an array without element type exists only as the base of one with it");

template <class Exception, class Call>
std::string messageOf(Call &&call) {
    try {
        call();
    } catch (const Exception &error) {
        return error.message();
    }
    ADD_FAILURE() << "did not throw what it should";
    return {};
}

template <class A>
std::vector<rowsize> sizesOf(const A &array) {
    std::vector<rowsize> sizes;
    for (index i = 0; i < array.size(); ++i)
        sizes.push_back(array.rowSize(i));
    return sizes;
}

TEST(ArrayNames, AppearInMessages) {
    Static array;
    EXPECT_NE(messageOf<ArgumentError>([&] { array.resize(-1); }).find("unnamed array"), std::string::npos);
    array.setName("temperature");
    EXPECT_NE(messageOf<ArgumentError>([&] { array.resize(-1); }).find("temperature"), std::string::npos);
}

/// Calls each function and fails the test unless it gives the array a version that it never had.
template <class A>
void expectNewVersions(A &array, const std::vector<std::function<void()>> &writes) {
    std::set<std::uint64_t> seen{array.version()};
    for (std::size_t i = 0; i < writes.size(); ++i) {
        writes[i]();
        EXPECT_TRUE(seen.insert(array.version()).second) << "write " << i;
        EXPECT_FALSE(seen.insert(array.version()).second) << "asked again after write " << i;
    }
}

TEST(ArrayVersions, MoveWithEveryWayOfWriting) {
    Static array;
    array.resize(4);
    Static other(array);
    expectNewVersions(array,
                      {[&] { array(1, 2) = 3; }, [&] { array(1) = 3; }, [&] { *array[2] = 1; },
                       [&] { array.row(0)[1] = 1; }, [&] { array.data()[0] = 1; }, [&] { (void)array.view(); },
                       [&] { (void)array.rowLayout(MemorySpace::Host, Access::Write); }, [&] { array.resize(5); },
                       [&] { array.resize(4); }, [&] { array.clone(other); }, [&] { array = other; },
                       [&] { swap(array, other); }, [&] { array = Static(); }, [&] { array.markWritten(); }});
    Padded padded;
    padded.resize(3, [](index) { return 1; });
    expectNewVersions(padded, {[&] { padded.resizeRow(0, 3); }, [&] { padded.resizeRow(0, 2); },
                               [&] { padded.appendToRow(1, 4.0); }, [&] { padded.resize(3, [](index) { return 2; }); },
                               [&] { padded.resize(6); }});
    Csr csr;
    expectNewVersions(csr, {[&] { csr.resize(3, [](index i) { return i; }); }, [&] { csr(2, 1) = 4; },
                            [&] { csr.decompress(); }, [&] { csr.resizeRow(0, 2); }, [&] { csr.appendToRow(0, 5); },
                            [&] { csr(0, 1) = 4; }, [&] { *csr[0] = 4; }, [&] { csr.resize(4); },
                            [&] { csr.compress(); }, [&] { csr.resize(2, 3); }});
    Fixed narrow;
    narrow.resize(2, 0);
    expectNewVersions(narrow, {[&] { narrow.resize(5); }, [&] { narrow.resize(5, 2); }});
}

TEST(ArrayVersions, StayWhereNothingIsWritten) {
    Csr csr;
    csr.resize(3, [](index i) { return i; });
    const Csr &constant = csr;
    const std::uint64_t version = csr.version();
    for (const auto &read : std::vector<std::function<void()>>{
             [&] { (void)constant(2, 1); }, [&] { (void)constant[1]; }, [&] { (void)constant.row(2); },
             [&] { (void)constant.data(); }, [&] { (void)constant.view(); }, [&] { (void)csr.hash(); },
             [&] { (void)csr.rowLayout(MemorySpace::Host, Access::Read); },
             [&] { (void)constant.rowLayout(MemorySpace::Host); }, [&] { (void)Csr(csr); }, [&] { csr.compress(); },
             [&] { csr.toHost(); }, [&] { csr.rehost(std::make_shared<test::CountingMemory>()); },
             [&] { EXPECT_THROW(csr(7, 0) = 1, IndexError); }, [&] { csr.setName("csr"); },
             [&] { csr = Csr(std::move(csr)); }}) {
        read();
        EXPECT_EQ(csr.version(), version);
    }
    Csr moved(std::move(csr));
    EXPECT_EQ(moved.version(), version);
    EXPECT_NE(csr.version(), version); // NOLINT(bugprone-use-after-move): documented
    Static array;
    array.resize(3);
    const std::uint64_t before = array.version();
    array.resize(3);
    array.resize(3, 5);
    EXPECT_EQ(array.version(), before) << "the same size";
}

TEST(ArrayVersions, OnTheDevice) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    Static array;
    array.resize(4);
    const std::uint64_t version = array.version();
    array.toDevice();
    (void)std::as_const(array).deviceView<DeviceBackend::CUDA>();
    (void)array.rowLayout(MemorySpace::Device, Access::Read);
    EXPECT_EQ(array.version(), version);
    expectNewVersions(array, {[&] { (void)array.deviceView<DeviceBackend::CUDA>(); },
                              [&] { (void)array.rowLayout(MemorySpace::Device, Access::Write); }});
    const std::uint64_t written = array.version();
    array.toHost();
    EXPECT_EQ(array.version(), written);
}

TEST(ArrayRowCounts, MustBeAddressable) {
    constexpr index largest = std::numeric_limits<index>::max();
    const auto tooMany = [](auto &array, auto... width) {
        for (const index rows : {index{-1}, InvalidIndex, largest, largest / 8, largest / 64})
            EXPECT_THROW(array.resize(rows, width...), ArgumentError) << rows;
        EXPECT_EQ(array.size(), 0);
    };
    Array<std::array<real, 8>, 5> blocks;
    tooMany(blocks);
    Array<std::array<real, 8>, DynamicSize> fixed;
    tooMany(fixed, 3);
    Array<std::array<real, 8>, NonUniformSize, 4> padded;
    tooMany(padded);
    Array<std::array<real, 8>, NonUniformSize> csr;
    tooMany(csr, 3);
    EXPECT_THROW(csr.resize(-1), ArgumentError);
    EXPECT_THROW(csr.resize(-1, [](index) { return 1; }), ArgumentError);
    Array<real, 0> zeroWidth;
    zeroWidth.resize(1000000);
    EXPECT_EQ(zeroWidth.rowSize(999999), 0);
    EXPECT_EQ(zeroWidth.dataSize(), 0);
}

TEST(ArrayRowCounts, ThatMemoryCannotHoldChangeNothing) {
    const auto memory = std::make_shared<test::CountingMemory>();
    Static array;
    Padded padded;
    Csr csr;
    array.rehost(memory);
    padded.rehost(memory);
    csr.rehost(memory);
    array.resize(2);
    array(1, 4) = 3.0;
    padded.resize(2, [](index) { return 3; });
    csr.resize(2);
    csr.appendToRow(1, 8);
    memory->exhausted = true;
    EXPECT_THROW(array.resize(20), MemoryError);
    EXPECT_EQ(array.size(), 2);
    EXPECT_EQ(array(1, 4), 3.0);
    EXPECT_THROW(padded.resize(20), MemoryError);
    EXPECT_THROW(padded.resize(3, [](index) { return 1; }), MemoryError);
    EXPECT_EQ(sizesOf(padded), (std::vector<rowsize>{3, 3}));
    EXPECT_THROW(csr.compress(), MemoryError);
    EXPECT_FALSE(csr.isCompressed());
    EXPECT_EQ(csr(1, 0), 8);
}

TEST(ArrayOfFixedWidth, NeedsAWidthBeforeRows) {
    Fixed array;
    EXPECT_EQ(array.width(), DynamicSize);
    EXPECT_EQ(array.rowSize(), 0);
    array.resize(0);
    EXPECT_NE(messageOf<StateError>([&] { array.resize(3); }).find("resize(rows, width)"), std::string::npos);
    EXPECT_THROW(array.resize(3, DynamicSize), ArgumentError);
    EXPECT_THROW(array.resize(3, -5), ArgumentError);
    array.resize(3, 2);
    EXPECT_EQ(array.rowSize(), 2);
    EXPECT_EQ(array.rowSizeMax(), 2);
    EXPECT_EQ(array.dataSize(), 6);
    EXPECT_THROW(array.resize(3, [](index) { return 2; }), LayoutError);
    array.resizeRow(1, 2);
    EXPECT_THROW(array.resizeRow(1, 1), ArgumentError);
}

TEST(ArrayOfFixedWidth, StartsOverWithAnotherWidth) {
    Fixed array;
    array.resize(6, 4);
    array(5, 3) = 1.0;
    const std::uint64_t generation = array.generation();
    array.resize(4, 6);
    EXPECT_NE(array.generation(), generation) << "as many bytes, but rows lie elsewhere";
    for (index i = 0; i < 4; ++i)
        for (rowsize j = 0; j < 6; ++j)
            EXPECT_EQ(array(i, j), 0.0);
    Fixed other;
    other.resize(6, 4);
    const std::uint64_t beforeClone = other.generation();
    other.clone(array);
    EXPECT_NE(other.generation(), beforeClone);
    const std::uint64_t afterClone = other.generation();
    other.clone(array);
    EXPECT_EQ(other.generation(), afterClone) << "rows stay where they are";
}

TEST(ArrayOfStaticWidth, AcceptsOnlyItsWidth) {
    Static array;
    array.resize(3, 5);
    EXPECT_EQ(array.size(), 3);
    EXPECT_EQ(array.rowSize(), 5);
    EXPECT_THROW(array.resize(3, 4), ArgumentError);
    EXPECT_THROW(array.resizeRow(0, 4), ArgumentError);
    EXPECT_EQ(array.rowStart(2), 10);
    EXPECT_THROW(static_cast<void>(array.rowStart(3)), IndexError);
}

TEST(PaddedArray, RowsGrowAndShrinkWithinTheirRoom) {
    Padded array;
    array.resize(3);
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{0, 0, 0})) << "new rows are empty";
    EXPECT_EQ(array.rowSizeMax(), 4);
    EXPECT_THROW(static_cast<void>(array.rowSize()), LayoutError);
    array.resizeRow(1, 3);
    array(1, 0) = 1.0;
    array(1, 2) = 3.0;
    array.appendToRow(1, 4.0);
    EXPECT_EQ(array.rowSize(1), 4);
    EXPECT_EQ(array(1, 3), 4.0);
    EXPECT_THROW(array.appendToRow(1, 5.0), ArgumentError);
    EXPECT_THROW(array.resizeRow(1, 5), ArgumentError);
    EXPECT_THROW(array.resizeRow(1, -1), ArgumentError);
    EXPECT_EQ(array.rowSize(1), 4);
    array.resizeRow(1, 1);
    array.resizeRow(1, 4);
    EXPECT_EQ(array(1, 0), 1.0);
    EXPECT_EQ(array(1, 2), 0.0) << "what a row loses does not come back";
    EXPECT_EQ(array(1, 3), 0.0);
    array.compress();
    array.decompress();
    EXPECT_TRUE(array.isCompressed());
}

TEST(PaddedArray, TakesSizesFromAFunction) {
    PaddedAtRunTime array;
    EXPECT_THROW(array.resize(3, [](index i) { return i; }), StateError) << "no maximum yet";
    array.resize(3, 4, [](index i) { return i; });
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{0, 1, 2}));
    EXPECT_EQ(array.rowSizeMax(), 4);
    array(2, 1) = 8.0;
    array.resize(4, [](index) { return 4; });
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{4, 4, 4, 4}));
    EXPECT_EQ(array(2, 1), 0.0) << "starts over";
    EXPECT_NE(messageOf<ArgumentError>([&] { array.resize(4, [](index i) { return i == 2 ? 5 : 1; }); }).find("row 2"),
              std::string::npos);
    EXPECT_THROW(array.resize(4, [](index i) { return i == 2 ? -1 : 1; }), ArgumentError);
    EXPECT_THROW(array.resize(4, [](index) { return index{1} << 40; }), ArgumentError);
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{4, 4, 4, 4})) << "a failure changes nothing";
    array.resize(2);
    array.resize(3);
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{4, 4, 0}));
    array.resize(3, 6);
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{0, 0, 0})) << "another maximum starts over";
}

TEST(PaddedArray, CopiesKeepRowSizesOfTheirOwn) {
    Padded a;
    a.resize(3, [](index i) { return i + 1; });
    Padded b;
    b.resize(3, [](index) { return 1; });
    b.clone(a);
    a.resizeRow(0, 4);
    EXPECT_EQ(sizesOf(b), (std::vector<rowsize>{1, 2, 3}));
    Padded other;
    other.resize(2, [](index) { return 2; });
    other.swapData(b);
    EXPECT_EQ(sizesOf(other), (std::vector<rowsize>{1, 2, 3}));
    EXPECT_EQ(sizesOf(b), (std::vector<rowsize>{2, 2}));
}

TEST(CsrArray, GrowsRowByRowWhileDecompressed) {
    Csr array;
    array.setName("cellNodes");
    array.resize(3);
    EXPECT_FALSE(array.isCompressed());
    array.resizeRow(0, 2);
    array(0, 1) = 11;
    array.appendToRow(2, 5);
    array.appendToRow(2, 6);
    array.appendToRow(2, array(2, 0));
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{2, 0, 3}));
    EXPECT_EQ(array.dataSize(), 5);
    EXPECT_EQ(array.rowSizeMax(), 3);
    EXPECT_EQ(array(2, 2), 5);

    for (const std::string &message :
         {messageOf<StateError>([&] { array.view(); }), messageOf<StateError>([&] { std::as_const(array).view(); }),
          messageOf<StateError>([&] { array.data(); }),
          messageOf<StateError>([&] { static_cast<void>(array.rowStart(0)); }),
          messageOf<StateError>([&] { array.rowLayout(MemorySpace::Host, Access::Read); }),
          messageOf<StateError>([&] { array.rowLayout(MemorySpace::Host, Access::Write); }),
          messageOf<StateError>([&] { array.toDevice(); })}) {
        EXPECT_NE(message.find("cellNodes"), std::string::npos) << message;
        EXPECT_NE(message.find("compress()"), std::string::npos) << message;
    }

    array.resize(4); // keeps the rows
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{2, 0, 3, 0}));
    array.compress();
    EXPECT_TRUE(array.isCompressed());
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{2, 0, 3, 0}));
    EXPECT_EQ(array.rowStart(4), 5);
    EXPECT_EQ(array.rowStart(2), 2);
    EXPECT_EQ(array(0, 1), 11);
    EXPECT_THROW(array.resizeRow(0, 1), StateError);
    EXPECT_THROW(array.appendToRow(0, 1), StateError);

    array.decompress();
    array.resizeRow(0, 1);
    array.resize(2);
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{1, 0}));
    EXPECT_THROW(array.resizeRow(0, -1), ArgumentError);
}

TEST(CsrArray, IsCompressedWhenAllSizesAreGivenAtOnce) {
    Csr array;
    array.resize(4, [](index i) { return i % 2; });
    EXPECT_TRUE(array.isCompressed());
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{0, 1, 0, 1}));
    array.resize(2, 3);
    EXPECT_TRUE(array.isCompressed());
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{3, 3}));
    EXPECT_THROW(array.resize(2, -1), ArgumentError);
    EXPECT_THROW(array.resize(2, [](index) { return -1; }), ArgumentError);
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{3, 3}));
    array.resize(3);
    EXPECT_FALSE(array.isCompressed()) << "rows may get their sizes now";
    EXPECT_EQ(sizesOf(array), (std::vector<rowsize>{3, 3, 0}));
}

TEST(CsrArray, CompressingChangesTheGeneration) {
    Csr array;
    array.resize(2, [](index i) { return i == 0 ? 1 : 3; });
    const std::uint64_t generation = array.generation();
    array.decompress();
    array.resizeRow(0, 3);
    array.resizeRow(1, 1);
    array.compress();
    EXPECT_NE(array.generation(), generation) << "as many bytes, but rows lie elsewhere";

    Csr other;
    other.resize(2, [](index i) { return i == 0 ? 1 : 3; });
    const std::uint64_t beforeClone = other.generation();
    other.clone(array);
    EXPECT_NE(other.generation(), beforeClone);
}

TEST(CsrArray, StateTravelsWithCopiesMovesAndSwaps) {
    Csr loose;
    loose.resize(2);
    loose.appendToRow(1, 4);
    Csr packed;
    packed.resize(1, 1);

    Csr copied(loose);
    loose.appendToRow(1, 5);
    EXPECT_FALSE(copied.isCompressed());
    EXPECT_EQ(sizesOf(copied), (std::vector<rowsize>{0, 1}));
    copied.swapData(packed);
    EXPECT_TRUE(copied.isCompressed());
    EXPECT_FALSE(packed.isCompressed());
    EXPECT_EQ(packed(1, 0), 4);
    Csr moved(std::move(packed));
    EXPECT_FALSE(moved.isCompressed());
    EXPECT_EQ(moved(1, 0), 4);
    moved.clone(copied);
    EXPECT_TRUE(moved.isCompressed());
    EXPECT_EQ(sizesOf(moved), (std::vector<rowsize>{1}));
    copied.clone(loose);
    EXPECT_EQ(sizesOf(copied), (std::vector<rowsize>{0, 2}));
}

TEST(CsrArray, WithoutRowsCompressesToo) {
    Csr array;
    array.decompress();
    EXPECT_FALSE(array.isCompressed());
    array.compress();
    EXPECT_EQ(array.view().size(), 0);
    EXPECT_EQ(array.rowStart(0), 0);
    array.resize(5);
    array.compress();
    EXPECT_EQ(array.dataSize(), 0);
    EXPECT_EQ(array.view().rowSize(4), 0);
    EXPECT_EQ(array.rowStart(5), 0);
}

TEST(ArrayHash, IsTheSameInEveryLayoutAndState) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Csr csr;
    Array<index, NonUniformSize, 9> padded;
    Array<index, NonUniformSize, DynamicSize, 64> aligned;
    csr.resize(50);
    padded.resize(50);
    aligned.resize(50, 9);
    for (index i = 0; i < 50; ++i)
        for (auto count = random() % 10; count > 0; --count) {
            const auto value = static_cast<index>(random());
            csr.appendToRow(i, value);
            padded.appendToRow(i, value);
            aligned.appendToRow(i, value);
        }
    const std::uint64_t loose = csr.hash();
    csr.compress();
    EXPECT_EQ(csr.hash(), loose);
    EXPECT_EQ(padded.hash(), loose);
    EXPECT_EQ(aligned.hash(), loose);
    csr.decompress();
    EXPECT_EQ(csr.hash(), loose);
    csr.appendToRow(7, 1);
    EXPECT_NE(csr.hash(), loose);
}

TEST(ArrayHash, TellsWhereARowEnds) {
    Csr a;
    a.resize(2, [](index i) { return i == 0 ? 1 : 2; });
    Csr b;
    b.resize(2, [](index i) { return i == 0 ? 2 : 1; });
    EXPECT_NE(a.hash(), b.hash());
}

TEST(ArrayShapes, AreAdoptedByEmptyArrays) {
    Fixed father;
    father.resize(3, 6);
    Fixed son;
    EXPECT_EQ(son.rowLayout(MemorySpace::Host).signature, son.layoutHash());
    EXPECT_NE(son.rowLayout(MemorySpace::Host).signature, father.rowLayout(MemorySpace::Host).signature);
    son.adoptShape(father);
    EXPECT_EQ(son.size(), 0);
    EXPECT_EQ(son.rowLayout(MemorySpace::Host).signature, father.rowLayout(MemorySpace::Host).signature);
    son.resize(2);
    EXPECT_EQ(son.rowSize(), 6);
    son.adoptShape(father);
    son.adoptShape(Fixed());
    EXPECT_EQ(son.rowSize(), 6) << "there is nothing to adopt";
    father.resize(3, 7);
    EXPECT_THROW(son.adoptShape(father), StateError);
    son.resize(0);
    son.adoptShape(father);
    EXPECT_EQ(son.width(), 7);

    PaddedAtRunTime paddedFather;
    paddedFather.resize(1, 5);
    PaddedAtRunTime paddedSon;
    paddedSon.adoptShape(paddedFather);
    paddedSon.resize(4);
    paddedSon.resizeRow(3, 5);
    EXPECT_THROW(paddedSon.adoptShape(father), LayoutError);
}

TEST(ArrayUninitialized, IsAsWideAsAskedAndInItsMemory) {
    const auto memory = std::make_shared<test::CountingMemory>();
    Fixed array;
    array.rehost(memory);
    array.resize(2, 3);
    const std::uint64_t before = array.version();
    array.resizeUninitialized(100, 7);
    EXPECT_EQ(array.size(), 100);
    EXPECT_EQ(array.width(), 7);
    EXPECT_NE(array.version(), before);
    EXPECT_EQ(memory->live, 700 * sizeof(real));
    for (index i = 0; i < array.size(); ++i)
        for (rowsize j = 0; j < 7; ++j)
            array(i, j) = static_cast<real>(7 * i + j);
    EXPECT_EQ(array(99, 6), 699);
    array.resize(101);
    EXPECT_EQ(array(99, 6), 699);
    EXPECT_EQ(array(100, 0), 0) << "later rows are zero as ever";
    EXPECT_THROW(array.resizeUninitialized(-1, 7), ArgumentError);
    EXPECT_THROW(array.resizeUninitialized(1, -7), ArgumentError);
    EXPECT_THROW(Static().resizeUninitialized(1, 4), ArgumentError) << "it has 5 elements a row";
    EXPECT_THROW(Csr().resizeUninitialized(1, 4), LayoutError);
    EXPECT_THROW(PaddedAtRunTime().resizeUninitialized(1, 4), LayoutError);
    EXPECT_EQ(array.size(), 101);
}

} // namespace
} // namespace DNDS
