// Matrices and solvers on a grid of points whose rows lie on ranks in uneven pieces; each rank solves the whole by
// itself, too, and has to get the same bits.

#include "DNDS/Linear/Grid.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include "DNDS/Exchange/ExchangeCounts.hpp"
#include "DNDS/Exchange/Report.hpp"
#include "DNDS/Linear/BlockJacobi.hpp"
#include "DNDS/Linear/Krylov.hpp"
#include "DNDS/Linear/SparseMatrix.hpp"

#include <Eigen/SparseLU>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace {

int reductions = 0; // of this rank

} // namespace

// By MPI's profiling interface.
extern "C" int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    ++reductions;
    return PMPI_Allreduce(from, to, count, type, op, comm);
}

namespace DNDS {
namespace {

using namespace DNDS::test;
using GhostRows = MatrixPattern::GhostRows;

template <int b, class Solve>
void expectTheSameBitsOfTheWhole(Solve &&solve) {
    const Grid<b> parts{CommunicatorView(MPI_COMM_WORLD)};
    const Grid<b> whole{CommunicatorView(MPI_COMM_SELF)};
    EXPECT_EQ(ownOf(solve(parts)), partOf(parts, solve(whole)));
}

TEST(SparseMatrix, ProductsAreThoseOfTheWhole) {
    const auto product = [](const auto &grid) {
        const auto a = assembled(grid, 0.4);
        auto x = grid.vector(), y = grid.vector();
        fill(grid, x);
        a.multiply(x, y);
        return y;
    };
    expectTheSameBitsOfTheWhole<1>(product);
    expectTheSameBitsOfTheWhole<5>(product);
    expectTheSameBitsOfTheWhole<10>(product);
}

TEST(SparseMatrix, IsWhatItWasMadeOf) {
    const Grid<2> grid{CommunicatorView(MPI_COMM_SELF)};
    const SparseMatrix<2> a = assembled(grid, 0.4);
    auto x = grid.vector(), y = grid.vector();
    fill(grid, x);
    a.multiply(x, y);
    for (index row = 0; row < points; ++row) {
        Eigen::Vector2d sum = entryOf<2>(row, row, 0.4) * (*x.father)[row];
        for (const index column : neighboursOf(row))
            sum += entryOf<2>(row, column, 0.4) * (*x.father)[column];
        EXPECT_LT((sum - (*y.father)[row]).norm(), 1e-13);
    }
}

TEST(SparseMatrix, WhatIsAddedToGhostRowsComesToTheirOwners) {
    const Grid<1> grid(CommunicatorView(MPI_COMM_WORLD), GhostRows::Kept);
    SparseMatrix<> a("graph", grid.pattern);
    // Each edge is computed where its first point is: there both rows get their share.
    for (int round = 0; round < 2; ++round) {
        a.setZero();
        for (index row = 0; row < grid.pattern->rows(); ++row)
            for (const LocalIndex column : grid.pattern->columns(row))
                if (grid.global(column) > grid.global(row)) {
                    const real weight = 1 + real(grid.global(row) % 7);
                    a.add(row, row, weight);
                    a.add(row, column, -weight);
                    a.add(column, column, weight);
                    a.add(column, row, -weight);
                }
        a.finish();
        for (index row = 0; row < grid.pattern->rows(); ++row) {
            const index mine = grid.global(row);
            real diagonal = 0;
            for (const LocalIndex column : grid.pattern->columns(row)) {
                const index other = grid.global(column);
                if (other == mine)
                    continue;
                const real weight = 1 + real(std::min(mine, other) % 7);
                diagonal += weight;
                EXPECT_EQ(a.at(grid.pattern->find(row, column))(0, 0), -weight);
            }
            EXPECT_EQ(a.at(grid.pattern->find(row, row))(0, 0), diagonal);
        }
    }
}

TEST(SparseMatrix, WrongEntriesAreNamed) {
    const Grid<1> grid{CommunicatorView(MPI_COMM_WORLD)};
    SparseMatrix<> a("laplacian", grid.pattern);
    EXPECT_THROW(a.add(-1, 0, 1.0), IndexError);
    EXPECT_THROW(a.add(grid.pattern->rows(), 0, 1.0), IndexError);
    if (grid.pattern->rows() > 0) {
        EXPECT_THROW(a.add(0, -2, 1.0), IndexError);
        expectContains(messageOf<IndexError>([&] { a.add(0, 5, 1.0); }), "row 0 has no entry in column 5");
    }
    ArrayDof<1, 1> other;
    other.initPair("other", grid.comm);
    other.father->resize(grid.pattern->rows());
    auto y = grid.vector();
    expectContains(messageOf<StateError>([&] { a.multiply(other, y); }), "different patterns");
    expectContains(messageOf<ArgumentError>([&] { a.multiply(y, y); }), "cannot multiply");
    auto x = grid.vector();
    y.father->resize(grid.pattern->rows() + 1);
    EXPECT_THROW(a.multiply(x, y), LayoutError);
}

TEST(MatrixPattern, WrongListsThrowOnAllRanks) {
    const Grid<1> grid{CommunicatorView(MPI_COMM_WORLD)};
    const auto made = [&](index rows, LocalIndex column) {
        MatrixPattern::Neighbours lists("lists", grid.comm);
        lists.resize(rows, 1);
        for (index row = 0; row < rows; ++row)
            lists[row][0] = column;
        return MatrixPattern::create("wrong", grid.x.trans.pattern(), lists);
    };
    EXPECT_THROW((void)made(std::max<index>(0, grid.pattern->rows() - 1), 0), LayoutError);
    EXPECT_THROW((void)made(grid.pattern->rows(), 100000), IndexError);
    const auto diagonal = made(grid.pattern->rows(), -1);
    EXPECT_EQ(diagonal->columns().size(), static_cast<std::size_t>(grid.pattern->rows()));
    EXPECT_TRUE(diagonal->borderRows().empty());
}

/// Each method on a matrix it is for.
template <int b>
auto solverOf(int method, bool preconditioned) {
    return [=](const Grid<b> &grid) {
        const SparseMatrix<b> a = assembled(grid, method == 0 ? 0.0 : 0.4);
        auto x = grid.vector(), right = grid.vector(), y = grid.vector();
        fill(grid, right);
        const auto multiply = [&](ArrayDof<b, 1> &d, ArrayDof<b, 1> &to) { a.multiply(d, to); };
        const KrylovOptions options{.relative = 1e-10, .restart = 7};
        const auto solve = [&](auto &&preconditioner) {
            return method == 0   ? conjugateGradients(multiply, right, x, preconditioner, options)
                   : method == 1 ? biCgStab(multiply, right, x, preconditioner, options)
                                 : gmres(multiply, right, x, preconditioner, options);
        };
        const KrylovResult done = preconditioned ? solve(BlockJacobi<b>(a)) : solve(NoPreconditioner{});
        EXPECT_TRUE(done.converged()) << done.text();
        EXPECT_GT(done.iterations, 3);
        auto direction = grid.vector();
        direction.copyFrom(x);
        a.multiply(direction, y);
        EXPECT_LE(y.norm2(right), 1.1e-10 * right.norm2());
        EXPECT_NEAR(done.residual, y.norm2(right), 1e-11 * right.norm2());
        return x;
    };
}

TEST(Krylov, SolutionsAreRightAndTheirBitsThoseOfOneRank) {
    for (const bool preconditioned : {false, true})
        for (int method = 0; method < 3; ++method) {
            SCOPED_TRACE(testing::Message() << "method " << method << ", preconditioned: " << preconditioned);
            expectTheSameBitsOfTheWhole<1>(solverOf<1>(method, preconditioned));
            expectTheSameBitsOfTheWhole<3>(solverOf<3>(method, preconditioned));
        }
}

TEST(Krylov, SetsUpOnePullAndReducesFewTimes) {
    const Grid<1> grid{CommunicatorView(MPI_COMM_WORLD)};
    const SparseMatrix<> a = assembled(grid);
    auto x = grid.vector(), right = grid.vector();
    fill(grid, right);
    const auto multiply = [&](auto &d, auto &y) { a.multiply(d, y); };
    const auto exchangesMade = [] {
        double made = 0;
        for (const auto &[name, counts] : CountsOfProcess::instance().exchanges)
            made += counts->numbers[Count::Made];
        return made;
    };
    countExchanges(true);
    for (const bool exact : {false, true})
        for (int method = 0; method < 3; ++method) {
            const MessageReduction &sums = Detail::krylovSums(*CommunicatorContext::of(grid.comm));
            int last = 0;
            std::uint64_t before = 0,
                          most = 0; // of an iteration after the first cycle of GMRES, which makes its vectors
            int collectives = 0;
            KrylovOptions options{.relative = 0, .maxIterations = 12, .restart = 4, .exactSums = exact};
            options.monitor = [&](int iteration, real) {
                if (iteration > 4 && iteration > last) {
                    most = std::max(most, sums.starts() - before);
                    EXPECT_EQ(reductions, collectives) << "a collective of MPI cannot be left";
                }
                before = sums.starts();
                collectives = reductions;
                last = iteration;
            };
            x.setConstant(0);
            const double made = exchangesMade();
            const KrylovResult done = method == 0   ? conjugateGradients(multiply, right, x, {}, options)
                                      : method == 1 ? biCgStab(multiply, right, x, {}, options)
                                                    : gmres(multiply, right, x, {}, options);
            EXPECT_EQ(done.iterations, 12) << done.text();
            EXPECT_EQ(exchangesMade() - made, 1.0) << "method " << method;
            EXPECT_EQ(most, method == 1 ? 3U : 2U) << "method " << method;
        }
    countExchanges(false);
}

/// The operator throws on one rank.
TEST(Krylov, AnIterationThatFailsOnOneRankStopsTheOthers) {
    const Communicator own = Communicator::duplicate(MPI_COMM_WORLD);
    const Grid<1> grid{own.view()};
    const SparseMatrix<> a = assembled(grid);
    auto x = grid.vector(), right = grid.vector();
    fill(grid, right);
    int products = 0, failing = -1;
    const auto multiply = [&](auto &d, auto &y) {
        if (++products == 3 && worldRank() == failing)
            throw DataError("no product");
        a.multiply(d, y);
    };
    const auto solve = [&](int method) {
        products = 0;
        x.setConstant(0);
        const KrylovOptions options{.restart = 4};
        return method == 0   ? conjugateGradients(multiply, right, x, {}, options)
               : method == 1 ? biCgStab(multiply, right, x, {}, options)
                             : gmres(multiply, right, x, {}, options);
    };
    for (int method = 0; method < 3; ++method) {
        ASSERT_TRUE(solve(method).converged());
        const std::vector<real> expected = ownOf(x);
        for (failing = 0; failing < worldSize(); ++failing) {
            try {
                solve(method);
                ADD_FAILURE() << "threw nothing";
            } catch (const RevokedError &error) {
                EXPECT_EQ(error.failedRank(), failing);
                EXPECT_NE(worldRank(), failing);
            } catch (const DataError &error) {
                EXPECT_EQ(worldRank(), failing);
            }
            const int now = std::exchange(failing, -1);
            recover(own.view());
            ASSERT_TRUE(solve(method).converged());
            EXPECT_EQ(ownOf(x), expected);
            failing = now;
            own.view().barrier();
        }
        failing = -1;
    }
}

TEST(Krylov, SumsOfRanksDoAsWell) {
    const Grid<1> grid{CommunicatorView(MPI_COMM_WORLD)};
    const SparseMatrix<> a = assembled(grid);
    auto x = grid.vector(), right = grid.vector();
    fill(grid, right);
    int calls = 0;
    KrylovOptions options{.exactSums = false};
    options.monitor = [&](int iteration, real residual) {
        EXPECT_EQ(iteration, calls++);
        EXPECT_GE(residual, 0);
    };
    const KrylovResult done =
        conjugateGradients([&](auto &d, auto &y) { a.multiply(d, y); }, right, x, BlockJacobi(a), options);
    EXPECT_TRUE(done.converged());
    EXPECT_EQ(calls, done.iterations + 1);
    calls = 0; // from the solution on there is nothing to do
    const KrylovResult again = conjugateGradients([&](auto &d, auto &y) { a.multiply(d, y); }, right, x, {}, options);
    EXPECT_TRUE(again.converged());
    EXPECT_LE(again.iterations, 1);
}

TEST(Krylov, SaysWhyItStops) {
    const Grid<1> grid{CommunicatorView(MPI_COMM_WORLD)};
    const SparseMatrix<> a = assembled(grid);
    auto x = grid.vector(), right = grid.vector();
    fill(grid, right);
    const auto negative = [&](auto &d, auto &y) {
        a.multiply(d, y);
        y *= real(-1);
    };
    EXPECT_EQ(conjugateGradients(negative, right, x).end, KrylovResult::End::NotPositiveDefinite);
    const auto endless = [&](auto &, auto &y) { y.setConstant(std::numeric_limits<real>::quiet_NaN()); };
    for (int method = 0; method < 3; ++method) {
        x.setConstant(0);
        const KrylovResult done = method == 0   ? conjugateGradients(endless, right, x)
                                  : method == 1 ? biCgStab(endless, right, x)
                                                : gmres(endless, right, x);
        EXPECT_EQ(done.end, KrylovResult::End::NotFinite);
        expectContains(done.text(), "not a number");
    }
    x.setConstant(0);
    const auto multiply = [&](auto &d, auto &y) { a.multiply(d, y); };
    const auto preconditionedBy = [&](real factor) {
        x.setConstant(0);
        return conjugateGradients(multiply, right, x, [&](const auto &r, auto &z) {
            z.copyFrom(r);
            z *= factor;
        });
    };
    EXPECT_EQ(preconditionedBy(-1).end, KrylovResult::End::NotPositiveDefinite);
    EXPECT_EQ(preconditionedBy(std::numeric_limits<real>::quiet_NaN()).end, KrylovResult::End::NotFinite);
    x.setConstant(0);
    const KrylovOptions few{.maxIterations = 5, .restart = 3};
    EXPECT_EQ(gmres(multiply, right, x, {}, few).iterations, 5);
    EXPECT_EQ(biCgStab(multiply, right, x, {}, few).end, KrylovResult::End::IterationLimit);
    // A singular matrix that no method can do anything with.
    const auto nothing = [&](auto &, auto &y) { y.setConstant(0); };
    x.setConstant(0);
    EXPECT_EQ(biCgStab(nothing, right, x).end, KrylovResult::End::Breakdown);
    x.setConstant(0);
    const KrylovResult stuck = gmres(nothing, right, x, {}, few);
    EXPECT_EQ(stuck.end, KrylovResult::End::Breakdown);
    EXPECT_EQ(stuck.residual, stuck.first);
    EXPECT_EQ(x.norm2(), 0);
    right.setConstant(0);
    for (const KrylovResult &done : {conjugateGradients(multiply, right, x), biCgStab(multiply, right, x)})
        EXPECT_TRUE(done.converged() && done.iterations == 0) << done.text();
}

TEST(Krylov, UnitsOfTheRightHandSideChangeNothing) {
    const Grid<1> grid{CommunicatorView(MPI_COMM_WORLD)};
    const SparseMatrix<> a = assembled(grid);
    const auto multiply = [&](auto &d, auto &y) { a.multiply(d, y); };
    for (int method = 0; method < 3; ++method)
        for (const bool exact : {false, true}) {
            const auto solvedIn = [&](int exponent) {
                auto x = grid.vector(), right = grid.vector();
                fill(grid, right);
                right *= std::ldexp(real(1), exponent);
                const KrylovOptions options{.exactSums = exact};
                const KrylovResult done = method == 0   ? conjugateGradients(multiply, right, x, {}, options)
                                          : method == 1 ? biCgStab(multiply, right, x, {}, options)
                                                        : gmres(multiply, right, x, {}, options);
                EXPECT_TRUE(done.converged()) << done.text();
                EXPECT_GT(done.iterations, 5);
                EXPECT_GT(done.residual, 0);
                EXPECT_LE(done.residual, done.limit);
                x *= std::ldexp(real(1), -exponent);
                return x;
            };
            const auto expected = solvedIn(0);
            for (const int exponent : {-600, 600})
                EXPECT_LT(solvedIn(exponent).norm2(expected), 1e-6 * expected.norm2()) << method << " " << exponent;
        }
}

TEST(Krylov, RestartsMayBeAsFarAsTheyLike) {
    const Grid<1> grid{CommunicatorView(MPI_COMM_WORLD)};
    const SparseMatrix<> a = assembled(grid);
    auto x = grid.vector(), right = grid.vector();
    fill(grid, right);
    const KrylovOptions options{.restart = std::numeric_limits<int>::max()};
    EXPECT_TRUE(gmres([&](auto &d, auto &y) { a.multiply(d, y); }, right, x, {}, options).converged());
}

TEST(Krylov, WrongCallsThrowOnAllRanks) {
    const Grid<1> grid{CommunicatorView(MPI_COMM_WORLD)};
    const SparseMatrix<> a = assembled(grid);
    auto x = grid.vector(), right = grid.vector();
    const auto multiply = [&](auto &d, auto &y) { a.multiply(d, y); };
    const auto solve = [&](const KrylovOptions &options) { (void)gmres(multiply, right, x, {}, options); };
    EXPECT_THROW(solve({.restart = 0}), ArgumentError);
    if (worldSize() > 1) {
        EXPECT_THROW(solve({.maxIterations = 5 + worldRank()}), ArgumentError);
    }
    ArrayDof<1, 1> other;
    other.initPair("other", grid.comm);
    other.father->resize(grid.pattern->rows());
    EXPECT_THROW((void)gmres(multiply, right, other), LayoutError);
    EXPECT_THROW((void)conjugateGradients(multiply, right, right), ArgumentError);
    SparseMatrix<> from = assembled(grid);
    const SparseMatrix<> to = std::move(from);
    EXPECT_THROW(from.multiply(right, x), StateError); // NOLINT: moved from on purpose
    SparseMatrix<> singular("zero", grid.pattern);
    EXPECT_THROW(BlockJacobi<1>{singular}, ArgumentError);
}

/// The inverse of the diagonal block [2 x 2] on each row, times (1, 1).
ArrayDof<2, 1> inverted(const Grid<2> &grid, const Eigen::Matrix2d &block) {
    SparseMatrix<2> a("blocks", grid.pattern);
    for (index row = 0; row < grid.pattern->rows(); ++row)
        a.add(row, row, block);
    auto r = grid.vector(), z = grid.vector();
    r.setConstant(1);
    BlockJacobi<2>{a}(r, z);
    return z;
}

TEST(BlockJacobi, BlocksWithParallelRowsAreSingular) {
    const Grid<2> grid{CommunicatorView(MPI_COMM_WORLD)};
    Eigen::Matrix2d block;
    block << 0.1, 0.3, 0.7, 2.1; // exact up to rounding
    expectContains(messageOnAll<ArgumentError>([&] { (void)inverted(grid, block); }),
                   "own row 0 of rank 0 is singular to rounding");
    expectContains(messageOnAll<ArgumentError>([&] { (void)inverted(grid, 1e-200 * block); }), "singular");
    block << 1, 2, 3, std::numeric_limits<real>::infinity();
    expectContains(messageOnAll<ArgumentError>([&] { (void)inverted(grid, block); }),
                   "own row 0 of rank 0 is not finite");
}

TEST(BlockJacobi, UnitsDoNotMakeBlocksSingular) {
    const Grid<2> grid{CommunicatorView(MPI_COMM_WORLD)};
    Eigen::Matrix2d block;
    for (const real unit : {1.0, 1e20, 1e-120}) {
        block << 2 * unit, 1 * unit, 3 / unit, 2 / unit; // the inverse is 2 / unit, -unit; -3 / unit, 2 unit
        const auto z = inverted(grid, block);
        for (index row = 0; row < grid.pattern->rows(); ++row) {
            EXPECT_NEAR((*z.father)(row, 0) / (2 / unit - unit), 1, 1e-14);
            EXPECT_NEAR((*z.father)(row, 1) / (2 * unit - 3 / unit), 1, 1e-14);
        }
    }
}

TEST(EigenMatrix, SharesMemoryAndIsSolvedDirectly) {
    const Grid<1> grid{CommunicatorView(MPI_COMM_SELF)};
    const SparseMatrix<> a = assembled(grid, 0.4);
    const auto view = eigenMatrix(a);
    EXPECT_EQ(view.valuePtr(), a.values().data());
    auto right = grid.vector(), x = grid.vector();
    fill(grid, right);
    const Eigen::SparseMatrix<real> sorted = view;
    const Eigen::SparseLU<Eigen::SparseMatrix<real>> factors(sorted);
    const Eigen::VectorXd direct = factors.solve(Eigen::Map<const Eigen::VectorXd>(right.father->data(), points));
    const KrylovOptions options{.relative = 1e-13};
    ASSERT_TRUE(gmres([&](auto &d, auto &y) { a.multiply(d, y); }, right, x, BlockJacobi(a), options).converged());
    EXPECT_LT((direct - Eigen::Map<const Eigen::VectorXd>(x.father->data(), points)).norm(), 1e-11 * direct.norm());
    const Grid<1> parts{CommunicatorView(MPI_COMM_WORLD)};
    const SparseMatrix<> part = assembled(parts);
    if (!parts.pattern->borderRows().empty()) {
        EXPECT_THROW((void)eigenMatrix(part), StateError);
    }
}

} // namespace
} // namespace DNDS
