/// @file SharedTree.hpp
/// @brief The tree of a CGNS file on all ranks, read by one.
#pragma once

#include "DNDS/Geom/Cgns/TreeSource.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <memory>
#include <string>

namespace DNDS::Geom::Cgns {

/// Rank 0 reads the tree; the others open the file (`source`) only after that succeeded. Collective. Throws on all
/// ranks as `openSource` and `TreeSource::readTree`.
TreeNode readSharedTree(const CommunicatorView &comm, const std::string &path, std::unique_ptr<TreeSource> &source,
                        bool withSolutions);

} // namespace DNDS::Geom::Cgns
