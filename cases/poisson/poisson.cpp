// Heat conduction in a body that a mesh file describes: steady, or in implicit steps of time.
//
//   mpiexec -n 4 poisson part.cgns --fix hot=400 --fix cold=300 --output part.vtkhdf
//   mpiexec -n 4 poisson --verify tetrahedra

#include "Conduction.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace Poisson;
using DNDS::CommunicatorView;
using DNDS::KrylovOptions;
using DNDS::KrylovResult;
namespace Geom = DNDS::Geom;

struct Choices {
    std::string mesh;
    std::string verify;
    std::vector<std::string> fixed;
    std::string output;
    real conductivity = 1;
    real capacity = 1;
    real source = 0;
    real timeStep = 0;
    int steps = 0;
    KrylovOptions solver;
    std::string by = "dnds";
    SystemSolver solve = solveByDnds;
};

void print(CommunicatorView comm, const std::string &text) {
    if (comm.rank() == 0)
        fmt::print("{}\n", text);
}

std::map<std::string, Function> fixedOf(const Choices &choices) {
    std::map<std::string, Function> fixed;
    for (const std::string &word : choices.fixed) {
        const auto equals = word.rfind('=');
        std::size_t end = 0;
        real value = 0;
        try {
            value = equals == std::string::npos ? 0 : std::stod(word.substr(equals + 1), &end);
        } catch (const std::exception &) {
            end = 0;
        }
        DNDS_CHECK(end > 0 && equals + 1 + end == word.size(), DNDS::ArgumentError,
                   "--fix {}: it takes the name of a patch and a temperature, as --fix wall=300", word);
        fixed[word.substr(0, equals)] = [value](Position) { return value; };
    }
    return fixed;
}

bool solveBody(CommunicatorView comm, const Choices &choices) {
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(comm, Geom::readMesh(comm, choices.mesh));
    Material material{choices.conductivity, choices.capacity, {}};
    if (choices.source != 0)
        material.source = [&](Position) { return choices.source; };
    const auto fixed = fixedOf(choices);
    DNDS_CHECK(!fixed.empty() || choices.steps > 0, DNDS::ArgumentError,
               "a steady temperature needs a patch where it is fixed: --fix PATCH=KELVIN (or --steps and --dt)");
    Conduction body(mesh, material, fixed);
    body.setSolver(choices.solve);
    Temperature t = body.start();
    std::unique_ptr<Geom::MeshWriter> writer;
    if (!choices.output.empty())
        writer = std::make_unique<Geom::MeshWriter>(mesh, choices.output, Geom::MeshWriterOptions{.ranks = true});
    const auto write = [&](real time) {
        if (writer)
            writer->writeStep(time, {.nodes = {Geom::fieldOf("temperature", t)}});
    };
    KrylovResult done;
    for (int step = 0; step < choices.steps; ++step) {
        if (step == 0)
            write(0);
        done = body.step(t, choices.timeStep, choices.solver);
        print(comm, fmt::format("step {:4} {:12.6g} s: {}", step + 1, (step + 1) * choices.timeStep, done.text()));
        if (!done.converged())
            break;
        write((step + 1) * choices.timeStep);
    }
    if (choices.steps == 0) {
        done = body.solveSteady(t, choices.solver);
        print(comm, "steady: " + done.text());
        write(0);
        for (const auto &[name, heat] : body.heatEntering(t))
            print(comm, fmt::format("heat entering at '{}': {:.9g} W", name, heat));
    }
    print(comm, fmt::format("temperature from {:.9g} to {:.9g} K", t.min(), t.max()));
    if (writer)
        writer->close();
    return done.converged();
}

