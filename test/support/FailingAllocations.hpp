/// @file FailingAllocations.hpp
/// @brief Replaces operator new of a test program, so that a chosen allocation fails on one rank only. Include it in
/// one source of a program.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <set>

namespace DNDS::test {

inline thread_local std::int64_t allocations = 0; ///< since it was set to 0
inline thread_local std::int64_t failsAt = 0;     ///< none fails where it is 0
inline thread_local bool failsOn = false;         ///< so do all that follow
inline thread_local bool failed = false;

inline void *allocateOrFail(std::size_t bytes) {
    ++allocations;
    if (allocations == failsAt || (failsOn && failsAt > 0 && allocations > failsAt)) {
        failed = true;
        throw std::bad_alloc();
    }
    if (void *memory = std::malloc(bytes == 0 ? 1 : bytes))
        return memory;
    throw std::bad_alloc();
}

} // namespace DNDS::test

// Not inlined, or g++ warns of free() beside operator new.
[[gnu::noinline]] void *operator new(std::size_t bytes) { return DNDS::test::allocateOrFail(bytes); }
[[gnu::noinline]] void *operator new[](std::size_t bytes) { return DNDS::test::allocateOrFail(bytes); }
// Callers of the nothrow form handle failure themselves.
[[gnu::noinline]] void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept { return std::malloc(bytes); }
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void *memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, const std::nothrow_t &) noexcept { std::free(memory); }

namespace DNDS::test {

/// The first ones, and others over all of `count` allocations: the same on all ranks.
inline std::set<std::int64_t> chosen(std::int64_t count, int samples) {
    std::set<std::int64_t> numbers;
    for (std::int64_t n = 1; n <= count; n += 1 + n / 2)
        numbers.insert(n);
    for (int k = 1; k <= samples; k++)
        numbers.insert(std::max<std::int64_t>(1, count * k / samples));
    return numbers;
}

/// Allowed outcomes of work when an allocation fails.
enum class Outcome : unsigned char { Throws, ThrowsOrDoesWithout };

/// Runs `work` again and again, and another of one rank's allocations fails each time.
template <class Work>
void failEverywhere(int samples, Work &&work, Outcome outcome = Outcome::Throws) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    work(); // what is made once for the process is made here
    for (const int victim : {0, comm.size() - 1}) {
        allocations = 0;
        work();
        const std::int64_t count = comm.allReduce(comm.rank() == victim ? allocations : 0, MPI_MAX);
        int failures = 0;
        for (const std::int64_t n : chosen(count, samples)) {
            SCOPED_TRACE(testing::Message() << "allocation " << n << " of " << count << " of rank " << victim);
            failed = false;
            allocations = 0;
            failsAt = comm.rank() == victim ? n : 0;
            int threw = 0;
            try {
                work();
            } catch (const std::exception &) {
                threw = 1;
            }
            failsAt = 0;
            ASSERT_EQ(comm.allReduce(threw, MPI_SUM), threw * comm.size()) << "some ranks threw and others did not";
            const int ranOut = comm.allReduce(failed ? 1 : 0, MPI_MAX);
            if (comm.allReduce(isRevoked(comm) ? 1 : 0, MPI_MAX) == 1) // a running call failed
                recover(comm);
            if (outcome == Outcome::Throws) {
                EXPECT_EQ(ranOut, threw);
            }
            failures += threw;
        }
        EXPECT_GT(failures, std::min<std::int64_t>(count, samples) / (outcome == Outcome::Throws ? 3 : 5));
        work();
    }
}

/// Another allocation of `call` of rank `victim` fails each time, after `prepare` has made the same of everything;
/// `after` recovers, whether or not a rank threw, and looks at results. Collective on MPI_COMM_WORLD.
template <class Prepare, class Call, class After>
void failRunningCalls(int victim, int samples, Prepare &&prepare, Call &&call, After &&after) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const bool here = comm.rank() == victim;
    prepare();
    allocations = 0;
    call();
    const std::int64_t count = comm.allReduce(here ? allocations : 0, MPI_MAX);
    ASSERT_GT(count, 0);
    after();
    for (const std::int64_t n : chosen(count, samples)) {
        SCOPED_TRACE(testing::Message() << "allocation " << n << " of " << count << " of rank " << victim);
        prepare();
        comm.barrier(); // no rank fails before all have theirs
        failed = false;
        allocations = 0;
        failsAt = here ? n : 0;
        bool threw = false;
        try {
            call();
        } catch (const RevokedError &error) {
            threw = true;
            EXPECT_EQ(error.failedRank(), victim);
        } catch (const std::exception &error) {
            threw = true;
            EXPECT_TRUE(here) << error.what();
        }
        failsAt = 0;
        const bool anyThrew = comm.allReduce(here && threw ? 1 : 0, MPI_MAX) == 1;
        while (anyThrew && !threw) // where a peer was ahead
            try {
                call();
            } catch (const RevokedError &) {
                threw = true;
            }
        comm.barrier(); // no rank recovers before all know
        after();
    }
}

} // namespace DNDS::test
