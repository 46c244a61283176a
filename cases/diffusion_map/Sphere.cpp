#include "Sphere.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

namespace DiffusionMap {

namespace {

constexpr real degree = std::numbers::pi / 180;

void requireMonotonous(const std::vector<real> &list, const std::string &what) {
    DNDS_CHECK(list.size() >= 2, DNDS::ArgumentError, "{} {} are no grid: there must be two at least", list.size(),
               what);
    const real sign = list[1] > list[0] ? 1 : -1;
    for (std::size_t k = 1; k < list.size(); ++k)
        DNDS_CHECK(sign * (list[k] - list[k - 1]) > 0, DNDS::ArgumentError,
                   "{} neither grow nor fall throughout: {} is followed by {}", what, list[k - 1], list[k]);
}

} // namespace

Sphere::Sphere(std::vector<real> latitudes, std::vector<real> longitudes)
    : latitudes_(std::move(latitudes)), longitudes_(std::move(longitudes)) {
    requireMonotonous(latitudes_, "latitudes");
    requireMonotonous(longitudes_, "longitudes");
    const auto [south, north] = std::minmax(latitudes_.front(), latitudes_.back());
    DNDS_CHECK(south >= -90 && north <= 90, DNDS::ArgumentError, "latitudes from {} to {} lie beyond the poles", south,
               north);
    // Faces of circles, in degrees: half-way between points, and as far beyond the ends as before them, or to the pole.
    std::vector<real> faces(latitudes_.size() + 1);
    for (std::size_t i = 1; i < latitudes_.size(); ++i)
        faces[i] = (latitudes_[i - 1] + latitudes_[i]) / 2;
    faces.front() = std::clamp<real>(2 * latitudes_.front() - faces[1], -90, 90);
    faces.back() = std::clamp<real>(2 * latitudes_.back() - faces[faces.size() - 2], -90, 90);
    circles_.assign(faces.size(), 0);
    for (std::size_t i = 0; i < latitudes_.size(); ++i) {
        const real height = std::abs(std::sin(faces[i + 1] * degree) - std::sin(faces[i] * degree));
        const real span = std::abs(faces[i + 1] - faces[i]) * degree;
        heights_.push_back(height);
        slopes_.push_back(span * span / height);
        if (i > 0)
            circles_[i] = std::cos(faces[i] * degree) / (std::abs(latitudes_[i] - latitudes_[i - 1]) * degree);
    }

    const real span = std::abs(longitudes_.back() - longitudes_.front());
    const real rest = 360 - span;
    const real spacing = span / static_cast<real>(columns() - 1);
    DNDS_CHECK(rest > 0.01 * spacing, DNDS::ArgumentError, "longitudes from {} to {} are more than one circle",
               longitudes_.front(), longitudes_.back());
    periodic_ = rest < 1.5 * spacing;
    gaps_.assign(longitudes_.size() + 1, (periodic_ ? rest : spacing) * degree);
    for (std::size_t j = 1; j < longitudes_.size(); ++j)
        gaps_[j] = std::abs(longitudes_[j] - longitudes_[j - 1]) * degree;
    for (std::size_t j = 0; j < longitudes_.size(); ++j)
        widths_.push_back((gaps_[j] + gaps_[j + 1]) / 2);
}

/// Exchange of a cell with its neighbours on other circles, and on its own, a unit of time, as a share of its area.
real Sphere::across(index row, index column) const {
    return (meridional(row, column) + meridional(row + 1, column)) / area(row, column);
}
real Sphere::along(index row, index column) const {
    return (zonal(row, column) + zonal(row, column + 1)) / area(row, column);
}

real Sphere::longestStep(real latitude) const {
    real fastest = 0;
    for (index row = 0; row < rows(); ++row)
        for (index column = 0; column < columns() && std::abs(at(latitudes_, row)) <= latitude; ++column)
            fastest = std::max(fastest, across(row, column) + along(row, column));
    DNDS_CHECK(fastest > 0, DNDS::ArgumentError, "no circle of latitude lies within {} degrees", latitude);
    return 1 / fastest;
}

index Sphere::limitZonal(real step) {
    index limited = 0;
    for (index row = 0; row < rows(); ++row) {
        real factor = 1;
        for (index column = 0; column < columns(); ++column)
            factor = std::min(factor, std::max<real>(0, 1 / step - across(row, column)) / along(row, column));
        if (factor < 1) {
            slopes_[static_cast<std::size_t>(row)] *= factor;
            ++limited;
        }
    }
    return limited;
}

} // namespace DiffusionMap
