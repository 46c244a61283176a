/// @file GhexAbsent.cpp
/// @brief Stands for GHEX in builds without it.
#include "PullMethod.hpp"

namespace DNDS::Bench {

std::unique_ptr<PullMethod> makeGhex(CommunicatorView, std::span<const index>, const PullPlan &, const double *, int) {
    return nullptr;
}

} // namespace DNDS::Bench
