#include "DNDS/Geom/Locate/CellGeometry.hpp"

#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Locate/Triangles.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace DNDS::Geom {

namespace {

/// Mean value coordinates: the weights of a polygon's corners, given relative to a point in it. Near an edge the
/// formula divides by zero, and the point is interpolated on the edge instead.
/// `to` are the corners minus the point, counter-clockwise about the unit vector `normal`. O(corners).
/// Method: Hormann and Floater (see the header). The tangent of half an angle is sin / (1 + cos), which needs
/// neither an inverse function nor a case for small angles; `below` is 1 + cos times both lengths.
std::vector<real> meanValueWeights(const std::vector<Point> &to, const Point &normal) {
    const std::size_t count = to.size();
    std::vector<real> weights(count, 0.0);
    std::vector<real> length(count);
    for (std::size_t i = 0; i < count; i++) {
        length[i] = norm(to[i]);
        if (length[i] == 0.0) {
            weights[i] = 1.0;
            return weights;
        }
    }
    std::vector<real> tangent(count); // of half the angle between a corner and the next
    for (std::size_t i = 0; i < count; i++) {
        const std::size_t next = i + 1 == count ? 0 : i + 1;
        const real lengths = length[i] * length[next];
        const real below = lengths + dot(to[i], to[next]);
        if (below <= 1e-14 * lengths) { // the point is on this edge
            weights[i] = length[next] / (length[i] + length[next]);
            weights[next] = 1.0 - weights[i];
            return weights;
        }
        tangent[i] = dot(cross(to[i], to[next]), normal) / below;
    }
    real total = 0.0;
    for (std::size_t i = 0; i < count; i++) {
        weights[i] = (tangent[i == 0 ? count - 1 : i - 1] + tangent[i]) / length[i];
        total += weights[i];
    }
    for (real &weight : weights)
        weight /= total;
    return weights;
}

/// One triangle's part of the mean value coordinates of the origin: weights of its corners, to be divided by their sum
/// over all triangles.
struct TriangleWeights {
    std::array<real, 3> weights{};
    bool alone = false; ///< the point is on the triangle: the others do not count
};

/// After the pseudocode of Ju, Schaefer and Warren; `sense` is -1 for triangles that are clockwise from outside.
/// O(1). Degenerate positions are decided by `small`: on the triangle it counts alone, in its plane but outside it
/// it has weight 0.
TriangleWeights meanValueWeights(const std::array<Point, 3> &to, real sense) {
    TriangleWeights result;
    std::array<Point, 3> unit;
    std::array<real, 3> length;
    for (std::size_t i = 0; i < 3; i++) {
        length[i] = norm(to[i]);
        if (length[i] == 0.0) {
            result.weights[i] = 1.0;
            result.alone = true;
            return result;
        }
        unit[i] = (1.0 / length[i]) * to[i];
    }
    std::array<real, 3> angle; // opposite of each corner; accurate near 0 and pi, too
    for (std::size_t i = 0; i < 3; i++) {
        const Point &a = unit[(i + 1) % 3];
        const Point &b = unit[(i + 2) % 3];
        angle[i] = 2.0 * std::atan2(norm(a - b), norm(a + b));
    }
    const real half = 0.5 * (angle[0] + angle[1] + angle[2]);
    constexpr real small = 1e-8;
    // The angles add up to a full turn: the point lies in this triangle, whose corners are weighted as in a plane (by
    // areas), and no other triangle counts.
    if (std::numbers::pi - half < small) {
        for (std::size_t i = 0; i < 3; i++)
            result.weights[i] = std::sin(angle[i]) * length[(i + 1) % 3] * length[(i + 2) % 3];
        result.alone = true;
        return result;
    }
    // The sign tells on which side of the triangle's plane the point is.
    const real side = sense * dot(unit[0], cross(unit[1], unit[2])) < 0.0 ? -1.0 : 1.0;
    std::array<real, 3> cosine;
    std::array<real, 3> sine;
    for (std::size_t i = 0; i < 3; i++) {
        const real below = std::sin(angle[(i + 1) % 3]) * std::sin(angle[(i + 2) % 3]);
        const real above = below > 0.0 ? 2.0 * std::sin(half) * std::sin(half - angle[i]) / below : 2.0;
        cosine[i] = above - 1.0;
        sine[i] = side * std::sqrt(std::max(0.0, above * (2.0 - above)));
    }
    for (const real s : sine)
        if (std::fabs(s) <= small) // in the triangle's plane, beside it
            return result;
    for (std::size_t i = 0; i < 3; i++) {
        const std::size_t next = (i + 1) % 3;
        const std::size_t last = (i + 2) % 3;
        result.weights[i] = (angle[i] - cosine[next] * angle[last] - cosine[last] * angle[next]) /
                            (length[i] * std::sin(angle[next]) * sine[last]);
    }
    return result;
}

} // namespace

CellGeometry::CellGeometry(const UnstructuredMesh &mesh, real tolerance)
    : mesh_(&mesh), tolerance_(tolerance), coordinates_(mesh.coordinates.view()), cellNodes_(mesh.cellNodes.view()),
      cellFaces_(mesh.cellFaces.view()), faceNodes_(mesh.faceNodes.view()), faceCells_(mesh.faceCells.view()) {}

