#include "DNDS/Base/ExactAccumulator.hpp"

namespace DNDS {

std::string_view elementKindName(ElementKind kind) {
    static constexpr std::array<std::string_view, elementKinds> names{"opaque", "int8",    "uint8",   "int16",
                                                                      "uint16", "int32",   "uint32",  "int64",
                                                                      "uint64", "float32", "float64", "accumulator"};
    return names.at(static_cast<std::size_t>(kind));
}

} // namespace DNDS
