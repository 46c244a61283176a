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

class CellWeights {
  public:
    CellWeights(const Geom::MeshView &view, int dimension) : view_(view), dimension_(dimension) {}

    /// Fills in the weights of all faces of a cell.
    void operator()(index cell, real *weights) {
        constexpr real sufficient = 0.05;
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
            const Offset row = square > 0 ? Offset(inverse * offset / square) : Offset::Zero();
            weights = std::copy(row.begin(), row.end(), weights);
        }
    }

  private:
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
                offset = pointAt(view_.centroids, cells[j]) - centre;
            else if (withBoundary)
                offset = pointAt(view_.faceCentres, faces[j]) - centre;
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

} // namespace

DNDS::Array<real, DNDS::NonUniformSize> leastSquaresWeights(const Geom::UnstructuredMesh &mesh,
                                                            const Geom::MeshMetrics &metrics) {
    const Geom::MeshView view = viewOf(mesh, metrics);
    DNDS::Array<real, DNDS::NonUniformSize> weights;
    weights.resize(mesh.cells.owned, [&](index cell) { return 3 * view.cellFaces.rowSize(cell); });
    const auto rows = weights.view();
    CellWeights compute(view, mesh.dimension);
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        compute(cell, rows[cell]);
    return weights;
}

} // namespace Euler
