/// @file MessageReduction.hpp
/// @brief Combines a few bytes of each rank on all ranks, by messages: unlike MPI's collectives it can be abandoned.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace DNDS {

/// A reduction of short values over all ranks, whose result all ranks get. For running calls: if a rank fails the
/// others throw RevokedError instead of waiting for it, as they would in MPI_Allreduce.
///
/// By recursive doubling, log2(ranks) rounds of one message a rank; if ranks are not a power of two, some first give
/// their values to a neighbour and get the result from it (Thakur, Rabenseifner and Gropp: Optimization of collective
/// communication operations in MPICH, IJHPCA 19(1), 2005). All ranks get the same bits for any commutative operation.
/// Later rounds progress only while the rank calls DNDS: `ready`, `wait`, or any call that waits.
class MessageReduction final : public Recoverable {
  public:
    /// Combines `theirs` into `mine`, both of `bytes` bytes. Commutative; the order of ranks is arbitrary.
    using Combine = void (*)(std::byte *mine, const std::byte *theirs, std::size_t bytes) noexcept;

    /// `context` outlives it. `name` completes "the reduction of", for messages. Collective. Throws on all ranks
    /// MemoryError.
    MessageReduction(CommunicatorContext &context, std::string name);
    /// In flight, it is parked with the communicator and completes there, as other ranks may wait for it.
    ~MessageReduction() override;

    /// Begins. All ranks start the reductions of one object in the same order, of equally many bytes. Local. Throws
    /// StateError while one is pending; RevokedError.
    void start(std::span<const std::byte> mine, Combine combine);
    /// Whether a reduction was started that `ready` has not found complete yet. Local.
    bool pending() const noexcept;
    /// Whether the result is there; makes progress. Local, does not wait. Throws RevokedError, StateError where the
    /// communicator was freed or ranks reduce different numbers of bytes.
    bool ready();
    /// The result of the last one started; valid until the next start. Waits for all ranks to start it. Throws as
    /// `ready`; PeerError as all waits.
    std::span<const std::byte> wait();

    /// Starts, waits, and replaces `values` by the result. Throws as `start` and `wait`.
    template <class T>
    void reduce(std::span<T> values, Combine combine) {
        static_assert(std::is_trivially_copyable_v<T>);
        reduceBytes(std::as_writable_bytes(values), combine);
    }

    /// Number of reductions started. Local.
    std::uint64_t starts() const noexcept { return starts_; }

    bool settle() noexcept override;
    void renew() override;

  private:
    /// Steps, buffers and requests: see the source.
    struct State;
    void begin(std::span<const std::byte> mine, Combine combine);
    bool progress();
    void reduceBytes(std::span<std::byte> values, Combine combine);
    std::string awaited() const;

    /// Outlives this: its owner attaches this to it, or holds it.
    CommunicatorContext &context_;
    std::shared_ptr<State> state_; ///< shared with the context if destroyed in flight
    ProgressEngine engine_;        ///< between `start` and the end
    /// Diagnosis: the number of reductions started.
    std::uint64_t starts_ = 0;
};

/// Combines numbers or structures of type `T` by `operation(mine, theirs)`, which returns a T.
template <class T, auto operation>
void combineEach(std::byte *mine, const std::byte *theirs, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, mine + at, sizeof(T));
        std::memcpy(&b, theirs + at, sizeof(T));
        a = operation(a, b);
        std::memcpy(mine + at, &a, sizeof(T));
    }
}

} // namespace DNDS
