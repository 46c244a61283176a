// Files written here, for what the public meshes lack.

#include "Geom/CgnsReader.hpp"

#include "Geom/Cgns/CgnsFile.hpp"
#include "Geom/Cgns/WholeMesh.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <numbers>
#include <set>

namespace DNDS::Geom {
namespace {

using test::CgnsFile;
using test::FileType;
using test::Floats;
using test::Ints;
using test::Longs;
using test::TemporaryFile;
using Points = std::vector<std::array<double, 3>>;

constexpr FileType bothTypes[] = {FileType::Adf, FileType::Hdf5};

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

Ints numbersFrom(int first, int count) {
    Ints all;
    for (int k = 0; k < count; k++)
        all.push_back(first + k);
    return all;
}

SourceMesh readWhole(const TemporaryFile &file, const CgnsOptions &options = {}) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    return test::gatherMesh(comm, readCgns(comm, file.path(), options));
}

int patchOf(const SourceMesh &mesh, const std::string &name) {
    for (std::size_t k = 0; k < mesh.patches.size(); k++)
        if (mesh.patches[k].name == name)
            return static_cast<int>(k);
    ADD_FAILURE() << "no patch " << name;
    return -1;
}

index facesOf(const SourceMesh &mesh, const std::string &name) { return test::facesOfMarks(mesh)[patchOf(mesh, name)]; }

// ---------------------------------------------------------------------------------------------------------------------
// Mixed sections

/// Hexahedra, prisms and tetrahedra, in turn, as lists of type and nodes.
std::vector<Ints> mixedElements(const Grid &grid) {
    std::vector<Ints> elements;
    grid.forEachCell([&](const std::array<int, 8> &v, int turn) {
        const auto add = [&](int type, std::initializer_list<std::size_t> corners) {
            Ints element{type};
            for (const std::size_t corner : corners)
                element.push_back(v[corner]);
            elements.push_back(element);
        };
        if (turn % 3 == 0) {
            add(17, {0, 1, 2, 3, 4, 5, 6, 7});
        } else if (turn % 3 == 1) {
            add(14, {0, 1, 2, 4, 5, 6});
            add(14, {0, 2, 3, 4, 6, 7});
        } else {
            for (const auto &[a, b] :
                 {std::pair<std::size_t, std::size_t>{1, 2}, {2, 3}, {3, 7}, {7, 4}, {4, 5}, {5, 1}})
                add(10, {0, a, b, 6});
        }
    });
    return elements;
}

template <class Numbers>
std::pair<Numbers, Numbers> flatten(const std::vector<Ints> &elements) {
    Numbers numbers;
    Numbers offsets{0};
    for (const Ints &element : elements) {
        numbers.insert(numbers.end(), element.begin(), element.end());
        offsets.push_back(static_cast<typename Numbers::value_type>(numbers.size()));
    }
    return {numbers, offsets};
}

TEST(CgnsWritten, MixedSectionsOfAllAgesAreTheSame) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{4, 3, 5};
    const auto elements = mixedElements(grid);
    const auto count = static_cast<std::int64_t>(elements.size());
    for (const FileType type : bothTypes) {
        const TemporaryFile old(comm, "mixed_old.cgns");
        old.write(type, 3.1F, [&](CgnsFile &file) {
            const double zone = file.zone(file.base("Base", 3, 3), "Zone", grid.nodes(), count);
            file.coordinates(zone, grid.points());
            file.section(zone, "All", 20, 1, count, flatten<Ints>(elements).first);
        });
        const TemporaryFile recent(comm, "mixed_new.cgns");
        recent.write(type, 4.2F, [&](CgnsFile &file) {
            const double zone = file.zone(file.base("Base", 3, 3), "Zone", grid.nodes(), count);
            file.coordinates(zone, grid.points());
            const auto [numbers, offsets] = flatten<Longs>(elements);
            file.section(zone, "All", 20, 1, count, numbers, offsets);
        });
        const SourceMesh mesh = readWhole(old);
        EXPECT_NEAR(test::measure(mesh), grid.cells(), 1e-12);
        EXPECT_EQ(test::countTypes(mesh.cells),
                  (std::map<std::string, index>{{"HEXA_8", 20}, {"PENTA_6", 40}, {"TETRA_4", 120}}));
        EXPECT_TRUE(mesh.patches.empty());
        EXPECT_TRUE(mesh.warnings.empty());
        test::expectSame(mesh, readWhole(recent));
    }
}

