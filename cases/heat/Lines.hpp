/// @file Lines.hpp
/// @brief The kernel of implicit heat steps: periodic tridiagonal systems, one for each line of cells.
#pragma once

#include "DNDS/Blocks/BlockView.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Storage/ArrayView.hpp"

namespace Heat {

using DNDS::index;
using DNDS::real;

/// Columns of the factors of the matrix of a line, one row a cell.
enum Factor : DNDS::rowsize { Pivot, Upper, Corner, factorCount };

/// Solves (1 + 2 r) x_i - r (x_(i-1) + x_(i+1)) = u_i along each line of cells in dimension `along`, which is periodic
/// and in this block as a whole; x replaces u. By elimination without pivoting, where the two corners of the matrix are
/// a change of rank one (Sherman and Morrison, Ann. Math. Statist. 21, 1950). The matrix is diagonally dominant for any
/// r >= 0. A call solves `bundle` neighbouring lines: one for each thread of a device, several on the host, which then
/// uses whole cache lines. The operations of a line depend on nothing else, so host, device and any number of ranks
/// give the same bits.
struct SolveLines {
    DNDS::BlockView<real> u;
    DNDS::ArrayView<const real, factorCount> factors; ///< as `LineSolver::factorLine` makes them
    int along = 0;
    real number = 0; ///< r: diffusivity times time step over the square of the cells' width
    index bundle = 1;

    /// The dimension in which lines of a bundle are neighbours.
    DNDS_HOST_DEVICE int across() const { return along == u.dims() - 1 ? along - 1 : u.dims() - 1; }
    DNDS_HOST_DEVICE index bundlesAcross() const { return (u.extent(across()) + bundle - 1) / bundle; }
    DNDS_HOST_DEVICE index bundles() const {
        return u.size() > 0 ? u.size() / u.extent(along) / u.extent(across()) * bundlesAcross() : 0;
    }

    DNDS_HOST_DEVICE void operator()(index which) const {
        const index n = u.extent(along);
        if (n == 1) // its own neighbour: nothing flows
            return;
        const index first = which % bundlesAcross() * bundle;
        const index left = u.extent(across()) - first;
        const index lines = left < bundle ? left : bundle;
        real *x = u.data() + first * u.stride(across());
        index rest = which / bundlesAcross();
        for (int d = u.dims() - 1; d >= 0; --d)
            if (d != along && d != across()) {
                x += rest % u.extent(d) * u.stride(d);
                rest /= u.extent(d);
            }
        eliminate(x, n, lines);
        closeLines(x, n, lines);
    }

  private:
    /// Without the corners.
    DNDS_HOST_DEVICE void eliminate(real *x, index n, index lines) const {
        const index step = u.stride(along), apart = u.stride(across());
        for (index w = 0; w < lines; ++w)
            x[w * apart] *= factors(0, Pivot);
        for (index i = 1; i < n; ++i)
            for (index w = 0; w < lines; ++w) {
                real &here = x[i * step + w * apart];
                here = (here + number * x[(i - 1) * step + w * apart]) * factors(i, Pivot);
            }
        for (index i = n - 1; i-- > 0;)
            for (index w = 0; w < lines; ++w)
                x[i * step + w * apart] -= factors(i, Upper) * x[(i + 1) * step + w * apart];
    }
    /// Adds the share of the vector that stands for the corners. The ends come last: the share depends on them.
    DNDS_HOST_DEVICE void closeLines(real *x, index n, index lines) const {
        const index step = u.stride(along), apart = u.stride(across());
        const real ratio = number / (1 + 2 * number); // the last element of the change of rank one over its first
        const real part = 1 / (1 + factors(0, Corner) + factors(n - 1, Corner) * ratio);
        for (index i = 1; i < n; ++i)
            for (index w = 0; w < lines; ++w) {
                real *line = x + w * apart;
                const real share = (line[0] + line[(n - 1) * step] * ratio) * part;
                line[i * step] -= share * factors(i, Corner);
                if (i == n - 1)
                    line[0] -= share * factors(0, Corner);
            }
    }
};

/// Solves all lines; on the device it is queued. Local.
void solveLines(const DNDS::Executor &executor, const SolveLines &lines);

} // namespace Heat
