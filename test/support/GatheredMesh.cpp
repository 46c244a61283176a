#include "support/GatheredMesh.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace DNDS::Geom::test {

namespace {

void expectFollows(CommunicatorView comm, index first, index size, index total) {
    const std::vector<index> sizes = comm.allGather(size);
    index before = 0;
    for (int rank = 0; rank < comm.rank(); rank++)
        before += sizes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(first, before);
    EXPECT_EQ(comm.allReduce(size, MPI_SUM), total);
}

ElementBlock gatherBlock(CommunicatorView comm, const ElementBlock &block) {
    expectFollows(comm, block.first, block.size(), block.globalSize);
    EXPECT_EQ(block.starts.size(), block.types.size() + 1);
    EXPECT_EQ(block.fileIds.size(), block.types.size());
    EXPECT_EQ(static_cast<std::size_t>(block.starts.back()), block.nodes.size());
    ElementBlock all;
    all.globalSize = block.globalSize;
    all.types = gatherAll(comm, block.types);
    all.nodes = gatherAll(comm, block.nodes);
    all.fileIds = gatherAll(comm, block.fileIds);
    std::vector<index> widths;
    for (std::size_t k = 0; k + 1 < block.starts.size(); k++)
        widths.push_back(block.starts[k + 1] - block.starts[k]);
    for (const index width : gatherAll(comm, widths))
        all.starts.push_back(all.starts.back() + width);
    return all;
}

using Vector = std::array<real, 3>;

Vector difference(const Vector &a, const Vector &b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

/// Six times the volume between the origin and a face, as a fan around the mean of its corners.
real faceVolume(const SourceMesh &mesh, std::span<const index> corners, const Vector &origin) {
    Vector centre{};
    for (const index node : corners)
        for (std::size_t k = 0; k < 3; k++)
            centre[k] += mesh.coordinates[static_cast<std::size_t>(node)][k] / static_cast<real>(corners.size());
    centre = difference(centre, origin);
    real volume = 0.0;
    for (std::size_t i = 0; i < corners.size(); i++) {
        const Vector a = difference(mesh.coordinates[static_cast<std::size_t>(corners[i])], origin);
        const Vector b =
            difference(mesh.coordinates[static_cast<std::size_t>(corners[(i + 1) % corners.size()])], origin);
        volume += centre[0] * (a[1] * b[2] - a[2] * b[1]) + centre[1] * (a[2] * b[0] - a[0] * b[2]) +
                  centre[2] * (a[0] * b[1] - a[1] * b[0]);
    }
    return volume;
}

real volumeOf(const SourceMesh &mesh, index cell) {
    const bool polyhedron = mesh.cells.types[static_cast<std::size_t>(cell)] == ElementType::Polyhedron;
    const index first = mesh.cells.nodesOf(cell)[polyhedron ? 1 : 0];
    real volume = 0.0;
    for (const Face &face : facesOf(mesh.cells, cell))
        volume += faceVolume(mesh, face, mesh.coordinates[static_cast<std::size_t>(first)]);
    return volume / 6.0;
}

real areaOf(const SourceMesh &mesh, index cell) {
    const Face corners = cornersOf(mesh.cells, cell);
    const Vector origin = mesh.coordinates[static_cast<std::size_t>(corners[0])];
    real area = 0.0;
    for (std::size_t i = 0; i < corners.size(); i++) {
        const Vector a = difference(mesh.coordinates[static_cast<std::size_t>(corners[i])], origin);
        const Vector b =
            difference(mesh.coordinates[static_cast<std::size_t>(corners[(i + 1) % corners.size()])], origin);
        area += (a[0] * b[1] - a[1] * b[0]) / 2.0;
    }
    return area;
}

} // namespace

SourceMesh gatherMesh(CommunicatorView comm, const SourceMesh &mesh) {
    expectFollows(comm, mesh.firstNode, mesh.nodes(), mesh.globalNodes);
    EXPECT_EQ(mesh.faceMarks.size(), mesh.faces.types.size());
    SourceMesh all = mesh;
    all.firstNode = 0;
    all.coordinates = gatherAll(comm, mesh.coordinates);
    all.cells = gatherBlock(comm, mesh.cells);
    all.faces = gatherBlock(comm, mesh.faces);
    all.faceMarks = gatherAll(comm, mesh.faceMarks);
    all.nodeMarks = gatherAll(comm, mesh.nodeMarks);
    std::sort(all.nodeMarks.begin(), all.nodeMarks.end(),
              [](const auto &a, const auto &b) { return std::pair(a.mark, a.node) < std::pair(b.mark, b.node); });
    return all;
}

void expectSame(const ElementBlock &a, const ElementBlock &b) {
    EXPECT_EQ(a.globalSize, b.globalSize);
    EXPECT_EQ(a.types, b.types);
    EXPECT_EQ(a.starts, b.starts);
    EXPECT_EQ(a.nodes, b.nodes);
    EXPECT_EQ(a.fileIds, b.fileIds);
}

void expectSame(const SourceMesh &a, const SourceMesh &b) {
    EXPECT_EQ(a.cellDimension, b.cellDimension);
    EXPECT_EQ(a.physicalDimension, b.physicalDimension);
    EXPECT_EQ(a.globalNodes, b.globalNodes);
    EXPECT_EQ(a.coordinates, b.coordinates);
    expectSame(a.cells, b.cells);
    expectSame(a.faces, b.faces);
    EXPECT_EQ(a.faceMarks, b.faceMarks);
    ASSERT_EQ(a.nodeMarks.size(), b.nodeMarks.size());
    for (std::size_t k = 0; k < a.nodeMarks.size(); k++)
        EXPECT_TRUE(a.nodeMarks[k].mark == b.nodeMarks[k].mark && a.nodeMarks[k].node == b.nodeMarks[k].node);
    ASSERT_EQ(a.patches.size(), b.patches.size());
    for (std::size_t k = 0; k < a.patches.size(); k++) {
        EXPECT_EQ(a.patches[k].name, b.patches[k].name);
        EXPECT_EQ(a.patches[k].kind, b.patches[k].kind);
        EXPECT_EQ(a.patches[k].family, b.patches[k].family);
    }
    ASSERT_EQ(a.periodic.size(), b.periodic.size());
    for (std::size_t k = 0; k < a.periodic.size(); k++) {
        EXPECT_EQ(a.periodic[k].name, b.periodic[k].name);
        EXPECT_EQ(a.periodic[k].transform.centre, b.periodic[k].transform.centre);
        EXPECT_EQ(a.periodic[k].transform.angles, b.periodic[k].transform.angles);
        EXPECT_EQ(a.periodic[k].transform.translation, b.periodic[k].transform.translation);
    }
    EXPECT_EQ(a.warnings, b.warnings);
}

std::vector<Face> facesOf(const ElementBlock &block, index element) {
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

Face cornersOf(const ElementBlock &block, index element) {
    const auto nodes = block.nodesOf(element);
    const ElementType type = block.types[static_cast<std::size_t>(element)];
    const std::size_t corners =
        type == ElementType::Polygon ? nodes.size() : static_cast<std::size_t>(elementInfo(type).corners);
    return {nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(corners)};
}

Face sorted(Face face) {
    std::sort(face.begin(), face.end());
    return face;
}

std::map<ElementType, index> countTypes(const ElementBlock &block) {
    std::map<ElementType, index> counts;
    for (const ElementType type : block.types)
        counts[type]++;
    return counts;
}

std::map<std::string, index> countNames(const ElementBlock &block) {
    std::map<std::string, index> counts;
    for (const auto &[type, count] : countTypes(block))
        counts[std::string(elementInfo(type).name)] = count;
    return counts;
}

real measure(const SourceMesh &mesh, index cell) {
    return mesh.cellDimension == 3 ? volumeOf(mesh, cell) : areaOf(mesh, cell);
}

real measure(const SourceMesh &mesh) {
    real sum = 0.0;
    for (index cell = 0; cell < mesh.cells.size(); cell++)
        sum += measure(mesh, cell);
    return sum;
}

std::array<real, 6> boundingBox(const SourceMesh &mesh) {
    constexpr real most = std::numeric_limits<real>::max();
    std::array<real, 6> box{most, -most, most, -most, most, -most};
    for (const Vector &point : mesh.coordinates)
        for (std::size_t k = 0; k < 3; k++) {
            box[2 * k] = std::min(box[2 * k], point[k]);
            box[2 * k + 1] = std::max(box[2 * k + 1], point[k]);
        }
    return box;
}

std::map<int, index> facesOfMarks(const SourceMesh &mesh) {
    std::map<int, index> counts;
    for (const int mark : mesh.faceMarks)
        counts[mark]++;
    return counts;
}

std::map<int, index> nodesOfMarks(const SourceMesh &mesh) {
    std::map<int, index> counts;
    for (const SourceMesh::NodeMark &mark : mesh.nodeMarks)
        counts[mark.mark]++;
    return counts;
}

} // namespace DNDS::Geom::test
