/// @file GmshFile.hpp
/// @brief For tests only: writes meshes in Gmsh's formats, as its manual describes them.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace DNDS::Geom::test {

struct GmshFileOptions {
    int version = 22; ///< times 10: 22, 40 or 41
    bool binary = false;
    bool swapped = false;
    index nodeBlock = 7; ///< nodes in a block of version 4; two of three blocks have parameters
    std::function<index(index)> tagOf = [](index node) { return node + 1; };
    const char *newline = "\n";
};

/// A whole mesh with its patches as physical groups 10, 20, ...; face `f` lies on entity mark + 1, cells on entity 1.
/// Elements of type Gmsh's number k are written with the nodes as they are.
std::string gmshFile(const SourceMesh &mesh, const GmshFileOptions &options);

/// Gmsh's number of an element type.
int gmshTypeOf(ElementType type);

} // namespace DNDS::Geom::test
