#include <DNDS/Geom/Geom.hpp>

/// Sums the volumes of a box's cells on all ranks.
int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [](DNDS::CommunicatorView world) {
        const DNDS::Geom::UnstructuredMesh mesh =
            buildMesh(world, DNDS::Geom::makeBoxMesh({.cells = {4, 4, 4}}, world));
        const DNDS::Geom::MeshMetrics metrics = computeMetrics(mesh);
        DNDS::real volume = 0;
        for (DNDS::index cell = 0; cell < mesh.cells.owned; cell++)
            volume += metrics.volumes(cell);
        volume = world.allReduce(volume, MPI_SUM);
        return volume > 0.999 && volume < 1.001 ? 0 : 1;
    });
}
