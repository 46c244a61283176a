#include "DNDS/Mpi/AtFinalize.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <memory>

namespace DNDS {

namespace {

/// The value of an attribute of MPI_COMM_SELF; owned by MPI until it calls `callAction`, which frees it.
/// MPI stores pointers only, so each registration is a small record on the heap.
struct Action {
    void (*call)(void *) noexcept;
    void *argument;
};

int callAction(MPI_Comm, int, void *value, void *) {
    const std::unique_ptr<Action> action(static_cast<Action *>(value));
    action->call(action->argument);
    return MPI_SUCCESS;
}

} // namespace

// O(1): one key and one attribute. Actions run in reverse order of registration, so an action may still use objects
// that were registered before it.
void atFinalize(void (*action)(void *) noexcept, void *argument) {
    requireMpiActive("an action at the end of MPI is wanted");
    auto kept = std::make_unique<Action>(Action{action, argument});
    // MPI_Finalize deletes the attributes of MPI_COMM_SELF before anything else, in reverse order of setting (MPI 3.1,
    // section 8.7.1), so MPI still works in `action`. Each action has a key of its own.
    int key = MPI_KEYVAL_INVALID;
    checkMpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callAction, &key, nullptr), "MPI_Comm_create_keyval");
    checkMpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, kept.get()), "MPI_Comm_set_attr");
    static_cast<void>(kept.release());
}

} // namespace DNDS
