#include "DNDS/Geom/Mesh/MeshView.hpp"

#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace DNDS::Geom {

namespace {

/// Reads a row of three as a point.
template <class View>
Point pointAt(const View &view, index row) {
    return {view(row, 0), view(row, 1), view(row, 2)};
}

/// Sets a row of three.
template <class View>
void setPoint(const View &view, index row, const Point &point) {
    for (rowsize d = 0; d < 3; d++)
        view(row, d) = point[static_cast<std::size_t>(d)];
}

// ---------------------------------------------------------------------------------------------------------------------
// Metrics by quadrature of the elements' maps

/// Exact for volumes, first moments and area vectors: along one direction determinants have degree 2 in linear cells, 5
/// in those of second order, coordinates 1 and 2. Only areas of curved faces, which are no polynomials, have an error.
int degreeFor(ElementType type) { return elementLayout(type).order == 1 && elementInfo(type).dimension == 3 ? 3 : 7; }

/// Shape functions of a type at the points of a rule.
struct Tabulated {
    std::vector<Point> points;
    std::vector<real> weights;
    std::vector<ShapeFunctions> functions;
};

/// Shape functions cost more than the sums: tabulated once a type.
Tabulated tabulate(ElementType type) {
    const Quadrature rule(elementLayout(type).shape, degreeFor(type));
    const QuadratureView view = rule.view();
    Tabulated result;
    for (index q = 0; q < view.size(); q++) {
        result.points.push_back(view.point(q));
        result.weights.push_back(view.weight(q));
        result.functions.push_back(shapeFunctions(type, view.point(q)));
    }
    return result;
}

/// The tables of all types that a mesh has.
class Tables {
  public:
    const Tabulated &operator[](ElementType type) {
        // Made on first use: most meshes have few types.
        Tabulated &table = tables_[static_cast<std::size_t>(type)];
        if (table.weights.empty())
            table = tabulate(type);
        return table;
    }

  private:
    std::array<Tabulated, 24> tables_;
};

/// Measure, moment and, of faces, the area vector; positions are relative to the element's first node.
struct Integrals {
    real measure = 0.0;
    Point moment{};
    Point areaVector{};

    void add(real weight, const Point &position, real density) {
        measure += weight * density;
        moment = moment + (weight * density) * position;
    }
    void add(real weight, const Point &position, const Point &density) {
        add(weight, position, norm(density));
        areaVector = areaVector + weight * density;
    }
};

// Integrates over faces, then over cells, and overwrites the results of corners. Positions are taken relative to the
// first node, so that meshes far from the origin lose no digits.
// O(points of the rule x nodes) an element: 8 points for a linear hexahedron, 64 for one of second order. No
// messages: each rank integrates its ghosts and shared faces itself.
class CurvedMetrics {
  public:
    CurvedMetrics(const UnstructuredMesh &mesh, MeshMetrics &metrics)
        : mesh_(mesh), metrics_(metrics), coordinates_(mesh.coordinates.view()), cellNodes_(mesh.cellNodes.view()) {}

    /// Straight simplices are exact already and are skipped.
    void measureFaces() {
        const FaceElements faces = faceElements(mesh_);
        const auto areas = metrics_.areas.view();
        const auto surfaceAreas = metrics_.surfaceAreas.view();
        for (index f = 0; f < mesh_.faces.size(); f++) {
            surfaceAreas(f) = areas(f);
            const ElementType type = faces.types[toSize(f)];
            const FaceElements::Source source = faces.sources[toSize(f)];
            const bool straight = type == ElementType::Tri3 || (mesh_.planar && type == ElementType::Bar2);
            if (straight || source.cell == noEntity)
                continue;
            const ElementNodes nodes{coordinates_, std::as_const(faces.nodes).view()[f]};
            const real sense = mesh_.faceCells(f, 0) == source.cell ? 1.0 : -1.0; // of an edge, in its source
            const Integrals found =
                mesh_.dimension == 3
                    ? integrate(type, nodes, [](const MappedPoint &at, const Point &) { return at.areaVector(); })
                    : integrate(type, nodes, [&](const MappedPoint &at, const Point &on) {
                          return cross(at.tangents[0], normalAt(source, sense * on));
                      });
            // Degenerate faces, also those with NaN, keep what corners gave.
            if (!(found.measure > 0.0))
                continue;
            areas(f) = norm(found.areaVector);
            surfaceAreas(f) = found.measure;
            setPoint(metrics_.areaVectors.view(), f, found.areaVector);
            setPoint(metrics_.faceCentres.view(), f, nodes(0) + (1.0 / found.measure) * found.moment);
        }
    }

