/// @file ProxyView.hpp
/// @brief Hands operations of a kernel to the host, for ranks that its loads and stores do not reach.
#pragma once

#include "DNDS/OneSided/Atomics.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace DNDS {

/// One of several threads of a kernel that do an operation together: thread `number` of `count` copies its share.
/// No thread waits for the others: call the block's barrier afterwards.
struct Lane {
    index number = 0;
    index count = 1;
};

/// Operations on memory of a rank. Bytes are sent (by puts, operands of Atomic, FetchAtomic and Signal) or returned
/// (by gets, values of words before a FetchAtomic).
enum class RemoteVerb : std::uint32_t { Put, Get, Atomic, FetchAtomic, Signal, Fence, Quiet };

/// An operation on memory of a rank, in messages to its owner and in the proxy's ring.
struct RemoteOperation {
    RemoteVerb verb = RemoteVerb::Put;
    std::int32_t rank = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0; ///< size of the memory, and of operands and results
    AtomicRequest request{}; ///< for words, each with an operand in the sent bytes

    /// Bytes sent and returned, and whether the caller waits for an answer.
    DNDS_HOST_DEVICE constexpr std::uint64_t bytesThere() const { return verb == RemoteVerb::Get ? 0 : bytes; }
    DNDS_HOST_DEVICE constexpr std::uint64_t bytesBack() const {
        return verb == RemoteVerb::Get || verb == RemoteVerb::FetchAtomic ? bytes : 0;
    }
    DNDS_HOST_DEVICE constexpr bool isAnswered() const { return bytesBack() > 0 || verb == RemoteVerb::Quiet; }
};

/// Whether a put or get returns with its buffer free or full, or may still use it until `quiet`.
enum class Completion : unsigned char { Now, AtQuiet };

namespace Detail {

/// Carries out requests of host kernels to the proxies that this thread serves (`HostProxy::serverOfThread`);
/// true if there were any. Local.
bool serveProxies() noexcept;
/// One pause of a kernel on the host while it waits: serves requests, also of other ranks, or yields.
void pauseOnHost() noexcept;

/// One pause in a waiting loop, so that others can run.
DNDS_HOST_DEVICE inline void pauseInKernel() {
#if defined(__CUDA_ARCH__)
    __nanosleep(200);
#else
    pauseOnHost();
#endif
}

/// memcpy on the host, out of line: else compilers expand it for all possible sizes of a small buffer.
void copyMany(std::byte *to, const std::byte *from, std::uint64_t bytes) noexcept;

/// Copies one word that others may read or write at the same time.
template <class Word>
DNDS_HOST_DEVICE void copyWord(std::byte *to, const std::byte *from) {
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<volatile Word *>(to) = *reinterpret_cast<const volatile Word *>(from);
#else
    const Word value = __atomic_load_n(reinterpret_cast<const Word *>(from), __ATOMIC_RELAXED);
    __atomic_store_n(reinterpret_cast<Word *>(to), value, __ATOMIC_RELAXED);
#endif
}

/// Copies two words of 8 bytes at addresses that are multiples of 16: with CUDA by one load and one store.
DNDS_HOST_DEVICE inline void copyTwoWords(std::byte *to, const std::byte *from) {
#if defined(__CUDA_ARCH__) && defined(__NVCC__)
    std::uint64_t first;
    std::uint64_t second;
    asm volatile("ld.volatile.v2.u64 {%0, %1}, [%2];" : "=l"(first), "=l"(second) : "l"(from) : "memory");
    asm volatile("st.volatile.v2.u64 [%0], {%1, %2};" : : "l"(to), "l"(first), "l"(second) : "memory");
#else
    copyWord<std::uint64_t>(to, from);
    copyWord<std::uint64_t>(to + 8, from + 8);
#endif
}

/// Copies this lane's share: neighbouring lanes copy neighbouring words, as memory systems of GPUs want. In words if
/// both sides are aligned, so that no word of 2, 4 or 8 bytes is torn; long copies of one thread on the host are a
/// memcpy.
DNDS_HOST_DEVICE inline void copyShare(std::byte *to, const std::byte *from, std::uint64_t bytes, Lane lane) {
#if !defined(__CUDA_ARCH__)
    if (lane.count == 1 && bytes > 64) {
        copyMany(to, from, bytes);
        return;
    }
#endif
    const auto number = static_cast<std::uint64_t>(lane.number);
    const auto lanes = static_cast<std::uint64_t>(lane.count);
    const auto both = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
    std::uint64_t begin = 0;
    if (both % 16 == 0) {
        begin = bytes / 16 * 16;
        for (std::uint64_t at = number * 16; at < begin; at += lanes * 16)
            copyTwoWords(to + at, from + at);
    }
    const auto copyRest = [&](auto word) {
#if defined(__CUDACC__)
#pragma unroll 1 // or kernels that put and signal spill registers
#endif
        for (std::uint64_t at = begin + number * sizeof(word); at < bytes; at += lanes * sizeof(word))
            copyWord<decltype(word)>(to + at, from + at);
    };
    if ((both | bytes) % 8 == 0)
        copyRest(std::uint64_t{});
    else if ((both | bytes) % 4 == 0)
        copyRest(std::uint32_t{});
    else if ((both | bytes) % 2 == 0)
        copyRest(std::uint16_t{});
    else
        copyRest(std::uint8_t{});
}

/// Data bytes of a request: longer puts and gets take several.
inline constexpr std::size_t proxyDataBytes = 4096;
/// Limit of requests in flight; further ones wait.
inline constexpr std::uint64_t proxySlots = 256;

/// A request and its answer. In lap `l` of the ring `stage` is 3 l while the slot is free, then 3 l + 1 when the
/// request is complete, and 3 l + 2 when its answer is, if it has one; 3 l + 3 is the next lap's free slot. Each
/// transition has one writer: the thread with the slot's ticket, then the host, then that thread again.
struct alignas(128) ProxySlot {
    std::uint64_t stage = 0;
    RemoteOperation operation;
};

/// The ring, in memory that kernels and the host share.
struct ProxyRing {
    std::uint64_t complete = 0;            ///< tickets below it are complete at their targets
    alignas(128) std::uint32_t broken = 0; ///< 1 after an error: no request is carried out any more
    std::array<ProxySlot, proxySlots> slots;
    alignas(128) std::array<std::array<std::byte, proxyDataBytes>, proxySlots> data; ///< untouched until used
};

} // namespace Detail

