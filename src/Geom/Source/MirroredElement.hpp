/// @file MirroredElement.hpp
/// @brief Mirrors an element by reordering its nodes.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"

#include <span>

namespace DNDS::Geom {

/// Reorders the nodes of a two- or three-dimensional element, higher-order ones included, to those of its mirror image:
/// a left-handed element becomes right-handed, a clockwise one counter-clockwise. All faces of polyhedra are reversed.
/// `nodes` as in `ElementBlock`. Mirroring twice restores the element. Local.
void mirrorElement(ElementType type, std::span<index> nodes);

} // namespace DNDS::Geom