/// Solves for a temperature that is known on finer and finer meshes of a box. Whether the order is that of the method.
bool verify(CommunicatorView comm, const Choices &choices) {
    constexpr real pi = std::numbers::pi;
    Geom::BoxMeshOptions box{.fill = Geom::boxCellsOf(choices.verify), .jitter = 0.1};
    real last = 0;
    real order = 0;
    print(comm,
          fmt::format("{:>8} {:>12} {:>8} {:>6}", "nodes", "error", "order", choices.by == "petsc" ? "KSP" : "CG"));
    for (const DNDS::Index bricks : {4, 8, 16}) {
        box.cells = {bricks, bricks, bricks};
        const Geom::UnstructuredMesh mesh = Geom::buildMesh(comm, Geom::makeBoxMesh(box, comm));
        const bool volume = mesh.dimension == 3;
        const Function exact = [volume](Position x) {
            return std::sin(pi * x[0]) * std::sin(pi * x[1]) * (volume ? std::sin(pi * x[2]) : 1) + x[0];
        };
        Material material;
        material.source = [&](Position x) { return (volume ? 3 : 2) * pi * pi * (exact(x) - x[0]); };
        std::map<std::string, Function> fixed;
        for (const Geom::MeshPatch &patch : mesh.patches)
            if (patch.name != "unassigned")
                fixed[patch.name] = exact;
        Conduction body(mesh, material, fixed);
        body.setSolver(choices.solve);
        Temperature t = body.start();
        const KrylovResult done = body.solveSteady(t, choices.solver);
        if (!done.converged()) {
            print(comm, done.text());
            return false;
        }
        const real error = body.error(t, exact);
        order = last > 0 ? std::log2(last / error) : 0;
        last = error;
        const auto nodes = comm.allReduce(mesh.nodes.owned, MPI_SUM);
        print(comm, fmt::format("{:8} {:12.5e} {:>8} {:6}", nodes, error,
                                bricks == 4 ? std::string() : fmt::format("{:.2f}", order), done.iterations));
    }
    return order > 1.7;
}

int run(CommunicatorView comm, int argc, char **argv) {
    Choices choices;
    CLI::App app("Heat conduction by linear finite elements: steady, or in implicit steps of time.");
    auto *const mesh =
        app.add_option("mesh", choices.mesh, "a CGNS, Gmsh or SU2 file, or a case of OpenFOAM, of linear cells");
    auto *const kind =
        app.add_option("--verify", choices.verify,
                       "instead: boxes of such cells (tetrahedra, mixed-volume, ...) and a known temperature");
    mesh->excludes(kind);
    app.add_option("--fix", choices.fixed, "PATCH=KELVIN, any number of times");
    app.add_option("--conductivity", choices.conductivity, "W/(m K)")->check(CLI::PositiveNumber);
    app.add_option("--capacity", choices.capacity, "density times heat capacity, J/(m^3 K)")
        ->check(CLI::PositiveNumber);
    app.add_option("--source", choices.source, "W/m^3");
    auto *const steps = app.add_option("--steps", choices.steps, "of time, from 0 K")->check(CLI::NonNegativeNumber);
    steps->needs(app.add_option("--dt", choices.timeStep, "s")->check(CLI::PositiveNumber));
    app.add_option("--tolerance", choices.solver.relative, "of the residual, relative to the right-hand side");
    app.add_option("--iterations", choices.solver.maxIterations, "at most");
    app.add_option("--by", choices.by,
                   "whose solver: dnds; hypre, whose multigrid preconditions that of dnds; or petsc with its "
                   "options in PETSC_OPTIONS (-poisson_...)")
        ->check(CLI::IsMember({"dnds", "hypre", "petsc"}));
    app.add_option("--output", choices.output, "a VTKHDF file of the temperature at nodes");
    try {
        app.parse(argc, argv);
        if (choices.mesh.empty() && choices.verify.empty())
            throw CLI::RequiredError("a mesh, or --verify");
    } catch (const CLI::ParseError &error) {
        return comm.rank() == 0 ? app.exit(error) : error.get_exit_code();
    }
    if (choices.by == "petsc")
        choices.solve = solveByPetsc();
    if (choices.by == "hypre")
        choices.solve = solveByHypre();
    return (choices.verify.empty() ? solveBody(comm, choices) : verify(comm, choices)) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](CommunicatorView world) { return run(world, argc, argv); });
}
