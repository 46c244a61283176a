#include "DNDS/Geom/Mesh/MeshView.hpp"

#include "DNDS/Geom/Source/MirroredElement.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace DNDS::Geom {

namespace {

/// The number of distinct corners of a face: collapsed elements repeat some.
int distinctCorners(const ElementFace &face, AdjacencyRow<const LocalIndex> nodes) {
    int distinct = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(face.corners); i++) {
        bool repeated = false;
        for (std::size_t j = 0; j < i; j++)
            repeated = repeated || nodes[face.corner[i]] == nodes[face.corner[j]];
        distinct += repeated ? 0 : 1;
    }
    return distinct;
}

/// Calls `visit(number, face)` for each of `elementInfo(type).faces` of a cell with shape functions that is a face of
/// the mesh: collapsed faces, which are edges or points, are left out.
template <class Visit>
void forEachListedFace(const UnstructuredMesh &mesh, LocalIndex cell, Visit &&visit) {
    const ElementInfo &info = elementInfo(mesh.cellTypes[static_cast<std::size_t>(cell)]);
    const auto faces = mesh.cellFaces[cell];
    rowsize listed = 0;
    for (int number = 0; number < static_cast<int>(info.faces.size()); number++) {
        // The rule by which `buildMesh` leaves faces out of `cellFaces`.
        if (distinctCorners(info.faces[static_cast<std::size_t>(number)], mesh.cellNodes[cell]) < info.dimension)
            continue;
        DNDS_CHECK(listed < faces.size(), StateError, "cell {} lists {} faces, fewer than its nodes span", cell,
                   faces.size());
        visit(number, faces[listed++]);
    }
}

/// The last assignment wins if it is the first cell's; else the first cell found with shape functions.
std::vector<FaceElements::Source> sourcesOf(const UnstructuredMesh &mesh) {
    std::vector<FaceElements::Source> sources(toSize(mesh.faces.size()));
    const auto faceCells = mesh.faceCells.view();
    for (LocalIndex c = 0; c < static_cast<LocalIndex>(mesh.cells.size()); c++) {
        if (elementLayout(mesh.cellTypes[static_cast<std::size_t>(c)]).nodes == 0)
            continue;
        forEachListedFace(mesh, c, [&](int number, LocalIndex f) {
            FaceElements::Source &source = sources[static_cast<std::size_t>(f)];
            if (source.cell == noEntity || faceCells(f, 0) == c)
                source = {c, number};
        });
    }
    return sources;
}

/// The type of a face that only has corners.
ElementType straightType(int dimension, rowsize corners) {
    if (dimension == 2)
        return ElementType::Bar2;
    if (corners == 3)
        return ElementType::Tri3;
    return corners == 4 ? ElementType::Quad4 : ElementType::Polygon;
}

} // namespace

// Faces point out of the cell that gives their nodes; those of a second cell are turned around.
// O(faces x nodes). Both ranks of a shared face get the same nodes if its first cell is local on both.
FaceElements faceElements(const UnstructuredMesh &mesh) {
    std::vector<FaceElements::Source> sources = sourcesOf(mesh);
    const auto cellNodes = mesh.cellNodes.view();
    const auto faceNodes = mesh.faceNodes.view();
    const auto faceCells = mesh.faceCells.view();
    std::vector<ElementType> types;
    std::vector<index> starts{0};
    std::vector<LocalIndex> entries;
    std::vector<index> nodes;
    for (index f = 0; f < mesh.faces.size(); f++) {
        const FaceElements::Source source = sources[toSize(f)];
        if (source.cell == noEntity) {
            types.push_back(straightType(mesh.dimension, faceNodes[f].size()));
            entries.insert(entries.end(), faceNodes[f].begin(), faceNodes[f].end());
        } else {
            const SubElement face = faceOf(mesh.cellTypes[static_cast<std::size_t>(source.cell)], source.face);
            nodes.clear();
            for (const int k : face.nodes())
                nodes.push_back(cellNodes[source.cell][k]);
            // Listed by the second cell, the face points into the first one.
            if (faceCells(f, 0) != source.cell) {
                if (mesh.dimension == 2)
                    std::swap(nodes[0], nodes[1]);
                else
                    mirrorElement(face.type, nodes);
            }
            types.push_back(face.type);
            for (const index node : nodes)
                entries.push_back(static_cast<LocalIndex>(node));
        }
        starts.push_back(static_cast<index>(entries.size()));
    }
    return {std::move(types), makeAdjacency("nodes of face elements", mesh.comm, starts, entries), std::move(sources)};
}

