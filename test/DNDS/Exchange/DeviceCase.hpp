/// @file DeviceCase.hpp
/// @brief Fixtures for tests of exchanges in device memory and for tests compiled for both spaces.
#pragma once

#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace DNDS::test {

/// Skipped where there is no device.
class WithDevice : public testing::Test {
  protected:
    void SetUp() override {
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
    }
};

/// The device transports that can be forced here, the same on all ranks. Collective.
inline std::vector<TransportKind> deviceTransports() {
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    const DeviceTopology &devices = DeviceTopology::of(*context);
    std::vector<TransportKind> kinds{TransportKind::Staged};
    if (devices.mpiTakesDeviceMemory())
        kinds.push_back(TransportKind::Direct);
    int reached = 1;
    for (int peer = 0; peer < context->comm().size(); ++peer)
        if (peer != context->comm().rank() && context->node().sameNode(peer) && !devices.reaches(peer))
            reached = 0;
    if (context->comm().allReduce(reached, MPI_MIN) == 1)
        kinds.push_back(TransportKind::Peer);
    return kinds;
}

/// The transports that can be forced here for rows of the space that this program tests: of the device where it is
/// compiled with DNDS_TEST_DEVICE_ROWS. Collective.
inline std::vector<TransportKind> transportsUnderTest() {
#if defined(DNDS_TEST_DEVICE_ROWS)
    return Device::available() ? deviceTransports() : std::vector<TransportKind>{};
#else
    return allTransports();
#endif
}
#if defined(DNDS_TEST_DEVICE_ROWS)
inline constexpr bool testsDeviceRows = true;
#else
inline constexpr bool testsDeviceRows = false;
#endif

/// Moves both arrays to the space that this program tests, or back to the host.
template <class Pair>
void toSpaceUnderTest(Pair &pair) {
    if (testsDeviceRows && Device::available())
        pair.toDevice();
}
template <class Pair>
void backToHost(Pair &pair) {
    if (testsDeviceRows && Device::available())
        pair.toHost();
}

} // namespace DNDS::test
