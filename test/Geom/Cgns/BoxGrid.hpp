/// @file BoxGrid.hpp
/// @brief Boxes of unit cubes whose elements tests list in files, with checks of the mesh read from them.
#pragma once

#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "Geom/Cgns/WrittenFile.hpp"
#include "support/GatheredMesh.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace DNDS::Geom::test {

using Points = std::vector<std::array<double, 3>>;

inline constexpr FileType bothTypes[] = {FileType::Adf, FileType::Hdf5};

/// Nodes of a grid of boxes of size 1, the x index fastest, counted from 1.
struct Grid {
    int nx, ny, nz;
    double x0 = 0.0;

    int node(int i, int j, int k) const { return 1 + i + (nx + 1) * (j + (ny + 1) * k); }
    int nodes() const { return (nx + 1) * (ny + 1) * (nz + 1); }
    int cells() const { return nx * ny * nz; }
    Points points() const {
        Points points;
        for (int k = 0; k <= nz; k++)
            for (int j = 0; j <= ny; j++)
                for (int i = 0; i <= nx; i++)
                    points.push_back({x0 + i, 1.0 * j, 1.0 * k});
        return points;
    }
    std::array<int, 8> corners(int i, int j, int k) const {
        return {node(i, j, k),     node(i + 1, j, k),     node(i + 1, j + 1, k),     node(i, j + 1, k),
                node(i, j, k + 1), node(i + 1, j, k + 1), node(i + 1, j + 1, k + 1), node(i, j + 1, k + 1)};
    }
    void forEachCell(const std::function<void(const std::array<int, 8> &, int)> &visit) const {
        for (int k = 0; k < nz; k++)
            for (int j = 0; j < ny; j++)
                for (int i = 0; i < nx; i++)
                    visit(corners(i, j, k), i + j + k);
    }
    Ints hexahedra() const {
        Ints all;
        forEachCell([&](const std::array<int, 8> &v, int) { all.insert(all.end(), v.begin(), v.end()); });
        return all;
    }
    /// The quadrilaterals of the side x = x0, or of the other; outward.
    Ints sideX(bool high) const {
        Ints all;
        const int i = high ? nx : 0;
        for (int k = 0; k < nz; k++)
            for (int j = 0; j < ny; j++) {
                if (high)
                    all.insert(all.end(), {node(i, j, k), node(i, j + 1, k), node(i, j + 1, k + 1), node(i, j, k + 1)});
                else
                    all.insert(all.end(), {node(i, j, k), node(i, j, k + 1), node(i, j + 1, k + 1), node(i, j + 1, k)});
            }
        return all;
    }
    Ints nodesX(bool high) const {
        Ints all;
        for (int k = 0; k <= nz; k++)
            for (int j = 0; j <= ny; j++)
                all.push_back(node(high ? nx : 0, j, k));
        return all;
    }
};

inline Ints numbersFrom(int first, int count) {
    Ints all;
    for (int k = 0; k < count; k++)
        all.push_back(first + k);
    return all;
}

inline SourceMesh readWhole(const WrittenFile &file, const CgnsOptions &options = {}) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    return gatherMesh(comm, readCgns(comm, file.path(), options));
}

inline int patchOf(const SourceMesh &mesh, const std::string &name) {
    for (std::size_t k = 0; k < mesh.patches.size(); k++)
        if (mesh.patches[k].name == name)
            return static_cast<int>(k);
    ADD_FAILURE() << "no patch " << name;
    return -1;
}

inline index facesOf(const SourceMesh &mesh, const std::string &name) {
    return facesOfMarks(mesh)[patchOf(mesh, name)];
}

} // namespace DNDS::Geom::test