TEST(CgnsWritten, SectionsComeInOrderOfTheirNumbers) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{2, 2, 3};
    const TemporaryFile file(comm, "order.cgns");
    file.write(FileType::Hdf5, 3.1F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
        f.coordinates(zone, grid.points());
        const Ints all = grid.hexahedra();
        f.section(zone, "High", 7, 19, 24, grid.sideX(true));
        f.section(zone, "Second", 17, 11, 18, Ints(all.begin() + 32, all.end()));
        f.section(zone, "Low", 7, 1, 6, grid.sideX(false));
        f.section(zone, "First", 17, 7, 10, Ints(all.begin(), all.begin() + 32));
    });
    const SourceMesh mesh = readWhole(file);
    std::vector<index> cellIds;
    for (index id = 7; id <= 18; id++)
        cellIds.push_back(id);
    EXPECT_EQ(mesh.cells.fileIds, cellIds);
    std::vector<index> nodes;
    for (const int node : grid.hexahedra())
        nodes.push_back(node - 1);
    EXPECT_EQ(mesh.cells.nodes, nodes);
    // Without boundary conditions the sections of faces are the patches.
    ASSERT_EQ(mesh.patches.size(), 2U);
    EXPECT_EQ(facesOf(mesh, "Low"), 6);
    EXPECT_EQ(facesOf(mesh, "High"), 6);
    EXPECT_EQ(mesh.faces.fileIds, (std::vector<index>{1, 2, 3, 4, 5, 6, 19, 20, 21, 22, 23, 24}));
}

TEST(CgnsWritten, PatchesOfMixedSectionsHoldTheirFacesAlone) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{3, 1, 1};
    const TemporaryFile file(comm, "mixed_faces.cgns");
    file.write(FileType::Adf, 3.1F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), 3);
        f.coordinates(zone, grid.points());
        Ints faces{7};
        const Ints low = grid.sideX(false);
        faces.insert(faces.end(), low.begin(), low.end());
        faces.insert(faces.end(), {5, 1, 2, 3, 3, 1, 2}); // a triangle and a line
        f.section(zone, "Cells", 17, 1, 3, grid.hexahedra());
        f.section(zone, "Faces", 20, 4, 6, faces);
    });
    const SourceMesh mesh = readWhole(file);
    ASSERT_EQ(mesh.patches.size(), 1U);
    EXPECT_EQ(facesOf(mesh, "Faces"), 2);
    EXPECT_EQ(mesh.cells.globalSize, 3);
    EXPECT_EQ(mesh.warnings.size(), 1U); // of the line
}

TEST(CgnsWritten, PolygonsInMixedSectionsOfOldFiles) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(comm, "polygons.cgns");
    file.write(FileType::Adf, 3.1F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 2, 2), "Zone", 6, 2);
        f.coordinates(zone, {{0, 0, 0}, {2, 0, 0}, {2, 1, 0}, {1, 2, 0}, {0, 1, 0}, {-1, 0, 0}}, 2);
        f.section(zone, "Cells", 20, 1, 2, Ints{22 + 5, 1, 2, 3, 4, 5, 5, 1, 5, 6});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_EQ(test::countTypes(mesh.cells), (std::map<std::string, index>{{"NGON_n", 1}, {"TRI_3", 1}}));
    EXPECT_NEAR(test::measure(mesh), 3.5, 1e-14);
}

// ---------------------------------------------------------------------------------------------------------------------
// Polyhedra

/// The faces of a grid of boxes, each once, with the cells on both sides (counted from 1, 0 for none).
struct FaceList {
    std::vector<Ints> faces;
    std::vector<std::array<int, 2>> cells;
    std::vector<Ints> facesOfCells; ///< counted from 1, negative where they look inward

