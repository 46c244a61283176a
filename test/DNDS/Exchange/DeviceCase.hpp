/// @file DeviceCase.hpp
/// @brief For tests of exchanges in device memory.
#pragma once

#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Exchange/ExchangeTypes.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
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

/// Sets an environment variable on this rank and restores it.
class WithVariable {
  public:
    WithVariable(const char *name, const std::string &value) : name_(name) {
        if (const char *before = std::getenv(name))
            before_ = before;
        ::setenv(name, value.c_str(), 1);
    }
    WithVariable(const WithVariable &) = delete;
    WithVariable &operator=(const WithVariable &) = delete;
    ~WithVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

  private:
    const char *name_;
    std::optional<std::string> before_;
};

} // namespace DNDS::test
