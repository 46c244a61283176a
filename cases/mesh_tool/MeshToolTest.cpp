#include "MeshTool.hpp"

#include "MeshText.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Vtk/VtkHdfWriter.hpp"
#include "Geom/Foam/FoamCaseFiles.hpp"
#include "Json.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <utility>

namespace DNDS::Geom {
namespace {

using test::Json;
using test::keysOf;
using test::TemporaryFile;

/// Output of a run of the tool on this rank, and its exit code.
struct Outcome {
    int code;
    std::string out;
    std::string err;
};

Outcome run(CommunicatorView comm, const std::vector<std::string> &arguments) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = runMeshTool(comm, arguments, out, err, Progress::Style::None);
    EXPECT_EQ(comm.allReduce(code, MPI_MIN), comm.allReduce(code, MPI_MAX)) << "ranks end differently";
    if (comm.rank() != 0) {
        EXPECT_EQ(out.str(), "");
        EXPECT_EQ(err.str(), "");
    }
    return {code, out.str(), err.str()};
}

/// Runs the tool, and once more on one rank: it must say the same. On rank 0; others get their own empty output.
Outcome runAlike(const std::vector<std::string> &arguments) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Outcome together = run(comm, arguments);
    if (comm.rank() == 0) {
        const Outcome alone = run(CommunicatorView(MPI_COMM_SELF), arguments);
        EXPECT_EQ(together.code, alone.code);
        EXPECT_EQ(together.out, alone.out);
        EXPECT_EQ(together.err, alone.err);
    }
    comm.barrier();
    return together;
}

bool first() { return CommunicatorView(MPI_COMM_WORLD).rank() == 0; }

/// Expects exit code 2 and one line of complaint that holds all of `words`.
void expectRefusal(const std::vector<std::string> &arguments, const std::vector<std::string> &words) {
    const Outcome outcome = runAlike(arguments);
    EXPECT_EQ(outcome.code, unreadable);
    EXPECT_EQ(outcome.out, "");
    if (!first())
        return;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const std::string &word : words)
        EXPECT_NE(outcome.err.find(word), std::string::npos) << "no " << word << " in: " << outcome.err;
}

constexpr const char *square = R"(NDIME= 2
NELEM= 2
5 0 1 2 0
5 0 3 2 1
NPOIN= 4
0 0 0
1 0 1
1 1 2
0 1 3
NMARK= 2
MARKER_TAG= "low\er"
MARKER_ELEMS= 1
3 0 1
MARKER_TAG= others
MARKER_ELEMS= 3
3 1 2
3 2 3
3 3 0
)";

std::string replaced(std::string text, const std::string &what, const std::string &with) {
    return text.replace(text.find(what), what.size(), with);
}

TEST(MeshTool, PrintsJsonWhateverTheNamesAre) {
    const TemporaryFile file(".su2", replaced(square, "others", "caf\xe9")); // not UTF-8
    const Outcome outcome = runAlike({"info", "--json", file.path()});
    EXPECT_EQ(outcome.code, fine);
    if (first()) {
        EXPECT_EQ(keysOf(Json::parse(outcome.out).at("boundaries")).back(), "caf\xef\xbf\xbd");
    }
}

TEST(MeshTool, DescribesAMeshInOneObject) {
    const TemporaryFile file(".su2", square);
    const Outcome outcome = runAlike({"info", "--json", file.path()});
    EXPECT_EQ(outcome.code, fine);
    if (!first())
        return;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(keysOf(json).size(), 13U);
    EXPECT_EQ(json.at("cells").at("TRI_3").get<double>(), 2);
    EXPECT_EQ(json.at("measure").get<double>(), 0) << "the second triangle is clockwise";
    EXPECT_EQ(json.at("volume").get<double>(), 1);
    EXPECT_EQ(json.at("bbox").at(1).at(1).get<double>(), 1);
    EXPECT_EQ(keysOf(json.at("boundaries")), (std::vector<std::string>{"\"low\\er\"", "others"}));
    EXPECT_EQ(json.at("boundaries").at("others").get<double>(), 3);
    EXPECT_EQ(json.at("faces_inner").get<double>(), 1);
    EXPECT_EQ(json.at("faces_boundary").get<double>(), 4);
    EXPECT_EQ(json.at("faces_unassigned").get<double>(), 0);
    ASSERT_EQ(json.at("warnings").size(), 1U);
    EXPECT_NE(json.at("warnings").at(0).get<std::string>().find(file.path()), std::string::npos);
}

