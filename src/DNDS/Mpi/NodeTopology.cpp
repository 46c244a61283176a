#include "DNDS/Mpi/CommunicatorContext.hpp"

#include "DNDS/Mpi/CollectiveWatch.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/RollCall.hpp"

#include <algorithm>
#include <thread>

namespace DNDS {

namespace {

/// Numbers in MPI_COMM_WORLD of ranks of `comm`; empty if they are equal, or some are missing there. Local.
std::vector<int> worldRanksOf(CommunicatorView comm, const std::vector<int> &ranks) {
    std::vector<int> worldRanks(ranks.size(), MPI_UNDEFINED);
    // For messages only: users know ranks of their own communicator, launchers those of MPI_COMM_WORLD.
    MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
    checkMpi(MPI_Comm_group(comm.handle(), &group), "MPI_Comm_group");
    checkMpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
    checkMpi(MPI_Group_translate_ranks(group, static_cast<int>(ranks.size()), ranks.data(), world, worldRanks.data()),
             "MPI_Group_translate_ranks");
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    if (worldRanks == ranks || std::ranges::find(worldRanks, MPI_UNDEFINED) != worldRanks.end())
        worldRanks.clear();
    return worldRanks;
}

} // namespace

// Collective; once a communicator. `members` are ranks of `comm` by their rank on the node; `crowded` makes waits yield
// early. Without an arena `whyNoArena` says why, for reports of transports.
// One split, one allgather over the ranks of the node, and the collectives of `NodeArena::create`. Memory O(ranks of
// the node): no rank keeps a table of all ranks.
NodeTopology NodeTopology::discover(CommunicatorView comm, int ranksPerNode) {
    NodeTopology topology;
    const Communicator owner = Communicator::splitNode(comm, ranksPerNode);
    // The communicator of the node is needed for this only: later, memory is shared without MPI.
    const CommunicatorView node = owner.view();
    std::vector<int> &members = topology.members;
    comm.guarded([&] { members.resize(static_cast<std::size_t>(node.size())); });
    const int mine = comm.rank();
    {
        const ActivityScope activity = ActivityScope::collective("MPI_Allgather");
        checkMpi(MPI_Allgather(&mine, 1, MPI_INT, members.data(), 1, MPI_INT, node.handle()), "MPI_Allgather");
    }
    // With virtual nodes all ranks are on one machine, and share its processors.
    const int onMachine = ranksPerNode > 0 ? comm.size() : node.size();
    const unsigned processors = std::thread::hardware_concurrency();
    topology.crowded = processors > 0 && static_cast<unsigned>(onMachine) > processors;
    comm.guarded([&] { // an agreement of the ranks of one node is passed on to the other nodes
        if (node.size() > 1)
            topology.arena = NodeArena::create(node, topology.whyNoArena);
        else
            topology.whyNoArena = "no other rank on this node";
        if (topology.arena) {
            topology.arena->setRanks(members, worldRanksOf(comm, members), node.size() < comm.size());
            Detail::addWatchedArena(topology.arena);
        }
    });
    return topology;
}

int rankOnMachine(CommunicatorView comm) {
    const Communicator machine = Communicator::splitNode(comm);
    return machine.view().rank();
}

} // namespace DNDS
