#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <cgnslib.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

using test::TemporaryFile;

/// A file read by this rank through the CGNS library's own functions.
class Cgns {
  public:
    explicit Cgns(const std::string &path) {
        require(cg_open(path.c_str(), CG_MODE_READ, &file_));
        std::array<char, 33> name{};
        require(cg_base_read(file_, 1, name.data(), &cellDimension, &physicalDimension));
        require(cg_zone_read(file_, 1, 1, name.data(), sizes.data()));
    }
    Cgns(const Cgns &) = delete;
    Cgns &operator=(const Cgns &) = delete;
    ~Cgns() { cg_close(file_); }

    std::vector<real> coordinate(const char *name) const {
        std::vector<real> values(static_cast<std::size_t>(sizes[0]));
        const cgsize_t first = 1;
        require(cg_coord_read(file_, 1, 1, name, CGNS_ENUMV(RealDouble), &first, sizes.data(), values.data()));
        return values;
    }

    /// The families of the base, and the ones to which conditions refer.
    std::pair<std::set<std::string>, std::set<std::string>> families() const {
        std::set<std::string> there, referred;
        std::array<char, 33> name{};
        int count = 0;
        require(cg_nfamilies(file_, 1, &count));
        for (int family = 1; family <= count; ++family) {
            int conditions = 0, geometries = 0;
            require(cg_family_read(file_, 1, family, name.data(), &conditions, &geometries));
            there.insert(name.data());
        }
        require(cg_nbocos(file_, 1, 1, &count));
        for (int condition = 1; condition <= count; ++condition) {
            require(cg_goto(file_, 1, "Zone_t", 1, "ZoneBC_t", 1, "BC_t", condition, "end"));
            if (cg_famname_read(name.data()) == CG_OK)
                referred.insert(name.data());
        }
        return {there, referred};
    }

    struct Section {
        std::string name;
        ElementType type = ElementType::Mixed;
        cgsize_t first = 0;
        cgsize_t last = 0;
        std::vector<cgsize_t> connectivity;
        std::vector<cgsize_t> offsets;
    };
    Section section(int number) const {
        Section section;
        std::array<char, 33> name{};
        CGNS_ENUMT(ElementType_t) type{};
        int boundary = 0;
        int parents = 0;
        cgsize_t size = 0;
        require(cg_section_read(file_, 1, 1, number, name.data(), &type, &section.first, &section.last, &boundary,
                                &parents));
        require(cg_ElementDataSize(file_, 1, 1, number, &size));
        section.name = name.data();
        section.type = static_cast<ElementType>(type);
        section.connectivity.resize(static_cast<std::size_t>(size));
        if (elementInfo(section.type).nodes > 0) {
            require(cg_elements_read(file_, 1, 1, number, section.connectivity.data(), nullptr));
            return section;
        }
        section.offsets.resize(static_cast<std::size_t>(section.last - section.first + 2));
        require(
            cg_poly_elements_read(file_, 1, 1, number, section.connectivity.data(), section.offsets.data(), nullptr));
        return section;
    }

    struct Condition {
        std::string kind;
        std::string location;
        std::vector<cgsize_t> points;
    };
    std::map<std::string, Condition> conditions() const {
        int count = 0;
        require(cg_nbocos(file_, 1, 1, &count));
        std::map<std::string, Condition> result;
        for (int number = 1; number <= count; number++) {
            std::array<char, 33> name{};
            CGNS_ENUMT(BCType_t) kind{};
            CGNS_ENUMT(PointSetType_t) set{};
            CGNS_ENUMT(DataType_t) type{};
            CGNS_ENUMT(GridLocation_t) location{};
            cgsize_t points = 0;
            cgsize_t normals = 0;
            int normal = 0;
            int sets = 0;
            require(
                cg_boco_info(file_, 1, 1, number, name.data(), &kind, &set, &points, &normal, &normals, &type, &sets));
            require(cg_boco_gridlocation_read(file_, 1, 1, number, &location));
            Condition condition{cg_BCTypeName(kind), cg_GridLocationName(location), {}};
            EXPECT_EQ(set, CGNS_ENUMV(PointList));
            condition.points.resize(static_cast<std::size_t>(points));
            require(cg_boco_read(file_, 1, 1, number, condition.points.data(), nullptr));
            result[name.data()] = condition;
        }
        return result;
    }

