/// @file MeshReference.hpp
/// @brief References for meshes: a serial one, written without the pipeline, and checks against it.
#pragma once

#include "DNDS/Geom/Build/BuildMesh.hpp"

#include "Geom/Build/WholeMesh.hpp"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace DNDS::test {

/// A cell of the mesh repeated periodically: its number and by how much it is moved.
using Copy = std::pair<index, std::array<int, 3>>;

/// By how much an image of the mesh is moved.
inline std::array<int, 3> moveOf(const Geom::UnstructuredMesh &mesh, int image, const WholeMesh &whole) {
    std::array<int, 3> move{};
    for (const auto &step : mesh.images[static_cast<std::size_t>(image)].steps)
        for (std::size_t d = 0; d < 3; d++)
            if (whole.periodic[static_cast<std::size_t>(step.connection)].transform.translation[d] != 0.0)
                move[d] += step.times;
    return move;
}

/// The serial reference: the whole mesh, repeated to both sides in periodic directions, with nodes told apart by where
/// they are alone. It knows neither keys nor links nor images.
class Reference {
  public:
    Reference(const WholeMesh &mesh, int layers) : mesh_(mesh) {
        std::array<int, 3> reach{};
        for (const auto &connection : mesh.periodic)
            for (std::size_t d = 0; d < 3; d++)
                if (connection.transform.translation[d] != 0.0) {
                    reach[d] = layers + 1;
                    period_[d] = connection.transform.translation[d];
                }
        for (int x = -reach[0]; x <= reach[0]; x++)
            for (int y = -reach[1]; y <= reach[1]; y++)
                for (int z = -reach[2]; z <= reach[2]; z++)
                    addCopies({x, y, z});
    }
    /// Cells within `layers` layers of cells of `part`, the latter excluded.
    std::set<Copy> ghosts(const std::vector<int> &part, int rank, bool byNodes, int layers) const {
        std::set<Copy> seen;
        std::set<Copy> front;
        for (std::size_t c = 0; c < part.size(); c++)
            if (part[c] == rank)
                front.insert({static_cast<index>(c), {}});
        const std::set<Copy> own = front;
        seen = front;
        for (int layer = 0; layer < layers; layer++) {
            std::set<Copy> next;
            for (const Copy &copy : front)
                for (const Copy &other : byNodes ? aroundNodes(copy) : behindFaces(copy))
                    if (seen.insert(other).second)
                        next.insert(other);
            front = next;
        }
        for (const Copy &copy : own)
            seen.erase(copy);
        return seen;
    }
    /// Cells around a node of the unmoved mesh, repeated ones among them.
    std::set<Copy> atNode(index node) const {
        const auto &cells = ofNode_.at(placeOf(node, {}));
        return {cells.begin(), cells.end()};
    }
    std::set<Copy> behindFaces(const Copy &copy) const {
        std::set<Copy> result;
        for (const auto &face : mesh_.facesOf(static_cast<std::size_t>(copy.first)))
            for (const Copy &other : ofFace_.at(placesOf(face, copy.second)))
                if (other != copy)
                    result.insert(other);
        return result;
    }
    /// Cells that share a node with a cell, itself included.
    std::set<Copy> aroundNodes(const Copy &copy) const {
        std::set<Copy> result;
        for (const index node : mesh_.nodesOf(static_cast<std::size_t>(copy.first)))
            for (const Copy &other : ofNode_.at(placeOf(node, copy.second)))
                result.insert(other);
        return result;
    }
    /// Cells of a face of the unmoved mesh.
    std::vector<Copy> cellsOfFace(const std::vector<index> &face) const { return ofFace_.at(placesOf(face, {})); }

  private:
    using Place = std::array<long long, 3>;
    Place placeOf(index node, const std::array<int, 3> &move) const {
        Place place;
        for (std::size_t d = 0; d < 3; d++)
            place[d] = std::llround(1e6 * (mesh_.points[static_cast<std::size_t>(node)][d] + move[d] * period_[d]));
        return place;
    }
    std::set<Place> placesOf(const std::vector<index> &face, const std::array<int, 3> &move) const {
        std::set<Place> places;
        for (const index node : face)
            places.insert(placeOf(node, move));
        return places;
    }
    void addCopies(const std::array<int, 3> &move) {
        for (std::size_t c = 0; c < mesh_.cells.size(); c++) {
            for (const auto &face : mesh_.facesOf(c))
                ofFace_[placesOf(face, move)].push_back({static_cast<index>(c), move});
            for (const index node : mesh_.nodesOf(c))
                ofNode_[placeOf(node, move)].push_back({static_cast<index>(c), move});
        }
    }
    const WholeMesh &mesh_;
    std::array<real, 3> period_{};
    std::map<std::set<Place>, std::vector<Copy>> ofFace_;
    std::map<Place, std::vector<Copy>> ofNode_;
};

/// Own cells and ghosts: types, nodes, owners, files' numbers. Collective, as all checks.
void checkCells(const Geom::UnstructuredMesh &mesh, const WholeMesh &whole, const Reference &reference,
                const Geom::MeshOptions &options);

/// Each face of each local cell: nodes, cells on both sides, orientation, patches.
void checkFaces(const Geom::UnstructuredMesh &mesh, const WholeMesh &whole, const Reference &reference);

/// Own faces and those shared are all faces of own cells, and every face of the whole mesh is owned once.
void checkFaceOwners(const Geom::UnstructuredMesh &mesh, const WholeMesh &whole);

/// Own nodes and those of ghosts: places and owners.
void checkNodes(const Geom::UnstructuredMesh &mesh, const WholeMesh &whole);

/// Cells around each node of own cells, across periodic boundaries, too.
void checkNodeCells(const Geom::UnstructuredMesh &mesh, const WholeMesh &whole, const Reference &reference);

/// Fields of all entities that their owners fill are right in all ghosts after a pull.
void checkPulls(const Geom::UnstructuredMesh &mesh);

/// Volumes, closed cells, normals that point outwards.
void checkMetrics(const Geom::UnstructuredMesh &mesh, const Geom::MeshReport &report);

} // namespace DNDS::test
