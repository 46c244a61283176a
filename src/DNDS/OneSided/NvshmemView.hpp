/// @file NvshmemView.hpp
/// @brief Ranks out of reach of a kernel's loads and stores, through NVSHMEM: what `ProxyView` is, by its device calls.
///
/// Compiled only (DNDS_NVSHMEM, see docs/one_sided.md): no heap takes its memory from NVSHMEM yet.
#pragma once

#include "DNDS/OneSided/ProxyView.hpp"

#include <cstdint>

#if defined(DNDS_NVSHMEM) && defined(__CUDACC__)
#include <nvshmem.h>
#include <nvshmemx.h>
#endif

namespace DNDS {

/// In place of `ProxyView` (see `FarView`): this processing element's memory from nvshmem_malloc, and the same of the
/// others, where rank r is element r. Trivially copyable. Operations return false on the host, which has calls of its
/// own.
class NvshmemView {
  public:
    NvshmemView() = default;
    /// `base` is where this element's memory begins, which offsets count from.
    explicit NvshmemView(std::byte *base) : base_(base) {}

    /// Whether there is such memory.
    DNDS_HOST_DEVICE explicit operator bool() const { return base_ != nullptr; }

    /// Copies this lane's share. `from` may be changed afterwards; complete after `quiet`.
    DNDS_HOST_DEVICE bool put([[maybe_unused]] int rank, [[maybe_unused]] std::uint64_t offset,
                              [[maybe_unused]] const std::byte *from, [[maybe_unused]] std::uint64_t bytes,
                              [[maybe_unused]] Lane lane = {}) const {
#if defined(DNDS_NVSHMEM) && defined(__CUDA_ARCH__)
        const Share share(bytes, lane);
        nvshmem_putmem(base_ + offset + share.begin, from + share.begin, share.bytes, rank);
        return true;
#else
        return false;
#endif
    }
    /// Copies this lane's share; it is there when it returns.
    DNDS_HOST_DEVICE bool get([[maybe_unused]] int rank, [[maybe_unused]] std::uint64_t offset,
                              [[maybe_unused]] std::byte *to, [[maybe_unused]] std::uint64_t bytes,
                              [[maybe_unused]] Lane lane = {}) const {
#if defined(DNDS_NVSHMEM) && defined(__CUDA_ARCH__)
        const Share share(bytes, lane);
        nvshmem_getmem(to + share.begin, base_ + offset + share.begin, share.bytes, rank);
        return true;
#else
        return false;
#endif
    }
    /// Changes a word; `bits` becomes what it was. Complete when it returns. False, too, for words without atomic
    /// operations.
    DNDS_HOST_DEVICE bool fetchAtomic([[maybe_unused]] int rank, [[maybe_unused]] std::uint64_t offset,
                                      [[maybe_unused]] const AtomicRequest &request,
                                      [[maybe_unused]] std::uint64_t &bits) const {
#if defined(DNDS_NVSHMEM) && defined(__CUDA_ARCH__)
        bits = change(base_ + offset, request, rank);
        return Atomics::wordBytes(request.kind) > 0;
#else
        return false;
#endif
    }
    /// The same without what the word was.
    DNDS_HOST_DEVICE bool atomic(int rank, std::uint64_t offset, const AtomicRequest &request) const {
        std::uint64_t unused = 0;
        return fetchAtomic(rank, offset, request, unused);
    }
    /// Sets the word, or adds to it, after what this thread put to that rank before.
    DNDS_HOST_DEVICE bool signal([[maybe_unused]] int rank, [[maybe_unused]] std::uint64_t offset,
                                 [[maybe_unused]] std::uint64_t value, [[maybe_unused]] bool add) const {
#if defined(DNDS_NVSHMEM) && defined(__CUDA_ARCH__)
        nvshmem_fence(); // after what this thread put to this rank
        nvshmemx_signal_op(reinterpret_cast<std::uint64_t *>(base_ + offset), value,
                           add ? NVSHMEM_SIGNAL_ADD : NVSHMEM_SIGNAL_SET, rank);
        return true;
#else
        return false;
#endif
    }
    /// This thread's puts and atomic operations before it are seen, at each rank, before those after it.
    DNDS_HOST_DEVICE bool fence() const {
#if defined(DNDS_NVSHMEM) && defined(__CUDA_ARCH__)
        nvshmem_fence();
        return true;
#else
        return false;
#endif
    }
    /// This thread's operations are complete.
    DNDS_HOST_DEVICE bool quiet() const {
#if defined(DNDS_NVSHMEM) && defined(__CUDA_ARCH__)
        nvshmem_quiet();
        return true;
#else
        return false;
#endif
    }

