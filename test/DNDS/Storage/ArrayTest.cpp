#include "DNDS/Storage/Array.hpp"

#include "ArrayCases.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

namespace DNDS {
namespace {

using test::assign;
using test::expectRows;
using test::randomRows;
using test::Reference;

/// Runs with contents that change from run to run; a failure prints the seed.
template <class A>
class ArrayOfAnyLayout : public testing::Test {
  protected:
    Reference<A> rows(std::size_t count) { return randomRows<A>(random_, count); }

  private:
    const unsigned seed_ = std::random_device{}();
    std::mt19937 random_{seed_};
    const testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
};
TYPED_TEST_SUITE(ArrayOfAnyLayout, test::ArrayTypes);

template <class A>
std::string bytesOf(const A &array) {
    const auto *bytes = reinterpret_cast<const char *>(array.data());
    return bytes ? std::string(bytes, static_cast<std::size_t>(array.dataSize()) * sizeof(typename A::Element))
                 : std::string();
}

TYPED_TEST(ArrayOfAnyLayout, StartsEmpty) {
    TypeParam array;
    EXPECT_EQ(array.size(), 0);
    EXPECT_EQ(array.dataSize(), 0);
    EXPECT_TRUE(array.isCompressed());
    EXPECT_EQ(array.view().size(), 0);
    EXPECT_EQ(std::as_const(array).view().size(), 0);
    EXPECT_EQ(array.data(), nullptr);
    EXPECT_THROW(array(0, 0), IndexError);
    const RowLayout layout = array.rowLayout(MemorySpace::Host);
    EXPECT_EQ(layout.rows, 0);
    EXPECT_EQ(layout.signature, array.layoutHash());
    EXPECT_EQ(layout.parts[0].offsets != nullptr, TypeParam::layout == ArrayLayout::CSR);
}

TYPED_TEST(ArrayOfAnyLayout, HoldsWhatWasWritten) {
    TypeParam array;
    for (const std::size_t count : {std::size_t{37}, std::size_t{1}, std::size_t{0}, std::size_t{100}}) {
        const auto rows = this->rows(count);
        assign(array, rows);
        expectRows(array, rows);
    }
}

TYPED_TEST(ArrayOfAnyLayout, ViewsSeeTheSameElements) {
    TypeParam array;
    const auto rows = this->rows(37);
    assign(array, rows);
    const auto check = [&](const auto &view) {
        ASSERT_EQ(view.size(), array.size());
        for (index i = 0; i < view.size(); ++i) {
            ASSERT_EQ(view.rowSize(i), array.rowSize(i));
            ASSERT_EQ(view[i], std::as_const(array)[i]);
            ASSERT_TRUE(std::equal(view.row(i).begin(), view.row(i).end(), rows[static_cast<std::size_t>(i)].begin(),
                                   rows[static_cast<std::size_t>(i)].end()));
            ASSERT_EQ(array.row(i).data(), view.row(i).data());
            ASSERT_EQ(array.row(i).size(), view.row(i).size());
            for (rowsize j = 0; j < view.rowSize(i); ++j)
                ASSERT_EQ(&view(i, j), &std::as_const(array)(i, j));
        }
    };
    check(array.view());
    check(std::as_const(array).view());
    check(array.template deviceView<DeviceBackend::Host>());
    static_assert(std::is_trivially_copyable_v<typename TypeParam::View>);
    static_assert(std::is_trivially_copyable_v<typename TypeParam::ConstView>);
    static_assert(std::is_same_v<decltype(std::as_const(array).view()), typename TypeParam::ConstView>);
}

TYPED_TEST(ArrayOfAnyLayout, RowsStartWhereTheyAreAligned) {
    TypeParam array;
    assign(array, this->rows(11));
    for (index i = 0; i < array.size(); ++i) {
        const auto address = reinterpret_cast<std::uintptr_t>(std::as_const(array)[i]);
        if (TypeParam::alignStatic != NoAlign) {
            EXPECT_EQ(address % static_cast<std::uintptr_t>(TypeParam::alignStatic), 0U);
        }
        EXPECT_EQ(std::as_const(array)[i], std::as_const(array).data() + array.rowStart(i));
    }
}

TYPED_TEST(ArrayOfAnyLayout, ChecksBoundsInEveryBuild) {
    TypeParam array;
    array.setName("nodes");
    assign(array, this->rows(5));
    const TypeParam &constant = array;
    for (const index i : {index{-1}, index{5}, InvalidIndex}) {
        EXPECT_THROW(array(i, 0), IndexError);
        EXPECT_THROW(constant(i, 0), IndexError);
        EXPECT_THROW(array[i], IndexError);
        EXPECT_THROW(constant[i], IndexError);
        EXPECT_THROW(array.row(i), IndexError);
        EXPECT_THROW(static_cast<void>(array.rowSize(i)), IndexError);
        EXPECT_THROW(array.resizeRow(i, 0), IndexError);
    }
    for (index i = 0; i < 5; ++i) {
        EXPECT_THROW(array(i, array.rowSize(i)), IndexError);
        EXPECT_THROW(constant(i, array.rowSize(i)), IndexError);
        EXPECT_THROW(constant(i, -1), IndexError);
    }
    try {
        static_cast<void>(constant(3, 100));
        FAIL();
    } catch (const IndexError &error) {
        EXPECT_NE(error.message().find("nodes"), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("100"), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("row 3"), std::string::npos) << error.message();
    }
}

TYPED_TEST(ArrayOfAnyLayout, CopiesAreDeep) {
    TypeParam array;
    array.setName("u");
    const auto rows = this->rows(20);
    const auto others = this->rows(20);
    assign(array, rows);
    const TypeParam copied(array);
    EXPECT_EQ(copied.name(), "u");
    TypeParam assigned;
    assigned = array;
    EXPECT_EQ(assigned.name(), "u");
    TypeParam cloned;
    cloned.setName("u0");
    cloned.clone(array);
    EXPECT_EQ(cloned.name(), "u0") << "a clone keeps its name";
    assign(array, others);
    expectRows(copied, rows);
    expectRows(assigned, rows);
    expectRows(cloned, rows);
    cloned.clone(array);
    expectRows(cloned, others);
    const TypeParam &self = cloned;
    cloned = self;
    expectRows(cloned, others);
}

TYPED_TEST(ArrayOfAnyLayout, MovesLeaveAnEmptyUsableArray) {
    TypeParam array;
    array.setName("u");
    const auto rows = this->rows(20);
    assign(array, rows);
    const std::uint64_t generation = array.generation();
    TypeParam moved(std::move(array));
    expectRows(moved, rows);
    EXPECT_EQ(moved.generation(), generation);
    EXPECT_EQ(moved.name(), "u");
    EXPECT_EQ(array.size(), 0); // NOLINT(bugprone-use-after-move): documented
    EXPECT_EQ(array.dataSize(), 0);
    EXPECT_NE(array.generation(), generation);
    assign(array, rows);
    expectRows(array, rows);
    TypeParam target;
    assign(target, this->rows(3));
    target = std::move(moved);
    expectRows(target, rows);
    EXPECT_EQ(target.generation(), generation);
    EXPECT_EQ(moved.size(), 0); // NOLINT(bugprone-use-after-move): documented
    static_assert(std::is_nothrow_move_constructible_v<TypeParam> && std::is_nothrow_move_assignable_v<TypeParam>);
}

TYPED_TEST(ArrayOfAnyLayout, SwapExchangesEverything) {
    TypeParam a;
    TypeParam b;
    a.setName("a");
    b.setName("b");
    const auto rowsA = this->rows(20);
    const auto rowsB = this->rows(7);
    assign(a, rowsA);
    assign(b, rowsB);
    const std::uint64_t generationA = a.generation();
    const std::uint64_t generationB = b.generation();
    a.swapData(b);
    expectRows(a, rowsB);
    expectRows(b, rowsA);
    EXPECT_EQ(a.generation(), generationB);
    EXPECT_EQ(b.generation(), generationA);
    EXPECT_EQ(a.name(), "a") << "names stand for the variables";
    swap(a, b);
    expectRows(a, rowsA);
    EXPECT_EQ(a.name(), "b");

    // with an array that never had rows: its unchosen width must travel, too
    TypeParam empty;
    const rowsize width = a.width();
    a.swapData(empty);
    EXPECT_EQ(a.size(), 0);
    EXPECT_EQ(a.width(), TypeParam().width());
    EXPECT_EQ(empty.width(), width);
    expectRows(empty, rowsA);
}

TYPED_TEST(ArrayOfAnyLayout, HashSeesSizesAndValues) {
    TypeParam a;
    auto rows = this->rows(20);
    assign(a, rows);
    TypeParam b;
    assign(b, rows);
    EXPECT_EQ(a.hash(), b.hash());
    std::set<std::uint64_t> hashes{a.hash()};
    if (!rows.back().empty()) {
        rows.back().back() = test::makeElement<typename TypeParam::Element>(
            rows.back().back() == test::makeElement<typename TypeParam::Element>(1) ? 2 : 1);
        assign(b, rows);
        EXPECT_TRUE(hashes.insert(b.hash()).second);
    }
    rows.emplace_back(isFixedLayout(TypeParam::layout) ? rows.back().size() : 0);
    assign(b, rows);
    EXPECT_TRUE(hashes.insert(b.hash()).second) << "an empty row counts";
    EXPECT_TRUE(hashes.insert(TypeParam().hash()).second);
    EXPECT_EQ(TypeParam().hash(), TypeParam().hash());
}

TYPED_TEST(ArrayOfAnyLayout, ResizeKeepsRowsAndZeroesNewOnes) {
    if constexpr (TypeParam::layout != ArrayLayout::CSR) {
        TypeParam array;
        auto rows = this->rows(20);
        assign(array, rows);
        for (const std::size_t count : {std::size_t{20}, std::size_t{12}, std::size_t{30}, std::size_t{0}}) {
            const std::uint64_t generation = array.generation();
            const bool same = count == rows.size();
            array.resize(static_cast<index>(count));
            if (array.dataSize() > 0) {
                EXPECT_EQ(array.generation() == generation, same);
            }
            const std::size_t newSize =
                isFixedLayout(TypeParam::layout) ? static_cast<std::size_t>(array.rowSizeMax()) : 0;
            rows.resize(count, std::vector<typename TypeParam::Element>(newSize));
            expectRows(array, rows);
        }
    }
}

TYPED_TEST(ArrayOfAnyLayout, MovesToOtherHostMemory) {
    const auto pool = std::make_shared<std::pmr::monotonic_buffer_resource>();
    TypeParam array;
    const auto rows = this->rows(20);
    assign(array, rows);
    const std::uint64_t generation = array.generation();
    array.rehost(pool);
    expectRows(array, rows);
    EXPECT_NE(array.generation(), generation);
    const auto others = this->rows(25);
    assign(array, others);
    expectRows(array, others);
    const TypeParam copied(array);
    expectRows(copied, others);
    array.rehost(nullptr);
    expectRows(array, others);
}

TYPED_TEST(ArrayOfAnyLayout, RowLayoutLeadsToTheRows) {
    TypeParam array;
    assign(array, this->rows(20));
    const std::size_t bytes = sizeof(typename TypeParam::Element);
    const RowLayout layout = std::as_const(array).rowLayout(MemorySpace::Host);
    EXPECT_EQ(layout.rows, 20);
    EXPECT_EQ(layout.space, MemorySpace::Host);
    EXPECT_EQ(layout.partCount, isPaddedLayout(TypeParam::layout) ? 2 : 1);
    const RowPart &data = layout.parts[0];
    EXPECT_EQ(data.elementBytes, bytes);
    EXPECT_EQ(data.generation, array.generation());
    EXPECT_EQ(data.kind, elementKindOf<typename TypeParam::Element>());
    for (index i = 0; i < 20; ++i) {
        EXPECT_EQ(data.base + data.begin(i), reinterpret_cast<const std::byte *>(std::as_const(array)[i]));
        if (data.offsets) {
            EXPECT_EQ(data.offsets[i + 1] - data.offsets[i], array.rowSize(i));
        } else {
            EXPECT_GE(data.stride, static_cast<std::size_t>(array.rowSize(i)) * bytes);
        }
        if (isPaddedLayout(TypeParam::layout)) {
            const RowPart &sizes = layout.parts[1];
            EXPECT_EQ(sizes.stride, sizeof(rowsize));
            EXPECT_EQ(sizes.kind, ElementKind::Int32);
            EXPECT_EQ(reinterpret_cast<const rowsize *>(sizes.base)[i], array.rowSize(i));
        }
    }
    EXPECT_EQ(array.rowLayout(MemorySpace::Host, Access::Write).signature, layout.signature);
    EXPECT_EQ(layout.signature != array.layoutHash(), hasRunTimeWidth(TypeParam::layout))
        << "run-time widths are part of the signature";
}

TYPED_TEST(ArrayOfAnyLayout, EqualContentsLookEqualInMemory) {
    TypeParam a;
    TypeParam b;
    const auto rows = this->rows(20);
    assign(a, rows);
    assign(b, this->rows(30));
    b.resize(0);
    assign(b, rows);
    EXPECT_EQ(bytesOf(a), bytesOf(b)) << "padding is zero whatever was there before";
}

} // namespace
} // namespace DNDS
