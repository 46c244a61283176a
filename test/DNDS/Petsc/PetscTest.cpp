// Vectors, matrices and solvers of PETSc on the grid of LinearTest, beside those of DNDS. On several ranks, rank 1 has
// no rows.

#include "DNDS/Linear/Grid.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Linear/BlockJacobi.hpp"
#include "DNDS/Petsc/Petsc.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Petsc {
namespace {

using namespace DNDS::test;

CommunicatorView world() { return MPI_COMM_WORLD; }

/// PETSc runs as long as the tests; it keeps books of its memory.
class PetscRuns : public testing::Environment {
  public:
    void SetUp() override {
        expectContains(messageOnAll<StateError>([] { requireStarted("a test"); }), "make a Petsc::Session");
        ASSERT_EQ(PetscMallocSetDebug(PETSC_FALSE, PETSC_FALSE), 0);
        session_ = std::make_unique<Session>("-given_ksp_type cg");
    }
    void TearDown() override { session_.reset(); }

  private:
    std::unique_ptr<Session> session_;
};
const testing::Environment *const environment = testing::AddGlobalTestEnvironment(new PetscRuns);

/// Options of PETSc while one lives.
class Options {
  public:
    using Option = std::pair<const char *, const char *>;
    Options(std::initializer_list<Option> options) : options_(options) {
        for (const auto &[name, value] : options_)
            check(PetscOptionsSetValue(nullptr, name, value), "PetscOptionsSetValue");
    }
    Options(const Options &) = delete;
    Options &operator=(const Options &) = delete;
    ~Options() {
        for (const auto &[name, value] : options_)
            PetscOptionsClearValue(nullptr, name);
    }

  private:
    std::vector<Option> options_;
};

template <class TArray>
Vector<const TArray> reading(const std::shared_ptr<TArray> &rows) {
    return Vector<const TArray>(rows);
}

TEST(PetscVector, SharesTheMemoryOfOwnedRows) {
    const Grid<3> grid{world()};
    auto u = grid.vector();
    fill(grid, u);
    u.trans.pullOnce();
    const real norm = u.norm2();
    const real *const data = std::as_const(*u.father).data();
    {
        const auto vector = reading(u.father);
        PetscInt own = 0, all = 0, block = 0;
        check(VecGetLocalSize(vector.get(), &own), "VecGetLocalSize");
        check(VecGetSize(vector.get(), &all), "VecGetSize");
        check(VecGetBlockSize(vector.get(), &block), "VecGetBlockSize");
        EXPECT_EQ(own, u.father->size() * 3);
        EXPECT_EQ(all, points * 3);
        EXPECT_EQ(block, 3);
        const PetscScalar *values = nullptr;
        check(VecGetArrayRead(vector.get(), &values), "VecGetArrayRead");
        EXPECT_EQ(values, data);
        check(VecRestoreArrayRead(vector.get(), &values), "VecRestoreArrayRead");
        PetscReal its = 0;
        check(VecNorm(vector.get(), NORM_2, &its), "VecNorm");
        EXPECT_NEAR(its, norm, 1e-13 * norm);
    }
    EXPECT_FALSE(u.ghostsAreStale()) << "reading does not change it";
    Vector vector(u.father);
    u.trans.pullOnce();
    check(VecScale(vector.get(), 2), "VecScale");
    vector.noteWrites();
    EXPECT_EQ(u.ghostsAreStale(), u.son->size() > 0);
    EXPECT_NEAR(u.norm2(), 2 * norm, 1e-13 * norm);
}

TEST(PetscVector, WidthsChosenAtRunTimeAreThoseOfOtherRanks) {
    const int rank = world().rank();
    auto rows = std::make_shared<ParArray<real, DynamicSize>>("rows", world());
    if (rank != 1)
        rows->resize(2, 4);
    const Vector vector(rows);
    PetscInt block = 0;
    check(VecGetBlockSize(vector.get(), &block), "VecGetBlockSize");
    EXPECT_EQ(block, 4);
}

TEST(PetscVector, WhatCannotBeIsRefusedOnAllRanks) {
    auto padded = std::make_shared<ParArray<real, 3, 3, 64>>("padded", world());
    padded->resize(world().rank() == 0 ? 2 : 0);
    expectContains(messageOnAll<LayoutError>([&] { Vector{padded}; }), "'padded' has 16 elements in 2 rows of 3");
}

TEST(PetscVector, TheHostSideHasToBeCurrent) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    auto rows = std::make_shared<ParArray<real, 2>>("rows", world());
    rows->resize(world().rank() == 1 ? 0 : 3);
    rows->toDevice();
    { const Vector vector(rows); }
    EXPECT_EQ(rows->valid(MemorySpace::Device), rows->size() == 0) << "PETSc may write the host side";
    rows->toDevice();
    (void)rows->deviceView<DeviceBackend::CUDA>();
    expectContains(messageOnAll<StaleError>([&] { Vector{rows}; }), "the host copy is stale");
}

