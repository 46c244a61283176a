/// @file Executor.hpp
/// @brief Chooses where loops run: in this thread, in host threads, or on a stream of the device.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Hooks.hpp"

namespace DNDS {

/// Executes the loops of `parallelFor` and `ArrayDof`. Small, copied freely.
class Executor {
  public:
    /// In this thread.
    static Executor host() { return {MemorySpace::Host, nullptr, 1}; }
    /// In `threads` threads if the source that calls parallelFor was compiled with OpenMP; else in this thread.
    static Executor hostThreads(int threads) {
        DNDS_CHECK(threads >= 1, ArgumentError, "{} threads are given: give at least 1", threads);
        return {MemorySpace::Host, nullptr, threads};
    }
    /// In kernels on `stream` of the device.
    static Executor device(Device::StreamHandle stream) { return {MemorySpace::Device, stream, 1}; }

    /// As it was made: where rows must lie; the stream, null on the host; the threads of the host, else 1. Local.
    MemorySpace space() const noexcept { return space_; }
    bool onDevice() const noexcept { return space_ == MemorySpace::Device; }
    Device::StreamHandle stream() const noexcept { return stream_; }
    int threads() const noexcept { return threads_; }

    /// Returns when all work started here has run; at once on the host.
    void synchronize() const {
        if (onDevice())
            Device::synchronize(stream_);
    }

  private:
    Executor(MemorySpace space, Device::StreamHandle stream, int threads)
        : stream_(stream), threads_(threads), space_(space) {}

    /// Not owned: the stream outlives the executor's use.
    Device::StreamHandle stream_;
    int threads_;
    MemorySpace space_;
};

} // namespace DNDS