  private:
#if defined(DNDS_NVSHMEM) && defined(__CUDACC__)
    /// What one lane copies: words of 8 bytes, so that none is torn between two.
    struct Share {
        std::uint64_t begin, bytes;
        __device__ Share(std::uint64_t all, Lane lane) {
            const auto count = static_cast<std::uint64_t>(lane.count);
            const std::uint64_t each = (all / count + 8) / 8 * 8;
            const std::uint64_t first = each * static_cast<std::uint64_t>(lane.number);
            begin = first < all ? first : all;
            bytes = all - begin < each ? all - begin : each;
        }
    };
    template <class W>
    __device__ static W compareSwap(W *word, W expected, W value, int rank) {
        if constexpr (sizeof(W) == 8)
            return nvshmem_uint64_atomic_compare_swap(word, expected, value, rank);
        else
            return nvshmem_uint32_atomic_compare_swap(word, expected, value, rank);
    }
    template <class W>
    __device__ static W fetch(W *word, int rank) {
        if constexpr (sizeof(W) == 8)
            return nvshmem_uint64_atomic_fetch(word, rank);
        else
            return nvshmem_uint32_atomic_fetch(word, rank);
    }
    template <class W>
    __device__ static W swap(W *word, W value, int rank) {
        if constexpr (sizeof(W) == 8)
            return nvshmem_uint64_atomic_swap(word, value, rank);
        else
            return nvshmem_uint32_atomic_swap(word, value, rank);
    }
    template <class W>
    __device__ static W fetchAdd(W *word, W operand, int rank) {
        if constexpr (sizeof(W) == 8)
            return nvshmem_uint64_atomic_fetch_add(word, operand, rank);
        else
            return nvshmem_uint32_atomic_fetch_add(word, operand, rank);
    }
    /// NVSHMEM has neither Min and Max nor sums of reals: they are compared and swapped until they fit.
    template <AtomicWord T>
    __device__ static std::uint64_t changeAs(std::byte *address, const AtomicRequest &request, int rank) {
        using W = Atomics::Bits<T>;
        auto *word = reinterpret_cast<W *>(address);
        const auto operand = static_cast<W>(request.operand);
        switch (request.op) {
        case AtomicOp::Fetch:
            return fetch(word, rank);
        case AtomicOp::Set:
        case AtomicOp::Swap:
            return swap(word, operand, rank);
        case AtomicOp::CompareSwap:
            return compareSwap(word, static_cast<W>(request.compare), operand, rank);
        default:
            break;
        }
        if (std::is_integral_v<T> && request.op == AtomicOp::Add)
            return fetchAdd(word, operand, rank);
        for (W seen = fetch(word, rank);;) {
            const T wanted = Atomics::combined(request.op, Atomics::valueOf<T>(seen), Atomics::valueOf<T>(operand));
            const W found = compareSwap(word, seen, Atomics::wordOf(wanted), rank);
            if (found == seen)
                return seen;
            seen = found;
        }
    }
    __device__ static std::uint64_t change(std::byte *word, const AtomicRequest &request, int rank) {
        switch (request.kind) {
        case ElementKind::Int32:
            return changeAs<std::int32_t>(word, request, rank);
        case ElementKind::UInt32:
            return changeAs<std::uint32_t>(word, request, rank);
        case ElementKind::Int64:
            return changeAs<std::int64_t>(word, request, rank);
        case ElementKind::UInt64:
            return changeAs<std::uint64_t>(word, request, rank);
        case ElementKind::Float32:
            return changeAs<float>(word, request, rank);
        case ElementKind::Float64:
            return changeAs<double>(word, request, rank);
        default:
            return 0;
        }
    }
#endif

    std::byte *base_ = nullptr;
};

} // namespace DNDS
