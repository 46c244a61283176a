// The program of docs/guides/checkpoints.md: a field is written, and read again into another one.
//
//   mpiexec -n 3 checkpoint FILE

#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Geom/Geom.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <span>

namespace Geom = DNDS::Geom;
using DNDS::real;
using Field = DNDS::ArrayPair<DNDS::ParArray<real, 2>>;

int run(DNDS::CommunicatorView world, int argc, char **argv) {
    DNDS_CHECK(argc == 2, DNDS::ArgumentError, "which file? checkpoint FILE");
    const Geom::BoxMeshOptions square{.fill = Geom::BoxCells::Triangles, .cells = {20, 20}};
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(world, Geom::makeBoxMesh(square, world));
    const auto makeField = [&](Field &field, const char *name) {
        field.initPair(name, world);
        field.father->resize(mesh.cells.owned);
        Geom::attachField(field, mesh.cells);
    };
    Field state, copy;
    makeField(state, "state");
    makeField(copy, "copy");
    for (DNDS::Index cell = 0; cell < mesh.cells.owned; cell++)
        for (int k = 0; k < 2; k++)
            (*state.father)(cell, k) =
                static_cast<real>(2 * mesh.cells.fileNumbers[static_cast<std::size_t>(cell)] + k);
    const real time = 0.25;

    // The file numbers of this rank's cells; in `fileNumbers` those of its ghosts follow.
    const auto own = mesh.cells.ownFileNumbers();
    const std::uint64_t meshId = Geom::fingerprint(mesh); // the same for any partition of this mesh
    DNDS::CheckpointWriter writer(world, argv[1], {.mesh = meshId});
    writer.set("time", time);                 // the same on all ranks
    writer.add("state", *state.father, own);  // rows, and the id of each
    const DNDS::Index bytes = writer.write(); // collective

    const DNDS::CheckpointReader reader(world, argv[1], {.mesh = meshId}); // refuses rows of another mesh
    const real then = reader.number("time");
    reader.read("state", *copy.father, own); // this rank's rows, from any writer
    copy.trans.pullOnce();

    DNDS::Index wrong = then == time ? 0 : 1;
    for (DNDS::Index cell = 0; cell < mesh.cells.size(); cell++)
        for (int k = 0; k < 2; k++)
            wrong += copy(cell, k) == static_cast<real>(2 * mesh.cells.fileNumbers[static_cast<std::size_t>(cell)] + k)
                         ? 0
                         : 1;
    wrong = world.allReduce(wrong, MPI_SUM);
    if (world.rank() == 0)
        fmt::print("{} bytes, {} wrong numbers\n", bytes, wrong);
    return wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world, argc, argv); });
}
