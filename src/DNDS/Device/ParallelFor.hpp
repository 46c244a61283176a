/// @file ParallelFor.hpp
/// @brief Runs a functor for each number of a range: on the host, in host threads, or in a kernel.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/Executor.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <limits>
#include <type_traits>

// Only nvcc can launch kernels; the two definitions must not be merged by the linker.
#if defined(__CUDACC__)
#define DNDS_DEVICE_COMPILATION compiledByNvcc
#else
#define DNDS_DEVICE_COMPILATION compiledByHost
#endif

namespace DNDS {

inline namespace DNDS_DEVICE_COMPILATION {

namespace Launch {

/// Calls `functor(i)` for all i in [0, count): in `threads` threads where the program is compiled with OpenMP, else in
/// this one. Returns when all calls have.
template <class Functor>
void runOnHost([[maybe_unused]] int threads, index count, const Functor &functor) {
#if defined(_OPENMP)
    if (threads > 1) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (index i = 0; i < count; ++i)
            functor(i);
        return;
    }
#endif
    for (index i = 0; i < count; ++i)
        functor(i);
}

#if defined(__CUDACC__)

/// Threads per block: few, so that a multiprocessor has room for several blocks of kernels that need many registers.
inline constexpr int threadsPerBlock = 128;

template <class Functor>
__global__ void __launch_bounds__(threadsPerBlock) kernelOf(index count, const Functor functor) {
    const index i = index{blockIdx.x} * threadsPerBlock + threadIdx.x;
    if (i < count)
        functor(i);
}

/// Queues a kernel that calls `functor(i)` for all i in [0, count) on `stream`. @throws NotBuiltError without a device,
/// ArgumentError for more threads than a kernel can have.
template <class Functor>
void runOnDevice(Device::StreamHandle stream, index count, const Functor &functor) {
    Device::requireDevice("run a kernel");
    const index blocks = (count + threadsPerBlock - 1) / threadsPerBlock;
    DNDS_CHECK(blocks <= std::numeric_limits<int>::max(), ArgumentError, "a kernel cannot have {} threads", count);
    kernelOf<<<static_cast<unsigned>(blocks), threadsPerBlock, 0, reinterpret_cast<cudaStream_t>(stream)>>>(count,
                                                                                                            functor);
    Device::checkLaunch("parallelFor");
}

#else

/// The same in sources that the host compiler compiles: only the emulated device runs it. @throws NotBuiltError
/// elsewhere.
template <class Functor>
void runOnDevice(Device::StreamHandle stream, index count, const Functor &functor) {
    Device::launchHostKernel(stream, count, [functor](index first, index last) {
        for (index i = first; i < last; ++i)
            functor(i);
    });
}

#endif

} // namespace Launch

/// Calls `functor(i)` for all i in [0, count), in any order, possibly concurrently.
///
///     struct Scale {                                           // views by value; operator() const for host and device
///         ArrayView<real, 5> u;
///         real factor;
///         DNDS_HOST_DEVICE void operator()(index cell) const {
///             for (rowsize k = 0; k < 5; ++k)
///                 u(cell, k) *= factor;
///         }
///     };
///     parallelFor(Executor::host(), u.size(), Scale{u.view(), 0.5});
///     parallelFor(Executor::device(stream), u.size(), Scale{u.deviceView<DeviceBackend::CUDA>(), 0.5});
///
/// Local. On the host it returns when all calls have; on the device it queues a kernel and returns. There the functor
/// and its views must be trivially copyable, with pointers valid on the device. Sources that call it for the device are
/// named `.cu` and listed by the CMake function `dnds_kernel_sources`: nvcc compiles them with CUDA, the host compiler
/// otherwise. @throws NotBuiltError for the device if none is available.
template <class Functor>
void parallelFor(const Executor &executor, index count, const Functor &functor) {
    static_assert(std::is_trivially_copyable_v<Functor>,
                  "kernels take their functor by value: views, numbers, no arrays");
    if (count <= 0)
        return;
    if (executor.onDevice())
        Launch::runOnDevice(executor.stream(), count, functor);
    else
        Launch::runOnHost(executor.threads(), count, functor);
}

} // namespace DNDS_DEVICE_COMPILATION

} // namespace DNDS
