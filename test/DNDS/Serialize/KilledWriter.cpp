// Reads the newest checkpoint of a folder, compares every number with the value of its step, and continues to write
// until it is killed. KilledWriter FOLDER [check]: with check it only reads.
#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"

#include <filesystem>
#include <iostream>

namespace DNDS {
namespace {

constexpr index cells = 4000;

real valueOf(index step, index id, index j) { return static_cast<real>(step * 1000003 + id * 7 + j); }
index linkOf(index step, index id, index j) { return step - id * 5 + j; }

/// Rows of a step: everything depends on it, sizes too.
struct Rows {
    std::vector<index> ids;
    ParArray<real, 5> values;
    ParArray<index, NonUniformSize> links;

    explicit Rows(CommunicatorView comm) : values(comm), links(comm) {
        for (index id = cells; id-- > 0;)
            if ((id * 7919 + id / 11) % comm.size() == comm.rank()) // another partition for each number of ranks
                ids.push_back(id);
    }
    index id(index i) const { return ids[static_cast<std::size_t>(i)]; }
    static index size(index step, index id) { return (step + id) % 4; }

    void fill(index step) {
        values.resize(static_cast<index>(ids.size()));
        links.resize(values.size(), [&](index i) { return size(step, id(i)); });
        for (index i = 0; i < values.size(); i++) {
            for (rowsize j = 0; j < 5; j++)
                values(i, j) = valueOf(step, id(i), j);
            for (rowsize j = 0; j < links.rowSize(i); j++)
                links(i, j) = linkOf(step, id(i), j);
        }
    }
    bool are(index step) const {
        bool right = true;
        for (index i = 0; i < values.size(); i++) {
            for (rowsize j = 0; j < 5; j++)
                right = right && values(i, j) == valueOf(step, id(i), j);
            right = right && links.rowSize(i) == size(step, id(i));
            for (rowsize j = 0; right && j < links.rowSize(i); j++)
                right = right && links(i, j) == linkOf(step, id(i), j);
        }
        return right;
    }
};

int run(CommunicatorView world, const std::string &folder, bool check) {
    const std::string path = folder + "/checkpoint.h5";
    index step = 0;
    Rows rows(world);
    if (std::filesystem::exists(path)) { // after the first one there is always one
        const CheckpointReader file(world, path);
        step = file.integer("step");
        file.read("values", rows.values, rows.ids);
        file.read("links", rows.links, rows.ids);
        const bool right = rows.are(step) && file.array("values").rows == cells;
        if (world.allReduce(right ? 1 : 0, MPI_MIN) == 0) {
            std::cerr << "step " << step << " has wrong rows" << std::endl;
            return 1;
        }
    }
    world.barrier();
    if (world.rank() == 0)
        std::cout << "step " << step << std::endl;
    while (!check) {
        rows.fill(++step);
        CheckpointWriter file(world, path, {16384});
        file.set("step", step);
        file.add("values", rows.values, rows.ids);
        file.add("links", rows.links, rows.ids);
        file.write();
        if (world.rank() == 0)
            std::cout << "step " << step << std::endl; // from now on, no older one may be found
    }
    return 0;
}

} // namespace
} // namespace DNDS

int main(int argc, char **argv) {
    const DNDS::MpiSession mpi(argc, argv);
    return DNDS::run(MPI_COMM_WORLD, argv[1], argc > 2);
}
