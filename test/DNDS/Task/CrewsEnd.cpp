// Waits after the last test until no crew is left: threads that were called while the machine was busy may not have
// come yet, and what is kept for them would be reported as a leak.

#include "DNDS/Task/Crew.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace DNDS::Task {
namespace {

class CrewsEnd : public testing::Environment {
  public:
    void TearDown() override {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (Crew::living() > 0 && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(Crew::living(), 0) << "crews without an end";
    }
};

[[maybe_unused]] const auto *const crewsEnd = testing::AddGlobalTestEnvironment(new CrewsEnd);

} // namespace
} // namespace DNDS::Task
