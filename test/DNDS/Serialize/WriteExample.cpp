// Writes a checkpoint to the file that is named: for readers in other languages.
#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"

int main(int argc, char **argv) {
    const DNDS::MpiSession mpi(argc, argv);
    const DNDS::CommunicatorView world(MPI_COMM_WORLD);
    std::vector<DNDS::index> ids;
    for (DNDS::index id = world.rank(); id < 1000; id += world.size())
        ids.push_back(id);
    DNDS::ParArray<DNDS::real, 5> state("state", world);
    state.resize(static_cast<DNDS::index>(ids.size()));
    DNDS::ParArray<DNDS::index, DNDS::NonUniformSize> links("links", world);
    links.resize(state.size(), [&](DNDS::index i) { return 1 + ids[static_cast<std::size_t>(i)] % 3; });
    for (DNDS::index i = 0; i < state.size(); i++) {
        for (DNDS::rowsize j = 0; j < 5; j++)
            state(i, j) = static_cast<DNDS::real>(ids[static_cast<std::size_t>(i)]) + 0.5 * j;
        for (DNDS::rowsize j = 0; j < links.rowSize(i); j++)
            links(i, j) = ids[static_cast<std::size_t>(i)] + 7 + j;
    }
    DNDS::CheckpointWriter file(world, argv[1], {4096});
    file.set("time", 0.25);
    file.add("state", state, ids);
    file.add("links", links, ids);
    file.write();
    return 0;
}
