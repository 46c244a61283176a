#include "DNDS/Geom/Cgns/SharedTree.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <vector>

namespace DNDS::Geom::Cgns {

/// The broadcast is the tree of small nodes: kilobytes to a few megabytes. Opening on the other ranks waits for rank
/// 0's success, so that a missing file gives one error, not one a rank.
TreeNode readSharedTree(const CommunicatorView &comm, const std::string &path, std::unique_ptr<TreeSource> &source,
                        bool withSolutions) {
    std::vector<std::string> bytes(1);
    comm.guarded([&] {
        if (comm.rank() == 0) {
            source = openSource(path);
            bytes[0] = packTree(source->readTree(withSolutions));
        }
    });
    broadcastStrings(comm, bytes);
    TreeNode root;
    comm.guarded([&] {
        root = unpackTree(bytes[0]);
        if (!source)
            source = openSource(path);
    });
    return root;
}

} // namespace DNDS::Geom::Cgns