TEST(MeshTool, ReadsCasesOfOpenFoam) {
    BoxMeshOptions box;
    box.fill = BoxCells::MixedVolume;
    box.cells = {4, 3, 2};
    box.periodic = {false, true, false};
    const test::FoamCase foam(test::foamLists(makeBoxMesh(box, 0, 1)), {.binary = true});
    const Outcome outcome = runAlike({"check", "--json", foam.path()});
    EXPECT_EQ(outcome.code, fine) << outcome.err;
    if (first()) {
        const Json json = Json::parse(outcome.out);
        EXPECT_EQ(keysOf(json.at("cells")), (std::vector<std::string>{"TETRA_4", "PYRA_5", "PENTA_6", "HEXA_8"}));
        EXPECT_NEAR(json.at("volume").get<double>(), 1, 1e-12);
        EXPECT_GT(json.at("periodic_pairs").get<double>(), 0);
        EXPECT_EQ(keysOf(json.at("boundaries")), (std::vector<std::string>{"x-", "x+", "z-", "z+"}));
    }
    expectRefusal({"info", foam.path(), "--base", "fluid"}, {foam.path(), "has no region 'fluid'"});
}

TEST(MeshTool, CheckEndsWithOneWhereSomethingIsDoubtful) {
    const TemporaryFile turned(".su2", square);
    EXPECT_EQ(runAlike({"check", turned.path()}).code, warned);
    EXPECT_EQ(runAlike({"info", turned.path()}).code, fine);
    const std::string sound = replaced(square, "5 0 3 2 1", "5 0 2 3 1");
    const TemporaryFile good(".su2", sound);
    const Outcome outcome = runAlike({"check", good.path()});
    EXPECT_EQ(outcome.code, fine);
    if (first()) {
        EXPECT_NE(outcome.out.find("nothing to complain about"), std::string::npos);
    }
    const TemporaryFile open(".su2", replaced(sound, "MARKER_ELEMS= 3\n3 1 2\n", "MARKER_ELEMS= 2\n"));
    const Outcome unassigned = runAlike({"check", "--json", open.path()});
    EXPECT_EQ(unassigned.code, warned);
    if (first()) {
        EXPECT_EQ(Json::parse(unassigned.out).at("faces_unassigned").get<double>(), 1);
    }
}

TEST(MeshTool, RefusesWhatIsNoMesh) {
    const TemporaryFile empty(".cgns", "");
    const TemporaryFile garbage(".cgns", std::string(5000, '\xA7'));
    const TemporaryFile magic(".cgns", "\x89HDF\r\n\x1a\n and no more");
    const TemporaryFile adf(".cgns", std::string("\xc0\xa8\xa3\xa9"
                                                 "ADF Database Version A02011>"));
    const TemporaryFile node(".su2", replaced(square, "5 0 3 2 1", "5 0 3 7 1"));
    const TemporaryFile three(".su2", replaced(square, "NELEM= 2\n", "NELEM= 3\n5 0 2 1 2\n"));
    for (const char *command : {"info", "check"}) {
        expectRefusal({command, "/nonexistent/mesh.cgns"}, {"/nonexistent/mesh.cgns", "No such file"});
        expectRefusal({command, "/tmp"}, {"/tmp"});
        expectRefusal({command, empty.path()}, {empty.path()});
        expectRefusal({command, garbage.path()}, {garbage.path(), "not a mesh file"});
        expectRefusal({command, magic.path()}, {magic.path()});
        expectRefusal({command, adf.path()}, {adf.path()});
        expectRefusal({command, node.path()}, {node.path(), "7"});
        // The order of meetings decides which elements are named.
        const Outcome outcome = run(CommunicatorView(MPI_COMM_WORLD), {command, three.path()});
        EXPECT_EQ(outcome.code, unreadable);
        EXPECT_EQ(outcome.out, "");
        if (first()) {
            EXPECT_NE(outcome.err.find("share a face"), std::string::npos) << outcome.err;
        }
    }
    expectRefusal({"partition", "-n", "2", garbage.path()}, {garbage.path()});
    expectRefusal({"convert", garbage.path(), "/tmp/out.cgns"}, {garbage.path()});
}

