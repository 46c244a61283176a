/// @file ThrowsOnAll.hpp
/// @brief The message of a call's exception, on this rank or on all.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <exception>
#include <string>
#include <utility>

namespace DNDS::test {

/// The text that `call` threw as an `Exception`, and "" with a failed test where it threw nothing or something else.
/// Local.
template <class Exception, class Call>
std::string messageOf(Call &&call) {
    try {
        std::forward<Call>(call)();
    } catch (const Exception &error) {
        return error.what();
    } catch (const std::exception &error) {
        ADD_FAILURE() << "threw something else: " << error.what();
        return {};
    }
    ADD_FAILURE() << "threw nothing";
    return {};
}

/// The same, and fails unless every rank threw that type. Collective.
template <class Exception, class Call>
std::string messageOnAll(Call &&call) {
    const std::string text = messageOf<Exception>(std::forward<Call>(call));
    int throwing = text.empty() ? 0 : 1;
    MPI_Allreduce(MPI_IN_PLACE, &throwing, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(throwing, worldSize()) << "not every rank threw; here: " << text;
    return text;
}

/// Fails the test unless `text` contains `part`.
inline void expectContains(const std::string &text, const std::string &part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

} // namespace DNDS::test
