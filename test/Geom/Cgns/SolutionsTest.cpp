#include "DNDS/Geom/Cgns/Solutions.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "Geom/Cgns/BoxGrid.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace DNDS::Geom {
namespace {

using namespace test;

/// Value of the field "place" at a node.
double placeOf(const std::array<double, 3> &x) { return x[0] + 10 * x[1] + 100 * x[2]; }

Doubles placesOf(const Grid &grid) {
    Doubles values;
    for (const auto &point : grid.points())
        values.push_back(placeOf(point));
    return values;
}

template <class Values>
Values numbers(int count, double factor) {
    Values values;
    for (int k = 0; k < count; k++)
        values.push_back(static_cast<typename Values::value_type>(factor * k));
    return values;
}

double solution(CgnsFile &file, double zone, const std::string &name, const std::string &location) {
    const double id = file.add(zone, name, "FlowSolution_t");
    if (!location.empty())
        file.add(id, "GridLocation", "GridLocation_t", location);
    return id;
}

/// Two boxes that share a side, with solutions of all types at vertices and cells.
void writeZones(const WrittenFile &file, FileType type) {
    file.write(type, 3.4F, [](CgnsFile &f) {
        const Grid left{2, 2, 3};
        const Grid right{3, 2, 3, 2.0};
        const double base = f.base("Base", 3, 3);
        for (const Grid *grid : {&left, &right}) {
            const std::string name = grid == &left ? "Left" : "Right";
            const double zone = f.zone(base, name, grid->nodes(), grid->cells());
            f.coordinates(zone, grid->points());
            f.section(zone, "Cubes", 17, 1, grid->cells(), grid->hexahedra());
            const double vertices = solution(f, zone, "Start", "");
            f.add(vertices, "place", "DataArray_t", placesOf(*grid));
            f.add(vertices, "flag", "DataArray_t", numbers<Ints>(grid->nodes(), -1));
            f.add(vertices, "single", "DataArray_t", numbers<Floats>(grid->nodes(), 0.5));
            const double cells = solution(f, zone, "End", "CellCenter");
            f.add(cells, "Density", "DataArray_t", numbers<Doubles>(grid->cells(), grid == &left ? 0.1 : 0.2));
            f.add(cells, "big", "DataArray_t", numbers<Longs>(grid->cells(), 1e10));
            f.add(solution(f, zone, "Later", "CellCenter"), "Density", "DataArray_t",
                  numbers<Doubles>(grid->cells(), 3.0));
        }
    });
}

/// All of one name, of all ranks, on each.
std::vector<real> whole(CommunicatorView comm, const std::vector<MeshField> &fields, const std::string &solutionName,
                        const std::string &name) {
    for (const MeshField &field : fields)
        if (field.solution == solutionName && field.name == name)
            return test::gatherAll(comm, field.values);
    ADD_FAILURE() << "no field " << name << " in " << solutionName;
    return {};
}

TEST(Solutions, OfAllTypesComeInTheOrderOfTheFile) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const FileType type : bothTypes) {
        const WrittenFile file;
        writeZones(file, type);
        for (const bool join : {false, true}) {
            MeshFields fields;
            CgnsOptions options;
            options.fields = &fields;
            options.joinCoincidentNodes = join;
            const SourceMesh part = readCgns(comm, file.path(), options);
            EXPECT_EQ(part.warnings, std::vector<std::string>{});
            ASSERT_EQ(fields.nodes.size(), 3U);
            ASSERT_EQ(fields.cells.size(), 3U);
            for (const MeshField &field : fields.nodes)
                EXPECT_EQ(static_cast<index>(field.values.size()), part.nodes());
            for (const MeshField &field : fields.cells)
                EXPECT_EQ(static_cast<index>(field.values.size()), part.cells.size());

            const SourceMesh mesh = test::gatherMesh(comm, part);
            const int shared = 3 * 4;
            EXPECT_EQ(mesh.globalNodes, 3 * 3 * 4 + 4 * 3 * 4 - (join ? shared : 0));
            const auto places = whole(comm, fields.nodes, "Start", "place");
            ASSERT_EQ(static_cast<index>(places.size()), mesh.globalNodes);
            for (std::size_t n = 0; n < places.size(); n++)
                EXPECT_EQ(places[n], placeOf(mesh.coordinates[n]));
            EXPECT_EQ(whole(comm, fields.nodes, "Start", "flag")[7], -7);
            EXPECT_EQ(whole(comm, fields.nodes, "Start", "single")[7], 3.5);
            const auto density = whole(comm, fields.cells, "End", "Density");
            const auto big = whole(comm, fields.cells, "End", "big");
            for (int c = 0; c < 12 + 18; c++) {
                EXPECT_EQ(density[static_cast<std::size_t>(c)], c < 12 ? 0.1 * c : 0.2 * (c - 12));
                EXPECT_EQ(big[static_cast<std::size_t>(c)], 1e10 * (c < 12 ? c : c - 12));
            }
            const auto slices = slicesOf(fields.cells);
            EXPECT_EQ(slices[0].name, "End.Density");
            EXPECT_EQ(slices[1].name, "big");
            EXPECT_EQ(slices[2].name, "Later.Density");
        }
    }
}

