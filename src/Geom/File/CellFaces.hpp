/// @file CellFaces.hpp
/// @brief Builds polyhedra from faces that name the cells on both sides.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <span>
#include <vector>

namespace DNDS::Geom {

/// Appends a face to the list of a Polyhedron: the number of its corners, then these, reversed if the face points
/// inward. Local.
void appendFace(std::vector<index> &to, std::span<const index> corners, bool inward);

/// Appends a face to the words for the rank of its cell: the cell, the face, then as above. Local.
void appendFaceOfCell(std::vector<index> &to, index cell, index face, std::span<const index> corners, bool inward);

/// The polyhedra `first` to `first + count` from such words: faces ascend, a cell without words has none. Local.
ElementBlock polyhedraOfFaces(std::span<const index> words, index first, index count);

} // namespace DNDS::Geom
