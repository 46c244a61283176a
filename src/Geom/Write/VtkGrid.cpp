#include "DNDS/Geom/Write/WriteMesh.hpp"

#include "DNDS/Geom/Mesh/CellNodes.hpp"

#include <numeric>
#include <vector>

namespace DNDS::Geom {

// O(nodes of the cells) time and memory.
VtkCells vtkCells(const UnstructuredMesh &mesh, index cells) {
    DNDS_CHECK(cells >= 0 && cells <= mesh.cells.size(), ArgumentError, "{} cells asked for: this rank has {}", cells,
               mesh.cells.size());
    // Local numbers, as viewers of one rank's part need them.
    std::vector<index> local(static_cast<std::size_t>(mesh.nodes.size()));
    std::iota(local.begin(), local.end(), index{0});
    VtkCells grid;
    std::vector<index> nodes;
    for (index cell = 0; cell < cells; ++cell) {
        nodes.clear();
        appendCellNodes(mesh, cell, local, nodes);
        grid.add(mesh.cellTypes[static_cast<std::size_t>(cell)], nodes);
    }
    return grid;
}

} // namespace DNDS::Geom
