/// @file DerivedCase.hpp
/// @brief Checks common to all arrays of vectors, matrices, batches and adjacencies.
#pragma once

#include "DNDS/Array/ArrayAdjacency.hpp"
#include "DNDS/Array/ArrayMatrices.hpp"
#include "PairCases.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace DNDS::test {

/// A size that differs between rows where it may, or is static, or is chosen.
inline rowsize sizeOf(rowsize declared, rowsize most, index varying) {
    if (declared != NonUniformSize)
        return declared < 0 ? most : declared;
    return static_cast<rowsize>(varying % (most + 1));
}

/// Gives an array this rank's rows, of sizes that are static, chosen to be `width`, or those of `sizes`.
template <class TArray, class Sizes>
void giveRows(TArray &array, rowsize width, const Sizes &sizes) {
    if constexpr (TArray::layout == ArrayLayout::StaticFixed)
        array.resize(ownedRows());
    else if constexpr (TArray::layout == ArrayLayout::Fixed)
        array.resize(ownedRows(), width);
    else if constexpr (TArray::layout == ArrayLayout::Max)
        array.resize(ownedRows(), width, sizes);
    else
        array.resize(ownedRows(), sizes);
}

/// Makes, fills and compares rows of one kind of array. `give` gives an array this rank's rows, with shapes that
/// no son can guess; `fill` and `expectRow` are of a row that is a copy of a global one, in a version of the contents.
template <class TArray>
struct Rows;

/// Rows that are one matrix.
template <class TArray>
struct MatrixRows {
    static Eigen::MatrixXd matrixOf(index global, int round = 0) {
        const MatrixShape shape = Rows<TArray>::shapeOf(global);
        Eigen::MatrixXd matrix(shape.rows, shape.cols);
        for (index j = 0; j < matrix.size(); ++j)
            matrix(j) = valueOf(global, j, round);
        return matrix;
    }
    static void fill(TArray &array, index i, index global, int round) { array[i] = matrixOf(global, round); }
    template <class Any>
    static void expectRow(const Any &rows, index i, index global, int round) {
        expectEqual(rows[i], matrixOf(global, round));
    }
    static void expectNew(const TArray &son, index ghost, index global) {
        ASSERT_EQ(son.matrixShape(ghost), Rows<TArray>::shapeOf(global));
    }
};

template <rowsize size, rowsize max, int align>
struct Rows<ArrayEigenVector<size, max, align>> : MatrixRows<ArrayEigenVector<size, max, align>> {
    using Array = ArrayEigenVector<size, max, align>;
    static MatrixShape shapeOf(index global) { return {sizeOf(size, max > 0 ? max : 4, 3 * global), 1}; }
    static void give(Array &a) {
        giveRows(a, 4, [](index i) { return shapeOf(firstRow() + i).rows; });
    }
};

template <rowsize m, rowsize n, rowsize mMax, rowsize nMax, int align>
struct Rows<ArrayEigenMatrix<m, n, mMax, nMax, align>> : MatrixRows<ArrayEigenMatrix<m, n, mMax, nMax, align>> {
    using Array = ArrayEigenMatrix<m, n, mMax, nMax, align>;
    static MatrixShape shapeOf(index global) {
        return {sizeOf(m, mMax > 0 ? mMax : 3, 5 * global + 1),
                sizeOf(n, nMax > 0 ? nMax : 2, 5 * global + global / 3)};
    }
    static void give(Array &a) {
        const auto shapes = [](index i) { return shapeOf(firstRow() + i); };
        if constexpr (Array::layout == ArrayLayout::StaticFixed)
            a.resize(ownedRows());
        else if constexpr (Array::layout == ArrayLayout::Fixed)
            a.resize(ownedRows(), shapeOf(0).rows, shapeOf(0).cols);
        else if constexpr (Array::layout == ArrayLayout::Max)
            a.resize(ownedRows(), 3, 2, shapes);
        else
            a.resize(ownedRows(), shapes);
    }
};