    explicit FaceList(const Grid &grid) {
        std::map<std::set<int>, std::size_t> known;
        int cell = 0;
        grid.forEachCell([&](const std::array<int, 8> &v, int) {
            cell++;
            facesOfCells.emplace_back();
            for (const ElementFace &face : elementInfo(ElementType::Hexa8).faces) {
                Ints corners;
                for (std::size_t k = 0; k < 4; k++)
                    corners.push_back(v[face.corner[k]]);
                const auto [at, isNew] = known.try_emplace({corners.begin(), corners.end()}, faces.size());
                const int number = static_cast<int>(at->second) + 1;
                if (isNew) {
                    faces.push_back(corners);
                    cells.push_back({cell, 0});
                } else {
                    cells[at->second][1] = cell;
                }
                facesOfCells.back().push_back(isNew ? number : -number);
            }
        });
    }
    int size() const { return static_cast<int>(faces.size()); }
    std::vector<Ints> withCounts(const std::vector<Ints> &rows) const {
        std::vector<Ints> all;
        for (const Ints &row : rows) {
            all.push_back({static_cast<int>(row.size())});
            all.back().insert(all.back().end(), row.begin(), row.end());
        }
        return all;
    }
    Ints parents(int firstCell) const {
        Ints all;
        for (std::size_t side = 0; side < 2; side++)
            for (const auto &pair : cells)
                all.push_back(pair[side] == 0 ? 0 : pair[side] + firstCell - 1);
        return all;
    }
    /// Boundary faces at x = 0.
    Ints low(const Grid &grid) const {
        Ints all;
        for (std::size_t k = 0; k < faces.size(); k++) {
            const auto atLow = [&](int node) { return (node - 1) % (grid.nx + 1) == 0; };
            if (std::all_of(faces[k].begin(), faces[k].end(), atLow))
                all.push_back(static_cast<int>(k) + 1);
        }
        return all;
    }
};

void expectPolyhedra(const SourceMesh &mesh, const Grid &grid) {
    EXPECT_EQ(test::countTypes(mesh.cells), (std::map<std::string, index>{{"NFACE_n", grid.cells()}}));
    EXPECT_NEAR(test::measure(mesh), grid.cells(), 1e-12);
    SourceMesh one = mesh; // each cell by itself has the volume of a box, so no two are mixed up
    for (index cell = 0; cell < mesh.cells.size(); cell++) {
        const auto nodes = mesh.cells.nodesOf(cell);
        one.cells.types = {ElementType::Polyhedron};
        one.cells.nodes.assign(nodes.begin(), nodes.end());
        one.cells.starts = {0, static_cast<index>(nodes.size())};
        EXPECT_NEAR(test::measure(one), 1.0, 1e-12) << "cell " << cell;
    }
    EXPECT_EQ(facesOf(mesh, "low"), grid.ny * grid.nz);
}

TEST(CgnsWritten, PolyhedraOfAllAges) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{3, 2, 4};
    const FaceList list(grid);
    for (const FileType type : bothTypes)
        for (const bool recent : {false, true})
            for (const bool cellsFirst : {false, true}) {
                const TemporaryFile file(comm, "polyhedra.cgns");
                file.write(type, recent ? 4.0F : 3.3F, [&](CgnsFile &f) {
                    const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
                    f.coordinates(zone, grid.points());
                    const int firstFace = cellsFirst ? grid.cells() + 1 : 1;
                    const int firstCell = cellsFirst ? 1 : list.size() + 1;
                    std::vector<Ints> cells = list.facesOfCells;
                    for (Ints &cell : cells)
                        for (int &face : cell)
                            face += face > 0 ? firstFace - 1 : 1 - firstFace;
                    const auto faces = flatten<Ints>(recent ? list.faces : list.withCounts(list.faces));
                    const auto inCells = flatten<Longs>(recent ? cells : list.withCounts(cells));
                    f.section(zone, "Faces", 22, firstFace, firstFace + list.size() - 1, faces.first,
                              recent ? test::Data(faces.second) : test::Data{});
                    f.section(zone, "Cells", 23, firstCell, firstCell + grid.cells() - 1, inCells.first,
                              recent ? test::Data(inCells.second) : test::Data{});
                    Ints low = list.low(grid);
                    for (int &face : low)
                        face += firstFace - 1;
                    f.condition(zone, "low", "BCWall", "PointList", low, "FaceCenter");
                });
                expectPolyhedra(readWhole(file), grid);
            }
}

