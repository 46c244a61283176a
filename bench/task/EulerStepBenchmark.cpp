// A step of cases/euler as a plan beside the same kernels orchestrated by hand.

#include "Benchmarks.hpp"
#include "Statistics.hpp"

#include "HandWrittenSolver.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace DNDS::Bench {

namespace {

constexpr real anyLength = std::numeric_limits<real>::infinity();

/// A box of about so many triangles, with one layer of ghosts by faces. Collective.
Geom::UnstructuredMesh meshOf(CommunicatorView comm, index cells) {
    Geom::BoxMeshOptions box;
    box.fill = Geom::BoxCells::Triangles;
    box.cells.fill(std::max<index>(1, std::lround(std::sqrt(static_cast<double>(cells) / 2))));
    box.jitter = 0.1;
    Geom::MeshOptions options;
    options.ghostsBy = Geom::GhostNeighbours::Faces;
    return buildMesh(comm, makeBoxMesh(box, comm), options);
}

/// Both solvers of one mesh, with the same flow: a bump in a free stream.
struct Pair {
    Geom::UnstructuredMesh mesh;
    Geom::MeshMetrics metrics;
    Euler::Solver plan;
    HandWritten::Solver byHand;

    Pair(CommunicatorView comm, index cells, const Euler::Scheme &scheme,
         const Euler::Primitive &far = {1, {0.5, 0.3, 0}, 1})
        : mesh(meshOf(comm, cells)), metrics(computeMetrics(mesh)), plan(mesh, metrics, {}, scheme, farField(far)),
          byHand(mesh, metrics, {}, scheme, farField(far)) {
        plan.setState([&](Euler::Vector x) {
            const Euler::Vector d = x - Euler::Vector{0.4, 0.5, x.z};
            const real bump = 0.3 * std::exp(-30 * dot(d, d));
            return Euler::Primitive{far.density + bump, far.velocity, far.pressure + bump};
        });
        const ParArray<real, Euler::variables> start = plan.conserved();
        plan.setConserved(start); // states as the other solver computes them
        byHand.setConserved(start);
    }
    std::vector<Euler::BoundaryCondition> farField(const Euler::Primitive &far) const {
        return std::vector<Euler::BoundaryCondition>(mesh.patches.size(), {Euler::BoundaryKind::FarField, far});
    }
    /// Numbers of this rank in which the solvers differ; waits for the device.
    index differences() const {
        index different = 0;
        for (index cell = 0; cell < mesh.cells.owned; cell++)
            for (int k = 0; k < Euler::variables; k++)
                different += plan.conserved()(cell, k) == byHand.conserved()(cell, k) ? 0 : 1;
        return different;
    }
};

double medianOf(const std::vector<Block> &blocks) {
    std::vector<double> times;
    for (const Block &block : blocks)
        times.push_back(block.microseconds);
    return median(std::move(times));
}

void measure(const Setting &setting, index cells, bool device, Table &table) {
    Euler::Scheme scheme;
    scheme.device = device;
    scheme.limiter.constant = 1;
    Pair pair(setting.comm, cells, scheme);
    const index all = setting.comm.allReduce(pair.mesh.cells.owned, MPI_SUM);
    // Steps of different sizes would make numbers differ: both solvers take as many.
    const std::vector<Contestant> contestants{{"plan", {}, [&] { pair.plan.advance(0.5, anyLength); }, {}},
                                              {"by hand", {}, [&] { pair.byHand.advance(0.5, anyLength); }, {}}};
    BlockPlan plan = setting.common.plan;
    plan.minRepetitions = plan.maxRepetitions = std::clamp<int>(static_cast<int>(2000000 / cells), 2, 100);
    const auto blocks = interleave(setting.comm, setting.sync, contestants, plan);
    const index different = setting.comm.allReduce(pair.differences(), MPI_SUM);
    DNDS_CHECK(different == 0, DataError, "{} numbers of plan and steps by hand differ", different);
    const double byHand = medianOf(blocks[1]);
    for (std::size_t k = 0; k < contestants.size(); k++) {
        const double time = medianOf(blocks[k]);
        table.add({contestants[k].name, device ? "device" : "host", fmt::to_string(all), numberOrDash(time),
                   numberOrDash(time / byHand, 4)});
        setting.report.add({{"benchmark", "euler step"},
                            {"method", contestants[k].name},
                            {"where", device ? "device" : "host"},
                            {"ranks", setting.comm.size()},
                            {"cells", all},
                            {"us_per_step", numberOrNull(time)},
                            {"ratio_to_by_hand", numberOrNull(time / byHand)}});
    }
}

} // namespace

void benchmarkEulerStep(const Setting &setting) {
    Table table({"method", "where", "cells", "us a step", "of by hand"});
    for (const bool device : {false, true})
        for (const index cells : setting.cells)
            if (!device || Device::available())
                measure(setting, cells, device, table);
    say(setting.comm, fmt::format("steps of cases/euler\n{}", table.text()));
}

} // namespace DNDS::Bench
