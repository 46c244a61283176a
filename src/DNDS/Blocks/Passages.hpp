/// @file Passages.hpp
/// @brief The passages between the index spaces of a BlockGrid.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"

namespace DNDS {

/// A passage out of an index space: the cells beyond one of its faces are cells of another space. A periodic dimension
/// is two passages into the space itself, a connection one passage out of each side.
struct BlockGrid::Passage {
    int axis = 0;           ///< the dimension normal to the face
    bool upper = false;     ///< beyond the upper end of `axis`
    Box face;               ///< the first layer of cells beyond the face
    Box beyond;             ///< all cells beyond it, also beside the space if the face reaches its edges
    int other = 0;          ///< the index space that it leads to
    IndexTransform toOther; ///< maps cells

    /// The points on the face, which both spaces have: none if points are middles of cells along `axis`.
    Box pointsOfFace(const Centring &centring) const noexcept;
    /// All points beyond the face.
    Box pointsBeyond(const Centring &centring) const noexcept;
};

} // namespace DNDS
