/// @file Sphere.hpp
/// @brief Cells and faces of a longitude-latitude grid on the unit sphere.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <vector>

namespace DiffusionMap {

using DNDS::index;
using DNDS::real;

/// The finite volumes around the points of a longitude-latitude grid. Faces lie half-way between points; the first and
/// the last circle of latitude reach to the pole if that is nearer than half a spacing, where their faces have no
/// length. All ranks know all of it: O(rows + columns) numbers.
class Sphere {
  public:
    Sphere() = default;
    /// Coordinates of the points in degrees; both may decrease. Longitudes whose ends are neighbours around the circle
    /// are periodic. @throws ArgumentError for fewer than 2 of either, coordinates that are not monotonous, latitudes
    /// beyond the poles, and longitudes of more than one circle. Local.
    Sphere(std::vector<real> latitudes, std::vector<real> longitudes);

    const std::vector<real> &latitudes() const { return latitudes_; }
    const std::vector<real> &longitudes() const { return longitudes_; }
    index rows() const { return static_cast<index>(latitudes_.size()); }
    index columns() const { return static_cast<index>(longitudes_.size()); }
    /// Whether the first column is beside the last.
    bool periodic() const { return periodic_; }

    /// The area of cell (row, column).
    real area(index row, index column) const { return at(heights_, row) * at(widths_, column); }
    /// Length over distance of the face between the columns `face - 1` and `face` in a row.
    real zonal(index row, index face) const { return at(slopes_, row) / at(gaps_, face); }
    /// The same of the face between the rows `face - 1` and `face` in a column; 0 at the ends.
    real meridional(index face, index column) const { return at(circles_, face) * at(widths_, column); }

    /// The longest explicit step (diffusivity times time) that keeps values of rows up to `latitude` degrees between
    /// those of their neighbours. @throws ArgumentError without such rows.
    real longestStep(real latitude) const;
    /// Lets circles of latitude exchange less along themselves where cells are too narrow for `step`: each by one
    /// factor, so that what leaves a cell still enters its neighbour. Returns how many it changed.
    index limitZonal(real step);

  private:
    static real at(const std::vector<real> &list, index i) { return list[static_cast<std::size_t>(i)]; }
    real across(index row, index column) const;
    real along(index row, index column) const;

    std::vector<real> latitudes_;
    std::vector<real> longitudes_;
    bool periodic_ = false;
    std::vector<real> heights_; ///< by row: difference of the sines of latitude
    std::vector<real> widths_;  ///< by column: radians of longitude
    std::vector<real> slopes_;  ///< by row: radians of latitude over the mean cosine, times the limit's factor
    std::vector<real> gaps_;    ///< between columns: radians of longitude; [columns + 1]
    std::vector<real> circles_; ///< between rows: cosine over radians of latitude; [rows + 1]
};

} // namespace DiffusionMap
