/// @file PendingReduction.hpp
/// @brief Non-blocking minimum, maximum and exact sum over all ranks.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Mpi/MessageReduction.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

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
        // A NaN replaces any number, and no number replaces a NaN: the order of terms does not matter.
        else if (term != term || (extreme == extreme && (op == ReduceOp::Min ? term < extreme : term > extreme)))
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

} // namespace DNDS
