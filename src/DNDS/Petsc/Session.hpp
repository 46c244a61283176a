/// @file Session.hpp
/// @brief Start and end of PETSc, calls of PETSc whose errors become exceptions on all ranks, and owners of its
/// objects.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <petscksp.h>

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace DNDS::Petsc {

static_assert(std::is_same_v<PetscScalar, real>, "DNDS::Petsc needs a PETSc of real double numbers");

/// While an instance exists, errors of PETSc are recorded instead of printed. Instances nest. Local.
class ErrorNotes {
  public:
    ErrorNotes() { PetscPushErrorHandler(note, this); }
    ErrorNotes(const ErrorNotes &) = delete;
    ErrorNotes &operator=(const ErrorNotes &) = delete;
    ~ErrorNotes() { PetscPopErrorHandler(); }

    /// Throws unless `code` is 0: MemoryError if PETSc is out of memory, ArgumentError for arguments or options that it
    /// rejects, else StateError, with PETSc's text and the function that failed.
    void check(PetscErrorCode code, const char *call, SourceLocation where = SourceLocation::current()) const {
        if (code == 0) [[likely]]
            return;
        const char *general = nullptr;
        PetscErrorMessage(code, &general, nullptr);
        throwError(
            kindOf(code),
            fmt::format("{} failed: {}{}", call, general != nullptr ? general : fmt::format("error {}", code), first_),
            where);
    }

  private:
    // PETSc has many codes of wrong arguments, most of them in one range.
    static ErrorKind kindOf(PetscErrorCode code) {
        if (code == PETSC_ERR_MEM)
            return ErrorKind::Memory;
        const bool argument = (code >= PETSC_ERR_ARG_SIZ && code <= PETSC_ERR_ARG_OUTOFRANGE) ||
                              code == PETSC_ERR_ARG_INCOMP || code == PETSC_ERR_ARG_UNKNOWN_TYPE ||
                              code == PETSC_ERR_USER_INPUT;
        return argument ? ErrorKind::Argument : ErrorKind::State;
    }
    // PETSc calls its handler in each function on the way up; only the first knows the cause.
    static PetscErrorCode note(MPI_Comm /*comm*/, int /*line*/, const char *function, const char * /*file*/,
                               PetscErrorCode code, PetscErrorType type, const char *text, void *self) noexcept {
        if (type == PETSC_ERROR_INITIAL)
            static_cast<ErrorNotes *>(self)->first_ =
                fmt::format(", {} ({})", text != nullptr ? text : "", function != nullptr ? function : "");
        return code;
    }

    std::string first_; ///< message of the function that failed
};

/// Throws as `ErrorNotes::check`, on this rank: for calls of PETSc in programs, whose errors PETSc has printed.
/// Local.
inline void check(PetscErrorCode code, const char *call, SourceLocation where = SourceLocation::current()) {
    if (code != 0) [[unlikely]]
        ErrorNotes().check(code, call, where);
}

/// Runs `body(notes)`, which calls PETSc, on all ranks of `comm`. An exception on any rank is thrown on all, by one
/// reduction at the end; all ranks must reach the calls in which PETSc itself waits for others. Collective.
template <class Body>
void onAllRanks(CommunicatorView comm, Body &&body, SourceLocation where = SourceLocation::current()) {
    comm.beforeCollective(where);
    comm.guarded(
        [&] {
            const ErrorNotes notes;
            body(notes);
        },
        where);
}

/// Owns an object of PETSc: `Owner<Vec, VecDestroy>`. Move-only. Objects are destroyed in the same order on all ranks
/// and before PETSc ends; after that the destructor does nothing.
template <class Object, PetscErrorCode (*destroy)(Object *)>
class Owner {
  public:
    Owner() = default;
    Owner(Owner &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Owner &operator=(Owner &&other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    ~Owner() { reset(); }

    /// The object, for calls of PETSc; this remains its owner. May be null.
    Object get() const noexcept { return object_; }
    operator Object() const noexcept { return object_; } // NOLINT: implicit on purpose, for calls of PETSc
    /// For functions that create an object; destroys the current one.
    Object *out() noexcept {
        reset();
        return &object_;
    }
    /// Destroys the object, unless it is null or PETSc has ended.
    void reset() noexcept {
        PetscBool ended = PETSC_FALSE;
        if (object_ != nullptr && PetscFinalized(&ended) == 0 && ended == PETSC_FALSE)
            destroy(&object_);
        object_ = nullptr;
    }

  private:
    Object object_ = nullptr;
};

/// Throws StateError unless PETSc has been started and has not ended. Local.
inline void requireStarted(const char *what, SourceLocation where = SourceLocation::current()) {
    PetscBool started = PETSC_FALSE;
    PetscBool ended = PETSC_FALSE;
    PetscInitialized(&started);
    PetscFinalized(&ended);
    if (started == PETSC_FALSE || ended == PETSC_TRUE)
        throw StateError(fmt::format("{} needs PETSc, which is not running: make a Petsc::Session first", what), where);
}

namespace Detail {

/// The first exception from a product on this thread that no solve has rethrown. PETSc's functions between a solver and
/// an operator, possibly nested in another, cannot pass exceptions on.
inline std::exception_ptr &failureOfProduct() {
    thread_local std::exception_ptr failure;
    return failure;
}

} // namespace Detail

/// Converts a number of rows or columns to PETSc's integers. Local. Throws ArgumentError if they are too short.
inline PetscInt toPetscInt(index number, const char *what) {
    const auto made = static_cast<PetscInt>(number);
    DNDS_CHECK(made == number, ArgumentError,
               "{}: {} is more than the {}-bit integers of this PETSc hold: configure it with --with-64-bit-indices",
               what, number, sizeof(PetscInt) * 8);
    return made;
}

/// Starts PETSc within MPI and ends it, unless it runs already, without PETSc's handlers of signals:
///
///     return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) {
///         const DNDS::Petsc::Session petsc("-heat_ksp_type cg -heat_pc_type gamg");
///
/// PETSc reads options from the environment variable PETSC_OPTIONS, from its files, and from `options`, which take
/// precedence. Destroy all objects of PETSc before the session. If an exception leaves its scope, PETSc is not
/// finalised, since other ranks may not take part. Constructor and destructor are Collective over MPI_COMM_WORLD. The
/// constructor throws on all ranks as `ErrorNotes::check`.
class Session {
  public:
    /// Starts PETSc unless it runs already; `options` as on its command line.
    explicit Session(const std::string &options = {}) {
        const CommunicatorView world(MPI_COMM_WORLD);
        PetscBool running = PETSC_FALSE;
        PetscInitialized(&running);
        if (running == PETSC_FALSE) {
            PetscOptionsSetValue(nullptr, "-no_signal_handler", "true");
            owner_ = PetscInitializeNoArguments() == 0;
            world.guarded(
                [&] { DNDS_CHECK(owner_, StateError, "PETSc could not be started: see what it has written"); });
        }
        onAllRanks(world, [&](const ErrorNotes &notes) {
            notes.check(PetscOptionsInsertString(nullptr, options.c_str()), "PetscOptionsInsertString");
        });
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
    ~Session() {
        if (owner_ && mpiActive() && std::uncaught_exceptions() == exceptionsAtStart_)
            PetscFinalize();
    }

  private:
    bool owner_ = false;
    int exceptionsAtStart_ = std::uncaught_exceptions();
};

} // namespace DNDS::Petsc
