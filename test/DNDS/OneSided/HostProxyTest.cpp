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

/// Records the proxy's operations on one rank's memory.
class Memory {
  public:
    explicit Memory(std::size_t bytes) : bytes_(bytes) {}

    void carryOut(const RemoteOperation &operation, std::byte *data) {
        ops.push_back(operation.verb);
        std::byte *at = bytes_.data() + operation.offset;
        if (operation.verb == RemoteVerb::Put)
            std::memcpy(at, data, operation.bytes);
        else if (operation.verb == RemoteVerb::Get)
            std::memcpy(data, at, operation.bytes);
        else
            Atomics::applyEach(at, operation.request, data, data, operation.bytes);
    }
    std::int64_t word(std::size_t k) const {
        std::int64_t value = 0;
        std::memcpy(&value, bytes_.data() + 8 * k, 8);
        return value;
    }

    std::vector<RemoteVerb> ops; ///< written by the proxy's thread; read it after drain

  private:
    std::vector<std::byte> bytes_;
};

/// A proxy to that memory.
HostProxy proxyOf(Memory &memory, std::shared_ptr<HostProxy::Server> server = HostProxy::makeServer()) {
    return {MemorySpace::Host,
            [&memory](const RemoteOperation &operation, std::byte *data) { memory.carryOut(operation, data); }, [] {},
            std::move(server)};
}

/// Requests of kernels.
struct Asking {
    ProxyView view;

    bool put(std::uint64_t at, const void *from, std::uint64_t bytes) const {
        return view.operate({RemoteVerb::Put, 0, at, bytes}, static_cast<const std::byte *>(from), nullptr);
    }
    bool get(std::uint64_t at, void *to, std::uint64_t bytes) const {
        return view.operate({RemoteVerb::Get, 0, at, bytes}, nullptr, static_cast<std::byte *>(to));
    }
    bool add(RemoteVerb verb, std::uint64_t at, std::int64_t value, std::uint64_t *before = nullptr) const {
        return view.operate({verb, 0, at, 8, Atomics::request(AtomicOp::Add, value)},
                            reinterpret_cast<const std::byte *>(&value), reinterpret_cast<std::byte *>(before));
    }
    bool addOne(std::uint64_t at) const { return add(RemoteVerb::Atomic, at, 1); }
    bool fetchAddOne(std::uint64_t at, std::uint64_t &before) const {
        return add(RemoteVerb::FetchAtomic, at, 1, &before);
    }
    bool signal(std::uint64_t at, std::int64_t value) const { return add(RemoteVerb::Signal, at, value); }
};

TEST(HostProxies, ManyProducersAndMoreRequestsThanSlots) {
    constexpr std::size_t threads = 8;
    constexpr std::int64_t each = 500;
    Memory memory(8 * (threads + 1));
    HostProxy proxy = proxyOf(memory);
    std::vector<std::int64_t> wrong(threads, 0);
    std::vector<std::thread> workers;
    for (std::size_t t = 0; t < threads; ++t)
        workers.emplace_back([&, t, view = Asking{proxy.view()}] {
            std::uint64_t last = 0;
            for (std::int64_t k = 0; k < each; ++k) {
                std::uint64_t before = 0;
                std::int64_t back = -1;
                bool well = view.put(8 * (t + 1), &k, 8);
                well = well && view.addOne(0) && view.fetchAddOne(0, before);
                well = well && view.get(8 * (t + 1), &back, 8);
                wrong[t] += well && back == k && before > last ? 0 : 1;
                last = before;
            }
        });
    for (std::thread &thread : workers)
        thread.join();
    proxy.drain();
    EXPECT_EQ(memory.word(0), static_cast<std::int64_t>(threads) * 2 * each);
    for (std::size_t t = 0; t < threads; ++t) {
        EXPECT_EQ(wrong[t], 0);
        EXPECT_EQ(memory.word(t + 1), each - 1);
    }
}