/// The first `count` bytes of a file.
std::string head(const std::string &path, std::size_t count) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes(count, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(count));
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    return bytes;
}

TEST(MeshTool, RefusesFilesThatAreCutShort) {
    for (std::size_t twelfths = 1; twelfths < 12; twelfths += 2) {
        const TemporaryFile cut(".su2", std::string(square).substr(0, std::string_view(square).size() * twelfths / 12));
        expectRefusal({"info", cut.path()}, {cut.path()});
    }
    const TemporaryFile whole(".cgns");
    const Outcome made = run(CommunicatorView(MPI_COMM_WORLD), {"generate", whole.path(), "--cells", "3", "3", "3"});
    if (made.code != fine)
        GTEST_SKIP() << "no CGNS files are written: " << made.err;
    const auto size = std::filesystem::file_size(whole.path());
    for (std::size_t eighths = 1; eighths < 8; eighths++) {
        const TemporaryFile cut(".cgns", head(whole.path(), size * eighths / 8));
        expectRefusal({"info", cut.path()}, {cut.path()});
    }
}

TEST(MeshTool, RefusesCommandsThatMakeNoSense) {
    expectRefusal({}, {"subcommand"});
    expectRefusal({"info"}, {"FILE"});
    expectRefusal({"partition", "mesh.cgns"}, {"--parts"});
    expectRefusal({"partition", "mesh.cgns", "-n", "0"}, {"--parts"});
    expectRefusal({"convert", "mesh.cgns", "mesh.txt"}, {"mesh.txt", ".vtkhdf"});
    expectRefusal({"generate", "box.cgns", "--fill", "cheese"}, {"cheese", "tetrahedra"});
    expectRefusal({"generate", "box.cgns", "--cells", "0", "1", "1"}, {"0"});
    expectRefusal({"generate", "box.cgns", "--floor-ramp", "0.3", "10"}, {"ramp", "0.3", "8 bricks"});
    expectRefusal({"generate", "box.cgns", "--floor-ramp", "0.3"}, {"--floor-ramp"});
    expectRefusal({"generate", "/nonexistent/box.cgns"}, {"/nonexistent/box.cgns"});
    const Outcome help = runAlike({"info", "--help"});
    EXPECT_EQ(help.code, fine);
    if (first()) {
        EXPECT_NE(help.out.find("FILE"), std::string::npos);
    }
}

class GeneratedMeshes : public ::testing::TestWithParam<std::pair<const char *, index>> {};

TEST_P(GeneratedMeshes, AreTheSameAfterConversion) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto [fill, cells] = GetParam();
    const TemporaryFile made(".cgns");
    const TemporaryFile converted(".cgns");
    const Outcome generated = run(comm, {"generate", made.path(), "--fill", fill, "--cells", "5", "4", "3", "--lengths",
                                         "1", "2", "3", "--jitter", "0.1", "--shuffle"});
    if (generated.code != fine)
        GTEST_SKIP() << "no CGNS files are written: " << generated.err;
    EXPECT_EQ(run(comm, {"convert", made.path(), converted.path()}).code, fine);
    const Outcome before = runAlike({"check", "--json", made.path()});
    const Outcome after = runAlike({"check", "--json", converted.path()});
    EXPECT_EQ(before.code, fine) << before.out;
    EXPECT_EQ(before.out, after.out);
    if (!first())
        return;
    const Json json = Json::parse(before.out);
    const bool flat = json.at("boundaries").size() == 4;
    EXPECT_EQ(json.at("cells_total").get<double>(), cells);
    EXPECT_NEAR(json.at("volume").get<double>(), flat ? 2 : 6, 1e-12);
    EXPECT_EQ(json.at("bbox").at(1).at(1).get<double>(), 2);
}

INSTANTIATE_TEST_SUITE_P(Fills, GeneratedMeshes,
                         ::testing::Values(std::pair{"triangles", 40}, std::pair{"tetrahedra", 360},
                                           std::pair{"prisms", 120}, std::pair{"hexahedra", 60}));

