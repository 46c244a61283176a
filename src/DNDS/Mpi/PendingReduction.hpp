/// @file PendingReduction.hpp
/// @brief Smallest, largest and exactly summed values of all ranks, found while ranks go on.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// What a reduction does with the values of ranks.
enum class ReduceOp : unsigned char { Min, Max, Sum };

/// One number of a reduction. Sums do not depend on the order of terms, nor on how they are spread over ranks. A NaN
/// makes the result NaN.
struct ReductionValue {
    WideExactAccumulator sum;
    real extreme = 0; ///< of Min and Max
    ReduceOp op = ReduceOp::Sum;
    bool failed = false; ///< this rank has no value

    /// The neutral element.
    static ReductionValue none(ReduceOp op);
    DNDS_HOST_DEVICE void add(real term) noexcept {
        if (op == ReduceOp::Sum)
            sum += term;
        else if (term != term || (extreme == extreme && (op == ReduceOp::Min ? term < extreme : term > extreme)))
            extreme = term;
    }
    void add(const ReductionValue &other) noexcept;
    real value() const { return op == ReduceOp::Sum ? sum.value() : extreme; }
};

/// A reduction over all ranks of a communicator that is started, and asked for later. One at a time.
class PendingReduction {
  public:
    /// A reduction over the ranks of `context`, not started yet. Local.
    explicit PendingReduction(std::shared_ptr<CommunicatorContext> context);
    PendingReduction(const PendingReduction &) = delete;
    PendingReduction &operator=(const PendingReduction &) = delete;
    /// In flight, what MPI still uses is kept until it is complete.
    ~PendingReduction();

    /// Begins. All ranks start their reductions of a communicator in the same order, of equally many values. Local.
    /// Throws StateError while one is pending.
    void start(std::span<const ReductionValue> mine);
    bool pending() const noexcept;
    /// Whether the result is there; lets MPI go on. Local.
    bool ready();
    /// The result of the last one started. Waits for all ranks to start it. Local otherwise. Throws StateError before
    /// the first one, or when the communicator was freed.
    std::span<const ReductionValue> wait();

  private:
    struct State;
    void park();

    std::shared_ptr<CommunicatorContext> context_;
    std::shared_ptr<State> state_;
};

} // namespace DNDS
