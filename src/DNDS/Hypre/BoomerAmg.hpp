/// @file BoomerAmg.hpp
/// @brief Algebraic multigrid of hypre as a preconditioner.
///
/// - `Vector`: owned rows as a vector of hypre, and errors of hypre as exceptions
/// - `Matrix`: conversion of sparse matrices of DNDS to those of hypre
#pragma once

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Linear/SparseMatrix.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_parcsr_ls.h>
#include <HYPRE_parcsr_mv.h>
#include <_hypre_parcsr_mv.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

/// For std::unique_ptr: ends an object of hypre by its function, unless MPI has ended.
template <auto end>
struct EndWithMpi {
    /// `object` is not null.
    template <class T>
    void operator()(T *object) const noexcept {
        if (mpiActive())
            end(object);
    }
};

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
    std::unique_ptr<std::remove_pointer_t<HYPRE_ParVector>, EndWithMpi<HYPRE_ParVectorDestroy>> vector_;
};

/// A ParCSR matrix of hypre with the entries of a SparseMatrix, on its own communicator: blocks become b rows and b
/// columns of numbers. It is a copy, because hypre separates the columns of this rank from those of other ranks.
/// Entries whose columns are copies of one row (periodic images) are added.
template <int b>
class Matrix {
  public:
    /// Collective. O(entries). Throws on all ranks StateError for a pattern without global numbers, ArgumentError if
    /// hypre's integers are too short or an entry is not finite, and errors of hypre (`check`); on this rank alone
    /// StateError for a matrix that has been moved from.
    explicit Matrix(const SparseMatrix<b> &matrix)
        : comm_(Communicator::duplicate(commOf(matrix))), global_(globalOf(matrix)) {
        std::optional<GlobalEntries<HYPRE_BigInt>> entries;
        comm_.view().guarded([&] {
            entries.emplace(matrix.pattern(), "a matrix of hypre");
            (void)toHypreInt(global_->globalSize() * b, "the rows of a matrix");
        });
        comm_.view().guarded([&] { make(*entries); }); // separate, because hypre waits for all ranks there
        comm_.view().guarded([&] { fill(matrix, *entries); });
        comm_.view().guarded([&] { // likewise
            check(HYPRE_IJMatrixAssemble(matrix_.get()), "HYPRE_IJMatrixAssemble");
            void *object = nullptr;
            check(HYPRE_IJMatrixGetObject(matrix_.get(), &object), "HYPRE_IJMatrixGetObject");
            parcsr_ = static_cast<HYPRE_ParCSRMatrix>(object);
        });
    }

    /// The object of hypre, for its own calls.
    HYPRE_ParCSRMatrix get() const noexcept { return parcsr_; }
    /// The number of rows of all ranks, in blocks. Local. Throws StateError if this has been moved from.
    index globalRows() const {
        requireMine();
        return global_->globalSize();
    }
    /// The communicator in which hypre works.
    CommunicatorView comm() const { return comm_.view(); }

    /// The owned rows of `u` without a copy; hypre may change them. `u` must outlive the result. Local. Throws
    /// LayoutError for rows that differ from those of the matrix, StateError if this has been moved from.
    Vector vector(ArrayDof<b, 1> &u) const {
        requireRows(u);
        return Vector(comm_.view().handle(), *global_, b, u.father->data());
    }
    /// The same for a vector that hypre only reads.
    Vector vector(const ArrayDof<b, 1> &u) const {
        requireRows(u);
        // hypre has no vectors of const numbers.
        return Vector(comm_.view().handle(), *global_, b, const_cast<real *>(std::as_const(*u.father).data()));
    }

