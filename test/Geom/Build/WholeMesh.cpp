#include "Geom/Build/WholeMesh.hpp"

#include "support/MpiTest.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace DNDS::test {

namespace {

using Geom::ElementType;
using Triple = std::array<index, 3>;

/// Makes the elements of a box, with nodes named by twice their place in the grid.
class BoxMaker {
  public:
    explicit BoxMaker(const BoxOptions &options) : options_(options), random_(seed()) {}

    WholeMesh make() {
        const bool flat = options_.cells >= BoxCells::Quadrilaterals;
        mesh_.dimension = flat ? 2 : 3;
        const auto [nx, ny, nz] = options_.counts;
        for (index k = 0; k < (flat ? 1 : nz); k++)
            for (index j = 0; j < ny; j++)
                for (index i = 0; i < nx; i++)
                    flat ? addFlat(i, j) : addSolid(i, j, k);
        placeNodes();
        if (options_.marks)
            addSides();
        turnSome();
        if (options_.shuffle)
            shuffle();
        for (std::size_t c = 0; c < mesh_.cells.size(); c++)
            mesh_.cells[c].fileId = static_cast<index>(c) + 1;
        for (std::size_t f = 0; f < mesh_.faces.size(); f++)
            mesh_.faces[f].fileId = static_cast<index>(mesh_.cells.size() + f) + 1;
        return std::move(mesh_);
    }

