/// @file AlgorithmHooks.hpp
/// @brief What a device back end has to define for Algorithms.hpp; sizes were checked and are not 0.
#pragma once

#include "DNDS/Device/Algorithms.hpp"

namespace DNDS::Device::Hooks {

real sum(StreamHandle stream, std::span<const real> x);
void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts);
void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values);
void multiply(StreamHandle stream, real alpha, const MatrixRows<const real> &a, const MatrixRows<const real> &b,
              real beta, const MatrixRows<real> &c);

} // namespace DNDS::Device::Hooks