template <int b>
void expectProductsOfDnds(const char *type) {
    const Grid<b> grid{world()};
    const SparseMatrix<b> a = assembled(grid, 0.4);
    Matrix<b> m(a, "product_");
    MatType made = nullptr;
    check(MatGetType(m.get(), &made), "MatGetType");
    EXPECT_NE(std::string(made).find(type), std::string::npos) << made;
    MatInfo info{};
    check(MatGetInfo(m.get(), MAT_GLOBAL_SUM, &info), "MatGetInfo");
    EXPECT_EQ(info.mallocs, 0) << "all entries were expected";

    auto x = grid.vector(), y = grid.vector(), its = grid.vector();
    const auto expectTheSame = [&](const SparseMatrix<b> &matrix) {
        fill(grid, x);
        matrix.multiply(x, y);
        {
            const auto from = reading(x.father);
            const Vector to(its.father);
            check(MatMult(m.get(), from.get(), to.get()), "MatMult");
        }
        EXPECT_LT(y.norm2(its), 1e-13 * y.norm2());
    };
    expectTheSame(a);
    const SparseMatrix<b> other = assembled(grid, -0.2);
    m.update(other);
    expectTheSame(other);
}

TEST(PetscMatrix, ProductsAreThoseOfDnds) {
    expectProductsOfDnds<1>("aij");
    expectProductsOfDnds<3>("baij");
    const Options aij{{"-product_mat_type", "aij"}};
    expectProductsOfDnds<3>("aij");
}

TEST(PetscMatrix, ColumnsThatAreCopiesOfOneRowAddUp) {
    ArrayDof<1, 1> x, y, its;
    x.initPair("x", world());
    x.father->resize(3);
    x.transAttach();
    x.trans.createFatherGlobalMapping();
    const index first = x.father->globalMapping()->localBegin();
    x.trans.createGhostMapping(std::vector<index>{first, first + 1, first + 2, (first + 3) % (3 * world().size())});
    x.trans.createMPITypes();
    x.trans.initPersistentPull();
    const GhostMapping &mapping = *x.trans.ghostMapping();
    MatrixPattern::Neighbours lists("a row and copies", world());
    lists.resize(3, 3);
    for (index row = 0; row < 3; ++row) {
        const auto copyOf = [&](index global) { return static_cast<LocalIndex>(3 + *mapping.findGhost(global)); };
        const index next = (row + 1) % 3;
        lists[row][0] = static_cast<LocalIndex>(next);
        lists[row][1] = copyOf(first + next);
        lists[row][2] = copyOf((first + 3) % (3 * world().size()));
    }
    SparseMatrix<> a("periodic", MatrixPattern::create("periodic", x.trans.pattern(), lists));
    for (index row = 0; row < 3; ++row)
        for (const LocalIndex column : a.pattern().columns(row))
            a.add(row, column, 1 + real(row) + 0.1 * column);
    for (index row = 0; row < 3; ++row)
        (*x.father)(row, 0) = real(first + row + 1);
    y.clone(x);
    its.clone(x);
    a.multiply(x, y);
    Matrix m(a);
    for (int round = 0; round < 2; ++round) {
        const auto from = reading(x.father);
        const Vector to(its.father);
        check(MatMult(m.get(), from.get(), to.get()), "MatMult");
        EXPECT_LT(y.norm2(its), 1e-13 * y.norm2());
        m.update(a);
    }
}

TEST(PetscMatrix, MayBeOfAnyType) {
    const Grid<1> grid{world()};
    const SparseMatrix<> a = assembled(grid);
    auto x = grid.vector(), y = grid.vector(), its = grid.vector();
    fill(grid, x);
    a.multiply(x, y);
    for (const char *type : {"dense", "sbaij"}) {
        const Options options{{"-other_mat_type", type}, {"-other_mat_ignore_lower_triangular", "true"}};
        const Matrix<1> m(a, "other_");
        const auto from = reading(x.father);
        const Vector to(its.father);
        check(MatMult(m.get(), from.get(), to.get()), "MatMult");
        EXPECT_LT(y.norm2(its), 1e-13 * y.norm2()) << type;
    }
}

