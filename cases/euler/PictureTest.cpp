// Pictures while a run computes: pixels show the cells that they lie in, with the same bytes on any number of ranks.

#include "Picture.hpp"
#include "Png.hpp"
#include "TestSupport.hpp"

#include "DNDS/Base/Error.hpp"
#include "support/TemporaryFolder.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <cmath>
#include <sstream>

namespace Euler {
namespace {

using DNDS::test::TemporaryFolder;
using DNDS::test::world;

std::uint32_t bigEndianAt(const std::string &bytes, std::size_t at) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < 4; i++)
        number = number << 8U | static_cast<std::uint8_t>(bytes.at(at + i));
    return number;
}

/// A file of `pngOf`, read by the rules of the format.
struct Decoded {
    explicit Decoded(const std::string &file) {
        EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
        std::string packed;
        for (std::size_t at = 8; at < file.size();) {
            const std::uint32_t length = bigEndianAt(file, at);
            const std::string type = file.substr(at + 4, 4), content = file.substr(at + 8, length);
            const auto *body = reinterpret_cast<const Bytef *>(file.data() + at + 4);
            EXPECT_EQ(bigEndianAt(file, at + 8 + length), crc32(0, body, length + 4)) << type;
            if (type == "IHDR") {
                width = bigEndianAt(content, 0);
                height = bigEndianAt(content, 4);
            } else if (type == "tEXt") {
                description = content;
            } else if (type == "IDAT") {
                packed += content;
            }
            types += type + " ";
            at += 12 + length;
        }
        EXPECT_EQ(types, "IHDR PLTE tEXt IDAT IEND ");
        rows.resize(std::size_t{height} * (width + 1));
        uLongf size = rows.size();
        EXPECT_EQ(uncompress(reinterpret_cast<Bytef *>(rows.data()), &size,
                             reinterpret_cast<const Bytef *>(packed.data()), packed.size()),
                  Z_OK);
        EXPECT_EQ(size, rows.size());
    }
    int at(std::size_t column, std::size_t row) const {
        return static_cast<std::uint8_t>(rows.at(row * (width + 1) + 1 + column));
    }

    std::uint32_t width = 0, height = 0;
    std::string types, description, rows;
};

/// A run that shows the density, which the tests set, on the range of 254 steps of colour.
json pictureCase(const std::string &folder) {
    json content = baseCase();
    content["output"] = {{"folder", folder},
                         {"fields", false},
                         {"picture", {{"every", 1}, {"field", "density"}, {"width", 120}, {"range", {0, 254}}}}};
    return content;
}

/// The bytes of a picture of the density `flow`; on rank 0 of the run.
template <class Density>
std::string pictureOf(Simulation &run, const PictureChoice &choice, const Density &density) {
    const auto metrics = computeMetrics(run.mesh());
    run.solver().setState(
        [&](Vector point) { return Primitive{.density = density(point), .velocity = {}, .pressure = 1}; });
    const std::string folder = run.configuration().output.folder;
    Pictures pictures(run.mesh(), metrics, choice, folder);
    RunResult now;
    now.steps = 7;
    now.time = 0.5;
    pictures.write(run.solver(), gas, now);
    EXPECT_EQ(pictures.result().written, 1);
    EXPECT_GE(pictures.result().seconds, 0);
    return DNDS::test::contentOf(folder + "/picture-00000007.png");
}

template <class Density>
std::string pictureOf(const json &content, const Density &density, DNDS::CommunicatorView comm = MPI_COMM_WORLD) {
    Simulation run = runOf(content, comm);
    return pictureOf(run, *run.configuration().output.picture, density);
}

TEST(Picture, ShowsTheCellsInWhichPixelsLie) {
    const TemporaryFolder folder;
    json content = pictureCase(folder.path());
    content["mesh"]["box"] = {{"fill", "quadrilaterals"}, {"cells", {5, 4}}, {"lengths", {5, 4}}};
    content["output"]["picture"]["window"] = {-1, 5, 0, 4};
    setAllBoundaries(content, 2, "wall");
    const std::string file = pictureOf(content, [](Vector p) { return 10 + std::floor(p.x) + 10 * std::floor(p.y); });
    if (world().rank() != 0)
        return;
    const Decoded picture(file);
    EXPECT_EQ(picture.width, 120U);
    EXPECT_EQ(picture.height, 80U);
    EXPECT_EQ(picture.description,
              std::string("Description\0", 12) + "density 0 (dark) to 254 (light), step 7, time 0.5");
    index wrong = 0;
    for (std::size_t row = 0; row < 80; row++)
        for (std::size_t column = 0; column < 120; column++) { // 20 pixels a cell, the first 20 beside the mesh
            const int expected =
                column < 20 ? 0 : 1 + 10 + static_cast<int>(column / 20) - 1 + 10 * (3 - static_cast<int>(row / 20));
            wrong += picture.at(column, row) == expected ? 0 : 1;
        }
    EXPECT_EQ(wrong, 0);
}

