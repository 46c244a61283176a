/// @file Petsc.hpp
/// @brief Arrays, matrices and operators of DNDS for PETSc.
///
/// - `Vector`: owned rows of arrays as vectors of PETSc, without a copy
/// - `Matrix`: conversion of sparse matrices of DNDS to those of PETSc
/// - `ShellMatrix`: matrix-free operators
/// - `Solver`: linear systems by PETSc's KSP
#pragma once

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Linear/Krylov.hpp"
#include "DNDS/Linear/SparseMatrix.hpp"
#include "DNDS/Petsc/Session.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace DNDS::Petsc {

/// The width of an array's rows, at least 1; ranks without rows may not know it. Collective; one reduction.
template <class TArray>
PetscInt widthOf(const TArray &array) {
    return static_cast<PetscInt>(array.comm().allReduce(std::max(array.width(), rowsize(1)), MPI_MAX));
}

/// A Vec of the rows that this rank owns, in their host memory, without ghosts. Its block size is the width of the
/// rows.
///
///     Petsc::Vector x(solution.father);
///     VecScale(x.get(), 2);
///     x.noteWrites(); // tells the array: its ghosts are stale
///
/// It keeps the array alive; the array must not be resized or used on the device meanwhile. A Vec of a const array,
/// `Petsc::Vector<const TArray>`, is for reading, which PETSc does not enforce.
template <class TArray>
class Vector {
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(*std::declval<TArray &>().data())>, real>,
                  "PETSc's vectors are of real numbers");
    static_assert(isFixedLayout(TArray::layout), "rows of a vector of PETSc have one width");

  public:
    /// Collective over the array's communicator: a few reductions. Throws on all ranks StateError without PETSc,
    /// StaleError if the host side is not current, LayoutError for rows with padding, ArgumentError if PETSc's
    /// integers are too short.
    explicit Vector(std::shared_ptr<TArray> rows) : rows_(std::move(rows)) {
        DNDS_CHECK(rows_ != nullptr, ArgumentError, "a vector of PETSc needs an array");
        const CommunicatorView comm = rows_->comm();
        const PetscInt width = widthOf(*rows_);
        const index size = comm.allReduce(rows_->size() * width, MPI_SUM);
        onAllRanks(comm, [&](const ErrorNotes &) {
            requireStarted("a vector");
            DNDS_CHECK(rows_->dataSize() == rows_->size() * width, LayoutError,
                       "'{}' has {} elements in {} rows of {}: padding cannot be in a vector of PETSc", rows_->label(),
                       rows_->dataSize(), rows_->size(), width);
            // All in the first agreement: the second contains calls in which PETSc waits for other ranks.
            (void)toPetscInt(size, "the size of a vector");
            (void)rows_->data(); // throws where the host side is not current
        });
        onAllRanks(comm, [&](const ErrorNotes &notes) {
            notes.check(VecCreateMPIWithArray(comm.handle(), width, static_cast<PetscInt>(rows_->dataSize()),
                                              static_cast<PetscInt>(size), rows_->data(), vec_.out()),
                        "VecCreateMPIWithArray");
            notes.check(PetscObjectSetName(reinterpret_cast<PetscObject>(get()), rows_->name().c_str()),
                        "PetscObjectSetName");
        });
    }
    Vector(const Vector &) = delete;
    Vector &operator=(const Vector &) = delete;
    ~Vector() { noteWrites(); }

    /// PETSc's object, for its own calls.
    Vec get() const noexcept { return vec_.get(); }

    /// Tells the array that PETSc has written it; so does the destructor. Local, O(1).
    void noteWrites() noexcept {
        if constexpr (!std::is_const_v<TArray>)
            rows_->markWritten();
    }

  private:
    std::shared_ptr<TArray> rows_;
    Owner<Vec, VecDestroy> vec_;
};

