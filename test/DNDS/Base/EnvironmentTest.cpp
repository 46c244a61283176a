#include "DNDS/Base/Environment.hpp"

#include "DNDS/Base/Error.hpp"

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

TEST(Environment, SwitchesAreZeroOrOneAndOffWhereUnset) {
    ::unsetenv("DNDS_FORCE_HOST_STAGING");
    EXPECT_FALSE(readEnvironment().forceHostStaging);
    ::setenv("DNDS_FORCE_HOST_STAGING", "1", 1);
    EXPECT_TRUE(readEnvironment().forceHostStaging);
    ::setenv("DNDS_FORCE_HOST_STAGING", "0", 1);
    EXPECT_FALSE(readEnvironment().forceHostStaging);
    ::setenv("DNDS_FORCE_HOST_STAGING", "yes", 1);
    EXPECT_THROW(static_cast<void>(readEnvironment()), ArgumentError);
    ::unsetenv("DNDS_FORCE_HOST_STAGING");
    ::setenv("DNDS_DISABLE_GPU_AWARE_MPI", "1", 1);
    EXPECT_TRUE(readEnvironment().disableGpuAwareMpi);
    ::unsetenv("DNDS_DISABLE_GPU_AWARE_MPI");
}

} // namespace
} // namespace DNDS
