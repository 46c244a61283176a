/// @file Kernels.hpp
/// @brief The work on faces and cells of a discontinuous Galerkin method. Kernels know neither MPI nor memory spaces.
#pragma once

#include "Vortex.hpp"

#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Task/Value.hpp"

namespace DgVortex {

namespace Geom = DNDS::Geom;

/// Cells have up to 9 nodes, which are also those of the solution: [cells x width], node by node.
inline constexpr int maxNodes = 9;
inline constexpr int width = maxNodes * variables;
/// On a face. Fluxes are [faces x facePoints * variables].
inline constexpr int facePoints = 3;

/// A quadrature point, and the shape functions there.
struct TablePoint {
    real weight = 0;
    Geom::ShapeFunctions functions;
};

/// What kernels read and no task writes: trivially copyable, for host or device.
struct MethodView {
    using Table = DNDS::ArrayView<const TablePoint, 1>;

    Geom::MeshView mesh;
    Geom::LocalAdjacency::ConstView faceNodes;                    ///< [faces] of the curved edges
    DNDS::ArrayView<const int, 2> faceInCells;                    ///< [faces x sides] a block of `atFace`
    DNDS::ArrayView<const real, maxNodes * maxNodes> inverseMass; ///< [owned cells]
    Table inCell;                                                 ///< of cells, for fluxes
    Table onFace;                                                 ///< [facePoints] of faces as elements
    Table atFace; ///< [blocks * facePoints] of cells at the points of a face

    /// The map of a cell at a point.
    DNDS_HOST_DEVICE Geom::MappedPoint map(index cell, const Geom::ShapeFunctions &functions) const {
        return Geom::mapPoint(functions, Geom::ElementNodes{mesh.coordinates, mesh.cellNodes[cell]});
    }

    /// The polynomial of a cell at a point.
    DNDS_HOST_DEVICE static State valueAt(const Geom::ShapeFunctions &functions, const real *row) {
        State sum{};
        for (int n = 0; n < functions.nodes; n++)
            for (int k = 0; k < variables; k++)
                sum[static_cast<std::size_t>(k)] +=
                    functions.values[static_cast<std::size_t>(n)] * row[variables * n + k];
        return sum;
    }
};

/// The flux at each point of a face from its first cell to its second, times the point's weight.
struct FaceKernel {
    MethodView method;

    template <class Read, class Write>
    DNDS_HOST_DEVICE void operator()(index face, const Read &u, const Write &flux) const {
        const Geom::MeshView &mesh = method.mesh;
        for (int q = 0; q < facePoints; q++) {
            const auto valueIn = [&](int side) {
                const index at = method.faceInCells(face, side) * facePoints + q;
                return MethodView::valueAt(method.atFace(at).functions, u[mesh.faceCells(face, side)]);
            };
            const TablePoint &point = method.onFace(q);
            const Geom::Point along =
                Geom::mapPoint(point.functions, Geom::ElementNodes{mesh.coordinates, method.faceNodes[face]})
                    .tangents[0];
            // The first cell is on the left of its edges.
            const State through = hllcFlux(valueIn(0), valueIn(1), along[1], -along[0]);
            for (int k = 0; k < variables; k++)
                flux(face, variables * q + k) = point.weight * through[static_cast<std::size_t>(k)];
        }
    }
};

/// Keeps the state at the start of a step.
struct StartKernel {
    template <class Read, class Write>
    DNDS_HOST_DEVICE void operator()(index cell, const Read &u, const Write &start) const {
        for (int k = 0; k < width; k++)
            start(cell, k) = u(cell, k);
    }
};

/// A stage of a Runge-Kutta method in the form of Shu and Osher, J. Comput. Phys. 77 (1988):
/// u = keep * (u at the start of the step) + (1 - keep) * (u + dt * rate).
struct StageKernel {
    MethodView method;
    real keep;

    template <class Flux, class Start, class Update>
    DNDS_HOST_DEVICE void operator()(index cell, const Flux &flux, const Start &start,
                                     const DNDS::Task::ReadValue<real> &dt, const Update &u) const {
        real residual[width] = {};
        addCell(cell, u[cell], residual);
        for (const LocalIndex face : method.mesh.cellFaces[cell])
            addFace(cell, face, flux[face], residual);
        const real *inverse = method.inverseMass[cell];
        const int nodes = method.inCell(0).functions.nodes;
        for (int n = 0; n < nodes; n++)
            for (int k = 0; k < variables; k++) {
                real rate = 0;
                for (int j = 0; j < nodes; j++)
                    rate += inverse[maxNodes * n + j] * residual[variables * j + k];
                const int at = variables * n + k;
                u(cell, at) = keep * start(cell, at) + (1 - keep) * (u(cell, at) + dt() * rate);
            }
    }

  private:
    /// The integral of the fluxes times the gradients of the shape functions.
    DNDS_HOST_DEVICE void addCell(index cell, const real *row, real *residual) const {
        for (index q = 0; q < method.inCell.size(); q++) {
            const auto &[weight, functions] = method.inCell(q);
            const Geom::MappedPoint at = method.map(cell, functions);
            const auto reciprocals = at.reciprocals();
            const real scale = weight * at.measure();
            const State u = MethodView::valueAt(functions, row);
            const State x = fluxOf(u, 1, 0);
            const State y = fluxOf(u, 0, 1);
            for (int n = 0; n < functions.nodes; n++) {
                const Geom::Point slope =
                    Geom::gradientInSpace(reciprocals, functions.gradients[static_cast<std::size_t>(n)]);
                for (std::size_t k = 0; k < variables; k++)
                    residual[static_cast<std::size_t>(variables * n) + k] +=
                        scale * (slope[0] * x[k] + slope[1] * y[k]);
            }
        }
    }

    /// What leaves through a face, times the shape functions of the cell.
    DNDS_HOST_DEVICE void addFace(index cell, index face, const real *flux, real *residual) const {
        const int side = method.mesh.faceCells(face, 0) == cell ? 0 : 1;
        const real sign = side == 0 ? -1 : 1;
        for (int q = 0; q < facePoints; q++) {
            const Geom::ShapeFunctions &functions =
                method.atFace(method.faceInCells(face, side) * facePoints + q).functions;
            for (int n = 0; n < functions.nodes; n++)
                for (int k = 0; k < variables; k++)
                    residual[variables * n + k] +=
                        sign * functions.values[static_cast<std::size_t>(n)] * flux[variables * q + k];
        }
    }
};

} // namespace DgVortex
