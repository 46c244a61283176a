#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <atomic>

#include <pthread.h>

namespace DNDS {

namespace {

/// Set in a child by the handler of pthread_atfork; never reset, and inherited by its own children.
std::atomic<bool> forkedChild{false};

/// Called when MPI is known to be in use, so that children of programs that start MPI later are free to use it.
/// Handlers of pthread_atfork cannot be removed: the static local registers one a process.
void watchForks() noexcept {
    static const int watched =
        pthread_atfork(nullptr, nullptr, [] { forkedChild.store(true, std::memory_order_relaxed); });
    (void)watched;
}

} // namespace

bool inForkedChild() noexcept { return forkedChild.load(std::memory_order_relaxed); }

void checkMpi(int code, const char *call, SourceLocation where) {
    if (code == MPI_SUCCESS) [[likely]]
        return;
    std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS)
        length = 0;
    throw MpiError(fmt::format("{} failed with code {}: {}", call, code,
                               length > 0 ? std::string(text.data(), static_cast<std::size_t>(length))
                                          : std::string("(MPI gives no text)")),
                   where);
}

// MPI_Initialized and MPI_Finalized are among the few functions that the standard allows at any time, from any thread.
bool mpiActive() noexcept {
    int initialized = 0;
    int finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    return initialized != 0 && finalized == 0 && !inForkedChild();
}

bool mpiServesAllThreads() noexcept {
    int level = MPI_THREAD_SINGLE;
    return MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE;
}

// Destructors may run on any thread; below MPI_THREAD_MULTIPLE only the thread that made the object is known to be
// allowed.
bool mayCallMpi(std::thread::id maker) noexcept { return maker == std::this_thread::get_id() || mpiServesAllThreads(); }

// Calls that need MPI pass through here; the first of them registers the handler of forks.
void requireMpiActive(const char *what, SourceLocation where) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized == 0) [[unlikely]]
        throw StateError(fmt::format("{} before MPI_Init: create a DNDS::MpiSession (or call MPI_Init) first", what),
                         where);
    watchForks();
    if (inForkedChild()) [[unlikely]]
        throw StateError(
            fmt::format("{} in a forked child: MPI belongs to its parent, so leave exchanges to the parent", what),
            where);
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) [[unlikely]]
        throw StateError(fmt::format("{} after MPI_Finalize: finish exchanges before MPI is finalized", what), where);
}

} // namespace DNDS
