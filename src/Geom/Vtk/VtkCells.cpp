#include "DNDS/Geom/Vtk/VtkHdfWriter.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Vtk/VtkElements.hpp"

#include <algorithm>
#include <cstddef>

namespace DNDS::Geom {

namespace {

/// The connectivity of a polyhedron has each of its points once, here ascending. Faces are not shared between cells, so
/// their numbers count up.
/// O(corners log corners). Each cell lists its own copy of a face between two cells, so ranks number faces without
/// messages.
void addPolyhedron(std::span<const index> nodes, VtkCells &cells) {
    const auto firstPoint = static_cast<std::ptrdiff_t>(cells.connectivity.size());
    for (std::size_t at = 0; at < nodes.size();) {
        const auto corners = static_cast<std::size_t>(nodes[at]);
        DNDS_CHECK(nodes[at] >= 3 && corners < nodes.size() - at, ArgumentError,
                   "a polyhedron lists a face of {} corners among {} numbers", nodes[at], nodes.size());
        for (const index node : nodes.subspan(at + 1, corners)) {
            cells.faceConnectivity.push_back(node);
            cells.connectivity.push_back(node);
        }
        cells.polyhedronToFaces.push_back(static_cast<index>(cells.faceOffsets.size()));
        cells.faceOffsets.push_back(static_cast<index>(cells.faceConnectivity.size()));
        at += corners + 1;
    }
    std::sort(cells.connectivity.begin() + firstPoint, cells.connectivity.end());
    cells.connectivity.erase(std::unique(cells.connectivity.begin() + firstPoint, cells.connectivity.end()),
                             cells.connectivity.end());
}

} // namespace

// An empty `order` means that VTK's order is that of CGNS.
void VtkCells::add(ElementType type, std::span<const index> nodes) {
    const VtkElement element = vtkElement(type);
    if (type == ElementType::Polyhedron)
        addPolyhedron(nodes, *this);
    else if (element.order.empty())
        connectivity.insert(connectivity.end(), nodes.begin(), nodes.end());
    for (const std::uint8_t k : element.order)
        connectivity.push_back(nodes[k]);
    types.push_back(element.type);
    offsets.push_back(static_cast<index>(connectivity.size()));
    polyhedronOffsets.push_back(static_cast<index>(polyhedronToFaces.size()));
}

} // namespace DNDS::Geom
