/// @file LocalYardsticks.cpp
/// @brief The cost of a pull without communication.
#include "AlignedVector.hpp"
#include "GatherRows.hpp"
#include "PullMethod.hpp"

namespace DNDS::Bench {

namespace {

class Floor final : public PullMethod {
  public:
    Floor(const PullPlan &plan, const double *father, int width)
        : PullMethod(FloorName), father_(father), rows_(plan.sentRows), width_(width), gather_(gatherFor(width)),
          buffer_(plan.sentRows.size() * static_cast<std::size_t>(width)) {}

    void pull() override { gather_(buffer_.data(), father_, rows_, width_); }
    std::span<double> son() override { return buffer_; }
    bool communicates() const override { return false; }

  private:
    const double *father_;
    std::span<const LocalIndex> rows_;
    int width_;
    GatherFunction gather_;
    AlignedVector<double> buffer_;
};

class Memcpy final : public PullMethod {
  public:
    explicit Memcpy(std::size_t doubles) : PullMethod(MemcpyName), from_(doubles, 1.0), to_(doubles) {}

    void pull() override { std::memcpy(to_.data(), from_.data(), from_.size() * sizeof(double)); }
    std::span<double> son() override { return to_; }
    bool communicates() const override { return false; }

  private:
    AlignedVector<double> from_;
    AlignedVector<double> to_;
};

} // namespace

std::unique_ptr<PullMethod> makeFloor(const PullPlan &plan, const double *father, int width) {
    return std::make_unique<Floor>(plan, father, width);
}

std::unique_ptr<PullMethod> makeMemcpy(const PullPlan &plan, int width) {
    return std::make_unique<Memcpy>(plan.sentRows.size() * static_cast<std::size_t>(width));
}

} // namespace DNDS::Bench
