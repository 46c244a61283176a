/// @file PendingBarrier.hpp
/// @brief A barrier that is started, and polled while this rank serves others, and that compares what ranks bring.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace DNDS {

/// A barrier over all ranks of a communicator, by messages on a channel that carries nothing else: O(log ranks). Each
/// rank brings a few numbers; all learn the least and the largest of each. Ranks start those of a channel in the same
/// order and number them. Local.
///
/// A rank that destroys it before it is reached may be missed by others for ever. What is left of it then is passed
/// over by later barriers with larger numbers, and nothing else on the communicator is touched, as it would be with a
/// barrier of MPI.
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

    /// Starts barrier `number` of the channel, to which this rank brings `mine`. Does not wait. Throws MpiError.
    PendingBarrier(std::shared_ptr<CommunicatorContext> context, const Channel &channel, std::uint64_t number,
                   const Words &mine = {});
    PendingBarrier(const PendingBarrier &) = delete;
    PendingBarrier &operator=(const PendingBarrier &) = delete;
    ~PendingBarrier();

    /// Whether all ranks have started it. Throws StateError where one is in a later barrier, since it gave up this one.
    bool reached();
    /// Whether the rank before this one is known to have started it.
    bool heardOne() const noexcept { return distance_ > 1; }

    /// What a rank brought to a barrier when it started it.
    struct Started {
        std::uint64_t number;
        Words words;
    };
    /// The rank that this one hears first.
    static int before(const CommunicatorView &comm) { return (comm.rank() + comm.size() - 1) % comm.size(); }
    /// Whether that rank has started a barrier on a channel on which this rank is in none. Local.
    static bool waiting(const CommunicatorView &comm, const Channel &channel);
    /// Which one; nothing where none was. This rank must not start it afterwards. Local.
    static std::optional<Started> take(const CommunicatorView &comm, const Channel &channel);

    /// What they brought; when it is reached.
    const std::array<Extremes, words> &seen() const noexcept { return seen_.extremes; }

  private:
    struct Message {
        std::uint64_t number = 0;
        std::array<Extremes, words> extremes{};
    };
    struct Sent; ///< MPI reads it

    static std::optional<Message> receive(const Channel &channel, int from);
    void tell();
    bool hear(int from);
    void add(const Message &theirs) noexcept;

    std::shared_ptr<CommunicatorContext> context_;
    Channel channel_;
    int rank_;
    int ranks_;
    Message seen_;
    std::shared_ptr<Sent> sent_;
    int distance_ = 1; ///< of the ranks that are told and heard next: doubled in each round
};

} // namespace DNDS
