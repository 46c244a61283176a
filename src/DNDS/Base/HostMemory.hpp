/// @file HostMemory.hpp
/// @brief The memory resource that arrays take host memory from unless told otherwise.
#pragma once

#include <memory>
#include <memory_resource>

namespace DNDS {

/// Where host memory comes from; shared by all buffers that must give their memory back to it.
using HostMemoryResource = std::shared_ptr<std::pmr::memory_resource>;

/// Ordinary process memory from aligned operator new. Local; never null.
const HostMemoryResource &defaultHostMemory();

} // namespace DNDS
