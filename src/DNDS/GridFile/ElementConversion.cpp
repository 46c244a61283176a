#include "DNDS/GridFile/ElementConversion.hpp"

#include <algorithm>

namespace DNDS::Detail {

bool isFloating(ElementKind kind) noexcept { return kind == ElementKind::Float32 || kind == ElementKind::Float64; }

std::size_t bytesOf(ElementKind kind) {
    return withNumber(kind, [](auto number) { return sizeof(number); });
}

void swapBytes(std::span<std::byte> bytes, std::size_t elementBytes) {
    for (std::size_t at = 0; at + elementBytes <= bytes.size(); at += elementBytes)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + elementBytes));
}

} // namespace DNDS::Detail
