#include "DNDS/Mpi/Reductions.hpp"

#include <cmath>
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

// Commutative and associative to the bit: exact sums round nothing, extremes resolve equal zeros by sign, and a NaN
// absorbs everything. The tree of the reduction therefore has no influence on the result.
void ReductionValue::add(const ReductionValue &other) noexcept {
    if (op == ReduceOp::Sum)
        sum += other.sum;
    // Commutative to the bit, so that all ranks get the same: of two zeros the negative one is less.
    else if (std::isnan(extreme) || std::isnan(other.extreme))
        extreme = std::numeric_limits<real>::quiet_NaN();
    else if (extreme != other.extreme)
        add(other.extreme);
    else if (std::signbit(other.extreme) == (op == ReduceOp::Min))
        extreme = other.extreme;
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