  private:
    index node(index i, index j, index k) {
        const auto [it, isNew] = nodes_.try_emplace(Triple{i, j, k}, static_cast<index>(nodes_.size()));
        return it->second;
    }
    /// Corner of grid cell (i, j, k): 0 to 3 at the bottom, 4 to 7 above.
    std::array<index, 8> corners(index i, index j, index k) {
        std::array<index, 8> c{};
        constexpr index di[8] = {0, 2, 2, 0, 0, 2, 2, 0};
        constexpr index dj[8] = {0, 0, 2, 2, 0, 0, 2, 2};
        for (std::size_t n = 0; n < 8; n++)
            c[n] = node(2 * i + di[n], 2 * j + dj[n], 2 * k + (n < 4 ? 0 : 2));
        return c;
    }
    void add(ElementType type, std::vector<index> list) { mesh_.cells.push_back({type, std::move(list)}); }
    void addOf(ElementType type, const std::array<index, 8> &c, std::initializer_list<std::size_t> pattern) {
        std::vector<index> list;
        for (const std::size_t p : pattern)
            list.push_back(c[p]);
        add(type, list);
    }
    void addFlat(index i, index j) {
        const auto c = corners(i, j, 0);
        if (options_.cells == BoxCells::Triangles) {
            addOf(ElementType::Tri3, c, {0, 1, 2});
            addOf(ElementType::Tri3, c, {0, 2, 3});
        } else if (options_.cells == BoxCells::Polygons && i % 2 == 0 && i + 1 < options_.counts[0]) {
            const auto d = corners(i + 1, j, 0);
            add(ElementType::Polygon, {c[0], c[1], d[1], d[2], c[2], c[3]});
        } else if (options_.cells != BoxCells::Polygons || i % 2 == 0) {
            addOf(options_.cells == BoxCells::Polygons ? ElementType::Polygon : ElementType::Quad4, c, {0, 1, 2, 3});
        }
    }
    void addSolid(index i, index j, index k) {
        const auto c = corners(i, j, k);
        switch (options_.cells) {
        case BoxCells::Tetrahedra:
            for (const auto &[a, b] : {std::pair{1, 2}, {2, 3}, {3, 7}, {7, 4}, {4, 5}, {5, 1}})
                addOf(ElementType::Tetra4, c, {0, static_cast<std::size_t>(a), static_cast<std::size_t>(b), 6});
            break;
        case BoxCells::Mixed:
            addMixed(i, j, k, c);
            break;
        case BoxCells::Hexahedra27:
            addHexahedron27(i, j, k);
            break;
        case BoxCells::Polyhedra:
            addPolyhedron(i, j, k);
            break;
        default:
            addOf(ElementType::Hexa8, c, {0, 1, 2, 3, 4, 5, 6, 7});
        }
    }
    void addMixed(index i, index j, index k, const std::array<index, 8> &c) {
        if ((i + j) % 3 == 0) {
            addOf(ElementType::Penta6, c, {0, 1, 2, 4, 5, 6});
            addOf(ElementType::Penta6, c, {0, 2, 3, 4, 6, 7});
        } else if ((i + k) % 2 == 0) {
            const index top = node(2 * i + 1, 2 * j + 1, 2 * k + 1);
            for (const auto &q :
                 {std::array{0, 1, 2, 3}, {4, 7, 6, 5}, {0, 4, 5, 1}, {1, 5, 6, 2}, {2, 6, 7, 3}, {3, 7, 4, 0}}) {
                std::vector<index> list;
                for (const int p : q)
                    list.push_back(c[static_cast<std::size_t>(p)]);
                list.push_back(top);
                add(ElementType::Pyra5, list);
            }
        } else {
            addOf(ElementType::Hexa8, c, {0, 1, 2, 3, 4, 5, 6, 7});
        }
    }
    void addHexahedron27(index i, index j, index k) {
        constexpr index at[27][3] = {{0, 0, 0}, {2, 0, 0}, {2, 2, 0}, {0, 2, 0}, {0, 0, 2}, {2, 0, 2}, {2, 2, 2},
                                     {0, 2, 2}, {1, 0, 0}, {2, 1, 0}, {1, 2, 0}, {0, 1, 0}, {0, 0, 1}, {2, 0, 1},
                                     {2, 2, 1}, {0, 2, 1}, {1, 0, 2}, {2, 1, 2}, {1, 2, 2}, {0, 1, 2}, {1, 1, 0},
                                     {1, 0, 1}, {2, 1, 1}, {1, 2, 1}, {0, 1, 1}, {1, 1, 2}, {1, 1, 1}};
        std::vector<index> list;
        for (const auto &offset : at)
            list.push_back(node(2 * i + offset[0], 2 * j + offset[1], 2 * k + offset[2]));
        add(ElementType::Hexa27, list);
    }
    /// Two grid cells in a row are one polyhedron of ten faces: neighbours share two faces.
    void addPolyhedron(index i, index j, index k) {
        if (i % 2 == 1)
            return;
        std::vector<index> list;
        const index last = std::min(i + 1, options_.counts[0] - 1);
        for (index x = i; x <= last; x++) {
            const auto c = corners(x, j, k);
            const auto face = [&](std::initializer_list<std::size_t> pattern) {
                list.push_back(4);
                for (const std::size_t p : pattern)
                    list.push_back(c[p]);
            };
            face({0, 3, 2, 1});
            face({4, 5, 6, 7});
            face({0, 1, 5, 4});
            face({2, 3, 7, 6});
            if (x == i)
                face({0, 4, 7, 3});
            if (x == last)
                face({1, 2, 6, 5});
        }
        add(ElementType::Polyhedron, list);
    }
    void placeNodes() {
        std::map<Triple, std::array<real, 3>> moves;
        std::uniform_real_distribution<real> move(-0.15, 0.15);
        mesh_.points.resize(nodes_.size());
        for (const auto &[place, number] : nodes_) {
            Triple basic = place;
            for (std::size_t d = 0; d < 3; d++)
                if (options_.periodic[d])
                    basic[d] %= 2 * options_.counts[d];
            auto [it, isNew] = moves.try_emplace(basic);
            if (isNew && options_.jitter)
                for (std::size_t d = 0; d < static_cast<std::size_t>(mesh_.dimension); d++) {
                    const bool side = basic[d] == 0 || basic[d] == 2 * options_.counts[d];
                    it->second[d] = side && !options_.periodic[d] ? 0.0 : move(random_);
                }
            for (std::size_t d = 0; d < 3; d++)
                mesh_.points[static_cast<std::size_t>(number)][d] = 0.5 * static_cast<real>(place[d]) + it->second[d];
        }
    }
    /// Faces of one cell only, as elements marked with the side they lie on.
    void addSides() {
        std::map<index, Triple> placeOf;
        for (const auto &[place, number] : nodes_)
            placeOf[number] = place;
        std::map<std::vector<index>, std::pair<std::vector<index>, int>> seen;
        for (std::size_t c = 0; c < mesh_.cells.size(); c++)
            for (const auto &face : mesh_.facesOf(c)) {
                auto key = face;
                std::sort(key.begin(), key.end());
                seen.try_emplace(key, face, 0).first->second.second++;
            }
        std::array<int, 6> marks{};
        for (std::size_t d = 0; d < static_cast<std::size_t>(mesh_.dimension); d++) {
            if (options_.periodic[d]) {
                Geom::PeriodicConnection connection{std::string("periodic ") + "xyz" [d], {}};
                connection.transform.translation[d] = static_cast<real>(options_.counts[d]);
                marks[2 * d] = -1 - 2 * static_cast<int>(mesh_.periodic.size());
                marks[2 * d + 1] = marks[2 * d] - 1;
                mesh_.periodic.push_back(connection);
                continue;
            }
            for (const char *end : {"0", "1"}) {
                marks[2 * d + (*end == '1' ? 1U : 0U)] = static_cast<int>(mesh_.patches.size());
                mesh_.patches.push_back({std::string(1, "xyz"[d]) + end, "BCWall", ""});
            }
        }
        for (const auto &[key, entry] : seen) {
            if (entry.second != 1)
                continue;
            const auto &face = entry.first;
            for (std::size_t d = 0; d < static_cast<std::size_t>(mesh_.dimension); d++)
                for (const std::size_t end : {std::size_t{0}, std::size_t{1}})
                    if (std::all_of(face.begin(), face.end(), [&](index n) {
                            return placeOf[n][d] == (end == 0 ? 0 : 2 * options_.counts[d]);
                        })) {
                        const ElementType type = face.size() == 2   ? ElementType::Bar2
                                                 : face.size() == 3 ? ElementType::Tri3
                                                                    : ElementType::Quad4;
                        mesh_.faces.push_back({type, face});
                        mesh_.faceMarks.push_back(marks[2 * d + end]);
                    }
        }
    }
    void turnSome() {
        for (std::size_t c = 0; c < mesh_.cells.size() && options_.turnSome; c += 3) {
            auto &list = mesh_.cells[c].nodes;
            const auto swap = [&](std::initializer_list<std::pair<std::size_t, std::size_t>> pairs) {
                for (const auto &[a, b] : pairs)
                    std::swap(list[a], list[b]);
            };
            switch (mesh_.cells[c].type) {
            case ElementType::Tri3:
            case ElementType::Tetra4:
                swap({{1, 2}});
                break;
            case ElementType::Quad4:
            case ElementType::Pyra5:
                swap({{1, 3}});
                break;
            case ElementType::Penta6:
                swap({{1, 2}, {4, 5}});
                break;
            case ElementType::Hexa8:
                swap({{1, 3}, {5, 7}});
                break;
            case ElementType::Polygon:
                std::reverse(list.begin(), list.end());
                break;
            case ElementType::Polyhedron: // one face only: the others tell that it is wrong
                std::reverse(list.begin() + 1, list.begin() + 5);
                break;
            default:
                break;
            }
        }
    }
    void shuffle() {
        std::vector<index> order(mesh_.points.size());
        std::iota(order.begin(), order.end(), index{0});
        std::shuffle(order.begin(), order.end(), random_);
        auto points = mesh_.points;
        for (std::size_t n = 0; n < order.size(); n++)
            points[static_cast<std::size_t>(order[n])] = mesh_.points[n];
        mesh_.points = points;
        for (auto *list : {&mesh_.cells, &mesh_.faces})
            for (auto &element : *list)
                for (std::size_t i = 0, left = 0; i < element.nodes.size(); i++) {
                    if (element.type == ElementType::Polyhedron && left == 0) {
                        left = static_cast<std::size_t>(element.nodes[i]);
                        continue;
                    }
                    left -= left > 0 ? 1 : 0;
                    element.nodes[i] = order[static_cast<std::size_t>(element.nodes[i])];
                }
        std::shuffle(mesh_.cells.begin(), mesh_.cells.end(), random_);
    }

