/// @file WholeMesh.hpp
/// @brief For tests only: whole meshes on every rank, and plain serial measures of them.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "Geom/SourceMesh.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace DNDS::Geom::test {

/// All ranks' lists behind each other. Collective.
template <class T>
std::vector<T> gatherAll(CommunicatorView comm, const std::vector<T> &mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::vector<int> bytes = comm.allGather(static_cast<int>(mine.size() * sizeof(T)));
    std::vector<int> starts(bytes.size(), 0);
    int total = 0;
    for (std::size_t r = 0; r < bytes.size(); total += bytes[r], r++)
        starts[r] = total;
    std::vector<T> all(static_cast<std::size_t>(total) / sizeof(T));
    MPI_Allgatherv(mine.data(), bytes[static_cast<std::size_t>(comm.rank())], MPI_BYTE, all.data(), bytes.data(),
                   starts.data(), MPI_BYTE, comm.handle());
    return all;
}

/// Checks that the blocks are contiguous and puts them together. Collective.
inline ElementBlock gatherBlock(CommunicatorView comm, const ElementBlock &block) {
    EXPECT_EQ(block.starts.size(), block.types.size() + 1);
    EXPECT_EQ(block.fileIds.size(), block.types.size());
    EXPECT_EQ(block.starts.back(), static_cast<index>(block.nodes.size()));
    index before = 0;
    const std::vector<index> sizes = comm.allGather(block.size());
    for (int rank = 0; rank < comm.rank(); rank++)
        before += sizes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(block.first, before);
    ElementBlock whole;
    whole.globalSize = block.globalSize;
    whole.types = gatherAll(comm, block.types);
    whole.nodes = gatherAll(comm, block.nodes);
    whole.fileIds = gatherAll(comm, block.fileIds);
    std::vector<index> widths;
    for (std::size_t e = 0; e < block.types.size(); e++)
        widths.push_back(block.starts[e + 1] - block.starts[e]);
    for (const index width : gatherAll(comm, widths))
        whole.starts.push_back(whole.starts.back() + width);
    EXPECT_EQ(whole.size(), whole.globalSize);
    return whole;
}

/// The mesh of all ranks, on every rank. Collective.
inline SourceMesh gatherMesh(CommunicatorView comm, const SourceMesh &mesh) {
    SourceMesh whole = mesh;
    whole.coordinates = gatherAll(comm, mesh.coordinates);
    EXPECT_EQ(whole.nodes(), mesh.globalNodes);
    whole.firstNode = 0;
    whole.cells = gatherBlock(comm, mesh.cells);
    whole.faces = gatherBlock(comm, mesh.faces);
    whole.faceMarks = gatherAll(comm, mesh.faceMarks);
    EXPECT_EQ(whole.faceMarks.size(), whole.faces.types.size());
    return whole;
}

using Face = std::vector<index>;

/// The faces of an element, corners only, seen from outside counter-clockwise.
inline std::vector<Face> facesOf(const ElementBlock &block, index element) {
    const auto nodes = block.nodesOf(element);
    std::vector<Face> faces;
    if (block.types[static_cast<std::size_t>(element)] == ElementType::Polyhedron) {
        for (std::size_t at = 0; at < nodes.size(); at += static_cast<std::size_t>(nodes[at]) + 1)
            faces.emplace_back(nodes.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                               nodes.begin() + static_cast<std::ptrdiff_t>(at) + 1 + nodes[at]);
        return faces;
    }
    for (const ElementFace &face : elementInfo(block.types[static_cast<std::size_t>(element)]).faces) {
        faces.emplace_back();
        for (std::size_t k = 0; k < static_cast<std::size_t>(face.corners); k++)
            faces.back().push_back(nodes[face.corner[k]]);
    }
    return faces;
}

/// The corners of a boundary element.
inline Face cornersOf(const ElementBlock &block, index element) {
    const auto nodes = block.nodesOf(element);
    const ElementType type = block.types[static_cast<std::size_t>(element)];
    const std::size_t corners =
        type == ElementType::Polygon ? nodes.size() : static_cast<std::size_t>(elementInfo(type).corners);
    return {nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(corners)};
}

/// A number that belongs to the set of corners, for matching faces.
inline Face sorted(Face face) {
    std::sort(face.begin(), face.end());
    return face;
}

/// The signed volume (area in two dimensions) of one cell by its corners; faces are fans around their mean.
inline real measureOf(const SourceMesh &mesh, index cell) {
    const auto at = [&](index node) { return mesh.coordinates[static_cast<std::size_t>(node)]; };
    real sum = 0;
    for (const Face &face : facesOf(mesh.cells, cell)) {
        if (mesh.cellDimension == 2) {
            const auto a = at(face[0]);
            const auto b = at(face[1]);
            sum += (a[0] * b[1] - a[1] * b[0]) / 2;
            continue;
        }
        std::array<real, 3> m{};
        for (const index node : face)
            for (std::size_t d = 0; d < 3; d++)
                m[d] += at(node)[d] / static_cast<real>(face.size());
        for (std::size_t k = 0; k < face.size(); k++) {
            const auto a = at(face[k]);
            const auto b = at(face[(k + 1) % face.size()]);
            sum += (m[0] * (a[1] * b[2] - a[2] * b[1]) + m[1] * (a[2] * b[0] - a[0] * b[2]) +
                    m[2] * (a[0] * b[1] - a[1] * b[0])) /
                   6;
        }
    }
    return sum;
}

/// How many elements of each type there are.
inline std::map<ElementType, index> countTypes(const ElementBlock &block) {
    std::map<ElementType, index> counts;
    for (const ElementType type : block.types)
        counts[type]++;
    return counts;
}

/// How many faces each mark has.
inline std::map<int, index> countMarks(const SourceMesh &mesh) {
    std::map<int, index> counts;
    for (const int mark : mesh.faceMarks)
        counts[mark]++;
    return counts;
}

inline void expectEqual(const ElementBlock &a, const ElementBlock &b) {
    EXPECT_EQ(a.globalSize, b.globalSize);
    EXPECT_EQ(a.types, b.types);
    EXPECT_EQ(a.starts, b.starts);
    EXPECT_EQ(a.nodes, b.nodes);
    EXPECT_EQ(a.fileIds, b.fileIds);
}

} // namespace DNDS::Geom::test
