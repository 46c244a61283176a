#include "DNDS/Geom/Mesh/MeshView.hpp"

#include "DNDS/Geom/Mesh/CurvedMetrics.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>

namespace DNDS::Geom {

namespace {

/// Reads a row of three as a point.
template <class View>
Point pointAt(const View &view, index row) {
    return {view(row, 0), view(row, 1), view(row, 2)};
}

// The geometry of one face, from its corners.
struct FaceGeometry {
    Point area;
    Point centre; ///< centroid of the area
    Point mean;   ///< mean of the corners
};

/// A polygon in space: triangles around the mean of its corners.
/// Triangles are weighted by their projection on the area vector: the centroid does not depend on the order of
/// corners, and the parts of non-convex faces cancel.
template <class PointOf>
FaceGeometry polygonGeometry(std::size_t corners, PointOf &&pointOf) {
    FaceGeometry face{0.5 * twiceArea(corners, pointOf), {}, meanPoint(corners, pointOf)};
    // Exact and without divisions.
    if (corners == 3) {
        face.centre = face.mean;
        return face;
    }
    const real size = norm(face.area);
    Point weighted{};
    real total = 0.0;
    for (std::size_t i = 0; i < corners; i++) {
        const Point a = pointOf(i) - face.mean;
        const Point b = pointOf(i + 1 == corners ? 0 : i + 1) - face.mean;
        const real weight = size > 0.0 ? 0.5 * dot(cross(a, b), face.area) / size : 0.0;
        weighted = weighted + (weight / 3.0) * (a + b);
        total += weight;
    }
    face.centre = total > 0.0 ? face.mean + (1.0 / total) * weighted : face.mean;
    return face;
}

/// The unit normal of a two-dimensional cell.
template <class PointOf>
Point cellNormal(ElementType type, AdjacencyRow<const LocalIndex> nodes, PointOf &&pointOf) {
    const ElementInfo &info = elementInfo(type);
    const auto corners = static_cast<std::size_t>(info.corners > 0 ? info.corners : nodes.size());
    const Point area = twiceArea(corners, [&](std::size_t i) { return pointOf(nodes[static_cast<rowsize>(i)]); });
    const real size = norm(area);
    return size > 0.0 ? (1.0 / size) * area : Point{0.0, 0.0, 1.0};
}

/// The mean of a cell's corners.
template <class PointOf>
Point cornerMean(ElementType type, AdjacencyRow<const LocalIndex> nodes, PointOf &&pointOf) {
    const ElementInfo &info = elementInfo(type);
    const auto corners = static_cast<std::size_t>(info.corners > 0 ? info.corners : nodes.size());
    return meanPoint(corners, [&](std::size_t i) { return pointOf(nodes[static_cast<rowsize>(i)]); });
}

/// `MeshMetrics::closure` of the own cells of this rank.
/// A face between two images of one cell counts with both signs, which cancel.
/// O(faces of own cells). A closed cell has 0 up to round-off, whatever its shape; a large value shows a face that
/// is missing or turned.
real closureOf(const UnstructuredMesh &mesh, const MeshMetrics &metrics) {
    const auto cellFaces = mesh.cellFaces.view();
    const auto faceCells = mesh.faceCells.view();
    const auto areaVectors = metrics.areaVectors.view();
    const auto areas = metrics.areas.view();
    real closure = 0.0;
    for (index c = 0; c < mesh.cells.owned; c++) {
        Point outward{};
        real total = 0.0;
        for (const LocalIndex f : cellFaces[c]) {
            const real sign = (faceCells(f, 0) == c ? 1.0 : 0.0) - (faceCells(f, 1) == c ? 1.0 : 0.0);
            outward = outward + sign * pointAt(areaVectors, f);
            total += areas(f, 0);
        }
        if (total > 0.0)
            closure = std::max(closure, norm(outward) / total);
    }
    return closure;
}

// The divergence theorem for the field x - apex: a cell's volume is the sum of the cones over its faces, and the
// centroid their weighted mean. O(cells + faces). Invariant: both neighbours of a face use the same area vector and
// mean, so cells fill space without gaps, even with warped faces.
MeshMetrics measure(const UnstructuredMesh &mesh, const MetricOptions &options) {
    MeshMetrics metrics(mesh.comm);
    metrics.volumes.resize(mesh.cells.size());
    metrics.centroids.resize(mesh.cells.size());
    metrics.areas.resize(mesh.faces.size());
    metrics.areaVectors.resize(mesh.faces.size());
    metrics.faceCentres.resize(mesh.faces.size());
    const auto coordinates = mesh.coordinates.view();
    const auto pointOf = [&](LocalIndex node) { return pointAt(coordinates, node); };
    const auto cellNodes = mesh.cellNodes.view();
    const auto cellFaces = mesh.cellFaces.view();
    const auto faceNodes = mesh.faceNodes.view();
    const auto faceCells = mesh.faceCells.view();
    const auto areaVectors = metrics.areaVectors.view();
    const auto areas = metrics.areas.view();
    const auto faceCentres = metrics.faceCentres.view();
    // Faces first: area vector, centre and mean of the corners, which cells share.
    std::vector<Point> means(toSize(mesh.faces.size()));
    for (index f = 0; f < mesh.faces.size(); f++) {
        const auto nodes = faceNodes[f];
        const auto corner = [&](std::size_t i) { return pointOf(nodes[static_cast<rowsize>(i)]); };
        FaceGeometry face;
        if (mesh.dimension == 3) {
            face = polygonGeometry(static_cast<std::size_t>(nodes.size()), corner);
        } else {
            // An edge's normal needs the plane of a cell.
            const LocalIndex cell = faceCells(f, 0) >= 0 ? faceCells(f, 0) : faceCells(f, 1);
            const Point normal =
                mesh.planar ? Point{0.0, 0.0, 1.0}
                            : cellNormal(mesh.cellTypes[static_cast<std::size_t>(cell)], cellNodes[cell], pointOf);
            face.area = cross(corner(1) - corner(0), normal);
            face.centre = face.mean = 0.5 * (corner(0) + corner(1));
        }
        setPoint(areaVectors, f, face.area);
        setPoint(faceCentres, f, face.centre);
        areas(f, 0) = norm(face.area);
        means[toSize(f)] = face.mean;
    }
    const auto volumes = metrics.volumes.view();
    const auto centroids = metrics.centroids.view();
    const real dimension = mesh.dimension;
    for (index c = 0; c < mesh.cells.size(); c++) {
        // Any apex gives the same volume; one inside loses the fewest digits.
        const Point apex = cornerMean(mesh.cellTypes[toSize(c)], cellNodes[c], pointOf);
        real volume = 0.0;
        Point weighted{};
        for (const LocalIndex f : cellFaces[c]) {
            const real sign = (faceCells(f, 0) == c ? 1.0 : 0.0) - (faceCells(f, 1) == c ? 1.0 : 0.0);
            const Point area = sign * pointAt(areaVectors, f);
            const real cone = dot(means[static_cast<std::size_t>(f)] - apex, area) / dimension;
            volume += cone;
            // The centroid of a cone is at 3/4 of the way from the apex to that of its base; in a plane, at 2/3.
            weighted = weighted + (cone * dimension / (dimension + 1.0)) * (pointAt(faceCentres, f) - apex);
        }
        volumes(c, 0) = volume;
        setPoint(centroids, c, volume > 0.0 ? apex + (1.0 / volume) * weighted : apex);
    }
    if (options.curved)
        metrics.invertedCells = mesh.comm.allReduce(curveMetrics(mesh, metrics), MPI_SUM);
    metrics.closure = mesh.comm.allReduce(closureOf(mesh, metrics), MPI_MAX);
    return metrics;
}

} // namespace

MeshMetrics::MeshMetrics(CommunicatorView comm)
    : volumes("cell volumes", comm), centroids("cell centroids", comm), areas("face areas", comm),
      areaVectors("face area vectors", comm), faceCentres("face centres", comm),
      surfaceAreas("areas of curved faces", comm) {}

MeshMetrics computeMetrics(const UnstructuredMesh &mesh, const MetricOptions &options) {
    return failTogether(mesh.comm, [&] { return measure(mesh, options); });
}

} // namespace DNDS::Geom
