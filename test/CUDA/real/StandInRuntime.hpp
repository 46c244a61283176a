/// @file StandInRuntime.hpp
/// @brief Functions of the CUDA runtime for tests of src/CUDA/real without a driver: devices, streams and captures as
/// the test sets them. CUDA itself provides the functions that StandInRuntime.cpp does not define.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace DNDS::test {

struct StandInStream {
    std::atomic<std::uint64_t> queued{0}; ///< pieces of work so far
    std::atomic<std::uint64_t> done{0};
    bool captured = false;
};

/// The devices and streams that the stand-in pretends to be.
struct StandInRuntime {
    int devices = 1;
    std::set<int> unavailable; ///< devices of which other processes are the exclusive users
    bool lazy = false;         ///< the driver loads kernels at their first launch
    std::map<cudaStream_t, StandInStream> streams;
    std::map<cudaEvent_t, std::pair<cudaStream_t, std::uint64_t>> events;
    std::map<void *, int> deviceOf;      ///< memory
    bool blockingStreamCaptured = false; ///< a stream that synchronises with the default one
    bool otherThreadCaptures = false;    ///< in the default mode, in which calls of other threads void the graph
    std::string voidedBy;                ///< the first call that did so

    static StandInRuntime &instance();
    /// The device that CUDA has stored for this thread.
    static int &current();
    cudaStream_t newStream();
    /// Queues work on a stream, as a user's kernel.
    void queue(cudaStream_t stream) { ++streams[stream].queued; }
    void finish(cudaStream_t stream) { streams[stream].done = streams[stream].queued.load(); }
};

} // namespace DNDS::test
