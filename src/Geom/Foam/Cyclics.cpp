#include "DNDS/Geom/Foam/Cyclics.hpp"

#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

namespace DNDS::Geom::Foam {

namespace {

constexpr real tolerance = 1e-4; ///< for directions: files often have six digits

// Types whose faces match one to one.
bool isCyclic(const Patch &patch) { return patch.type == "cyclic" || patch.type == "cyclicSlip"; }

/// The faces of a patch together.
/// `centre` is the centroid weighted by area.
struct PatchFaces {
    Point centre{};
    Point normal{}; ///< sum of area vectors
    real area = 0;
};

/// Collective; sums do not depend on the number of ranks.
/// Faces of a patch are a range of numbers, and a rank's faces ascend: two binary searches find its share.
/// Exact sums make the transform the same to the last bit on any number of ranks. O(own faces of the patch) time,
/// and a reduction.
PatchFaces sideOf(CommunicatorView comm, const Patch &patch, const SourceMesh &mesh, const NumberTable &nodes,
                  std::span<const Point> points) {
    constexpr std::size_t columns = 7;
    std::vector<real> rows;
    const std::vector<index> &ids = mesh.faces.fileIds;
    const index begin = std::ranges::lower_bound(ids, patch.begin + 1) - ids.begin();
    const index end = std::ranges::lower_bound(ids, patch.begin + patch.size + 1) - ids.begin();
    for (index face = begin; face < end; face++) {
        const auto corners = mesh.faces.nodesOf(face);
        const auto pointOf = [&](std::size_t i) { return points[toSize(nodes.find(corners[i]))]; };
        const Point normal = 0.5 * twiceArea(corners.size(), pointOf);
        const Point moment = norm(normal) * meanPoint(corners.size(), pointOf);
        rows.insert(rows.end(), normal.begin(), normal.end());
        rows.insert(rows.end(), moment.begin(), moment.end());
        rows.push_back(norm(normal));
    }
    std::array<real, columns> sums{};
    exactSums(comm, rows, sums);
    return {(1.0 / sums[6]) * Point{sums[3], sums[4], sums[5]}, {sums[0], sums[1], sums[2]}, sums[6]};
}

/// The part of `v` perpendicular to the unit vector `axis`.
Point across(const Point &v, const Point &axis) { return v - dot(v, axis) * axis; }

/// The rotation about the unit vector `axis` (Rodrigues' formula).
std::array<real, 9> rotationAbout(const Point &axis, real angle) {
    const real c = std::cos(angle);
    const real s = std::sin(angle);
    std::array<real, 9> matrix{};
    for (std::size_t i = 0; i < 3; i++)
        for (std::size_t j = 0; j < 3; j++)
            matrix[3 * i + j] = (1 - c) * axis[i] * axis[j] + (i == j ? c : 0.0);
    for (std::size_t i = 0; i < 3; i++) {
        const std::size_t j = (i + 1) % 3;
        const std::size_t k = (i + 2) % 3;
        matrix[3 * j + k] -= s * axis[i];
        matrix[3 * k + j] += s * axis[i];
    }
    return matrix;
}

/// The motion of `first` to `second`, whose normals point out of the mesh; nothing if faces do not determine it.
/// Translational: the difference of the centres. Rotational: about the axis of the file, or the one perpendicular to
/// both mean normals; the angle turns one normal into the other.
std::optional<PeriodicTransform> transformOf(const Patch &patch, const PatchFaces &first, const PatchFaces &second) {
    const Point turned = -1.0 * second.normal;
    const bool parallel = norm(turned - first.normal) <= tolerance * (first.area + second.area);
    const bool rotates = patch.transform == "rotational" || (patch.transform != "translational" && !parallel);
    if (!rotates)
        return PeriodicTransform{{}, {}, second.centre - first.centre};

    const bool given = norm(patch.axis) > 0;
    const Point axis = given ? patch.axis : cross(first.normal, turned);
    if (!given && !(norm(axis) > tolerance * norm(first.normal) * norm(turned)))
        return {};
    const Point unit = (1.0 / norm(axis)) * axis;
    Point from = across(first.normal, unit);
    Point to = across(turned, unit);
    PeriodicTransform transform;
    transform.centre = patch.centre;
    if (given && norm(from) <= tolerance * first.area) { // the patch is a disc around the axis, or the like
        from = across(first.centre - transform.centre, unit);
        to = across(second.centre - transform.centre, unit);
    }
    const real angle = std::atan2(dot(cross(from, to), unit), dot(from, to));
    // Both centres of faces are on a circle about the axis, `angle` apart: its centre is the middle between them, moved
    // across by half their distance over tan(angle / 2).
    if (!given) { // the point that the rotation of one centre to the other keeps
        const Point apart = across(second.centre - first.centre, unit);
        transform.centre = 0.5 * (first.centre + second.centre) + (0.5 / std::tan(0.5 * angle)) * cross(unit, apart);
    }
    transform.angles = anglesOf(rotationAbout(unit, angle));
    return transform;
}

/// The number of the other side of a cyclic patch. Throws DataError.
std::size_t otherSide(const PolyMesh &poly, std::size_t p) {
    const Patch &patch = poly.patches[p];
    const std::string where = fmt::format("{}/boundary: cyclic patch '{}'", poly.folder, patch.name);
    DNDS_CHECK(!patch.neighbour.empty(), DataError,
               "{} has no neighbourPatch: both sides are in one patch; foamUpgradeCyclics of OpenFOAM divides it",
               where);
    const auto found = std::ranges::find(poly.patches, patch.neighbour, &Patch::name);
    DNDS_CHECK(found != poly.patches.end() && isCyclic(*found) && found->neighbour == patch.name &&
                   found->name != patch.name,
               DataError, "{} has the neighbourPatch '{}', which is no cyclic patch with '{}' as its neighbour", where,
               patch.neighbour, patch.name);
    DNDS_CHECK(found->size == patch.size, DataError, "{} has {} faces, but its neighbour '{}' {}", where, patch.size,
               found->name, found->size);
    return static_cast<std::size_t>(found - poly.patches.begin());
}

/// The boundary conditions of CGNS that types of patches are.
std::string kindOf(const std::string &type) {
    static const std::map<std::string, std::string, std::less<>> kinds{
        {"wall", "BCWall"}, {"symmetry", "BCSymmetryPlane"}, {"symmetryPlane", "BCSymmetryPlane"}};
    const auto found = kinds.find(type);
    return found == kinds.end() ? "" : found->second;
}

/// The marks of patches that are sides of connections, which are added to `mesh`; others keep 0. Collective.
///
/// Sums over a side decide its motion, not pairs of faces, so that their order in the file does not matter; `buildMesh`
/// then pairs faces by position, and warns if they do not fit.
/// Marks of connections are negative, so that 0 can mean none.
/// One query for coordinates; then two exact sums for each pair of patches, which all ranks enter: the conditions
/// depend on the patches only, and on sums that all ranks have.
std::vector<int> addConnections(CommunicatorContext &context, const PolyMesh &poly, SourceMesh &mesh) {
    const CommunicatorView &comm = context.comm();
    std::vector<int> marks(poly.patches.size(), 0);
    NumberTable nodes;
    for (index face = 0; face < mesh.faces.size(); face++) {
        const index number = mesh.faces.fileIds[toSize(face)] - 1;
        const auto after = std::ranges::upper_bound(poly.patches, number, {}, &Patch::begin);
        if (isCyclic(*(after - 1)))
            for (const index node : mesh.faces.nodesOf(face))
                nodes.add(node);
    }
    const auto blocks = GlobalMapping::create(comm, mesh.nodes());
    const std::vector<Point> points = fetchCoordinates(*blocks, mesh.coordinates, nodes.numbers());
    for (std::size_t p = 0; p < poly.patches.size(); p++) {
        const Patch &patch = poly.patches[p];
        if (patch.type.starts_with("cyclic") && !isCyclic(patch))
            mesh.warnings.push_back(
                fmt::format("{}: patch '{}' of type {} is not connected to its other side: their faces "
                            "need not match",
                            mesh.origin, patch.name, patch.type));
        if (!isCyclic(patch))
            continue;
        const std::size_t other = otherSide(poly, p);
        if (other < p || patch.size == 0)
            continue;
        const PatchFaces first = sideOf(comm, patch, mesh, nodes, points);
        const auto transform = transformOf(patch, first, sideOf(comm, poly.patches[other], mesh, nodes, points));
        if (!transform) {
            mesh.warnings.push_back(
                fmt::format("{}: cyclic patches '{}' and '{}' are not connected: their faces do not "
                            "determine the axis of the rotation, and there is no rotationAxis",
                            mesh.origin, patch.name, poly.patches[other].name));
            continue;
        }
        const auto connection = static_cast<int>(mesh.periodic.size());
        mesh.periodic.push_back({patch.name + "_" + poly.patches[other].name, *transform});
        marks[p] = -1 - 2 * connection;
        marks[other] = -2 - 2 * connection;
    }
    return marks;
}

} // namespace

// Patches that are no sides of connections, in the order of the file; then the mark of each face by its number.
void addBoundaries(CommunicatorContext &context, const PolyMesh &poly, SourceMesh &mesh) {
    std::vector<int> marks = addConnections(context, poly, mesh);
    for (std::size_t p = 0; p < poly.patches.size(); p++)
        if (marks[p] == 0) {
            marks[p] = static_cast<int>(mesh.patches.size());
            const Patch &patch = poly.patches[p];
            mesh.patches.push_back({patch.name, kindOf(patch.type), patch.type});
        }
    for (const index id : mesh.faces.fileIds) {
        const auto after = std::ranges::upper_bound(poly.patches, id - 1, {}, &Patch::begin);
        mesh.faceMarks.push_back(marks[toSize(after - 1 - poly.patches.begin())]);
    }
}

} // namespace DNDS::Geom::Foam
