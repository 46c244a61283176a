/// @file WrittenElements.hpp
/// @brief The element sections of a mesh in a CGNS file. Part of CgnsWriter.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <span>
#include <string>
#include <vector>

namespace DNDS::Geom::Detail {

/// A section of elements: of one type, MIXED, NGON_n or NFACE_n.
/// Sections of a file follow each other: the first element of one has the number after the last of the one before.
struct WrittenSection {
    std::string name;
    ElementType type = ElementType::Mixed;
    index elements = 0; ///< number of elements of all ranks
    /// This rank's part: nodes from 1, preceded by the type of each element in MIXED; for NFACE_n signed faces.
    std::vector<index> connectivity;
    std::vector<index> starts{0}; ///< [own + 1]
};

struct WrittenElements {
    std::vector<WrittenSection> sections;
    std::vector<index> faceElements; ///< [own listed faces]: the file's number of the element
};

/// Cells, then the listed faces without duplicates; of polyhedra all faces, then cells. Collective. Throws on all
/// ranks: DataError for meshes of polyhedra if a face has more than two cells or a listed face belongs to no cell,
/// ArgumentError for polyhedra that are not lists of faces.
WrittenElements elementsToWrite(CommunicatorContext &context, const SourceMesh &mesh);

} // namespace DNDS::Geom::Detail
