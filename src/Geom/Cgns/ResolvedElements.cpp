#include "DNDS/Geom/Cgns/ResolvedElements.hpp"

#include "DNDS/Geom/File/CellFaces.hpp"
#include "DNDS/Index/SortUnique.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace DNDS::Geom::Cgns {

namespace {

// ---------------------------------------------------------------------------------------------------------------------
// Faces by their parents

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

// ---------------------------------------------------------------------------------------------------------------------
// NFACE_n

// Polyhedra of parents have no faces at this stage.
bool hasFaceNumbers(const ElementRun &cells, index element) {
    return cells.types[static_cast<std::size_t>(element)] == ElementType::Polyhedron && !cells.nodesOf(element).empty();
}

/// Faces shared by several polyhedra of this rank are fetched once.
/// One query: O(distinct faces + corners) words. A face with a negative number is reversed, so that all faces of a
/// cell point outward.
void resolveNumbers(CommunicatorContext &context, ElementRun &cells, const ElementRun &faces) {
    std::vector<index> wanted;
    for (index element = 0; element < cells.size(); element++)
        if (hasFaceNumbers(cells, element))
            for (const index number : cells.nodesOf(element))
                wanted.push_back(std::abs(number) - 1);
    const ElementRows rows = fetchElements(context, faces, sortedUnique(wanted));

    std::vector<index> starts{0};
    std::vector<index> nodes;
    for (index element = 0; element < cells.size(); element++) {
        const auto old = cells.nodesOf(element);
        if (hasFaceNumbers(cells, element))
            for (const index number : old)
                appendFace(nodes, rows.row(std::abs(number) - 1), number < 0);
        else
            nodes.insert(nodes.end(), old.begin(), old.end());
        starts.push_back(static_cast<index>(nodes.size()));
    }
    cells.starts = std::move(starts);
    cells.nodes = std::move(nodes);
}

// ---------------------------------------------------------------------------------------------------------------------
// ParentElements alone

/// The cells on both sides of faces, by file number; 0 for none.
struct Parents {
    index firstFace; ///< ordinal
    int zone;
    std::vector<index> left;
    std::vector<index> right;
};

/// Inverts the relation face -> parents: each face is sent to the ranks of its (one or two) cells, which collect
/// their faces. Collective steps alternate with guarded local ones, so a damaged file throws on all ranks.
/// One reduction of a word a zone and one exchange of each face to at most two ranks: O(corners of own faces)
/// words. `highest_` is reduced before any face is sent, as it decides how parents are numbered.
class ParentResolver {
  public:
    ParentResolver(CommunicatorContext &context, const Model &model, const SectionTable &cellTable, ElementRun &cells,
                   const SectionTable &faceTable, const ElementRun &faces, TreeSource &source)
        : context_(context), comm_(context.comm()), model_(model), cellTable_(cellTable), cells_(cells),
          faceTable_(faceTable), faces_(faces), source_(source), highest_(model.zones.size(), 0),
          cellSection_(model.zones.size(), -1) {
        for (std::size_t k = 0; k < cellTable.sections().size(); k++)
            if (cellTable.sections()[k].kind == SectionKind::FromParents)
                cellSection_[static_cast<std::size_t>(cellTable.sections()[k].zone)] = static_cast<int>(k);
    }

    bool needed() const {
        return std::any_of(cellSection_.begin(), cellSection_.end(), [](int k) { return k >= 0; });
    }
    void resolve() {
        comm_.guarded([&] { readParents(); });
        comm_.allReduce(highest_.data(), static_cast<int>(highest_.size()), MPI_MAX);
        Outbox records;
        comm_.guarded([&] { addressFaces(records); });
        const RankLists arrived = sparseExchange(context_, records.take());
        comm_.guarded([&] { buildCells(arrived); });
    }

  private:
    void readParents();
    void addressFaces(Outbox &records);
    void addressFace(Outbox &records, int zone, index face, index parent, bool inward);
    void buildCells(const RankLists &arrived);

