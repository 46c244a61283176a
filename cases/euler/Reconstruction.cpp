#include "Reconstruction.hpp"

#include <Eigen/Dense>

#include <algorithm>
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

/// How well the directions of a normal matrix span space: 1 if evenly, 0 if not at all.
real evenness(const Matrix &normal, int dimension) {
    const real mean = normal.topLeftCorner(dimension, dimension).trace() / dimension;
    return mean > 0 ? normal.topLeftCorner(dimension, dimension).determinant() / std::pow(mean, dimension) : 0;
}

/// Least squares in coordinates in which the cell is as long as it is wide.
class LeastSquares {
  public:
    LeastSquares(const Geom::MeshView &view, int dimension) : view_(view), dimension_(dimension) {}

    /// Fills in the weights of all faces of a cell.
    void operator()(index cell, real *weights) {
        constexpr real sufficient = 0.05;
        findShape(cell);
        collect(cell, false);
        if (neighbours_ <= dimension_ || evenness(normal_, dimension_) < sufficient)
            collect(cell, true);
        Matrix inverse = Matrix::Zero();
        if (evenness(normal_, dimension_) > 1e-10) {
            if (dimension_ == 3)
                inverse = normal_.inverse();
            else
                inverse.topLeftCorner<2, 2>() = normal_.topLeftCorner<2, 2>().inverse();
        }
        for (const Offset &offset : offsets_) {
            const real square = offset.squaredNorm();
            Offset row = Offset::Zero();
            if (square > 0)
                row = toShape_.transpose() * (inverse * offset) / square;
            weights = std::copy(row.begin(), row.end(), weights);
        }
    }

  private:
    /// The matrix that turns the ellipsoid of the faces' centres into a sphere.
    void findShape(index cell) {
        const Offset centre = pointAt(view_.centroids, cell);
        Matrix shape = Matrix::Zero();
        for (const LocalIndex face : view_.cellFaces[cell]) {
            const Offset offset = pointAt(view_.faceCentres, face) - centre;
            shape += offset * offset.transpose();
        }
        if (dimension_ == 2) {
            shape.row(2).setZero();
            shape.col(2).setZero();
            shape(2, 2) = 1;
        }
        toShape_ = shape.llt().matrixL().solve(Matrix::Identity());
        if (!toShape_.allFinite())
            toShape_ = Matrix::Identity();
    }

    /// To the neighbours, and to boundary faces if asked; 0 stands for none.
    void collect(index cell, bool withBoundary) {
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
                offset = toShape_ * (pointAt(view_.centroids, cells[j]) - centre);
            else if (withBoundary)
                offset = toShape_ * (pointAt(view_.faceCentres, faces[j]) - centre);
            const real square = offset.squaredNorm();
            if (square > 0)
                normal_ += offset * offset.transpose() / square;
        }
    }

    const Geom::MeshView &view_;
    int dimension_;
    Matrix toShape_;
    Matrix normal_;
    int neighbours_ = 0;
    std::vector<Offset> offsets_; ///< in the coordinates of the shape
};

/// Values at faces are interpolated between the cells on both sides, by their distances along the normal.
void greenGauss(const Geom::MeshView &view, index cell, real *weights) {
    const auto faces = view.cellFaces[cell];
    const auto cells = view.cellCells[cell];
    const Offset centre = pointAt(view.centroids, cell);
    for (rowsize j = 0; j < faces.size(); j++) {
        const Offset area = pointAt(view.areaVectors, faces[j]);
        const Offset faceCentre = pointAt(view.faceCentres, faces[j]);
        real share = 1; // of the value behind the face
        if (cells[j] >= 0) {
            const real here = std::fabs(area.dot(faceCentre - centre));
            const real there = std::fabs(area.dot(pointAt(view.centroids, cells[j]) - faceCentre));
            share = here + there > 0 ? here / (here + there) : 0.5;
        }
        const real outward = view.faceCells(faces[j], 0) == cell ? 1 : -1;
        const Offset row = outward * share / view.volumes(cell) * area;
        weights = std::copy(row.begin(), row.end(), weights);
    }
}

} // namespace

DNDS::Array<real, DNDS::NonUniformSize> gradientWeights(const Geom::UnstructuredMesh &mesh,
                                                        const Geom::MeshMetrics &metrics, GradientScheme scheme) {
    const Geom::MeshView view = viewOf(mesh, metrics);
    DNDS::Array<real, DNDS::NonUniformSize> weights;
    weights.resize(mesh.cells.owned, [&](index cell) { return 3 * view.cellFaces.rowSize(cell); });
    const auto rows = weights.view();
    LeastSquares leastSquares(view, mesh.dimension);
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        if (scheme == GradientScheme::LeastSquares)
            leastSquares(cell, rows[cell]);
        else
            greenGauss(view, cell, rows[cell]);
    return weights;
}

} // namespace Euler
