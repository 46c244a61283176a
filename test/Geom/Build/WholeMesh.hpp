/// @file WholeMesh.hpp
/// @brief Small meshes that every rank makes whole, to be handed out in blocks and to be compared with.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <functional>
#include <vector>

namespace DNDS::test {

/// Cell types of a box. In two dimensions it lies in the plane z = 0.
enum class BoxCells { Hexahedra, Hexahedra27, Tetrahedra, Mixed, Polyhedra, Quadrilaterals, Triangles, Polygons };

struct BoxOptions {
    BoxCells cells = BoxCells::Hexahedra;
    std::array<index, 3> counts{3, 3, 3};
    std::array<bool, 3> periodic{};
    bool jitter = true;   ///< move nodes at random, alike at both sides of a periodic direction
    bool shuffle = true;  ///< number nodes and cells at random
    bool turnSome = true; ///< every third cell is inside out
    bool marks = true;    ///< sides are patches "x0", "x1", "y0", ... unless they are periodic
};

struct WholeMesh {
    struct Element {
        Geom::ElementType type;
        std::vector<index> nodes;
        index fileId = 0;
    };
    int dimension = 3;
    std::vector<std::array<real, 3>> points;
    std::vector<Element> cells;
    std::vector<Element> faces;
    std::vector<int> faceMarks;
    std::vector<Geom::SourceMesh::NodeMark> nodeMarks;
    std::vector<Geom::BoundaryPatch> patches;
    std::vector<Geom::PeriodicConnection> periodic;

    /// This rank's blocks; with `uneven` some ranks have none.
    Geom::SourceMesh slice(CommunicatorView comm, bool uneven = false) const;
    /// The distinct nodes of each face of a cell, from the tables of the standard.
    std::vector<std::vector<index>> facesOf(std::size_t cell) const;
    std::vector<index> nodesOf(std::size_t cell) const; ///< distinct
    std::vector<index> cornersOf(std::size_t cell) const;
};

/// [0, counts[0]] x [0, counts[1]] x ..., the same on all ranks.
WholeMesh makeBox(const BoxOptions &options);

/// One polyhedron: the cube [-2, 2]^3 around a square in the plane z = 0, both of whose sides are faces of the cube.
WholeMesh makeCubeWithSlit();

} // namespace DNDS::test
