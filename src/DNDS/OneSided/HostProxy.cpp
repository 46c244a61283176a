#include "DNDS/OneSided/HostProxy.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS {

using Detail::ProxyRing;
using Detail::ProxySlot;

/// Polls the rings of its proxies: on its own thread, or in the waits of the thread that made it (`serveProxies`).
/// The lock is recursive because carrying out a request may wait, which serves again: `serving` stops that, so
/// requests of one ring are never carried out within one another.
struct HostProxy::Server {
    explicit Server(bool ofThread) : hasThread(ofThread) {}

    void add(HostProxy &proxy) {
        const std::lock_guard lock(mutex);
        if (hasThread && !thread.joinable())
            thread = std::jthread([this](const std::stop_token &stop) { run(stop); });
        proxies.push_back(&proxy);
    }
    void remove(HostProxy &proxy) noexcept {
        std::jthread ended; // joined without the lock
        const std::lock_guard lock(mutex);
        std::erase(proxies, &proxy);
        if (proxies.empty())
            ended = std::move(thread);
    }
    bool serve() noexcept {
        const std::lock_guard lock(mutex);
        if (serving) // this thread, in a wait: requests are carried out in order
            return false;
        serving = true;
        bool any = false;
        for (std::size_t k = 0; k < proxies.size(); ++k)
            any = proxies[k]->serveWaiting() || any;
        serving = false;
        return any;
    }
    void run(const std::stop_token &stop) noexcept {
        // Yields while requests follow each other closely, then sleeps for times that double up to half a
        // millisecond.
        constexpr auto longest = std::chrono::microseconds(500);
        auto pause = std::chrono::microseconds(1);
        for (int idle = 0; !stop.stop_requested();) {
            if (serve()) {
                idle = 0;
                pause = std::chrono::microseconds(1);
            } else if (++idle < 100) {
                std::this_thread::yield();
            } else {
                std::this_thread::sleep_for(pause);
                pause = std::min(pause * 2, longest);
            }
        }
    }

    const bool hasThread;
    std::recursive_mutex mutex; ///< guards all below; held while requests are carried out
    bool serving = false;
    std::vector<HostProxy *> proxies;
    std::jthread thread; ///< the last member: it uses the others
};

namespace {

/// The server of this thread; null until its first proxy.
std::shared_ptr<HostProxy::Server> &threadServer() noexcept {
    static thread_local std::shared_ptr<HostProxy::Server> mine;
    return mine;
}

} // namespace

std::shared_ptr<HostProxy::Server> HostProxy::makeServer() { return std::make_shared<Server>(true); }

std::shared_ptr<HostProxy::Server> HostProxy::serverOf(CommunicatorContext &context) {
    context.attach<Server>(makeServer);
    return context.attachment<Server>();
}

std::shared_ptr<HostProxy::Server> HostProxy::serverOfThread() {
    if (!threadServer())
        threadServer() = std::make_shared<Server>(false);
    return threadServer();
}

bool Detail::serveProxies() noexcept {
    HostProxy::Server *const mine = threadServer().get();
    return mine != nullptr && mine->serve();
}

void Detail::pauseOnHost() noexcept {
    if (serveProxies())
        return;
    // No request of this thread's kernels: another rank may need this thread instead.
    ProgressEngine::progressAll();
    std::this_thread::yield();
}

HostProxy::HostProxy(MemorySpace space, CarryOut carryOut, std::function<void()> failed, std::shared_ptr<Server> server)
    : space_(space), carryOut_(std::move(carryOut)), failed_(std::move(failed)),
      hostTickets_(std::make_unique<std::uint64_t>(0)), server_(std::move(server)) {
    if (space == MemorySpace::Device) {
        ring_.reset(new (Device::allocatePinned(sizeof(ProxyRing))) ProxyRing, Device::deallocatePinned);
        deviceTickets_ = Device::DeviceBuffer<std::uint64_t>(1);
    } else {
        ring_.reset(new ProxyRing);
    }
    start();
}

void HostProxy::start() {
    // Slots and tickets start together: ticket 0 expects stage 0 of slot 0.
    *hostTickets_ = 0;
    if (space_ == MemorySpace::Device) {
        const Device::Stream stream;
        Device::copy(deviceTickets_.data(), MemorySpace::Device, hostTickets_.get(), MemorySpace::Host,
                     sizeof(std::uint64_t), stream);
        stream.synchronize();
    }
    server_->add(*this);
}

