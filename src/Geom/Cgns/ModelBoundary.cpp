#include "DNDS/Geom/Cgns/ModelBuilder.hpp"

#include <fmt/ranges.h>

namespace DNDS::Geom::Cgns {

namespace {

// Numbers in a message.
std::string textOf(const std::vector<index> &numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }

/// Sets the range of a point set, or its problem.
void setRange(const std::vector<index> &range, const Zone &zone, PointSet &points) {
    const auto width = static_cast<std::size_t>(zone.dimensions);
    if (range.size() != 2 * width) {
        points.problem = fmt::format("a point range has {} numbers instead of {}", range.size(), 2 * width);
        return;
    }
    if (zone.structured) {
        points.grid.emplace(std::array<Triple, 2>{Triple{1, 1, 1}, Triple{1, 1, 1}});
        for (std::size_t k = 0; k < width; k++) {
            (*points.grid)[0][k] = range[k];
            (*points.grid)[1][k] = range[width + k];
            if (std::min(range[k], range[width + k]) < 1 || std::max(range[k], range[width + k]) > zone.vertices[k])
                points.problem =
                    fmt::format("its range [{}] leaves the zone of {} nodes", textOf(range),
                                fmt::join(zone.vertices.begin(), zone.vertices.begin() + zone.dimensions, " x "));
        }
        return;
    }
    points.first = range[0];
    points.last = range[1];
    if (points.first < 1 || points.last < points.first || points.last >= maxElements)
        points.problem = fmt::format("{} to {} is not a range", points.first, points.last);
    else if (points.vertices && points.last > zone.nodes)
        points.problem = fmt::format("nodes {} to {} of a zone with {} nodes", points.first, points.last, zone.nodes);
}

} // namespace

/// `suffix` is "" or "Donor". Empty if there is no point set; one may have a problem.
/// PointRange and PointList, or the older ElementRange and ElementList.
std::optional<PointSet> ModelBuilder::readPoints(const TreeNode &node, int zone, const std::string &suffix) const {
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
    if (range != nullptr) {
        setRange(range->integers, info, points);
        return points;
    }
    if (list == nullptr)
        return std::nullopt;
    points.list = list;
    if (list->size() != 0 && !list->isInteger())
        points.problem = "its point list does not hold integers";
    else if (list->size() % info.dimensions != 0)
        points.problem = fmt::format("a point list of {} numbers", list->size());
    return points;
}

/// The same; a problem is an error.
std::optional<PointSet> ModelBuilder::readValidPoints(const TreeNode &node, int zone, const std::string &suffix,
                                                      const std::string &where) const {
    std::optional<PointSet> points = readPoints(node, zone, suffix);
    DNDS_CHECK(!points || points->problem.empty(), DataError, "{}: {}", where, points->problem);
    return points;
}

/// Conditions of one name, kind and family in several zones are one patch: most solvers split a wall into zones and
/// name all pieces alike. O(patches).
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
    model_.warnings.push_back(fmt::format("{}: another boundary condition of this name has another kind; this one is "
                                          "called '{}'",
                                          text(zone, "boundary condition", name), other));
    return static_cast<int>(model_.patches.size()) - 1;
}

// All ZoneBC_t of the zone, although the standard allows one.
void ModelBuilder::readConditions(int zone) {
    for (const TreeNode &group : zoneTrees_[static_cast<std::size_t>(zone)]->children) {
        if (group.label != "ZoneBC_t")
            continue;
        for (const TreeNode &node : group.children)
            if (node.label == "BC_t")
                addCondition(node, zone);
    }
}

/// A condition that cannot be read is a warning, not an error: its faces stay unassigned, and the report counts them.
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
    const auto points = readPoints(node, zone, "");
    if (!points || !points->problem.empty()) {
        model_.warnings.push_back(
            points ? fmt::format("{} is left out, its faces stay unassigned: {}", where, points->problem)
                   : where + ": no point set, so it covers nothing");
        return;
    }
    condition.points = *points;
    if (model_.zones[static_cast<std::size_t>(zone)].structured && !points->vertices) {
        const std::optional<int> section = addFaces(node, zone, *points);
        if (!section)
            return;
        condition.section = *section;
    } else if (condition.points.grid) {
        condition.section = addPatchSection(zone, *condition.points.grid, node.name);
    }
    model_.conditions.push_back(std::move(condition));
}

