/// @file Reconstruction.hpp
/// @brief From cell means to states at faces: gradients, limiters, positivity.
#pragma once

#include "Boundary.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Task/KernelRows.hpp"

#include <cstddef>

namespace Euler {

using DNDS::ArrayPair;
using DNDS::ArrayView;
using DNDS::LocalIndex;
using DNDS::ParArray;
using DNDS::rowsize;
using DNDS::Task::prefetchRow;

/// A field with ghosts.
template <rowsize width>
using Field = ArrayPair<ParArray<real, width>>;
/// Rows of a field, in kernels.
template <rowsize width>
using ReadRows = DNDS::Task::ReadRows<Field<width>>;
template <rowsize width>
using WriteRows = DNDS::Task::WriteRows<Field<width>>;
/// Rows of an array without ghosts, in kernels.
template <rowsize width>
using ReadOwn = DNDS::Task::ReadRows<DNDS::Array<real, width>>;
template <rowsize width>
using WriteOwn = DNDS::Task::WriteRows<DNDS::Array<real, width>>;

inline constexpr int gradientWidth = 3 * variables; ///< derivatives of the first variable, of the second, ...

/// In two dimensions one velocity and one derivative of each variable are 0: kernels compute the `unknowns` others.
template <int dimension>
inline constexpr int unknowns = dimension + 2;
template <int dimension>
using Unknowns = real[static_cast<std::size_t>(unknowns<dimension>)];
/// Where unknown `k` is among the variables.
template <int dimension>
DNDS_HOST_DEVICE constexpr int variableOf(int k) {
    return k > dimension ? variables - 1 : k;
}
/// The change of a variable along `offset`, by its derivatives.
template <int dimension>
DNDS_HOST_DEVICE real changeAlong(const real *derivatives, Vector offset) {
    const real change = derivatives[0] * offset.x + derivatives[1] * offset.y;
    return dimension == 3 ? change + derivatives[2] * offset.z : change;
}

enum class GradientScheme : unsigned char { LeastSquares, GreenGauss };
enum class Limiter : unsigned char { None, BarthJespersen, Venkatakrishnan };

struct LimiterChoice {
    Limiter limiter = Limiter::Venkatakrishnan;
    /// [variables] Venkatakrishnan: variations of less than K^1.5 times this (h / reference length)^1.5 are not
    /// limited.
    real scales[variables] = {1, 1, 1, 1, 1};
    real constant = 5; ///< K
    real length = 1;
};

/// The factor of a gradient: `change` is its change at a face, `most` what neighbours allow (both of one sign, or 0).
/// Barth and Jespersen, AIAA 89-0366.
DNDS_HOST_DEVICE inline real barthJespersen(real change, real most) {
    return std::fabs(change) > std::fabs(most) ? most / change : 1;
}
/// Venkatakrishnan, J. Comput. Phys. 118 (1995); `square` is the paper's eps^2.
DNDS_HOST_DEVICE inline real venkatakrishnan(real change, real most, real square) {
    const real allowed = most * most + square;
    const real denominator = allowed + 2 * change * change + most * change;
    const real none = denominator > 0 ? real(0) : real(1); // 0 / 0 is 1
    return (allowed + 2 * most * change + none) / (denominator + none);
}

/// Limited gradients of the primitive variables in a cell.
///
/// In three dimensions Venkatakrishnan's limiter also keeps a gradient's change at a face below half the largest
/// difference to a neighbour, of either sign and however small: where the function begins to limit without eps. On even
/// grids that is never active. It keeps gradients from face neighbours of tetrahedra and pyramids from being unstable
/// (Haider, Croisille, Courbet, Numer. Math. 113, 2009) below eps, where nothing else limits.
///
/// All gradient schemes are sums over the cell's faces, in file order, of weights times differences: see
/// `gradientWeights`.
struct GradientKernel {
    DNDS::Geom::MeshView mesh;
    ArrayView<const real, DNDS::NonUniformSize> weights; ///< [owned cells x 3 faces]
    ArrayView<const int> faceCondition;                  ///< [faces] -1 inside
    ArrayView<const BoundaryCondition> conditions;
    Gas gas;
    LimiterChoice choice;
    int dimension;

    DNDS_HOST_DEVICE void operator()(index cell, const ReadRows<variables> &state,
                                     const WriteRows<gradientWidth> &gradient) const {
        dimension == 3 ? compute<3>(cell, state, gradient[cell]) : compute<2>(cell, state, gradient[cell]);
    }
    void prefetch(index cell, const ReadRows<variables> &state, const WriteRows<gradientWidth> & /*gradient*/) const {
        const auto faces = mesh.cellFaces[cell];
        const auto cells = mesh.cellCells[cell];
        for (rowsize j = 0; j < faces.size(); j++) {
            prefetchRow(mesh.faceCentres, faces[j]);
            if (cells[j] >= 0)
                prefetchRow(state, cells[j]);
        }
    }

  private:
    template <int dim>
    DNDS_HOST_DEVICE void compute(index cell, const ReadRows<variables> &state, real *result) const {
        constexpr int count = unknowns<dim>;
        const real *own = state[cell];
        const real *weight = weights[cell];
        const auto faces = mesh.cellFaces[cell];
        const auto cells = mesh.cellCells[cell];
        Unknowns<dim> lowest{}, highest{}; // differences to the own state
        real slope[static_cast<std::size_t>(count * dim)] = {};
        for (rowsize j = 0; j < faces.size(); j++, weight += 3) {
            real other[variables];
            if (!neighbourState(own, state, faces[j], cells[j], other))
                continue;
            for (int k = 0; k < count; k++) {
                const real difference = other[variableOf<dim>(k)] - own[variableOf<dim>(k)];
                lowest[k] = smaller(lowest[k], difference);
                highest[k] = larger(highest[k], difference);
                for (int d = 0; d < dim; d++)
                    slope[dim * k + d] += weight[d] * difference;
            }
        }
        Unknowns<dim> share;
        limit<dim>(cell, lowest, highest, slope, share);
        for (int k = 0; k < gradientWidth; k++)
            result[k] = 0;
        for (int k = 0; k < count; k++)
            for (int d = 0; d < dim; d++)
                result[3 * variableOf<dim>(k) + d] = share[k] * slope[dim * k + d];
    }

