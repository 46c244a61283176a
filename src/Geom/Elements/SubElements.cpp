#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Elements/ElementMap.hpp"

namespace DNDS::Geom {

namespace {

/// The layout of a type that has shape functions.
ElementLayout checkedLayout(ElementType type) {
    const ElementLayout layout = elementLayout(type);
    DNDS_CHECK(layout.nodes > 0, ArgumentError, "{} has no shape functions", elementInfo(type).name);
    return layout;
}

/// The number of the edge between two corners.
/// The two corners must be joined by an edge of the table, or the search does not end.
int edgeBetween(const ReferenceTable &table, int a, int b) {
    int edge = 0;
    while (!(table.edge[edge][0] == a && table.edge[edge][1] == b) &&
           !(table.edge[edge][0] == b && table.edge[edge][1] == a))
        edge++;
    return edge;
}

/// The element of these corners of `layout`, with mid-nodes if it is of second order.
/// Mid-nodes follow the corners: those of edges, then that of the face if the element is complete. The type follows
/// from the counts.
/// O(corners x edges), at most 4 x 12.
SubElement spanned(const ElementLayout &layout, std::span<const std::uint8_t> corners) {
    const ReferenceTable &table = referenceTable(layout.shape);
    SubElement part;
    std::size_t count = 0;
    const auto append = [&](int node) { part.node[count++] = static_cast<std::uint8_t>(node); };
    for (const int corner : corners)
        append(corner);
    const std::size_t edges = corners.size() == 2 ? 1 : corners.size();
    if (layout.order == 2 && corners.size() > 1)
        for (std::size_t k = 0; k < edges; k++)
            append(table.corners + edgeBetween(table, corners[k], corners[(k + 1) % corners.size()]));
    if (layout.order == 2 && layout.complete == layout.nodes && corners.size() == 4)
        for (int q = 0; q < table.quads; q++)
            if (std::equal(corners.begin(), corners.end(), table.quad[q]))
                append(table.corners + table.edges + q);
    constexpr ElementType types[] = {ElementType::Node, ElementType::Bar2,  ElementType::Bar3,  ElementType::Tri3,
                                     ElementType::Tri6, ElementType::Quad4, ElementType::Quad8, ElementType::Quad9};
    for (const ElementType type : types)
        if (static_cast<std::size_t>(elementLayout(type).nodes) == count &&
            static_cast<std::size_t>(elementInfo(type).corners) == corners.size())
            part.type = type;
    return part;
}

} // namespace

SubElement faceOf(ElementType type, int face) {
    const ElementLayout layout = checkedLayout(type);
    const auto faces = elementInfo(type).faces;
    DNDS_CHECK(face >= 0 && face < static_cast<int>(faces.size()), ArgumentError, "{} has {} faces, not a face {}",
               elementInfo(type).name, faces.size(), face);
    const ElementFace &corners = faces[static_cast<std::size_t>(face)];
    return spanned(layout, std::span(corners.corner).first(static_cast<std::size_t>(corners.corners)));
}

int edgeCount(ElementType type) { return referenceTable(checkedLayout(type).shape).edges; }

SubElement edgeOf(ElementType type, int edge) {
    const ElementLayout layout = checkedLayout(type);
    const ReferenceTable &table = referenceTable(layout.shape);
    DNDS_CHECK(edge >= 0 && edge < table.edges, ArgumentError, "{} has {} edges, not an edge {}",
               elementInfo(type).name, static_cast<int>(table.edges), edge);
    return spanned(layout, table.edge[edge]);
}

Point inElement(ElementType type, const SubElement &part, const Point &at) {
    const ReferenceShape shape = checkedLayout(type).shape;
    const ShapeFunctions functions = shapeFunctions(part.type, at);
    Point result{};
    for (std::size_t k = 0; k < part.nodes().size(); k++)
        result = result + functions.values[k] * referenceNode(shape, part.node[k]);
    return result;
}

} // namespace DNDS::Geom
