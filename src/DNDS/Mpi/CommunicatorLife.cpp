#include "DNDS/Mpi/Communicator.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <mutex>
#include <optional>

namespace DNDS {

namespace {

using Flag = std::shared_ptr<std::atomic<bool>>;

/// MPI calls it when the communicator is freed: sets the flag that copies share, and drops MPI's reference.
int endLife(MPI_Comm, int, void *value, void *) {
    auto *held = static_cast<Flag *>(value);
    (*held)->store(true, std::memory_order_relaxed);
    delete held;
    return MPI_SUCCESS;
}

int makeKey() {
    int key = MPI_KEYVAL_INVALID;
    checkMpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, endLife, &key, nullptr), "MPI_Comm_create_keyval");
    return key;
}

} // namespace

// An attribute with a delete function is the only notice that MPI gives of MPI_Comm_free. Local; the flag lives as long
// as its last copy, beyond the communicator.
CommunicatorLife::CommunicatorLife(CommunicatorView comm) {
    // Outside of MPI there is no communicator to ask.
    if (!mpiActive()) {
        ended_ = std::make_shared<const std::atomic<bool>>(true);
        return;
    }
    std::optional<ThreadUse::Scope> use;
    if (!mpiServesAllThreads())
        use.emplace(ThreadUse::ofProcess(), [] { return std::string("an array is made"); });
    static const int key = makeKey();
    static std::mutex hanging; // or two threads attach a flag each, and MPI deletes the first one
    const std::lock_guard lock(hanging);
    void *value = nullptr;
    int found = 0;
    checkMpi(MPI_Comm_get_attr(comm.handle(), key, &value, &found), "MPI_Comm_get_attr");
    if (found == 0) {
        auto made = std::make_unique<Flag>(std::make_shared<std::atomic<bool>>(false));
        checkMpi(MPI_Comm_set_attr(comm.handle(), key, made.get()), "MPI_Comm_set_attr");
        value = made.release();
    }
    ended_ = *static_cast<const Flag *>(value);
}

} // namespace DNDS
