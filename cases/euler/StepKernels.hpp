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
    int dimension;

    DNDS_HOST_DEVICE void operator()(index face, const ReadRows<variables> &state,
                                     const ReadRows<gradientWidth> &gradient, const WriteOwn<variables> &flux) const {
        (dimension == 3 ? through<3>(face, state, gradient) : through<2>(face, state, gradient)).store(flux[face]);
    }
    void prefetch(index face, const ReadRows<variables> &state, const ReadRows<gradientWidth> &gradient,
                  const WriteOwn<variables> & /*flux*/) const {
        for (const LocalIndex cell : mesh.faceCells[face])
            if (cell >= 0) {
                prefetchRow(state, cell);
                prefetchRow(gradient, cell);
                prefetchRow(mesh.centroids, cell);
            }
    }

  private:
    template <int dim>
    DNDS_HOST_DEVICE Conserved through(index face, const ReadRows<variables> &state,
                                       const ReadRows<gradientWidth> &gradient) const {
        const auto reconstructed = [&](LocalIndex cell) {
            const Vector offset = Vector::load(mesh.faceCentres[face]) - Vector::load(mesh.centroids[cell]);
            return stateAt<dim>(state[cell], gradient[cell], offset);
        };
        const real area = mesh.areas(face);
        const Vector normal = (1 / area) * Vector::load(mesh.areaVectors[face]);
        const LocalIndex second = mesh.faceCells(face, 1);
        const Primitive left = reconstructed(mesh.faceCells(face, 0));
        if (second < 0)
            return area * boundaryFlux(gas, conditions(faceCondition(face)), left, normal);
        const Primitive right = reconstructed(second);
        return area * (scheme == FluxScheme::Hllc ? hllcFlux(gas, left, right, normal)
                                                  : roeFlux(gas, left, right, normal, entropyFix));
    }
};

/// Change of a cell by the fluxes in a unit of time, for a unit of volume. They are added in the order of the cell's
/// faces in the file: the same bits however the mesh is spread over ranks.
DNDS_HOST_DEVICE inline Conserved rateOf(const DNDS::Geom::MeshView &mesh, index cell, const ReadOwn<variables> &flux) {
    Conserved sum;
    const auto faces = mesh.cellFaces[cell];
    for (rowsize k = 0; k < faces.size(); k++) {
        const real sign = DNDS::Geom::pointsOut(mesh.faceCells, faces, cell, k) ? -1 : 1;
        sum = sum + sign * Conserved::load(flux[faces[k]]);
    }
    return (1 / mesh.volumes(cell)) * sum;
}

/// The square of each rate times the volume: [owned cells x variables]. The sum makes a residual.
struct ResidualKernel {
    DNDS::Geom::MeshView mesh;

    DNDS_HOST_DEVICE void operator()(index cell, const ReadOwn<variables> &flux,
                                     const WriteOwn<variables> &squares) const {
        real row[variables];
        rateOf(mesh, cell, flux).store(row);
        for (int k = 0; k < variables; k++)
            squares(cell, k) = row[k] * row[k] * mesh.volumes(cell);
    }
};

/// Numbers of time steps known only when a step begins: [1 x 2] a number, and whether it is the time step of all cells;
/// otherwise their own ones are multiplied by it.
using StepLength = ReadOwn<2>;

DNDS_HOST_DEVICE inline real lengthOf(const StepLength &length, const ReadOwn<1> &longest, index cell) {
    return length(0, 1) != 0 ? length(0, 0) : longest(cell) * length(0, 0);
}

/// A stage of a Runge-Kutta method in the form of Shu and Osher, J. Comput. Phys. 77 (1988):
/// u = keep * (u at the start of the step) + (1 - keep) * (u + time step * rate).
struct UpdateKernel {
    DNDS::Geom::MeshView mesh;
    Gas gas;
    real keep;

    DNDS_HOST_DEVICE void operator()(index cell, const ReadOwn<variables> &flux, const ReadOwn<1> &longest,
                                     const StepLength &length, const ReadOwn<variables> &start,
                                     const WriteOwn<variables> &conserved, const WriteRows<variables> &state) const {
        const Conserved euler =
            Conserved::load(conserved[cell]) + lengthOf(length, longest, cell) * rateOf(mesh, cell, flux);
        const Conserved next = keep * Conserved::load(start[cell]) + (1 - keep) * euler;
        next.store(conserved[cell]);
        gas.primitive(next).store(state[cell]);
    }
};
/// The first stage: keeps nothing of the start, but stores it for the others.
struct FirstUpdateKernel {
    DNDS::Geom::MeshView mesh;
    Gas gas;

