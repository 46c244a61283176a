// CGNS files as other programs write them: what the CGNS library reads although the standard's text has it otherwise.

#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "Geom/Cgns/BoxGrid.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

using namespace test;

constexpr std::int32_t hexa8 = 17;
constexpr std::int32_t quad4 = 7;

MeshReport reportOf(const WrittenFile &file, const CgnsOptions &options = {}) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    MeshReport report;
    buildMesh(comm, readCgns(comm, file.path(), options), {.report = &report});
    return report;
}

/// The first message with this text; "" if none.
std::string messageWith(const std::vector<std::string> &messages, const std::string &text) {
    for (const std::string &message : messages)
        if (message.find(text) != std::string::npos)
            return message;
    return "";
}

std::string failureOf(const WrittenFile &file) {
    try {
        readWhole(file);
    } catch (const DataError &error) {
        return error.message();
    }
    return "nothing failed";
}

TEST(WildCgns, ZerosBesideParentsAreNoNodes) {
    const Grid grid{3, 2, 2};
    const auto cells = static_cast<int>(grid.cells());
    const int faces = grid.ny * grid.nz;
    const auto write = [&](const WrittenFile &file, const Ints &connectivity, bool parents) {
        file.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), cells);
            f.coordinates(zone, grid.points());
            f.section(zone, "Cubes", hexa8, 1, cells, grid.hexahedra());
            const double id = f.section(zone, "Out", quad4, cells + 1, cells + faces, connectivity);
            if (parents) {
                Ints of;
                for (int k = 0; k < grid.nz; k++)
                    for (int j = 0; j < grid.ny; j++)
                        of.push_back(1 + grid.nx - 1 + grid.nx * (j + grid.ny * k));
                Ints positions(of.size(), 3);
                of.resize(2 * of.size(), 0);
                positions.resize(2 * positions.size(), 0);
                f.add(id, "ParentElements", "DataArray_t", of, {faces, 2});
                f.add(id, "ParentElementsPosition", "DataArray_t", positions, {faces, 2});
            }
            f.condition(zone, "outlet", "BCOutflow", "PointRange", Ints{cells + 1, cells + faces}, "FaceCenter");
        });
    };
    const WrittenFile given;
    write(given, grid.sideX(true), true);
    const WrittenFile zeros;
    write(zeros, Ints(grid.sideX(true).size(), 0), true);
    Ints some = grid.sideX(true);
    std::fill_n(some.begin() + 4, 4, 0); // one of the faces alone
    const WrittenFile mixed;
    write(mixed, some, true);
    for (const WrittenFile *file : {&given, &zeros, &mixed}) {
        const MeshReport report = reportOf(*file);
        EXPECT_EQ(report.unassignedFaces, report.boundaryFaces - faces);
        EXPECT_EQ(report.patches[0].faces, faces);
        EXPECT_EQ(readWhole(*file).faces.fileIds, readWhole(given).faces.fileIds);
    }
    const WrittenFile without;
    write(without, Ints(grid.sideX(true).size(), 0), false);
    EXPECT_NE(failureOf(without).find("section 'Out', element 13: node 0"), std::string::npos) << failureOf(without);
}

TEST(WildCgns, ConnectionsToOtherBasesAreLeftOut) {
    const Grid grid{2, 1, 1};
    const WrittenFile file;
    file.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
        for (const std::string name : {"Fluid", "Solid"}) {
            const double base = f.base(name, 3, 3);
            const double zone = f.zone(base, "Zone", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            f.section(zone, "Cubes", hexa8, 1, grid.cells(), grid.hexahedra());
            f.connection(zone, "across", name == "Fluid" ? "Solid/Zone" : "/Fluid/Zone", grid.nodesX(true),
                         grid.nodesX(false));
            if (name == "Solid")
                f.zone(base, "Only", 0, 0);
        }
    });
    CgnsOptions options;
    options.base = "Fluid";
    const SourceMesh mesh = readWhole(file, options);
    EXPECT_EQ(mesh.nodes(), grid.nodes()); // the zone of the same name in this base is not joined
    EXPECT_NE(messageWith(mesh.warnings, "connection 'across' is left out: zone 'Solid/Zone' is in base 'Solid'"), "");
    const WrittenFile lost;
    lost.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Fluid", 3, 3), "Zone", grid.nodes(), grid.cells());
        f.coordinates(zone, grid.points());
        f.section(zone, "Cubes", hexa8, 1, grid.cells(), grid.hexahedra());
        f.connection(zone, "across", "Gone/Zone", grid.nodesX(true), grid.nodesX(false));
    });
    EXPECT_NE(failureOf(lost).find("connection 'across': there is no zone 'Gone/Zone'"), std::string::npos);
}

