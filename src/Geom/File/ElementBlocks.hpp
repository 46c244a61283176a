/// @file ElementBlocks.hpp
/// @brief Builds the element and node blocks of a `SourceMesh` in readers.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <span>

namespace DNDS::Geom {

/// Appends an element. Local.
inline void appendElement(ElementBlock &block, ElementType type, std::span<const index> nodes, index fileId) {
    block.types.push_back(type);
    block.nodes.insert(block.nodes.end(), nodes.begin(), nodes.end());
    block.starts.push_back(static_cast<index>(block.nodes.size()));
    block.fileIds.push_back(fileId);
}

/// Sets `first` and `globalSize` from the blocks of all ranks. Collective.
void numberBlock(CommunicatorView comm, ElementBlock &block);

/// Sets `firstNode`, `globalNodes` and `physicalDimension`, which is 2 for two-dimensional cells in the plane z = 0.
/// Collective.
void numberNodes(CommunicatorView comm, SourceMesh &mesh);

} // namespace DNDS::Geom
