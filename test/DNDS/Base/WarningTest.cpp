#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace DNDS {
namespace {

TEST(Warnings, GoToStderrUntilSomebodyTakesThem) {
    testing::internal::CaptureStderr();
    warn("rank {} waits", 3);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "DNDS: rank 3 waits\n");

    std::vector<std::string> taken;
    setWarningSink([&](std::string_view text) { taken.emplace_back(text); });
    testing::internal::CaptureStderr();
    warn("two");
    warn("{}", "three");
    setWarningSink([](std::string_view) { throw std::runtime_error("the logger's own"); });
    warn("four");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(taken, (std::vector<std::string>{"two", "three"}));

    setWarningSink({});
    testing::internal::CaptureStderr();
    warn("five");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "DNDS: five\n");
}

/// The text that a warning prints to stderr with DNDS_WARNINGS set to `place`.
std::string printedWith(const std::string &place, const char *text) {
    ::setenv("DNDS_WARNINGS", place.c_str(), 1);
    testing::internal::CaptureStderr();
    warn("{}", text);
    ::unsetenv("DNDS_WARNINGS");
    return testing::internal::GetCapturedStderr();
}

TEST(Warnings, GoWhereTheUserSays) {
    const int rank = errorRank();
    setErrorRank(3);
    EXPECT_EQ(printedWith("stderr", "one"), "DNDS: one\n");
    EXPECT_EQ(printedWith("rank0", "two"), "");
    EXPECT_EQ(printedWith("none", "three"), "");
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("dnds_warnings_{}", ::getpid());
    std::filesystem::create_directory(folder);
    EXPECT_EQ(printedWith((folder / "of-%r.log").string(), "four"), "");
    EXPECT_EQ(printedWith((folder / "of-%r.log").string(), "five"), "");
    std::ifstream log(folder / "of-3.log");
    std::string line;
    for (const std::string text : {"four", "five"}) { // after a time such as 2026-01-31T12:00:00Z
        ASSERT_TRUE(std::getline(log, line));
        EXPECT_EQ(line.substr(19), "Z rank 3: " + text);
    }
    EXPECT_FALSE(std::getline(log, line));
    EXPECT_EQ(printedWith("/nowhere/x.log", "six"),
              "DNDS: six\n(DNDS_WARNINGS: /nowhere/x.log cannot be written: No such file or directory)\n");
    setErrorRank(0);
    EXPECT_EQ(printedWith("rank0", "seven"), "DNDS: seven\n");

    std::string taken; // what the program takes, the user's choice leaves alone
    setWarningSink([&](std::string_view text) { taken = text; });
    EXPECT_EQ(printedWith("none", "eight"), "");
    EXPECT_EQ(taken, "eight");
    setWarningSink({});
    setErrorRank(rank);
    std::filesystem::remove_all(folder);
}

TEST(Warnings, LongOnesAreCutOrWhole) {
    const std::string text(5000, 'x');
    testing::internal::CaptureStderr();
    warn(std::string_view(text));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "DNDS: " + text + "\n");
    testing::internal::CaptureStderr();
    warn("{}", text);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "DNDS: " + text.substr(0, 2000) + "\n");
}

} // namespace
} // namespace DNDS
