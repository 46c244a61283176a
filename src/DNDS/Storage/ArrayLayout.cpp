#include "DNDS/Storage/ArrayLayout.hpp"

#include "DNDS/Storage/ContentHash.hpp"

#include <fmt/core.h>

namespace DNDS {

std::string ArrayShape::signature() const {
    return fmt::format("{}[{}]:{}:{}:{}:{}", elementKindName(kind), elementBytes, arrayLayoutName(layout), rowSize, rowMax,
                       align);
}

std::uint64_t ArrayShape::hash() const {
    ContentHash hash; // of numbers, not of the text: every start of an exchange asks
    for (const auto fact : {static_cast<index>(kind), static_cast<index>(elementBytes), static_cast<index>(layout),
                            index{rowSize}, index{rowMax}, index{align}})
        hash.add(static_cast<std::uint64_t>(fact));
    return hash.value();
}

} // namespace DNDS