    struct Periodic {
        std::array<std::vector<cgsize_t>, 2> points;
        std::array<float, 3> translation{};
    };
    /// By name; all connect the zone with itself, face by face.
    std::map<std::string, Periodic> periodic() const {
        int count = 0;
        require(cg_nconns(file_, 1, 1, &count));
        std::map<std::string, Periodic> result;
        for (int number = 1; number <= count; number++) {
            std::array<char, 33> name{};
            std::array<char, 33> donor{};
            CGNS_ENUMT(GridLocation_t) location{};
            CGNS_ENUMT(GridConnectivityType_t) type{};
            CGNS_ENUMT(PointSetType_t) set{};
            CGNS_ENUMT(PointSetType_t) donorSet{};
            CGNS_ENUMT(ZoneType_t) donorZone{};
            CGNS_ENUMT(DataType_t) donorType{};
            cgsize_t points = 0;
            cgsize_t donorPoints = 0;
            require(cg_conn_info(file_, 1, 1, number, name.data(), &location, &type, &set, &points, donor.data(),
                                 &donorZone, &donorSet, &donorType, &donorPoints));
            EXPECT_STREQ(donor.data(), "Zone");
            EXPECT_EQ(location, CGNS_ENUMV(FaceCenter));
            EXPECT_EQ(type, CGNS_ENUMV(Abutting1to1));
            EXPECT_EQ(points, donorPoints);
            Periodic periodic;
            for (auto &side : periodic.points)
                side.resize(static_cast<std::size_t>(points));
            require(cg_conn_read(file_, 1, 1, number, periodic.points[0].data(), donorType, periodic.points[1].data()));
            std::array<float, 3> centre{};
            std::array<float, 3> angles{};
            require(
                cg_conn_periodic_read(file_, 1, 1, number, centre.data(), angles.data(), periodic.translation.data()));
            result[name.data()] = periodic;
        }
        return result;
    }

    std::vector<real> field(int solution, const char *name, index rows) const {
        std::vector<real> values(static_cast<std::size_t>(rows));
        const cgsize_t first = 1;
        const auto last = static_cast<cgsize_t>(rows);
        require(cg_field_read(file_, 1, 1, solution, name, CGNS_ENUMV(RealDouble), &first, &last, values.data()));
        return values;
    }
    std::string locationOf(int solution) const {
        std::array<char, 33> name{};
        CGNS_ENUMT(GridLocation_t) location{};
        require(cg_sol_info(file_, 1, 1, solution, name.data(), &location));
        return cg_GridLocationName(location);
    }

    int cellDimension = 0;
    int physicalDimension = 0;
    std::array<cgsize_t, 9> sizes{};

  private:
    static void require(int status) { ASSERT_EQ(status, CG_OK) << cg_get_error(); }

    int file_ = 0;
};

BoxMeshOptions optionsOf(BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {4, 3, 2};
    options.jitter = 0.1;
    options.shuffled = true;
    options.seed = DNDS::test::seed();
    return options;
}

std::vector<real> valuesOf(index first, index rows, int components) {
    std::vector<real> values;
    for (index row = first; row < first + rows; row++)
        for (int c = 0; c < components; c++)
            values.push_back(std::sin(static_cast<real>(row * components + c)));
    return values;
}

void expectNodes(const Cgns::Section &section, const ElementBlock &block) {
    ASSERT_EQ(section.last - section.first + 1, block.size());
    std::size_t at = 0;
    for (index e = 0; e < block.size(); e++) {
        if (section.type == ElementType::Mixed) {
            EXPECT_EQ(section.offsets[static_cast<std::size_t>(e)], static_cast<cgsize_t>(at));
            EXPECT_EQ(section.connectivity[at++], static_cast<cgsize_t>(block.types[static_cast<std::size_t>(e)]));
        }
        for (const index node : block.nodesOf(e))
            EXPECT_EQ(section.connectivity[at++], node + 1);
    }
    EXPECT_EQ(at, section.connectivity.size());
}

