#include "DNDS/Base/Environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace DNDS {
namespace {

TEST(Environment, TransportIsReadAnewEachTimeAndEmptyWhereUnset) {
    ::unsetenv("DNDS_TRANSPORT");
    EXPECT_EQ(readEnvironment().transport, "");
    ::setenv("DNDS_TRANSPORT", "packed", 1);
    EXPECT_EQ(readEnvironment().transport, "packed");
    ::setenv("DNDS_TRANSPORT", "no such thing", 1); // names are judged where they are used
    EXPECT_EQ(readEnvironment().transport, "no such thing");
    ::unsetenv("DNDS_TRANSPORT");
    EXPECT_EQ(readEnvironment().transport, "");
}

} // namespace
} // namespace DNDS
