#include "DNDS/Geom/Mesh/CellNodes.hpp"

#include "DNDS/Geom/Mesh/MeshView.hpp"

#include <algorithm>

namespace DNDS::Geom {

/// A polyhedron's list is put together from its faces, whose normals leave their first cell.
/// O(nodes of the cell). All faces of the list point outward.
void appendCellNodes(const UnstructuredMesh &mesh, index cell, std::span<const index> numbers,
                     std::vector<index> &result) {
    if (mesh.cellTypes[toSize(cell)] != ElementType::Polyhedron) {
        for (const LocalIndex node : mesh.cellNodes.view()[cell])
            result.push_back(numbers[static_cast<std::size_t>(node)]);
        return;
    }
    // In the form of NFACE lists: for each face the number of its corners, then the corners.
    const auto faces = mesh.cellFaces.view()[cell];
    for (rowsize k = 0; k < faces.size(); k++) {
        const auto corners = mesh.faceNodes.view()[faces[k]];
        result.push_back(static_cast<index>(corners.size()));
        const auto begin = static_cast<std::ptrdiff_t>(result.size());
        for (const LocalIndex node : corners)
            result.push_back(numbers[static_cast<std::size_t>(node)]);
        // Corners are listed as the first cell, or the first side of a slit, sees them.
        if (!pointsOut(mesh.faceCells.view(), faces, cell, k))
            std::reverse(result.begin() + begin, result.end());
    }
}

} // namespace DNDS::Geom