  private:
    static CommunicatorView commOf(const SparseMatrix<b> &matrix) {
        DNDS_CHECK(matrix.sharedPattern() != nullptr, StateError, "this matrix has been moved from");
        return matrix.pattern().unknowns()->context().comm();
    }
    // Null for patterns from lists, which GlobalEntries rejects on all ranks.
    static std::shared_ptr<const GlobalMapping> globalOf(const SparseMatrix<b> &matrix) {
        const auto &mapping = matrix.pattern().unknowns()->mapping();
        return mapping != nullptr ? mapping->global() : nullptr;
    }
    // Exact numbers of entries in own and other columns: hypre then allocates once.
    void make(const GlobalEntries<HYPRE_BigInt> &entries) {
        const auto begin = static_cast<HYPRE_BigInt>(global_->localBegin() * b);
        const auto end = static_cast<HYPRE_BigInt>(begin + global_->localSize() * b);
        HYPRE_ClearAllErrors(); // clears errors of other callers
        HYPRE_IJMatrix made = nullptr;
        check(HYPRE_IJMatrixCreate(comm_.view().handle(), begin, end - 1, begin, end - 1, &made),
              "HYPRE_IJMatrixCreate");
        matrix_.reset(made);
        check(HYPRE_IJMatrixSetObjectType(made, HYPRE_PARCSR), "HYPRE_IJMatrixSetObjectType");
        const auto spread = [](const std::vector<HYPRE_BigInt> &blocks) {
            std::vector<HYPRE_Int> rows;
            rows.reserve(blocks.size() * b);
            for (const HYPRE_BigInt count : blocks)
                rows.insert(rows.end(), b, static_cast<HYPRE_Int>(count * b));
            return rows;
        };
        check(HYPRE_IJMatrixSetDiagOffdSizes(made, spread(entries.own).data(), spread(entries.others).data()),
              "HYPRE_IJMatrixSetDiagOffdSizes");
        check(HYPRE_IJMatrixInitialize(made), "HYPRE_IJMatrixInitialize");
    }
    // One row of numbers at a time; blocks of the pattern are spread over b of them. hypre adds repeated columns.
    // O(entries x b^2); scratch for one row. Rows are this rank's own, so hypre keeps no values for other ranks.
    void fill(const SparseMatrix<b> &matrix, const GlobalEntries<HYPRE_BigInt> &entries) {
        const MatrixPattern &pattern = matrix.pattern();
        std::vector<HYPRE_BigInt> columns;
        std::vector<real> values;
        auto number = static_cast<HYPRE_BigInt>(global_->localBegin() * b);
        for (index row = 0; row < pattern.rows(); ++row)
            for (int i = 0; i < b; ++i, ++number) {
                columns.clear();
                values.clear();
                const auto begin = static_cast<std::size_t>(pattern.starts()[static_cast<std::size_t>(row)]);
                for (std::size_t at = begin; at < begin + pattern.columns(row).size(); ++at)
                    for (int j = 0; j < b; ++j) {
                        columns.push_back(entries.columns[at] * b + j);
                        values.push_back(matrix.at(at)(i, j));
                    }
                DNDS_CHECK(std::ranges::all_of(values, [](real value) { return std::isfinite(value); }), ArgumentError,
                           "the matrix '{}' has an entry in own row {} that is not finite", matrix.name(), row);
                auto count = static_cast<HYPRE_Int>(columns.size());
                check(HYPRE_IJMatrixAddToValues(matrix_.get(), 1, &count, &number, columns.data(), values.data()),
                      "HYPRE_IJMatrixAddToValues");
            }
    }
    void requireMine() const { DNDS_CHECK(global_ != nullptr, StateError, "this matrix of hypre has been moved from"); }
    void requireRows(const ArrayDof<b, 1> &u) const {
        requireMine();
        DNDS_CHECK(u.father->size() == global_->localSize(), LayoutError,
                   "the matrix has {} owned rows, but the vector '{}' {}", global_->localSize(), u.father->label(),
                   u.father->size());
    }

    Communicator comm_;
    std::shared_ptr<const GlobalMapping> global_;
    std::unique_ptr<std::remove_pointer_t<HYPRE_IJMatrix>, EndWithMpi<HYPRE_IJMatrixDestroy>> matrix_;
    HYPRE_ParCSRMatrix parcsr_ = nullptr; ///< in it
};