/// In the cell's own numbers, even if `faceNodes` lists the nodes of the other side.
std::vector<LocalIndex> nodesOnFace(const UnstructuredMesh &mesh, LocalIndex cell, LocalIndex face) {
    const ElementType type = mesh.cellTypes[static_cast<std::size_t>(cell)];
    const auto nodes = mesh.cellNodes[cell];
    const auto corners = mesh.faceNodes[face];
    if (elementLayout(type).nodes == 0) {
        // One corner tells whether the face has the nodes of this side.
        const bool own = std::find(nodes.begin(), nodes.end(), corners[0]) != nodes.end();
        return own ? std::vector<LocalIndex>(corners.begin(), corners.end())
                   : std::vector<LocalIndex>(nodes.begin(), nodes.end());
    }
    std::vector<LocalIndex> result;
    forEachListedFace(mesh, cell, [&](int number, LocalIndex f) {
        if (f != face)
            return;
        const SubElement own = faceOf(type, number);
        for (const int k : own.nodes())
            result.push_back(nodes[k]);
    });
    return result;
}

// Nearest corners need no tolerance: corners of one face are further apart than copies of a corner across a
// periodic boundary. O(corners^2), and corners are at most 4.
SubElement faceInCell(const UnstructuredMesh &mesh, const FaceElements &faces, index face, int side) {
    const LocalIndex cell = mesh.faceCells(face, side);
    DNDS_CHECK(cell >= 0, ArgumentError, "face {} has no local cell on side {}", face, side);
    const ElementType type = mesh.cellTypes[static_cast<std::size_t>(cell)];
    // Two steps: the face as the cell lists it, then its corners in the order of the face's element.
    SubElement own; // as the cell lists it
    forEachListedFace(mesh, cell, [&](int number, LocalIndex f) {
        if (f == face)
            own = faceOf(type, number);
    });
    const int corners = elementInfo(faces.types[toSize(face)]).corners;
    const ElementNodes wanted{mesh.coordinates.view(), faces.nodes[face]};
    const ElementNodes there{mesh.coordinates.view(), mesh.cellNodes[cell]};
    SubElement result;
    int found = 0;
    for (int k = 0; k < corners; k++) {
        // The corner at the same place: across a periodic boundary it is another node.
        real nearest = std::numeric_limits<real>::infinity();
        for (int j = 0; j < elementInfo(own.type).corners; j++) {
            const std::uint8_t node = own.node[static_cast<std::size_t>(j)];
            const Point apart = there(node) - wanted(k);
            if (dot(apart, apart) < nearest) {
                nearest = dot(apart, apart);
                result.node[static_cast<std::size_t>(k)] = node;
            }
        }
        const auto before = result.node.begin() + k;
        // Counts distinct nodes: two corners at one node mean a collapsed face.
        found += std::find(result.node.begin(), before, *before) == before ? 1 : 0;
    }
    DNDS_CHECK(corners > 0 && found == corners && corners == elementInfo(own.type).corners, ArgumentError,
               "face {} is collapsed, or its cell {} is a polygon or polyhedron: its points are not those of a "
               "reference face",
               face, cell);
    result.type = straightType(mesh.dimension, corners);
    return result;
}

} // namespace DNDS::Geom
