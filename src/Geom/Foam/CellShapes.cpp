#include "DNDS/Geom/Foam/CellShapes.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Index/SortUnique.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace DNDS::Geom::Foam {

namespace {

using Corners = std::span<const index>;

/// The faces of a polyhedron.
std::vector<Corners> facesOf(Corners list) {
    std::vector<Corners> faces;
    for (std::size_t at = 0; at < list.size(); at += static_cast<std::size_t>(list[at]) + 1)
        faces.push_back(list.subspan(at + 1, static_cast<std::size_t>(list[at])));
    return faces;
}

/// The only type that may have faces with these numbers of corners.
std::optional<ElementType> typeByFaces(const std::vector<Corners> &faces) {
    std::array<int, 5> counts{};
    for (const Corners face : faces) {
        if (face.size() != 3 && face.size() != 4)
            return {};
        counts[face.size()]++;
    }
    if (counts[3] == 4 && counts[4] == 0)
        return ElementType::Tetra4;
    if (counts[3] == 4 && counts[4] == 1)
        return ElementType::Pyra5;
    if (counts[3] == 2 && counts[4] == 3)
        return ElementType::Penta6;
    if (counts[3] == 0 && counts[4] == 6)
        return ElementType::Hexa8;
    return {};
}

// Faces have three or four corners: a search is enough.
bool contains(Corners corners, index node) { return std::ranges::find(corners, node) != corners.end(); }

/// The node at the other end of the edge that leaves the base at `node`, or `node` without such an edge. O(faces).
index aboveOf(const std::vector<Corners> &faces, Corners base, index node) {
    for (const Corners face : faces)
        for (std::size_t k = 0; k < face.size(); k++)
            if (const index next = face[k + 1 == face.size() ? 0 : k + 1]; face[k] == node && !contains(base, next))
                return next;
    return node;
}

/// Whether the corners are the same from some first one on.
bool sameCycle(Corners a, Corners b) {
    for (std::size_t turn = 0; turn < a.size(); turn++) {
        std::size_t k = 0;
        while (k < a.size() && a[(k + turn) % a.size()] == b[k])
            k++;
        if (k == a.size())
            return true;
    }
    return false;
}

/// Each face of the type must be one of the given ones, with the same orientation.
bool hasFaces(ElementType type, Corners nodes, const std::vector<Corners> &faces) {
    return std::ranges::all_of(elementInfo(type).faces, [&](const ElementFace &wanted) {
        std::array<index, 4> corners{};
        const auto count = static_cast<std::size_t>(wanted.corners);
        for (std::size_t k = 0; k < count; k++)
            corners[k] = nodes[wanted.corner[k]];
        return std::ranges::any_of(faces, [&](Corners face) {
            return face.size() == count && sameCycle(face, Corners(corners).first(count));
        });
    });
}

/// The nodes of an element of this type with the given faces; empty if these do not fit.
///
/// Any base with the right number of corners will do: an element looks the same from each. The other nodes are found
/// along edges from the base. Then all faces of the element are compared with the given ones, because numbers of
/// corners also fit cells that are collapsed, or of which a face points inward.
std::vector<index> nodesOfShape(ElementType type, const std::vector<Corners> &faces) {
    // CGNS lists the base of each of these types first, counter-clockwise seen from inside, then the nodes above it.
    const std::size_t corners = type == ElementType::Pyra5 || type == ElementType::Hexa8 ? 4 : 3;
    const Corners base = *std::ranges::find_if(faces, [&](Corners face) { return face.size() == corners; });
    std::vector<index> nodes(base.rbegin(), base.rend());
    const bool pointed = type == ElementType::Tetra4 || type == ElementType::Pyra5;
    for (std::size_t k = 0; k < (pointed ? 1 : corners); k++)
        nodes.push_back(aboveOf(faces, base, nodes[k]));
    if (sortedUnique(nodes).size() != nodes.size() || !hasFaces(type, nodes, faces))
        nodes.clear();
    return nodes;
}

} // namespace

/// O(faces of cells), as shapes have at most six faces.
void recognizeShapes(ElementBlock &cells) {
    ElementBlock result;
    for (index cell = 0; cell < cells.size(); cell++) {
        const Corners list = cells.nodesOf(cell);
        const std::vector<Corners> faces = facesOf(list);
        const std::optional<ElementType> type = typeByFaces(faces);
        const std::vector<index> nodes = type ? nodesOfShape(*type, faces) : std::vector<index>();
        const index id = cells.fileIds[static_cast<std::size_t>(cell)];
        if (nodes.empty())
            appendElement(result, ElementType::Polyhedron, list, id);
        else
            appendElement(result, *type, nodes, id);
    }
    result.first = cells.first;
    result.globalSize = cells.globalSize;
    cells = std::move(result);
}

} // namespace DNDS::Geom::Foam
