#include "Geom/Cgns/Model.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

namespace DNDS::Geom::Cgns {

namespace {

/// The rounded number of the file's version times 1000; 0 if it does not say.
int versionOf(const TreeNode &root) {
    const TreeNode *node = root.withLabel("CGNSLibraryVersion_t");
    if (node == nullptr || node->reals.size() != 1 || !(node->reals[0] > 0.0 && node->reals[0] < 100.0))
        return 0;
    return static_cast<int>(std::lround(node->reals[0] * 1000.0));
}

/// No element has a higher number: sums of two never overflow.
constexpr index mostElements = index{1} << 60;

/// The last part of a name that may be a path: "Base/Family".
std::string lastPart(const std::string &name) { return name.substr(name.rfind('/') + 1); }

std::string trimmed(std::string text) {
    text.resize(std::min(text.find('\0'), text.size()));
    text.resize(text.find_last_not_of(' ') + 1);
    return text;
}

class ModelBuilder {
  public:
    ModelBuilder(const TreeNode &root, const CgnsOptions &options) : root_(root), options_(options) {
        model_.file = root.file;
        const int version = versionOf(root);
        model_.polygonCode = version == 0 || version >= 3200 ? 0 : version >= 3000 ? 22 : 21;
    }

    Model build() {
        chooseBase();
        readFamilies();
        readZones();
        for (std::size_t zone = 0; zone < zoneNodes_.size(); zone++) {
            readSections(static_cast<int>(zone));
            readConditions(static_cast<int>(zone));
            readConnections(static_cast<int>(zone));
        }
        if (!anyCondition_)
            makePatchesOfSections();
        DNDS_CHECK(!model_.cells.empty(), DataError, "{}: base '{}' has no cells", model_.file, model_.base);
        return std::move(model_);
    }

  private:
    static bool hasCells(const TreeNode &base);
    void chooseBase();
    void readFamilies();
    void readZones();
    void readZone(const TreeNode &node);
    void readCoordinates(const TreeNode &node, Zone &zone) const;
    void readSections(int zone);
    Section readSection(const TreeNode &node, int zone) const;
    void checkConnectivity(Section &section);
    void sortIntoLists(int zone, std::vector<Section> sections);
    void readConditions(int zone);
    void addCondition(const TreeNode &node, int zone);
    int patchFor(const std::string &name, const std::string &kind, const std::string &family, int zone);
    void readConnections(int zone);
    void addConnection(const TreeNode &node, const TreeNode &group, int zone);
    std::optional<PeriodicTransform> readPeriodic(const TreeNode &node, const TreeNode &group, int zone) const;
    void addStructuredConnection(const TreeNode &node, const TreeNode &group, int zone);
    std::optional<PointSet> readPoints(const TreeNode &node, int zone, const std::string &suffix,
                                       const std::string &text) const;
    int addPatchSection(int zone, const std::array<Triple, 2> &range, const std::string &name);
    void makePatchesOfSections();
    int findZone(const std::string &name) const;
    std::string text(int zone, const char *what, const std::string &name) const {
        return fmt::format("{}, {} '{}'", model_.zoneText(zone), what, name);
    }

