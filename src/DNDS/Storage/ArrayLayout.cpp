#include "DNDS/Storage/ArrayView.hpp"

#include "DNDS/Base/ContentHash.hpp"

#include <fmt/core.h>

namespace DNDS {

// Every fact that two ranks, or two arrays of one exchange, have to agree on; errors show it.
std::string ArrayShape::signature() const {
    return fmt::format("{}[{}]:{}:{}:{}:{}", elementKindName(kind), elementBytes, arrayLayoutName(layout), rowSize,
                       rowMax, align);
}

// The same facts in one word, which a reduction compares. 64 bits: different shapes collide in one of 2^64 cases.
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
