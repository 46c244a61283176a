#include "DNDS/Geom/Cgns/ModelBuilder.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"

#include <cmath>
#include <numbers>
#include <set>

namespace DNDS::Geom::Cgns {

namespace {

/// For comparison: a double that rounds to the stored float is the same transform with more digits.
std::vector<float> inSinglePrecision(const std::vector<real> &values) { return {values.begin(), values.end()}; }

} // namespace

// Both kinds, in the order of the file.
void ModelBuilder::readConnections(int zone) {
    for (const TreeNode &group : zoneTrees_[static_cast<std::size_t>(zone)]->children) {
        if (group.label != "ZoneGridConnectivity_t")
            continue;
        for (const TreeNode &node : group.children)
            if (node.label == "GridConnectivity_t")
                addConnection(node, group, zone);
            else if (node.label == "GridConnectivity1to1_t")
                addStructuredConnection(node, group, zone);
    }
}

/// Fills in the common part of all kinds of connections. False, with a warning, if the other zone is in another base.
bool ModelBuilder::startConnection(const TreeNode &node, int zone, Connection &connection) {
    const std::string where = text(zone, "connection", node.name);
    connection.name = node.name;
    connection.zone = zone;
    connection.donor = findZone(node.text);
    if (connection.donor >= 0)
        return true;
    const std::string other = otherBaseOf(node.text);
    DNDS_CHECK(!other.empty(), DataError, "{}: there is no zone '{}'", where, trimmed(node.text));
    model_.warnings.push_back(fmt::format("{} is left out: zone '{}' is in base '{}', and one base is read at a time",
                                          where, trimmed(node.text), other));
    return false;
}

/// General connections by lists. Overlapping and mismatched ones (Overset, Abutting) are left out with a warning, as
/// they join no nodes.
void ModelBuilder::addConnection(const TreeNode &node, const TreeNode &group, int zone) {
    Connection connection;
    if (!startConnection(node, zone, connection))
        return;
    const std::string where = text(zone, "connection", node.name);
    const std::string type = trimmed(node.textOf("GridConnectivityType_t"));
    const std::string location = trimmed(node.textOf("GridLocation_t"));
    const auto points = readValidPoints(node, zone, "", where);
    const auto donorPoints = readValidPoints(node, connection.donor, "Donor", where);
    const auto structured = [&](int of) { return model_.zones[static_cast<std::size_t>(of)].structured; };
    std::string reason;
    if (type != "Abutting1to1" || location == "CellCenter" || (points && points->grid) ||
        (donorPoints && donorPoints->grid))
        reason = fmt::format("type '{}' at '{}' is left out; only Abutting1to1 between vertices or faces, of "
                             "structured zones in lists, is read",
                             type, location);
    else if (!points || !donorPoints)
        reason = fmt::format("it is left out: it has no list of the {} (PointList{})",
                             points ? "other zone's points" : "zone's points", points ? "Donor" : "");
    if (!reason.empty()) {
        model_.warnings.push_back(fmt::format("{}: {}", where, reason));
        return;
    }
    connection.points = *points;
    connection.donorPoints = *donorPoints;
    DNDS_CHECK(points->size() == donorPoints->size(), DataError, "{}: {} points on one side and {} on the other", where,
               points->size(), donorPoints->size());
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (!points->vertices && structured(side == 0 ? zone : connection.donor))
            connection.sections[side] = addListedFaces(connection, side, location);
    connection.periodic = readPeriodic(node, group, zone);
    model_.connections.push_back(std::move(connection));
}

/// The faces of a structured zone that a connection lists by their lowest corners. The location is that of the zone
/// that has the connection.
int ModelBuilder::addListedFaces(const Connection &connection, std::size_t side, const std::string &location) {
    Section section;
    section.name = connection.name;
    section.zone = side == 0 ? connection.zone : connection.donor;
    section.listedBy = "connection";
    const PointSet &points = side == 0 ? connection.points : connection.donorPoints;
    section.corners = points.list;
    section.size = points.size();
    section.normal = -1;
    for (const std::string_view direction : {"IFaceCenter", "JFaceCenter", "KFaceCenter"})
        if (side == 0 && location == direction)
            section.normal = direction[0] - 'I';
    const Zone &info = model_.zones[static_cast<std::size_t>(section.zone)];
    for (std::size_t d = 0; d < static_cast<std::size_t>(info.dimensions); d++)
        section.high[d] = info.vertices[d] - (static_cast<int>(d) == section.normal ? 0 : 1);
    return addPatch(std::move(section));
}

/// Ranges in two structured zones, with Transform: entry k is the donor's axis that follows index k, signed. The two
/// ranges must have the same extents under it.
void ModelBuilder::addStructuredConnection(const TreeNode &node, const TreeNode &group, int zone) {
    Connection connection;
    if (!startConnection(node, zone, connection))
        return;
    const std::string where = text(zone, "connection", node.name);
    const auto points = readValidPoints(node, zone, "", where);
    const auto donorPoints = readValidPoints(node, connection.donor, "Donor", where);
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
    const auto &from = *connection.points.grid;
    const auto &to = *connection.donorPoints.grid;
    // The entry of an index that does not change may be 0: it is the index that the others leave over.
    int left = 0;
    for (std::size_t k = 0; k < width; k++)
        left += static_cast<int>(k) + 1 - std::abs(connection.axes[k]);
    for (std::size_t k = 0; k < width; k++)
        if (connection.axes[k] == 0 && from[0][k] == from[1][k])
            connection.axes[k] = left;
    std::set<int> seen;
    for (std::size_t k = 0; k < width; k++) {
        const int axis = std::abs(connection.axes[k]);
        DNDS_CHECK(axis >= 1 && axis <= model_.cellDimension && seen.insert(axis).second, DataError,
                   "{}: Transform is not a permutation", where);
        const auto d = static_cast<std::size_t>(axis) - 1;
        const index sign = connection.axes[k] < 0 ? -1 : 1;
        DNDS_CHECK(sign * (from[1][k] - from[0][k]) == to[1][d] - to[0][d], DataError,
                   "{}: its two ranges do not match", where);
    }
    connection.periodic = readPeriodic(node, group, zone);
    model_.connections.push_back(std::move(connection));
}

/// The standard stores single precision; a writer that is aware of its loss adds a node with doubles, used if it
/// agrees. Angles are in the units of the nearest DimensionalUnits_t up the tree, radians without one.
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
         {angle, periodic, property, &node, &group, zoneTrees_[static_cast<std::size_t>(zone)], baseTree_}) {
        const TreeNode *units = holder == nullptr ? nullptr : holder->withLabel("DimensionalUnits_t");
        // Five words of 32 characters: mass, length, time, temperature, angle.
        if (units == nullptr || units->text.size() < 160)
            continue;
        if (trimmed(units->text.substr(128, 32)) == "Degree")
            for (real &value : transform.angles)
                value *= std::numbers::pi / 180.0;
        break;
    }
    return transform;
}