TEST(CgnsWritten, PolyhedraOfParentsAlone) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{3, 2, 4};
    const FaceList list(grid);
    for (const int firstCell : {1, list.size() + 1}) {
        const TemporaryFile file(comm, "parents.cgns");
        file.write(FileType::Hdf5, 4.2F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            const auto faces = flatten<Ints>(list.faces);
            const double section = f.section(zone, "Faces", 22, 1, list.size(), faces.first, faces.second);
            f.add(section, "ParentElements", "DataArray_t", list.parents(firstCell), {list.size(), 2});
            f.condition(zone, "low", "BCWall", "PointList", list.low(grid), "FaceCenter");
        });
        const SourceMesh mesh = readWhole(file);
        expectPolyhedra(mesh, grid);
        EXPECT_EQ(mesh.cells.fileIds.front(), 1);
    }
}

TEST(CgnsWritten, PolygonsAsCellsOfTwoDimensions) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(comm, "ngon2d.cgns");
    file.write(FileType::Hdf5, 4.0F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 2, 3), "Zone", 6, 2);
        f.coordinates(zone, {{0, 0, 0}, {2, 0, 0}, {2, 1, 0}, {1, 2, 0}, {0, 1, 0}, {-1, 0, 0}});
        f.section(zone, "Cells", 22, 1, 2, Ints{1, 2, 3, 4, 5, 1, 5, 6}, Ints{0, 5, 8});
        f.section(zone, "Edges", 3, 3, 4, Ints{1, 2, 2, 3});
        f.condition(zone, "edges", "BCWall", "ElementRange", Ints{3, 4});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_EQ(test::countTypes(mesh.cells), (std::map<std::string, index>{{"NGON_n", 2}}));
    EXPECT_NEAR(test::measure(mesh), 3.5, 1e-14);
    EXPECT_EQ(facesOf(mesh, "edges"), 2);
    EXPECT_EQ(mesh.physicalDimension, 3);
}

// ---------------------------------------------------------------------------------------------------------------------
// Boundary conditions

