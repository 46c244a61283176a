/// @file KernelLoading.hpp
/// @brief When kernels are loaded: where that is at their first launch, no kernel may wait for another one.
#pragma once

namespace DNDS::Device {

/// Whether each kernel is loaded when it is first launched, as CUDA does by default since 12.2. Loading may wait for
/// all kernels that run, so that one that waits for the launch never ends. Local. @throws NotBuiltError.
bool loadsKernelsLazily();

} // namespace DNDS::Device
