#include "Kinetics.hpp"

namespace Euler {

Fractions react(const Fractions &before, index substeps) {
    constexpr int iterations = 12; // from y2 = 0, Newton's method halves its error at first
    const real length = real(1) / static_cast<real>(substeps);
    real y1 = before[0], y2 = before[1];
    for (index step = 0; step < substeps; step++) {
        const real old1 = y1, old2 = y2;
        for (int k = 0; k < iterations; k++) {
            const real y3 = 1 - y1 - y2;
            const real slow = 0.04 * y1, back = 1e4 * y2 * y3, quick = 3e7 * y2 * y2;
            const real error1 = y1 - old1 - length * (back - slow);
            const real error2 = y2 - old2 - length * (slow - back - quick);
            const real by1 = 1e4 * y2, by2 = 1e4 * (y3 - y2); // derivatives of `back`, up to the sign of by1
            const real a = 1 + length * (0.04 + by1), b = -length * by2;
            const real c = -length * (0.04 + by1), d = 1 + length * (by2 + 6e7 * y2);
            const real determinant = a * d - b * c;
            y1 -= (d * error1 - b * error2) / determinant;
            y2 -= (a * error2 - c * error1) / determinant;
        }
    }
    return {y1, y2, 1 - y1 - y2};
}

Kinetics::Kinetics(const HotRegion &region, const DNDS::Geom::UnstructuredMesh &mesh)
    : region_(region), fractions_("species", mesh.comm) {
    mesh.comm.guarded([&] {
        fractions_.resize(mesh.cells.owned);
        for (index cell = 0; cell < fractions_.size(); cell++)
            fractions_(cell, 0) = 1;
    });
}

void Kinetics::advance(const DNDS::Geom::MeshMetrics &metrics, real time) {
    const double begin = MPI_Wtime();
    const auto centroids = metrics.centroids.view();
    for (index cell = 0; cell < fractions_.size(); cell++) {
        const index substeps = region_.substepsAt(Vector::load(centroids[cell]), time);
        const Fractions after = react({fractions_(cell, 0), fractions_(cell, 1), fractions_(cell, 2)}, substeps);
        for (int k = 0; k < species; k++)
            fractions_(cell, k) = after[static_cast<std::size_t>(k)];
        substeps_ += substeps;
    }
    seconds_ += MPI_Wtime() - begin;
}

std::vector<index> Kinetics::costs(const DNDS::Geom::MeshMetrics &metrics, real time) const {
    std::vector<index> costs;
    const auto centroids = metrics.centroids.view();
    for (index cell = 0; cell < fractions_.size(); cell++)
        costs.push_back(region_.substepsAt(Vector::load(centroids[cell]), time));
    return costs;
}

} // namespace Euler