/// A Mat with the entries of a SparseMatrix: rows are on the same ranks, in the order of global numbers. It is a copy,
/// because PETSc separates and sorts the entries in own and in ghost columns, while DNDS keeps the order of its list.
/// Entries whose columns are copies of one row (periodic images) are added.
///
/// Its type is aij for numbers and baij for blocks, unless the option `-mat_type` with the given prefix says otherwise;
/// every type has the block size b. Some preconditioners take aij only.
///
///     Petsc::Matrix m(a, "heat_");
///     Petsc::Solver solver(m.get(), "heat_");
///     ...                                        // other values in a, the same pattern
///     m.update(a);
template <int b>
class Matrix {
  public:
    /// Collective. O(entries). Throws on all ranks StateError without PETSc or for a pattern without global numbers,
    /// ArgumentError if PETSc's integers are too short, and errors of PETSc (ErrorNotes::check).
    explicit Matrix(const SparseMatrix<b> &matrix, const std::string &prefix = {}) : pattern_(matrix.sharedPattern()) {
        DNDS_CHECK(pattern_ != nullptr, StateError, "this matrix has been moved from");
        const CommunicatorView comm = this->comm();
        onAllRanks(comm, [&](const ErrorNotes &) {
            requireStarted("a matrix");
            entries_.emplace(*pattern_, "a matrix of PETSc");
            (void)toPetscInt(pattern_->unknowns()->mapping()->global()->globalSize() * b, "the rows of a matrix");
        });
        onAllRanks(comm, [&](const ErrorNotes &notes) {
            const auto rows = static_cast<PetscInt>(pattern_->rows() * b);
            notes.check(MatCreate(comm.handle(), mat_.out()), "MatCreate");
            notes.check(MatSetSizes(get(), rows, rows, PETSC_DETERMINE, PETSC_DETERMINE), "MatSetSizes");
            notes.check(PetscObjectSetName(reinterpret_cast<PetscObject>(get()), matrix.name().c_str()),
                        "PetscObjectSetName");
            notes.check(MatSetOptionsPrefix(get(), prefix.c_str()), "MatSetOptionsPrefix");
            notes.check(MatSetType(get(), b == 1 ? MATAIJ : MATBAIJ), "MatSetType");
            notes.check(MatSetFromOptions(get()), "MatSetFromOptions");
            const PetscInt *const own = entries_->own.data();
            const PetscInt *const others = entries_->others.data();
            notes.check( // of symmetric types the upper half, which has no more entries
                MatXAIJSetPreallocation(get(), b, own, others, own, others), "MatXAIJSetPreallocation");
            notes.check(MatSetUp(get()), "MatSetUp"); // for types without preallocation, such as dense
            notes.check(MatSetOption(get(), MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE), "MatSetOption");
        });
        update(matrix);
    }

    /// PETSc's object, for its own calls.
    Mat get() const noexcept { return mat_.get(); }

    /// Takes the values of a matrix of the same pattern. Collective. O(entries). Throws on all ranks StateError for a
    /// matrix of another pattern and after PETSc has ended; on this rank alone if this has been moved from.
    /// Every rank sets its own rows only (MAT_NO_OFF_PROC_ENTRIES), so assembly sends no values.
    void update(const SparseMatrix<b> &matrix) {
        DNDS_CHECK(pattern_ != nullptr, StateError, "this copy of the matrix '{}' has been moved from", matrix.name());
        onAllRanks(comm(), [&](const ErrorNotes &) {
            requireStarted("a matrix");
            DNDS_CHECK(matrix.sharedPattern() == pattern_, StateError,
                       "the matrix '{}' has another pattern than the one that its copy in PETSc was made from",
                       matrix.name());
        });
        onAllRanks(comm(), [&](const ErrorNotes &notes) {
            PetscBool filled = PETSC_FALSE;
            notes.check(MatAssembled(get(), &filled), "MatAssembled");
            if (filled == PETSC_TRUE)
                notes.check(MatZeroEntries(get()), "MatZeroEntries");
            const auto first = static_cast<PetscInt>(pattern_->unknowns()->mapping()->global()->localBegin());
            for (index row = 0; row < pattern_->rows(); ++row) {
                const auto begin = static_cast<std::size_t>(pattern_->starts()[static_cast<std::size_t>(row)]);
                const auto count = static_cast<PetscInt>(pattern_->columns(row).size());
                const PetscInt number = first + static_cast<PetscInt>(row);
                // One block at a time: PETSc expects the blocks of a row with their columns interleaved.
                const PetscInt together = b == 1 ? count : 1;
                for (PetscInt k = 0; k < count; k += together) {
                    const std::size_t at = begin + static_cast<std::size_t>(k);
                    notes.check(MatSetValuesBlocked(get(), 1, &number, together, &entries_->columns[at],
                                                    matrix.values().data() + at * b * b, ADD_VALUES),
                                "MatSetValuesBlocked");
                }
            }
        });
        onAllRanks(comm(), [&](const ErrorNotes &notes) { // separate, because it waits for all ranks
            notes.check(MatAssemblyBegin(get(), MAT_FINAL_ASSEMBLY), "MatAssemblyBegin");
            notes.check(MatAssemblyEnd(get(), MAT_FINAL_ASSEMBLY), "MatAssemblyEnd");
        });
    }