/// Every pixel shows a cell whose centroid is near, in each direction of the plane; returns pixels without a cell.
index farPixels(const Decoded &picture, bool alongWidth, double size) {
    index far = 0;
    for (std::size_t row = 0; row < picture.height; row++)
        for (std::size_t column = 0; column < picture.width; column++) {
            const double place = alongWidth ? (static_cast<double>(column) + 0.5) / picture.width
                                            : 1 - (static_cast<double>(row) + 0.5) / picture.height;
            const int value = picture.at(column, row);
            far += value > 0 && std::abs((value - 1) / 254.0 - place) < size ? 0 : 1;
        }
    return far;
}

TEST(Picture, HasNoGapsInAnyKindOfCells) {
    const TemporaryFolder folder;
    for (const char *fill : {"triangles", "mixed-surface", "mixed-volume", "polyhedra"}) {
        json content = pictureCase(folder.path());
        const bool solid = Geom::boxCellsOf(fill) >= Geom::BoxCells::Tetrahedra;
        content["mesh"]["box"] = {{"fill", fill}, {"cells", {5, 5, 5}}, {"jitter", 0.1}};
        setAllBoundaries(content, solid ? 3 : 2, "wall");
        Simulation run = runOf(content);
        PictureChoice choice = *run.configuration().output.picture;
        choice.at = 0.41;
        for (choice.normal = solid ? 0 : 2; choice.normal < 3; choice.normal++)
            for (const bool alongWidth : {true, false}) {
                const std::string file = pictureOf(run, choice, [&](Vector p) {
                    return 254 * (alongWidth ? (choice.normal == 0 ? p.y : p.x) : (choice.normal == 2 ? p.y : p.z));
                });
                if (world().rank() == 0) {
                    EXPECT_EQ(farPixels(Decoded(file), alongWidth, 0.31), 0) << fill << choice.normal << alongWidth;
                }
            }
    }
}

TEST(Picture, HasTheSameBytesOnAnyNumberOfRanks) {
    const TemporaryFolder folder, alone;
    for (const char *fill : {"triangles", "tetrahedra"}) {
        json content = pictureCase(folder.path());
        content["mesh"]["box"] = {{"fill", fill}, {"cells", {6, 6, 6}}};
        setAllBoundaries(content, *fill == 't' && fill[1] == 'e' ? 3 : 2, "wall");
        content["output"]["picture"].erase("range");
        const auto density = [](Vector p) { return 1 + p.x * p.y + p.z; };
        const std::string file = pictureOf(content, density);
        if (world().rank() != 0)
            continue;
        content["output"]["folder"] = alone.path();
        EXPECT_EQ(file, pictureOf(content, density, MPI_COMM_SELF)) << fill;
        EXPECT_FALSE(file.empty());
    }
}

/// Counts warnings until it is destroyed.
struct WarningCount {
    WarningCount() {
        DNDS::setWarningSink([this](std::string_view text) {
            count += text.find("no more pictures, the run goes on: ") != std::string_view::npos ? 1 : 0;
        });
    }
    WarningCount(const WarningCount &) = delete;
    WarningCount &operator=(const WarningCount &) = delete;
    ~WarningCount() { DNDS::setWarningSink({}); }
    std::atomic<int> count{0};
};

TEST(Picture, ThatCannotBeWrittenDoesNotStopTheRun) {
    const TemporaryFolder folder;
    json content = pictureCase(folder.path());
    setAllBoundaries(content, 2, "far field");
    content["output"]["historyEvery"] = 1;
    if (world().rank() == 0)
        std::filesystem::create_directories(folder.file("picture-00000002.png.part")); // in the way of the second one
    world().barrier();
    const WarningCount warnings;
    std::ostringstream report;
    Simulation run = runOf(content);
    const RunResult result = run(&report);
    EXPECT_EQ(result.steps, 5);
    EXPECT_EQ(warnings.count, world().rank() == 0 ? 1 : 0);
    EXPECT_TRUE(std::filesystem::exists(folder.file("picture-00000001.png")));
    EXPECT_FALSE(std::filesystem::exists(folder.file("picture-00000003.png")));
    world().barrier();
    json without = content;
    without["output"] = {{"folder", ""}};
    Simulation plain = runOf(without);
    EXPECT_EQ(plain(nullptr).total, result.total);
    EXPECT_NE(report.str().find("1 pictures in "), std::string::npos) << report.str();
}

