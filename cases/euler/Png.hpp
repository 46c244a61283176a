/// @file Png.hpp
/// @brief Pictures of up to 256 colours as PNG files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace Euler {

/// Red, green, blue.
using Color = std::array<std::uint8_t, 3>;

/// A raster of colours from a palette.
struct IndexedImage {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::vector<std::uint8_t> pixels; ///< [height x width] places in the palette; the top row first
    std::vector<Color> palette;       ///< at most 256
};

/// 256 colours: white, then the 255 of Matplotlib's map viridis from low (dark blue) to high (yellow). Local.
std::vector<Color> backgroundAndViridis();

/// The bytes of a PNG file (ISO/IEC 15948), compressed by zlib, with a description (ASCII) that viewers show. Local.
/// Throws ArgumentError for sizes that do not fit together, MemoryError where zlib has none.
std::string pngOf(const IndexedImage &image, const std::string &description);

} // namespace Euler