TEST(CgnsWriter, WritesMeshConditionsAndFieldsInBothFileTypes) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const CgnsFileType fileType : {CgnsFileType::Hdf5, CgnsFileType::Adf})
        for (const BoxCells fill : {BoxCells::MixedVolume, BoxCells::Hexahedra, BoxCells::MixedSurface}) {
            SourceMesh mesh = makeBoxMesh(optionsOf(fill), comm);
            SCOPED_TRACE(mesh.origin);
            mesh.patches[0].kind = "BCWall";
            mesh.patches[0].family = "walls";
            mesh.patches[1].family = "a family whose name is longer than 32 characters";
            mesh.patches[2].family = "Zone";
            mesh.patches[1].name = "a name that is longer than the standard/allows";
            const auto velocity = valuesOf(mesh.cells.first, mesh.cells.size(), 3);
            const auto pressure = valuesOf(mesh.firstNode, mesh.nodes(), 1);
            const TemporaryFile file(".cgns");
            const FieldSlice pointFields[] = {{"Pressure", 1, pressure}};
            const FieldSlice cellFields[] = {{"Velocity", 3, velocity}};
            std::vector<std::string> warnings;
            setWarningSink([&](std::string_view text) { warnings.emplace_back(text); });
            writeCgns(comm, file.path(), mesh, pointFields, cellFields, {fileType, "Base", "Zone"});
            setWarningSink({});
            ASSERT_EQ(warnings.size(), comm.rank() == 0 ? 1U : 0U);
            if (comm.rank() == 0) {
                EXPECT_NE(
                    warnings[0].find("the patch 'a name that is longer than the standard/allows' is written as 'a name "
                                     "that is longer than the s'"),
                    std::string::npos)
                    << warnings[0];
            }
            EXPECT_FALSE(std::filesystem::exists(file.path() + ".part"));

            const SourceMesh whole = test::gatherMesh(comm, mesh);
            const Cgns cgns(file.path());
            const auto [families, referred] = cgns.families();
            EXPECT_EQ(families, referred);
            EXPECT_EQ(families.size(), 3U);
            EXPECT_EQ(cgns.cellDimension, mesh.cellDimension);
            EXPECT_EQ(cgns.physicalDimension, mesh.cellDimension);
            ASSERT_EQ(cgns.sizes[0], whole.nodes());
            EXPECT_EQ(cgns.sizes[1], whole.cells.size());
            const char *names[] = {"CoordinateX", "CoordinateY", "CoordinateZ"};
            for (std::size_t d = 0; d < static_cast<std::size_t>(mesh.cellDimension); d++) {
                const auto x = cgns.coordinate(names[d]);
                for (std::size_t i = 0; i < x.size(); i++)
                    EXPECT_EQ(x[i], whole.coordinates[i][d]);
            }
            expectNodes(cgns.section(1), whole.cells);
            expectNodes(cgns.section(2), whole.faces);
            EXPECT_EQ(cgns.section(1).type == ElementType::Mixed, fill != BoxCells::Hexahedra);

            const auto conditions = cgns.conditions();
            EXPECT_EQ(conditions.size(), mesh.patches.size());
            EXPECT_EQ(conditions.at("x-").kind, "BCWall");
            EXPECT_EQ(conditions.at("x-").location, mesh.cellDimension == 2 ? "EdgeCenter" : "FaceCenter");
            EXPECT_EQ(conditions.at("y-").kind, "UserDefined");
            std::vector<cgsize_t> expected;
            for (std::size_t f = 0; f < whole.faceMarks.size(); f++)
                if (whole.faceMarks[f] == 1)
                    expected.push_back(static_cast<cgsize_t>(whole.cells.size() + 1 + static_cast<index>(f)));
            EXPECT_EQ(conditions.at("a name that is longer than the s").points, expected);

            EXPECT_EQ(cgns.locationOf(1), "CellCenter");
            EXPECT_EQ(cgns.locationOf(2), "Vertex");
            const auto all = valuesOf(0, whole.cells.size(), 3);
            const auto y = cgns.field(1, "VelocityY", whole.cells.size());
            for (std::size_t c = 0; c < y.size(); c++)
                EXPECT_EQ(y[c], all[3 * c + 1]);
            EXPECT_EQ(cgns.field(2, "Pressure", whole.nodes()), valuesOf(0, whole.nodes(), 1));
        }
}

