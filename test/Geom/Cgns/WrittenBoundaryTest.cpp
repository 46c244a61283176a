// Files written here, for what the public meshes lack: boundary conditions and periodic connections.

#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "Geom/Cgns/BoxGrid.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numbers>
#include <set>

namespace DNDS::Geom {
namespace {

using namespace test;

TEST(CgnsWritten, BoundaryConditionsOfEveryKind) {
    const Grid grid{2, 3, 4};
    for (const FileType type : bothTypes) {
        const WrittenFile file;
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

/// The cells, numbered from 1, whose faces make up the side x = x0 or the other one; there they are face 5 or 3.
Ints parentsOfSide(const Grid &grid, bool high) {
    Ints cells;
    for (int k = 0; k < grid.nz; k++)
        for (int j = 0; j < grid.ny; j++)
            cells.push_back(1 + (high ? grid.nx - 1 : 0) + grid.nx * (j + grid.ny * k));
    return cells;
}

TEST(CgnsWritten, FacesMayBeGivenByTheirParentsAlone) {
    const Grid grid{3, 4, 2};
    const auto cells = static_cast<int>(grid.cells());
    const int faces = grid.ny * grid.nz;
    for (const FileType type : bothTypes) {
        const auto write = [&](const WrittenFile &file, float version, int how) {
            file.write(type, version, [&](CgnsFile &f) {
                const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), cells);
                f.coordinates(zone, grid.points());
                f.section(zone, "Cubes", 17, 1, cells, grid.hexahedra());
                for (const bool high : {false, true}) {
                    const int first = cells + 1 + (high ? faces : 0);
                    if (how == 0) {
                        f.section(zone, high ? "Out" : "In", 7, first, first + faces - 1, grid.sideX(high));
                    } else {
                        const double id = f.add(zone, high ? "Out" : "In", "Elements_t", Ints{7, 0});
                        f.add(id, "ElementRange", "IndexRange_t", Ints{first, first + faces - 1});
                        Ints parents = parentsOfSide(grid, high);
                        Ints positions(parents.size(), high ? 3 : 5);
                        parents.resize(2 * parents.size(), 0);
                        positions.resize(2 * positions.size(), 0);
                        if (how == 1) { // as files of version 1 and 2 have it
                            parents.insert(parents.end(), positions.begin(), positions.end());
                            f.add(id, "ParentData", "DataArray_t", parents, {faces, 4});
                        } else {
                            f.add(id, "ParentElements", "DataArray_t", parents, {faces, 2});
                            f.add(id, "ParentElementsPosition", "DataArray_t", positions, {faces, 2});
                        }
                    }
                    f.condition(zone, high ? "outlet" : "inlet", "BCOutflow", "PointRange",
                                Ints{first, first + faces - 1}, "FaceCenter");
                }
            });
        };
        const auto cornersOf = [](const SourceMesh &mesh) {
            std::vector<std::set<index>> all;
            for (index f = 0; f < mesh.faces.size(); f++) {
                const auto nodes = mesh.faces.nodesOf(f);
                all.emplace_back(nodes.begin(), nodes.end());
            }
            return all;
        };
        const WrittenFile with;
        write(with, 3.2F, 0);
        const SourceMesh expected = readWhole(with);
        EXPECT_EQ(facesOf(expected, "outlet"), faces);
        for (const int how : {1, 2}) {
            const WrittenFile without;
            write(without, how == 1 ? 1.2F : 3.4F, how);
            const SourceMesh found = readWhole(without);
            EXPECT_EQ(cornersOf(found), cornersOf(expected));
            EXPECT_EQ(found.faceMarks, expected.faceMarks);
            EXPECT_EQ(found.faces.types, expected.faces.types);
            EXPECT_EQ(found.warnings, expected.warnings);
        }
    }
}

TEST(CgnsWritten, ParentsThatAreNotThereAreNamed) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{2, 1, 1};
    const auto failureWith = [&](const Ints &data, int type) {
        const WrittenFile file;
        file.write(FileType::Hdf5, 1.2F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), 2);
            f.coordinates(zone, grid.points());
            f.section(zone, "Cubes", 17, 1, 2, grid.hexahedra());
            const double id = f.add(zone, "Side", "Elements_t", Ints{type, 0});
            f.add(id, "ElementRange", "IndexRange_t", Ints{3, 3});
            f.add(id, "ParentData", "DataArray_t", data);
        });
        try {
            readCgns(comm, file.path());
        } catch (const DataError &error) {
            return error.message();
        }
        return std::string("nothing failed");
    };
    EXPECT_NE(failureWith({7, 0, 5, 0}, 7).find("section 'Side', element 3: its parent 7 is not a cell"),
              std::string::npos);
    EXPECT_NE(failureWith({1, 0, 9, 0}, 7).find("element 3: its parent 1 has no face 9 of 4 corners"),
              std::string::npos);
    EXPECT_NE(failureWith({1, 0, 5, 0}, 5).find("element 3: its parent 1 has no face 5 of 3 corners"),
              std::string::npos);
    EXPECT_NE(failureWith({1, 0}, 7).find("which of their faces it is"), std::string::npos);
}

TEST(CgnsWritten, PeriodicConnectionsByVertices) {
    const Grid grid{3, 2, 2};
    const WrittenFile file;
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
    const Grid grid{3, 2, 2};
    for (const bool atBase : {false, true}) {
        const WrittenFile file;
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
