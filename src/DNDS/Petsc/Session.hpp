/// @file Session.hpp
/// @brief Start and end of PETSc.
#pragma once

#include "DNDS/Petsc/Calls.hpp"

#include <exception>
#include <string>

namespace DNDS::Petsc {

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
