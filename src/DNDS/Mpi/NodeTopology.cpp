#include "DNDS/Mpi/NodeTopology.hpp"

#include <thread>

namespace DNDS {

NodeTopology NodeTopology::discover(CommunicatorView comm, int ranksPerNode) {
    NodeTopology topology;
    const Communicator owner = Communicator::splitNode(comm, ranksPerNode);
    const CommunicatorView node = owner.view();
    std::vector<int> &members = topology.members;
    comm.guarded([&] { members.resize(static_cast<std::size_t>(node.size())); });
    const int mine = comm.rank();
    checkMpi(MPI_Allgather(&mine, 1, MPI_INT, members.data(), 1, MPI_INT, node.handle()), "MPI_Allgather");
    const int onMachine = ranksPerNode > 0 ? comm.size() : node.size();
    const unsigned processors = std::thread::hardware_concurrency();
    topology.crowded = processors > 0 && static_cast<unsigned>(onMachine) > processors;
    comm.guarded([&] { // what the ranks of one node agree on, those of other nodes hear of
        if (node.size() > 1)
            topology.arena = NodeArena::create(node, topology.whyNoArena);
        if (topology.arena)
            topology.arena->setRanks(members, node.size() < comm.size());
        else
            topology.whyNoArena = "no other rank on this node";
    });
    return topology;
}

int rankOnMachine(CommunicatorView comm) {
    const Communicator machine = Communicator::splitNode(comm);
    return machine.view().rank();
}

} // namespace DNDS
