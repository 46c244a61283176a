#include "DNDS/OneSided/DeviceAccess.hpp"

#include "../Mpi/ThrowsOnAll.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;

TEST(KernelWaits, AreForRanksThatEachHaveADevice) {
    const auto why = [](const std::vector<std::string> &devices) { return Detail::whyNoKernelWaits(devices); };
    EXPECT_EQ(why({"a"}), "");
    EXPECT_EQ(why({"a", "b", "c"}), "");
    expectContains(why({"a", "b", "a"}), "ranks 0 and 2 share a GPU"); // the same for rank 1, which shares none
    expectContains(why({"a", "b", "b"}), "ranks 1 and 2 share a GPU");
}

} // namespace
} // namespace DNDS
