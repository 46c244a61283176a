#include "DNDS/Geom/Cgns/SharedTree.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <vector>

namespace DNDS::Geom::Cgns {

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