TEST(MeshTool, GeneratesRamps) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile made(".cgns");
    const Outcome generated =
        run(comm, {"generate", made.path(), "--fill", "quadrilaterals", "--cells", "6", "4", "--lengths", "1.5", "1",
                   "--floor-ramp", "0.5", "30", "--ceiling-ramp", "1", "45"});
    if (generated.code != fine)
        GTEST_SKIP() << "no CGNS files are written: " << generated.err;
    const Outcome checked = runAlike({"check", "--json", made.path()});
    EXPECT_EQ(checked.code, fine) << checked.out;
    if (first()) {
        const Json json = Json::parse(checked.out);
        EXPECT_NEAR(json.at("volume").get<double>(), 1.5 - 0.5 / std::sqrt(3.0) + 0.125, 1e-12);
        EXPECT_NEAR(json.at("bbox").at(1).at(1).get<double>(), 1.5, 1e-12);
    }
}

TEST(MeshTool, ConvertsForParaView) {
    if (!VtkHdfWriter::built())
        GTEST_SKIP() << "no VTKHDF files are written";
    const TemporaryFile mesh(".su2", square);
    const TemporaryFile converted(".vtkhdf");
    const Outcome outcome = run(CommunicatorView(MPI_COMM_WORLD), {"convert", mesh.path(), converted.path()});
    EXPECT_EQ(outcome.code, fine);
    EXPECT_EQ(head(converted.path(), 4), "\x89HDF");
    if (first()) {
        EXPECT_NE(outcome.out.find("boundary patches are left out"), std::string::npos) << outcome.out;
    }
}

TEST(MeshTool, KeepsPeriodicConnectionsInCgnsAndSaysThatVtkhdfHasNone) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile made(".cgns");
    const TemporaryFile copied(".cgns");
    const TemporaryFile shown(".vtkhdf");
    const Outcome generated =
        run(comm, {"generate", made.path(), "--fill", "hexahedra", "--cells", "3", "3", "3", "--periodic", "x"});
    if (generated.code != fine || !VtkHdfWriter::built())
        GTEST_SKIP() << "no CGNS or VTKHDF files are written: " << generated.err;
    EXPECT_EQ(generated.out, "");
    EXPECT_EQ(run(comm, {"convert", made.path(), copied.path()}).out, "");
    const Outcome info = run(comm, {"info", copied.path(), "--json"});
    const Outcome converted = run(comm, {"convert", copied.path(), shown.path()});
    if (!first())
        return;
    EXPECT_EQ(Json::parse(info.out).at("periodic_pairs").get<double>(), 9);
    EXPECT_NE(converted.out.find("periodic connection 'x' is left out"), std::string::npos) << converted.out;
}

/// Checks that a CGNS file has these fields at cells and at nodes, and what is in them. Collective.
void expectFields(CommunicatorView comm, const std::string &path) {
    MeshFields fields;
    CgnsOptions options;
    options.fields = &fields;
    const SourceMesh mesh = readCgns(comm, path, options);
    ASSERT_EQ(fields.cells.size(), 1U);
    ASSERT_EQ(fields.nodes.size(), 1U);
    EXPECT_EQ(fields.cells[0].name, "Density");
    EXPECT_EQ(fields.nodes[0].name, "height");
    for (std::size_t c = 0; c < fields.cells[0].values.size(); c++)
        EXPECT_EQ(fields.cells[0].values[c], static_cast<real>(mesh.cells.first) + static_cast<real>(c));
    for (std::size_t n = 0; n < fields.nodes[0].values.size(); n++)
        EXPECT_EQ(fields.nodes[0].values[n], mesh.coordinates[n][1]);
}

TEST(MeshTool, ConvertsFields) {
    if (!canWriteCgns() || !VtkHdfWriter::built())
        GTEST_SKIP() << "no CGNS or VTKHDF files are written";
    const CommunicatorView comm(MPI_COMM_WORLD);
    const SourceMesh mesh = makeBoxMesh({.fill = BoxCells::MixedVolume, .cells = {5, 4, 2}}, comm);
    std::vector<real> density;
    for (index c = 0; c < mesh.cells.size(); c++)
        density.push_back(static_cast<real>(mesh.cells.first + c));
    std::vector<real> height;
    for (const auto &point : mesh.coordinates)
        height.push_back(point[1]);
    const FieldSlice cellFields[] = {{"Density", 1, density}};
    const FieldSlice nodeFields[] = {{"height", 1, height}};
    const TemporaryFile made(".cgns");
    const TemporaryFile copied(".cgns");
    const TemporaryFile shown(".vtkhdf");
    writeCgns(comm, made.path(), mesh, nodeFields, cellFields);
    expectFields(comm, made.path());
    EXPECT_EQ(run(comm, {"convert", made.path(), copied.path()}).code, fine);
    expectFields(comm, copied.path());
    EXPECT_EQ(run(comm, {"convert", made.path(), shown.path()}).code, fine);
    const std::string bytes = head(shown.path(), 1 << 20);
    EXPECT_NE(bytes.find("Density"), std::string::npos);
    EXPECT_NE(bytes.find("height"), std::string::npos);
    EXPECT_EQ(run(comm, {"convert", shown.path(), copied.path()}).code, fine);
    expectFields(comm, copied.path());
}

