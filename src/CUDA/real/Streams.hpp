/// @file Streams.hpp
/// @brief What the memory pool needs to know about the streams of this process.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <cuda_runtime.h>

#include <functional>

namespace DNDS::Device {

inline cudaStream_t native(StreamHandle stream) { return reinterpret_cast<cudaStream_t>(stream); }

/// Lets calls of this thread pass while another thread captures a graph in CUDA's default mode, as user code and
/// PyTorch do: otherwise a query or an allocation here would fail and void that graph. Not for what is captured itself.
class BesideCaptures {
  public:
    BesideCaptures() noexcept { exchange(); }
    ~BesideCaptures() { exchange(); }
    BesideCaptures(const BesideCaptures &) = delete;
    BesideCaptures &operator=(const BesideCaptures &) = delete;

  private:
    void exchange() noexcept { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }

    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed; ///< of the thread, while this object exists
};

/// A function that returns whether all work has run that is queued now on the default stream, on streams made here, and
/// on others at their last `recordUse`. Work being captured does not count: it has not been queued.
std::function<bool()> makeFence();

} // namespace DNDS::Device