    const TreeNode &root_;
    const CgnsOptions &options_;
    const TreeNode *baseNode_ = nullptr;
    std::vector<const TreeNode *> zoneNodes_;
    std::map<std::string, std::string> familyKinds_;
    bool anyCondition_ = false;
    Model model_;
};

// ---------------------------------------------------------------------------------------------------------------------
// Bases and zones

bool ModelBuilder::hasCells(const TreeNode &base) {
    if (base.integers.size() != 2 || base.integers[0] < 2 || base.integers[0] > 3)
        return false;
    return std::any_of(base.children.begin(), base.children.end(), [](const TreeNode &child) {
        return child.label == "Zone_t" && child.integers.size() >= 3 && child.integers[child.integers.size() / 3] > 0;
    });
}

void ModelBuilder::chooseBase() {
    std::string names;
    for (const TreeNode &node : root_.children) {
        if (node.label != "CGNSBase_t")
            continue;
        names += (names.empty() ? "" : ", ") + node.name;
        if (baseNode_ == nullptr && (options_.base.empty() ? hasCells(node) : node.name == options_.base))
            baseNode_ = &node;
    }
    DNDS_CHECK(baseNode_ != nullptr || options_.base.empty(), ArgumentError, "{}: no base '{}'; there are: {}",
               model_.file, options_.base, names);
    DNDS_CHECK(baseNode_ != nullptr, DataError, "{}: no base with cells of two or three dimensions", model_.file);
    const TreeNode &base = *baseNode_;
    model_.base = base.name;
    DNDS_CHECK(base.integers.size() == 2 && base.integers[0] >= 2 && base.integers[0] <= 3 &&
                   base.integers[1] >= base.integers[0] && base.integers[1] <= 3,
               DataError, "{}: base '{}' is not of two or three dimensions", model_.file, base.name);
    model_.cellDimension = static_cast<int>(base.integers[0]);
    model_.physicalDimension = static_cast<int>(base.integers[1]);
}

void ModelBuilder::readFamilies() {
    for (const TreeNode &node : baseNode_->children)
        if (node.label == "Family_t")
            familyKinds_[node.name] = trimmed(node.textOf("FamilyBC_t"));
}

void ModelBuilder::readZones() {
    for (const TreeNode &node : baseNode_->children)
        if (node.label == "Zone_t")
            readZone(node);
    DNDS_CHECK(!zoneNodes_.empty(), DataError, "{}: base '{}' has no zones", model_.file, model_.base);
}

void ModelBuilder::readZone(const TreeNode &node) {
    Zone zone;
    zone.name = node.name;
    const std::string type = trimmed(node.textOf("ZoneType_t"));
    zone.structured = type != "Unstructured";
    zone.dimensions = zone.structured ? model_.cellDimension : 1;
    const auto width = static_cast<std::size_t>(zone.dimensions);
    DNDS_CHECK((type.empty() || type == "Structured" || type == "Unstructured") && node.integers.size() == 3 * width,
               DataError, "{}: zone '{}' does not state its type and size", model_.file, node.name);
    zone.nodes = 1;
    zone.cells = 1;
    for (std::size_t k = 0; k < width; k++) {
        const index vertices = node.integers[k];
        const index cells = node.integers[width + k];
        DNDS_CHECK(vertices >= 0 && cells >= 0 && (!zone.structured || cells == vertices - 1) &&
                       !__builtin_mul_overflow(zone.nodes, vertices, &zone.nodes) &&
                       !__builtin_mul_overflow(zone.cells, cells, &zone.cells),
                   DataError, "{}: zone '{}' has an impossible size", model_.file, node.name);
        zone.vertices[k] = vertices;
    }
    readCoordinates(node, zone);
    zone.firstNode = model_.nodes;
    model_.nodes += zone.nodes;
    model_.zones.push_back(zone);
    zoneNodes_.push_back(&node);
}

void ModelBuilder::readCoordinates(const TreeNode &node, Zone &zone) const {
    const TreeNode *grid = node.named("GridCoordinates");
    if (grid == nullptr || grid->label != "GridCoordinates_t")
        grid = node.withLabel("GridCoordinates_t");
    DNDS_CHECK(grid != nullptr, DataError, "{}: zone '{}' has no coordinates", model_.file, node.name);
    index after = 0;
    if (const TreeNode *rind = grid->withLabel("Rind_t"); rind != nullptr && !rind->integers.empty()) {
        const bool none = std::all_of(rind->integers.begin(), rind->integers.end(), [](index n) { return n == 0; });
        const bool simple = !zone.structured && rind->integers.size() == 2 && rind->integers[0] >= 0 &&
                            rind->integers[1] >= 0 && rind->integers[0] < (index{1} << 60) &&
                            rind->integers[1] < (index{1} << 60);
        DNDS_CHECK(none || simple, DataError,
                   "{}: zone '{}' has rind planes around its coordinates, which are not read", model_.file, node.name);
        zone.skipped = none ? 0 : rind->integers[0];
        after = none ? 0 : rind->integers[1];
    }
    static constexpr std::array<const char *, 3> names{"CoordinateX", "CoordinateY", "CoordinateZ"};
    for (std::size_t k = 0; k < static_cast<std::size_t>(model_.physicalDimension); k++) {
        const TreeNode *values = grid->named(names[k]);
        DNDS_CHECK(values != nullptr && (values->isReal() || values->isInteger()), DataError,
                   "{}: zone '{}' has no {}; only Cartesian coordinates are read", model_.file, node.name, names[k]);
        DNDS_CHECK(values->size() - zone.skipped - after == zone.nodes, DataError,
                   "{}: zone '{}' has {} nodes, and its {} has {} values", model_.file, node.name, zone.nodes, names[k],
                   values->size());
        zone.coordinates[k] = values;
    }
}

int ModelBuilder::findZone(const std::string &name) const {
    const std::string wanted = lastPart(trimmed(name));
    for (std::size_t zone = 0; zone < model_.zones.size(); zone++)
        if (model_.zones[zone].name == wanted)
            return static_cast<int>(zone);
    return -1;
}

// ---------------------------------------------------------------------------------------------------------------------
// Sections

Section ModelBuilder::readSection(const TreeNode &node, int zone) const {
    Section section;
    section.name = node.name;
    section.zone = zone;
    const std::string where = text(zone, "section", node.name);
    DNDS_CHECK(!node.integers.empty(), DataError, "{}: no element type", where);
    const index code = node.integers[0];
    const TreeNode *range = node.named("ElementRange");
    DNDS_CHECK(range != nullptr && range->integers.size() == 2, DataError, "{}: no ElementRange", where);
    section.firstId = range->integers[0];
    DNDS_CHECK(section.firstId >= 1 && range->integers[1] >= section.firstId - 1 && range->integers[1] < mostElements,
               DataError, "{}: elements {} to {} are no range", where, section.firstId, range->integers[1]);
    section.size = range->integers[1] - section.firstId + 1;
    section.connectivity = node.named("ElementConnectivity");
    section.offsets = node.named("ElementStartOffset");
    section.parents = node.named("ParentElements");
    if (section.parents == nullptr)
        section.parents = node.named("ParentData");

    if (const index corners = model_.polygonCorners(code); corners > 0) {
        section.type = ElementType::Polygon;
        section.nodes = static_cast<int>(corners);
        return section;
    }
    DNDS_CHECK(code >= 0 && code < 1000 && isElementType(static_cast<int>(code)), DataError,
               "{}: element type {} is not known", where, code);
    section.type = static_cast<ElementType>(code);
    section.nodes = elementInfo(section.type).nodes;
    if (section.nodes == 0)
        section.kind = section.offsets != nullptr ? SectionKind::Offsets : SectionKind::Stream;
    return section;
}

void ModelBuilder::checkConnectivity(Section &section) {
    const std::string where = model_.sectionText(section);
    DNDS_CHECK(section.connectivity != nullptr && section.connectivity->isInteger(), DataError,
               "{}: no ElementConnectivity of integers", where);
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

void ModelBuilder::readSections(int zone) {
    std::vector<Section> sections;
    for (const TreeNode &child : zoneNodes_[static_cast<std::size_t>(zone)]->children)
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
                   DataError, "{}: its elements are numbered as some of section '{}'", model_.sectionText(sections[k]),
                   before.name);
    }
    sortIntoLists(zone, std::move(sections));
}

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
            model_.warnings.push_back(fmt::format("{}: its {} elements of type {} are left out",
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
    cells.size = model_.zones[static_cast<std::size_t>(zone)].cells;
    DNDS_CHECK(cells.size <= 2 * faces, DataError, "{}: {} cells, but {} faces", model_.zoneText(zone), cells.size,
               faces);
    model_.cells.push_back(std::move(cells));
}

// ---------------------------------------------------------------------------------------------------------------------
// Point sets and boundary conditions

/// `suffix` is "" or "Donor". Nothing where there is no point set that can be understood, for which `text` is warned.
std::optional<PointSet> ModelBuilder::readPoints(const TreeNode &node, int zone, const std::string &suffix,
                                                 const std::string &where) const {
    const Zone &info = model_.zones[static_cast<std::size_t>(zone)];
    const std::string location = trimmed(node.textOf("GridLocation_t"));
    PointSet points;
    points.vertices = location.empty() || location == "Vertex";
    points.numbersEach = info.dimensions;
    const TreeNode *range = node.named("PointRange" + suffix);
    const TreeNode *list = node.named("PointList" + suffix);
    if (range == nullptr && list == nullptr) {
        points.vertices = false;
        range = node.named("ElementRange" + suffix);
        list = node.named("ElementList" + suffix);
    }
    const auto width = static_cast<std::size_t>(info.dimensions);
    if (range != nullptr) {
        DNDS_CHECK(range->integers.size() == 2 * width, DataError, "{}: a point range of {} numbers", where,
                   range->integers.size());
        if (info.structured) {
            points.grid.emplace(std::array<Triple, 2>{Triple{1, 1, 1}, Triple{1, 1, 1}});
            for (std::size_t k = 0; k < width; k++) {
                (*points.grid)[0][k] = range->integers[k];
                (*points.grid)[1][k] = range->integers[width + k];
            }
            return points;
        }
        points.first = range->integers[0];
        points.last = range->integers[1];
        DNDS_CHECK(points.first >= 1 && points.last >= points.first && points.last < mostElements, DataError,
                   "{}: {} to {} is no range", where, points.first, points.last);
        return points;
    }
    if (list == nullptr)
        return std::nullopt;
    DNDS_CHECK(list->size() == 0 || list->isInteger(), DataError, "{}: its point list is not one of integers", where);
    DNDS_CHECK(list->size() % info.dimensions == 0, DataError, "{}: a point list of {} numbers", where, list->size());
    points.list = list;
    return points;
}

int ModelBuilder::patchFor(const std::string &name, const std::string &kind, const std::string &family, int zone) {
    const auto equal = [&](const BoundaryPatch &patch) { return patch.name == name; };
    const auto found = std::find_if(model_.patches.begin(), model_.patches.end(), equal);
    if (found == model_.patches.end()) {
        model_.patches.push_back({name, kind, family});
        return static_cast<int>(model_.patches.size()) - 1;
    }
    if (found->kind == kind && found->family == family)
        return static_cast<int>(found - model_.patches.begin());
    const std::string other = model_.zones[static_cast<std::size_t>(zone)].name + "/" + name;
    model_.patches.push_back({other, kind, family});
    model_.warnings.push_back(fmt::format("{}: another boundary condition of that name is of another kind; this one is "
                                          "called '{}'",
                                          text(zone, "boundary condition", name), other));
    return static_cast<int>(model_.patches.size()) - 1;
}

void ModelBuilder::readConditions(int zone) {
    for (const TreeNode &group : zoneNodes_[static_cast<std::size_t>(zone)]->children) {
        if (group.label != "ZoneBC_t")
            continue;
        for (const TreeNode &node : group.children)
            if (node.label == "BC_t")
                addCondition(node, zone);
    }
}

void ModelBuilder::addCondition(const TreeNode &node, int zone) {
    anyCondition_ = true;
    const std::string where = text(zone, "boundary condition", node.name);
    const std::string family = trimmed(node.textOf("FamilyName_t"));
    std::string kind = trimmed(node.text);
    if (kind == "FamilySpecified") {
        const auto known = familyKinds_.find(lastPart(family));
        kind = known == familyKinds_.end() ? "" : known->second;
    }
    if (kind == "Null")
        kind.clear();
    BoundaryCondition condition;
    condition.name = node.name;
    condition.zone = zone;
    condition.patch = patchFor(node.name, kind, family, zone);
    const auto points = readPoints(node, zone, "", where);
    if (!points) {
        model_.warnings.push_back(where + ": no point set, so it covers nothing");
        return;
    }
    condition.points = *points;
    if (condition.points.grid)
        condition.section = addPatchSection(zone, *condition.points.grid, node.name);
    model_.conditions.push_back(std::move(condition));
}

/// The faces of one side of a structured zone. The range may be one of vertices or of faces: what it has in common is
/// that one index does not change.
int ModelBuilder::addPatchSection(int zone, const std::array<Triple, 2> &range, const std::string &name) {
    const Zone &info = model_.zones[static_cast<std::size_t>(zone)];
    Section section;
    section.name = name;
    section.zone = zone;
    section.kind = SectionKind::Patch;
    section.type = model_.cellDimension == 3 ? ElementType::Quad4 : ElementType::Bar2;
    section.nodes = elementInfo(section.type).nodes;
    section.size = 1;
    int constant = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(info.dimensions); k++) {
        section.low[k] = std::min(range[0][k], range[1][k]);
        section.high[k] = std::max(range[0][k], range[1][k]);
        DNDS_CHECK(section.low[k] >= 1 && section.high[k] <= info.vertices[k], DataError,
                   "{}: its range leaves the zone", text(zone, "point range", name));
        constant += section.low[k] == section.high[k] ? 1 : 0;
        section.size *= std::max<index>(section.high[k] - section.low[k], 1);
    }
    if (constant != 1) {
        model_.warnings.push_back(text(zone, "point range", name) + ": it is no side of the zone, and is left out");
        section.size = 0;
    }
    model_.faces.push_back(std::move(section));
    return static_cast<int>(model_.faces.size()) - 1;
}

void ModelBuilder::makePatchesOfSections() {
    model_.patchesAreSections = true;
    for (const auto *list : {&model_.cells, &model_.faces})
        for (const Section &section : *list) {
            const bool faces = list == &model_.faces && section.type != ElementType::Polygon;
            if (!faces && section.type != ElementType::Mixed)
                continue;
            BoundaryCondition condition;
            condition.name = section.name;
            condition.zone = section.zone;
            condition.patch = patchFor(section.name, "", "", section.zone);
            condition.points.first = section.firstId;
            condition.points.last = section.firstId + section.size - 1;
            model_.conditions.push_back(std::move(condition));
        }
}

// ---------------------------------------------------------------------------------------------------------------------
// Connections

void ModelBuilder::readConnections(int zone) {
    for (const TreeNode &group : zoneNodes_[static_cast<std::size_t>(zone)]->children) {
        if (group.label != "ZoneGridConnectivity_t")
            continue;
        for (const TreeNode &node : group.children)
            if (node.label == "GridConnectivity_t")
                addConnection(node, group, zone);
            else if (node.label == "GridConnectivity1to1_t")
                addStructuredConnection(node, group, zone);
    }
}

void ModelBuilder::addConnection(const TreeNode &node, const TreeNode &group, int zone) {
    const std::string where = text(zone, "connection", node.name);
    const std::string type = trimmed(node.textOf("GridConnectivityType_t"));
    const std::string location = trimmed(node.textOf("GridLocation_t"));
    Connection connection;
    connection.name = node.name;
    connection.zone = zone;
    connection.donor = findZone(node.text);
    DNDS_CHECK(connection.donor >= 0, DataError, "{}: there is no zone '{}'", where, trimmed(node.text));
    const auto points = readPoints(node, zone, "", where);
    const auto donorPoints = readPoints(node, connection.donor, "Donor", where);
    if (type != "Abutting1to1" || location == "CellCenter" || !points || !donorPoints || points->grid ||
        donorPoints->grid) {
        model_.warnings.push_back(
            fmt::format("{}: type '{}' at '{}' is left out; only Abutting1to1 between vertices or "
                        "faces is read",
                        where, type, location));
        return;
    }
    connection.points = *points;
    connection.donorPoints = *donorPoints;
    DNDS_CHECK(points->size() == donorPoints->size(), DataError, "{}: {} points on one side and {} on the other", where,
               points->size(), donorPoints->size());
    connection.periodic = readPeriodic(node, group, zone);
    model_.connections.push_back(std::move(connection));
}

void ModelBuilder::addStructuredConnection(const TreeNode &node, const TreeNode &group, int zone) {
    const std::string where = text(zone, "connection", node.name);
    Connection connection;
    connection.name = node.name;
    connection.zone = zone;
    connection.donor = findZone(node.text);
    DNDS_CHECK(connection.donor >= 0, DataError, "{}: there is no zone '{}'", where, trimmed(node.text));
    const auto points = readPoints(node, zone, "", where);
    const auto donorPoints = readPoints(node, connection.donor, "Donor", where);
    DNDS_CHECK(points && donorPoints && points->grid && donorPoints->grid, DataError,
               "{}: it does not give a range in two structured zones", where);
    connection.points = *points;
    connection.donorPoints = *donorPoints;
    const auto width = static_cast<std::size_t>(model_.cellDimension);
    if (const TreeNode *transform = node.named("Transform"); transform != nullptr) {
        DNDS_CHECK(transform->integers.size() == width, DataError, "{}: Transform does not fit the zone", where);
        for (std::size_t k = 0; k < width; k++)
            connection.axes[k] = static_cast<int>(std::clamp<index>(transform->integers[k], -4, 4));
    }
    connection.sections = {addPatchSection(zone, *points->grid, node.name),
                           addPatchSection(connection.donor, *donorPoints->grid, node.name)};
    std::set<int> seen;
    const auto &from = *connection.points.grid;
    const auto &to = *connection.donorPoints.grid;
    for (std::size_t k = 0; k < width; k++) {
        const int axis = std::abs(connection.axes[k]);
        DNDS_CHECK(axis >= 1 && axis <= model_.cellDimension && seen.insert(axis).second, DataError,
                   "{}: Transform is no permutation", where);
        const auto d = static_cast<std::size_t>(axis) - 1;
        const index sign = connection.axes[k] < 0 ? -1 : 1;
        DNDS_CHECK(sign * (from[1][k] - from[0][k]) == to[1][d] - to[0][d], DataError,
                   "{}: its two ranges do not fit each other", where);
    }
    connection.periodic = readPeriodic(node, group, zone);
    model_.connections.push_back(std::move(connection));
}

std::vector<float> inSinglePrecision(const std::vector<real> &values) { return {values.begin(), values.end()}; }

std::optional<PeriodicTransform> ModelBuilder::readPeriodic(const TreeNode &node, const TreeNode &group,
                                                            int zone) const {
    const TreeNode *property = node.withLabel("GridConnectivityProperty_t");
    const TreeNode *periodic = property == nullptr ? nullptr : property->withLabel("Periodic_t");
    if (periodic == nullptr)
        return std::nullopt;
    const TreeNode *exact = periodic->named(doublePrecision);
    const auto vectorOf = [&](const char *name) {
        std::array<real, 3> value{};
        const TreeNode *array = periodic->named(name);
        const TreeNode *wide = exact == nullptr ? nullptr : exact->named(name);
        if (array != nullptr && wide != nullptr && inSinglePrecision(wide->reals) == inSinglePrecision(array->reals))
            array = wide;
        if (array != nullptr)
            for (std::size_t k = 0; k < std::min<std::size_t>(array->reals.size(), 3); k++)
                value[k] = array->reals[k];
        return value;
    };
    PeriodicTransform transform{vectorOf("RotationCenter"), vectorOf("RotationAngle"), vectorOf("Translation")};
    const TreeNode *angle = periodic->named("RotationAngle");
    if (model_.physicalDimension == 2 && angle != nullptr && angle->reals.size() < 3 && !angle->reals.empty())
        transform.angles = {0.0, 0.0, transform.angles[0]}; // in the plane
    for (const TreeNode *holder :
         {angle, periodic, property, &node, &group, zoneNodes_[static_cast<std::size_t>(zone)], baseNode_}) {
        const TreeNode *units = holder == nullptr ? nullptr : holder->withLabel("DimensionalUnits_t");
        if (units == nullptr || units->text.size() < 160)
            continue;
        if (trimmed(units->text.substr(128, 32)) == "Degree")
            for (real &value : transform.angles)
                value *= std::numbers::pi / 180.0;
        break;
    }
    return transform;
}

} // namespace

index PointSet::size() const {
    if (list != nullptr)
        return list->size() / numbersEach;
    if (!grid)
        return last - first + 1;
    index size = 1;
    for (std::size_t k = 0; k < 3; k++)
        size *= std::abs((*grid)[1][k] - (*grid)[0][k]) + 1;
    return size;
}

std::string Model::zoneText(int zone) const {
    return fmt::format("{}: zone '{}'", file, zones[static_cast<std::size_t>(zone)].name);
}

std::string Model::sectionText(const Section &section) const {
    return fmt::format("{}, section '{}'", zoneText(section.zone), section.name);
}

Model buildModel(const TreeNode &root, const CgnsOptions &options) { return ModelBuilder(root, options).build(); }

} // namespace DNDS::Geom::Cgns