/// The faces of one side of a structured zone whose corners are all in a range of vertices.
/// A range that is constant in exactly one index is a side, or a plane within the zone; a line, a point or a volume
/// is not.
/// A section is added in any case, with size 0 if it is not a side: callers store its position.
int ModelBuilder::addPatchSection(int zone, const std::array<Triple, 2> &range, const std::string &name) {
    const Zone &info = model_.zones[static_cast<std::size_t>(zone)];
    Section section;
    section.name = name;
    section.zone = zone;
    section.size = 1;
    int constant = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(info.dimensions); k++) {
        section.low[k] = std::min(range[0][k], range[1][k]);
        section.high[k] = std::max(range[0][k], range[1][k]);
        if (section.low[k] == section.high[k]) {
            constant++;
            section.normal = static_cast<int>(k);
        } else {
            section.high[k]--;
            section.size *= section.high[k] - section.low[k] + 1;
        }
    }
    if (constant != 1) {
        model_.warnings.push_back(text(zone, "point range", name) + ": it is not a side of the zone and is left out");
        section.size = 0;
    }
    return addPatch(std::move(section));
}

// The kind, type and width are the same for all sections made of structured zones.
int ModelBuilder::addPatch(Section section) {
    section.kind = SectionKind::Patch;
    section.type = model_.cellDimension == 3 ? ElementType::Quad4 : ElementType::Bar2;
    section.nodes = elementInfo(section.type).nodes;
    model_.faces.push_back(std::move(section));
    return static_cast<int>(model_.faces.size()) - 1;
}

namespace {

/// The faces, or the cells at them, that a boundary condition of a structured zone lists.
/// For one condition: decides in which direction its faces lie, from GridLocation, InwardNormalIndex, or, if both are
/// silent, from the range itself.
struct FacePlaces {
    const Zone &zone;
    bool cells;                        ///< lists the cells at the faces
    std::optional<std::size_t> normal; ///< the normal direction of the faces, if known
    bool upward = true;                ///< the zone lies on the side of higher indices

    std::size_t width() const { return static_cast<std::size_t>(zone.dimensions); }
    /// The highest index of faces, or cells, in direction `d`, for faces normal to direction `along`.
    index last(std::size_t d, std::size_t along) const { return zone.vertices[d] - (d == along && !cells ? 0 : 1); }
    /// Whether all indices exist for faces normal to `along`: there is one face more than cells in that direction.
    bool fits(const Section &range, std::size_t along) const {
        for (std::size_t d = 0; d < width(); d++)
            if (range.low[d] < 1 || range.high[d] > last(d, along))
                return false;
        return true;
    }

    void readInwardNormal(const TreeNode *inward);
    bool findNormal(const Section &range);
};

/// Sets the side of the faces on which the zone lies, and their direction if no location has given it.
void FacePlaces::readInwardNormal(const TreeNode *inward) {
    if (inward == nullptr || inward->integers.size() != width() ||
        std::count(inward->integers.begin(), inward->integers.end(), 0) != zone.dimensions - 1)
        return;
    const auto along = static_cast<std::size_t>(
        std::find_if(inward->integers.begin(), inward->integers.end(), [](index n) { return n != 0; }) -
        inward->integers.begin());
    upward = inward->integers[along] > 0;
    normal = normal.value_or(along);
}

/// Finds the only direction in which a range may be a side of the zone, or else a plane within it; false if the range
/// fits no direction.
bool FacePlaces::findNormal(const Section &range) {
    std::vector<std::size_t> sides;
    std::vector<std::size_t> planes;
    bool anyFits = false;
    for (std::size_t d = 0; d < width(); d++) {
        anyFits = anyFits || fits(range, d);
        if (range.low[d] != range.high[d] || !fits(range, d))
            continue;
        const bool atFirst = range.low[d] == 1;
        const bool atLast = range.low[d] == last(d, d);
        if (cells ? atFirst != atLast : atFirst || atLast)
            sides.push_back(d);
        else if (!cells)
            planes.push_back(d);
    }
    const auto &candidates = sides.empty() ? planes : sides;
    if (candidates.size() == 1) {
        normal = candidates[0];
        upward = range.low[*normal] == 1;
    }
    return anyFits;
}

} // namespace

