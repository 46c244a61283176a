/// @file ProxyView.hpp
/// @brief How a kernel hands operations to the host, for ranks that its loads and stores do not reach.
#pragma once

#include "DNDS/OneSided/Atomics.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace DNDS {

/// One of several threads of a kernel that do an operation together: thread `number` of `count` copies its share.
/// Nothing waits for the others: put the block's barrier behind the call.
struct Lane {
    index number = 0;
    index count = 1;
};

namespace Detail {

/// Carries out what kernels of the host have asked the proxies of this thread for (`HostProxy::Serving::InWaits`);
/// returns whether there was anything. Local.
bool serveProxies() noexcept;
/// What a kernel on the host does while it waits: serves them, and other ranks, or makes room.
void pauseOnHost() noexcept;

/// Makes room for whoever is waited for.
DNDS_HOST_DEVICE inline void pauseInKernel() {
#if defined(__CUDA_ARCH__)
    __nanosleep(200);
#else
    pauseOnHost();
#endif
}

/// memcpy on the host, out of sight of compilers that think of all sizes that a small buffer might be copied with.
void copyMany(std::byte *to, const std::byte *from, std::uint64_t bytes) noexcept;

/// Copies one word, which others may read or write at the same time.
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

/// Copies this lane's share, in words where both sides allow it, so that no word of 2, 4 or 8 bytes is torn.
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

/// What the proxy is asked for.
enum class ProxyOp : std::uint32_t { Put, Get, Atomic, FetchAtomic, Signal, Fence, Quiet };

/// Of a slot: longer puts and gets take several.
inline constexpr std::size_t proxyDataBytes = 4096;
/// Requests under way at most; who comes then waits.
inline constexpr std::uint64_t proxySlots = 256;

/// A request and its answer. In lap `l` of the ring `stage` is 3 l while the slot is free, then 3 l + 1 when the
/// request is complete, and 3 l + 2 when its answer is, where one is wanted.
struct alignas(128) ProxySlot {
    std::uint64_t stage = 0;
    ProxyOp op = ProxyOp::Put;
    std::int32_t rank = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0; ///< of a put or get
    AtomicRequest request;
    std::uint64_t result = 0; ///< bits of what the word was
    alignas(16) std::array<std::byte, proxyDataBytes> data;
};

/// In memory that kernels and the host share.
struct ProxyRing {
    std::uint64_t complete = 0;            ///< tickets below it are complete at their targets
    alignas(128) std::uint32_t broken = 0; ///< 1 after an error: nothing is carried out any more
    std::array<ProxySlot, proxySlots> slots;
};

} // namespace Detail

/// A ring of requests that the host carries out in order (`HostProxy`). Many threads may ask at a time, each for
/// itself. Trivially copyable. Operations return false where they were not carried out because the proxy has failed, or
/// did not come round for a minute or so; then it is out of order for good.
class ProxyView {
  public:
    ProxyView() = default;
    /// For `HostProxy::view`: the ring, and the counter from which kernels draw their places in it.
    ProxyView(Detail::ProxyRing *ring, std::uint64_t *tickets) : ring_(ring), tickets_(tickets) {}

    /// Whether there is one. CUDA kernels have none unless they are compiled with DNDS_CUDA_PROXY.
    DNDS_HOST_DEVICE explicit operator bool() const {
#if defined(__CUDA_ARCH__) && !defined(DNDS_CUDA_PROXY)
        return false;
#else
        return ring_ != nullptr;
#endif
    }

    /// `from` may be changed afterwards; complete after `quiet`.
    DNDS_HOST_DEVICE bool put(int rank, std::uint64_t offset, const std::byte *from, std::uint64_t bytes,
                              Lane lane = {}) const {
        bool well = true;
        for (std::uint64_t at = firstOf(lane); at < bytes && well; at += stepOf(lane)) {
            const std::uint64_t size = pieceOf(bytes, at);
            Turn turn;
            well = begin(turn, Detail::ProxyOp::Put, rank, offset + at);
            if (!well)
                break;
            turn.slot->bytes = size;
            Detail::copyShare(turn.slot->data.data(), from + at, size, {});
            hand(turn);
        }
        return well;
    }
    /// The values are at `to` when it returns. Asks for several pieces at a time.
    DNDS_HOST_DEVICE bool get(int rank, std::uint64_t offset, std::byte *to, std::uint64_t bytes,
                              Lane lane = {}) const {
        const std::uint64_t step = stepOf(lane);
        std::uint64_t at = firstOf(lane);
        bool well = true;
        while (at < bytes && well && Atomics::loadAcquire(&ring_->broken) == 0) {
            const std::uint64_t left = (bytes - at + step - 1) / step;
            const std::uint64_t count = left < getsAtOnce ? left : getsAtOnce;
            const std::uint64_t first = draw(count);
            for (std::uint64_t k = 0; k < count && well; ++k) {
                const Turn turn = turnOf(first + k);
                well = fill(turn, Detail::ProxyOp::Get, rank, offset + at + k * step);
                if (well) {
                    turn.slot->bytes = pieceOf(bytes, at + k * step);
                    hand(turn);
                }
            }
            for (std::uint64_t k = 0; k < count && well; ++k, at += step) {
                const Turn turn = turnOf(first + k);
                well = answered(turn);
                if (well)
                    Detail::copyShare(to + at, turn.slot->data.data(), pieceOf(bytes, at), {});
                leave(turn, well);
            }
        }
        return well && at >= bytes;
    }
    /// `bits` becomes what the word was.
    DNDS_HOST_DEVICE bool fetchAtomic(int rank, std::uint64_t offset, const AtomicRequest &request,
                                      std::uint64_t &bits) const {
        Turn turn;
        if (!begin(turn, Detail::ProxyOp::FetchAtomic, rank, offset))
            return false;
        turn.slot->request = request;
        hand(turn);
        const bool well = answered(turn);
        if (well)
            bits = turn.slot->result;
        leave(turn, well);
        return well;
    }
    /// Complete after `quiet`.
    DNDS_HOST_DEVICE bool atomic(int rank, std::uint64_t offset, const AtomicRequest &request) const {
        return ask(Detail::ProxyOp::Atomic, rank, offset, request);
    }
    /// Sets or adds to a word of 64 bits, after what this thread put to this rank.
    DNDS_HOST_DEVICE bool signal(int rank, std::uint64_t offset, std::uint64_t value, bool add) const {
        return ask(Detail::ProxyOp::Signal, rank, offset,
                   {add ? AtomicOp::Add : AtomicOp::Set, ElementKind::UInt64, value, 0});
    }
    /// What this thread asked for before is seen, on each rank, before what it asks for later. Does not wait.
    DNDS_HOST_DEVICE bool fence() const { return ask(Detail::ProxyOp::Fence, 0, 0, {}); }
    /// What this thread asked for is complete.
    DNDS_HOST_DEVICE bool quiet() const {
        if (Atomics::loadAcquire(&ring_->complete) == Atomics::loadAcquire(tickets_))
            return Atomics::loadAcquire(&ring_->broken) == 0;
        Turn turn;
        if (!begin(turn, Detail::ProxyOp::Quiet, 0, 0))
            return false;
        hand(turn);
        const bool well = answered(turn);
        leave(turn, well);
        return well;
    }