TEST(CgnsWritten, BoundaryConditionsOfEveryKind) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{2, 3, 4};
    for (const FileType type : bothTypes) {
        const TemporaryFile file(comm, "conditions.cgns");
        file.write(type, 3.2F, [&](CgnsFile &f) {
            const double base = f.base("Base", 3, 3);
            f.add(f.add(base, "Hot", "Family_t"), "FamilyBC", "FamilyBC_t", std::string("BCWallViscousIsothermal"));
            f.add(base, "Cold", "Family_t");
            const double zone = f.zone(base, "Zone", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            f.section(zone, "Cells", 17, 1, 24, grid.hexahedra());
            f.section(zone, "Low", 7, 25, 36, grid.sideX(false));
            f.section(zone, "High", 7, 37, 48, grid.sideX(true));
            f.condition(zone, "elementRange", "FamilySpecified", "ElementRange", Ints{25, 27}, "", "Hot");
            f.condition(zone, "elementList", "FamilySpecified", "ElementList", Ints{30, 28, 30}, "", "Cold");
            f.condition(zone, "pointRange", "BCInflow", "PointRange", Longs{31, 34}, "FaceCenter", "Nowhere");
            f.condition(zone, "pointList", "BCOutflow", "PointList", Ints{36, 31}, "FaceCenter");
            f.condition(zone, "vertexList", "BCWall", "PointList", grid.nodesX(true));
            f.condition(zone, "vertexRange", "BCWall", "PointRange", Ints{3, 9}, "Vertex");
            f.condition(zone, "cellsToo", "BCWall", "PointRange", Ints{23, 26}, "FaceCenter");
            f.condition(zone, "nothing", "BCWall", "PointRange", test::Data{});
        });
        const SourceMesh mesh = readWhole(file);
        const std::map<std::string, std::array<index, 2>> expected{
            {"elementRange", {3, 0}}, {"elementList", {2, 0}}, {"pointRange", {4, 0}}, {"pointList", {2, 0}},
            {"vertexList", {0, 20}},  {"vertexRange", {0, 7}}, {"cellsToo", {2, 0}},   {"nothing", {0, 0}}};
        auto faces = test::facesOfMarks(mesh);
        auto nodes = test::nodesOfMarks(mesh);
        ASSERT_EQ(mesh.patches.size(), expected.size());
        for (const auto &[name, counts] : expected) {
            const int patch = patchOf(mesh, name);
            EXPECT_EQ(faces[patch], counts[0]) << name;
            EXPECT_EQ(nodes[patch], counts[1]) << name;
        }
        const auto &patches = mesh.patches;
        EXPECT_EQ(patches[static_cast<std::size_t>(patchOf(mesh, "elementRange"))].kind, "BCWallViscousIsothermal");
        EXPECT_EQ(patches[static_cast<std::size_t>(patchOf(mesh, "elementRange"))].family, "Hot");
        EXPECT_EQ(patches[static_cast<std::size_t>(patchOf(mesh, "elementList"))].kind, "");
        EXPECT_EQ(patches[static_cast<std::size_t>(patchOf(mesh, "pointRange"))].kind, "BCInflow");
        EXPECT_EQ(patches[static_cast<std::size_t>(patchOf(mesh, "pointRange"))].family, "Nowhere");
        // Element 31 is in two, 25 and 26 in others; 35 and all of "High" are in none.
        EXPECT_EQ(mesh.faces.fileIds, (std::vector<index>{25, 25, 26, 26, 27, 28, 30, 31, 31, 32, 33, 34, 36}));
        EXPECT_EQ(mesh.warnings.size(), 2U); // two of "cellsToo" are cells; "nothing" has no points
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Several zones, several bases, links

/// Two grids that meet at x = 2, each a zone. Returns the zones.
std::array<double, 2> writeTwoZones(CgnsFile &file, const Grid &left, const Grid &right, double shift = 0.0) {
    const double base = file.base("Base", 3, 3);
    std::array<double, 2> zones{};
    for (std::size_t k = 0; k < 2; k++) {
        const Grid &grid = k == 0 ? left : right;
        zones[k] = file.zone(base, k == 0 ? "Left" : "Right", grid.nodes(), grid.cells());
        Points points = grid.points();
        for (auto &point : points)
            point[1] += k == 0 ? 0.0 : shift;
        file.coordinates(zones[k], points);
        file.section(zones[k], "Cells", 17, 1, grid.cells(), grid.hexahedra());
        file.section(zones[k], "Low", 7, grid.cells() + 1, grid.cells() + grid.ny * grid.nz, grid.sideX(false));
        file.section(zones[k], "High", 7, grid.cells() + grid.ny * grid.nz + 1, grid.cells() + 2 * grid.ny * grid.nz,
                     grid.sideX(true));
        file.condition(zones[k], "far", "BCFarfield", "ElementRange",
                       k == 0 ? Ints{grid.cells() + 1, grid.cells() + grid.ny * grid.nz}
                              : Ints{grid.cells() + grid.ny * grid.nz + 1, grid.cells() + 2 * grid.ny * grid.nz});
    }
    return zones;
}

TEST(CgnsWritten, ZonesAreJoinedByVerticesByFacesAndByPlace) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid left{2, 2, 3};
    const Grid right{3, 2, 3, 2.0};
    const int sides = left.ny * left.nz;
    const TemporaryFile apart(comm, "apart.cgns");
    apart.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) { writeTwoZones(f, left, right); });
    const TemporaryFile byVertices(comm, "by_vertices.cgns");
    byVertices.write(FileType::Adf, 3.2F, [&](CgnsFile &f) {
        const auto zones = writeTwoZones(f, left, right);
        f.connection(zones[0], "a", "Right", left.nodesX(true), right.nodesX(false));
        f.connection(zones[1], "b", "Base/Left", right.nodesX(false), left.nodesX(true));
    });
    const TemporaryFile byFaces(comm, "by_faces.cgns");
    byFaces.write(FileType::Hdf5, 4.2F, [&](CgnsFile &f) {
        const auto zones = writeTwoZones(f, left, right);
        f.connection(zones[1], "faces", "Left", numbersFrom(right.cells() + 1, sides),
                     numbersFrom(left.cells() + sides + 1, sides), "FaceCenter");
    });
    EXPECT_EQ(readWhole(apart).globalNodes, left.nodes() + right.nodes());
    CgnsOptions byPlace;
    byPlace.joinCoincidentNodes = true;
    const SourceMesh mesh = readWhole(apart, byPlace);
    EXPECT_EQ(mesh.globalNodes, left.nodes() + right.nodes() - 12);
    EXPECT_NEAR(test::measure(mesh), left.cells() + right.cells(), 1e-12);
    ASSERT_EQ(mesh.patches.size(), 1U);
    EXPECT_EQ(facesOf(mesh, "far"), 2 * sides);
    std::set<std::array<real, 3>> places(mesh.coordinates.begin(), mesh.coordinates.end());
    EXPECT_EQ(static_cast<index>(places.size()), mesh.globalNodes);
    test::expectSame(mesh, readWhole(byVertices));
    test::expectSame(mesh, readWhole(byFaces));
}