TEST(WildCgns, ConnectionsWithoutAListAreToldWhichIsMissing) {
    const Grid grid{2, 1, 1};
    for (const bool donor : {true, false}) {
        const WrittenFile file;
        file.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            f.section(zone, "Cubes", hexa8, 1, grid.cells(), grid.hexahedra());
            const double group = f.add(zone, "ZoneGridConnectivity", "ZoneGridConnectivity_t");
            const double join = f.add(group, "join", "GridConnectivity_t", std::string("Zone"));
            f.add(join, "GridConnectivityType", "GridConnectivityType_t", std::string("Abutting1to1"));
            const Ints list = grid.nodesX(true);
            f.add(join, donor ? "PointList" : "PointListDonor", "IndexArray_t", list,
                  {1, static_cast<int>(list.size())});
        });
        EXPECT_NE(messageWith(readWhole(file).warnings,
                              donor ? "connection 'join': it is left out: it has no list of the other zone's points "
                                      "(PointListDonor)"
                                    : "connection 'join': it is left out: it has no list of the zone's points "
                                      "(PointList)"),
                  "");
    }
}

TEST(WildCgns, ZonesWhoseIndicesDoNotFitTheirBaseAreExplained) {
    const Grid grid{2, 2, 0};
    const WrittenFile file;
    file.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
        f.coordinates(f.structuredZone(f.base("Base", 3, 3), "Wall", {3, 3}), grid.points());
    });
    EXPECT_NE(failureOf(file).find("zone 'Wall' has 2 indices, but structured zones of base 'Base' have 3, as many as "
                                   "its cells have dimensions: a surface needs a base of its own"),
              std::string::npos)
        << failureOf(file);
}

TEST(WildCgns, HdfFilesWithoutCgnsAreNamed) {
    const std::pair<std::vector<std::string>, std::string> kinds[] = {
        {{"ENS_MAA", "INFOS_GENERALES"}, "it is a MED mesh; meshio converts it"},
        {{"coordx", "num_elem", "num_nodes"}, "it is an Exodus mesh; meshio converts it"},
        {{"meshes", "settings"}, "it is a Fluent case; Fluent exports CGNS"},
        {{"tstt"}, "it is a MOAB mesh (h5m); meshio converts it"},
    };
    const auto expect = [](const WrittenFile &file, const std::string &expected) {
        try {
            (void)readMesh(CommunicatorView(MPI_COMM_WORLD), file.path());
            ADD_FAILURE() << "nothing failed";
        } catch (const DataError &error) {
            EXPECT_NE(error.message().find(expected), std::string::npos) << error.message();
        }
    };
    for (const auto &[names, expected] : kinds)
        for (const float version : {0.0F, 3.4F}) { // a base of a CGNS file may have any name
            const WrittenFile file;
            file.write(FileType::Hdf5, version, [&, members = names](CgnsFile &f) {
                for (const std::string &name : members)
                    f.add(f.root(), name, "");
            });
            expect(file, version > 0.0F ? "no base with cells" : expected);
        }
}

TEST(WildCgns, TypesOfVersion30AreRenumbered) {
    // A pyramid of the 13 nodes that version 3.0 called 13, and a cube called 18; then both in a MIXED section, 21.
    const Points points{{0, 0, 0},  {1, 0, 0},       {1, 1, 0},       {0, 1, 0},       {0, 0, 1},      {1, 0, 1},
                        {1, 1, 1},  {0, 1, 1},       {.5, .5, 2},     {.5, 0, 1},      {1, .5, 1},     {.5, 1, 1},
                        {0, .5, 1}, {.25, .25, 1.5}, {.75, .25, 1.5}, {.75, .75, 1.5}, {.25, .75, 1.5}};
    const Ints cube{1, 2, 3, 4, 5, 6, 7, 8};
    const Ints pyramid{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    const auto typesOf = [&](float version, int hexa, int pyra, int mixed) {
        const WrittenFile file;
        file.write(FileType::Hdf5, version, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Base", 3, 3), "Zone", static_cast<int>(points.size()), 2);
            f.coordinates(zone, points);
            if (mixed == 0) {
                f.section(zone, "Cube", hexa, 1, 1, cube);
                f.section(zone, "Pyramid", pyra, 2, 2, pyramid);
            } else {
                Ints both{hexa};
                both.insert(both.end(), cube.begin(), cube.end());
                both.push_back(pyra);
                both.insert(both.end(), pyramid.begin(), pyramid.end());
                f.section(zone, "Both", mixed, 1, 2, both);
            }
        });
        return readWhole(file).cells.types;
    };
    const std::vector<ElementType> expected{ElementType::Hexa8, ElementType::Pyra13};
    EXPECT_EQ(typesOf(3.0F, 18, 13, 0), expected);
    EXPECT_EQ(typesOf(3.0F, 18, 13, 21), expected);
    EXPECT_EQ(typesOf(3.1F, 17, 21, 0), expected);
    EXPECT_EQ(typesOf(3.1F, 17, 21, 20), expected);
}

