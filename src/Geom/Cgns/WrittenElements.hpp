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
struct WrittenSection {
    std::string name;
    ElementType type = ElementType::Mixed;
    index elements = 0; ///< number of elements of all ranks
    std::vector<index> connectivity;
    std::vector<index> starts{0}; ///< [own + 1]
};

struct WrittenElements {
    std::vector<WrittenSection> sections;
    std::vector<index> faceElements; ///< [own listed faces]: the file's number of the element
};

/// Cells, then the listed faces without duplicates; of polyhedra all faces, then cells. Collective. Throws as
/// `numberFaces`, ArgumentError for polyhedra that are not lists of faces.
WrittenElements elementsToWrite(CommunicatorContext &context, const SourceMesh &mesh);

/// The corners of an element. Local.
std::span<const index> cornersOf(const ElementBlock &block, index element);

} // namespace DNDS::Geom::Detail