void HostProxy::restart() {
    // As after construction. Kernels hold pointers to ring and tickets, so both stay where they are.
    ring_->complete = 0;
    ring_->broken = 0;
    for (ProxySlot &slot : ring_->slots)
        slot.stage = 0;
    next_ = 0;
    unfinished_ = false;
    failure_ = nullptr;
    stop_ = false;
    start();
}

/// Serves waiting requests, at most a ring of them: others are waiting, too.
/// The bound makes serving fair: a kernel that floods its ring does not starve the proxies of other heaps.
bool HostProxy::serveWaiting() noexcept {
    std::uint64_t served = 0;
    try {
        while (!stop_ && served < Detail::proxySlots && Atomics::loadAcquire(&ring_->broken) == 0 && serveNext())
            ++served;
    } catch (...) {
        fail();
    }
    return served > 0;
}

ProxyView HostProxy::view() const noexcept {
    return {ring_.get(), space_ == MemorySpace::Device ? deviceTickets_.data() : hostTickets_.get()};
}

/// The proxy ends at the first error: later requests may depend on the failed one.
void HostProxy::fail() noexcept {
    {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
    }
    // The fault is noted before waiting kernels continue, so that the next call on the host throws it.
    failed_();
    Atomics::storeRelease<std::uint32_t>(&ring_->broken, 1); // waiting kernels stop waiting
}

/// O(1) beside the operation. Requests are carried out in the order of tickets, hence each thread's own in its order,
/// which is what fences of kernels rely on.
bool HostProxy::serveNext() {
    // One consumer, in the order of tickets. Acquire on `stage` makes the request and its data visible; the release
    // at the end hands the slot back with the answer (stage + 2, the requester frees it) or free (stage + 3).
    ProxySlot &slot = ring_->slots[next_ % Detail::proxySlots];
    const std::uint64_t stage = 3 * (next_ / Detail::proxySlots);
    if (Atomics::loadAcquire(&slot.stage) != stage + 1)
        return false;
    const RemoteOperation &operation = slot.operation;
    const bool answered = operation.isAnswered();
    if (space_ == MemorySpace::Device)
        Device::requireDevice("serve kernels"); // each thread chooses its device
    carryOut_(operation, ring_->data[next_ % Detail::proxySlots].data());
    if (operation.verb == RemoteVerb::Quiet)
        unfinished_ = false;
    else if (!answered && operation.verb != RemoteVerb::Fence)
        unfinished_ = true;
    ++next_;
    // All tickets below are complete at their targets, so that `quiet` of a kernel without later requests needs no
    // request of its own.
    if (!unfinished_)
        Atomics::storeRelease(&ring_->complete, next_.load());
    Atomics::storeRelease(&slot.stage, stage + (answered ? 2 : 3));
    return true;
}

std::uint64_t HostProxy::ticketsDrawn() const {
    // Kernels draw tickets from a counter in their own memory, which is cheap for them; here it is copied.
    std::uint64_t drawn = Atomics::loadAcquire(hostTickets_.get());
    if (space_ == MemorySpace::Device) {
        const Device::Stream stream;
        Device::copy(&drawn, MemorySpace::Host, deviceTickets_.data(), MemorySpace::Device, sizeof(drawn), stream);
        stream.synchronize();
    }
    return drawn;
}

/// Ends, because no ticket is drawn meanwhile: kernels have been waited for, and this thread is in the loop.
void HostProxy::drain() {
    // Up to the tickets drawn by now: kernels have been waited for, so that all of their requests are in the ring.
    // The server of this thread serves here; another one has a thread.
    const std::uint64_t drawn = ticketsDrawn();
    while (!stop_ && next_ < drawn && Atomics::loadAcquire(&ring_->broken) == 0)
        if (server_ != threadServer() || !server_->serve())
            std::this_thread::yield();
}

/// Afterwards no thread touches this proxy, so that it may be destroyed or restarted.
void HostProxy::stop() noexcept {
    // The flag ends serving between two requests; removal takes the server's lock, which is held during a request.
    stop_ = true;
    server_->remove(*this);
}

void HostProxy::rethrow() {
    const std::lock_guard lock(mutex_);
    if (failure_)
        std::rethrow_exception(failure_);
}

} // namespace DNDS
