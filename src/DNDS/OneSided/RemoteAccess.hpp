/// @file RemoteAccess.hpp
/// @brief Interface to memory that this processor's loads and stores do not reach.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/OneSided/ProxyView.hpp"

namespace DNDS {

/// Operations on memory of other ranks; arguments have been checked. The order and completion that callers get are the
/// ones described below, whatever carries them: MPI, requests to the owner, or copies between devices. Called within
/// `CommunicatorContext::running`. Part of a Recoverable object, which calls `renew`. Local, unless stated.
class RemoteAccess : public Recoverable {
  public:
    bool settle() noexcept override { return true; } // `MessageService` settles
    /// Put, Get, Atomic or FetchAtomic with the bytes at `from`; results go to `to`. With Completion::Now
    /// `from` may be changed afterwards, and results are there.
    virtual void operate(const RemoteOperation &operation, const void *from, void *to, Completion completion) = 0;
    /// Puts and changes before the call are seen at their rank before those after it.
    virtual void fence() = 0;
    /// Completes all operations, at their targets too.
    virtual void quiet() = 0;
    /// Loads from now on see puts of other ranks, and gets of others see stores made before the call.
    virtual void sync() = 0;
    /// Serves other ranks; true if there was anything to do. Does not wait. Errors revoke the
    /// communicator.
    virtual bool progress() noexcept = 0;
    /// Serves no requests from now on; memory that MPI still uses stays.
    virtual void stop() noexcept {}
    /// Ends the access. Collective, after all have completed their operations.
    virtual void close() = 0;
};

} // namespace DNDS
