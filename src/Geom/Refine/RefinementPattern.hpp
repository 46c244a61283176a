/// @file RefinementPattern.hpp
/// @brief Patterns by which elements are cut into smaller ones; not for users.
#pragma once

#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace DNDS::Geom {

/// The cells that one cell becomes, in its reference coordinates.
///
/// Child k of the first ones is the half-size copy of the parent at its corner k, with its nodes in the same order.
/// The middle follows: one triangle, four tetrahedra, two prisms, or a pyramid and four tetrahedra. The
/// octahedron in a tetrahedron is cut along the diagonal between the middles of edges 0-2 and 1-3. Children list their
/// nodes so that their own cut takes the corresponding diagonal: any number of levels makes at most three shapes of one
/// tetrahedron (Bey, Tetrahedral grid refinement, Computing 55, 1995).
struct RefinementPattern {
    /// A node of the children.
    struct Node {
        Point at{};        ///< in reference coordinates of the parent
        int old = -1;      ///< the parent's node there, or -1
        bool inner = true; ///< not on the parent's boundary
        /// On an edge or a face: its corners and their weights there, in sixteenths. They identify the place for all
        /// elements that have these corners, in any order of nodes.
        int corners = 0;
        std::array<std::uint8_t, 4> corner{};
        std::array<std::uint8_t, 4> weight{};
        std::vector<real> values; ///< [nodes of the parent] its shape functions
    };
    struct Child {
        ElementType type;
        std::vector<std::uint8_t> nodes; ///< into the list below
        Point centre{};                  ///< its middle, in reference coordinates of the parent
        std::array<Point, 3> axes{};     ///< from its reference coordinates, minus those of its middle, to the parent's
    };
    std::vector<Node> nodes;
    std::vector<Child> children;
};

/// The pattern of a type that has shape functions. Local; made once a type.
const RefinementPattern &refinementPattern(ElementType type);

} // namespace DNDS::Geom
