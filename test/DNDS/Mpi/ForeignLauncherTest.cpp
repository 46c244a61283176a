#include "DNDS/Mpi/RunMain.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace DNDS {
namespace {

/// The environment of a launcher, instead of that of the one which started this test.
class LauncherEnvironment {
  public:
    explicit LauncherEnvironment(const std::map<std::string, std::string> &variables) {
        for (const char *name :
             {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK", "MV2_COMM_WORLD_SIZE",
              "MV2_COMM_WORLD_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NPROCS"}) {
            if (const char *value = std::getenv(name))
                before_[name] = value;
            ::unsetenv(name);
            names_.emplace_back(name);
        }
        for (const auto &[name, value] : variables)
            ::setenv(name.c_str(), value.c_str(), 1);
    }
    LauncherEnvironment(const LauncherEnvironment &) = delete;
    LauncherEnvironment &operator=(const LauncherEnvironment &) = delete;
    ~LauncherEnvironment() {
        for (const std::string &name : names_)
            ::unsetenv(name.c_str());
        for (const auto &[name, value] : before_)
            ::setenv(name.c_str(), value.c_str(), 1);
    }

  private:
    std::map<std::string, std::string> before_;
    std::vector<std::string> names_;
};

std::string warningIn(const std::map<std::string, std::string> &variables, int ranks = 1) {
    const LauncherEnvironment environment(variables);
    return foreignLauncherWarning(launcherInfo(), ranks, "Some MPI v4.1, package: anything");
}

TEST(ForeignLauncher, WarnsOnceWhereRanksBelieveToBeAlone) {
    const std::string warning = warningIn({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "0"}});
    EXPECT_NE(warning.find("4 processes were started (OMPI_COMM_WORLD_SIZE=4), but MPI sees one rank"),
              std::string::npos)
        << warning;
    EXPECT_NE(warning.find("which has Some MPI v4.1: start"), std::string::npos) << warning;
    EXPECT_EQ(warningIn({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}}), "");
    EXPECT_NE(warningIn({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}), "");
    EXPECT_NE(warningIn({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}}), "");
}

TEST(ForeignLauncher, RaisesNoFalseAlarm) {
    EXPECT_EQ(warningIn({}), "");
    EXPECT_EQ(warningIn({{"OMPI_COMM_WORLD_SIZE", "4"}}, 4), "");
    EXPECT_EQ(warningIn({{"OMPI_COMM_WORLD_SIZE", "1"}}), "");
    EXPECT_EQ(warningIn({{"OMPI_COMM_WORLD_SIZE", "many"}}), "");
    // A program by itself in an allocation or a batch script of many tasks.
    EXPECT_EQ(warningIn({{"SLURM_NTASKS", "64"}, {"SLURM_NPROCS", "64"}, {"SLURM_PROCID", "0"}}), "");
    // An interactive shell within it.
    EXPECT_EQ(warningIn({{"SLURM_NTASKS", "64"}, {"SLURM_STEP_NUM_TASKS", "1"}}), "");
    // mpiexec -n 1 there, whose daemons are tasks of Slurm, one a node; and within a rank of another MPI's job.
    EXPECT_EQ(warningIn({{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}}), "");
    EXPECT_EQ(warningIn({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_SIZE", "1"}}), "");
}

} // namespace
} // namespace DNDS