  private:
    struct Turn {
        Detail::ProxySlot *slot = nullptr;
        std::uint64_t stage = 0; ///< when the slot is free for this request
    };
    /// Pieces of a long get that are under way together.
    static constexpr std::uint64_t getsAtOnce = 16;
    /// Polls of a wait for the host.
    static constexpr std::uint64_t patience = std::uint64_t{1} << 26U;

    DNDS_HOST_DEVICE static std::uint64_t firstOf(Lane lane) {
        return static_cast<std::uint64_t>(lane.number) * Detail::proxyDataBytes;
    }
    DNDS_HOST_DEVICE static std::uint64_t stepOf(Lane lane) {
        return static_cast<std::uint64_t>(lane.count) * Detail::proxyDataBytes;
    }
    DNDS_HOST_DEVICE static std::uint64_t pieceOf(std::uint64_t bytes, std::uint64_t at) {
        return bytes - at < Detail::proxyDataBytes ? bytes - at : Detail::proxyDataBytes;
    }
    DNDS_HOST_DEVICE bool reaches(const Detail::ProxySlot &slot, std::uint64_t stage) const {
        for (std::uint64_t poll = 0; Atomics::loadAcquire(&slot.stage) != stage; ++poll) {
            if (Atomics::loadAcquire(&ring_->broken) != 0)
                return false;
            if (poll >= patience) {
                Atomics::storeRelease<std::uint32_t>(&ring_->broken, 1);
                return false;
            }
            Detail::pauseInKernel();
        }
        return true;
    }
    /// So many turns behind each other, of which this is the first one's ticket.
    DNDS_HOST_DEVICE std::uint64_t draw(std::uint64_t count) const {
        return Atomics::fetchAdd<std::uint64_t>(tickets_, count);
    }
    DNDS_HOST_DEVICE Turn turnOf(std::uint64_t ticket) const {
        return {&ring_->slots[ticket % Detail::proxySlots], 3 * (ticket / Detail::proxySlots)};
    }
    /// Waits for the slot.
    DNDS_HOST_DEVICE bool fill(const Turn &turn, Detail::ProxyOp op, int rank, std::uint64_t offset) const {
        if (!reaches(*turn.slot, turn.stage))
            return false;
        turn.slot->op = op;
        turn.slot->rank = rank;
        turn.slot->offset = offset;
        return true;
    }
    DNDS_HOST_DEVICE bool begin(Turn &turn, Detail::ProxyOp op, int rank, std::uint64_t offset) const {
        if (Atomics::loadAcquire(&ring_->broken) != 0)
            return false;
        turn = turnOf(draw(1));
        return fill(turn, op, rank, offset);
    }
    /// To the host, with everything that this thread did before.
    DNDS_HOST_DEVICE void hand(const Turn &turn) const { Atomics::storeRelease(&turn.slot->stage, turn.stage + 1); }
    DNDS_HOST_DEVICE bool answered(const Turn &turn) const { return reaches(*turn.slot, turn.stage + 2); }
    /// After an answer; a slot without one is never used again.
    DNDS_HOST_DEVICE void leave(const Turn &turn, bool well) const {
        if (well)
            Atomics::storeRelease(&turn.slot->stage, turn.stage + 3);
    }
    DNDS_HOST_DEVICE bool ask(Detail::ProxyOp op, int rank, std::uint64_t offset, const AtomicRequest &request) const {
        Turn turn;
        if (!begin(turn, op, rank, offset))
            return false;
        turn.slot->request = request;
        hand(turn);
        return true;
    }

    Detail::ProxyRing *ring_ = nullptr;
    std::uint64_t *tickets_ = nullptr; ///< drawn so far, in the kernels' memory
};

} // namespace DNDS
