#include "DNDS/Geom/Cgns/ModelBuilder.hpp"

#include <cmath>
#include <numbers>
#include <set>

namespace DNDS::Geom::Cgns {

namespace {

std::vector<float> inSinglePrecision(const std::vector<real> &values) { return {values.begin(), values.end()}; }

} // namespace

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

/// Fills in what all kinds of connections share; returns its name for messages.
std::string ModelBuilder::startConnection(const TreeNode &node, int zone, Connection &connection) const {
    const std::string where = text(zone, "connection", node.name);
    connection.name = node.name;
    connection.zone = zone;
    connection.donor = findZone(node.text);
    DNDS_CHECK(connection.donor >= 0, DataError, "{}: there is no zone '{}'", where, trimmed(node.text));
    return where;
}

void ModelBuilder::addConnection(const TreeNode &node, const TreeNode &group, int zone) {
    Connection connection;
    const std::string where = startConnection(node, zone, connection);
    const std::string type = trimmed(node.textOf("GridConnectivityType_t"));
    const std::string location = trimmed(node.textOf("GridLocation_t"));
    const auto points = readPoints(node, zone, "", where);
    const auto donorPoints = readPoints(node, connection.donor, "Donor", where);
    // Lists of a structured zone have its vertices; its faces have no numbers.
    const auto hasNumbers = [&](const std::optional<PointSet> &set, int of) {
        return set && !set->grid && (set->vertices || !model_.zones[static_cast<std::size_t>(of)].structured);
    };
    if (type != "Abutting1to1" || location == "CellCenter" || !hasNumbers(points, zone) ||
        !hasNumbers(donorPoints, connection.donor)) {
        model_.warnings.push_back(fmt::format("{}: type '{}' at '{}' is left out; only Abutting1to1 between vertices, "
                                              "or faces of unstructured zones, is read",
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
    Connection connection;
    const std::string where = startConnection(node, zone, connection);
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
    const auto &from = *connection.points.grid;
    const auto &to = *connection.donorPoints.grid;
    // The entry of an index that does not change may be 0: it is the one that the others leave.
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

} // namespace DNDS::Geom::Cgns