    CommunicatorContext &context_;
    const CommunicatorView &comm_;
    const Model &model_;
    const SectionTable &cellTable_;
    ElementRun &cells_;
    const SectionTable &faceTable_;
    const ElementRun &faces_;
    TreeSource &source_;
    std::vector<index> highest_;   ///< [zones]: the highest number of a parent
    std::vector<int> cellSection_; ///< [zones]: the section of polyhedra to fill, or -1
    std::vector<Parents> parents_;
};

// Both columns of `parents`, for this rank's faces, and the highest number of a cell among them.
void ParentResolver::readParents() {
    const index begin = faces_.first();
    const index end = begin + faces_.size();
    for (std::size_t k = 0; k < faceTable_.sections().size(); k++) {
        const Section &section = faceTable_.sections()[k];
        const index from = std::max(begin, faceTable_.begin(k));
        const index to = std::min(end, faceTable_.end(k));
        if (cellSection_[static_cast<std::size_t>(section.zone)] < 0 || section.parents == nullptr ||
            section.type != ElementType::Polygon || from >= to)
            continue;
        const std::string where = model_.sectionText(section);
        DNDS_CHECK(section.parents->isInteger() && section.parents->size() / 2 >= section.size, DataError,
                   "{}: {} faces, but {} parents", where, section.size, section.parents->size());
        const auto count = static_cast<std::size_t>(to - from);
        Parents parents{from, section.zone, std::vector<index>(count), std::vector<index>(count)};
        source_.read(*section.parents, from - faceTable_.begin(k), std::span<index>(parents.left));
        source_.read(*section.parents, section.size + from - faceTable_.begin(k), std::span<index>(parents.right));
        index &highest = highest_[static_cast<std::size_t>(section.zone)];
        for (std::size_t i = 0; i < count; i++)
            highest = std::max({highest, parents.left[i], parents.right[i]});
        parents_.push_back(std::move(parents));
    }
}

/// Files disagree about the numbers of cells that no section lists. Both conventions are recognised by the highest
/// number of a parent, over all ranks.
void ParentResolver::addressFace(Outbox &records, int zone, index face, index parent, bool inward) {
    if (parent == 0)
        return;
    // Cells in no section are numbered from 1, or after all faces.
    const auto section = static_cast<std::size_t>(cellSection_[static_cast<std::size_t>(zone)]);
    const index cells = cellTable_.sections()[section].size;
    const index highest = highest_[static_cast<std::size_t>(zone)];
    const index firstId = highest <= cells ? 1 : highest - cells + 1;
    DNDS_CHECK(parent >= firstId && parent <= highest, DataError, "{}, element {}: parent {} is not a cell",
               model_.zoneText(zone), faceTable_.idOf(face), parent);
    const index cell = cellTable_.begin(section) + parent - firstId;
    const auto corners = faces_.nodesOf(face - faces_.first());
    appendFaceOfCell(records.to(cells_.mapping->owner(cell).rank), cell, face, corners, inward);
}

// The normal of a face points from its first parent to its second: inward for the second.
void ParentResolver::addressFaces(Outbox &records) {
    for (const Parents &parents : parents_)
        for (std::size_t i = 0; i < parents.left.size(); i++) {
            const index face = parents.firstFace + static_cast<index>(i);
            addressFace(records, parents.zone, face, parents.left[i], false);
            addressFace(records, parents.zone, face, parents.right[i], true);
        }
}

/// Faces arrive in any order; polyhedraOfFaces sorts them by cell and face, so the result is the same on any number
/// of ranks.
void ParentResolver::buildCells(const RankLists &arrived) {
    const ElementBlock found = polyhedraOfFaces(arrived.values, cells_.first(), cells_.size());
    std::vector<index> starts{0};
    std::vector<index> nodes;
    for (index element = 0; element < cells_.size(); element++) {
        for (const auto faces : {cells_.nodesOf(element), found.nodesOf(element)})
            nodes.insert(nodes.end(), faces.begin(), faces.end());
        starts.push_back(static_cast<index>(nodes.size()));
        DNDS_CHECK(starts.back() > starts[static_cast<std::size_t>(element)], DataError,
                   "{}: no face has cell {} of its polyhedra as a parent",
                   model_.zoneText(cellTable_.sections()[cellTable_.sectionOf(cells_.first() + element)].zone),
                   cellTable_.idOf(cells_.first() + element));
    }
    cells_.starts = std::move(starts);
    cells_.nodes = std::move(nodes);
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

// Whether there are any follows from the sections, so all ranks decide alike.
void resolvePolyhedra(CommunicatorContext &context, const Model &model, const SectionTable &cellTable,
                      ElementRun &cells, const SectionTable &faceTable, const ElementRun &faces, TreeSource &source) {
    const auto &sections = cellTable.sections();
    if (std::any_of(sections.begin(), sections.end(), [](const Section &section) {
            return section.type == ElementType::Polyhedron && section.kind != SectionKind::FromParents;
        }))
        resolveNumbers(context, cells, faces);
    ParentResolver resolver(context, model, cellTable, cells, faceTable, faces, source);
    if (resolver.needed())
        resolver.resolve();
}

} // namespace DNDS::Geom::Cgns