/// A ring of requests that the host carries out in order (`HostProxy`). Many threads may request at a time, each for
/// itself. Trivially copyable. Operations return false if they were not carried out because the proxy has failed, or
/// did not answer for a minute or so; then it is unusable for good. Tickets and a sequence number in each slot order
/// the ring, as in D. Vyukov's bounded queue, here with one consumer.
class ProxyView {
  public:
    ProxyView() = default;
    /// For `HostProxy::view`: the ring, and the counter from which kernels draw their tickets.
    ProxyView(Detail::ProxyRing *ring, std::uint64_t *tickets) : ring_(ring), tickets_(tickets) {}

    /// Whether it refers to a proxy. CUDA kernels have none unless they are compiled with DNDS_CUDA_PROXY.
    DNDS_HOST_DEVICE explicit operator bool() const {
#if defined(__CUDA_ARCH__) && !defined(DNDS_CUDA_PROXY)
        return false;
#else
        return ring_ != nullptr;
#endif
    }

    /// Requests `operation` with the bytes at `from`; results are at `to` on return. Lanes share the slots of a long
    /// copy. Operations of a thread are carried out in order.
    DNDS_HOST_DEVICE bool operate(RemoteOperation operation, const std::byte *from, std::byte *to,
                                  Lane lane = {}) const {
        const std::uint64_t offset = operation.offset, bytes = operation.bytes;
        const std::uint64_t pieces = bytes == 0 ? 1 : (bytes - 1) / Detail::proxyDataBytes + 1;
        const auto step = static_cast<std::uint64_t>(lane.count);
        const bool answered = operation.isAnswered();
        for (auto next = static_cast<std::uint64_t>(lane.number); next < pieces;) {
            if (Atomics::loadAcquire(&ring_->broken) != 0)
                return false;
            // A long get asks for several pieces before it waits for the first. Their tickets follow each other,
            // and their slots are different ones, since there are more slots than `askedAtOnce`.
            // No deadlock: ticket t waits for the slot of ticket t - 256, whose thread frees it without needing any
            // ticket from t on, as it has drawn at most 16 in a row and the host serves in their order.
            const std::uint64_t left = (pieces - next - 1) / step + 1;
            const std::uint64_t count = !answered ? 1 : left < askedAtOnce ? left : askedAtOnce;
            const std::uint64_t first = Atomics::fetchAdd<std::uint64_t>(tickets_, count);
            for (std::uint64_t k = 0; k < count; ++k) {
                const std::uint64_t at = (next + k * step) * Detail::proxyDataBytes;
                operation.offset = offset + at;
                operation.bytes = pieceOf(bytes, at);
                Detail::ProxySlot &slot = slotOf(first + k);
                if (!reaches(slot, stageOf(first + k)))
                    return false;
                slot.operation = operation;
                if (from != nullptr)
                    Detail::copyShare(dataOf(first + k), from + at, operation.bytes, {});
                Atomics::storeRelease(&slot.stage, stageOf(first + k) + 1); // with this thread's earlier stores
            }
            for (std::uint64_t k = 0; answered && k < count; ++k) {
                const std::uint64_t at = (next + k * step) * Detail::proxyDataBytes;
                Detail::ProxySlot &slot = slotOf(first + k);
                if (!reaches(slot, stageOf(first + k) + 2)) // an unanswered slot is never used again
                    return false;
                if (to != nullptr)
                    Detail::copyShare(to + at, dataOf(first + k), pieceOf(bytes, at), {});
                Atomics::storeRelease(&slot.stage, stageOf(first + k) + 3);
            }
            next += count * step;
        }
        return true;
    }
    /// This thread's earlier operations are seen, on each rank, before its later ones. Does not wait.
    DNDS_HOST_DEVICE bool fence() const { return operate({RemoteVerb::Fence}, nullptr, nullptr); }
    /// Completes this thread's operations.
    DNDS_HOST_DEVICE bool quiet() const {
        // Nothing is left to complete, of any thread: no request is needed.
        if (Atomics::loadAcquire(&ring_->complete) == Atomics::loadAcquire(tickets_))
            return Atomics::loadAcquire(&ring_->broken) == 0;
        return operate({RemoteVerb::Quiet}, nullptr, nullptr);
    }