TEST(MeshTool, RefinesMeshesWithTheirFields) {
    if (!canWriteCgns())
        GTEST_SKIP() << "no CGNS files are written";
    const CommunicatorView comm(MPI_COMM_WORLD);
    const SourceMesh mesh =
        makeBoxMesh({.fill = BoxCells::MixedVolume, .cells = {4, 2, 2}, .periodic = {false, true}}, comm);
    const std::vector<real> density(toSize(mesh.cells.size()), 3.5);
    std::vector<real> height;
    for (const auto &point : mesh.coordinates)
        height.push_back(point[1]);
    const FieldSlice cellFields[] = {{"Density", 1, density}};
    const FieldSlice nodeFields[] = {{"height", 1, height}};
    const TemporaryFile made(".cgns");
    const TemporaryFile fineFile(".cgns");
    writeCgns(comm, made.path(), mesh, nodeFields, cellFields);
    const Outcome refined = run(comm, {"refine", made.path(), fineFile.path()});
    EXPECT_EQ(refined.code, fine) << refined.err;
    const Outcome before = runAlike({"check", "--json", made.path()});
    const Outcome after = runAlike({"check", "--json", fineFile.path()});
    EXPECT_EQ(after.code, fine) << after.out;
    MeshFields fields;
    CgnsOptions options;
    options.fields = &fields;
    const SourceMesh result = readCgns(comm, fineFile.path(), options);
    for (const real value : fields.cells.at(0).values)
        EXPECT_EQ(value, 3.5);
    for (std::size_t n = 0; n < result.coordinates.size(); n++)
        EXPECT_NEAR(fields.nodes.at(0).values[n], result.coordinates[n][1], 1e-15);
    expectRefusal({"refine", made.path(), fineFile.path(), "-n", "0"}, {"--levels"});
    if (!first())
        return;
    const Json coarse = Json::parse(before.out);
    const Json json = Json::parse(after.out);
    for (const char *name : {"PENTA_6", "HEXA_8"})
        EXPECT_EQ(json.at("cells").at(name).get<index>(), 8 * coarse.at("cells").at(name).get<index>());
    EXPECT_EQ(json.at("cells").at("PYRA_5").get<index>(), 6 * coarse.at("cells").at("PYRA_5").get<index>());
    EXPECT_EQ(json.at("periodic_pairs").get<index>(), 4 * coarse.at("periodic_pairs").get<index>());
    EXPECT_NEAR(json.at("volume").get<double>(), 1.0, 1e-13);
    for (const auto &name : keysOf(coarse.at("boundaries")))
        EXPECT_EQ(json.at("boundaries").at(name).get<index>(), 4 * coarse.at("boundaries").at(name).get<index>());
}

std::string textOfFile(const std::filesystem::path &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(MeshTool, SaysWhatAPartitionCosts) {
    const TemporaryFile mesh(".su2", square);
    const TemporaryFile folder(".parts");
    const Outcome outcome =
        runAlike({"partition", mesh.path(), "-n", "2", "--curve", "--json", "--by-faces", "--output", folder.path()});
    EXPECT_EQ(outcome.code, fine) << outcome.err;
    const Outcome table = runAlike({"partition", mesh.path(), "-n", "2", "--curve"});
    if (!first())
        return;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json.at("cut").get<double>(), 1);
    EXPECT_EQ(json.at("faces_inner").get<double>(), 1);
    EXPECT_EQ(json.at("imbalance").get<double>(), 0);
    ASSERT_EQ(json.at("parts").size(), 2U);
    for (const Json &part : json.at("parts"))
        for (const char *key : {"cells", "ghosts", "peers", "faces", "weight"})
            EXPECT_EQ(part.at(key).get<double>(), 1) << key;
    EXPECT_NE(table.out.find("cut 1 of 1"), std::string::npos);
    EXPECT_EQ(textOfFile(std::filesystem::path(folder.path()) / "parts.csv"),
              "part,cells,ghosts,peers,faces,weight\n0,1,1,1,1,1\n1,1,1,1,1,1\n");
    EXPECT_EQ(textOfFile(std::filesystem::path(folder.path()) / "links.csv"), "part,other,ghosts\n0,1,1\n1,0,1\n");
    std::filesystem::remove_all(folder.path());
}

