#include "DNDS/Geom/Mesh/CurvedMetrics.hpp"

#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"

#include <array>
#include <utility>
#include <vector>

namespace DNDS::Geom {

namespace {

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

} // namespace

index curveMetrics(const UnstructuredMesh &mesh, MeshMetrics &metrics) {
    metrics.surfaceAreas.resize(mesh.faces.size());
    CurvedMetrics curved(mesh, metrics);
    curved.measureFaces();
    return curved.measureCells();
}

} // namespace DNDS::Geom