TEST(WildCgns, InvalidRangesOfConditionsLeaveFacesUnassigned) {
    const Grid grid{2, 2, 1};
    const auto cells = static_cast<int>(grid.cells());
    const WrittenFile file;
    file.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), cells);
        f.coordinates(zone, grid.points());
        f.section(zone, "Cubes", hexa8, 1, cells, grid.hexahedra());
        f.section(zone, "Out", quad4, cells + 1, cells + 2, grid.sideX(true));
        f.condition(zone, "zero", "BCWall", "PointRange", Ints{0, 0}, "FaceCenter");
        f.condition(zone, "backwards", "BCWall", "PointRange", Ints{6, 5}, "FaceCenter");
        f.condition(zone, "vertices", "BCWall", "PointRange", Ints{1, 99});
        f.condition(zone, "six", "BCWall", "PointRange", Ints{1, 1, 1, 2, 2, 2}, "FaceCenter");
        f.condition(zone, "beyond", "BCWall", "PointRange", Ints{6, 9}, "FaceCenter");
        f.condition(zone, "listed", "BCWall", "PointList", Ints{1, 0, 19, 2, 99});
        f.condition(zone, "good", "BCOutflow", "PointRange", Ints{5, 5}, "FaceCenter");
    });
    const MeshReport report = reportOf(file);
    EXPECT_EQ(report.unassignedFaces, report.boundaryFaces - 2);
    const std::pair<std::string, std::string> expected[] = {
        {"'zero'", "is left out, its faces stay unassigned: 0 to 0 is not a range"},
        {"'backwards'", "6 to 5 is not a range"},
        {"'vertices'", "nodes 1 to 99 of a zone with 18 nodes"},
        {"'six'", "a point range has 6 numbers instead of 2"},
        {"'listed'", "3 of its 5 nodes do not exist in its zone"},
        {"'beyond'", "3 of its 4 elements from 6 to 9 are not faces"}};
    for (const auto &[name, text] : expected)
        EXPECT_NE(messageWith(report.warnings, text).find("zone 'Zone', boundary condition " + name), std::string::npos)
            << text;

    const WrittenFile structured;
    structured.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
        const double zone = f.structuredZone(f.base("Base", 3, 3), "Block", {3, 3, 2});
        f.coordinates(zone, grid.points());
        f.condition(zone, "listed", "BCWall", "PointList", Ints{1, 1, 1, 1, 4, 1, 0, 1, 1});
        f.condition(zone, "far", "BCWall", "PointRange", Ints{1, 1, 1, 1, 4, 2});
        f.condition(zone, "good", "BCWall", "PointRange", Ints{3, 1, 1, 3, 3, 2});
    });
    const MeshReport block = reportOf(structured);
    EXPECT_NE(messageWith(block.warnings, "'listed': 2 of its 3 nodes do not exist in its zone"), "");
    EXPECT_NE(messageWith(block.warnings, "'far' is left out, its faces stay unassigned: its range [1, 1, 1, 1, 4, 2] "
                                          "leaves the zone of 3 x 3 x 2 nodes"),
              "");
    EXPECT_EQ(block.unassignedFaces, block.boundaryFaces - 2);
}

