#include "DNDS/Array/DofKernels.hpp"

#include "DNDS/Device/Algorithms.hpp"

namespace DNDS {

namespace {

/// Computes this rank's part by kernels; only results of a few numbers come to the host. `columns`, which outlives the
/// result, is called in each phase, inside the agreement on failures.
ExactRows rowsOnDevice(Device::StreamHandle stream, const ExactColumns &columns) {
    return {[=, &columns](std::span<real> largest) { Device::largestOfColumns(stream, columns(), largest); },
            [=, &columns](std::span<const std::optional<FixedPoint::Scale>> scales, std::span<FixedPoint::Wide> sums) {
                Device::integerSumsOfColumns(stream, columns(), scales, sums);
            }};
}

} // namespace

void exactSums(CommunicatorView comm, const Executor &on, const ExactColumns &columns, std::span<real> sums) {
    // The algorithm is the same on host and device; only the place of the local sums differs.
    if (on.onDevice())
        exactSums(comm, rowsOnDevice(on.stream(), columns), sums);
    else
        exactSums(comm, columns, sums);
}

// Within running calls: reductions by links, which a failure can interrupt, instead of MPI's.
void exactSums(MessageReduction &messages, const Executor &on, const ExactColumns &columns, std::span<real> sums) {
    if (on.onDevice())
        exactSums(messages, rowsOnDevice(on.stream(), columns), sums);
    else
        exactSums(messages, columns, sums);
}

void exactSums(CommunicatorView comm, const Executor &on, std::span<const real> rows, std::span<real> sums) {
    exactSums(
        comm, on, [&] { return FixedPoint::columnsOf(rows, sums.size()); }, sums);
}

} // namespace DNDS
