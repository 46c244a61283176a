/// @file Vector.hpp
/// @brief Errors of hypre as exceptions, and owned rows as a vector of hypre.
#pragma once

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Index/GlobalMapping.hpp"
#include "DNDS/Mpi/Check.hpp"

#include <HYPRE.h>
#include <HYPRE_parcsr_mv.h>
#include <_hypre_parcsr_mv.h>

#include <array>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace DNDS::Hypre {

static_assert(std::is_same_v<HYPRE_Complex, real>, "DNDS::Hypre needs a hypre of real double numbers");

/// Throws if a call of hypre has failed: MemoryError, ArgumentError, else StateError, with hypre's text. Clears the
/// error, which hypre keeps otherwise. A lack of convergence is not an error. Local.
inline void check(HYPRE_Int code, std::string_view call, SourceLocation where = SourceLocation::current()) {
    if (code == 0) [[likely]]
        return;
    std::array<char, 1024> text{};
    HYPRE_DescribeError(code, text.data()); // also reads the error that hypre keeps
    HYPRE_ClearAllErrors();
    const HYPRE_Int failure = code & ~HYPRE_Int{HYPRE_ERROR_CONV};
    if (failure == 0)
        return;
    const ErrorKind kind = (failure & HYPRE_ERROR_MEMORY) != 0 ? ErrorKind::Memory
                           : (failure & HYPRE_ERROR_ARG) != 0  ? ErrorKind::Argument
                                                               : ErrorKind::State;
    throwError(kind, fmt::format("{} failed: {}", call, text.data()), where);
}

/// Converts a number of rows or columns to hypre's integers. Local. Throws ArgumentError if they are too short.
inline HYPRE_BigInt toHypreInt(index number, const char *what) {
    const auto made = static_cast<HYPRE_BigInt>(number);
    DNDS_CHECK(made == number, ArgumentError,
               "{}: {} is more than the {}-bit integers of this hypre hold: configure it with --enable-mixedint or "
               "--enable-bigint",
               what, number, sizeof(HYPRE_BigInt) * 8);
    return made;
}

/// Owned rows of an array as a vector of hypre, in their memory on the host. The array must outlive it.
class Vector {
  public:
    /// Rows of `width` numbers at `rows`, which are numbered by `global`. Local. Throws MemoryError and ArgumentError.
    Vector(MPI_Comm comm, const GlobalMapping &global, int width, real *rows) {
        // The first own row, and the one after the last; hypre copies them.
        std::array<HYPRE_BigInt, 2> range{toHypreInt(global.localBegin() * width, "a vector"),
                                          toHypreInt((global.localBegin() + global.localSize()) * width, "a vector")};
        HYPRE_ClearAllErrors(); // clears errors of other callers
        HYPRE_ParVector made = nullptr;
        check(HYPRE_ParVectorCreate(comm, toHypreInt(global.globalSize() * width, "a vector"), range.data(), &made),
              "HYPRE_ParVectorCreate");
        vector_.reset(made);
        // hypre has no public call that takes memory; its users access the local vector.
        hypre_Vector *const local = hypre_ParVectorLocalVector(made);
        hypre_VectorData(local) = rows;
        hypre_VectorOwnsData(local) = 0;
        if (rows != nullptr)
            check(HYPRE_ParVectorInitialize(made), "HYPRE_ParVectorInitialize"); // does not allocate then
    }

    /// The object of hypre, for its own calls.
    HYPRE_ParVector get() const noexcept { return vector_.get(); }

  private:
    struct Destroy {
        void operator()(HYPRE_ParVector vector) const noexcept { HYPRE_ParVectorDestroy(vector); }
    };
    std::unique_ptr<std::remove_pointer_t<HYPRE_ParVector>, Destroy> vector_;
};

} // namespace DNDS::Hypre
