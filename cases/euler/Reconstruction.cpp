#include "Reconstruction.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace Euler {

namespace {

namespace Geom = DNDS::Geom;
using Matrix = Eigen::Matrix3d;
using Offset = Eigen::Vector3d;

Offset pointAt(const ArrayView<const real, 3> &points, index row) {
    return {points(row, 0), points(row, 1), points(row, 2)};
}

/// Conditioning of a normal matrix: 1 if its directions span space evenly, 0 if degenerate.
real evenness(const Matrix &normal, int dimension) {
    const real mean = normal.topLeftCorner(dimension, dimension).trace() / dimension;
    return mean > 0 ? normal.topLeftCorner(dimension, dimension).determinant() / std::pow(mean, dimension) : 0;
}

/// Least squares over the neighbours of a cell, in given coordinates.
class LeastSquares {
  public:
    LeastSquares(const Geom::MeshView &view, int dimension) : view_(view), dimension_(dimension) {}

    /// The weights of all faces: the inverse squared length of `coordinates` * offset.
    std::span<const Offset> operator()(index cell, const Matrix &coordinates) {
        constexpr real sufficient = 0.05;
        collect(cell, coordinates, false);
        if (neighbours_ <= dimension_ || evenness(normal_, dimension_) < sufficient)
            collect(cell, coordinates, true);
        Matrix inverse = Matrix::Zero();
        if (evenness(normal_, dimension_) > 1e-10) {
            if (dimension_ == 3)
                inverse = normal_.inverse();
            else
                inverse.topLeftCorner<2, 2>() = normal_.topLeftCorner<2, 2>().inverse();
        }
        for (Offset &offset : offsets_) {
            const real square = offset.squaredNorm();
            offset = square > 0 ? Offset(coordinates.transpose() * (inverse * offset) / square) : Offset::Zero();
        }
        return offsets_;
    }

    /// Coordinates in which the cell is isotropic: the ellipsoid of its faces' centres is a sphere.
    Matrix shapeOf(index cell) const {
        const Offset centre = pointAt(view_.centroids, cell);
        Matrix shape = Matrix::Zero();
        for (const LocalIndex face : view_.cellFaces[cell]) {
            const Offset offset = pointAt(view_.faceCentres, face) - centre;
            shape += offset * offset.transpose();
        }
        if (dimension_ == 2)
            shape(2, 2) = 1;
        const Matrix coordinates = shape.llt().matrixL().solve(Matrix::Identity());
        return coordinates.allFinite() ? coordinates : Matrix(Matrix::Identity());
    }

  private:
    /// Offsets to the neighbours and, if requested, to boundary faces; 0 for none.
    void collect(index cell, const Matrix &coordinates, bool withBoundary) {
        const auto faces = view_.cellFaces[cell];
        const auto cells = view_.cellCells[cell];
        const Offset centre = pointAt(view_.centroids, cell);
        normal_ = Matrix::Zero();
        neighbours_ =
            static_cast<int>(std::count_if(cells.begin(), cells.end(), [](index other) { return other >= 0; }));
        offsets_.assign(static_cast<std::size_t>(faces.size()), Offset::Zero());
        for (rowsize j = 0; j < faces.size(); j++) {
            Offset &offset = offsets_[static_cast<std::size_t>(j)];
            if (cells[j] >= 0)
                offset = coordinates * (pointAt(view_.centroids, cells[j]) - centre);
            else if (withBoundary)
                offset = coordinates * (pointAt(view_.faceCentres, faces[j]) - centre);
            const real square = offset.squaredNorm();
            if (square > 0)
                normal_ += offset * offset.transpose() / square;
        }
    }

    const Geom::MeshView &view_;
    int dimension_;
    Matrix normal_;
    int neighbours_ = 0;
    std::vector<Offset> offsets_;
};

/// Values at faces are interpolated between the cells on both sides, by their distances along the normal.
std::vector<Offset> greenGauss(const Geom::MeshView &view, index cell) {
    const auto faces = view.cellFaces[cell];
    const auto cells = view.cellCells[cell];
    const Offset centre = pointAt(view.centroids, cell);
    std::vector<Offset> weights;
    for (rowsize j = 0; j < faces.size(); j++) {
        const Offset area = pointAt(view.areaVectors, faces[j]);
        const Offset faceCentre = pointAt(view.faceCentres, faces[j]);
        real share = 1; // of the value across the face
        if (cells[j] >= 0) {
            const real here = std::fabs(area.dot(faceCentre - centre));
            const real there = std::fabs(area.dot(pointAt(view.centroids, cells[j]) - faceCentre));
            share = here + there > 0 ? here / (here + there) : 0.5;
        }
        const real outward = view.faceCells(faces[j], 0) == cell ? 1 : -1;
        weights.emplace_back(outward * share / view.volumes(cell) * area);
    }
    return weights;
}

/// The largest factor of a neighbour's difference in the state at a face.
real largestFactor(const Geom::MeshView &view, index cell, std::span<const Offset> weights) {
    const Offset centre = pointAt(view.centroids, cell);
    real largest = 0;
    for (const LocalIndex face : view.cellFaces[cell]) {
        const Offset offset = pointAt(view.faceCentres, face) - centre;
        for (const Offset &weight : weights)
            largest = std::max(largest, std::fabs(weight.dot(offset)));
    }
    return largest;
}

/// Least squares in space; if that extrapolates too far, in the shape of the cell; if that does, too, the mean gradient
/// from the surface.
std::vector<Offset> leastSquares(const Geom::MeshView &view, index cell, LeastSquares &solve) {
    constexpr real tolerable = 1;
    const auto copy = [](std::span<const Offset> weights) {
        return std::vector<Offset>(weights.begin(), weights.end());
    };
    const std::vector<Offset> inSpace = copy(solve(cell, Matrix::Identity()));
    const real spaceFactor = largestFactor(view, cell, inSpace);
    if (spaceFactor <= tolerable)
        return inSpace;
    const std::vector<Offset> inShape = copy(solve(cell, solve.shapeOf(cell)));
    const real shapeFactor = largestFactor(view, cell, inShape);
    if (std::min(spaceFactor, shapeFactor) > 2 * tolerable)
        return greenGauss(view, cell);
    return shapeFactor < spaceFactor ? inShape : inSpace;
}

} // namespace

DNDS::Array<real, DNDS::NonUniformSize> gradientWeights(const Geom::UnstructuredMesh &mesh,
                                                        const Geom::MeshMetrics &metrics, GradientScheme scheme) {
    const Geom::MeshView view = viewOf(mesh, metrics);
    DNDS::Array<real, DNDS::NonUniformSize> weights;
    weights.resize(mesh.cells.owned, [&](index cell) { return 3 * view.cellFaces.rowSize(cell); });
    const auto rows = weights.view();
    LeastSquares solve(view, mesh.dimension);
    for (index cell = 0; cell < mesh.cells.owned; cell++) {
        const bool least = scheme == GradientScheme::LeastSquares;
        real *row = rows[cell];
        for (const Offset &weight : least ? leastSquares(view, cell, solve) : greenGauss(view, cell))
            row = std::copy(weight.begin(), weight.end(), row);
    }
    return weights;
}

} // namespace Euler