TEST(WildCgns, HarmlessSectionsAreNotes) {
    const Grid grid{2, 1, 1};
    const WrittenFile file;
    file.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), 2);
        f.coordinates(zone, grid.points());
        f.section(zone, "Cubes", hexa8, 1, 2, grid.hexahedra());
        f.section(zone, "Bars", 3, 3, 4, Ints{1, 2, 2, 3});
        f.section(zone, "Points", 2, 5, 5, Ints{1});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_TRUE(mesh.warnings.empty());
    EXPECT_EQ(mesh.notes.size(), 2u);
    EXPECT_NE(messageWith(reportOf(file).notes, "section 'Bars': its 2 elements of type BAR_2 are left out"), "");
}

/// A structured block at x = 0 to 2 beside another zone at x = 2 to 4, joined by lists of faces.
struct TwoZones {
    bool bothStructured = false;
    std::string location = "IFaceCenter"; ///< grid location of the connection
    bool ofRight = false;                 ///< the right zone, unstructured, has the connection, not the block
    Ints block{3, 1, 1, 3, 2, 1, 3, 1, 2, 3, 2, 2};
    Ints other{9, 10, 11, 12};
    bool periodic = false; ///< left side of the block and right side of the right zone

    void write(const WrittenFile &file) const {
        file.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
            const Grid left{2, 2, 2};
            const Grid right{2, 2, 2, 2.0};
            const double base = f.base("Base", 3, 3);
            const double grid = f.structuredZone(base, "Left", {3, 3, 3});
            f.coordinates(grid, left.points());
            const double zone =
                bothStructured ? f.structuredZone(base, "Right", {3, 3, 3}) : f.zone(base, "Right", right.nodes(), 8);
            f.coordinates(zone, right.points());
            if (!bothStructured) {
                f.section(zone, "Cubes", hexa8, 1, 8, right.hexahedra());
                f.section(zone, "Low", quad4, 9, 12, right.sideX(false));
                f.section(zone, "High", quad4, 13, 16, right.sideX(true));
            }
            const double id = ofRight ? f.connection(zone, "join", "Left", other, block, location)
                                      : f.connection(grid, "join", "Right", block, other, location);
            if (periodic)
                f.periodic(id, {0, 0, 0}, {0, 0, 0}, {4, 0, 0});
        });
    }
};

TEST(WildCgns, ConnectionsMayListFacesOfStructuredZones) {
    struct Case {
        std::string what;
        TwoZones zones;
    };
    const Ints facing{1, 1, 1, 1, 2, 1, 1, 1, 2, 1, 2, 2};
    const Case cases[] = {{"to an unstructured zone", {}},
                          {"of a direction that is not said", {.location = "FaceCenter"}},
                          {"from an unstructured zone", {.location = "FaceCenter", .ofRight = true}},
                          {"to another structured zone", {.bothStructured = true, .other = facing}}};
    for (const auto &[what, zones] : cases) {
        SCOPED_TRACE(what);
        const WrittenFile file;
        zones.write(file);
        const MeshReport report = reportOf(file);
        EXPECT_EQ(report.cellsTotal, 16);
        EXPECT_EQ(report.boundaryFaces, 2 * 4 + 4 * 8); // of one block of 4 x 2 x 2 cubes
        EXPECT_EQ(readWhole(file).nodes(), 45);
        EXPECT_EQ(messageWith(report.warnings, "connection"), "");
    }
    const WrittenFile around; // the far sides
    TwoZones{.block = {1, 1, 1, 1, 2, 1, 1, 1, 2, 1, 2, 2}, .other = {13, 14, 15, 16}, .periodic = true}.write(around);
    EXPECT_EQ(reportOf(around).periodicPairs, 4);
}

TEST(WildCgns, ListedFacesThatFitNoSideAreLeftOutOrNamed) {
    const auto warningOf = [](const TwoZones &zones) {
        const WrittenFile file;
        zones.write(file);
        return messageWith(readWhole(file).warnings, "connection 'join'");
    };
    const std::string several = "the faces of a structured zone that it lists are not all on one side of the zone";
    TwoZones corner{.location = "FaceCenter", .ofRight = true, .block = {1, 1, 1}, .other = {9}};
    EXPECT_NE(warningOf(corner).find(several), std::string::npos) << warningOf(corner);
    TwoZones inside{.location = "FaceCenter", .ofRight = true, .block = {2, 1, 1, 2, 2, 2}, .other = {9, 10}};
    EXPECT_NE(warningOf(inside).find(several), std::string::npos);
    TwoZones cells{.location = "CellCenter"};
    EXPECT_NE(warningOf(cells).find("at 'CellCenter' is left out; only Abutting1to1 between vertices or faces"),
              std::string::npos);
    const WrittenFile beyond;
    TwoZones{.block = {3, 1, 1, 3, 2, 1, 3, 1, 2, 3, 3, 2}}.write(beyond);
    EXPECT_NE(failureOf(beyond).find("zone 'Left', connection 'join': face 4 of its list has index 3"),
              std::string::npos)
        << failureOf(beyond);
}

