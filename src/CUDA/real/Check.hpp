/// @file Check.hpp
/// @brief Turns CUDA status codes into exceptions.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

namespace DNDS::Device {

/// Throws MemoryError or StateError, naming `what` and CUDA's reason, unless `status` is success.
void throwFailure(cudaError_t status, std::string_view what);

inline void check(cudaError_t status, std::string_view what) {
    if (status != cudaSuccess) [[unlikely]]
        throwFailure(status, what);
}

} // namespace DNDS::Device