    BoxOptions options_;
    std::mt19937_64 random_;
    WholeMesh mesh_;
    std::map<Triple, index> nodes_;
};

index blockBegin(index count, int rank, int ranks, bool uneven) {
    if (uneven && rank < ranks && rank % 2 == 1)
        rank--; // the rank before has nothing, this one its share, too
    return count * rank / ranks;
}

Geom::ElementBlock sliceBlock(const std::vector<WholeMesh::Element> &elements, CommunicatorView comm, bool uneven) {
    Geom::ElementBlock block;
    block.globalSize = static_cast<index>(elements.size());
    block.first = blockBegin(block.globalSize, comm.rank(), comm.size(), uneven);
    const index end = blockBegin(block.globalSize, comm.rank() + 1, comm.size(), uneven);
    for (index i = block.first; i < end; i++) {
        const auto &element = elements[static_cast<std::size_t>(i)];
        block.types.push_back(element.type);
        block.nodes.insert(block.nodes.end(), element.nodes.begin(), element.nodes.end());
        block.starts.push_back(static_cast<index>(block.nodes.size()));
        block.fileIds.push_back(element.fileId);
    }
    return block;
}

} // namespace

Geom::SourceMesh WholeMesh::slice(CommunicatorView comm, bool uneven) const {
    Geom::SourceMesh source;
    source.origin = "a box";
    source.cellDimension = source.physicalDimension = dimension;
    source.globalNodes = static_cast<index>(points.size());
    source.firstNode = blockBegin(source.globalNodes, comm.rank(), comm.size(), uneven);
    const index end = blockBegin(source.globalNodes, comm.rank() + 1, comm.size(), uneven);
    source.coordinates.assign(points.begin() + source.firstNode, points.begin() + end);
    source.cells = sliceBlock(cells, comm, uneven);
    source.faces = sliceBlock(faces, comm, !uneven);
    source.faceMarks.assign(faceMarks.begin() + source.faces.first,
                            faceMarks.begin() + source.faces.first + source.faces.size());
    for (std::size_t i = static_cast<std::size_t>(comm.rank()); i < nodeMarks.size();
         i += static_cast<std::size_t>(comm.size()))
        source.nodeMarks.push_back(nodeMarks[i]);
    source.patches = patches;
    source.periodic = periodic;
    return source;
}

