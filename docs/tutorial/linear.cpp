// The program of docs/guides/linear.md: the steady temperature of a plate with a hot and a cold side, cell by cell.
//
//   mpiexec -n 3 linear

#include "DNDS/Geom/Geom.hpp"
#include "DNDS/Linear/BlockJacobi.hpp"
#include "DNDS/Linear/Krylov.hpp"

#include <fmt/core.h>

#include <cmath>
#include <utility>

namespace {

namespace Geom = DNDS::Geom;
using DNDS::Index;
using DNDS::LocalIndex;
using DNDS::real;

int solve(DNDS::CommunicatorView world) {
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(
        world, Geom::makeBoxMesh({.fill = Geom::BoxCells::Quadrilaterals, .cells = {48, 32, 1}}, world));
    const auto pattern = DNDS::MatrixPattern::create("cells", mesh.cells.pattern, mesh.cellCells);
    DNDS::SparseMatrix<> a("conduction", pattern);
    auto temperature = mesh.field<DNDS::ArrayDof<1, 1>>("temperature");
    auto right = mesh.field<DNDS::ArrayDof<1, 1>>("right-hand side");

    const Geom::MeshMetrics metrics = Geom::computeMetrics(mesh);
    const auto flow = [&](Index face, const real *from, const real *to) { // per kelvin
        return metrics.areas(face, 0) / std::hypot(to[0] - from[0], to[1] - from[1]);
    };
    for (Index cell = 0; cell < mesh.cells.owned; ++cell) {
        const auto faces = mesh.cellFaces.view()[cell];
        const auto others = mesh.cellCells.view()[cell];
        for (DNDS::rowsize k = 0; k < faces.size(); ++k)
            if (others[k] >= 0) {
                const real weight = flow(faces[k], metrics.centroids[cell], metrics.centroids[others[k]]);
                a.add(cell, cell, weight);
                a.add(cell, others[k], -weight);
            }
    }
    for (const auto &[name, kelvin] : {std::pair{"x-", 400.0}, std::pair{"x+", 300.0}})
        for (const LocalIndex face : mesh.patch(name).ownFaces()) {
            const LocalIndex cell = mesh.faceCells(face, 0);
            const real weight = flow(face, metrics.centroids[cell], metrics.faceCentres[face]);
            a.add(cell, cell, weight);
            (*right.father)(cell, 0) += weight * kelvin;
        }

    const DNDS::KrylovResult done = DNDS::conjugateGradients([&](auto &d, auto &y) { a.multiply(d, y); }, right,
                                                             temperature, DNDS::BlockJacobi(a), {.relative = 1e-10});
    const real mean = temperature.sum() / 1536;
    if (world.rank() == 0)
        fmt::print("{}; mean {:.6f} K\n", done.text(), mean);
    return done.converged() && std::abs(mean - 350) < 1e-6 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, solve); }
