#include "DNDS/Geom/Cgns/ModelBuilder.hpp"

#include <iterator>
#include <string_view>

namespace DNDS::Geom::Cgns {

// Names of the standard, in order of their numbers from 24 on.
std::string unsupportedType(index code) {
    static constexpr std::string_view names[] = {
        "BAR_4",    "TRI_9",      "TRI_10",   "QUAD_12",  "QUAD_16",  "TETRA_16", "TETRA_20",   "PYRA_21", "PYRA_29",
        "PYRA_30",  "PENTA_24",   "PENTA_38", "PENTA_40", "HEXA_32",  "HEXA_56",  "HEXA_64",    "BAR_5",   "TRI_12",
        "TRI_15",   "QUAD_P4_16", "QUAD_25",  "TETRA_22", "TETRA_34", "TETRA_35", "PYRA_P4_29", "PYRA_50", "PYRA_55",
        "PENTA_33", "PENTA_66",   "PENTA_75", "HEXA_44",  "HEXA_98",  "HEXA_125"};
    constexpr index first = 24;
    constexpr index firstOfOrder4 = 40;
    if (code < first || code >= first + static_cast<index>(std::size(names)))
        return fmt::format("element type {} is not known", code);
    return fmt::format(
        "element type {} ({}) is of order {}, which is not supported: only linear and second-order types "
        "are; write the mesh with elements of second order",
        code, names[code - first], code < firstOfOrder4 ? 3 : 4);
}

/// Reads nothing but small nodes: range, type, and where the large ones are.
Section ModelBuilder::readSection(const TreeNode &node, int zone) const {
    Section section;
    section.name = node.name;
    section.zone = zone;
    const std::string where = text(zone, "section", node.name);
    DNDS_CHECK(!node.integers.empty(), DataError, "{}: no element type", where);
    const index code = model_.typeCode(node.integers[0]);
    const TreeNode *range = node.named("ElementRange");
    DNDS_CHECK(range != nullptr && range->integers.size() == 2, DataError, "{}: no ElementRange", where);
    // Numbers of elements count from 1 through all sections of a zone.
    section.firstId = range->integers[0];
    DNDS_CHECK(section.firstId >= 1 && range->integers[1] >= section.firstId - 1 && range->integers[1] < maxElements,
               DataError, "{}: elements {} to {} are not a range", where, section.firstId, range->integers[1]);
    section.size = range->integers[1] - section.firstId + 1;
    section.connectivity = node.named("ElementConnectivity");
    section.offsets = node.named("ElementStartOffset");
    section.parents = node.named("ParentElements");
    section.positions = node.named("ParentElementsPosition");
    if (section.parents == nullptr) { // older files have all four columns in one array
        section.parents = section.positions = node.named("ParentData");
        section.firstPosition = 2 * section.size;
    }

    // Old files have a code for each number of corners.
    if (const index corners = model_.polygonCorners(node.integers[0]); corners > 0) {
        section.type = ElementType::Polygon;
        section.nodes = static_cast<int>(corners);
        return section;
    }
    DNDS_CHECK(code >= 0 && code < 1000 && isElementType(static_cast<int>(code)), DataError, "{}: {}", where,
               unsupportedType(code));
    section.type = static_cast<ElementType>(code);
    section.nodes = elementInfo(section.type).nodes;
    if (section.connectivity == nullptr && section.parents != nullptr && section.nodes > 0 &&
        elementInfo(section.type).dimension == model_.cellDimension - 1)
        section.kind = SectionKind::OfCells;
    else if (section.nodes == 0)
        section.kind = section.offsets != nullptr ? SectionKind::Offsets : SectionKind::Stream;
    return section;
}

/// The lengths of arrays, not their contents: readers of elements check those as they go.
void ModelBuilder::checkConnectivity(Section &section) {
    const std::string where = model_.sectionText(section);
    section.byParents = section.nodes > 0 && elementInfo(section.type).dimension == model_.cellDimension - 1 &&
                        section.parents != nullptr && section.positions != nullptr && section.parents->isInteger() &&
                        section.positions->isInteger() && section.parents->size() >= 2 * section.size &&
                        section.positions->size() >= section.firstPosition + 2 * section.size;
    if (section.kind == SectionKind::OfCells) {
        DNDS_CHECK(section.byParents, DataError,
                   "{}: it has neither ElementConnectivity nor, for each of its {} elements, two parents and which of "
                   "their faces it is",
                   where, section.size);
        return;
    }
    DNDS_CHECK(section.connectivity != nullptr && section.connectivity->isInteger(), DataError,
               "{}: no ElementConnectivity of integers", where);
    // Numbers in ElementConnectivity.
    const index words = section.words();
    if (section.kind == SectionKind::Fixed) {
        DNDS_CHECK(words / section.nodes >= section.size, DataError, "{}: {} elements of {} nodes, but {} node numbers",
                   where, section.size, section.nodes, words);
        if (words != section.size * section.nodes)
            model_.warnings.push_back(fmt::format("{}: {} node numbers more than its elements have", where,
                                                  words - section.size * section.nodes));
        return;
    }
    DNDS_CHECK(words >= section.size, DataError, "{}: {} elements, but {} numbers in ElementConnectivity", where,
               section.size, words);
    if (section.kind == SectionKind::Offsets)
        DNDS_CHECK(section.offsets->isInteger() && section.offsets->size() == section.size + 1, DataError,
                   "{}: {} elements, but {} start offsets", where, section.size, section.offsets->size());
}

/// A structured zone becomes one section of quadrilaterals or hexahedra, so that the rest of the reader knows one
/// kind of zone. Sections of unstructured zones are sorted by number and must not overlap: a binary search finds the
/// section of an element.
/// O(sections log sections). Lists of all zones are concatenated, so an element's ordinal is independent of the
/// number of ranks.
void ModelBuilder::readSections(int zone) {
    std::vector<Section> sections;
    for (const TreeNode &child : zoneTrees_[static_cast<std::size_t>(zone)]->children)
        if (child.label == "Elements_t")
            sections.push_back(readSection(child, zone));
    const Zone &info = model_.zones[static_cast<std::size_t>(zone)];
    if (info.structured) {
        if (!sections.empty())
            model_.warnings.push_back(
                fmt::format("{}: sections of a structured zone are left out", model_.zoneText(zone)));
        Section cells;
        cells.name = info.name;
        cells.zone = zone;
        cells.kind = SectionKind::Structured;
        cells.type = model_.cellDimension == 3 ? ElementType::Hexa8 : ElementType::Quad4;
        cells.nodes = elementInfo(cells.type).nodes;
        cells.firstId = 1;
        cells.size = info.cells;
        model_.cells.push_back(cells);
        return;
    }
    std::stable_sort(sections.begin(), sections.end(),
                     [](const Section &a, const Section &b) { return a.firstId < b.firstId; });
    for (std::size_t k = 1; k < sections.size(); k++) {
        const Section &before = sections[k - 1];
        DNDS_CHECK(before.size == 0 || sections[k].size == 0 || before.firstId + before.size <= sections[k].firstId,
                   DataError, "{}: its element numbers overlap those of section '{}'", model_.sectionText(sections[k]),
                   before.name);
    }
    sortIntoLists(zone, std::move(sections));
}

/// Elements of the cell dimension are cells, one dimension less faces. Mixed sections count as cells and may hold faces
/// as well. In a zone without cells whose polygons name their parents, polyhedra are put together from the faces
/// (ResolvedElements.cpp).
void ModelBuilder::sortIntoLists(int zone, std::vector<Section> sections) {
    const auto has = [&](auto &&condition) { return std::any_of(sections.begin(), sections.end(), condition); };
    const bool polyhedra = has([](const Section &s) { return s.type == ElementType::Polyhedron; });
    const bool otherCells = has([&](const Section &s) {
        return s.type == ElementType::Mixed || elementInfo(s.type).dimension == model_.cellDimension;
    });
    const bool fromParents = model_.cellDimension == 3 && !polyhedra && !otherCells && has([](const Section &s) {
                                 return s.type == ElementType::Polygon && s.parents != nullptr;
                             });
    index faces = 0;
    for (Section &section : sections) {
        const int dimension = elementInfo(section.type).dimension;
        const bool cells = section.type == ElementType::Mixed || dimension == model_.cellDimension;
        if (section.size == 0)
            continue;
        if (!cells && dimension != model_.cellDimension - 1) {
            model_.notes.push_back(fmt::format("{}: its {} elements of type {} are left out",
                                               model_.sectionText(section), section.size,
                                               elementInfo(section.type).name));
            continue;
        }
        checkConnectivity(section);
        faces += cells ? 0 : section.size;
        (cells ? model_.cells : model_.faces).push_back(std::move(section));
    }
    if (!fromParents)
        return;
    Section cells;
    cells.name = "polyhedra of parents";
    cells.zone = zone;
    cells.kind = SectionKind::FromParents;
    cells.type = ElementType::Polyhedron;
    cells.firstId = 1;
    // As the zone states; whether faces name just these cells is checked when they are put together.
    cells.size = model_.zones[static_cast<std::size_t>(zone)].cells;
    DNDS_CHECK(cells.size <= 2 * faces, DataError, "{}: {} cells, but {} faces", model_.zoneText(zone), cells.size,
               faces);
    model_.cells.push_back(std::move(cells));
}

} // namespace DNDS::Geom::Cgns
