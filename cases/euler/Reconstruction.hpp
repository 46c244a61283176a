/// @file Reconstruction.hpp
/// @brief From cell means to states at faces: gradients, limiters, positivity.
#pragma once

#include "Boundary.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Task/KernelRows.hpp"

namespace Euler {

using DNDS::ArrayPair;
using DNDS::ArrayView;
using DNDS::LocalIndex;
using DNDS::ParArray;
using DNDS::rowsize;

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
    return denominator > 0 ? (allowed + 2 * most * change) / denominator : 1;
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
        const real *own = state[cell];
        const real *weight = weights[cell];
        const auto faces = mesh.cellFaces[cell];
        const auto cells = mesh.cellCells[cell];
        real lowest[variables];
        real highest[variables];
        real slope[gradientWidth] = {};
        for (int k = 0; k < variables; k++)
            lowest[k] = highest[k] = own[k];
        for (rowsize j = 0; j < faces.size(); j++, weight += 3) {
            real other[variables];
            if (!neighbourState(own, state, faces[j], cells[j], other))
                continue;
            for (int k = 0; k < variables; k++) {
                lowest[k] = smaller(lowest[k], other[k]);
                highest[k] = larger(highest[k], other[k]);
                const real difference = other[k] - own[k];
                for (int d = 0; d < 3; d++)
                    slope[3 * k + d] += weight[d] * difference;
            }
        }
        real share[variables];
        limit(cell, own, lowest, highest, slope, share);
        real *result = gradient[cell];
        for (int k = 0; k < variables; k++)
            for (int d = 0; d < 3; d++)
                result[3 * k + d] = share[k] * slope[3 * k + d];
    }

  private:
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

    DNDS_HOST_DEVICE void limit(index cell, const real *own, const real *lowest, const real *highest, const real *slope,
                                real *share) const {
        for (int k = 0; k < variables; k++)
            share[k] = 1;
        if (choice.limiter == Limiter::None)
            return;
        const real volume = mesh.volumes(cell);
        const real cube = (dimension == 3 ? volume : volume * std::sqrt(volume)) * choice.constant * choice.constant *
                          choice.constant / (choice.length * choice.length * choice.length);
        const Vector centre = Vector::load(mesh.centroids[cell]);
        const auto faces = mesh.cellFaces[cell];
        const auto cells = mesh.cellCells[cell];
        const bool capped = dimension == 3 && choice.limiter == Limiter::Venkatakrishnan;
        for (rowsize j = 0; j < faces.size(); j++) {
            if (cells[j] < 0)
                continue; // values at walls may exceed all means
            const Vector offset = Vector::load(mesh.faceCentres[faces[j]]) - centre;
            for (int k = 0; k < variables; k++) {
                const real change = dot(Vector::load(slope + 3 * k), offset);
                const real most = change > 0 ? highest[k] - own[k] : lowest[k] - own[k];
                const real now = choice.limiter == Limiter::BarthJespersen
                                     ? barthJespersen(change, most)
                                     : venkatakrishnan(change, most, cube * choice.scales[k] * choice.scales[k]);
                share[k] = smaller(share[k], now);
                if (!capped)
                    continue;
                const real half = 0.5 * larger(highest[k] - own[k], own[k] - lowest[k]);
                if (std::fabs(change) > half)
                    share[k] = smaller(share[k], half / std::fabs(change));
            }
        }
    }
};

/// The state of a cell at `point`. If density or pressure would fall below a tenth of the mean, the whole state moves
/// towards the mean until they do not: Zhang and Shu, J. Comput. Phys. 229 (2010), for primitive variables.
DNDS_HOST_DEVICE inline Primitive stateAt(const real *mean, const real *gradient, Vector offset) {
    constexpr real least = 0.1;
    real change[variables];
    real share = 1;
    for (int k = 0; k < variables; k++)
        change[k] = dot(Vector::load(gradient + 3 * k), offset);
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
