// The ring alone: threads instead of kernels, an array instead of other ranks. No MPI.

#include "DNDS/OneSided/HostProxy.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

/// What the proxy does to one rank's memory, noted.
class Memory {
  public:
    explicit Memory(std::size_t bytes) : bytes_(bytes) {}

    std::uint64_t carryOut(Detail::ProxySlot &slot) {
        ops.push_back(slot.op);
        std::byte *at = bytes_.data() + slot.offset;
        switch (slot.op) {
        case Detail::ProxyOp::Put:
            std::memcpy(at, slot.data.data(), slot.bytes);
            return 0;
        case Detail::ProxyOp::Get:
            std::memcpy(slot.data.data(), at, slot.bytes);
            return 0;
        case Detail::ProxyOp::Fence:
        case Detail::ProxyOp::Quiet:
            return 0;
        default:
            return Atomics::apply(at, slot.request);
        }
    }
    std::int64_t word(std::size_t k) const {
        std::int64_t value = 0;
        std::memcpy(&value, bytes_.data() + 8 * k, 8);
        return value;
    }

    std::vector<Detail::ProxyOp> ops; ///< of the proxy's thread; read it after drain

  private:
    std::vector<std::byte> bytes_;
};

const AtomicRequest addOne{AtomicOp::Add, ElementKind::Int64, 1, 0};

TEST(HostProxies, ServeInWaitsWhereNoThreadMay) {
    Memory memory(16);
    {
        HostProxy proxy(
            MemorySpace::Host, [&](Detail::ProxySlot &slot) { return memory.carryOut(slot); }, [] {},
            HostProxy::Serving::InWaits);
        const ProxyView view = proxy.view();
        std::uint64_t before = 7;
        EXPECT_TRUE(view.atomic(0, 0, addOne));
        EXPECT_EQ(memory.word(0), 0) << "nobody waits";
        EXPECT_TRUE(view.fetchAtomic(0, 0, addOne, before)); // this thread is the one that serves
        EXPECT_EQ(before, 1U);
        EXPECT_TRUE(view.atomic(0, 0, addOne));
        std::thread other([&] { EXPECT_FALSE(Detail::serveProxies()) << "not its proxy"; });
        other.join();
        EXPECT_TRUE(Detail::serveProxies());
        EXPECT_EQ(memory.word(0), 3);
        EXPECT_FALSE(Detail::serveProxies());
        EXPECT_TRUE(view.atomic(0, 8, addOne));
        proxy.drain();
        EXPECT_EQ(memory.word(1), 1);
        for (std::size_t k = 0; k < 3 * Detail::proxySlots; ++k) // who finds the ring full serves it
            EXPECT_TRUE(view.atomic(0, 8, addOne));
        EXPECT_TRUE(view.quiet());
        EXPECT_EQ(memory.word(1), 1 + static_cast<std::int64_t>(3 * Detail::proxySlots));
    }
    EXPECT_FALSE(Detail::serveProxies()) << "it has ended";
}

TEST(HostProxies, PiecesOfALongGetAreUnderWayTogether) {
    constexpr std::size_t bytes = 8 * Detail::proxyDataBytes;
    Memory memory(bytes);
    HostProxy proxy(
        MemorySpace::Host, [&](Detail::ProxySlot &slot) { return memory.carryOut(slot); }, [] {},
        HostProxy::Serving::InWaits);
    std::vector<std::byte> to(bytes, std::byte{1});
    std::atomic<bool> done{false};
    std::thread kernel([&, view = proxy.view()] {
        EXPECT_TRUE(view.get(0, 0, to.data(), bytes));
        done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // it has asked by then
    int serves = 0;
    while (!done)
        serves += Detail::serveProxies() ? 1 : 0;
    kernel.join();
    EXPECT_LE(serves, 2) << "one after the other";
    EXPECT_EQ(to, std::vector<std::byte>(bytes, std::byte{0}));
}

TEST(HostProxies, QuietAsksOnlyWhereSomethingIsIncomplete) {
    Memory memory(64);
    HostProxy proxy(
        MemorySpace::Host, [&](Detail::ProxySlot &slot) { return memory.carryOut(slot); }, [] {});
    const ProxyView view = proxy.view();
    std::uint64_t bits = 0;
    EXPECT_TRUE(view.quiet());
    EXPECT_TRUE(view.fetchAtomic(0, 0, addOne, bits));
    EXPECT_TRUE(view.quiet()); // nothing to complete
    EXPECT_TRUE(view.signal(0, 8, 3, true));
    EXPECT_TRUE(view.fence());
    EXPECT_TRUE(view.quiet());
    EXPECT_TRUE(view.quiet());
    proxy.drain();
    using Detail::ProxyOp;
    EXPECT_EQ(memory.ops,
              (std::vector<ProxyOp>{ProxyOp::FetchAtomic, ProxyOp::Signal, ProxyOp::Fence, ProxyOp::Quiet}));
    EXPECT_EQ(memory.word(1), 3);
}

TEST(HostProxies, AnErrorEndsItAndNobodyWaits) {
    std::atomic<int> told{0};
    HostProxy proxy(
        MemorySpace::Host,
        [](Detail::ProxySlot &slot) -> std::uint64_t {
            if (slot.op == Detail::ProxyOp::Signal)
                throw std::runtime_error("a peer has ended");
            return 0;
        },
        [&] { ++told; });
    const ProxyView view = proxy.view();
    std::uint64_t bits = 0;
    EXPECT_TRUE(view.fetchAtomic(0, 0, addOne, bits));
    proxy.rethrow(); // nothing yet
    EXPECT_TRUE(view.signal(0, 0, 1, false));
    EXPECT_FALSE(view.quiet());
    EXPECT_FALSE(view.fetchAtomic(0, 0, addOne, bits));
    std::byte byte{};
    EXPECT_FALSE(view.get(0, 0, &byte, 1));
    EXPECT_FALSE(view.put(0, 0, &byte, 1));
    proxy.drain();
    EXPECT_EQ(told, 1);
    EXPECT_THROW(proxy.rethrow(), std::runtime_error);
}

} // namespace
} // namespace DNDS
