/// @file HostProxy.hpp
/// @brief The thread that carries out requests of kernels.
#pragma once

#include "DNDS/Base/MemorySpace.hpp"
#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/OneSided/ProxyView.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace DNDS {

/// Takes requests out of the ring of a `ProxyView`, in order: on a thread of its own, as kernels wait for it while the
/// host waits for the kernels; or, if only one thread may call MPI, in the waits of that thread, and while kernels run
/// on it.
class HostProxy {
  public:
    enum class Serving : unsigned char { ByThread, InWaits };

    /// Carries out a request with `data`, which receives its results. May throw, which ends the proxy.
    using CarryOut = std::function<void(const RemoteOperation &operation, std::byte *data)>;

    /// For kernels in `space`. InWaits serves in waits of the calling thread. `failed` is called once, after a
    /// failed request. Local. Throws std::system_error, and device errors for device memory.
    HostProxy(MemorySpace space, CarryOut carryOut, std::function<void()> failed, Serving serving = Serving::ByThread);
    HostProxy(const HostProxy &) = delete;
    HostProxy &operator=(const HostProxy &) = delete;
    ~HostProxy() { stop(); }

    /// Valid as long as this object.
    ProxyView view() const noexcept;
    /// Waits until all earlier requests are carried out; kernels have been waited for. Does not throw
    /// the proxy's errors.
    void drain();
    /// Carries out nothing from now on. Waits for the request in progress.
    void stop() noexcept;
    /// After `stop`, while no kernel runs: forgets requests and failures, and carries out new requests. Views stay
    /// valid.
    void restart();
    /// Throws the proxy's error, if it failed.
    void rethrow();

  private:
    friend bool Detail::serveProxies() noexcept;

    void start();
    bool serveWaiting() noexcept;
    void run() noexcept;
    bool serveNext();
    std::uint64_t ticketsDrawn() const;
    void fail() noexcept;

    MemorySpace space_;
    Serving serving_;
    CarryOut carryOut_;
    std::function<void()> failed_;
    std::shared_ptr<Detail::ProxyRing> ring_; ///< pinned for kernels on a device
    std::unique_ptr<std::uint64_t> hostTickets_;
    Device::DeviceBuffer<std::uint64_t> deviceTickets_;

    std::atomic<std::uint64_t> next_{0}; ///< the next ticket to serve
    bool unfinished_ = false;            ///< some request is complete only after a quiet
    std::atomic<bool> stop_{false};
    std::mutex mutex_; ///< guards failure_
    std::exception_ptr failure_;
    std::shared_ptr<std::atomic<HostProxy *>> entry_; ///< InWaits, in the list of the thread that made this
    std::thread thread_;                              ///< the last member: it uses the others
};

} // namespace DNDS
