/// @file AirfoilFlow.hpp
/// @brief The arithmetic of the small solver, at a point: the same for both ways of writing the loops.
///
/// Its structure is that of the program `airfoil` of OP2 (Giles, Mudalige, Spencer, Bertolli, Reguly: Designing OP2 for
/// GPU architectures, J. Parallel Distrib. Comput. 73, 2013): save, then twice local time steps, fluxes through inner
/// and boundary faces added to both cells, update with the change's root mean square.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cmath>

namespace DNDS::Bench {

inline constexpr int flowWidth = 4; ///< density, momentum in x and y, energy
inline constexpr int rowWidth = 5;  ///< the flow, and the sum of wave speeds over the cell's faces
inline constexpr int airfoilStages = 2;

enum class AirfoilSide : unsigned char { Wall, FarField };

struct AirfoilFlow {
    double gamma = 1.4;
    double cfl = 0.9;
    double smoothing = 0.125;
    double far[rowWidth] = {1.0, 0.4 * 1.1832159566199232, 0.0, 2.612, 0.0};

    DNDS_HOST_DEVICE double pressure(const double *q) const {
        return (gamma - 1) * (q[3] - 0.5 * (q[1] * q[1] + q[2] * q[2]) / q[0]);
    }
    /// The speed of the fastest wave through a face, times its length. `sound` is the speed of sound.
    DNDS_HOST_DEVICE static double waveSpeed(double u, double v, double sound, double x, double y, double length) {
        return std::fabs(u * x + v * y) + sound * length;
    }
    /// Central differences and a dissipation by the wave speeds of both cells; `x`, `y` is the normal.
    DNDS_HOST_DEVICE void through(const double *a, const double *b, double x, double y, double *flux) const {
        const double volumeA = (a[1] * x + a[2] * y) / a[0];
        const double volumeB = (b[1] * x + b[2] * y) / b[0];
        const double pressureA = pressure(a);
        const double pressureB = pressure(b);
        const double mu = 0.5 * smoothing * (a[4] + b[4]);
        flux[0] = 0.5 * (volumeA * a[0] + volumeB * b[0]) + mu * (a[0] - b[0]);
        flux[1] = 0.5 * (volumeA * a[1] + volumeB * b[1] + (pressureA + pressureB) * x) + mu * (a[1] - b[1]);
        flux[2] = 0.5 * (volumeA * a[2] + volumeB * b[2] + (pressureA + pressureB) * y) + mu * (a[2] - b[2]);
        flux[3] = 0.5 * (volumeA * (a[3] + pressureA) + volumeB * (b[3] + pressureB)) + mu * (a[3] - b[3]);
    }
    DNDS_HOST_DEVICE void atSide(AirfoilSide side, const double *a, double x, double y, double *flux) const {
        if (side == AirfoilSide::Wall) {
            const double p = pressure(a);
            flux[0] = flux[3] = 0.0;
            flux[1] = p * x;
            flux[2] = p * y;
        } else
            through(a, far, x, y, flux);
    }
    /// A bump of pressure in the free stream.
    void initial(double x, double y, double *q) const {
        for (int k = 0; k < flowWidth; k++)
            q[k] = far[k];
        q[3] += 0.5 * std::exp(-40 * ((x - 0.4) * (x - 0.4) + (y - 0.3) * (y - 0.3)));
        q[4] = 0.0;
    }
};

} // namespace DNDS::Bench
