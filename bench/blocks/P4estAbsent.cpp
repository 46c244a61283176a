/// @file P4estAbsent.cpp
/// @brief Stands for p4est in builds without it.
#include "GhostMethod.hpp"

namespace DNDS::Bench {

std::unique_ptr<GhostMethod> makeP4est(const BlockCase &, const IndexVector &) { return nullptr; }

} // namespace DNDS::Bench