TEST(PetscMatrix, WhatCannotBeIsRefusedOnAllRanks) {
    const Grid<1> grid{world()}, other{world()};
    const SparseMatrix<> a = assembled(grid), b = assembled(other);
    Matrix<1> m(a);
    expectContains(messageOnAll<StateError>([&] { m.update(b); }), "another pattern");
    const Matrix<1> moved = std::move(m);
    expectContains(messageOnAll<StateError>([&] { m.update(a); }), "moved from"); // NOLINT: on purpose
    const auto local = ExchangePattern::fromLists(grid.pattern->unknowns()->sharedContext(), [] {
        ExchangePattern::Rows rows;
        rows.fatherSize = 1;
        return rows;
    });
    MatrixPattern::Neighbours none("none", world());
    none.resize(1, [](index) { return rowsize(0); });
    const SparseMatrix<> diagonal("diagonal", MatrixPattern::create("diagonal", local, none));
    expectContains(messageOnAll<StateError>([&] { Matrix<1>{diagonal}; }), "without global numbers");
}

/// A right-hand side, what conjugate gradients make of it, and room for what PETSc does.
template <int b>
struct Problem {
    Problem() : grid(world()), a(assembled(grid)), right(grid.vector()), expected(grid.vector()), x(grid.vector()) {
        fill(grid, right);
        const KrylovResult done = conjugateGradients([&](auto &d, auto &y) { a.multiply(d, y); }, right, expected,
                                                     BlockJacobi(a), {.relative = 1e-13});
        EXPECT_TRUE(done.converged()) << done.text();
    }
    ShellMatrix<ArrayDof<b, 1>> shell() {
        return {right, [this](auto &d, auto &y) { a.multiply(d, y); }};
    }
    void expectSolved(const KrylovResult &done) {
        EXPECT_TRUE(done.converged()) << done.text();
        EXPECT_LT(x.norm2(expected), 1e-10 * expected.norm2());
        EXPECT_EQ(x.ghostsAreStale(), x.son->size() > 0);
    }

    Grid<b> grid;
    SparseMatrix<b> a;
    ArrayDof<b, 1> right, expected, x;
};

template <int b>
void expectSolutionsOfDnds() {
    Problem<b> of;
    const Matrix<b> m(of.a);
    Solver solver(m.get(), "solve_");
    const KrylovResult done = solver.solve(of.right, of.x);
    of.expectSolved(done);
    expectContains(done.text(), "converged (CONVERGED_RTOL) after");
    EXPECT_GT(done.first, 1e10 * done.residual);
    EXPECT_EQ(solver.solve(of.right, of.x).iterations, 0) << "it starts from the solution";
    of.x.setConstant(0);
    const auto shell = of.shell();
    of.expectSolved(solve(shell.get(), of.right, of.x, "solve_"));
    of.x.setConstant(0);
    of.expectSolved(Solver(shell.get(), "solve_", m.get()).solve(of.right, of.x));
}

TEST(PetscSolver, SolutionsAreThoseOfDnds) {
    for (const char *method : {"cg", "gmres", "bcgs"}) {
        const Options options{{"-solve_ksp_type", method}, {"-solve_ksp_rtol", "1e-12"}};
        expectSolutionsOfDnds<1>();
        expectSolutionsOfDnds<3>();
    }
}

TEST(PetscSolver, DirectOnesAreAnOption) {
    const Options options{{"-direct_ksp_type", "preonly"}, {"-direct_pc_type", "redundant"}};
    Problem<3> of;
    of.expectSolved(solve(Matrix<3>(of.a).get(), of.right, of.x, "direct_"));
}

TEST(PetscSolver, SaysWhyItStops) {
    using End = KrylovResult::End;
    Problem<1> of;
    const Matrix<1> m(of.a);
    const Options few{{"-few_ksp_type", "cg"}, {"-few_ksp_max_it", "3"}};
    const KrylovResult early = solve(m.get(), of.right, of.x, "few_");
    EXPECT_EQ(early.end, End::IterationLimit);
    EXPECT_EQ(early.iterations, 3);
    expectContains(early.text(), "the limit of iterations (DIVERGED_ITS) after 3 iterations");

    of.x.setConstant(0);
    check(MatShift(m.get(), -7), "MatShift"); // indefinite
    const Options plain{{"-given_pc_type", "none"}};
    const KrylovResult indefinite = solve(m.get(), of.right, of.x, "given_"); // by an option of the session
    EXPECT_EQ(indefinite.end, End::NotPositiveDefinite) << indefinite.text();

    const Options growing{
        {"-growing_ksp_type", "richardson"}, {"-growing_ksp_richardson_scale", "1e3"}, {"-growing_pc_type", "none"}};
    of.x.setConstant(0);
    const KrylovResult worse = solve(m.get(), of.right, of.x, "growing_");
    EXPECT_EQ(worse.end, End::Failed);
    expectContains(worse.text(), "the solver gave up (DIVERGED_DTOL)");
}

