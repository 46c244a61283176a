#include "DNDS/Array/DofKernels.hpp"

#include "DNDS/Device/Algorithms.hpp"

namespace DNDS {

namespace {

/// Computes this rank's part by kernels; only results of a few numbers come to the host. `columns_` is called in each
/// phase, inside the agreement on failures.
class ColumnsOnDevice final : public ExactRows {
  public:
    ColumnsOnDevice(Device::StreamHandle stream, const ExactColumns &columns) : stream_(stream), columns_(columns) {}

    void findLargest(std::span<real> largest) const override { Device::largestOfColumns(stream_, columns_(), largest); }
    void add(std::span<const std::optional<FixedPoint::Scale>> scales,
             std::span<FixedPoint::Wide> sums) const override {
        Device::integerSumsOfColumns(stream_, columns_(), scales, sums);
    }

  private:
    Device::StreamHandle stream_;
    const ExactColumns &columns_;
};

} // namespace

void exactSums(CommunicatorView comm, const Executor &on, const ExactColumns &columns, std::span<real> sums) {
    // The algorithm is the same on host and device; only the place of the local sums differs.
    if (on.onDevice())
        exactSums(comm, ColumnsOnDevice(on.stream(), columns), sums);
    else
        exactSums(comm, columns, sums);
}

// Within running calls: reductions by links, which a failure can interrupt, instead of MPI's.
void exactSums(MessageReduction &messages, const Executor &on, const ExactColumns &columns, std::span<real> sums) {
    if (on.onDevice())
        exactSums(messages, ColumnsOnDevice(on.stream(), columns), sums);
    else
        exactSums(messages, columns, sums);
}

void exactSums(CommunicatorView comm, const Executor &on, std::span<const real> rows, std::span<real> sums) {
    exactSums(
        comm, on, [&] { return FixedPoint::columnsOf(rows, sums.size()); }, sums);
}

} // namespace DNDS