/// z = one cycle of BoomerAMG for A z = r (Henson and Yang, BoomerAMG, Applied Numerical Mathematics 41, 2002), for the
/// solvers of DNDS:
///
///     const Hypre::BoomerAmg amg(a);
///     const KrylovResult done = conjugateGradients([&](auto &d, auto &y) { a.multiply(d, y); }, b, x, amg);
///
/// For matrices of blocks, each component of a row is an unknown function of its own. The cycle is a symmetric operator
/// if the matrix is symmetric, unless configured otherwise. Its bits, and so those of the solution, depend on the
/// partition. It works on the host.
template <int b>
class BoomerAmg {
  public:
    /// Copies the matrix and sets up its hierarchy: for other values, make another object. Before the set-up,
    /// `configure` may call HYPRE_BoomerAMGSet..., such as HYPRE_BoomerAMGSetStrongThreshold(solver, 0.5) for three
    /// dimensions, identically on all ranks; hypre checks little of it. Collective. Throws on all ranks the errors of
    /// Hypre::Matrix, hypre and `configure`.
    explicit BoomerAmg(const SparseMatrix<b> &matrix, const std::function<void(HYPRE_Solver)> &configure = {})
        : matrix_(matrix) {
        const CommunicatorView comm = matrix_.comm();
        ArrayDof<b, 1> any; // hypre reads only the numbers of the rows
        comm.guarded([&] {
            HYPRE_Solver made = nullptr;
            check(HYPRE_BoomerAMGCreate(&made), "HYPRE_BoomerAMGCreate");
            solver_.reset(made);
            check(HYPRE_BoomerAMGSetTol(made, 0), "HYPRE_BoomerAMGSetTol");
            check(HYPRE_BoomerAMGSetMaxIter(made, 1), "HYPRE_BoomerAMGSetMaxIter");
            if (b > 1)
                check(HYPRE_BoomerAMGSetNumFunctions(made, b), "HYPRE_BoomerAMGSetNumFunctions");
            if (configure)
                configure(made);
            check(HYPRE_GetError(), "the configuration of BoomerAMG");
        });
        any.initPair("rows of a hierarchy", comm);
        comm.guarded([&] { any.father->resize(matrix.pattern().rows()); });
        if (matrix_.globalRows() == 0) // hypre cannot set up an empty hierarchy
            return;
        comm.guarded([&] {
            const Vector rows = matrix_.vector(any);
            check(HYPRE_BoomerAMGSetup(solver_.get(), matrix_.get(), rows.get(), rows.get()),
                  fmt::format("HYPRE_BoomerAMGSetup of '{}' (a row of zeros has no multigrid)", matrix.name()));
        });
    }

    /// Sets the owned rows of z. Collective: hypre waits for its neighbours. Throws on this rank LayoutError for
    /// vectors of other rows, ArgumentError if r and z are the same, and errors of hypre.
    /// z starts at zero: the result is linear in r, as Krylov methods require of a preconditioner.
    void operator()(const ArrayDof<b, 1> &r, ArrayDof<b, 1> &z) const {
        const Vector from = matrix_.vector(r);
        const Vector to = matrix_.vector(z);
        DNDS_CHECK(r.father != z.father, ArgumentError,
                   "multigrid cannot overwrite '{}', to which it is applied, with the result: give another vector",
                   r.father->label());
        if (matrix_.globalRows() == 0)
            return;
        std::fill_n(z.father->data(), z.father->dataSize(), real(0));
        check(HYPRE_BoomerAMGSolve(solver_.get(), matrix_.get(), from.get(), to.get()), "HYPRE_BoomerAMGSolve");
    }

    /// The object of hypre, for its own calls.
    HYPRE_Solver get() const noexcept { return solver_.get(); }

  private:
    Matrix<b> matrix_;
    std::unique_ptr<std::remove_pointer_t<HYPRE_Solver>, EndWithMpi<HYPRE_BoomerAMGDestroy>> solver_;
};

} // namespace DNDS::Hypre