SourceMesh boxOf(BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {3, 2, 2};
    return makeBoxMesh(options, CommunicatorView(MPI_COMM_WORLD));
}

TEST(WildMeshes, OpenPolyhedraAreCountedAndReadOnRequest) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    MeshReport sound;
    buildMesh(comm, boxOf(BoxCells::Polyhedra), {.report = &sound});
    // Of cells 1 and 4 the first face is missing; that of cell 1 is on the boundary or leads to a neighbour.
    const auto open = [] {
        SourceMesh mesh = boxOf(BoxCells::Polyhedra);
        for (index c = 0; c < mesh.cells.size(); c++) {
            if (mesh.cells.first + c != 0 && mesh.cells.first + c != 3)
                continue;
            const index start = mesh.cells.starts[static_cast<std::size_t>(c)];
            const index length = mesh.cells.nodes[static_cast<std::size_t>(start)] + 1;
            mesh.cells.nodes.erase(mesh.cells.nodes.begin() + start, mesh.cells.nodes.begin() + start + length);
            for (std::size_t k = static_cast<std::size_t>(c) + 1; k < mesh.cells.starts.size(); k++)
                mesh.cells.starts[k] -= length;
        }
        return mesh;
    };
    try {
        buildMesh(comm, open(), {});
        ADD_FAILURE() << "open polyhedra are accepted without a word";
    } catch (const DataError &error) {
        EXPECT_NE(error.message().find("2 polyhedra are open: some edges do not belong to two faces; the first is "
                                       "element 1. With MeshOptions::openPolyhedra (dnds-mesh --open)"),
                  std::string::npos)
            << error.message();
    }
    MeshReport report;
    buildMesh(comm, open(), {.openPolyhedra = true, .report = &report});
    EXPECT_NE(messageWith(report.warnings, "2 polyhedra are open"), "");
    EXPECT_EQ(report.cellsTotal, sound.cellsTotal);
    // Each missing face belonged to two cells; now it is a boundary face of the other one, or has disappeared.
    EXPECT_EQ(report.innerFaces + report.boundaryFaces + 2 - report.unassignedFaces,
              sound.innerFaces + sound.boundaryFaces);
    EXPECT_EQ(sound.innerFaces - report.innerFaces, report.unassignedFaces);
}

TEST(WildMeshes, BoundsHaveNoNegativeZeros) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    SourceMesh mesh = boxOf(BoxCells::Hexahedra);
    for (auto &point : mesh.coordinates) {
        point[0] = point[0] == 0.0 ? -0.0 : -point[0];
        for (real &x : point)
            x = x == 0.0 && mesh.firstNode == 0 ? -0.0 : x;
    }
    MeshReport report;
    buildMesh(comm, std::move(mesh), {.report = &report});
    EXPECT_EQ(report.upper[0], 0.0);
    for (std::size_t d = 0; d < 3; d++)
        EXPECT_FALSE(std::signbit(d == 0 ? report.upper[d] : report.lower[d])) << d;
}

TEST(WildMeshes, WrittenPointListsAscendOnAnyNumberOfRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".cgns");
    SourceMesh mesh = boxOf(BoxCells::Hexahedra);
    mesh.faces = {};
    mesh.faceMarks.clear();
    mesh.patches = {{"points", "", ""}};
    for (index node = mesh.nodes(); node-- > 0;) // those of another rank, backwards, and some twice
        for (index times = 0; times <= node % 2; times++)
            mesh.nodeMarks.push_back({0, mesh.globalNodes - 1 - mesh.firstNode - node});
    writeCgns(comm, file.path(), mesh, {}, {});
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        const SourceMesh read = readCgns(CommunicatorView(MPI_COMM_SELF), file.path());
        ASSERT_EQ(static_cast<index>(read.nodeMarks.size()), mesh.globalNodes);
        for (std::size_t k = 0; k < read.nodeMarks.size(); k++)
            EXPECT_EQ(read.nodeMarks[k].node, static_cast<index>(k));
    });
}

} // namespace
} // namespace DNDS::Geom
