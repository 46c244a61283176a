/// @file StepKernels.hpp
/// @brief The work of a time step on faces and cells after reconstruction. Kernels know neither MPI nor memory spaces.
#pragma once

#include "Reconstruction.hpp"
#include "RiemannSolvers.hpp"

namespace Euler {

/// The flux through a face, from its first cell to its second or out of the mesh: [faces x variables], whole area.
///
/// The first cell is the same on all ranks, so that two ranks which share a face compute the same bits.
struct FluxKernel {
    DNDS::Geom::MeshView mesh;
    ArrayView<const int> faceCondition;
    ArrayView<const BoundaryCondition> conditions;
    Gas gas;
    FluxScheme scheme;
    real entropyFix;
    ReadRows<variables> state;
    ReadRows<gradientWidth> gradient;
    WriteRows<variables> flux;

    DNDS_HOST_DEVICE Conserved through(index face) const {
        const real area = mesh.areas(face);
        const Vector normal = (1 / area) * Vector::load(mesh.areaVectors[face]);
        const LocalIndex second = mesh.faceCells(face, 1);
        const Primitive left = reconstructed(mesh.faceCells(face, 0), face);
        if (second < 0)
            return area * boundaryFlux(gas, conditions(faceCondition(face)), left, normal);
        const Primitive right = reconstructed(second, face);
        return area * (scheme == FluxScheme::Hllc ? hllcFlux(gas, left, right, normal)
                                                  : roeFlux(gas, left, right, normal, entropyFix));
    }
    DNDS_HOST_DEVICE void operator()(index face) const { through(face).store(flux[face]); }

  private:
    DNDS_HOST_DEVICE Primitive reconstructed(LocalIndex cell, index face) const {
        const Vector offset = Vector::load(mesh.faceCentres[face]) - Vector::load(mesh.centroids[cell]);
        return stateAt(state[cell], gradient[cell], offset);
    }
};

/// What the fluxes change in a cell in a unit of time, for a unit of volume. They are added in the order of the cell's
/// faces in the file: the same bits however the mesh is spread over ranks.
struct RateKernel {
    DNDS::Geom::MeshView mesh;
    ArrayView<const real, variables> flux;

    DNDS_HOST_DEVICE Conserved rate(index cell) const {
        Conserved sum;
        for (const LocalIndex face : mesh.cellFaces[cell]) {
            const Conserved through = Conserved::load(flux[face]);
            sum = mesh.faceCells(face, 0) == cell ? sum - through : sum + through;
        }
        return (1 / mesh.volumes(cell)) * sum;
    }
};

/// The square of each rate times the volume: [owned cells x variables]. The sum makes a residual.
struct ResidualKernel {
    RateKernel rates;
    WriteRows<variables> squares;

    DNDS_HOST_DEVICE void operator()(index cell) const {
        real row[variables];
        rates.rate(cell).store(row);
        for (int k = 0; k < variables; k++)
            squares(cell, k) = row[k] * row[k] * rates.mesh.volumes(cell);
    }
};

/// A stage of a Runge-Kutta method in the form of Shu and Osher, J. Comput. Phys. 77 (1988):
/// u = keep * (u at the start of the step) + (1 - keep) * (u + time step * rate).
struct UpdateKernel {
    RateKernel rates;
    Gas gas;
    real keep;
    ArrayView<const real> timeStep;
    ArrayView<const real, variables> start;
    WriteRows<variables> conserved;
    WriteRows<variables> state;

    DNDS_HOST_DEVICE void operator()(index cell) const {
        const Conserved euler = Conserved::load(conserved[cell]) + timeStep(cell) * rates.rate(cell);
        const Conserved next = keep > 0 ? keep * Conserved::load(start[cell]) + (1 - keep) * euler : euler;
        next.store(conserved[cell]);
        gas.primitive(next).store(state[cell]);
    }
};

/// The time step that CFL number 1 allows each cell: [owned cells]; -1 where the state is impossible, or where the step
/// would not be a positive number.
struct TimeStepKernel {
    DNDS::Geom::MeshView mesh;
    Gas gas;
    ArrayView<const real, variables> state;
    WriteRows<1> timeStep;

