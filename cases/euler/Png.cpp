#include "Png.hpp"

#include "DNDS/Base/Error.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace Euler {

namespace {

/// Viridis at tenths of its length.
constexpr std::array<Color, 11> viridisTenths{{{68, 1, 84},
                                               {72, 36, 117},
                                               {65, 68, 135},
                                               {53, 95, 141},
                                               {42, 120, 142},
                                               {33, 145, 140},
                                               {34, 168, 132},
                                               {68, 191, 112},
                                               {122, 209, 81},
                                               {189, 223, 38},
                                               {253, 231, 37}}};

std::string bigEndian(std::uint32_t number) {
    std::string bytes;
    for (const unsigned shift : {24U, 16U, 8U, 0U})
        bytes += static_cast<char>(number >> shift & 0xFFU);
    return bytes;
}

const Bytef *bytesOf(std::string_view text) { return reinterpret_cast<const Bytef *>(text.data()); }

/// Length, type, content, and the checksum of the last two.
std::string chunk(std::string_view type, std::string_view content) {
    std::string body(type);
    body += content;
    const auto sum = crc32(0, bytesOf(body), static_cast<uInt>(body.size()));
    return bigEndian(static_cast<std::uint32_t>(content.size())) + body + bigEndian(static_cast<std::uint32_t>(sum));
}

std::string compressed(const std::string &bytes) {
    uLongf size = compressBound(static_cast<uLong>(bytes.size()));
    std::string packed(size, '\0');
    const int status = compress2(reinterpret_cast<Bytef *>(packed.data()), &size, bytesOf(bytes),
                                 static_cast<uLong>(bytes.size()), Z_DEFAULT_COMPRESSION);
    DNDS_CHECK(status == Z_OK, DNDS::MemoryError, "zlib cannot compress {} bytes: status {}", bytes.size(), status);
    packed.resize(size);
    return packed;
}

} // namespace

std::vector<Color> backgroundAndViridis() {
    std::vector<Color> colors{{255, 255, 255}};
    for (int k = 0; k < 255; k++) {
        const double place = k / 254.0 * 10;
        const auto tenth = std::min<std::size_t>(9, static_cast<std::size_t>(place));
        Color color{};
        for (std::size_t c = 0; c < 3; c++)
            color[c] = static_cast<std::uint8_t>(std::lround(
                std::lerp(viridisTenths[tenth][c], viridisTenths[tenth + 1][c], place - static_cast<double>(tenth))));
        colors.push_back(color);
    }
    return colors;
}

std::string pngOf(const IndexedImage &image, const std::string &description) {
    DNDS_CHECK(image.width > 0 && image.height > 0 && image.palette.size() <= 256 &&
                   image.pixels.size() == std::size_t{image.width} * image.height,
               DNDS::ArgumentError, "a picture of {} x {} pixels and {} colours has {} pixels", image.width,
               image.height, image.palette.size(), image.pixels.size());
    std::string colors;
    for (const Color &color : image.palette)
        colors.append(color.begin(), color.end());
    std::string rows; // each after the number of its filter: none
    for (std::uint32_t row = 0; row < image.height; row++) {
        const auto begin = image.pixels.begin() + static_cast<std::ptrdiff_t>(std::size_t{row} * image.width);
        rows += '\0';
        rows.append(begin, begin + image.width);
    }
    using namespace std::string_literals;
    return "\x89PNG\r\n\x1a\n"s + // then 8 bits a pixel, from a palette, not interlaced
           chunk("IHDR", bigEndian(image.width) + bigEndian(image.height) + "\x08\x03\0\0\0"s) + chunk("PLTE", colors) +
           chunk("tEXt", "Description\0"s + description) + chunk("IDAT", compressed(rows)) + chunk("IEND", "");
}

} // namespace Euler
