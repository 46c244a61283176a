/// @file Survival.hpp
/// @brief The harness of all tests of survival: one rank fails while others make running calls, every rank gets the
/// right error in time, all recover.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include <unistd.h>

namespace DNDS::test {

/// Within how many seconds of a failure every rank throws: one on an idle machine, and five where it may do other work.
///
/// DNDS_TEST_PATIENCE=NUMBER: seconds until a failure must have reached all ranks in tests of survival (5; an idle
/// machine takes less than 1).
inline double maxSeconds() {
    const char *const patience = std::getenv("DNDS_TEST_PATIENCE");
    return patience == nullptr ? 5.0 : std::atof(patience);
}

/// One rank does something wrong, and the others what they always do.
struct Failure {
    int rank;                                ///< the failing rank
    std::string told;                        ///< part of the errors of all ranks
    std::function<void()> happens;           ///< on that rank; throws what it sees of it
    std::function<void()> call;              ///< on the others, again and again until it throws
    std::function<void()> repair = [] {};    ///< on the rank that failed, before the recovery
    std::function<void()> recover = nullptr; ///< on all ranks, instead of DNDS::recover
    bool anyMayNotice = false;               ///< another rank may be the first to throw
    bool callsWait = false;                  ///< a call of the others never ends by itself
    bool mayNotFail = false;                 ///< the failing call may not be needed; then all have made one call
};

/// Fails the test unless all ranks throw in time what `failure` says, and recover. False where nothing failed.
/// Collective.
inline bool survive(CommunicatorView comm, const Failure &failure) {
    comm.barrier(); // no rank fails before all ranks are here
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    const bool here = comm.rank() == failure.rank;
    const bool alone = comm.size() == 1;
    std::string text;
    const auto attempt = [&](const std::function<void()> &call) {
        try {
            call();
        } catch (const RevokedError &error) {
            text = error.what();
            EXPECT_TRUE(failure.anyMayNotice || error.failedRank() == failure.rank) << text;
            expectContains(text, "recover");
        } catch (const std::exception &error) {
            text = error.what();
            EXPECT_TRUE(here || failure.anyMayNotice) << text;
        }
    };
    attempt(here ? failure.happens : failure.call);
    EXPECT_FALSE(!here && failure.callsWait && text.empty()) << "the call ended";
    if (failure.mayNotFail && comm.allReduce(here && text.empty() ? 1 : 0, MPI_MAX) == 1)
        return false;
    while (text.empty() && seconds() < maxSeconds()) // peers may lag
        attempt(failure.call);
    EXPECT_LT(seconds(), maxSeconds());
    expectContains(text, failure.told);
    EXPECT_EQ(isRevoked(comm), !alone);
    if (here)
        failure.repair();
    failure.recover ? failure.recover() : recover(comm);
    EXPECT_FALSE(isRevoked(comm));
    comm.barrier(); // no rank recovers again, or fails, before all have looked
    return true;
}

/// Bytes that this rank has taken of the memory of its node, after what is done with was freed. Collective.
inline std::size_t settledBytes(CommunicatorView comm) {
    comm.barrier();
    const auto context = CommunicatorContext::of(comm);
    context->progressParked();
    if (!context->node().arena)
        return 0;
    context->node().arena->reap();
    return context->node().arena->bytesInUse();
}

/// Bytes of this process in memory.
inline std::size_t residentBytes() {
    std::size_t total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace DNDS::test
