#include "DNDS/Geom/File/ElementBlocks.hpp"

#include <algorithm>

namespace DNDS::Geom {

void numberBlock(CommunicatorView comm, ElementBlock &block) {
    block.first = comm.exclusiveScan(block.size());
    block.globalSize = comm.allReduce(block.size(), MPI_SUM);
}

// A mesh is flat only if all nodes of all ranks are at z = 0 exactly.
void numberNodes(CommunicatorView comm, SourceMesh &mesh) {
    mesh.firstNode = comm.exclusiveScan(mesh.nodes());
    mesh.globalNodes = comm.allReduce(mesh.nodes(), MPI_SUM);
    const bool flat =
        std::all_of(mesh.coordinates.begin(), mesh.coordinates.end(), [](const auto &p) { return p[2] == 0; });
    mesh.physicalDimension = mesh.cellDimension == 2 && comm.allReduce(flat ? 1 : 0, MPI_MIN) == 1 ? 2 : 3;
}

} // namespace DNDS::Geom
