#include "DNDS/Geom/Gmsh/GmshElements.hpp"

#include <iterator>

namespace DNDS::Geom::Detail {

namespace {

// Both number corners alike; nodes on edges and faces are ordered differently (Gmsh reference manual, "Node ordering";
// SIDS, section 3.3).
constexpr std::uint8_t tetra10[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 8};
constexpr std::uint8_t hexa27[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  11, 13, 9,  10, 12,
                                   14, 15, 16, 18, 19, 17, 20, 21, 23, 24, 22, 25, 26};
constexpr std::uint8_t penta18[] = {0, 1, 2, 3, 4, 5, 6, 9, 7, 8, 10, 11, 12, 14, 13, 15, 17, 16};
constexpr std::uint8_t pyra14[] = {0, 1, 2, 3, 4, 5, 8, 10, 6, 7, 9, 11, 12, 13};

// Indexed by Gmsh's number less 1: types 1 to 19.
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

// Null for types of third order and higher, too.
const GmshElement *gmshElement(long long number) noexcept {
    return number >= 1 && number <= static_cast<long long>(std::size(table)) ? &table[number - 1] : nullptr;
}

std::string gmshTypeText(long long number) {
    struct HigherOrder {
        int number;
        std::string_view shape;
        int order;
    };
    // Numbers of GmshDefines.h; types without nodes inside faces count by their order, too.
    static constexpr HigherOrder known[] = {
        {20, "triangles", 3},      {21, "triangles", 3},      {22, "triangles", 4},      {23, "triangles", 4},
        {24, "triangles", 5},      {25, "triangles", 5},      {26, "lines", 3},          {27, "lines", 4},
        {28, "lines", 5},          {29, "tetrahedra", 3},     {30, "tetrahedra", 4},     {31, "tetrahedra", 5},
        {36, "quadrilaterals", 3}, {37, "quadrilaterals", 4}, {38, "quadrilaterals", 5}, {39, "quadrilaterals", 3},
        {40, "quadrilaterals", 4}, {41, "quadrilaterals", 5}, {90, "prisms", 3},         {91, "prisms", 4},
        {92, "hexahedra", 3},      {93, "hexahedra", 4},      {118, "pyramids", 3},      {119, "pyramids", 4}};
    for (const HigherOrder &type : known)
        if (type.number == number)
            return std::to_string(number) + " (" + std::string(type.shape) + " of order " + std::to_string(type.order) +
                   ")";
    return std::to_string(number);
}

} // namespace DNDS::Geom::Detail
