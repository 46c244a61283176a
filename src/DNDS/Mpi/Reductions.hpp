/// @file Reductions.hpp
/// @brief Reductions over ranks that can be abandoned, unlike MPI's collectives, sums whose bits depend on no order,
/// and numbers of all ranks compared.
///
/// - `MessageReduction`: combines a few bytes of each rank on all ranks, by messages
/// - `PendingReduction`: minimum, maximum and exact sum, with start and completion apart
/// - `exactSums`: sums over rows that do not depend on their order, nor on the number of ranks
/// - `RankStatistics`: statistics of a number over ranks
/// - `Rebalancing`: when moving work to other ranks pays
/// - `clockOffset`: the offset between this rank's clock and rank 0's
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace DNDS {

class ProgressEngine;

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
    struct State;
    void begin(std::span<const std::byte> mine, Combine combine);
    bool progress();
    void reduceBytes(std::span<std::byte> values, Combine combine);
    std::string awaited() const;

    CommunicatorContext &context_;
    std::shared_ptr<State> state_;           ///< shared with the context if destroyed in flight
    std::unique_ptr<ProgressEngine> engine_; ///< in use between `start` and the end
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

/// Operation of a reduction.
enum class ReduceOp : unsigned char { Min, Max, Sum };

/// One number of a reduction. Sums do not depend on the order of terms, nor on their distribution over ranks. A NaN
/// makes the result NaN.
struct ReductionValue {
    WideExactAccumulator sum;
    real extreme = 0; ///< result of Min and Max
    ReduceOp op = ReduceOp::Sum;

    /// The neutral element.
    static ReductionValue none(ReduceOp op);
    DNDS_HOST_DEVICE void add(real term) noexcept {
        if (op == ReduceOp::Sum)
            sum += term;
        // The order of terms does not matter: a NaN stays, and of two zeros the negative one is less.
        else if (term != term || extreme != extreme)
            extreme = std::numeric_limits<real>::quiet_NaN();
        else if (term != extreme ? (term < extreme) == (op == ReduceOp::Min)
                                 : std::signbit(term) == (op == ReduceOp::Min))
            extreme = term;
    }
    void add(const ReductionValue &other) noexcept;
    real value() const { return op == ReduceOp::Sum ? sum.value() : extreme; }
};

/// A reduction over all ranks of a communicator, with start and completion apart. One at a time. See
/// MessageReduction for the method and the errors of `ready` and `wait`.
class PendingReduction {
  public:
    /// A reduction over the ranks of `context`, not started yet; `name` is for messages. Collective. Throws on all
    /// ranks MemoryError.
    PendingReduction(std::shared_ptr<CommunicatorContext> context, std::string name);

    /// Begins. All ranks start the reductions of one object in the same order, of equally many values. Local. Throws
    /// StateError while one is pending.
    void start(std::span<const ReductionValue> mine);
    /// Whether a reduction is in flight that `ready` has not found complete yet. Local.
    bool pending() const noexcept { return messages_.pending(); }
    /// Whether the result is there; makes progress. Local, does not wait.
    bool ready() { return messages_.ready(); }
    /// The latest result. Waits for all ranks to start the reduction, and to call DNDS until they have the result,
    /// too. Throws StateError before the first one.
    std::span<const ReductionValue> wait();

  private:
    /// Before `messages_`, which refers to it.
    std::shared_ptr<CommunicatorContext> context_;
    MessageReduction messages_;
    /// Sized by `start`; a copy, because the bytes of the reduction need not be aligned for this type.
    std::vector<ReductionValue> result_;
};

/// Adds this rank's terms of each sum, which is empty before. Local; called once, and may throw. See
/// `FixedPoint::addColumns`, and `DofKernels::addColumns` for terms in device memory.
using ExactTerms = std::function<void(std::span<WideExactAccumulator> sums)>;

/// The sums of all ranks' terms, the same to the bit for any distribution of terms over ranks: those of
/// `WideExactAccumulator`, which documents the method. Collective; one reduction of 64 bytes a sum, as many on all
/// ranks. Exceptions of one rank's `terms` are thrown on all ranks.
void exactSums(CommunicatorView comm, const ExactTerms &terms, std::span<real> sums);

/// The same in a running call, by messages: `running` tells the other ranks of an exception of one rank. Not Collective
/// in the sense of set-up calls: see MessageReduction.
void exactSums(MessageReduction &messages, const ExactTerms &terms, std::span<real> sums);

/// The sum of each column of all ranks' rows: `rows` is [own rows x columns], `sums` [columns]. As above. Throws
/// ArgumentError on all ranks if `rows` is no whole number of rows. Rows in device memory: `Array/DofKernels.hpp`.
void exactSums(CommunicatorView comm, std::span<const real> rows, std::span<real> sums);

/// The sum of all ranks' values, as above. Collective.
inline real exactSum(CommunicatorView comm, std::span<const real> values) {
    real sum = 0;
    exactSums(comm, values, {&sum, 1});
    return sum;
}

/// One sum, of the terms that `add(WideExactAccumulator &)` adds on this rank. As above. Collective.
template <std::invocable<WideExactAccumulator &> Add>
real exactSum(CommunicatorView comm, Add &&add) {
    real sum = 0;
    exactSums(comm, [&add](std::span<WideExactAccumulator> own) { add(own[0]); }, {&sum, 1});
    return sum;
}

/// A number that each rank has: seconds, cells, bytes.
struct RankStatistics {
    double min = 0.0;
    double median = 0.0;
    double max = 0.0;
    double mean = 0.0;
    int maxRank = 0; ///< the rank with the maximum, the lowest of them

    /// Statistics of one number a rank, and the numbers of these ranks; none: from 0. Local.
    static RankStatistics of(std::span<const double> values, std::span<const int> ranks = {});
    /// Statistics of each rank's number; the same on all ranks. Collective; memory O(ranks).
    static RankStatistics over(CommunicatorView comm, double own);
    /// Excess of the highest rank over the mean: 0.5 is half as much again. 0 if all ranks have 0.
    double imbalance() const noexcept { return mean > 0.0 ? max / mean - 1.0 : 0.0; }
};

/// The distribution of work over ranks, seconds, cells or costs: the same on all ranks. Collective; memory O(ranks).
/// Throws ArgumentError on all ranks for a number that is negative or not finite.
RankStatistics measureImbalance(const CommunicatorView &comm, double own);
/// "rank 3 has 1.42 x the mean of 4 ranks: balancing would save at most 30 % of a step".
std::string describeImbalance(const CommunicatorView &comm, const RankStatistics &work);

/// Decides when a time loop should move work to other ranks (Geom::Repartition, BlockGrid::rebalanced): when the
/// excess over the mean, summed over the steps since the last move, exceeds the cost of that move, and is above a
/// threshold.
///
///     Rebalancing policy(0.1);
///     for (...) {
///         ... measure `seconds` of this rank's own computing ...
///         if (policy.isDue(comm, seconds)) {
///             ... move cells or blocks ...
///             policy.moved(comm, secondsThatItTook);
///         }
///     }
class Rebalancing {
  public:
    /// `threshold`, the same on all ranks: less excess than this is left alone. Throws ArgumentError unless it is 0 or
    /// more.
    explicit Rebalancing(double threshold);

    /// Counts a step. Collective; memory O(ranks). The same answer on all ranks. Throws ArgumentError on
    /// all ranks where thresholds differ, and as measureImbalance.
    bool isDue(const CommunicatorView &comm, double seconds);
    /// Reports the duration of a move on this rank. Collective; as measureImbalance.
    void moved(const CommunicatorView &comm, double seconds);
    /// The work of the last step.
    const RankStatistics &last() const noexcept { return last_; }

  private:
    /// The relative imbalance, max / mean - 1, below which nothing is moved.
    double threshold_;
    double lost_ = 0; ///< seconds of the slowest rank beyond the mean, since the last move
    double cost_ = 0; ///< seconds of the last move
    /// Work of the latest step, for `last`.
    RankStatistics last_;
};

/// The seconds that this rank adds to its clock to read rank 0's; 0 on rank 0. Collective; 16 messages each way between
/// rank 0 and each other rank, one rank after another.
///
/// Exact to half of the fastest round trip (about 1 microsecond over Infiniband, 20 over Ethernet), as in Cristian,
/// "Probabilistic clock synchronization" (1989). Offsets below that accuracy count as 0: exactly right on one
/// machine. Clocks of different machines drift apart afterwards, by a microsecond a second or so.
double clockOffset(CommunicatorView comm, double (*clock)() noexcept = monotonicSeconds);

} // namespace DNDS