// The map of corners alone lies in their hull; second-order nodes add their distance from it, weighted by shape
// functions whose absolute values have a sum of at most 3.
BoundingBox CellGeometry::boundingBoxOf(LocalIndex cell) const {
    const auto nodes = cellNodes_[cell];
    const ElementType type = mesh_->cellTypes[static_cast<std::size_t>(cell)];
    const ElementLayout layout = elementLayout(type);
    BoundingBox bounds;
    if (layout.nodes == 0 || layout.order < 2) {
        for (const LocalIndex node : nodes)
            bounds.add(nodeAt(node));
        return bounds;
    }
    const ReferenceTable &table = referenceTable(layout.shape);
    for (int k = 0; k < table.corners; k++)
        bounds.add(nodeAt(nodes[k]));
    const auto meanOf = [&](const std::uint8_t *corners, int count) {
        return meanPoint(static_cast<std::size_t>(count), [&](std::size_t i) { return nodeAt(nodes[corners[i]]); });
    };
    static constexpr std::uint8_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    Point bent{};
    for (int k = table.corners; k < layout.nodes; k++) {
        const int quad = k - table.corners - table.edges;
        const Point straight = quad < 0             ? meanOf(table.edge[k - table.corners], 2)
                               : quad < table.quads ? meanOf(table.quad[quad], 4)
                                                    : meanOf(all, table.corners);
        const Point off = nodeAt(nodes[k]) - straight;
        for (std::size_t d = 0; d < 3; d++)
            bent[d] = std::max(bent[d], std::fabs(off[d]));
    }
    bounds.grow(3.0 * bent);
    return bounds;
}

/// Coordinates are taken relative to the point, so that rounding errors are relative to the cell's size, not to its
/// distance from the origin.
bool CellGeometry::has(LocalIndex cell, const Point &point, real slack) const {
    const ElementType type = mesh_->cellTypes[static_cast<std::size_t>(cell)];
    if (type == ElementType::Polyhedron)
        return polyhedronHas(cell, point, slack);
    if (type == ElementType::Polygon)
        return polygonHas(cornersOf(cell, point), slack);
    const auto nodes = cellNodes_[cell];
    // Newton's method may stop early, as at the edges of collapsed elements: then its last point decides. An element
    // that is inside out there, or a point far outside of a curved one, leaves a distance, so that no status is needed.
    const InverseMap found = findReferencePoint(
        type, [&](int k) { return nodeAt(nodes[k]) - point; }, Point{});
    return found.distance <= slack && outside(elementLayout(type).shape, found.reference) <= tolerance_;
}

// Polygons have no second-order nodes: all nodes are corners, in order around them.
std::vector<Point> CellGeometry::cornersOf(LocalIndex cell, const Point &origin) const {
    std::vector<Point> corners;
    for (const LocalIndex node : cellNodes_[cell])
        corners.push_back(nodeAt(node) - origin);
    return corners;
}

// Polygons of surfaces are fans of triangles. In the plane the winding number decides, so that polygons need not be
// convex (Sunday, Inclusion of a point in a polygon, 2001).
// O(corners). The winding number counts crossings of the ray to the right, upward ones positive; half-open
// intervals in y count a corner once.
bool CellGeometry::polygonHas(const std::vector<Point> &corners, real slack) const {
    const std::size_t count = corners.size();
    bool touches = false;
    if (!mesh_->planar) {
        forEachTriangle(
            count, [&](std::size_t i) { return corners[i]; },
            [&](const Point &a, const Point &b, const Point &c) {
                touches = touches || distance2ToTriangle({}, a, b, c) <= slack * slack;
            });
        return touches;
    }
    int winding = 0;
    for (std::size_t i = 0; i < count; i++) {
        const Point &from = corners[i];
        const Point &to = corners[i + 1 == count ? 0 : i + 1];
        touches = touches || distance2ToSegment({}, from, to) <= slack * slack;
        const real turn = cross(from, to)[2];
        if (from[1] <= 0.0 && to[1] > 0.0 && turn > 0.0)
            winding++;
        if (from[1] > 0.0 && to[1] <= 0.0 && turn < 0.0)
            winding--;
    }
    return touches || winding != 0;
}

template <class Visit>
void CellGeometry::forEachFaceOf(LocalIndex cell, Visit &&visit) const {
    const auto faces = cellFaces_[cell];
    for (rowsize k = 0; k < faces.size(); k++)
        visit(faceNodes_[faces[k]], pointsOut(faceCells_, faces, cell, k) ? 1.0 : -1.0);
}

