/// @file FarAccess.hpp
/// @brief The interface of what reaches memory that this processor's loads and stores do not.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/OneSided/Atomics.hpp"

#include <cstddef>
#include <cstdint>

namespace DNDS {

/// Operations on memory of other ranks, by offset in bytes; arguments have been checked. Called within
/// `CommunicatorContext::running`. Part of a Recoverable object, which calls `settle` and `renew`. Local, unless
/// stated.
class FarAccess : public Recoverable {
  public:
    /// Whether a call returns when it is complete, or when `quiet` is.
    enum class Completion : unsigned char { Now, AtQuiet };

    /// With Now, `from` may be changed afterwards.
    virtual void put(int rank, std::size_t offset, const void *from, std::size_t bytes, Completion completion) = 0;
    virtual void get(int rank, std::size_t offset, void *to, std::size_t bytes, Completion completion) = 0;
    /// What the word was, with Now; else 0, and the operation is complete at `quiet`.
    virtual std::uint64_t atomic(int rank, std::size_t offset, const AtomicRequest &request, Completion completion) = 0;
    /// What was put to a rank, or changed there, before is seen there before what comes after.
    virtual void fence() = 0;
    /// All operations are complete, at their targets too.
    virtual void quiet() = 0;
    /// What others have put here is seen by loads from now on, and stores made before by their gets.
    virtual void sync() = 0;
    /// Serves other ranks; returns whether there was anything to do. Does not wait. What fails revokes the
    /// communicator.
    virtual bool progress() noexcept = 0;
    /// Serves nobody from now on; what MPI still uses stays.
    virtual void stop() noexcept {}
    /// Ends it. Collective, after all have completed their operations.
    virtual void close() = 0;
};

} // namespace DNDS
