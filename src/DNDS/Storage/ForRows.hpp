/// @file ForRows.hpp
/// @brief Loops over rows of fixed width that move them through the shared memory of a GPU.
///
/// - `readRows`, `writeRows`, `updateRows`: what a loop does with the rows of a view
/// - `forRows`: calls a functor with the rows of each number of a range
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Storage/ArrayView.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace DNDS {

/// The rows of a view that a loop copies in before it calls its functor, copies back afterwards, or both.
template <class T, rowsize width, int align, bool in, bool out>
struct LoopRows {
    using Element = std::remove_const_t<T>;
    /// Type of the functor's argument.
    using Row = std::span<std::conditional_t<out, Element, const Element>, static_cast<std::size_t>(width)>;

    static_assert(width > 0, "rows that forRows moves have a width known at compile time");
    static_assert(std::is_trivially_copyable_v<Element>, "rows are moved as bytes");
    static_assert(!(out && std::is_const_v<T>), "rows of a const view can only be read");

    /// Elements from one row to the next in shared memory: odd, so that rows of 4 or 8 bytes an element begin in
    /// different banks.
    static constexpr index pitch = index{width} | 1;

    ArrayView<T, width, width, align> view;

    /// The row itself, for loops on the host.
    DNDS_HOST_DEVICE Row row(index i) const { return Row(view[i], static_cast<std::size_t>(width)); }
    /// A row of elements in other memory.
    DNDS_HOST_DEVICE static Row rowAt(Element *elements) { return Row(elements, static_cast<std::size_t>(width)); }
};

/// The rows of `view` as they are when the loop begins; the functor gets `std::span<const T, width>`. Local, O(1).
template <class T, rowsize width, int align>
LoopRows<T, width, align, true, false> readRows(const ArrayView<T, width, width, align> &view) {
    return {view};
}

/// Rows whose every element the functor writes; it gets `std::span<T, width>`, whose elements hold nothing yet. Local,
/// O(1).
template <class T, rowsize width, int align>
LoopRows<T, width, align, false, true> writeRows(const ArrayView<T, width, width, align> &view) {
    return {view};
}

/// Rows that the functor reads and writes, or of which it writes some elements; it gets `std::span<T, width>`. Local,
/// O(1).
template <class T, rowsize width, int align>
LoopRows<T, width, align, true, true> updateRows(const ArrayView<T, width, width, align> &view) {
    return {view};
}

inline namespace DNDS_DEVICE_COMPILATION {

namespace Launch {

/// Offsets of the rows of each argument in the shared memory of a block of `threads`, in bytes.
template <class... Rows>
struct SharedRows {
    static constexpr std::size_t threads = 128;
    static constexpr std::size_t alignment = 16;

    /// The bytes before argument `number`; before the one after the last, all of them.
    static constexpr std::size_t before(std::size_t number) {
        const std::size_t bytes[] = {threads * static_cast<std::size_t>(Rows::pitch) *
                                     sizeof(typename Rows::Element)...}; // NOLINT: plain arrays, for kernels
        std::size_t sum = 0;
        for (std::size_t k = 0; k < number; ++k)
            sum += (bytes[k] + alignment - 1) / alignment * alignment;
        return sum;
    }

    static_assert(((alignof(typename Rows::Element) <= alignment) && ...), "elements are aligned to 16 bytes at most");
    static_assert(before(sizeof...(Rows)) <= std::size_t{48} * 1024,
                  "128 rows of all arguments must fit into 48 KiB of shared memory: pass the wide ones as views");
};

/// A row in memory of its own, as a kernel has it: what a functor leaves unwritten is all ones there.
template <class Rows>
class RowCopy;

template <class T, rowsize width, int align, bool in, bool out>
class RowCopy<LoopRows<T, width, align, in, out>> {
  public:
    using Rows = LoopRows<T, width, align, in, out>;

    /// Of the row `which.second` of `*which.first`.
    explicit RowCopy(const std::pair<const Rows *, index> &which) : place_(which.first->view[which.second]) {
        if constexpr (in)
            std::memcpy(bytes_, place_, sizeof bytes_);
        else
            std::memset(bytes_, 0xff, sizeof bytes_);
    }
    RowCopy(const RowCopy &) = delete;
    RowCopy &operator=(const RowCopy &) = delete;
    ~RowCopy() = default;

    /// The copy; and its way back to the array, of rows that are written. Local.
    typename Rows::Row row() { return Rows::rowAt(reinterpret_cast<typename Rows::Element *>(bytes_)); }
    void store() const {
        if constexpr (out)
            std::memcpy(place_, bytes_, sizeof bytes_);
    }

  private:
    T *place_;
    alignas(typename Rows::Element) std::byte bytes_[sizeof(typename Rows::Element) * width]; // NOLINT: of the row
};

#if defined(__CUDACC__)

/// Moves the rows [first, first + count) of an argument to shared memory, if it is read: all threads of the block,
/// neighbours in memory by neighbouring threads.
template <class T, rowsize width, int align, bool in, bool out>
__device__ void loadRows(const LoopRows<T, width, align, in, out> &rows, index first, int count, int threads,
                         typename LoopRows<T, width, align, in, out>::Element *to) {
    if constexpr (in)
        for (int k = static_cast<int>(threadIdx.x); k < count * width; k += threads)
            to[k / width * rows.pitch + k % width] =
                rows.view.data()[rows.view.geometry().rowStart(first + k / width) + k % width];
}

/// The way back, if the argument is written.
template <class T, rowsize width, int align, bool in, bool out>
__device__ void storeRows(const LoopRows<T, width, align, in, out> &rows, index first, int count, int threads,
                          const typename LoopRows<T, width, align, in, out>::Element *from) {
    if constexpr (out)
        for (int k = static_cast<int>(threadIdx.x); k < count * width; k += threads)
            rows.view.data()[rows.view.geometry().rowStart(first + k / width) + k % width] =
                from[k / width * rows.pitch + k % width];
}

/// The rows of an argument in shared memory, `before` bytes from its start.
template <class Argument, std::size_t before>
__device__ typename Argument::Element *sharedRows(std::byte *shared) {
    return reinterpret_cast<typename Argument::Element *>(shared + before);
}

/// The functor's calls for the rows of one block of threads.
template <std::size_t... number, class Functor, class... Rows>
__device__ void runRowsOfBlock(std::index_sequence<number...> /*numbers*/, std::byte *shared, index rowCount,
                               const Functor &functor, const Rows &...rows) {
    using Shared = SharedRows<Rows...>;
    constexpr int threads = static_cast<int>(Shared::threads);
    const index first = index{blockIdx.x} * threads;
    const index left = rowCount - first;
    const int count = left < threads ? static_cast<int>(left) : threads;
    const auto mine = static_cast<index>(threadIdx.x);
    (loadRows(rows, first, count, threads, sharedRows<Rows, Shared::before(number)>(shared)), ...);
    __syncthreads();
    if (mine < count)
        functor(first + mine, Rows::rowAt(sharedRows<Rows, Shared::before(number)>(shared) + mine * Rows::pitch)...);
    __syncthreads();
    (storeRows(rows, first, count, threads, sharedRows<Rows, Shared::before(number)>(shared)), ...);
}

template <class Functor, class... Rows>
__global__ void __launch_bounds__(128) kernelOfRows(index count, const Functor functor, const Rows... rows) {
    using Shared = SharedRows<Rows...>;
    __shared__ alignas(Shared::alignment) std::byte shared[Shared::before(sizeof...(Rows))];
    runRowsOfBlock(std::index_sequence_for<Rows...>(), shared, count, functor, rows...);
}

template <class Functor, class... Rows>
void runRowsOnDevice(Device::StreamHandle stream, index count, const Functor &functor, const Rows &...rows) {
    Device::requireDevice("run a kernel");
    constexpr index threads = SharedRows<Rows...>::threads;
    const index blocks = (count + threads - 1) / threads;
    DNDS_CHECK(blocks <= std::numeric_limits<int>::max(), ArgumentError, "a kernel cannot have {} threads", count);
    kernelOfRows<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0,
                   reinterpret_cast<cudaStream_t>(stream)>>>(count, functor, rows...);
    Device::checkLaunch("forRows");
}

#else

/// On the emulated device each row is copied, too.
template <class Functor, class... Rows>
void runRowsOnDevice(Device::StreamHandle stream, index count, const Functor &functor, const Rows &...rows) {
    Device::launchHostKernel(stream, count, [functor, rows...](index first, index last) {
        for (index i = first; i < last; ++i) {
            std::tuple<RowCopy<Rows>...> copies(std::pair<const Rows *, index>(&rows, i)...);
            std::apply(
                [&](auto &...copy) {
                    functor(i, copy.row()...);
                    (copy.store(), ...);
                },
                copies);
        }
    });
}

#endif

} // namespace Launch

/// Calls `functor(i, row...)` for all i in [0, count), in any order, possibly concurrently, with row i of each
/// argument:
///
///     struct Relax {                                                          // what is left over stays a view
///         real factor;
///         DNDS_HOST_DEVICE void operator()(index, std::span<const real, 5> rate, std::span<real, 5> u) const {
///             for (std::size_t k = 0; k < 5; ++k)
///                 u[k] += factor * rate[k];
///         }
///     };
///     forRows(executor, u.size(), Relax{0.1}, readRows(rate), updateRows(u));   // u, rate: ArrayView<real, 5>
///
/// On the device, blocks of 128 threads move their rows through shared memory, so that neighbouring threads access
/// neighbouring elements. A thread that reads its own row from device memory is 40 bytes from its neighbour, which
/// halves the rate of a sweep (docs/guides/gpu.md has figures). On the host a row is the array's own memory. So that
/// both give the same: arrays of `writeRows` and `updateRows` are accessed through the spans alone, those of `readRows`
/// are not written, and each array is given once. Spans have the alignment of an element. Rows have a width known
/// at compile time, and 128 rows of all arguments at most 48 KiB.
///
/// Local; else as `parallelFor`, also for what sources must be named. @throws NotBuiltError for the device if none is
/// available.
template <class Functor, class T, rowsize width, int align, bool in, bool out, class... Rows>
void forRows(const Executor &executor, index count, const Functor &functor,
             const LoopRows<T, width, align, in, out> &rows, const Rows &...more) {
    static_assert(std::is_trivially_copyable_v<Functor>,
                  "kernels take their functor by value: views, numbers, no arrays");
    static_assert(sizeof(Launch::SharedRows<LoopRows<T, width, align, in, out>, Rows...>) > 0); // has assertions
    if (count <= 0)
        return;
    const auto checked = [count](const auto &argument) {
        DNDS_CHECK(argument.view.size() >= count, IndexError, "forRows: {} rows are asked for, but a view has {}",
                   count, argument.view.size());
    };
    checked(rows);
    (checked(more), ...);
    if (executor.onDevice())
        Launch::runRowsOnDevice(executor.stream(), count, functor, rows, more...);
    else
        Launch::runOnHost(executor.threads(), count, [&](index i) { functor(i, rows.row(i), more.row(i)...); });
}

} // namespace DNDS_DEVICE_COMPILATION

} // namespace DNDS
