/// @file Wave.hpp
/// @brief A temperature with known exact evolution under the discrete equation.
#pragma once

#include "Solver.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace Heat {

/// One period of a cosine in each direction, shifted so that it vanishes on no line of cells: for the cells `core` (z,
/// y, x) of a box of `cells`. Local.
inline std::vector<real> wave(const Triple &cells, const DNDS::Box &core) {
    std::vector<real> values;
    values.reserve(static_cast<std::size_t>(core.size()));
    DNDS::forEachCell(core, [&](const DNDS::IndexVector &cell) {
        real value = 1;
        for (std::size_t d = 0; d < 3; ++d)
            value *=
                std::cos(2 * std::numbers::pi * static_cast<real>(cell[2 - d]) / static_cast<real>(cells[d]) + 0.3);
        values.push_back(value);
    });
    return values;
}

/// The factor by which each explicit step multiplies `wave`: it is an eigenvector of the seven-point stencil, whose
/// eigenvalue is minus 4 sin^2(pi / n) for each direction of n cells.
inline real decay(const Triple &cells, real number) {
    real eigenvalue = 0;
    for (const index n : cells) {
        const real half = std::sin(std::numbers::pi / static_cast<real>(n));
        eigenvalue -= 4 * half * half;
    }
    return 1 + number * eigenvalue;
}

/// The same for steps that are implicit in one direction after the other.
inline real decayByLines(const Triple &cells, real number) {
    real factor = 1;
    for (const index n : cells) {
        const real half = std::sin(std::numbers::pi / static_cast<real>(n));
        factor /= 1 + 4 * number * half * half;
    }
    return factor;
}

} // namespace Heat
