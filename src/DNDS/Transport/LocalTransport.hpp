/// @file LocalTransport.hpp
/// @brief Rows that a rank pulls from itself: a copy, no message.
#pragma once

#include "DNDS/Transport/TransportDescriptor.hpp"

namespace DNDS {

/// Copies within this rank, in host memory and in device memory.
TransportDescriptor describeLocalTransport();

} // namespace DNDS