    /// Returns how many own cells are inverted somewhere.
    index measureCells() {
        index inverted = 0;
        for (LocalIndex c = 0; c < static_cast<LocalIndex>(mesh_.cells.size()); c++) {
            const ElementType type = mesh_.cellTypes[static_cast<std::size_t>(c)];
            if (elementLayout(type).nodes == 0 || type == ElementType::Tetra4 || type == ElementType::Tri3)
                continue;
            const ElementNodes nodes{coordinates_, cellNodes_[c]};
            // A positive volume may hide points where the map is inverted.
            bool everywhere = true;
            const Integrals found = integrate(type, nodes, [&](const MappedPoint &at, const Point &) {
                const real density = mesh_.planar ? at.areaVector()[2] : at.measure();
                everywhere = everywhere && density > 0.0;
                return density;
            });
            metrics_.volumes.view()(c) = found.measure;
            if (found.measure > 0.0)
                setPoint(metrics_.centroids.view(), c, nodes(0) + (1.0 / found.measure) * found.moment);
            inverted += !everywhere && c < mesh_.cells.owned ? 1 : 0;
        }
        return inverted;
    }

  private:
    /// Integrals over an element; `densityAt` gives its volume, or its area vector, by reference volume.
    template <class DensityAt>
    Integrals integrate(ElementType type, const ElementNodes &nodes, DensityAt &&densityAt) {
        const Tabulated &table = tables_[type];
        const Point origin = nodes(0);
        Integrals sum;
        for (std::size_t q = 0; q < table.weights.size(); q++) {
            const MappedPoint at = mapPoint(table.functions[q], [&](int k) { return nodes(k) - origin; });
            sum.add(table.weights[q], at.position, densityAt(at, table.points[q]));
        }
        return sum;
    }

    /// The unit normal of a surface cell at a point of its edge.
    Point normalAt(const FaceElements::Source &source, const Point &on) const {
        const Point up{0.0, 0.0, 1.0};
        if (mesh_.planar)
            return up;
        const ElementType type = mesh_.cellTypes[static_cast<std::size_t>(source.cell)];
        const Point at = inElement(type, faceOf(type, source.face), on);
        const Point area =
            mapPoint(shapeFunctions(type, at), ElementNodes{coordinates_, cellNodes_[source.cell]}).areaVector();
        const real size = norm(area);
        return size > 0.0 ? (1.0 / size) * area : up;
    }

    const UnstructuredMesh &mesh_;
    MeshMetrics &metrics_;
    ArrayView<const real, 3> coordinates_;
    LocalAdjacency::ConstView cellNodes_;
    Tables tables_;
};

/// Replaces the results from corners by those from the maps of all nodes: `MetricOptions::curved`. Returns the number
/// of own cells that are inverted somewhere. Local.
index curveMetrics(const UnstructuredMesh &mesh, MeshMetrics &metrics) {
    metrics.surfaceAreas.resize(mesh.faces.size());
    CurvedMetrics curved(mesh, metrics);
    curved.measureFaces();
    return curved.measureCells();
}

// ---------------------------------------------------------------------------------------------------------------------
// Metrics from corners

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
