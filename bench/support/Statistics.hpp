/// @file Statistics.hpp
/// @brief The few statistics that benchmarks report.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace DNDS::Bench {

/// Stands for "not measured"; written as null to JSON and as a dash to tables.
inline constexpr double NotMeasured = std::numeric_limits<double>::quiet_NaN();

/// The median, or NotMeasured for no values. Local, O(n).
inline double median(std::vector<double> values) {
    if (values.empty())
        return NotMeasured;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1)
        return *middle;
    return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

/// The value that a share of `sorted` (0: the least, 1: the greatest) does not exceed, or NotMeasured for no values.
/// Local, O(1).
inline double quantile(const std::vector<double> &sorted, double share) {
    if (sorted.empty())
        return NotMeasured;
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

} // namespace DNDS::Bench
