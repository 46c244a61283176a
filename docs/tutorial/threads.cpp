#include "DNDS/DNDS.hpp"

#include <fmt/core.h>

#include <future>
#include <string>
#include <vector>

using DNDS::real;
using Field = DNDS::ArrayPair<DNDS::ParArray<real, 1>>;

/// A row on each rank, and the next rank's as ghost. Collective.
Field makeField(const std::string &name, DNDS::CommunicatorView world) {
    Field field;
    field.initPair(name, world);
    field.father->resize(1);
    field.transAttach();
    field.trans.createFatherGlobalMapping();
    field.trans.createGhostMapping(std::vector<DNDS::Index>{(world.rank() + 1) % world.size()});
    field.trans.createMPITypes();
    field.trans.initPersistentPull();
    return field;
}

int twoFields(DNDS::CommunicatorView world) {
    // Collective calls: one after another, in the same order on all ranks.
    Field heat = makeField("heat", world);
    Field salt = makeField("salt", world);

    // Local calls: each field has a thread of its own, and each thread its own steps.
    const auto carryRound = [&](Field &field, int rounds) {
        (*field.father)(0) = world.rank();
        for (int step = 0; step < rounds * world.size(); step++) {
            field.trans.startPersistentPull();
            field.trans.waitPersistentPull();
            (*field.father)(0) = (*field.son)(0);
        }
    };
    auto other = std::async(std::launch::async, [&] { carryRound(salt, 1000); });
    carryRound(heat, 500);
    other.get(); // throws what the thread threw

    const bool home = (*heat.father)(0) == world.rank() && (*salt.father)(0) == world.rank();
    if (world.rank() == 0)
        fmt::print("two threads a rank: the rows {} home\n", home ? "are" : "are not");
    return home ? 0 : 1;
}

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, twoFields, MPI_THREAD_MULTIPLE); }
