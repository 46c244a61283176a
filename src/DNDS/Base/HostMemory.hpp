/// @file HostMemory.hpp
/// @brief The default memory resource for host memory of arrays.
#pragma once

#include <memory>
#include <memory_resource>

namespace DNDS {

/// A source of host memory, shared by all buffers that must return memory to it.
using HostMemoryResource = std::shared_ptr<std::pmr::memory_resource>;

/// Aligned operator new. Local; never null.
const HostMemoryResource &defaultHostMemory();

} // namespace DNDS