  private:
    /// Pieces of a long get in flight together: the round trip to the host is paid once for all of them.
    static constexpr std::uint64_t askedAtOnce = 16;
    /// Limit of polls in a wait for the host.
    static constexpr std::uint64_t maxPolls = std::uint64_t{1} << 26U;

    /// Bytes of the piece at `at`: a slot's, or the rest.
    DNDS_HOST_DEVICE static std::uint64_t pieceOf(std::uint64_t bytes, std::uint64_t at) {
        return bytes - at < Detail::proxyDataBytes ? bytes - at : Detail::proxyDataBytes;
    }
    /// Waits until the slot has come to `stage`; false if the proxy is broken, which a wait beyond the limit makes
    /// it.
    DNDS_HOST_DEVICE bool reaches(const Detail::ProxySlot &slot, std::uint64_t stage) const {
        // Bounded: a kernel that waits for a dead host would never free the device.
        for (std::uint64_t poll = 0; Atomics::loadAcquire(&slot.stage) != stage; ++poll) {
            if (Atomics::loadAcquire(&ring_->broken) != 0)
                return false;
            if (poll >= maxPolls) {
                Atomics::storeRelease<std::uint32_t>(&ring_->broken, 1);
                return false;
            }
            Detail::pauseInKernel();
        }
        return true;
    }
    DNDS_HOST_DEVICE Detail::ProxySlot &slotOf(std::uint64_t ticket) const {
        return ring_->slots[ticket % Detail::proxySlots];
    }
    DNDS_HOST_DEVICE std::byte *dataOf(std::uint64_t ticket) const {
        return ring_->data[ticket % Detail::proxySlots].data();
    }
    /// The slot's stage when it is free for this request.
    DNDS_HOST_DEVICE static std::uint64_t stageOf(std::uint64_t ticket) { return 3 * (ticket / Detail::proxySlots); }

    /// Memory that host and kernels share.
    Detail::ProxyRing *ring_ = nullptr;
    std::uint64_t *tickets_ = nullptr; ///< number drawn so far, in the kernels' memory
};

} // namespace DNDS
