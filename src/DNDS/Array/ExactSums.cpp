#include "DNDS/Array/ExactSums.hpp"

#include "DNDS/Device/Algorithms.hpp"

namespace DNDS {

namespace {

class RowsOnDevice final : public ExactRows {
  public:
    RowsOnDevice(Device::StreamHandle stream, std::span<const real> rows) : stream_(stream), rows_(rows) {}

    void findLargest(std::span<real> largest) const override { Device::largestOfColumns(stream_, rows_, largest); }
    void add(std::span<const std::optional<int>> shifts, std::span<FixedPoint::Wide> sums) const override {
        Device::integerSumsOfColumns(stream_, rows_, shifts, sums);
    }

  private:
    Device::StreamHandle stream_;
    std::span<const real> rows_;
};

} // namespace

void exactSums(CommunicatorView comm, const Executor &on, std::span<const real> rows, std::span<real> sums) {
    if (on.onDevice())
        exactSums(comm, RowsOnDevice(on.stream(), rows), sums);
    else
        exactSums(comm, rows, sums);
}

} // namespace DNDS
