/// @file StreamUse.hpp
/// @brief Streams that DNDS did not make, but whose work uses memory of DNDS.
#pragma once

namespace DNDS::Device {

/// Keeps device memory that is freed from now on from being reused until all work queued so far on `stream`, a
/// `cudaStream_t` of this process's device, has run. DNDS's own streams and the default stream need no such call.
///
///     myKernel<<<blocks, threads, 0, stream>>>(u.deviceView<DeviceBackend::CUDA>());
///     Device::recordUse(stream); // after the work is queued, before the memory is freed: arrays resized or destroyed
///
/// The stream may be destroyed afterwards. Local, thread-safe, does not wait. @throws NotBuiltError without a device;
/// StateError while the stream is captured (call it after the graph was launched); ArgumentError on the emulated device
/// for streams that are not its own.
void recordUse(void *stream);

} // namespace DNDS::Device