    /// The state across a face: of the cell there, or from the boundary condition.
    DNDS_HOST_DEVICE bool neighbourState(const real *own, const ReadRows<variables> &state, LocalIndex face,
                                         LocalIndex neighbour, real *other) const {
        if (neighbour >= 0) {
            const real *row = state[neighbour];
            for (int k = 0; k < variables; k++)
                other[k] = row[k];
            return true;
        }
        if (faceCondition(face) < 0)
            return false;
        const Vector normal = (1 / mesh.areas(face)) * Vector::load(mesh.areaVectors[face]);
        boundaryState(gas, conditions(faceCondition(face)), Primitive::load(own), normal).store(other);
        return true;
    }

    /// Limiters fall with the change, so that the largest and the smallest change at faces decide.
    template <int dim>
    DNDS_HOST_DEVICE void limit(index cell, const real *lowest, const real *highest, const real *slope,
                                real *share) const {
        constexpr int count = unknowns<dim>;
        for (int k = 0; k < count; k++)
            share[k] = 1;
        if (choice.limiter == Limiter::None)
            return;
        Unknowns<dim> rise{}, fall{};
        const Vector centre = Vector::load(mesh.centroids[cell]);
        const auto faces = mesh.cellFaces[cell];
        const auto cells = mesh.cellCells[cell];
        for (rowsize j = 0; j < faces.size(); j++) {
            if (cells[j] < 0)
                continue; // values at walls may exceed all means
            const Vector offset = Vector::load(mesh.faceCentres[faces[j]]) - centre;
            for (int k = 0; k < count; k++) {
                const real change = changeAlong<dim>(slope + dim * k, offset);
                rise[k] = larger(rise[k], change);
                fall[k] = smaller(fall[k], change);
            }
        }
        if (choice.limiter == Limiter::BarthJespersen) {
            for (int k = 0; k < count; k++)
                share[k] = smaller(barthJespersen(rise[k], highest[k]), barthJespersen(fall[k], lowest[k]));
            return;
        }
        const real volume = mesh.volumes(cell);
        const real cube = (dim == 3 ? volume : volume * std::sqrt(volume)) * choice.constant * choice.constant *
                          choice.constant / (choice.length * choice.length * choice.length);
        for (int k = 0; k < count; k++) {
            const real scale = choice.scales[variableOf<dim>(k)];
            const real square = cube * scale * scale;
            share[k] = smaller(smaller(share[k], venkatakrishnan(rise[k], highest[k], square)),
                               venkatakrishnan(fall[k], lowest[k], square));
            if (dim != 3)
                continue;
            const real half = 0.5 * larger(highest[k], -lowest[k]);
            const real change = larger(rise[k], -fall[k]);
            if (change > half)
                share[k] = smaller(share[k], half / change);
        }
    }
};

/// The state of a cell at `point`. If density or pressure would fall below a tenth of the mean, the whole state moves
/// towards the mean until they do not: Zhang and Shu, J. Comput. Phys. 229 (2010), for primitive variables.
template <int dimension>
DNDS_HOST_DEVICE Primitive stateAt(const real *mean, const real *gradient, Vector offset) {
    constexpr real least = 0.1;
    real change[variables] = {};
    real share = 1;
    for (int i = 0; i < unknowns<dimension>; i++) {
        const int k = variableOf<dimension>(i);
        change[k] = changeAlong<dimension>(gradient + 3 * k, offset);
    }
    for (int k = 0; k < variables; k += variables - 1) // density, pressure
        if (mean[k] + change[k] < least * mean[k])
            share = smaller(share, (least - 1) * mean[k] / change[k]);
    real value[variables];
    for (int k = 0; k < variables; k++)
        value[k] = mean[k] + share * change[k];
    return Primitive::load(value);
}

/// The weights of GradientKernel: [owned cells][3 a face]. Local. O(faces).
///
/// Least squares, exact for linear fields, with inverse squared distances as weights. Cells at the boundary with no
/// more neighbours than dimensions, or whose neighbours do not span space well, also use the centres of boundary faces:
/// a gradient that merely interpolates a few cells on one side is unstable (on tetrahedra at walls above all).
/// Elsewhere boundary faces have weight 0.
///
/// In thin, slanted cells two near neighbours would determine the derivative along the cell, over which states are then
/// extrapolated a thousand times as far. If a neighbour's difference would be multiplied by more than 1 at a face,
/// distances are measured in coordinates in which the cell is isotropic, if that is better; beyond 2 the cell uses the
/// gradient of Green and Gauss.
///
/// Green and Gauss: the mean gradient from the values on the surface, boundary faces included; exact for linear fields
/// only if lines between centroids pass through the faces' centres.
DNDS::Array<real, DNDS::NonUniformSize> gradientWeights(const DNDS::Geom::UnstructuredMesh &mesh,
                                                        const DNDS::Geom::MeshMetrics &metrics, GradientScheme scheme);

} // namespace Euler
