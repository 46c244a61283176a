#include "DNDS/Geom/Cgns/Model.hpp"

#include "DNDS/Geom/Cgns/ModelBuilder.hpp"

#include <fmt/ranges.h>

#include <cmath>

namespace DNDS::Geom::Cgns {

namespace {

/// The rounded number of the file's version times 1000; 0 if the file does not state it.
int versionOf(const TreeNode &root) {
    const TreeNode *node = root.withLabel("CGNSLibraryVersion_t");
    if (node == nullptr || node->reals.size() != 1 || !(node->reals[0] > 0.0 && node->reals[0] < 100.0))
        return 0;
    return static_cast<int>(std::lround(node->reals[0] * 1000.0));
}

} // namespace

ModelBuilder::ModelBuilder(const TreeNode &root, const CgnsOptions &options) : root_(root), options_(options) {
    model_.file = root.file;
    // Codes of polygons differed before 3.2, and numbers of types in 3.0.
    const int version = versionOf(root);
    model_.polygonCode = version == 0 || version >= 3200 ? 0 : version >= 3000 ? 22 : 21;
    model_.numbers30 = version >= 3000 && version < 3100;
}

/// Zones first, as connections name zones that may come later in the file.
Model ModelBuilder::build() {
    chooseBase();
    readFamilies();
    readZones();
    for (std::size_t zone = 0; zone < zoneTrees_.size(); zone++) {
        readSections(static_cast<int>(zone));
        readConditions(static_cast<int>(zone));
        readConnections(static_cast<int>(zone));
    }
    if (!anyCondition_)
        makePatchesOfSections();
    DNDS_CHECK(!model_.cells.empty(), DataError, "{}: base '{}' has no cells", model_.file, model_.base);
    return std::move(model_);
}

/// Zone sizes are [3 x index dimensions]: vertices, cells, boundary vertices. The first number of cells decides.
bool ModelBuilder::hasCells(const TreeNode &base) {
    if (base.integers.size() != 2 || base.integers[0] < 2 || base.integers[0] > 3)
        return false;
    return std::any_of(base.children.begin(), base.children.end(), [](const TreeNode &child) {
        return child.label == "Zone_t" && child.integers.size() >= 3 && child.integers[child.integers.size() / 3] > 0;
    });
}

/// Without a name the only base with cells is taken; several are an error, since a reader cannot know which one is
/// meant.
void ModelBuilder::chooseBase() {
    std::vector<std::string> names;
    std::vector<std::string> withCells;
    for (const TreeNode &node : root_.children) {
        if (node.label != "CGNSBase_t")
            continue;
        names.push_back(fmt::format("'{}'", node.name));
        if (hasCells(node))
            withCells.push_back(names.back());
        if (baseTree_ == nullptr && (options_.base.empty() ? hasCells(node) : node.name == options_.base))
            baseTree_ = &node;
    }
    DNDS_CHECK(baseTree_ != nullptr || options_.base.empty(), ArgumentError, "{}: no base '{}'; there are: {}",
               model_.file, options_.base, fmt::join(names, ", "));
    DNDS_CHECK(baseTree_ != nullptr, DataError, "{}: no base with cells of two or three dimensions", model_.file);
    DNDS_CHECK(!options_.base.empty() || withCells.size() == 1, DataError,
               "{}: files of several bases are read one base at a time: choose one of {} (dnds-mesh --base, "
               "CgnsOptions::base)",
               model_.file, fmt::join(withCells, ", "));
    const TreeNode &base = *baseTree_;
    model_.base = base.name;
    DNDS_CHECK(base.integers.size() == 2 && base.integers[0] >= 2 && base.integers[0] <= 3 &&
                   base.integers[1] >= base.integers[0] && base.integers[1] <= 3,
               DataError, "{}: base '{}' is not of two or three dimensions", model_.file, base.name);
    // The dimension of cells, then that of space.
    model_.cellDimension = static_cast<int>(base.integers[0]);
    model_.physicalDimension = static_cast<int>(base.integers[1]);
}

/// Kinds of families serve conditions of type FamilySpecified.
void ModelBuilder::readFamilies() {
    for (const TreeNode &node : baseTree_->children)
        if (node.label == "Family_t")
            familyKinds_[node.name] = trimmed(node.textOf("FamilyBC_t"));
}

void ModelBuilder::readZones() {
    for (const TreeNode &node : baseTree_->children)
        if (node.label == "Zone_t")
            readZone(node);
    DNDS_CHECK(!zoneTrees_.empty(), DataError, "{}: base '{}' has no zones", model_.file, model_.base);
}

/// Overflow is checked here once, for products of sizes stated by the file: later arithmetic on zone sizes is safe.
void ModelBuilder::readZone(const TreeNode &node) {
    Zone zone;
    zone.name = node.name;
    zone.tree = &node;
    const std::string type = trimmed(node.textOf("ZoneType_t"));
    zone.structured = type != "Unstructured";
    zone.dimensions = zone.structured ? model_.cellDimension : 1;
    const auto width = static_cast<std::size_t>(zone.dimensions);
    DNDS_CHECK((type.empty() || type == "Structured" || type == "Unstructured") && !node.integers.empty() &&
                   node.integers.size() % 3 == 0,
               DataError, "{}: zone '{}' does not state its type and size", model_.file, node.name);
    DNDS_CHECK(node.integers.size() == 3 * width, DataError,
               "{}: zone '{}' has {} indices, but {} zones of base '{}' have {}{}", model_.file, node.name,
               node.integers.size() / 3, zone.structured ? "structured" : "unstructured", model_.base, width,
               zone.structured ? ", as many as its cells have dimensions: a surface needs a base of its own" : "");
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
    zoneTrees_.push_back(&node);
}

/// Rind points of unstructured zones are a prefix and a suffix of the arrays, which can be skipped; rind planes of
/// structured zones are interleaved and are refused.
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
                   "{}: zone '{}' has rind planes around its coordinates, which are not supported", model_.file,
                   node.name);
        // Values before those of the zone's nodes.
        zone.skipped = none ? 0 : rind->integers[0];
        after = none ? 0 : rind->integers[1];
    }
    static constexpr std::array<const char *, 3> names{"CoordinateX", "CoordinateY", "CoordinateZ"};
    for (std::size_t k = 0; k < static_cast<std::size_t>(model_.physicalDimension); k++) {
        const TreeNode *values = grid->named(names[k]);
        DNDS_CHECK(values != nullptr && (values->isReal() || values->isInteger()), DataError,
                   "{}: zone '{}' has no {}; only Cartesian coordinates are supported", model_.file, node.name,
                   names[k]);
        DNDS_CHECK(values->size() - zone.skipped - after == zone.nodes, DataError,
                   "{}: zone '{}' has {} nodes, but its {} has {} values", model_.file, node.name, zone.nodes, names[k],
                   values->size());
        zone.coordinates[k] = values;
    }
}

/// Accepts "Zone" and "Base/Zone"; -1 if this base has no such zone.
int ModelBuilder::findZone(const std::string &name) const {
    const std::string path = trimmed(name);
    const std::string wanted = lastPart(path);
    if (wanted.size() < path.size() && lastPart(path.substr(0, path.size() - wanted.size() - 1)) != model_.base)
        return -1;
    for (std::size_t zone = 0; zone < model_.zones.size(); zone++)
        if (model_.zones[zone].name == wanted)
            return static_cast<int>(zone);
    return -1;
}

/// The other base with the zone that a connection names, "Base/Zone" or "Zone"; "" if no other base has it.
std::string ModelBuilder::otherBaseOf(const std::string &name) const {
    const std::string path = trimmed(name);
    const std::string zone = lastPart(path);
    const std::string base =
        zone.size() < path.size() ? lastPart(path.substr(0, path.size() - zone.size() - 1)) : std::string();
    for (const TreeNode &node : root_.children)
        if (node.label == "CGNSBase_t" && &node != baseTree_ && (base.empty() || node.name == base) &&
            node.named(zone) != nullptr)
            return node.name;
    return "";
}

// Three forms: a list, a range of numbers, or a range of a structured grid, in any direction.
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
