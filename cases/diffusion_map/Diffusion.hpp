/// @file Diffusion.hpp
/// @brief Diffusion of a field over the sphere, with missing values as walls.
#pragma once

#include "Sphere.hpp"

#include "DNDS/Blocks/NdArray.hpp"

#include <utility>

namespace DiffusionMap {

using Field = DNDS::NdArray<real>;

/// A value in each cell of a map, cut over the ranks. NaN is a wall: nothing flows to or from it, and it stays. So are
/// ghosts beyond the map. Each cell sums its flows in one order, so that any number of ranks gives the same bits.
class Diffusion {
  public:
    /// `step` is diffusivity times time of one step on the unit sphere, up to `Sphere::longestStep` of all rows for
    /// values between those of their neighbours. Collective.
    Diffusion(DNDS::CommunicatorView comm, Sphere sphere, real step);

    const Sphere &sphere() const { return sphere_; }
    /// The values (latitude, longitude), at first all walls. Set the cells, not the ghosts.
    Field &field() { return fields_[current_]; }
    const Field &field() const { return fields_[current_]; }
    /// Explicit steps. In each, inner cells are computed during the exchange of ghosts. Collective.
    void advance(index steps);

    /// The sum of values times areas, the same bits on any number of ranks. Collective.
    real integral() const;
    /// The smallest and the largest value; NaN where all is walls. Collective.
    std::pair<real, real> range() const;

  private:
    void compute(const Field &from, Field &to, const DNDS::Box &cells) const;

    DNDS::CommunicatorView comm_;
    Sphere sphere_;
    real step_;
    Field fields_[2]{Field("field"), Field("next field")}; ///< alternately old and new
    int current_ = 0;
    DNDS::Box inner_;                ///< cells that read no ghosts
    std::vector<DNDS::Box> borders_; ///< the others
};

} // namespace DiffusionMap
