#include "DNDS/Mpi/Reductions.hpp"

#include <limits>
#include <utility>

namespace DNDS {

namespace {

ReductionValue combinedValue(ReductionValue a, const ReductionValue &b) noexcept {
    a.add(b);
    return a;
}

} // namespace

// Infinities are neutral for minima and maxima, an empty accumulator for sums.
ReductionValue ReductionValue::none(ReduceOp op) {
    ReductionValue value;
    value.op = op;
    if (op != ReduceOp::Sum)
        value.extreme =
            op == ReduceOp::Min ? std::numeric_limits<real>::infinity() : -std::numeric_limits<real>::infinity();
    return value;
}

// Commutative and associative to the bit, as accumulators and `add` of one term are: the tree of the reduction has no
// influence on the result.
void ReductionValue::add(const ReductionValue &other) noexcept {
    if (op == ReduceOp::Sum)
        sum += other.sum;
    else
        add(other.extreme);
}

// `messages_` refers to the context, which `context_` keeps alive: hence the order of the members.
PendingReduction::PendingReduction(std::shared_ptr<CommunicatorContext> context, std::string name)
    : context_(std::move(context)), messages_(*context_, std::move(name)) {}

void PendingReduction::start(std::span<const ReductionValue> mine) {
    // Values travel as bytes, accumulators included: exact sums are rounded only when `value` is asked.
    messages_.start(std::as_bytes(mine), combineEach<ReductionValue, combinedValue>);
    result_.resize(mine.size());
}

// May be called again for the same result, which `messages_` keeps as bytes until the next start.
std::span<const ReductionValue> PendingReduction::wait() {
    DNDS_CHECK(messages_.starts() > 0, StateError, "the result of a reduction is asked for that was never started");
    const std::span<const std::byte> bytes = messages_.wait();
    if (!bytes.empty())
        std::memcpy(result_.data(), bytes.data(), bytes.size());
    return result_;
}

} // namespace DNDS
