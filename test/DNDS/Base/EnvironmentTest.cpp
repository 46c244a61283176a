#include "DNDS/Base/Environment.hpp"

#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

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

TEST(Environment, LaunchersTellTheRankOnTheMachine) {
    std::map<std::string, std::string> before; // of the launcher of this test
    for (const char *name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
                             "PALS_LOCAL_RANKID", "SLURM_LOCALID"}) {
        if (const char *value = std::getenv(name))
            before[name] = value;
        ::unsetenv(name);
    }
    EXPECT_EQ(rankByLauncher(), 0);
    ::setenv("SLURM_LOCALID", "3", 1);
    EXPECT_EQ(rankByLauncher(), 3);
    ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", "2", 1); // mpiexec within a job of Slurm
    EXPECT_EQ(rankByLauncher(), 2);
    ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", "two", 1);
    EXPECT_THROW(rankByLauncher(), ArgumentError);
    ::unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    ::unsetenv("SLURM_LOCALID");
    for (const auto &[name, value] : before)
        ::setenv(name.c_str(), value.c_str(), 1);
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
    ::setenv("DNDS_REPORT", "1", 1);
    EXPECT_TRUE(readEnvironment().report);
    ::unsetenv("DNDS_REPORT");
    ::setenv("DNDS_ROLL_CALL", "1", 1);
    EXPECT_TRUE(readEnvironment().rollCall);
    EXPECT_EQ(readEnvironment().choices().at(8).second, "1"); // ranks compare it
    ::unsetenv("DNDS_ROLL_CALL");
}

} // namespace
} // namespace DNDS