TEST(CgnsWritten, JoinsThatDoNotFitAreReported) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid left{2, 2, 3};
    const Grid right{3, 2, 3, 2.0};
    const TemporaryFile byVertices(comm, "shifted.cgns");
    byVertices.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const auto zones = writeTwoZones(f, left, right, 0.25);
        f.connection(zones[0], "a", "Right", left.nodesX(true), right.nodesX(false));
    });
    EXPECT_EQ(readWhole(byVertices).warnings.size(), 1U);
    const TemporaryFile byFaces(comm, "shifted_faces.cgns");
    byFaces.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const auto zones = writeTwoZones(f, left, right, 0.25);
        f.connection(zones[1], "misfit", "Left", Ints{right.cells() + 1}, Ints{left.cells() + 7}, "FaceCenter");
    });
    try {
        readCgns(comm, byFaces.path());
        ADD_FAILURE() << "no exception";
    } catch (const DataError &error) {
        EXPECT_NE(error.message().find("connection 'misfit': faces 19 and 19 "), std::string::npos) << error.message();
    }
}

TEST(CgnsWritten, StructuredZonesBecomeHexahedra) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid left{2, 3, 4};
    const Grid right{3, 3, 4, 2.0};
    for (const FileType type : bothTypes) {
        const TemporaryFile file(comm, "structured.cgns");
        file.write(type, 3.2F, [&](CgnsFile &f) {
            const double base = f.base("Base", 3, 3);
            std::array<double, 2> zones{};
            for (std::size_t k = 0; k < 2; k++) {
                const Grid &grid = k == 0 ? left : right;
                zones[k] = f.structuredZone(base, k == 0 ? "Left" : "Right", {grid.nx + 1, grid.ny + 1, grid.nz + 1});
                f.coordinates(zones[k], grid.points());
                const int n = grid.nx + 1;
                f.condition(zones[k], k == 0 ? "low" : "high", "BCWall", "PointRange",
                            k == 0 ? Ints{1, 1, 1, 1, 4, 5} : Ints{n, 1, 1, n, 4, 5});
                f.condition(zones[k], "front", "BCWall", "PointRange", Ints{1, 1, 1, n, 1, 5});
                f.condition(zones[k], "back", "BCWall", "PointRange", Ints{1, 4, 1, n, 4, 5});
                f.condition(zones[k], "bottom", "BCWall", "PointRange", Ints{1, 1, 1, n, 4, 1});
                f.condition(zones[k], "top", "BCWall", "PointRange", Ints{1, 1, 5, n, 4, 5});
            }
            const double group = f.add(zones[0], "ZoneGridConnectivity", "ZoneGridConnectivity_t");
            const double join = f.add(group, "join", "GridConnectivity1to1_t", std::string("Right"));
            f.add(join, "PointRange", "IndexRange_t", Ints{3, 1, 1, 3, 4, 5}, {3, 2});
            f.add(join, "PointRangeDonor", "IndexRange_t", Ints{1, 1, 1, 1, 4, 5}, {3, 2});
            f.add(join, "Transform", "\"int[IndexDimension]\"", Ints{1, 2, 3});
        });
        const SourceMesh mesh = readWhole(file);
        EXPECT_EQ(mesh.globalNodes, 6 * 4 * 5);
        EXPECT_EQ(test::countTypes(mesh.cells), (std::map<std::string, index>{{"HEXA_8", 5 * 3 * 4}}));
        EXPECT_NEAR(test::measure(mesh), 60.0, 1e-12);
        EXPECT_EQ(facesOf(mesh, "low"), 12);
        EXPECT_EQ(facesOf(mesh, "front"), 20);
        EXPECT_EQ(facesOf(mesh, "top"), 15);
        EXPECT_TRUE(mesh.warnings.empty());
        // The boundary, all faces outward, is closed around the same volume.
        SourceMesh hull = mesh;
        hull.cells.types = {ElementType::Polyhedron};
        hull.cells.nodes.clear();
        for (index face = 0; face < mesh.faces.size(); face++) {
            const auto nodes = mesh.faces.nodesOf(face);
            hull.cells.nodes.push_back(4);
            hull.cells.nodes.insert(hull.cells.nodes.end(), nodes.begin(), nodes.end());
        }
        hull.cells.starts = {0, static_cast<index>(hull.cells.nodes.size())};
        EXPECT_NEAR(test::measure(hull), 60.0, 1e-12);
    }
}

