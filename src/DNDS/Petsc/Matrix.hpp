/// @file Matrix.hpp
/// @brief Conversion of sparse matrices of DNDS to those of PETSc.
#pragma once

#include "DNDS/Linear/GlobalEntries.hpp"
#include "DNDS/Linear/SparseMatrix.hpp"
#include "DNDS/Petsc/Calls.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace DNDS::Petsc {

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

} // namespace DNDS::Petsc
