/// @file HostProxy.hpp
/// @brief Carries out requests of kernels on the host.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/OneSided/ProxyView.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace DNDS {

class CommunicatorContext;

/// Takes requests out of the ring of a `ProxyView`, in order, and carries them out on the host: the design of NVSHMEM's
/// and MSCCL++'s proxy threads, for ranks that a kernel's loads and stores do not reach. It runs on a thread that
/// serves all proxies of a communicator, as kernels wait for it while the host waits for the kernels; or, if only one
/// thread may call MPI, in the waits of that thread, and while kernels run on it.
class HostProxy {
  public:
    /// Carries out a request with `data`, which receives its results. May throw, which ends the proxy.
    using CarryOut = std::function<void(const RemoteOperation &operation, std::byte *data)>;
    /// Serves proxies in turns.
    struct Server;

    /// A server with a thread, which runs while there are proxies. Local.
    static std::shared_ptr<Server> makeServer();
    /// The server of a communicator. Collective at the first call.
    static std::shared_ptr<Server> serverOf(CommunicatorContext &context);
    /// The server in the waits of this thread. Local.
    static std::shared_ptr<Server> serverOfThread();

    /// For kernels in `space`. `failed` is called once, after a failed request. Local. Throws std::system_error where
    /// there can be no thread, and device errors for device memory.
    HostProxy(MemorySpace space, CarryOut carryOut, std::function<void()> failed, std::shared_ptr<Server> server);
    HostProxy(const HostProxy &) = delete;
    HostProxy &operator=(const HostProxy &) = delete;
    ~HostProxy() { stop(); }

    /// Valid as long as this object.
    ProxyView view() const noexcept;
    /// Waits until all earlier requests are carried out; kernels have been waited for. Does not throw
    /// the proxy's errors.
    void drain();
    /// Carries out nothing from now on. Waits for the request that the server carries out, of any proxy.
    void stop() noexcept;
    /// After `stop`, while no kernel runs: forgets requests and failures, and carries out new requests. Views stay
    /// valid.
    void restart();
    /// Throws the proxy's error, if it failed.
    void rethrow();

  private:
    /// Resets the tickets, and adds this to its server.
    void start();
    bool serveWaiting() noexcept; ///< true if any request was served
    /// Carries out the next request, if it is complete; whether it was. May throw.
    bool serveNext();
    /// Requests that kernels have begun until now.
    std::uint64_t ticketsDrawn() const;
    /// With the exception being handled: keeps it for `rethrow`, and ends the proxy.
    void fail() noexcept;

    MemorySpace space_;
    /// Called by the server, one request at a time.
    CarryOut carryOut_;
    std::function<void()> failed_;
    std::shared_ptr<Detail::ProxyRing> ring_; ///< pinned for kernels on a device
    /// The tickets' counter, for kernels on the host and on the device.
    std::unique_ptr<std::uint64_t> hostTickets_;
    Device::DeviceBuffer<std::uint64_t> deviceTickets_;

    /// Written by the server and, while no kernel runs, `restart`; `drain` reads it from another thread.
    std::atomic<std::uint64_t> next_{0}; ///< the next ticket to serve
    bool unfinished_ = false;            ///< some request is complete only after a quiet
    /// Set by `stop`: no further request is begun.
    std::atomic<bool> stop_{false};
    std::mutex mutex_; ///< guards failure_
    std::exception_ptr failure_;
    /// Keeps the server; its thread ends with its last proxy.
    std::shared_ptr<Server> server_;
};

} // namespace DNDS
