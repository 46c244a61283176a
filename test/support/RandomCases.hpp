/// @file RandomCases.hpp
/// @brief Random sequences of operations that all ranks draw alike, and how a failure is repeated.
///
/// DNDS_TEST_CASES=NUMBER: how many sequences each random test tries (a few dozen).
#pragma once

#include "DNDS/Mpi/FailTogether.hpp"
#include "support/MpiTest.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace DNDS::test {

/// The operations of a case so far, for the message of a failure.
class RandomLog {
  public:
    explicit RandomLog(std::uint64_t number)
        : text_(fmt::format("the first case of DNDS_TEST_SEED={} on {} ranks: ", number, worldSize())) {}
    template <class... Args>
    void note(fmt::format_string<Args...> format, Args &&...args) {
        text_ += fmt::format(format, std::forward<Args>(args)...);
    }
    const std::string &text() const { return text_; }

  private:
    std::string text_;
};

/// Recovers if any rank has failed. Collective over MPI_COMM_WORLD, by MPI alone.
inline void recoverTogether(CommunicatorView comm) {
    MPI_Barrier(MPI_COMM_WORLD); // no rank asks before all have failed or finished
    int revoked = isRevoked(comm) ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &revoked, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (revoked != 0)
        recover(comm);
}

/// Makes a case from its number and `more`, runs it, and reports what it throws with its log. False on this rank if it
/// failed.
template <class Case, class... More>
bool runCase(std::uint64_t number, More &&...more) {
    std::optional<Case> one;
    try {
        return one.emplace(number, std::forward<More>(more)...).run();
    } catch (const std::exception &error) {
        ADD_FAILURE() << error.what() << "\nthrown in " << (one ? one->log() : RandomLog(number)).text();
        return false;
    }
}

/// Calls `run(number)` with the test's seed and the numbers that follow, DNDS_TEST_CASES of them or `count`, until it
/// returns false on some rank. Collective.
template <class Run>
void forRandomCases(CommunicatorView comm, std::uint64_t count, const Run &run) {
    const char *many = std::getenv("DNDS_TEST_CASES");
    count = many != nullptr ? std::strtoull(many, nullptr, 10) : count;
    for (std::uint64_t k = 0; k < count; ++k) {
        int failed = run(seed() + k) && !testing::Test::HasFailure() ? 0 : 1;
        recoverTogether(comm);
        MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (failed != 0)
            return;
    }
}

} // namespace DNDS::test
