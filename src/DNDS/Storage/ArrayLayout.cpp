#include "DNDS/Storage/ArrayView.hpp"

#include "DNDS/Base/ContentHash.hpp"

#include <fmt/core.h>

namespace DNDS {

std::string ArrayShape::signature() const {
    return fmt::format("{}[{}]:{}:{}:{}:{}", elementKindName(kind), elementBytes, arrayLayoutName(layout), rowSize,
                       rowMax, align);
}

std::uint64_t ArrayShape::hash() const {
    ContentHash facts;
    facts.add(static_cast<std::uint64_t>(layout));
    facts.add(static_cast<std::uint64_t>(rowSize));
    facts.add(static_cast<std::uint64_t>(rowMax));
    facts.add(static_cast<std::uint64_t>(align));
    facts.add(elementBytes);
    facts.add(static_cast<std::uint64_t>(kind));
    return facts.value();
}

} // namespace DNDS
