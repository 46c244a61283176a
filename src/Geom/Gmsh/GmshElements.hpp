/// @file GmshElements.hpp
/// @brief Gmsh's element types and its order of nodes. Part of GmshReader.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace DNDS::Geom::Detail {

/// A type of Gmsh, translated.
struct GmshElement {
    ElementType type;
    /// Node `k` of the CGNS standard is Gmsh's node `order[k]`; empty if both agree.
    std::span<const std::uint8_t> order;
};

/// The element type for a Gmsh number; null unless linear or second-order. Local, O(1).
const GmshElement *gmshElement(long long number) noexcept;

/// A Gmsh number with its meaning, if that is of higher order: "21 (triangles of order 3)". Local.
std::string gmshTypeText(long long number);

/// The reason why a type is refused, and advice.
inline constexpr std::string_view onlySecondOrder =
    "only linear and second-order types are; save the mesh with Mesh.ElementOrder = 1 or 2";

} // namespace DNDS::Geom::Detail
