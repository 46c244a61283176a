/// @file DeviceCase.hpp
/// @brief For tests of exchanges in device memory.
#pragma once

#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Exchange/ExchangeTypes.hpp"

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

/// The device transports that can be forced here.
inline std::vector<TransportKind> deviceTransports() { return {TransportKind::Staged}; }

} // namespace DNDS::test