template <>
struct Rows<ArrayEigenMatrixBatch> {
    using Array = ArrayEigenMatrixBatch;
    /// 0 to 3 matrices, some of them without elements.
    static std::vector<Eigen::MatrixXd> matricesOf(index global, int round = 0) {
        std::vector<Eigen::MatrixXd> matrices;
        for (index k = 0; k < global % 4; ++k) {
            Eigen::MatrixXd matrix((global + k) % 3, 1 + global % 2);
            for (index j = 0; j < matrix.size(); ++j)
                matrix(j) = valueOf(global, 10 * k + j, round);
            matrices.push_back(matrix);
        }
        return matrices;
    }
    static void give(Array &a) {
        a.resize(ownedRows());
        forOwned([&](index i, index global) { fill(a, i, global, 0); });
        a.compress();
    }
    static void fill(Array &array, index i, index global, int round) { array.setRow(i, matricesOf(global, round)); }
    template <class Any>
    static void expectRow(const Any &rows, index i, index global, int round) {
        const auto matrices = matricesOf(global, round);
        ASSERT_EQ(rows[i].batchSize(), static_cast<rowsize>(matrices.size()));
        for (std::size_t k = 0; k < matrices.size(); ++k)
            expectEqual(rows(i, static_cast<rowsize>(k)), matrices[k]);
    }
    static void expectNew(const Array &son, index ghost, index /*global*/) { ASSERT_EQ(son.batchSize(ghost), 0); }
};

template <rowsize m, rowsize n>
struct Rows<ArrayEigenUniMatrixBatch<m, n>> {
    using Array = ArrayEigenUniMatrixBatch<m, n>;
    static rowsize countOf(index global) { return static_cast<rowsize>(global % 4); }
    static Eigen::Matrix<real, 2, 3> matrixOf(index global, rowsize k, int round) {
        Eigen::Matrix<real, 2, 3> matrix;
        for (index j = 0; j < matrix.size(); ++j)
            matrix(j) = valueOf(global, 10 * k + j, round);
        return matrix;
    }
    static void give(Array &a) {
        a.resize(0, 2, 3);
        a.resizeBatches(ownedRows(), [](index i) { return countOf(firstRow() + i); });
    }
    static void fill(Array &array, index i, index global, int round) {
        for (rowsize k = 0; k < countOf(global); ++k)
            array(i, k) = matrixOf(global, k, round);
    }
    template <class Any>
    static void expectRow(const Any &rows, index i, index global, int round) {
        for (rowsize k = 0; k < countOf(global); ++k) {
            expectEqual(rows(i, k), matrixOf(global, k, round));
            expectEqual(rows[i].middleCols(3 * k, 3), matrixOf(global, k, round));
        }
        ASSERT_EQ(rows[i].cols(), 3 * countOf(global));
    }
    static void expectNew(const Array &son, index ghost, index global) {
        ASSERT_EQ(son.batchSize(ghost), countOf(global));
        ASSERT_EQ(son.matrixShape(), (MatrixShape{2, 3}));
    }
};

template <rowsize size, rowsize max, class Index>
struct Rows<ArrayAdjacency<size, max, Index>> {
    using Array = ArrayAdjacency<size, max, Index>;
    static rowsize entriesOf(index global) { return sizeOf(size, max > 0 ? max : 5, 7 * global); }
    static Index entry(index global, rowsize j, int round) {
        return static_cast<Index>(global * 100 + j + round * 10000);
    }
    static void give(Array &a) {
        giveRows(a, 5, [](index i) { return entriesOf(firstRow() + i); });
    }
    static void fill(Array &array, index i, index global, int round) {
        rowsize j = 0;
        for (Index &to : array[i])
            to = entry(global, j++, round);
    }
    template <class Any>
    static void expectRow(const Any &rows, index i, index global, int round) {
        const auto row = rows[i];
        ASSERT_EQ(row.size(), entriesOf(global));
        for (rowsize j = 0; j < row.size(); ++j) {
            ASSERT_EQ(row[j], entry(global, j, round));
            ASSERT_EQ(rows(i, j), row[j]);
        }
    }
    static void expectNew(const Array &son, index ghost, index global) {
        ASSERT_EQ(son.rowSize(ghost), entriesOf(global));
    }
};

template <class TArray>
void fillOwned(TArray &array, int round) {
    forOwned([&](index i, index global) { Rows<TArray>::fill(array, i, global, round); });
}

/// This rank's rows and ghosts. Collective.
template <class TArray>
ArrayPair<TArray> derivedPair() {
    ArrayPair<TArray> pair;
    pair.initPair("rows", world());
    if (ownedRows() > 0) // others learn what these chose
        Rows<TArray>::give(*pair.father);
    makeGhosts(pair);
    return pair;
}

