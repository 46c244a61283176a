/// @file MirroredElement.hpp
/// @brief Turns an element inside out by listing its nodes in another order.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"

#include <span>

namespace DNDS::Geom {

/// Lists the nodes of a two- or three-dimensional element, higher-order ones included, as those of its mirror image: a
/// left-handed one becomes right-handed, a clockwise one counter-clockwise. Polyhedra turn all their faces. `nodes` are
/// as in `ElementBlock`. Doing it twice changes nothing but the first corner of polygons' faces. Local.
void mirrorElement(ElementType type, std::span<index> nodes);

} // namespace DNDS::Geom