    DNDS_HOST_DEVICE void operator()(index cell) const {
        const Primitive w = Primitive::load(state[cell]);
        if (!w.physical()) {
            timeStep(cell) = -1;
            return;
        }
        const real sound = gas.soundSpeed(w);
        real speeds = 0;
        for (const LocalIndex face : mesh.cellFaces[cell])
            speeds += std::fabs(dot(w.velocity, Vector::load(mesh.areaVectors[face]))) + sound * mesh.areas(face);
        const real step = 2 * mesh.volumes(cell) / speeds;
        timeStep(cell) = step > 0 ? step : -1;
    }
};

/// Sets time steps to a number, or multiplies them by it. It lies where kernels read it, so that a graph may be
/// replayed with another one.
struct SetTimeStepKernel {
    const real *number;
    bool multiplies;
    WriteRows<1> timeStep;

    DNDS_HOST_DEVICE void operator()(index cell) const {
        timeStep(cell) = multiplies ? timeStep(cell) * *number : *number;
    }
};

/// Conserved amounts in each cell: [owned cells x variables].
struct AmountKernel {
    DNDS::Geom::MeshView mesh;
    ArrayView<const real, variables> conserved;
    WriteRows<variables> amounts;

    DNDS_HOST_DEVICE void operator()(index cell) const {
        (mesh.volumes(cell) * Conserved::load(conserved[cell])).store(amounts[cell]);
    }
};

/// The force on each of some faces, of the pressure beyond a reference: [faces x 3].
struct ForceKernel {
    DNDS::Geom::MeshView mesh;
    ArrayView<const real, variables> flux;
    ArrayView<const index> faces;
    real reference;
    WriteRows<3> forces;

    DNDS_HOST_DEVICE void operator()(index i) const {
        const real *through = flux[faces(i)];
        const real *area = mesh.areaVectors[faces(i)];
        for (int d = 0; d < 3; d++)
            forces(i, d) = through[1 + d] - reference * area[d];
    }
};

/// Turns what ghosts in images beyond rotating periodic faces have pulled: a vector (of `first`) in each row, or, of
/// gradients, the derivatives of each variable and the velocities among them.
struct TurnStateKernel {
    ArrayView<const index> ghosts;  ///< rows of the son
    ArrayView<const real, 9> turns; ///< [the same] matrices, row by row
    WriteRows<variables> state;     ///< son

    DNDS_HOST_DEVICE void operator()(index i) const {
        real *row = state[ghosts(i)];
        turned(turns[i], Vector::load(row + 1)).store(row + 1);
    }
    DNDS_HOST_DEVICE static Vector turned(const real *matrix, Vector v) {
        return {dot(Vector::load(matrix), v), dot(Vector::load(matrix + 3), v), dot(Vector::load(matrix + 6), v)};
    }
};
struct TurnGradientKernel {
    ArrayView<const index> ghosts;
    ArrayView<const real, 9> turns;
    WriteRows<gradientWidth> gradient; ///< son

    DNDS_HOST_DEVICE void operator()(index i) const {
        real *row = gradient[ghosts(i)];
        for (int k = 0; k < variables; k++)
            TurnStateKernel::turned(turns[i], Vector::load(row + 3 * k)).store(row + 3 * k);
        for (int d = 0; d < 3; d++) { // the velocities' derivatives in direction d
            const Vector v = TurnStateKernel::turned(turns[i], {row[3 + d], row[6 + d], row[9 + d]});
            row[3 + d] = v.x;
            row[6 + d] = v.y;
            row[9 + d] = v.z;
        }
    }
};

} // namespace Euler
