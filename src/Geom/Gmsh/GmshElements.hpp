/// @file GmshElements.hpp
/// @brief Gmsh's element types and its order of nodes. Part of GmshReader.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"

#include <cstdint>
#include <span>

namespace DNDS::Geom::Detail {

struct GmshElement {
    ElementType type;
    /// Node `k` of the CGNS standard is Gmsh's node `order[k]`; empty where both agree.
    std::span<const std::uint8_t> order;
};

/// The element type for a Gmsh number; null unless linear or second-order. Local, O(1).
const GmshElement *gmshElement(long long number) noexcept;

} // namespace DNDS::Geom::Detail
