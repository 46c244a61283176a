/// @file GatherRows.hpp
/// @brief Copies chosen rows into a contiguous buffer, with the width known to the compiler for the usual ones.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cstddef>
#include <cstring>
#include <span>

namespace DNDS::Bench {

template <int Width>
void gatherFixed(double *__restrict to, const double *__restrict from, std::span<const LocalIndex> rows) {
    for (const LocalIndex row : rows) {
        const double *source = from + static_cast<std::ptrdiff_t>(row) * Width;
        for (int i = 0; i < Width; ++i)
            to[i] = source[i];
        to += Width;
    }
}

using GatherFunction = void (*)(double *to, const double *from, std::span<const LocalIndex> rows, int width);

/// The loop for a width; other widths than 1, 5, 20 and 100 use memcpy row by row.
inline GatherFunction gatherFor(int width) {
    switch (width) {
    case 1:
        return [](double *to, const double *from, std::span<const LocalIndex> rows, int) {
            gatherFixed<1>(to, from, rows);
        };
    case 5:
        return [](double *to, const double *from, std::span<const LocalIndex> rows, int) {
            gatherFixed<5>(to, from, rows);
        };
    case 20:
        return [](double *to, const double *from, std::span<const LocalIndex> rows, int) {
            gatherFixed<20>(to, from, rows);
        };
    case 100:
        return [](double *to, const double *from, std::span<const LocalIndex> rows, int) {
            gatherFixed<100>(to, from, rows);
        };
    default:
        return [](double *to, const double *from, std::span<const LocalIndex> rows, int anyWidth) {
            const auto bytes = static_cast<std::size_t>(anyWidth) * sizeof(double);
            for (const LocalIndex row : rows) {
                std::memcpy(to, from + static_cast<std::ptrdiff_t>(row) * anyWidth, bytes);
                to += anyWidth;
            }
        };
    }
}

} // namespace DNDS::Bench