TEST(CgnsWriter, WritesPolyhedraAsFacesAndCells) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    BoxMeshOptions options = optionsOf(BoxCells::Polyhedra);
    options.periodic[2] = true;
    const SourceMesh mesh = makeBoxMesh(options, comm);
    const TemporaryFile file(".cgns");
    writeCgns(comm, file.path(), mesh);
    const SourceMesh whole = test::gatherMesh(comm, mesh);
    const Cgns cgns(file.path());
    const Cgns::Section faces = cgns.section(1);
    const Cgns::Section cells = cgns.section(2);
    ASSERT_EQ(faces.type, ElementType::Polygon);
    ASSERT_EQ(cells.type, ElementType::Polyhedron);
    ASSERT_EQ(cells.last - cells.first + 1, whole.cells.size());
    const auto faceOf = [&](cgsize_t id) {
        const auto f = static_cast<std::size_t>(std::abs(id) - 1);
        test::Face face;
        for (auto at = static_cast<std::size_t>(faces.offsets[f]); at < static_cast<std::size_t>(faces.offsets[f + 1]);
             at++)
            face.push_back(faces.connectivity[at] - 1);
        if (id < 0)
            std::reverse(face.begin(), face.end());
        return face;
    };
    std::map<cgsize_t, int> uses;
    cgsize_t highest = 0; // faces are numbered as cells first list them
    for (index c = 0; c < whole.cells.size(); c++) {
        const auto expected = test::facesOf(whole.cells, c);
        const auto begin = static_cast<std::size_t>(cells.offsets[static_cast<std::size_t>(c)]);
        ASSERT_EQ(static_cast<std::size_t>(cells.offsets[static_cast<std::size_t>(c) + 1]) - begin, expected.size());
        for (std::size_t k = 0; k < expected.size(); k++) {
            const cgsize_t id = cells.connectivity[begin + k];
            test::Face face = faceOf(id);
            std::rotate(face.begin(), std::find(face.begin(), face.end(), expected[k][0]), face.end());
            EXPECT_EQ(face, expected[k]);
            uses[std::abs(id)] += id > 0 ? 1 : 10;
            EXPECT_EQ(id > highest, id == highest + 1) << "faces are numbered in another order";
            highest = std::max(highest, id);
        }
    }
    EXPECT_EQ(highest, faces.last);
    index boundary = 0;
    for (const auto &[face, count] : uses) {
        EXPECT_TRUE(count == 1 || count == 11) << count;
        boundary += count == 1 ? 1 : 0;
    }
    EXPECT_EQ(boundary, whole.faces.size());
    const auto conditions = cgns.conditions();
    EXPECT_EQ(conditions.size(), 4u);
    const auto connections = cgns.periodic();
    ASSERT_EQ(connections.size(), 2u);
    const auto &there = connections.at("z");
    const auto &back = connections.at("z_back");
    EXPECT_EQ(there.translation, (std::array<float, 3>{0, 0, 1}));
    EXPECT_EQ(back.translation, (std::array<float, 3>{0, 0, -1}));
    EXPECT_EQ(back.points, (std::array{there.points[1], there.points[0]}));
    EXPECT_TRUE(std::is_sorted(there.points[0].begin(), there.points[0].end()));
    for (std::size_t k = 0; k < there.points[0].size(); k++) {
        const auto centre = [&](std::size_t side) {
            std::array<real, 3> sum{};
            for (const index node : faceOf(there.points[side][k]))
                for (std::size_t d = 0; d < 3; d++)
                    sum[d] += whole.coordinates[static_cast<std::size_t>(node)][d] / 4;
            return sum;
        };
        EXPECT_NEAR(centre(0)[0], centre(1)[0], 1e-12);
        EXPECT_NEAR(centre(0)[1], centre(1)[1], 1e-12);
    }
    const std::tuple<std::vector<cgsize_t>, int, const char *> sets[] = {{conditions.at("x-").points, 0, "x-"},
                                                                         {conditions.at("y+").points, 3, "y+"},
                                                                         {there.points[0], -1, "z"},
                                                                         {back.points[0], -2, "z_back"}};
    for (const auto &[points, mark, name] : sets) {
        std::vector<test::Face> found;
        for (const cgsize_t id : points)
            found.push_back(test::sorted(faceOf(id)));
        std::vector<test::Face> expected;
        for (index f = 0; f < whole.faces.size(); f++)
            if (whole.faceMarks[static_cast<std::size_t>(f)] == mark)
                expected.push_back(test::sorted(test::cornersOf(whole.faces, f)));
        if (mark < 0) // in the order of elements, and of their partners
            std::sort(found.begin(), found.end()), std::sort(expected.begin(), expected.end());
        EXPECT_EQ(found, expected) << name;
    }
}

