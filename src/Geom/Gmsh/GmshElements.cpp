#include "DNDS/Geom/Gmsh/GmshElements.hpp"

#include <iterator>

namespace DNDS::Geom::Detail {

namespace {

// Both number corners alike; nodes on edges and faces are ordered differently.
constexpr std::uint8_t tetra10[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 8};
constexpr std::uint8_t hexa27[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  11, 13, 9,  10, 12,
                                   14, 15, 16, 18, 19, 17, 20, 21, 23, 24, 22, 25, 26};
constexpr std::uint8_t penta18[] = {0, 1, 2, 3, 4, 5, 6, 9, 7, 8, 10, 11, 12, 14, 13, 15, 17, 16};
constexpr std::uint8_t pyra14[] = {0, 1, 2, 3, 4, 5, 8, 10, 6, 7, 9, 11, 12, 13};

const GmshElement table[] = {{ElementType::Bar2, {}},
                             {ElementType::Tri3, {}},
                             {ElementType::Quad4, {}},
                             {ElementType::Tetra4, {}},
                             {ElementType::Hexa8, {}},
                             {ElementType::Penta6, {}},
                             {ElementType::Pyra5, {}},
                             {ElementType::Bar3, {}},
                             {ElementType::Tri6, {}},
                             {ElementType::Quad9, {}},
                             {ElementType::Tetra10, tetra10},
                             {ElementType::Hexa27, hexa27},
                             {ElementType::Penta18, penta18},
                             {ElementType::Pyra14, pyra14},
                             {ElementType::Node, {}},
                             {ElementType::Quad8, {}},
                             {ElementType::Hexa20, std::span(hexa27).first(20)},
                             {ElementType::Penta15, std::span(penta18).first(15)},
                             {ElementType::Pyra13, std::span(pyra14).first(13)}};

} // namespace

const GmshElement *gmshElement(long long number) noexcept {
    return number >= 1 && number <= static_cast<long long>(std::size(table)) ? &table[number - 1] : nullptr;
}

} // namespace DNDS::Geom::Detail
