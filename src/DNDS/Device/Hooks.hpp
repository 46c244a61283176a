/// @file Hooks.hpp
/// @brief The seam through which a device joins DNDS at link time: memory, streams and copies.
///
/// Everything here is only declared. Exactly one of `src/CUDA/real`, `src/CUDA/emulated` and `src/CUDA/absent` defines
/// it, so that nothing else in DNDS is compiled differently with a device. `emulated` is host memory posing as a
/// device: the host may not touch it outside copies and kernels, which makes a forgotten transfer fault. In `absent`,
/// whatever needs a device throws `NotBuiltError`.
///
/// All functions are Local.
#pragma once

#include "DNDS/Storage/MemorySpace.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace DNDS::Device {

struct StreamImpl;
/// Names a queue of device work whose entries run in order; null is the default stream. Streams do not wait for each
/// other, nor for the default stream. `Stream` owns one.
using StreamHandle = StreamImpl *;

/// The back end that was linked: "cuda", "emulated" or "absent".
std::string_view name();

/// Whether a device can be used in this process. The answer does not change while the process runs.
bool available();

/// Why `available()` is false and what to do about it; empty where a device is available.
std::string unavailableReason();

/// The alignment in bytes of what `allocate` returns, at least.
inline constexpr std::size_t allocationAlignment = 256;

/// Allocates uninitialised device memory; null for 0 bytes.
/// @throws MemoryError when the device has no room; NotBuiltError where no device is available.
void *allocate(std::size_t bytes);

/// Gives memory from `allocate` back, once all copies that were queued before have run; null is allowed.
void deallocate(void *pointer) noexcept;

/// Makes a stream that does not wait for the default stream. @throws NotBuiltError where no device is available.
StreamHandle createStream();

/// Finishes the stream's work and destroys it; null is allowed.
void destroyStream(StreamHandle stream) noexcept;

/// Queues a copy of `bytes` bytes on `stream`. It may run at any time until `synchronize` returns, so the caller keeps
/// both sides alive, does not write the source and does not read the destination until then.
/// @throws NotBuiltError where no device is available; ArgumentError when the emulated device finds that a device
/// pointer is not memory of its own.
void copy(void *destination, MemorySpace destinationSpace, const void *source, MemorySpace sourceSpace,
          std::size_t bytes, StreamHandle stream);

/// Returns when everything queued on `stream` has run.
void synchronize(StreamHandle stream);

/// Returns when everything queued on all streams of this process has run.
void synchronizeAll();

/// Announces a kernel on `stream`: under `emulated` the work queued there runs first, then device memory opens to the
/// host until the matching `endKernel`. Does nothing under `real`. Use `KernelScope`.
void beginKernel(StreamHandle stream);
void endKernel(StreamHandle stream) noexcept;

} // namespace DNDS::Device