TEST(MeshTool, PartitionsTheGraphIntoBalancedParts) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile mesh(".cgns");
    const Outcome generated = run(comm, {"generate", mesh.path(), "--cells", "8", "8", "8", "--shuffle"});
    if (generated.code != fine)
        GTEST_SKIP() << "no CGNS files are written: " << generated.err;
    const Outcome outcome = run(comm, {"partition", mesh.path(), "-n", "4", "--json"});
    EXPECT_EQ(outcome.code, fine) << outcome.err;
    if (!first())
        return;
    const Json json = Json::parse(outcome.out);
    double cells = 0;
    for (const Json &part : json.at("parts"))
        cells += part.at("cells").get<double>();
    EXPECT_EQ(cells, 3072);
    EXPECT_LT(json.at("imbalance").get<double>(), 0.1);
    EXPECT_GE(json.at("cut").get<double>(), 2 * 2 * 64) << "less than two planes through the box";
    EXPECT_LT(json.at("cut").get<double>(), 600);
}

TEST(MeshTool, WeighsCellsByTheirType) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile mesh(".cgns");
    const Outcome generated = run(comm, {"generate", mesh.path(), "--fill", "mixed-volume", "--cells", "8", "8", "8"});
    if (generated.code != fine)
        GTEST_SKIP() << "no CGNS files are written: " << generated.err;
    for (const bool curve : {false, true}) {
        std::vector<std::string> arguments{"partition", mesh.path(),           "-n", "3", "--json",
                                           "--weights", "HEXA_8=50,PENTA_6=20"};
        if (curve)
            arguments.emplace_back("--curve");
        const Outcome outcome = run(comm, arguments);
        EXPECT_EQ(outcome.code, fine) << outcome.err;
        const Outcome info = run(comm, {"info", mesh.path(), "--json"});
        if (!first())
            continue;
        const Json json = Json::parse(outcome.out);
        double weight = 0;
        double heaviest = 0;
        for (const Json &part : json.at("parts")) {
            weight += part.at("weight").get<double>();
            heaviest = std::max(heaviest, part.at("weight").get<double>());
        }
        const Json counts = Json::parse(info.out).at("cells");
        EXPECT_EQ(weight, 50 * counts.at("HEXA_8").get<double>() + 20 * counts.at("PENTA_6").get<double>() +
                              counts.at("TETRA_4").get<double>() + counts.at("PYRA_5").get<double>());
        EXPECT_NEAR(json.at("imbalance").get<double>(), 3 * heaviest / weight - 1, 1e-12);
        EXPECT_LT(json.at("imbalance").get<double>(), 0.1) << curve;
    }
    for (const char *wrong : {"HEXA_8", "HEXA_8=", "HEXA_8=0", "HEXA_8=3x", "=3", "HEXA=3", "HEXA_8=99999999999"}) {
        const Outcome outcome = runAlike({"partition", mesh.path(), "-n", "2", "--weights", wrong});
        EXPECT_EQ(outcome.code, unreadable) << wrong;
        if (first()) {
            EXPECT_NE(outcome.err.find("--weights"), std::string::npos) << outcome.err;
        }
    }
}

/// Some unit cubes that touch but share no nodes, the first of them left-handed.
SourceMesh looseCubes(int count) {
    SourceMesh mesh;
    mesh.origin = "cubes";
    mesh.cellDimension = mesh.physicalDimension = 3;
    static constexpr int turned[] = {4, 5, 6, 7, 0, 1, 2, 3};
    for (int c = 0; c < count; c++) {
        mesh.cells.types.push_back(ElementType::Hexa8);
        for (int k = 0; k < 8; k++)
            mesh.cells.nodes.push_back(mesh.nodes() + (c == 0 ? turned[k] : k));
        for (const real z : {0.0, 1.0})
            for (const auto &[x, y] : {std::pair{0.0, 0.0}, {1.0, 0.0}, {1.0, 1.0}, {0.0, 1.0}})
                mesh.coordinates.push_back({c + x, y, z});
        mesh.cells.starts.push_back(mesh.nodes());
        mesh.cells.fileIds.push_back(c + 1);
    }
    mesh.cells.globalSize = mesh.cells.size();
    mesh.globalNodes = mesh.nodes();
    return mesh;
}

