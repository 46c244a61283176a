/// @file ShellMatrix.hpp
/// @brief Matrix-free operators for PETSc.
#pragma once

#include "DNDS/Petsc/Vector.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <utility>

namespace DNDS::Petsc {

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

} // namespace DNDS::Petsc