  private:
    CommunicatorView comm() const { return pattern_->unknowns()->context().comm(); }

    std::shared_ptr<const MatrixPattern> pattern_;
    Owner<Mat, MatDestroy> mat_;
    std::optional<GlobalEntries<PetscInt>> entries_; ///< in blocks; never empty
};

/// A Mat that multiplies by a function over ArrayDof, such as the one that conjugateGradients takes:
///
///     Petsc::ShellMatrix jacobian(u, [&](auto &d, auto &y) { ... });
///     Petsc::Solver(jacobian.get(), "newton_").solve(residual, u);
///
/// `multiply(d, y)` sets the owned rows of y to A d; it pulls d, whose persistent pull is prepared, if it needs ghosts,
/// so that messages are those of DNDS. Vectors of PETSc are copied into d and out of y. It must outlive the last use by
/// its solvers.
///
/// If `multiply` throws, on one rank or on all, the product is NaN: solvers stop on all ranks when it appears in a
/// norm, and Solver::solve rethrows on all ranks, even if this is one of several matrices of the solver. `multiply`
/// itself must ensure that no rank waits for messages of a rank that has thrown: pull first.
template <class TVector>
class ShellMatrix {
  public:
    using Multiply = std::function<void(TVector &d, TVector &y)>;

    /// Two work vectors like `like`, on the host. Collective. Throws on all ranks StateError without PETSc,
    /// ArgumentError if PETSc's integers are too short.
    ShellMatrix(const TVector &like, Multiply multiply) : multiply_(std::move(multiply)) {
        const CommunicatorView comm = like.father->comm();
        direction_.clone(like);
        product_.clone(like);
        if (direction_.trans.pattern() != nullptr)
            direction_.trans.initPersistentPull();
        const PetscInt width = widthOf(*like.father);
        const index size = comm.allReduce(like.father->dataSize(), MPI_SUM);
        onAllRanks(comm, [&](const ErrorNotes &) {
            requireStarted("a matrix");
            (void)toPetscInt(size, "the rows of a matrix");
        });
        onAllRanks(comm, [&](const ErrorNotes &notes) {
            const auto rows = static_cast<PetscInt>(like.father->dataSize());
            notes.check(MatCreateShell(comm.handle(), rows, rows, PETSC_DETERMINE, PETSC_DETERMINE, this, mat_.out()),
                        "MatCreateShell");
            notes.check(MatSetBlockSize(get(), width), "MatSetBlockSize");
            notes.check(MatShellSetOperation(get(), MATOP_MULT, reinterpret_cast<void (*)()>(apply)),
                        "MatShellSetOperation");
        });
    }
    ShellMatrix(const ShellMatrix &) = delete;
    ShellMatrix &operator=(const ShellMatrix &) = delete;
    ~ShellMatrix() = default;

