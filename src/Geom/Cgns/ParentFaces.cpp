#include "DNDS/Geom/Cgns/ParentFaces.hpp"

#include "DNDS/Index/SortUnique.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Geom::Cgns {

namespace {

/// A face of this rank, and where it is said to be.
struct NamedFace {
    index face; ///< face of this rank's run
    std::size_t section;
    index cell;     ///< ordinal
    index position; ///< counted from 1
};

/// The non-polygonal, non-polyhedral cell type with this many nodes, which is unique.
const ElementInfo *cellWith(int dimension, std::size_t nodes) {
    for (int code = 0; code < 64; code++)
        if (isElementType(code))
            if (const ElementInfo &info = elementInfo(static_cast<ElementType>(code));
                info.dimension == dimension && info.nodes > 0 && static_cast<std::size_t>(info.nodes) == nodes)
                return &info;
    return nullptr;
}

/// The type of a face with this number of corners.
ElementType faceWith(std::size_t corners) {
    return corners == 2 ? ElementType::Bar2 : corners == 3 ? ElementType::Tri3 : ElementType::Quad4;
}

/// Reads the parents of this rank's faces that have no nodes; a face has one parent at the boundary, in either
/// column.
/// O(own faces of such sections) time and memory. Faces ascend in the result, so resolveParentFaces merges them in
/// one pass.
std::vector<NamedFace> readNamed(const Model &model, const SectionTable &cellTable, const SectionTable &faceTable,
                                 const ElementRun &faces, TreeSource &source) {
    std::vector<NamedFace> named;
    for (std::size_t k = 0; k < faceTable.sections().size(); k++) {
        const Section &section = faceTable.sections()[k];
        const index from = std::max(faces.first(), faceTable.begin(k));
        const index to = std::min(faces.first() + faces.size(), faceTable.end(k));
        if (!section.byParents || from >= to)
            continue;
        std::array<std::vector<index>, 2> parents;
        std::array<std::vector<index>, 2> positions;
        for (std::size_t side = 0; side < 2; side++) {
            const index first = static_cast<index>(side) * section.size + from - faceTable.begin(k);
            parents[side].resize(static_cast<std::size_t>(to - from));
            positions[side].resize(static_cast<std::size_t>(to - from));
            source.read(*section.parents, first, std::span<index>(parents[side]));
            source.read(*section.positions, section.firstPosition + first, std::span<index>(positions[side]));
        }
        for (std::size_t i = 0; i < parents[0].size(); i++) {
            const std::size_t side = parents[0][i] != 0 ? 0 : 1;
            const index ordinal = from + static_cast<index>(i);
            if (!faces.nodesOf(ordinal - faces.first()).empty())
                continue;
            const index cell = cellTable.find(section.zone, parents[side][i]);
            DNDS_CHECK(cell != SectionTable::none, DataError, "{}, element {}: its parent {} is not a cell",
                       model.sectionText(section), faceTable.idOf(ordinal), parents[side][i]);
            named.push_back({ordinal - faces.first(), k, cell, positions[side][i]});
        }
    }
    return named;
}

} // namespace

/// The types of cells are not sent: number of nodes and dimension determine them. Nodes of named faces are inserted
/// into the CSR rows of `faces`, which is rebuilt in one pass.
/// One query for the parents' rows. All ranks skip it together, since sections are the same everywhere.
void resolveParentFaces(CommunicatorContext &context, const Model &model, const SectionTable &cellTable,
                        const ElementRun &cells, const SectionTable &faceTable, ElementRun &faces, TreeSource &source) {
    if (std::none_of(faceTable.sections().begin(), faceTable.sections().end(),
                     [](const Section &section) { return section.byParents; }))
        return;
    std::vector<NamedFace> named;
    context.comm().guarded([&] { named = readNamed(model, cellTable, faceTable, faces, source); });
    // Corners of the parents, which other ranks may have.
    std::vector<index> wanted;
    for (const NamedFace &face : named)
        wanted.push_back(face.cell);
    const ElementRows rows = fetchElements(context, cells, sortedUnique(wanted));

    context.comm().guarded([&] {
        std::vector<index> starts{0};
        std::vector<index> nodes;
        auto next = named.begin();
        for (index f = 0; f < faces.size(); f++) {
            const auto given = faces.nodesOf(f);
            nodes.insert(nodes.end(), given.begin(), given.end());
            if (next != named.end() && next->face == f) {
                const Section &section = faceTable.sections()[next->section];
                const ElementType of = cellTable.sections()[cellTable.sectionOf(next->cell)].type;
                const auto row = rows.row(next->cell);
                const ElementInfo *cell = of == ElementType::Polygon || of == ElementType::Polyhedron
                                              ? nullptr
                                              : cellWith(model.cellDimension, row.size());
                const index position = next->position;
                DNDS_CHECK(cell != nullptr && position >= 1 && position <= static_cast<index>(cell->faces.size()) &&
                               cell->faces[static_cast<std::size_t>(position - 1)].corners ==
                                   elementInfo(section.type).corners,
                           DataError, "{}, element {}: its parent {} has no face {} of {} corners",
                           model.sectionText(section), faceTable.idOf(faces.first() + f), cellTable.idOf(next->cell),
                           position, elementInfo(section.type).corners);
                const ElementFace &face = cell->faces[static_cast<std::size_t>(position - 1)];
                for (std::size_t c = 0; c < static_cast<std::size_t>(face.corners); c++)
                    nodes.push_back(row[face.corner[c]]);
                faces.types[static_cast<std::size_t>(f)] = faceWith(static_cast<std::size_t>(face.corners));
                ++next;
            }
            starts.push_back(static_cast<index>(nodes.size()));
        }
        faces.starts = std::move(starts);
        faces.nodes = std::move(nodes);
    });
}

} // namespace DNDS::Geom::Cgns