template <class TArray>
class DerivedArray : public testing::Test {
  public:
    static TArray filled(const char *name) {
        TArray a(name, world());
        Rows<TArray>::give(a);
        fillOwned(a, 1);
        return a;
    }
};
TYPED_TEST_SUITE_P(DerivedArray);

TYPED_TEST_P(DerivedArray, IsPulledByEveryTransport) {
    using Of = Rows<TypeParam>;
    auto pair = derivedPair<TypeParam>();
    forGhosts(pair, [&](index i, index global) { Of::expectNew(*pair.son, i - ownedRows(), global); });
    pullInEveryWay(
        pair, [&](index i, index global, int round) { Of::fill(*pair.father, i, global, round); },
        [&](index i, index global, int round) {
            Of::expectRow(std::as_const(pair), i, global, round);
            Of::expectRow(std::as_const(pair).view(), i, global, round);
        });
}

TYPED_TEST_P(DerivedArray, IsPushedAndSummed) {
    for (const TransportKind transport : {TransportKind::Datatype, TransportKind::Packed}) {
        auto pair = derivedPair<TypeParam>();
        if constexpr (std::is_same_v<TypeParam, ArrayEigenMatrixBatch>) { // which can be replaced only
            pair.trans.pullOnce();
            EXPECT_THROW(pair.trans.pushOnce(PushOp::Sum), LayoutError);
            forGhosts(pair,
                      [&](index i, index global) { Rows<TypeParam>::fill(*pair.son, i - ownedRows(), global, 3); });
            pair.trans.pushOnce(PushOp::Replace, {.transport = transport});
            for (const index row : pair.trans.ghostMapping()->readerPeers().values)
                Rows<TypeParam>::expectRow(std::as_const(*pair.father), row, firstRow() + row, 3);
        } else {
            for (auto *array : {pair.father.get(), pair.son.get()})
                for (index i = 0; i < array->size(); ++i)
                    for (auto &element : array->row(i))
                        element = 1;
            pair.trans.pushOnce(PushOp::Sum, {.transport = transport});
            // how many copies of each row there are, by other means
            std::vector<int> copies(static_cast<std::size_t>(allRows()));
            forGhosts(pair, [&](index, index global) { ++copies[static_cast<std::size_t>(global)]; });
            world().allReduce(copies.data(), static_cast<int>(copies.size()), MPI_SUM);
            forOwned([&](index i, index global) {
                for (const auto element : std::as_const(*pair.father).row(i))
                    ASSERT_EQ(element, 1 + copies[static_cast<std::size_t>(global)]);
            });
        }
    }
}

TYPED_TEST_P(DerivedArray, IsCopiedSwappedAndHashed) {
    TypeParam a = TestFixture::filled("a");
    const auto expectA = [&](const TypeParam &array) {
        EXPECT_EQ(array.hash(), a.hash());
        ASSERT_EQ(array.size(), ownedRows());
        forOwned([&](index i, index global) { Rows<TypeParam>::expectRow(array, i, global, 1); });
    };
    expectA(TypeParam(a));
    TypeParam assigned("assigned", world());
    assigned = a;
    expectA(assigned);
    TypeParam cloned("cloned", world());
    cloned.clone(a);
    EXPECT_EQ(cloned.label(), "cloned");
    expectA(cloned);
    TypeParam other("other", world());
    const std::uint64_t emptyHash = other.hash();
    other.swapData(cloned);
    EXPECT_EQ(other.label(), "other");
    expectA(other);
    EXPECT_EQ(cloned.hash(), emptyHash);
    swap(other, cloned);
    EXPECT_EQ(cloned.label(), "other");
    expectA(cloned);
    TypeParam moved(std::move(cloned));
    expectA(moved);
    EXPECT_EQ(cloned.hash(), emptyHash); // NOLINT(bugprone-use-after-move): a moved-from array is as new
    cloned = std::move(moved);
    expectA(cloned);
}

REGISTER_TYPED_TEST_SUITE_P(DerivedArray, IsPulledByEveryTransport, IsPushedAndSummed, IsCopiedSwappedAndHashed);

} // namespace DNDS::test
