/// @file PendingBarrier.hpp
/// @brief A barrier that is started, and polled while this rank serves others, and that compares what ranks bring.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace DNDS {

/// A barrier over all ranks of a communicator, by messages on a channel that carries nothing else: O(log ranks). Each
/// rank brings a few numbers; all learn the least and the largest of each. All functions are Local.
///
/// A rank that gives up a barrier revokes the communicator, or others wait for it. Part of a Recoverable object, which
/// calls `settle` and `renew`.
class PendingBarrier {
  public:
    static constexpr std::size_t words = 3;
    using Words = std::array<std::uint64_t, words>;
    /// Of the ranks' numbers.
    struct Extremes {
        std::uint64_t least = 0;
        std::uint64_t most = 0;
        std::int32_t leastRank = 0; ///< the first rank that brings the least
        std::int32_t mostRank = 0;  ///< the first rank that brings the largest
        /// Whether ranks brought different numbers.
        bool differ() const noexcept { return least != most; }
    };

    /// Throws StateError where the communicator was freed, std::bad_alloc.
    PendingBarrier(std::shared_ptr<CommunicatorContext> context, const Channel &channel);
    PendingBarrier(const PendingBarrier &) = delete;
    PendingBarrier &operator=(const PendingBarrier &) = delete;
    ~PendingBarrier();

    /// Begins the next barrier, to which this rank brings `mine`; the one before was reached. Throws MpiError.
    void start(const Words &mine = {});
    /// Whether all ranks have started it, and need no more messages of this one.
    bool reached();
    /// What they brought; when it is reached.
    const std::array<Extremes, words> &seen() const noexcept { return seen_; }

    /// As those of Recoverable.
    bool settle() noexcept;
    void renew();

  private:
    using Message = std::array<Extremes, words>;
    struct Sent; ///< MPI reads it

    void tell();
    void add(const Message &theirs) noexcept;

    std::shared_ptr<CommunicatorContext> context_;
    Channel channel_;
    int rank_;
    int ranks_;
    Message seen_;
    std::shared_ptr<Sent> sent_;
    std::size_t round_ = 0; ///< in round k, ranks at a distance of 2^k are told and heard
};

} // namespace DNDS