TEST(Picture, FollowsCellsThatMove) {
    const TemporaryFolder folder;
    json content = pictureCase(folder.path());
    content["mesh"]["box"]["cells"] = {24, 24, 1};
    content["output"]["picture"] = {{"every", 10}, {"width", 64}};
    content["time"]["steps"] = 20;
    setAllBoundaries(content, 2, "far field");
    content["boundaries"]["y-"] = "wall";
    const auto both = [&] {
        runOf(content)(nullptr);
        return folder.content("picture-00000010.png") + folder.content("picture-00000020.png");
    };
    const std::string resting = both();
    content["kinetics"] = {{"centre", {0.2, 0.2}}, {"velocity", {10, 10}}, {"radius", 0.2}, {"substeps", 2000}};
    content["balance"] = {{"threshold", 0}};
    world().barrier();
    const std::string moving = both();
    if (world().rank() == 0) {
        EXPECT_EQ(resting, moving);
        EXPECT_GT(resting.size(), 1000U);
    }
}

TEST(Picture, SaysWhatIsWrongWithItsSettings) {
    const auto complaint = [](const char *key, const json &value) {
        json content = pictureCase("output");
        content["output"]["picture"][key] = value;
        try {
            parseConfiguration(content.dump(), "test.json");
        } catch (const DNDS::ArgumentError &error) {
            return std::string(error.message());
        }
        return std::string("nothing");
    };
    EXPECT_EQ(complaint("every", 2), "nothing");
    EXPECT_NE(complaint("every", 0).find("output.picture.every must be given, and positive"), std::string::npos);
    EXPECT_NE(complaint("field", "heat").find("output.picture.field is 'heat'; there are: density, pressure, mach"),
              std::string::npos);
    EXPECT_NE(complaint("range", {2, 1}).find("output.picture.range must be 2 numbers"), std::string::npos);
    EXPECT_NE(complaint("window", {0, 1}).find("output.picture.window must be 4 numbers"), std::string::npos);
    EXPECT_NE(complaint("width", 5000).find("output.picture.width is 5000: give 16 to 4096"), std::string::npos);
    EXPECT_NE(complaint("colour", "red").find("output.picture.colour is unknown"), std::string::npos);
    json content = pictureCase("");
    EXPECT_THROW(parseConfiguration(content.dump(), "test.json"), DNDS::ArgumentError);
    const TemporaryFolder folder;
    content = pictureCase(folder.path());
    setAllBoundaries(content, 2, "wall");
    content["output"]["picture"]["window"] = {7, 8, 0, 1};
    EXPECT_THROW(runOf(content)(nullptr), DNDS::ArgumentError); // on all ranks
}

/// Planes through meshes of files show as much of their boxes as the meshes fill.
TEST(Picture, ShowsMeshesOfFiles) {
    struct Plane {
        const char *mesh;
        double share; ///< share of the window that the mesh fills
    };
    for (const Plane &plane :
         {Plane{"naca0012_inv.cgns", 1253.2505 / (40 * 39.9210586)}, Plane{"bend_mixed.cgns", 0.75},
          Plane{"wedge_hdf5.cgns", 1.41183650965 / 1.5}, Plane{"cylinder3d_tets.cgns", 0.9}}) {
        const std::string path = sharedMesh(plane.mesh);
        if (path.empty())
            GTEST_SKIP() << plane.mesh << " is not there";
        const TemporaryFolder folder;
        const DNDS::CommunicatorView comm = MPI_COMM_WORLD;
        auto mesh = buildMeshOf(comm, {.file = path, .cgns = {}, .box = {}});
        auto metrics = computeMetrics(mesh);
        std::vector<BoundaryCondition> walls(mesh.patches.size());
        Solver solver(mesh, metrics, gas, {}, walls);
        solver.setState([](Vector) { return Primitive{.density = 1, .velocity = {}, .pressure = 1}; });
        Pictures pictures(mesh, metrics, {.every = 1, .range = {}, .window = {}, .at = {}, .width = 400},
                          folder.path());
        pictures.write(solver, gas, {});
        if (comm.rank() != 0)
            continue;
        const Decoded picture(folder.content("picture-00000000.png"));
        index seen = 0;
        for (std::size_t row = 0; row < picture.height; row++)
            for (std::size_t column = 0; column < picture.width; column++)
                seen += picture.at(column, row) > 0 ? 1 : 0;
        const double share = static_cast<double>(seen) / picture.width / picture.height;
        EXPECT_NEAR(share, plane.share, 0.005) << plane.mesh;
    }
}

} // namespace
} // namespace Euler
