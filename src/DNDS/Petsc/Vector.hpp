/// @file Vector.hpp
/// @brief Owned rows of arrays as vectors of PETSc, without a copy.
#pragma once

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Petsc/Calls.hpp"

#include <algorithm>
#include <memory>
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

} // namespace DNDS::Petsc
