/// @file Integers.hpp
/// @brief Lists of integers of any type from Python.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <vector>

namespace DNDS::Python {

/// A list of integers as 64-bit numbers: without copying if it already is one, else a copy.
class Integers {
  public:
    /// Throws ArgumentError, naming `what`, for anything but a list of integers.
    Integers(nanobind::handle values, const char *what);
    std::span<const index> span() const { return {list_.data(), list_.size()}; }

  private:
    nanobind::ndarray<const index, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu> list_;
};

/// A copy of such a list; empty for None. Throws as `Integers` does.
std::vector<index> integersOrNone(nanobind::handle values, const char *what);

} // namespace DNDS::Python