TEST(CgnsWritten, StructuredZonesOfTwoDimensionsJoinWithTurnedIndices) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(comm, "structured2d.cgns");
    // The right zone's first index runs downward along the join, its second to the right.
    file.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const double base = f.base("Base", 2, 2);
        const double left = f.structuredZone(base, "Left", {3, 4});
        Points points;
        for (int j = 0; j < 4; j++)
            for (int i = 0; i < 3; i++)
                points.push_back({1.0 * i, 1.0 * j, 0.0});
        f.coordinates(left, points, 2);
        const double right = f.structuredZone(base, "Right", {4, 3});
        points.clear();
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < 4; i++)
                points.push_back({2.0 + j, 3.0 - i, 0.0});
        f.coordinates(right, points, 2);
        f.condition(left, "left", "BCWall", "PointRange", Ints{1, 1, 1, 4});
        const double group = f.add(left, "ZoneGridConnectivity", "ZoneGridConnectivity_t");
        const double join = f.add(group, "join", "GridConnectivity1to1_t", std::string("Right"));
        f.add(join, "PointRange", "IndexRange_t", Ints{3, 1, 3, 4}, {2, 2});
        f.add(join, "PointRangeDonor", "IndexRange_t", Ints{4, 1, 1, 1}, {2, 2});
        f.add(join, "Transform", "\"int[IndexDimension]\"", Ints{2, -1});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_EQ(mesh.globalNodes, 5 * 4);
    EXPECT_NEAR(test::measure(mesh), 12.0, 1e-12);
    EXPECT_TRUE(mesh.warnings.empty());
    EXPECT_EQ(facesOf(mesh, "left"), 3);
}

TEST(CgnsWritten, ChainsOfJoinsMakeOneNode) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(comm, "chain.cgns");
    // Squares in the order d, b, c, a, in two rows of two; joined are a-b, b-d, d-c, but not c-a.
    file.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const double base = f.base("Base", 2, 2);
        std::map<char, double> zones;
        for (const auto &[name, x, y] :
             {std::tuple{'d', 1.0, 1.0}, {'b', 1.0, 0.0}, {'c', 0.0, 1.0}, {'a', 0.0, 0.0}}) {
            zones[name] = f.zone(base, std::string(1, name), 4, 1);
            f.coordinates(zones[name], {{x, y, 0}, {x + 1, y, 0}, {x + 1, y + 1, 0}, {x, y + 1, 0}}, 2);
            f.section(zones[name], "Cells", 7, 1, 1, Ints{1, 2, 3, 4});
        }
        f.connection(zones['a'], "ab", "b", Ints{2, 3}, Ints{1, 4});
        f.connection(zones['b'], "bd", "d", Ints{3, 4}, Ints{2, 1});
        f.connection(zones['d'], "dc", "c", Ints{1, 4}, Ints{2, 3});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_EQ(mesh.globalNodes, 10); // all of a three by three grid, and one that a and c do not share
    const auto centre = [&](index cell, std::size_t corner) { return mesh.cells.nodesOf(cell)[corner]; };
    EXPECT_EQ(centre(0, 0), centre(1, 3));
    EXPECT_EQ(centre(0, 0), centre(2, 1));
    EXPECT_EQ(centre(0, 0), centre(3, 2));
    EXPECT_NEAR(test::measure(mesh), 4.0, 1e-14);
}

TEST(CgnsWritten, OneOfSeveralBasesIsRead) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(comm, "bases.cgns");
    file.write(FileType::Adf, 3.2F, [&](CgnsFile &f) {
        f.base("Empty", 3, 3);
        for (const int n : {2, 3}) {
            const Grid grid{n, 1, 1};
            const double zone = f.zone(f.base("Base" + std::to_string(n), 3, 3), "Zone", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            f.section(zone, "Cells", 17, 1, n, grid.hexahedra());
        }
    });
    EXPECT_EQ(readWhole(file).cells.globalSize, 2);
    CgnsOptions options;
    options.base = "Base3";
    EXPECT_EQ(readWhole(file, options).cells.globalSize, 3);
    options.base = "Base4";
    EXPECT_THROW(readCgns(comm, file.path(), options), ArgumentError);
    options.base = "Empty";
    EXPECT_THROW(readCgns(comm, file.path(), options), DataError);
}