    DNDS_HOST_DEVICE void operator()(index cell, const ReadOwn<variables> &flux, const ReadOwn<1> &longest,
                                     const StepLength &length, const WriteOwn<variables> &start,
                                     const WriteOwn<variables> &conserved, const WriteRows<variables> &state) const {
        const Conserved before = Conserved::load(conserved[cell]);
        before.store(start[cell]);
        const Conserved next = before + lengthOf(length, longest, cell) * rateOf(mesh, cell, flux);
        next.store(conserved[cell]);
        gas.primitive(next).store(state[cell]);
    }
};

/// The state after a share of a change, which `conserved` does not take.
DNDS_HOST_DEVICE inline Conserved changed(const real *conserved, real share, const real *change) {
    return Conserved::load(conserved) + share * Conserved::load(change);
}
struct TrialKernel {
    Gas gas;

    DNDS_HOST_DEVICE void operator()(index cell, const ReadOwn<variables> &conserved, const ReadOwn<variables> &change,
                                     const ReadOwn<1> &share, const WriteRows<variables> &state) const {
        gas.primitive(changed(conserved[cell], share(0), change[cell])).store(state[cell]);
    }
};
struct RateKernel {
    DNDS::Geom::MeshView mesh;

    DNDS_HOST_DEVICE void operator()(index cell, const ReadOwn<variables> &flux,
                                     const WriteOwn<variables> &rates) const {
        rateOf(mesh, cell, flux).store(rates[cell]);
    }
};

/// The time step that CFL number 1 allows each cell: [owned cells]; -1 where the state is impossible, or where the step
/// would not be a positive number.
struct TimeStepKernel {
    DNDS::Geom::MeshView mesh;
    Gas gas;

    DNDS_HOST_DEVICE void operator()(index cell, const ReadRows<variables> &state, const WriteOwn<1> &longest) const {
        const Primitive w = Primitive::load(state[cell]);
        if (!w.physical()) {
            longest(cell) = -1;
            return;
        }
        const real sound = gas.soundSpeed(w);
        real speeds = 0;
        for (const LocalIndex face : mesh.cellFaces[cell])
            speeds += std::fabs(dot(w.velocity, Vector::load(mesh.areaVectors[face]))) + sound * mesh.areas(face);
        const real step = 2 * mesh.volumes(cell) / speeds;
        longest(cell) = step > 0 ? step : -1;
    }
};

/// Conserved amounts in each cell: [owned cells x variables].
struct AmountKernel {
    DNDS::Geom::MeshView mesh;

    DNDS_HOST_DEVICE void operator()(index cell, const ReadOwn<variables> &conserved,
                                     const WriteOwn<variables> &amounts) const {
        (mesh.volumes(cell) * Conserved::load(conserved[cell])).store(amounts[cell]);
    }
};

/// The force on each of some faces, of the pressure beyond a reference: [faces x 3].
struct ForceKernel {
    DNDS::Geom::MeshView mesh;
    ArrayView<const LocalIndex> faces;
    real reference;

    DNDS_HOST_DEVICE void operator()(index i, const ReadOwn<variables> &flux, const WriteOwn<3> &forces) const {
        const real *through = flux[faces(i)];
        const real *area = mesh.areaVectors[faces(i)];
        for (int d = 0; d < 3; d++)
            forces(i, d) = through[1 + d] - reference * area[d];
    }
};

/// The rotations between ghosts in images beyond rotating periodic faces and their pulled values.
struct GhostTurns {
    ArrayView<const int> images;    ///< [cells] number in `turns`
    ArrayView<const real, 9> turns; ///< [images] matrices, row by row

    DNDS_HOST_DEVICE Vector turned(index cell, Vector v) const {
        const real *matrix = turns[images(cell)];
        return {dot(Vector::load(matrix), v), dot(Vector::load(matrix + 3), v), dot(Vector::load(matrix + 6), v)};
    }
};

/// Turns the velocity in each row, or, of gradients, the derivatives of each variable and the velocities among
/// them.
struct TurnStateKernel {
    GhostTurns ghosts;

    DNDS_HOST_DEVICE void operator()(index cell, const WriteRows<variables> &state) const {
        real *row = state[cell];
        ghosts.turned(cell, Vector::load(row + 1)).store(row + 1);
    }
};
struct TurnGradientKernel {
    GhostTurns ghosts;

    DNDS_HOST_DEVICE void operator()(index cell, const WriteRows<gradientWidth> &gradient) const {
        real *row = gradient[cell];
        for (int k = 0; k < variables; k++)
            ghosts.turned(cell, Vector::load(row + 3 * k)).store(row + 3 * k);
        for (int d = 0; d < 3; d++) { // the velocities' derivatives in direction d
            const Vector v = ghosts.turned(cell, {row[3 + d], row[6 + d], row[9 + d]});
            row[3 + d] = v.x;
            row[6 + d] = v.y;
            row[9 + d] = v.z;
        }
    }
};

} // namespace Euler
