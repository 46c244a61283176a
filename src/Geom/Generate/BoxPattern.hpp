/// @file BoxPattern.hpp
/// @brief The subdivision of a box into cells: every cell, boundary face and node is computed from its number, without
/// a table. Part of BoxMesh.
#pragma once

#include "DNDS/Geom/Generate/BoxMesh.hpp"

#include <array>
#include <memory>
#include <vector>

namespace DNDS::Geom::Detail {

/// A cell or a face of a pattern; `nodes` is reused for the next one.
struct BoxElement {
    ElementType type = ElementType::Node;
    int side = -1;            ///< faces: 0 to 5 for x-, x+, y-, y+, z-, z+
    std::vector<index> nodes; ///< in the natural numbering, as `ElementBlock` lists them
};

/// The cells of a box in their natural numbering. All functions are Local and O(1).
class BoxPattern {
  public:
    virtual ~BoxPattern() = default;

    virtual int dimension() const = 0;
    virtual index nodeCount() const = 0;
    virtual index cellCount() const = 0;
    virtual index faceCount() const = 0;
    virtual std::array<real, 3> position(index node) const = 0;
    virtual void cell(index number, BoxElement &result) const = 0;
    virtual void face(index number, BoxElement &result) const = 0;
};

/// A uniform number in [-1, 1) that depends only on its arguments.
real randomSigned(std::uint64_t seed, std::uint64_t number);

/// Bricks divided into cells of fixed types.
std::unique_ptr<BoxPattern> makeBrickPattern(const BoxMeshOptions &options);
/// The same with mid-nodes: BAR_3, TRI_6, QUAD_9, TETRA_10, PENTA_18 and HEXA_27.
std::unique_ptr<BoxPattern> makeSecondOrderPattern(const BoxMeshOptions &options);
/// Hexagonal columns cut in z.
std::unique_ptr<BoxPattern> makeColumnPattern(const BoxMeshOptions &options);
/// A rectangle of triangles or quadrilaterals, without what lies below `BoxMeshOptions::step`.
std::unique_ptr<BoxPattern> cutStep(std::unique_ptr<BoxPattern> whole, const BoxMeshOptions &options);

} // namespace DNDS::Geom::Detail
