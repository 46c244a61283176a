/// @file PinnedMemory.hpp
/// @brief Host memory for copies to and from the device, for arrays and for buffers.
#pragma once

#include "DNDS/Base/HostMemory.hpp"

namespace DNDS::Device {

/// Pinned host memory for arrays and containers: `array.rehost(Device::pinnedHostMemory())`, or std::pmr containers.
/// Local; never null. Allocating throws NotBuiltError without a device.
const HostMemoryResource &pinnedHostMemory();

} // namespace DNDS::Device
