#include "DNDS/Mpi/EndJob.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace DNDS::Detail {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// State of the process, as MPI_COMM_WORLD and the terminate handler are.
struct Watch {
    MPI_Comm comm = MPI_COMM_NULL; ///< without other messages, whatever a rank was doing when it failed
    int rank = 0;
    std::vector<std::uint64_t> reasons; ///< [ranks], allocated before memory may be short
    std::terminate_handler before = nullptr;
};
Watch watch;
std::atomic<bool> ending{false};

/// Waits for a non-blocking collective, for a limited time: ranks without a failure never join it, and a blocking
/// one would not return. A request that is not complete then is abandoned, since the job ends anyway.
bool allCome(MPI_Request request) noexcept {
    constexpr auto timeout = 2s;
    int done = 0;
    for (const auto end = Clock::now() + timeout; done == 0 && Clock::now() < end;) {
        if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        if (done == 0)
            std::this_thread::sleep_for(1ms);
    }
    return done != 0;
}

void write(std::string_view who, int rank, std::string_view what) noexcept {
    // In one piece, so that ranks writing at the same time do not mix.
    std::fprintf(stderr, "DNDS: %.*s %d: %.*s\n", static_cast<int>(who.size()), who.data(), rank,
                 static_cast<int>(what.size()), what.data());
    std::fflush(stderr); // all streams would include one that another thread has locked
}

/// Writes it once for all ranks that fail at the same time.
/// Two non-blocking collectives of one word a rank, on a communicator of their own. A rank that fails alone waits 2 s
/// in the first one, then writes its own text. Nothing is allocated: memory may be the failure.
void tell(std::string_view what, std::string_view message) noexcept {
    static std::uint64_t reason = 0; // MPI may read it after this function has timed out
    // Ranks compare hashes of the message without rank and place: the same failure on all ranks has the same one.
    // Never 0.
    reason = std::hash<std::string_view>{}(message) | 1U;
    MPI_Request request = MPI_REQUEST_NULL;
    const bool together = watch.comm != MPI_COMM_NULL && watch.reasons.size() > 1 &&
                          MPI_Iallgather(&reason, 1, MPI_UINT64_T, watch.reasons.data(), 1, MPI_UINT64_T, watch.comm,
                                         &request) == MPI_SUCCESS &&
                          allCome(request);
    if (!together)
        return write("rank", errorRank(), what);
    const auto same = std::count(watch.reasons.begin(), watch.reasons.end(), reason);
    const auto first = std::find(watch.reasons.begin(), watch.reasons.end(), reason) - watch.reasons.begin();
    // Each group of ranks with the same reason has one writer, its lowest rank.
    if (first == watch.rank)
        write(same == static_cast<std::ptrdiff_t>(watch.reasons.size()) ? "all ranks fail, says rank"
              : same > 1                                                ? "several ranks fail, says rank"
                                                                        : "rank",
              watch.rank, what);
    if (MPI_Ibarrier(watch.comm, &request) == MPI_SUCCESS) // all have written before one aborts the others
        allCome(request);
}

void onTerminate() {
    if (!mpiActive() && watch.before != nullptr)
        watch.before();
    endJob(std::current_exception());
}

} // namespace

// Collective: one MPI_Comm_dup, O(ranks) memory.
void watchForFailures() {
    // A communicator of its own, on which no rank can be in another collective when it fails.
    MPI_Comm comm = MPI_COMM_NULL;
    checkMpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
    int size = 0;
    checkMpi(MPI_Comm_rank(comm, &watch.rank), "MPI_Comm_rank");
    checkMpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    watch.reasons.resize(static_cast<std::size_t>(size));
    watch.comm = comm;
    watch.before = std::set_terminate(&onTerminate);
}

void stopWatchingForFailures() noexcept {
    if (watch.comm == MPI_COMM_NULL)
        return;
    if (std::get_terminate() == &onTerminate)
        std::set_terminate(watch.before);
    MPI_Comm_free(&watch.comm);
    watch.comm = MPI_COMM_NULL;
}

// The first thread that fails ends the job; later ones sleep until they are killed. Only the main thread calls MPI,
// which every thread level permits.
void endJob(std::string_view what, std::string_view message) noexcept {
    if (ending.exchange(true)) { // another thread is doing it, or this one failed here
        std::this_thread::sleep_for(10s);
        std::abort();
    }
    int mainThread = 0;
    if (!mpiActive() || MPI_Is_thread_main(&mainThread) != MPI_SUCCESS || mainThread == 0) {
        write("rank", errorRank(), what);
        std::abort(); // mpiexec ends the other ranks
    }
    tell(what, message);
    // MPICH's mpiexec drops pending output when a job aborts. That of Open MPI may hang or crash where
    // several ranks abort at once while others end, so they take turns: the first one's call ends the others.
    std::this_thread::sleep_for(300ms + std::min(errorRank(), 10) * 300ms);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

// Does not return. The message without place is what ranks compare (`tell`).
void endJob(const std::exception_ptr &failure) noexcept {
    try {
        if (failure)
            std::rethrow_exception(failure);
    } catch (const Error &error) {
        endJob(error.what(), error.message());
    } catch (const std::exception &error) {
        endJob(error.what(), error.what());
    } catch (...) {
        constexpr std::string_view unknown = "an exception that is no std::exception";
        endJob(unknown, unknown);
    }
    constexpr std::string_view none = "std::terminate was called without an exception";
    endJob(none, none);
}

} // namespace DNDS::Detail
