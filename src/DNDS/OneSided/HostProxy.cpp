#include "DNDS/OneSided/HostProxy.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>
#include <vector>

namespace DNDS {

using Detail::ProxyRing;
using Detail::ProxySlot;

namespace {

/// The proxies that this thread serves; null where they have ended.
using Entries = std::vector<std::shared_ptr<std::atomic<HostProxy *>>>;
Entries &entries() noexcept {
    static thread_local Entries mine;
    return mine;
}

} // namespace

bool Detail::serveProxies() noexcept {
    static thread_local bool inside = false;
    Entries &mine = entries();
    if (mine.empty() || inside) // requests are carried out in order
        return false;
    inside = true;
    bool any = false;
    for (std::size_t k = 0; k < mine.size(); ++k)
        if (HostProxy *proxy = mine[k]->load())
            any = proxy->serveWaiting() || any;
    inside = false;
    return any;
}

void Detail::pauseOnHost() noexcept {
    if (serveProxies())
        return;
    ProgressEngine::progressAll();
    std::this_thread::yield();
}

HostProxy::HostProxy(MemorySpace space, CarryOut carryOut, std::function<void()> failed, Serving serving)
    : space_(space), serving_(serving), carryOut_(std::move(carryOut)), failed_(std::move(failed)),
      hostTickets_(std::make_unique<std::uint64_t>(0)) {
    if (space == MemorySpace::Device) {
        ring_.reset(new (Device::allocatePinned(sizeof(ProxyRing))) ProxyRing, Device::deallocatePinned);
        deviceTickets_ = Device::DeviceBuffer<std::uint64_t>(1);
    } else {
        ring_.reset(new ProxyRing);
    }
    start();
}

void HostProxy::start() {
    *hostTickets_ = 0;
    if (space_ == MemorySpace::Device) {
        const Device::Stream stream;
        Device::copy(deviceTickets_.data(), MemorySpace::Device, hostTickets_.get(), MemorySpace::Host,
                     sizeof(std::uint64_t), stream);
        stream.synchronize();
    }
    if (serving_ == Serving::ByThread) {
        thread_ = std::thread([this] { run(); });
        return;
    }
    entry_ = std::make_shared<std::atomic<HostProxy *>>(this);
    std::erase_if(entries(), [](const auto &entry) { return entry->load() == nullptr; });
    entries().push_back(entry_);
}

void HostProxy::restart() {
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

/// Serves all requests so far.
bool HostProxy::serveWaiting() noexcept {
    bool any = false;
    try {
        while (!stop_ && Atomics::loadAcquire(&ring_->broken) == 0 && serveNext())
            any = true;
    } catch (...) {
        fail();
    }
    return any;
}

ProxyView HostProxy::view() const noexcept {
    return {ring_.get(), space_ == MemorySpace::Device ? deviceTickets_.data() : hostTickets_.get()};
}

void HostProxy::run() noexcept {
    constexpr auto longest = std::chrono::microseconds(500);
    auto pause = std::chrono::microseconds(1);
    try {
        if (space_ == MemorySpace::Device)
            Device::requireDevice("serve kernels"); // each thread chooses its device
        for (int idle = 0; !stop_;) {
            if (serveNext()) {
                idle = 0;
                pause = std::chrono::microseconds(1);
                continue;
            }
            if (++idle < 100) {
                std::this_thread::yield();
                continue;
            }
            std::this_thread::sleep_for(pause);
            pause = std::min(pause * 2, longest);
        }
    } catch (...) {
        fail();
    }
}

void HostProxy::fail() noexcept {
    {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
    }
    failed_();
    Atomics::storeRelease<std::uint32_t>(&ring_->broken, 1); // waiting kernels stop waiting
}

bool HostProxy::serveNext() {
    ProxySlot &slot = ring_->slots[next_ % Detail::proxySlots];
    const std::uint64_t stage = 3 * (next_ / Detail::proxySlots);
    if (Atomics::loadAcquire(&slot.stage) != stage + 1)
        return false;
    const RemoteOperation &operation = slot.operation;
    const bool answered = operation.isAnswered();
    carryOut_(operation, slot.data.data());
    if (operation.verb == RemoteVerb::Quiet)
        unfinished_ = false;
    else if (!answered && operation.verb != RemoteVerb::Fence)
        unfinished_ = true;
    ++next_;
    if (!unfinished_)
        Atomics::storeRelease(&ring_->complete, next_.load());
    Atomics::storeRelease(&slot.stage, stage + (answered ? 2 : 3));
    return true;
}

std::uint64_t HostProxy::ticketsDrawn() const {
    std::uint64_t drawn = Atomics::loadAcquire(hostTickets_.get());
    if (space_ == MemorySpace::Device) {
        const Device::Stream stream;
        Device::copy(&drawn, MemorySpace::Host, deviceTickets_.data(), MemorySpace::Device, sizeof(drawn), stream);
        stream.synchronize();
    }
    return drawn;
}

void HostProxy::drain() {
    const std::uint64_t drawn = ticketsDrawn();
    while (!stop_ && next_ < drawn && Atomics::loadAcquire(&ring_->broken) == 0)
        if (!entry_ || !serveWaiting())
            std::this_thread::yield();
}

void HostProxy::stop() noexcept {
    stop_ = true;
    if (entry_)
        entry_->store(nullptr);
    if (thread_.joinable())
        thread_.join();
}

void HostProxy::rethrow() {
    const std::lock_guard lock(mutex_);
    if (failure_)
        std::rethrow_exception(failure_);
}

} // namespace DNDS