TEST(HostProxies, ServeInWaitsWhereNoThreadMay) {
    Memory memory(16);
    {
        HostProxy proxy = proxyOf(memory, HostProxy::serverOfThread());
        const Asking view{proxy.view()};
        std::uint64_t before = 7;
        EXPECT_TRUE(view.addOne(0));
        EXPECT_EQ(memory.word(0), 0) << "nobody waits";
        EXPECT_TRUE(view.fetchAddOne(0, before)); // this thread is the one that serves
        EXPECT_EQ(before, 1U);
        EXPECT_TRUE(view.addOne(0));
        std::thread other([&] { EXPECT_FALSE(Detail::serveProxies()) << "not its proxy"; });
        other.join();
        EXPECT_TRUE(Detail::serveProxies());
        EXPECT_EQ(memory.word(0), 3);
        EXPECT_FALSE(Detail::serveProxies());
        EXPECT_TRUE(view.addOne(8));
        proxy.drain();
        EXPECT_EQ(memory.word(1), 1);
        for (std::size_t k = 0; k < 3 * Detail::proxySlots; ++k) // who finds the ring full serves it
            EXPECT_TRUE(view.addOne(8));
        EXPECT_TRUE(view.view.quiet());
        EXPECT_EQ(memory.word(1), 1 + static_cast<std::int64_t>(3 * Detail::proxySlots));
    }
    EXPECT_FALSE(Detail::serveProxies()) << "it has ended";
}

TEST(HostProxies, PiecesOfALongGetAreUnderWayTogether) {
    constexpr std::size_t bytes = 8 * Detail::proxyDataBytes;
    Memory memory(bytes);
    HostProxy proxy = proxyOf(memory, HostProxy::serverOfThread());
    std::vector<std::byte> to(bytes, std::byte{1});
    std::atomic<bool> done{false};
    std::thread kernel([&, view = Asking{proxy.view()}] {
        EXPECT_TRUE(view.get(0, to.data(), bytes));
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

TEST(HostProxies, LongCopiesTakeSeveralSlots) {
    constexpr std::size_t bytes = 5 * Detail::proxyDataBytes + 24;
    Memory memory(bytes);
    HostProxy proxy = proxyOf(memory);
    std::vector<std::byte> from(bytes), to(bytes);
    for (std::size_t k = 0; k < bytes; ++k)
        from[k] = static_cast<std::byte>(k * 7);
    const Asking view{proxy.view()};
    EXPECT_TRUE(view.put(0, from.data(), bytes));
    EXPECT_TRUE(view.get(0, to.data(), bytes));
    EXPECT_EQ(from, to);
    proxy.drain();
    EXPECT_EQ(memory.ops.size(), 12U);
}

TEST(HostProxies, QuietAsksOnlyWhereSomethingIsIncomplete) {
    Memory memory(64);
    HostProxy proxy = proxyOf(memory);
    const Asking view{proxy.view()};
    std::uint64_t bits = 0;
    EXPECT_TRUE(view.view.quiet());
    EXPECT_TRUE(view.fetchAddOne(0, bits));
    EXPECT_TRUE(view.view.quiet()); // nothing to complete
    EXPECT_TRUE(view.signal(8, 3));
    EXPECT_TRUE(view.view.fence());
    EXPECT_TRUE(view.view.quiet());
    EXPECT_TRUE(view.view.quiet());
    proxy.drain();
    EXPECT_EQ(memory.ops, (std::vector<RemoteVerb>{RemoteVerb::FetchAtomic, RemoteVerb::Signal, RemoteVerb::Fence,
                                                   RemoteVerb::Quiet}));
    EXPECT_EQ(memory.word(1), 3);
}

TEST(HostProxies, AnErrorEndsItAndNobodyWaits) {
    std::atomic<int> told{0};
    HostProxy proxy(
        MemorySpace::Host,
        [](const RemoteOperation &operation, std::byte * /*data*/) {
            if (operation.verb == RemoteVerb::Signal)
                throw std::runtime_error("a peer has ended");
        },
        [&] { ++told; }, HostProxy::makeServer());
    const Asking view{proxy.view()};
    std::uint64_t bits = 0;
    EXPECT_TRUE(view.fetchAddOne(0, bits));
    proxy.rethrow(); // nothing yet
    EXPECT_TRUE(view.signal(0, 1));
    EXPECT_FALSE(view.view.quiet());
    EXPECT_FALSE(view.fetchAddOne(0, bits));
    std::byte byte{};
    EXPECT_FALSE(view.get(0, &byte, 1));
    EXPECT_FALSE(view.put(0, &byte, 1));
    proxy.drain();
    EXPECT_EQ(told, 1);
    EXPECT_THROW(proxy.rethrow(), std::runtime_error);
}

} // namespace
} // namespace DNDS
