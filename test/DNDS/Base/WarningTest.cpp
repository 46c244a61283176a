#include "DNDS/Base/Warning.hpp"

#include <gtest/gtest.h>

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