TEST(Solutions, AreNotReadWhereNobodyAsks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{1, 1, 1};
    const WrittenFile file;
    file.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), 1);
        f.coordinates(zone, grid.points());
        f.section(zone, "Cube", 17, 1, 1, grid.hexahedra());
        f.add(zone, "Solution", "FlowSolution_t");
        f.add(solution(f, zone, "Broken", "Vertex"), "text", "DataArray_t", std::string("no number"));
    });
    EXPECT_EQ(readCgns(comm, file.path()).warnings, std::vector<std::string>{});
}

TEST(Solutions, ThatAreNotOfTheWholeMeshAreLeftOutAndNamed) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{2, 1, 1};
    const WrittenFile file;
    file.write(FileType::Adf, 3.4F, [&](CgnsFile &f) {
        const double base = f.base("Base", 3, 3);
        for (const char *name : {"A", "B"}) {
            const double zone = f.zone(base, name, grid.nodes(), 2);
            f.coordinates(zone, grid.points());
            f.section(zone, "Cubes", 17, 1, 2, grid.hexahedra());
            const bool first = name == std::string("A");
            f.add(solution(f, zone, "Good", "CellCenter"), "kept", "DataArray_t", Doubles{1, 2});
            if (!first)
                continue;
            f.add(solution(f, zone, "Faces", "FaceCenter"), "a", "DataArray_t", Doubles{1, 2});
            const double part = solution(f, zone, "Part", "CellCenter");
            f.add(part, "PointList", "IndexArray_t", Ints{1}, {1, 1});
            f.add(part, "a", "DataArray_t", Doubles{1});
            f.add(solution(f, zone, "Short", "CellCenter"), "a", "DataArray_t", Doubles{1, 2, 3});
            f.add(solution(f, zone, "Text", "CellCenter"), "a", "DataArray_t", std::string("ab"));
            f.add(solution(f, zone, "Lonely", "CellCenter"), "a", "DataArray_t", Doubles{1, 2});
            const double rind = solution(f, zone, "Rind", "CellCenter");
            f.add(rind, "Rind", "Rind_t", Ints{1, 2});
            f.add(rind, "lonely too", "DataArray_t", Doubles{9, 1, 2, 9, 9});
        }
    });
    MeshFields fields;
    CgnsOptions options;
    options.fields = &fields;
    const SourceMesh mesh = readCgns(comm, file.path(), options);
    ASSERT_EQ(fields.cells.size(), 1U);
    EXPECT_EQ(test::gatherAll(comm, fields.cells[0].values), (std::vector<real>{1, 2, 1, 2}));
    EXPECT_EQ(fields.nodes.size(), 0U);
    const std::vector<std::string> expected{
        "zone 'A', solution 'Faces': it is at 'FaceCenter', neither Vertex nor CellCenter, so it is left out",
        "zone 'A', solution 'Part': it covers a part of the zone, so it is left out",
        "zone 'A', solution 'Short', array 'a': it has 3 values for 2 cells, so it is left out",
        "zone 'A', solution 'Text', array 'a': its values are not numbers, so it is left out",
        "zone 'B', solution 'Lonely', array 'a': other zones have it, but this one does not, so it is left out",
        "zone 'B', solution 'Rind', array 'lonely too': other zones have it, but this one does not, so it is left out"};
    ASSERT_EQ(mesh.warnings.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); k++)
        EXPECT_EQ(mesh.warnings[k], file.path() + ": " + expected[k]);
}

TEST(Solutions, GoToTheRanksThatOwnTheCellsAndBackIntoFiles) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const WrittenFile file;
    const WrittenFile copy;
    writeZones(file, FileType::Hdf5);
    MeshFields fields;
    CgnsOptions options;
    options.fields = &fields;
    options.joinCoincidentNodes = true;
    const UnstructuredMesh mesh = buildMesh(comm, readCgns(comm, file.path(), options));
    const auto places = takeFromFileOrder(mesh, mesh.nodes, fields.nodes[0].values);
    ASSERT_EQ(static_cast<index>(places.size()), mesh.nodes.owned);
    for (index n = 0; n < mesh.nodes.owned; n++)
        EXPECT_EQ(places[static_cast<std::size_t>(n)],
                  placeOf({mesh.coordinates(n, 0), mesh.coordinates(n, 1), mesh.coordinates(n, 2)}));
    const auto density = takeFromFileOrder(mesh, mesh.cells, fields.cells[0].values);
    writeCgnsMesh(mesh, copy.path(), {.cells = {{"Density", 1, density}}, .nodes = {{"place", 1, places}}});

    MeshFields found;
    options.fields = &found;
    readCgns(comm, copy.path(), options);
    ASSERT_EQ(found.nodes.size(), 1U);
    ASSERT_EQ(found.cells.size(), 1U);
    EXPECT_EQ(test::gatherAll(comm, found.nodes[0].values), test::gatherAll(comm, fields.nodes[0].values));
    EXPECT_EQ(test::gatherAll(comm, found.cells[0].values), test::gatherAll(comm, fields.cells[0].values));
    std::vector<real> few = fields.cells[0].values;
    if (comm.rank() == comm.size() - 1)
        few.clear();
    EXPECT_THROW(takeFromFileOrder(mesh, mesh.cells, few), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
