#include "DNDS/OneSided/DeviceAccess.hpp"

#include "../Mpi/ThrowsOnAll.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;

TEST(KernelWaits, AreForRanksWhoseKernelsRunBesideEachOther) {
    const auto why = [](const std::vector<Detail::DeviceOfRank> &devices) { return Detail::whyNoKernelWaits(devices); };
    EXPECT_EQ(why({{"a", ""}}), "");
    EXPECT_EQ(why({{"a", ""}, {"b", ""}, {"c", "MPS of /x"}}), "");
    expectContains(why({{"a", ""}, {"b", ""}, {"a", ""}}), "ranks 0 and 2 share a GPU"); // the same for rank 1
    expectContains(why({{"a", ""}, {"b", ""}, {"b", ""}}), "ranks 1 and 2 share a GPU (without MPS; without MPS)");
    EXPECT_EQ(why({{"a", "MPS of /x"}, {"b", ""}, {"a", "MPS of /x"}}), "");
    EXPECT_EQ(why({{"a", "MPS of /x"}, {"a", "MPS of /x"}, {"a", "MPS of /x"}}), "");
    expectContains(why({{"a", "MPS of /x"}, {"a", "MPS of /x"}, {"a", ""}}),
                   "ranks 0 and 2 share a GPU (MPS of /x; without MPS)");
    expectContains(why({{"a", "MPS of /x"}, {"a", "MPS of /y"}}), "(MPS of /x; MPS of /y)");
    expectContains(why({{"a", ""}, {"b", "", true}}), "each kernel of rank 1 when it is first launched");
    expectContains(why({{"a", "", true}}), "CUDA_MODULE_LOADING=EAGER"); // one rank's kernels may wait, too
}

} // namespace
} // namespace DNDS