    /// PETSc's object, for its own calls.
    Mat get() const noexcept { return mat_.get(); }

  private:
    // A C function; the object is the context of the Mat.
    static PetscErrorCode apply(Mat mat, Vec x, Vec y) {
        void *context = nullptr;
        if (const PetscErrorCode code = MatShellGetContext(mat, &context); code != 0)
            return code;
        return static_cast<ShellMatrix *>(context)->product(x, y);
    }
    /// Does not throw, because its callers are C functions.
    /// Cost beside `multiply`: two copies of owned rows.
    PetscErrorCode product(Vec x, Vec y) {
        const PetscScalar *from = nullptr;
        PetscScalar *to = nullptr;
        PetscErrorCode code = VecGetArrayRead(x, &from);
        if (code == 0)
            code = VecGetArrayWrite(y, &to);
        if (code != 0)
            return code;
        const auto count = static_cast<std::size_t>(std::as_const(direction_.father)->dataSize());
        try {
            std::copy_n(from, count, direction_.father->data());
            multiply_(direction_, product_);
            std::copy_n(std::as_const(*product_.father).data(), count, to);
        } catch (...) {
            if (std::exception_ptr &failure = Detail::failureOfProduct(); failure == nullptr)
                failure = std::current_exception();
            std::fill_n(to, count, std::numeric_limits<PetscScalar>::quiet_NaN());
        }
        code = VecRestoreArrayRead(x, &from);
        const PetscErrorCode last = VecRestoreArrayWrite(y, &to);
        return code != 0 ? code : last;
    }

    Multiply multiply_;
    TVector direction_;
    TVector product_;
    Owner<Mat, MatDestroy> mat_;
};

/// `ShellMatrix(u, multiply)`: vectors are of the type of `u`.
template <class TVector, class Multiply>
ShellMatrix(const TVector &, Multiply) -> ShellMatrix<TVector>;

/// A KSP whose method, preconditioner and tolerances are options of PETSc with a prefix of its own. It starts from the
/// x given.
///
///     Petsc::Solver solver(matrix.get(), "heat_");   // -heat_ksp_type cg -heat_pc_type gamg -heat_ksp_rtol 1e-10
///     const KrylovResult done = solver.solve(b, x);
///
/// Options override settings made by `get()` before the first solve. Preconditioners are kept between solves until the
/// values of the matrix change.
class Solver {
  public:
    /// `preconditioner` is the matrix from which preconditioners are made, by default A itself. Collective. Throws on
    /// all ranks errors of PETSc (ErrorNotes::check).
    explicit Solver(Mat a, const std::string &prefix = {}, Mat preconditioner = nullptr)
        : comm_(PetscObjectComm(reinterpret_cast<PetscObject>(a))) {
        onAllRanks(comm_, [&](const ErrorNotes &notes) {
            notes.check(KSPCreate(comm_.handle(), ksp_.out()), "KSPCreate");
            notes.check(KSPSetOptionsPrefix(get(), prefix.c_str()), "KSPSetOptionsPrefix");
            notes.check(KSPSetOperators(get(), a, preconditioner != nullptr ? preconditioner : a), "KSPSetOperators");
            notes.check(KSPSetInitialGuessNonzero(get(), PETSC_TRUE), "KSPSetInitialGuessNonzero");
            notes.check(KSPSetResidualHistory(get(), nullptr, PETSC_DECIDE, PETSC_TRUE), "KSPSetResidualHistory");
        });
    }

    /// PETSc's object, for its own calls.
    KSP get() const noexcept { return ksp_.get(); }