std::vector<std::vector<index>> WholeMesh::facesOf(std::size_t cell) const {
    const Element &element = cells[cell];
    std::vector<std::vector<index>> result;
    if (element.type == ElementType::Polyhedron) {
        for (auto it = element.nodes.begin(); it != element.nodes.end(); it += *it + 1)
            result.emplace_back(it + 1, it + 1 + *it);
    } else if (element.type == ElementType::Polygon) {
        for (std::size_t i = 0; i < element.nodes.size(); i++)
            result.push_back({element.nodes[i], element.nodes[(i + 1) % element.nodes.size()]});
    } else {
        for (const auto &face : Geom::elementInfo(element.type).faces) {
            result.emplace_back();
            for (int k = 0; k < face.corners; k++)
                result.back().push_back(element.nodes[face.corner[static_cast<std::size_t>(k)]]);
        }
    }
    return result;
}

std::vector<index> WholeMesh::cornersOf(std::size_t cell) const {
    std::set<index> distinct;
    for (const auto &face : facesOf(cell))
        distinct.insert(face.begin(), face.end());
    return {distinct.begin(), distinct.end()};
}

std::vector<index> WholeMesh::nodesOf(std::size_t cell) const {
    if (cells[cell].type == ElementType::Polyhedron)
        return cornersOf(cell);
    const std::set<index> distinct(cells[cell].nodes.begin(), cells[cell].nodes.end());
    return {distinct.begin(), distinct.end()};
}

WholeMesh makeBox(const BoxOptions &options) { return BoxMaker(options).make(); }

WholeMesh makeCubeWithSlit() {
    WholeMesh cube;
    for (const real z : {-2.0, 2.0})
        cube.points.insert(cube.points.end(), {{-2, -2, z}, {2, -2, z}, {2, 2, z}, {-2, 2, z}});
    cube.points.insert(cube.points.end(), {{-1, -1, 0}, {1, -1, 0}, {1, 1, 0}, {-1, 1, 0}});
    cube.cells = {{ElementType::Polyhedron,
                   {4, 0, 3, 2, 1, 4, 4, 5, 6, 7, 4, 0, 1, 5,  4,  4, 1,  2,  6, 5,
                    4, 2, 3, 7, 6, 4, 3, 0, 4, 7, 4, 8, 9, 10, 11, 4, 11, 10, 9, 8},
                   1}};
    return cube;
}

} // namespace DNDS::test
