/// @file KernelScope.hpp
/// @brief Marks where host code stands in for a device kernel.
#pragma once

#include "DNDS/Device/Hooks.hpp"

namespace DNDS::Device {

/// Acts as one kernel launch on a stream: on the emulated device, code inside the scope may touch device memory and
/// sees the results of all work queued on the stream before. Free on a real device. Scopes nest. Local.
///
///     auto view = field.deviceView<DeviceBackend::CUDA>();
///     Device::KernelScope kernel(stream);
///     for (index i = 0; i < view.size(); ++i) view(i, 0) *= 2;   // emulated only
///
/// Device memory is open to all threads of the process while any scope is alive.
class KernelScope {
  public:
    /// Begins the scope: on the emulated device it returns when the work queued on `stream` has run. Null is the
    /// default stream.
    explicit KernelScope(StreamHandle stream = nullptr) : stream_(stream) { beginKernel(stream_); }
    ~KernelScope() { endKernel(stream_); }
    KernelScope(const KernelScope &) = delete;
    KernelScope &operator=(const KernelScope &) = delete;

  private:
    StreamHandle stream_;
};

} // namespace DNDS::Device
