/// @file Streams.hpp
/// @brief What the memory pool needs to know about the streams of this process.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <cuda_runtime.h>

#include <functional>

namespace DNDS::Device {

inline cudaStream_t native(StreamHandle stream) { return reinterpret_cast<cudaStream_t>(stream); }

/// A function that returns whether all work has run that is queued now on the default stream and on streams made here.
/// Work being captured does not count: it has not been queued.
std::function<bool()> makeFence();

} // namespace DNDS::Device