TEST(CgnsWriter, FacesOfSeveralPatchesAreOneElementAndNodesMayMarkPatches) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    SourceMesh mesh = makeBoxMesh(optionsOf(BoxCells::Quadrilaterals), comm);
    const ElementBlock once = mesh.faces;
    mesh.faces = {};
    mesh.faceMarks.clear();
    mesh.patches = {{"all", "", ""}, {"again", "", ""}, {"corner", "BCWall", ""}};
    for (index f = 0; f < once.size(); f++)
        for (int mark = 0; mark < 2; mark++) {
            const auto nodes = once.nodesOf(f);
            mesh.faces.types.push_back(ElementType::Bar2);
            mesh.faces.nodes.insert(mesh.faces.nodes.end(), nodes.begin(), nodes.end());
            mesh.faces.starts.push_back(static_cast<index>(mesh.faces.nodes.size()));
            mesh.faces.fileIds.push_back(once.fileIds[static_cast<std::size_t>(f)]);
            mesh.faceMarks.push_back(mark);
        }
    mesh.faces.first = 2 * once.first;
    mesh.faces.globalSize = 2 * once.globalSize;
    if (comm.rank() == comm.size() - 1)
        mesh.nodeMarks = {{2, 0}, {2, 4}};
    const TemporaryFile file(".cgns");
    writeCgns(comm, file.path(), mesh);
    const Cgns cgns(file.path());
    const Cgns::Section faces = cgns.section(2);
    EXPECT_EQ(faces.last - faces.first + 1, once.globalSize);
    const auto conditions = cgns.conditions();
    EXPECT_EQ(conditions.at("all").points, conditions.at("again").points);
    EXPECT_EQ(conditions.at("all").points.size(), static_cast<std::size_t>(once.globalSize));
    EXPECT_EQ(conditions.at("corner").points, (std::vector<cgsize_t>{1, 5}));
    EXPECT_EQ(conditions.at("corner").location, "Vertex");
}

TEST(CgnsWriter, FailsOnAllRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const SourceMesh mesh = makeBoxMesh(optionsOf(BoxCells::Hexahedra), comm);
    EXPECT_THROW(writeCgns(comm, "/no/such/folder/file.cgns", mesh), DataError);
    const TemporaryFile file(".cgns");
    const bool last = comm.rank() == comm.size() - 1;
    const auto values = valuesOf(0, mesh.cells.size() + (last ? 1 : 0), 1);
    const FieldSlice fields[] = {{"Pressure", 1, values}};
    EXPECT_THROW(writeCgns(comm, file.path(), mesh, {}, fields), ArgumentError);
    EXPECT_FALSE(std::filesystem::exists(file.path()));
}

TEST(CgnsWriter, MarksMustNamePatchesOrConnections) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    BoxMeshOptions options = optionsOf(BoxCells::Hexahedra);
    options.periodic[0] = true;
    const SourceMesh fine = makeBoxMesh(options, comm);
    const auto patches = static_cast<int>(fine.patches.size());
    const TemporaryFile file(".cgns");
    const auto refused = [&](auto &&spoil, ErrorKind kind, const char *words) {
        SourceMesh mesh = fine;
        if (comm.rank() == comm.size() - 1)
            spoil(mesh);
        try {
            writeCgns(comm, file.path(), mesh);
            ADD_FAILURE() << "it was written: " << words;
        } catch (const Error &error) {
            EXPECT_EQ(error.kind(), kind) << error.what();
            EXPECT_NE(error.message().find(words), std::string::npos) << error.what();
        }
        EXPECT_FALSE(std::filesystem::exists(file.path()));
    };
    const auto addFace = [](SourceMesh &mesh, int mark) {
        for (int corner = 0; corner < 4; corner++)
            mesh.faces.nodes.push_back(corner);
        mesh.faces.types.push_back(ElementType::Quad4);
        mesh.faces.starts.push_back(static_cast<index>(mesh.faces.nodes.size()));
        mesh.faces.fileIds.push_back(0);
        mesh.faceMarks.push_back(mark);
    };
    // Two sides of one connection are -1 and -2.
    for (const int mark : {-3, -4, std::numeric_limits<int>::min(), patches, std::numeric_limits<int>::max()}) {
        refused([&](SourceMesh &mesh) { addFace(mesh, mark); }, ErrorKind::Data, "1 periodic connections");
        refused(
            [&](SourceMesh &mesh) {
                mesh.nodeMarks.push_back({mark, 0});
            },
            ErrorKind::Data, "1 periodic connections");
    }
    refused(
        [&](SourceMesh &mesh) {
            mesh.nodeMarks.push_back({-1, mesh.globalNodes});
        },
        ErrorKind::Index, "a boundary condition lists node");
    refused([](SourceMesh &mesh) { mesh.faceMarks.push_back(0); }, ErrorKind::Data, "marks for");
}

TEST(CgnsWriter, PolyhedraMustFitTheirBoundary) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    SourceMesh mesh = makeBoxMesh(optionsOf(BoxCells::Polyhedra), comm);
    if (comm.rank() == 0) {
        mesh.faces.nodes[0] = mesh.faces.nodes[1] == 0 ? 1 : 0;
        mesh.faces.nodes[1] = mesh.globalNodes - 1;
    }
    const TemporaryFile file(".cgns");
    EXPECT_THROW(writeCgns(comm, file.path(), mesh), DataError);
}

} // namespace
} // namespace DNDS::Geom