// The winding number by solid angles: 4 pi inside, 0 outside, also where a polyhedron is not convex. On its surface the
// sum is in between and not continuous: there the distance decides.
// O(triangles of the cell). The threshold of 2 pi is halfway between both values, so rounding errors do not matter
// away from the surface.
bool CellGeometry::polyhedronHas(LocalIndex cell, const Point &point, real slack) const {
    real angle = 0.0;
    bool touches = false;
    forEachFaceOf(cell, [&](const auto &corners, real sense) {
        const auto cornerAt = [&](std::size_t i) { return nodeAt(corners[static_cast<rowsize>(i)]) - point; };
        forEachTriangle(static_cast<std::size_t>(corners.size()), cornerAt,
                        [&](const Point &a, const Point &b, const Point &c) {
                            touches = touches || distance2ToTriangle({}, a, b, c) <= slack * slack;
                            angle += sense * solidAngle(a, b, c);
                        });
    });
    return touches || std::fabs(angle) > 2.0 * std::numbers::pi;
}

// The position in the reference element is found again, since `has` keeps none.
void CellGeometry::addWeights(LocalIndex cell, const Point &point, Weights &weights) const {
    const ElementType type = mesh_->cellTypes[static_cast<std::size_t>(cell)];
    if (type == ElementType::Polyhedron)
        return addPolyhedronWeights(cell, point, weights);
    if (type == ElementType::Polygon)
        return addPolygonWeights(cell, point, weights);
    const auto nodes = cellNodes_[cell];
    const InverseMap found = findReferencePoint(
        type, [&](int k) { return nodeAt(nodes[k]) - point; }, Point{});
    const ShapeFunctions functions = shapeFunctions(type, found.reference);
    for (int k = 0; k < functions.nodes; k++)
        weights.emplace_back(nodes[k], functions.values[static_cast<std::size_t>(k)]);
}

// The polygon's own plane decides the orientation, also for surfaces in space.
void CellGeometry::addPolygonWeights(LocalIndex cell, const Point &point, Weights &weights) const {
    const std::vector<Point> corners = cornersOf(cell, point);
    const Point area = twiceArea(corners.size(), [&](std::size_t i) { return corners[i]; });
    const std::vector<real> ofCorners = meanValueWeights(corners, (1.0 / norm(area)) * area);
    const auto nodes = cellNodes_[cell];
    for (rowsize k = 0; k < nodes.size(); k++)
        weights.emplace_back(nodes[k], ofCorners[static_cast<std::size_t>(k)]);
}

/// Faces are fans: the weight of a face's mean is shared by its corners. O(faces x nodes of the cell).
/// Method: Ju, Schaefer and Warren (see the header). Sums run in the order of the cell's faces, as its owner has
/// them, so weights have the same bits on any number of ranks.
void CellGeometry::addPolyhedronWeights(LocalIndex cell, const Point &point, Weights &weights) const {
    const auto nodes = cellNodes_[cell];
    std::vector<real> ofNodes(static_cast<std::size_t>(nodes.size()), 0.0);
    bool alone = false;
    const auto add = [&](LocalIndex node, real weight) {
        ofNodes[static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin())] += weight;
    };
    forEachFaceOf(cell, [&](const auto &corners, real sense) {
        const rowsize count = corners.size();
        const auto cornerAt = [&](std::size_t i) { return nodeAt(corners[static_cast<rowsize>(i)]) - point; };
        rowsize first = 0;
        forEachTriangle(static_cast<std::size_t>(count), cornerAt, [&](const Point &a, const Point &b, const Point &c) {
            const rowsize i = first++;
            if (alone)
                return;
            const TriangleWeights found = meanValueWeights({a, b, c}, sense);
            if (found.alone)
                ofNodes.assign(ofNodes.size(), 0.0);
            alone = found.alone;
            add(corners[i], found.weights[0]);
            add(corners[i + 1 == count ? 0 : i + 1], found.weights[1]);
            if (count == 3)
                add(corners[2], found.weights[2]);
            else
                for (const LocalIndex corner : corners) // the mean of the corners
                    add(corner, found.weights[2] / count);
        });
    });
    real total = 0.0;
    for (const real weight : ofNodes)
        total += weight;
    // Very near a face the formula uses that face alone and loses the distance from it. A correction that is linear in
    // the positions of the nodes (least squares, 3 x 3) makes the weights exact for linear functions again.
    Eigen::Vector3d mean = Eigen::Vector3d::Zero();
    Eigen::Vector3d rest = Eigen::Vector3d::Zero();
    const auto at = [&](rowsize k) {
        const Point to = nodeAt(nodes[k]) - point;
        return Eigen::Vector3d(to[0], to[1], to[2]);
    };
    for (rowsize k = 0; k < nodes.size(); k++) {
        real &weight = ofNodes[static_cast<std::size_t>(k)];
        weight /= total;
        mean += at(k) / nodes.size();
        rest += weight * at(k);
    }
    Eigen::Vector3d change = Eigen::Vector3d::Zero();
    if (alone && rest.norm() > 0.0) {
        Eigen::Matrix3d moments = Eigen::Matrix3d::Zero();
        for (rowsize k = 0; k < nodes.size(); k++)
            moments += (at(k) - mean) * (at(k) - mean).transpose();
        change = moments.ldlt().solve(rest);
    }
    for (rowsize k = 0; k < nodes.size(); k++)
        weights.emplace_back(nodes[k], ofNodes[static_cast<std::size_t>(k)] - change.dot(at(k) - mean));
}

} // namespace DNDS::Geom
