#include "DNDS/Geom/Mesh/FaceElements.hpp"

#include "DNDS/Geom/Elements/SubElements.hpp"
#include "DNDS/Geom/Source/MirroredElement.hpp"

#include <utility>

namespace DNDS::Geom {

namespace {

/// Of the first `count` corners that a face lists, how many differ: collapsed elements repeat some.
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

std::vector<FaceElements::Source> sourcesOf(const UnstructuredMesh &mesh) {
    std::vector<FaceElements::Source> sources(toSize(mesh.faces.size()));
    const auto cellNodes = mesh.cellNodes.view();
    const auto cellFaces = mesh.cellFaces.view();
    const auto faceCells = mesh.faceCells.view();
    for (LocalIndex c = 0; c < static_cast<LocalIndex>(mesh.cells.size()); c++) {
        const ElementType type = mesh.cellTypes[static_cast<std::size_t>(c)];
        if (elementLayout(type).nodes == 0)
            continue;
        const ElementInfo &info = elementInfo(type);
        const auto faces = cellFaces[c];
        rowsize listed = 0;
        for (int number = 0; number < static_cast<int>(info.faces.size()); number++) {
            // Faces that have become edges or points are not listed.
            if (distinctCorners(info.faces[static_cast<std::size_t>(number)], cellNodes[c]) < info.dimension)
                continue;
            DNDS_CHECK(listed < faces.size(), StateError, "cell {} lists {} faces, fewer than its nodes span", c,
                       faces.size());
            const LocalIndex f = faces[listed++];
            FaceElements::Source &source = sources[static_cast<std::size_t>(f)];
            if (source.cell == noEntity || faceCells(f, 0) == c)
                source = {c, number};
        }
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

} // namespace DNDS::Geom