namespace {

/// Sets the normal of a section of listed faces whose indices have these bounds, the higher ones negated.
void setNormal(const Zone &zone, std::span<const index> bounds, Section &section) {
    int sides = 0;
    for (int d = 0; d < zone.dimensions; d++) {
        const auto k = static_cast<std::size_t>(d);
        if (bounds[k] != -bounds[3 + k] || (bounds[k] != 1 && bounds[k] != zone.vertices[k]))
            continue;
        sides++;
        section.normal = d;
    }
    if (sides != 1)
        section.normal = -1;
    else
        section.high[static_cast<std::size_t>(section.normal)]++; // faces, not cells, in this direction
}

} // namespace

/// Each rank reads its even share of the lists and reduces the bounds of their indices: one MPI_MIN for all sections,
/// with upper bounds negated. A side has a constant index at the zone's first or last vertex; if exactly one
/// direction qualifies, it is the normal.
/// O(listed faces / ranks) time. Connections whose side stays ambiguous are dropped, on all ranks alike; their
/// sections stay with size 0, since sections are named by position.
void findListedDirections(const CommunicatorView &comm, Model &model, TreeSource &source) {
    std::vector<std::size_t> unknown;
    for (std::size_t k = 0; k < model.faces.size(); k++)
        if (model.faces[k].kind == SectionKind::Patch && model.faces[k].normal < 0)
            unknown.push_back(k);
    if (unknown.empty())
        return;
    std::vector<index> bounds(6 * unknown.size(), maxElements);
    comm.guarded([&] {
        for (std::size_t u = 0; u < unknown.size(); u++) {
            const Section &section = model.faces[unknown[u]];
            const auto width = static_cast<std::size_t>(model.zones[static_cast<std::size_t>(section.zone)].dimensions);
            const IndexRange share = EvenSplit(section.size, comm.size()).part(comm.rank());
            std::vector<index> listed(static_cast<std::size_t>(share.size()) * width);
            source.read(*section.corners, share.begin * static_cast<index>(width), std::span<index>(listed));
            for (std::size_t i = 0; i < listed.size(); i++) {
                index &low = bounds[6 * u + i % width];
                index &high = bounds[6 * u + 3 + i % width];
                low = std::min(low, std::clamp(listed[i], -maxElements, maxElements));
                high = std::min(high, -std::clamp(listed[i], -maxElements, maxElements));
            }
        }
    });
    comm.allReduce(bounds.data(), static_cast<int>(bounds.size()), MPI_MIN);
    for (std::size_t u = 0; u < unknown.size(); u++) {
        Section &section = model.faces[unknown[u]];
        setNormal(model.zones[static_cast<std::size_t>(section.zone)], std::span<const index>(bounds).subspan(6 * u, 6),
                  section);
    }
    std::vector<Connection> kept;
    for (Connection &connection : model.connections) {
        const auto isUnknown = [&](int k) { return k >= 0 && model.faces[static_cast<std::size_t>(k)].normal < 0; };
        if (std::none_of(connection.sections.begin(), connection.sections.end(), isUnknown)) {
            kept.push_back(std::move(connection));
            continue;
        }
        for (const int k : connection.sections)
            if (k >= 0) {
                model.faces[static_cast<std::size_t>(k)].size = 0;
                model.faces[static_cast<std::size_t>(k)].normal = 0;
            }
        model.warnings.push_back(fmt::format("{}, connection '{}' is left out: the faces of a structured zone that it "
                                             "lists are not all on one side of the zone, or might be on several",
                                             model.zoneText(connection.zone), connection.name));
    }
    model.connections = std::move(kept);
}

} // namespace DNDS::Geom::Cgns
