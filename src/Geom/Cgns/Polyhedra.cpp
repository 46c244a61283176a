#include "DNDS/Geom/Cgns/Polyhedra.hpp"

#include "DNDS/Geom/File/CellFaces.hpp"
#include "DNDS/Index/SortUnique.hpp"

#include <algorithm>
#include <cstdlib>

namespace DNDS::Geom::Cgns {

namespace {

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