TEST(CgnsWritten, LinksAreFollowedIntoOtherFiles) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{3, 2, 2};
    for (const FileType type : bothTypes) {
        const TemporaryFile target(comm, "link_target.cgns");
        target.write(type, 3.2F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Grids", 3, 3), "Fine", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            f.section(zone, "Cells", 17, 1, grid.cells(), grid.hexahedra());
        });
        const TemporaryFile file(comm, "link.cgns");
        const std::string name = std::filesystem::path(target.path()).filename().string();
        file.write(type, 3.2F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
            f.link(zone, "GridCoordinates", target.path(), "/Grids/Fine/GridCoordinates");
            f.link(zone, "Cells", type == FileType::Hdf5 ? name : target.path(), "/Grids/Fine/Cells");
        });
        test::expectSame(readWhole(file), readWhole(target));
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Periodic connections

TEST(CgnsWritten, PeriodicConnectionsByVertices) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{3, 2, 2};
    const TemporaryFile file(comm, "periodic.cgns");
    file.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
        f.coordinates(zone, grid.points());
        f.section(zone, "Cells", 17, 1, grid.cells(), grid.hexahedra());
        const double there = f.connection(zone, "there", "Zone", grid.nodesX(false), grid.nodesX(true));
        f.periodic(there, {0, 0, 0}, {0, 0, 0}, {3, 0, 0});
        const double back = f.connection(zone, "back", "Zone", grid.nodesX(true), grid.nodesX(false));
        f.periodic(back, {0, 0, 0}, {0, 0, 0}, {-3, 0, 0});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_EQ(mesh.globalNodes, grid.nodes()); // periodic nodes are not joined
    ASSERT_EQ(mesh.periodic.size(), 1U);       // "back" says the same from the other side
    EXPECT_EQ(mesh.periodic[0].name, "there");
    EXPECT_EQ(mesh.periodic[0].transform.translation, (std::array<real, 3>{3, 0, 0}));
    auto nodes = test::nodesOfMarks(mesh);
    EXPECT_EQ(nodes[-1], 9);
    EXPECT_EQ(nodes[-2], 9);
    for (const SourceMesh::NodeMark &mark : mesh.nodeMarks)
        EXPECT_EQ(mesh.coordinates[static_cast<std::size_t>(mark.node)][0], mark.mark == -1 ? 0.0 : 3.0);
}

TEST(CgnsWritten, AnglesInDegreesAreConverted) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{3, 2, 2};
    for (const bool atBase : {false, true}) {
        const TemporaryFile file(comm, "degrees.cgns");
        file.write(FileType::Adf, 3.2F, [&](CgnsFile &f) {
            std::string units;
            for (const std::string unit : {"Kilogram", "Meter", "Second", "Kelvin", "Degree"})
                units += unit + std::string(32 - unit.size(), ' ');
            const double base = f.base("Base", 3, 3);
            const double zone = f.zone(base, "Zone", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            f.section(zone, "Cells", 17, 1, grid.cells(), grid.hexahedra());
            const double connection = f.connection(zone, "turn", "Zone", grid.nodesX(false), grid.nodesX(true));
            const double periodic = f.periodic(connection, {1, 2, 3}, {0, 90, -30}, {0, 0, 0});
            f.add(atBase ? base : periodic, "DimensionalUnits", "DimensionalUnits_t", units, {32, 5});
        });
        const SourceMesh mesh = readWhole(file);
        ASSERT_EQ(mesh.periodic.size(), 1U);
        EXPECT_EQ(mesh.periodic[0].transform.centre, (std::array<real, 3>{1, 2, 3}));
        EXPECT_DOUBLE_EQ(mesh.periodic[0].transform.angles[1], std::numbers::pi / 2);
        EXPECT_DOUBLE_EQ(mesh.periodic[0].transform.angles[2], -std::numbers::pi / 6);
    }
}

} // namespace
} // namespace DNDS::Geom