/// The faces that a boundary condition of a structured zone gives by their own indices or by those of the cells at
/// them; both are named by their lowest corner (SIDS, section 3.2). Empty, with a warning, where the standard does not
/// determine the faces: a location without faces, or indices that fit faces of several directions.
std::optional<int> ModelBuilder::addFaces(const TreeNode &node, int zone, const PointSet &points) {
    const Zone &info = model_.zones[static_cast<std::size_t>(zone)];
    const std::string where = text(zone, "boundary condition", node.name);
    const std::string location = trimmed(node.textOf("GridLocation_t"));
    const auto leaveOut = [&](const std::string &why) -> std::optional<int> {
        model_.warnings.push_back(fmt::format("{} is left out: {}", where, why));
        return std::nullopt;
    };
    static constexpr std::array<std::string_view, 3> directions{"IFaceCenter", "JFaceCenter", "KFaceCenter"};
    const auto named = std::find(directions.begin(), directions.begin() + info.dimensions, location);
    FacePlaces places{info, location == "CellCenter", std::nullopt};
    const std::size_t width = places.width();
    const bool anyFace = location == "FaceCenter" || (location == "EdgeCenter" && width == 2);
    if (named != directions.begin() + info.dimensions)
        places.normal = static_cast<std::size_t>(named - directions.begin());
    if (!places.normal && !places.cells && !anyFace)
        return leaveOut(
            fmt::format("its points are at '{}', where a zone of {} indices has no faces", location, width));
    places.readInwardNormal(node.named("InwardNormalIndex"));

    Section section;
    section.name = node.name;
    section.zone = zone;
    section.corners = points.list;
    const auto leavesZone = [&] {
        return leaveOut(fmt::format("its range [{}, {}] leaves the {} of the zone",
                                    fmt::join((*points.grid)[0].begin(), (*points.grid)[0].begin() + width, ", "),
                                    fmt::join((*points.grid)[1].begin(), (*points.grid)[1].begin() + width, ", "),
                                    places.cells ? "cells" : "faces"));
    };
    if (points.grid) {
        for (std::size_t d = 0; d < width; d++) {
            section.low[d] = std::min((*points.grid)[0][d], (*points.grid)[1][d]);
            section.high[d] = std::max((*points.grid)[0][d], (*points.grid)[1][d]);
        }
        if (!places.normal && !places.findNormal(section))
            return leavesZone();
    }
    if (!places.normal)
        return leaveOut(
            fmt::format("its points at '{}' do not determine the direction of its faces; {}FaceCenter or an "
                        "InwardNormalIndex would",
                        location, width == 3 ? "I-, J- or K" : "I- or J"));
    const std::size_t normal = *places.normal;
    section.normal = static_cast<int>(normal);
    section.shift = places.cells && !places.upward ? 1 : 0;
    if (points.grid) {
        if (!places.fits(section, normal))
            return leavesZone();
        if (places.cells && section.low[normal] != section.high[normal])
            return leaveOut("its cells are more than one layer");
        section.size = 1;
        for (std::size_t d = 0; d < width; d++)
            section.size *= section.high[d] - section.low[d] + 1;
        section.low[normal] += section.shift;
        section.high[normal] += section.shift;
    } else {
        section.size = points.size();
        for (std::size_t d = 0; d < width; d++)
            section.high[d] = places.last(d, normal);
    }
    return addPatch(std::move(section));
}

/// Files without boundary conditions name their sections after parts of the boundary. Polygons are not used: in such
/// files they are the faces of all polyhedra.
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

} // namespace DNDS::Geom::Cgns