    /// Solves A x = b over owned rows, in the host memory of b and x; ghosts of x are stale afterwards. The result has
    /// PETSc's reason; norms are those of the KSP's stopping test, 0 if it computes none. Collective. Throws on all
    /// ranks exceptions of the operator on any rank (ShellMatrix), and errors of Petsc::Vector and PETSc.
    template <class TVector>
    KrylovResult solve(const TVector &b, TVector &x) {
        using Rows = typename TVector::ArrayType;
        const Vector<const Rows> right{std::shared_ptr<const Rows>(b.father)};
        const Vector<Rows> solution{std::shared_ptr<Rows>(x.father)};
        return solve(right.get(), solution.get());
    }
    // All ranks agree twice: on exceptions of the operator, and then on PETSc's own errors.
    // An exception of the operator turns the product into NaN, which ends KSPSolve on all ranks at the next norm.
    KrylovResult solve(Vec b, Vec x) {
        KrylovResult result;
        configure();
        comm_.beforeCollective();
        const ErrorNotes notes;
        PetscErrorCode code = 0;
        comm_.guarded([&] {
            std::exception_ptr &failure = Detail::failureOfProduct();
            failure = nullptr; // discards failures outside a solve
            code = KSPSolve(get(), b, x);
            if (const std::exception_ptr thrown = std::exchange(failure, nullptr))
                std::rethrow_exception(thrown);
        });
        comm_.guarded([&] { // last: an exception of the operator on one rank takes precedence over PETSc's reaction
            notes.check(code, "KSPSolve");
            result = resultOf(notes);
        });
        return result;
    }

  private:
    // At the first solve, so that settings made by `get()` come before the options.
    void configure() {
        if (std::exchange(configured_, true))
            return;
        onAllRanks(comm_, [&](const ErrorNotes &notes) {
            notes.check(KSPSetFromOptions(get()), "KSPSetFromOptions");
            PetscBool direct = PETSC_FALSE;
            notes.check(PetscObjectTypeCompare(reinterpret_cast<PetscObject>(get()), KSPPREONLY, &direct),
                        "PetscObjectTypeCompare");
            if (direct == PETSC_TRUE) // it does not accept an initial guess
                notes.check(KSPSetInitialGuessNonzero(get(), PETSC_FALSE), "KSPSetInitialGuessNonzero");
        });
    }
    KrylovResult resultOf(const ErrorNotes &notes) const {
        KrylovResult result;
        KSPConvergedReason reason = KSP_CONVERGED_ITERATING;
        notes.check(KSPGetConvergedReason(get(), &reason), "KSPGetConvergedReason");
        const char *name = nullptr;
        notes.check(KSPGetConvergedReasonString(get(), &name), "KSPGetConvergedReasonString");
        PetscInt number = 0;
        notes.check(KSPGetIterationNumber(get(), &number), "KSPGetIterationNumber");
        const PetscReal *norms = nullptr;
        PetscInt count = 0;
        notes.check(KSPGetResidualHistory(get(), &norms, &count), "KSPGetResidualHistory");
        notes.check(KSPGetResidualNorm(get(), &result.residual), "KSPGetResidualNorm");
        result.end = endOf(reason);
        result.reason = name;
        result.iterations = static_cast<int>(number);
        result.first = count > 0 ? norms[0] : 0;
        return result;
    }
    // All other negative reasons are failures of PETSc.
    static KrylovResult::End endOf(KSPConvergedReason reason) {
        using End = KrylovResult::End;
        switch (reason) {
        case KSP_DIVERGED_ITS:
            return End::IterationLimit;
        case KSP_DIVERGED_INDEFINITE_PC:
        case KSP_DIVERGED_INDEFINITE_MAT:
            return End::NotPositiveDefinite;
        case KSP_DIVERGED_BREAKDOWN:
        case KSP_DIVERGED_BREAKDOWN_BICG:
            return End::Breakdown;
        case KSP_DIVERGED_NANORINF:
            return End::NotFinite;
        default:
            return reason > 0 ? End::Converged : End::Failed;
        }
    }

    CommunicatorView comm_;
    Owner<KSP, KSPDestroy> ksp_;
    bool configured_ = false;
};

/// A single solve, by a temporary Solver.
template <class TVector>
KrylovResult solve(Mat a, const TVector &b, TVector &x, const std::string &prefix = {}) {
    return Solver(a, prefix).solve(b, x);
}

} // namespace DNDS::Petsc
