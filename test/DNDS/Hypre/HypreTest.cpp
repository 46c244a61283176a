// Multigrid of hypre on the grid of LinearTest. On several ranks, rank 1 has no rows.

#include "DNDS/Linear/Grid.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include "DNDS/Hypre/BoomerAmg.hpp"
#include "DNDS/Linear/BlockJacobi.hpp"
#include "DNDS/Linear/Krylov.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace DNDS::Hypre {
namespace {

using namespace DNDS::test;

CommunicatorView world() { return MPI_COMM_WORLD; }

/// y = A x by hypre.
template <int b>
ArrayDof<b, 1> multiplied(const Grid<b> &grid, const Matrix<b> &matrix, const ArrayDof<b, 1> &x) {
    ArrayDof<b, 1> y = grid.vector();
    const Vector from = matrix.vector(x);
    const Vector to = matrix.vector(y);
    check(HYPRE_ParCSRMatrixMatvec(1, matrix.get(), from.get(), 0, to.get()), "HYPRE_ParCSRMatrixMatvec");
    return y;
}

template <int b>
void expectSameProducts() {
    const Grid<b> grid{world()};
    const SparseMatrix<b> a = assembled(grid, 0.3);
    auto x = grid.vector(), y = grid.vector();
    fill(grid, x);
    a.multiply(x, y);
    const Matrix<b> matrix(a);
    const ArrayDof<b, 1> its = multiplied(grid, matrix, x);
    const auto mine = ownOf(y), other = ownOf(its);
    ASSERT_EQ(mine.size(), other.size());
    for (std::size_t i = 0; i < mine.size(); ++i)
        EXPECT_NEAR(other[i], mine[i], 1e-13) << i;
}

TEST(HypreMatrix, HasTheEntriesOfOurs) {
    expectSameProducts<1>();
    expectSameProducts<3>();
}

TEST(HypreMatrix, AddsEntriesWhoseColumnsAreOneRow) {
    // Every rank has a row, and two ghosts that are copies of row 0.
    const auto global = GlobalMapping::create(world(), 1);
    const std::array<index, 2> ghosts{0, 0};
    const auto rows = std::make_shared<const ExchangePattern>(GhostMapping::fromRepeatedPullList(global, ghosts));
    ArrayDof<1, 1> x, y;
    for (auto *u : {&x, &y}) {
        u->initPair("u", world());
        u->father->resize(1);
        u->transAttach();
        u->trans.usePattern(rows);
        u->trans.createMPITypes();
    }
    MatrixPattern::Neighbours lists("images", world());
    lists.resize(1, [](index) { return rowsize(2); });
    lists[0][0] = 1;
    lists[0][1] = 2;
    SparseMatrix<> a("images", MatrixPattern::create("images", rows, lists));
    a.add(0, 0, 2.0);
    a.add(0, 1, 1.0);
    a.add(0, 2, 0.5);
    (*x.father)(0, 0) = world().rank() + 1.0;
    const Matrix<1> matrix(a);
    const Vector from = matrix.vector(std::as_const(x)), to = matrix.vector(y);
    check(HYPRE_ParCSRMatrixMatvec(1, matrix.get(), from.get(), 0, to.get()), "HYPRE_ParCSRMatrixMatvec");
    EXPECT_NEAR((*std::as_const(y).father)(0, 0), 2 * (world().rank() + 1.0) + 1.5, 1e-13);
}

template <int b>
void expectFewerIterations() {
    const Grid<b> grid{world()};
    const SparseMatrix<b> a = assembled(grid);
    auto right = grid.vector(), x = grid.vector(), y = grid.vector();
    fill(grid, right);
    const auto product = [&](auto &d, auto &to) { a.multiply(d, to); };
    const KrylovResult byJacobi = conjugateGradients(product, right, y, BlockJacobi(a), {.relative = 1e-10});
    const BoomerAmg amg(a);
    const KrylovResult byAmg = conjugateGradients(product, right, x, amg, {.relative = 1e-10});
    EXPECT_TRUE(byAmg.converged()) << byAmg.text();
    EXPECT_LT(byAmg.iterations, byJacobi.iterations);
    y.addTo(x, -1);
    EXPECT_LT(y.norm2(), 1e-8 * x.norm2());
}

TEST(BoomerAmg, TakesFewerIterationsThanBlockJacobi) {
    expectFewerIterations<1>();
    expectFewerIterations<2>();
}

TEST(BoomerAmg, PreconditionsSolversForAnyMatrix) {
    const Grid<1> grid{world()};
    const SparseMatrix<> a = assembled(grid, 0.4);
    auto right = grid.vector(), x = grid.vector(), residual = grid.vector();
    fill(grid, right);
    const auto product = [&](auto &d, auto &to) { a.multiply(d, to); };
    const KrylovResult done = gmres(product, right, x, BoomerAmg(a), {.relative = 1e-10});
    EXPECT_TRUE(done.converged()) << done.text();
    a.multiply(x, residual);
    residual.addTo(right, -1);
    EXPECT_LT(residual.norm2(), 1e-9 * right.norm2());
}

TEST(BoomerAmg, IsConfiguredByItsOwnCalls) {
    const Grid<1> grid{world()};
    const SparseMatrix<> a = assembled(grid);
    const BoomerAmg amg(a, [](HYPRE_Solver solver) { HYPRE_BoomerAMGSetMaxLevels(solver, 1); });
    auto right = grid.vector(), x = grid.vector();
    fill(grid, right);
    const auto product = [&](auto &d, auto &to) { a.multiply(d, to); };
    const int oneLevel = conjugateGradients(product, right, x, amg).iterations;
    x.setConstant(0);
    const int allLevels = conjugateGradients(product, right, x, BoomerAmg(a)).iterations;
    EXPECT_LT(allLevels, oneLevel);
}

TEST(BoomerAmg, SurvivesMoves) {
    const Grid<1> grid{world()};
    auto right = grid.vector(), x = grid.vector(), y = grid.vector();
    fill(grid, right);
    auto made = std::make_unique<BoomerAmg<1>>(assembled(grid)); // the matrix itself may go
    (*made)(right, x);
    const BoomerAmg<1> moved = std::move(*made);
    expectContains(messageOnAll<StateError>([&] { (*made)(right, x); }), "moved from");
    made.reset();
    moved(right, y);
    EXPECT_EQ(ownOf(x), ownOf(y));
}

TEST(BoomerAmg, WhatCannotBeIsRefusedOnAllRanks) {
    const Grid<1> grid{world()};
    const SparseMatrix<> a = assembled(grid);
    const std::string wrong = messageOnAll<ArgumentError>([&] {
        const BoomerAmg amg(a, [](HYPRE_Solver solver) {
            if (world().rank() == 0)
                HYPRE_BoomerAMGSetMaxIter(solver, -1);
        });
    });
    expectContains(wrong, "argument 2");
    expectContains(messageOnAll<StateError>([&] {
                       const BoomerAmg amg(a, [](HYPRE_Solver) {
                           if (world().rank() == world().size() - 1)
                               throw StateError("no configuration today");
                       });
                   }),
                   "no configuration today");
    const BoomerAmg amg(a); // earlier failures left no state
    ArrayDof<1, 1> other;
    other.initPair("other", world());
    other.father->resize(grid.pattern->rows() + 1);
    auto x = grid.vector();
    expectContains(messageOnAll<LayoutError>([&] { amg(other, x); }), "'other'");
}

TEST(BoomerAmg, TakesMatricesWithoutRows) {
    ArrayDof<1, 1> x;
    x.initPair("x", world());
    x.transAttach();
    x.trans.createFatherGlobalMapping();
    x.trans.createGhostMapping({});
    x.trans.createMPITypes();
    MatrixPattern::Neighbours none("none", world());
    none.resize(0, [](index) { return rowsize(0); });
    const SparseMatrix<> nothing("nothing", MatrixPattern::create("nothing", x.trans.pattern(), none));
    const BoomerAmg amg(nothing);
    ArrayDof<1, 1> y;
    y.clone(x);
    amg(x, y);
    EXPECT_EQ(y.father->size(), 0);
}

TEST(HypreMatrix, WhatIsNoMatrixIsRefusedOnAllRanks) {
    const Grid<1> grid{world()};
    SparseMatrix<> a = assembled(grid);
    if (world().rank() == 0)
        a.at(0)(0, 0) = std::numeric_limits<real>::quiet_NaN();
    expectContains(messageOnAll<ArgumentError>([&] { const Matrix<1> matrix(a); }),
                   "'laplacian' has an entry in own row 0 that is not finite");
    const SparseMatrix<> other = std::move(a);
    expectContains(messageOnAll<StateError>([&] { const Matrix<1> matrix(a); }), "moved from"); // NOLINT: on purpose
    const SparseMatrix<> b = [&] {
        SparseMatrix<> made = assembled(grid);
        if (world().rank() == 0)
            for (std::size_t at = 0; at < grid.pattern->columns(0).size(); ++at)
                made.at(at)(0, 0) = 0;
        return made;
    }();
    expectContains(messageOnAll<ArgumentError>([&] { const BoomerAmg amg(b); }), "'laplacian' (a row of zeros");
    auto x = grid.vector();
    const BoomerAmg amg(assembled(grid));
    expectContains(messageOnAll<ArgumentError>([&] { amg(x, x); }), "give another vector");
}

TEST(HypreMatrix, PatternsWithoutGlobalNumbersAreRefused) {
    const Grid<1> grid{world()};
    const auto local = ExchangePattern::fromLists(grid.pattern->unknowns()->sharedContext(), [] {
        ExchangePattern::Rows rows;
        rows.fatherSize = 2;
        return rows;
    });
    MatrixPattern::Neighbours none("none", world());
    none.resize(2, [](index) { return rowsize(0); });
    SparseMatrix<> diagonal("diagonal", MatrixPattern::create("diagonal", local, none));
    expectContains(messageOnAll<StateError>([&] { const Matrix<1> matrix(diagonal); }), "without global numbers");
}

} // namespace
} // namespace DNDS::Hypre
