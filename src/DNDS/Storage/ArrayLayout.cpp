#include "DNDS/Storage/ArrayView.hpp"

#include <fmt/core.h>

namespace DNDS {

std::string ArrayShape::signature() const {
    return fmt::format("{}[{}]:{}:{}:{}:{}", elementKindName(kind), elementBytes, arrayLayoutName(layout), rowSize,
                       rowMax, align);
}

} // namespace DNDS
