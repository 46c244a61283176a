/// @file HostProxy.hpp
/// @brief The thread that carries out what kernels ask for.
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
/// host waits for the kernels; or, where only one thread may call MPI, in the waits of that one, and while kernels run
/// on it.
class HostProxy {
  public:
    enum class Serving : unsigned char { ByThread, InWaits };

    /// Carries out a request with `data`; results go there, too. May throw, which ends the proxy.
    using CarryOut = std::function<void(const RemoteOperation &operation, std::byte *data)>;

    /// For kernels in `space`. InWaits serves in waits of the thread that calls this. `failed` is called once, after a
    /// request could not be carried out. Local. Throws std::system_error, and in device memory what devices throw.
    HostProxy(MemorySpace space, CarryOut carryOut, std::function<void()> failed, Serving serving = Serving::ByThread);
    HostProxy(const HostProxy &) = delete;
    HostProxy &operator=(const HostProxy &) = delete;
    ~HostProxy() { stop(); }

    /// Valid as long as this object.
    ProxyView view() const noexcept;
    /// Waits until everything is carried out that was asked for before; kernels have been waited for. Does not throw
    /// what the proxy met.
    void drain();
    /// Carries out nothing from now on. Waits for the request in progress.
    void stop() noexcept;
    /// After `stop`, while no kernel runs: forgets requests and failures, and carries out new requests. Views stay
    /// valid.
    void restart();
    /// Throws why it failed, if it did.
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
    std::shared_ptr<Detail::ProxyRing> ring_; ///< pinned where kernels run on a device
    std::unique_ptr<std::uint64_t> hostTickets_;
    Device::DeviceBuffer<std::uint64_t> deviceTickets_;

    std::atomic<std::uint64_t> next_{0}; ///< the ticket whose turn it is
    bool unfinished_ = false;            ///< something is complete only after a quiet
    std::atomic<bool> stop_{false};
    std::mutex mutex_; ///< guards failure_
    std::exception_ptr failure_;
    std::shared_ptr<std::atomic<HostProxy *>> entry_; ///< InWaits, in the list of the thread that made this
    std::thread thread_;                              ///< the last member: it uses the others
};

} // namespace DNDS
