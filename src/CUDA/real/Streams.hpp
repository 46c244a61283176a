/// @file Streams.hpp
/// @brief Stream queries for the memory pool.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <cuda_runtime.h>

#include <functional>

namespace DNDS::Device {

inline cudaStream_t native(StreamHandle stream) { return reinterpret_cast<cudaStream_t>(stream); }

/// Lets this thread call CUDA while another thread captures a graph in CUDA's default mode, as user code and PyTorch
/// do: queries and allocations would otherwise fail and invalidate that graph. Not for captured code.
class RelaxedCaptureScope {
  public:
    RelaxedCaptureScope() noexcept { exchange(); }
    ~RelaxedCaptureScope() { exchange(); }
    RelaxedCaptureScope(const RelaxedCaptureScope &) = delete;
    RelaxedCaptureScope &operator=(const RelaxedCaptureScope &) = delete;

  private:
    // Swaps the wanted mode with the thread's: the second call restores what the first one found.
    void exchange() noexcept { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }

    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed; ///< the thread's mode while this exists
};

/// Makes a function that tells whether all work has run that is now queued on the default stream and our own streams,
/// and on other streams up to their last `recordUse`. Work being captured is not queued and does not count.
std::function<bool()> makeFence();

/// Whether the default stream is unusable because the program captures a stream that synchronises with it. Fences made
/// meanwhile do not pass before the capture has ended.
bool defaultStreamIsClosed();

} // namespace DNDS::Device
