#include "AnyPair.hpp"

namespace DNDS::Python {

std::unique_ptr<AnyPair> makePair(const std::string &name, CommunicatorView comm, ElementKind kind, RowKind rows,
                                  rowsize width) {
    return withType(kind, rows, [&](auto element, auto rowKind) -> std::unique_ptr<AnyPair> {
        using Array = ArrayOf<decltype(element), rowKind.value>;
        if constexpr (rowKind.value == RowKind::Fixed && std::is_same_v<decltype(element), real>)
            return std::make_unique<AnyPairOf<Dof>>(name, comm, width, 1);
        else
            return std::make_unique<AnyPairOf<ArrayPair<Array>>>(name, comm);
    });
}

} // namespace DNDS::Python