void writeOnFirst(const std::string &path, const SourceMesh &mesh) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    comm.guarded([&] {
        if (comm.rank() == 0)
            writeCgns(CommunicatorView(MPI_COMM_SELF), path, mesh);
    });
}

TEST(MeshTool, CoincidentFacesAreCountedAndHintedAt) {
    const TemporaryFile file(".cgns");
    writeOnFirst(file.path(), looseCubes(3));
    const Outcome outcome = runAlike({"check", file.path()});
    EXPECT_EQ(outcome.code, warned);
    if (first()) {
        EXPECT_NE(outcome.out.find("18 boundary faces are in no patch"), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("4 of them coincide with others"), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("--join"), std::string::npos) << outcome.out;
    }
}

TEST(MeshTool, ConvertWritesCellsTurned) {
    const TemporaryFile file(".cgns");
    const TemporaryFile converted(".cgns");
    writeOnFirst(file.path(), looseCubes(2));
    const Outcome before = runAlike({"info", "--json", file.path()});
    const Outcome told = run(CommunicatorView(MPI_COMM_WORLD), {"convert", file.path(), converted.path()});
    EXPECT_EQ(told.code, fine);
    const Outcome after = runAlike({"info", "--json", converted.path()});
    if (!first())
        return;
    EXPECT_NE(told.out.find("warning: " + file.path() + ": 1 elements were left-handed"), std::string::npos)
        << told.out;
    EXPECT_EQ(Json::parse(before.out).at("measure").get<real>(), 0.0);
    EXPECT_EQ(Json::parse(after.out).at("measure").get<real>(), 2.0);
}

TEST(MeshTool, MessagesOfOneKindAreOneWithACount) {
    std::vector<std::string> warnings{"a: zone 'x1', section 'one': 20 bars", "b: another 7"};
    for (int k = 0; k < 99; k++)
        warnings.push_back(fmt::format("a: zone 'z{}', section 'of 2': {} bars", k, 3 * k));
    EXPECT_EQ(messagesOf(warnings, {"n 1", "n 2", "other"}),
              "warning: a: zone 'x1', section 'one': 20 bars (and 99 more such)\nwarning: b: another 7\n"
              "note: n 1 (and 1 more such)\nnote: other\n");
    MeshReport report;
    report.warnings = warnings;
    report.notes = {"n 1"};
    EXPECT_EQ(Json::parse(jsonOf(report)).at("warnings").size(), 2U);
    EXPECT_EQ(Json::parse(jsonOf(report)).at("notes").size(), 1U);
}

TEST(MeshTool, NotesAreNoReasonToFail) {
    SourceMesh mesh = looseCubes(1);
    for (const auto &corners :
         {std::array{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}}) {
        mesh.faces.types.push_back(ElementType::Quad4);
        mesh.faces.nodes.insert(mesh.faces.nodes.end(), corners.begin(), corners.end());
        mesh.faces.starts.push_back(static_cast<index>(mesh.faces.nodes.size()));
        mesh.faces.fileIds.push_back(2 + mesh.faces.size());
        mesh.faceMarks.push_back(0);
    }
    std::iota(mesh.cells.nodes.begin(), mesh.cells.nodes.end(), index{0});
    mesh.faces.globalSize = 6;
    mesh.patches.push_back({"wall", "", ""});
    MeshReport report;
    const CommunicatorView self(MPI_COMM_SELF);
    mesh.notes.push_back("its bars are left out");
    buildMesh(self, std::move(mesh), {.report = &report});
    EXPECT_TRUE(report.warnings.empty());
    EXPECT_EQ(report.notes, std::vector<std::string>{"its bars are left out"});
    EXPECT_NE(textOf(report).find("note: its bars are left out"), std::string::npos);
}

} // namespace
} // namespace DNDS::Geom
