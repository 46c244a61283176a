/// @file ParallelFor.hpp
/// @brief One functor for loops on the host, in host threads and in kernels.
///
/// - `Executor`: where loops run: in this thread, in host threads, or on a stream of the device
/// - `parallelFor`: calls a functor for each number of a range
/// - `forBoxes`: the same for boxes of elements in memory
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>

namespace DNDS {

/// Executes the loops of `parallelFor` and `ArrayDof`. Small, copied freely.
class Executor {
  public:
    /// In this thread.
    static Executor host() { return {MemorySpace::Host, nullptr, 1}; }
    /// In so many threads: those of a plan, or of OpenMP where the source that calls parallelFor is compiled with it.
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

/// The elements `first + i[0] * strides[0] + ... + i[3] * strides[3]` of some memory, 0 <= i[d] < counts[d]. The last
/// dimension is the innermost loop. Trivially copyable.
struct ElementBox {
    index first = 0;
    index counts[4] = {1, 1, 1, 1}; // NOLINT: plain arrays, for kernels
    index strides[4] = {};          // NOLINT

    /// `count` elements without gaps, from the first on.
    static ElementBox run(index count) { return {0, {1, 1, 1, count}, {0, 0, 0, 1}}; }
    /// The number of lines along the last dimension, and of elements.
    DNDS_HOST_DEVICE index lines() const { return counts[0] * counts[1] * counts[2]; }
    DNDS_HOST_DEVICE index size() const { return lines() * counts[3]; }
    /// The first element of line `n`, in C order; its indices go to `at`.
    DNDS_HOST_DEVICE index lineStart(index n, index *at) const {
        index start = first;
        for (int d = 2; d >= 0; --d) {
            at[d] = n % counts[d];
            n /= counts[d];
            start += at[d] * strides[d];
        }
        return start;
    }
};

inline namespace DNDS_DEVICE_COMPILATION {

/// Some boxes, and the parts into which they are cut: small enough for the arguments of a kernel. 2900 bytes: kernels
/// take at most 4 KiB of arguments, functor included.
template <class TBox>
struct BoxBatch {
    static constexpr std::size_t capacity = 2900 / (sizeof(TBox) + sizeof(index));

    TBox boxes[capacity];        // NOLINT: plain arrays, for kernels
    index starts[capacity] = {}; // NOLINT: the first part of each box
    int count = 0;
    index parts = 0;

    /// Puts the next boxes into the batch, cut into `partsOf(box)` parts each, and removes them from `left`.
    template <class PartsOf>
    void take(std::span<const TBox> &left, const PartsOf &partsOf) {
        count = 0;
        parts = 0;
        for (; toSize(count) < capacity && !left.empty(); left = left.subspan(1))
            if (const index some = partsOf(left.front()); some > 0) {
                boxes[count] = left.front();
                starts[count++] = parts;
                parts += some;
            }
    }
    /// The box of a part, and the part's number in this box.
    DNDS_HOST_DEVICE const TBox &boxOf(index &part) const {
        // Linear: a batch has a few dozen boxes at most.
        int b = count - 1;
        while (starts[b] > part)
            --b;
        part -= starts[b];
        return boxes[b];
    }
};

/// A functor over elements of boxes as a kernel.
template <class TBox, class Functor>
struct KernelOfBoxes {
    Functor functor;
    BoxBatch<TBox> batch;

    /// Calls the functor for element `element` of the boxes.
    DNDS_HOST_DEVICE void operator()(index element) const {
        const TBox &box = batch.boxOf(element);
        index at[4]; // NOLINT
        at[3] = element % box.counts[3];
        const index start = box.lineStart(element / box.counts[3], at);
        functor(box, at, start + at[3] * box.strides[3]);
    }
};

/// Calls `functor(box, at, element)` for all elements of boxes, in any order, possibly concurrently: `TBox` is an
/// ElementBox or derived from it, `at` has the four indices in the box, `element` is the place in memory. Boxes do not
/// overlap. Local; as `parallelFor`. On the device one kernel runs for some twenty boxes, which travel in its
/// arguments: nothing is copied there first, and captured graphs keep them.
template <class TBox, class Functor>
void forBoxes(const Executor &executor, std::span<const TBox> boxes, const Functor &functor) {
    if (executor.onDevice()) {
        KernelOfBoxes<TBox, Functor> kernel{functor, {}};
        while (!boxes.empty()) {
            kernel.batch.take(boxes, [](const TBox &box) { return box.size(); });
            parallelFor(executor, kernel.batch.parts, kernel);
        }
        return;
    }
    for (const TBox &box : boxes)
        Launch::runOnHost(executor.threads(), box.counts[3] > 0 ? box.lines() : 0, [&](index line) {
            index at[4]; // NOLINT
            const index start = box.lineStart(line, at);
            if (box.strides[3] == 1) // vectorises
                for (at[3] = 0; at[3] < box.counts[3]; ++at[3])
                    functor(box, at, start + at[3]);
            else
                for (at[3] = 0; at[3] < box.counts[3]; ++at[3])
                    functor(box, at, start + at[3] * box.strides[3]);
        });
}

} // namespace DNDS_DEVICE_COMPILATION

} // namespace DNDS
