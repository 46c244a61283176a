/// @file RawMpi.hpp
/// @brief Ghost pulls by hand: the best that portable persistent MPI gives without a library.
#pragma once

#include "AlignedVector.hpp"
#include "GatherRows.hpp"
#include "PullMethod.hpp"

#include <vector>

namespace DNDS::Bench {

class RawMpi final : public PullMethod {
  public:
    /// Local: no messages yet. `plan` and `father` must outlive the object; `comm` carries nothing else meanwhile.
    RawMpi(CommunicatorView comm, const PullPlan &plan, const double *father, int width);
    ~RawMpi() override;

    void pull() override;
    std::span<double> son() override { return son_; }

  private:
    std::span<const LocalIndex> rows_;
    std::span<const PeerRange> readers_;
    const double *father_;
    int width_;
    GatherFunction gather_;
    AlignedVector<double> packed_;
    AlignedVector<double> son_;
    std::vector<MPI_Request> requests_; ///< receives first, then sends in the order of `readers_`
    int receives_ = 0;
};

} // namespace DNDS::Bench
