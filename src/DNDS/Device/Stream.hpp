/// @file Stream.hpp
/// @brief Owner of a device stream.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <memory>

namespace DNDS::Device {

/// Owns a queue of device work: its copies and kernels run in order, concurrently with other streams. Move-only.
///
///     Device::Stream stream;
///     field.toDevice(stream);   // queued
///     stream.synchronize();     // now the device has it
///
/// Local. The constructor throws NotBuiltError without a device back end; the destructor waits for the work.
class Stream {
  public:
    /// A new stream; kernels of a higher priority start first where both wait.
    explicit Stream(Priority priority = Priority::Normal) : handle_(createStream(priority)) {}

    /// The handle to pass on; null (the default stream) in a moved-from object.
    StreamHandle handle() const noexcept { return handle_.get(); }
    operator StreamHandle() const noexcept { return handle_.get(); }

    /// Returns when everything queued so far has run.
    void synchronize() const { Device::synchronize(handle_.get()); }

  private:
    std::unique_ptr<StreamImpl, EndBy<destroyStream>> handle_;
};

} // namespace DNDS::Device