TEST(PetscSolver, ErrorsOfPetscAreThrownOnAllRanks) {
    Problem<1> of;
    const Matrix<1> m(of.a);
    const Options options{{"-wrong_ksp_type", "magic"}};
    testing::internal::CaptureStderr();
    expectContains(messageOnAll<ArgumentError>([&] { solve(m.get(), of.right, of.x, "wrong_"); }), "magic");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "PETSc keeps quiet";
    // A failure of one rank.
    expectContains(messageOnAll<MemoryError>([] {
                       onAllRanks(world(), [](const ErrorNotes &notes) {
                           if (world().rank() == world().size() - 1)
                               notes.check(PetscError(PETSC_COMM_SELF, 1, "here", "file", PETSC_ERR_MEM,
                                                      PETSC_ERROR_INITIAL, "no room for %d", 7),
                                           "PetscNothing");
                       });
                   }),
                   "PetscNothing failed: Out of memory, no room for 7 (here)");
}

TEST(PetscSolver, WhatAnOperatorThrowsIsThrownOnAllRanks) {
    Problem<1> of;
    for (const int thrower : {0, 1}) {
        if (thrower >= world().size())
            continue;
        int products = 0;
        const ShellMatrix<ArrayDof<1, 1>> shell(of.right, [&](auto &d, auto &y) {
            of.a.multiply(d, y);
            DNDS_CHECK(++products != 3 || world().rank() != thrower, DataError, "product {}", products);
        });
        for (const char *method : {"cg", "gmres", "bcgs"}) {
            const Options options{{"-failing_ksp_type", method}, {"-failing_ksp_rtol", "1e-12"}};
            products = 0;
            Solver solver(shell.get(), "failing_");
            of.x.setConstant(0);
            expectContains(messageOnAll<DataError>([&] { solver.solve(of.right, of.x); }), "product 3");
            of.x.setConstant(0);
            of.expectSolved(solver.solve(of.right, of.x)); // the failure is over
        }
    }
}

TEST(PetscSolver, FailuresOfOperatorsEndWithTheirSolve) {
    Problem<1> of;
    const Options options{
        {"-strict_ksp_type", "cg"}, {"-strict_ksp_rtol", "1e-12"}, {"-strict_ksp_error_if_not_converged", "true"}};
    bool broken = true;
    const ShellMatrix<ArrayDof<1, 1>> shell(of.right, [&](auto &d, auto &y) {
        of.a.multiply(d, y);
        DNDS_CHECK(!broken || world().rank() + 1 != world().size(), DataError, "the density is negative");
    });
    Solver solver(shell.get(), "strict_");
    expectContains(messageOnAll<DataError>([&] { solver.solve(of.right, of.x); }), "the density is negative");
    broken = false;
    of.x.setConstant(0);
    of.expectSolved(solver.solve(of.right, of.x));
    // An exception of a product outside of solves does not affect a solve.
    broken = true;
    {
        auto y = of.grid.vector();
        const auto from = reading(of.right.father);
        const Vector to(y.father);
        check(MatMult(shell.get(), from.get(), to.get()), "MatMult");
    }
    broken = false;
    of.x.setConstant(0);
    of.expectSolved(solver.solve(of.right, of.x));
}

TEST(PetscSolver, WhatThrowsMayBeAPartOfTheMatrix) {
    Problem<1> of;
    const auto last = world().size() - 1;
    const ShellMatrix<ArrayDof<1, 1>> shell(of.right, [&](auto &d, auto &y) {
        of.a.multiply(d, y);
        DNDS_CHECK(world().rank() != last, DataError, "the density is negative");
    });
    Owner<Mat, MatDestroy> sum;
    const Matrix<1> m(of.a);
    std::array<Mat, 2> parts{m.get(), shell.get()};
    check(MatCreateComposite(world().handle(), 2, parts.data(), sum.out()), "MatCreateComposite");
    Solver solver(sum.get());
    expectContains(messageOnAll<DataError>([&] { solver.solve(of.right, of.x); }), "the density is negative");
}

TEST(PetscSolver, GivesAllMemoryBack) {
    const Options options{{"-kept_ksp_type", "gmres"}, {"-kept_mat_type", "aij"}, {"-kept_pc_type", "gamg"}};
    PetscLogDouble before = 0, after = 0;
    for (int round = 0; round < 3; ++round) {
        before = after;
        {
            Problem<3> of;
            const Matrix<3> m(of.a, "kept_");
            const auto shell = of.shell();
            EXPECT_TRUE(Solver(shell.get(), "kept_", m.get()).solve(of.right, of.x).converged());
        }
        check(PetscMallocGetCurrentUsage(&after), "PetscMallocGetCurrentUsage");
    }
    EXPECT_GT(before, 0) << "PETSc keeps its books";
    EXPECT_EQ(after, before);
}

} // namespace
} // namespace DNDS::Petsc
