/// @file SourceMesh.hpp
/// @brief A mesh from a file or a generator, before it is partitioned: every rank holds a block of each list.
///
/// This is the interface between readers or generators and the pipeline that partitions meshes and builds connectivity.
/// Readers convert every format to it; the pipeline knows no zones, sections or files.
///
/// - `RigidMotion`, `MeshImage`: the images of a mesh that periodic connections make
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace DNDS::Geom {

/// Elements distributed over ranks in contiguous ranges: local element `i` is number `first + i` of all.
///
/// Nodes of a fixed type are listed in the order of the CGNS standard, global, from 0. A Polygon lists its corners
/// around the face. A Polyhedron lists, for each of its faces, the number of corners and then the corners,
/// counter-clockwise seen from outside: `{4, a, b, c, d, 3, a, b, e, ...}`.
/// CSR: a rank's part of the list in the file, split evenly by element numbers or by whatever is cheap to read. Ranks
/// hold consecutive ranges in rank order.
struct ElementBlock {
    /// Elements of all ranks; the same on all.
    index globalSize = 0;
    /// Number of this rank's first element: the sum of the sizes on lower ranks.
    index first = 0;
    std::vector<ElementType> types; ///< [own]
    std::vector<index> starts{0};   ///< [own + 1], into `nodes`
    /// Encoded as above, one row an element.
    std::vector<index> nodes;
    std::vector<index> fileIds; ///< [own]: the element's number in the file, from 1 in its zone

    /// The elements of this rank, and the nodes of one of them. Local.
    index size() const noexcept { return static_cast<index>(types.size()); }
    std::span<const index> nodesOf(index element) const {
        const auto e = static_cast<std::size_t>(element);
        return std::span<const index>(nodes).subspan(static_cast<std::size_t>(starts[e]),
                                                     static_cast<std::size_t>(starts[e + 1] - starts[e]));
    }
};

/// A named part of the boundary. All ranks have the same list.
struct BoundaryPatch {
    std::string name;
    std::string kind;   ///< the file's boundary condition type: "BCWall"; "" if none
    std::string family; ///< "" if none
};

/// Maps the first side of a periodic connection to the second: rotate about `centre` by the angles (about x, then y,
/// then z; radians), then move by `translation`.
struct PeriodicTransform {
    std::array<real, 3> centre{};
    std::array<real, 3> angles{};
    std::array<real, 3> translation{};
};

/// Two parts of the boundary that coincide. All ranks have the same list; the faces are distributed.
struct PeriodicConnection {
    std::string name;
    PeriodicTransform transform; ///< from the faces of `first` to those of `second`
};

/// One rank's blocks. Any of them may be empty.
/// Nothing is renumbered here: numbers are those of the file, from 0, zones one after the other. buildMesh consumes
/// it.
struct SourceMesh {
    std::string origin;        ///< the file's path, or the generator: for messages
    int cellDimension = 0;     ///< 2 or 3
    int physicalDimension = 0; ///< 2 or 3; if 2, a third coordinate of 0 is stored

    /// Nodes of all ranks; this rank has [firstNode, firstNode + nodes()).
    index globalNodes = 0;
    index firstNode = 0;
    std::vector<std::array<real, 3>> coordinates; ///< [own nodes]

    /// Elements of dimension `cellDimension`, in the order of the file (zone by zone).
    ElementBlock cells;

    /// Elements of one dimension less that belong to a boundary patch or a periodic side, in file order. A face may be
    /// listed several times with different marks.
    ElementBlock faces;
    /// [own faces]: the number of a patch in `patches` or, for side `s` (0 or 1) of connection `c`, `-1 - (2 * c + s)`.
    std::vector<int> faceMarks;

    /// Patches given by nodes: a boundary face belongs to one if all of its corners do. Pairs {mark as above, node}, on
    /// any rank.
    struct NodeMark {
        int mark;
        index node;
    };
    std::vector<NodeMark> nodeMarks;

    /// Indexed by marks >= 0.
    std::vector<BoundaryPatch> patches;
    /// Indexed by c in marks -1 - (2 * c + s).
    std::vector<PeriodicConnection> periodic;
    std::vector<std::string> warnings; ///< the same on all ranks
    std::vector<std::string> notes;    ///< harmless omissions; the same on all ranks

    /// The nodes of this rank. Local.
    index nodes() const noexcept { return static_cast<index>(coordinates.size()); }
};

/// x -> matrix x + shift, the matrix a rotation, its rows one after the other.
/// Motions form a group: images of images are products, and the motion back is the transpose.
struct RigidMotion {
    std::array<real, 9> matrix{1, 0, 0, 0, 1, 0, 0, 0, 1};
    Point shift{};

    /// The image of the point: matrix x + shift.
    Point operator()(const Point &x) const;
    /// Rotates a vector, such as a velocity.
    Point rotate(const Point &v) const;
    /// The motion back; and the motion that is `before` first, then `after`.
    RigidMotion inverse() const;
    friend RigidMotion operator*(const RigidMotion &after, const RigidMotion &before);
};

/// The motion from the first side of a connection to the second. Local.
RigidMotion motionOf(const PeriodicTransform &transform);

/// The angles about x, then y, then z of a rotation matrix; accurate to the last digits even if the second is near a
/// right angle, where the others are not determined one by one. Local.
std::array<real, 3> anglesOf(const std::array<real, 9> &matrix);

/// From the second side to the first. Local.
PeriodicTransform inverseOf(const PeriodicTransform &transform);

/// An image of the mesh: the mesh moved by `motion`, the product of its steps.
struct MeshImage {
    struct Steps {
        int connection; ///< index in SourceMesh::periodic; the first connection with the same motion
        int times;      ///< number of times that its motion is applied; negative: the inverse
        friend auto operator<=>(const Steps &, const Steps &) = default; // NOLINT(modernize-use-nullptr): false alarm
    };
    std::vector<Steps> steps; ///< ascending connections, none 0 times; empty: the mesh itself
    RigidMotion motion;
};

} // namespace DNDS::Geom
