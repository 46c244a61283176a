// Files that contradict themselves or are damaged: an error that says where, the same on all ranks, and nothing worse.

#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "Geom/Cgns/WrittenFile.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <random>

namespace DNDS::Geom {
namespace {

using namespace test;

/// The error of reading a file, if any. Checks that all ranks got the same.
std::optional<std::string> errorOf(const std::string &path) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    std::optional<std::string> message;
    try {
        readCgns(comm, path);
    } catch (const Error &error) {
        message = std::string(errorKindName(error.kind())) + ": " + error.message();
    }
    const std::size_t hash = message ? std::hash<std::string>{}(*message) : 0;
    const auto hashes = comm.allGather(static_cast<std::uint64_t>(hash));
    EXPECT_EQ(hashes, std::vector<std::uint64_t>(hashes.size(), hashes.front()));
    return message;
}

/// The same on one rank alone.
std::string errorAlone(const std::string &path) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    std::vector<std::string> message{""};
    if (comm.rank() == 0)
        try {
            readCgns(CommunicatorView(MPI_COMM_SELF), path);
        } catch (const Error &error) {
            message[0] = std::string(errorKindName(error.kind())) + ": " + error.message();
        }
    broadcastStrings(comm, message);
    return message[0];
}

/// Expects an error of the kind given that says all of `words`.
void expectError(const WrittenFile &file, const std::vector<std::string> &words, const char *kind = "DataError") {
    const auto message = errorOf(file.path());
    ASSERT_TRUE(message.has_value()) << "no error";
    EXPECT_EQ(message->find(kind), 0U) << *message;
    EXPECT_NE(message->find(file.path()), std::string::npos) << *message;
    for (const std::string &word : words)
        EXPECT_NE(message->find(word), std::string::npos) << *message << "\n  lacks: " << word;
}

/// A good file of four tetrahedra and a triangle, parts of which can be replaced.
struct Parts {
    int nodes = 6;
    std::vector<std::array<double, 3>> points{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {2, 1, 1}};
    test::Data cells = Ints{1, 2, 3, 4, 2, 3, 4, 5, 2, 5, 3, 6, 2, 4, 5, 6};
    int type = 10;
    std::int64_t first = 1;
    std::int64_t last = 4;
    test::Data offsets{};
    float version = 3.2F;
    std::function<void(CgnsFile &, double)> more = [](CgnsFile &, double) {};
    FileType fileType = FileType::Hdf5;
};

void write(const WrittenFile &file, const Parts &parts) {
    file.write(parts.fileType, parts.version, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Block", parts.nodes, 4);
        f.coordinates(zone, parts.points);
        f.section(zone, "Tets", parts.type, parts.first, parts.last, parts.cells, parts.offsets);
        parts.more(f, zone);
    });
}

class CgnsBroken : public ::testing::TestWithParam<FileType> {
  protected:
    void expect(Parts parts, const std::vector<std::string> &words) {
        parts.fileType = GetParam();
        write(file_, parts);
        expectError(file_, words);
    }
    WrittenFile file_;
};

INSTANTIATE_TEST_SUITE_P(BothTypes, CgnsBroken, ::testing::Values(FileType::Adf, FileType::Hdf5),
                         [](const auto &tested) { return tested.param == FileType::Adf ? "Adf" : "Hdf5"; });

TEST_P(CgnsBroken, TheGoodFileIsGood) {
    Parts parts;
    parts.fileType = GetParam();
    write(file_, parts);
    EXPECT_FALSE(errorOf(file_.path()).has_value());
}

TEST_P(CgnsBroken, NodesOutOfRange) {
    Parts parts;
    parts.cells = Ints{1, 2, 3, 4, 2, 3, 4, 5, 2, 5, 3, 7, 2, 4, 5, 6};
    expect(parts, {"zone 'Block'", "section 'Tets'", "element 3:", "node 7"});
    parts.cells = Ints{1, 2, 3, 4, 2, 3, 4, 5, 2, 5, 3, 6, 2, 4, 0, 6};
    expect(parts, {"zone 'Block'", "section 'Tets'", "element 4:", "node 0"});
    parts.cells = Longs{1, 2, 3, 4, 2, -3, 4, 5, 2, 5, 3, 6, 2, 4, std::numeric_limits<std::int64_t>::min(), 6};
    expect(parts, {"zone 'Block'", "section 'Tets'", "element "});
}

TEST_P(CgnsBroken, SectionsThatDoNotFitTheirConnectivity) {
    Parts parts;
    parts.last = 5;
    expect(parts, {"section 'Tets'", "5 elements", "16 node numbers"});
    parts.last = std::int64_t{1} << 59;
    expect(parts, {"section 'Tets'"});
    parts.last = std::numeric_limits<std::int64_t>::max();
    expect(parts, {"section 'Tets'", "not a range"});
    parts.first = 0;
    parts.last = 3;
    expect(parts, {"section 'Tets'", "not a range"});
    parts = {};
    parts.type = 77;
    expect(parts, {"section 'Tets'", "element type 77"});
    for (const auto &[type, text] :
         {std::pair(24, "24 (BAR_4) is of order 3"), std::pair(26, "26 (TRI_10) is of order 3"),
          std::pair(39, "39 (HEXA_64) is of order 3"), std::pair(56, "56 (HEXA_125) is of order 4")}) {
        parts.type = type;
        expect(parts, {"section 'Tets'", std::string("element type ") + text, "elements of second order"});
    }
    parts.type = -3;
    expect(parts, {"section 'Tets'", "element type -3"});
    parts = {};
    parts.cells = test::Doubles(16, 1.0);
    expect(parts, {"section 'Tets'", "integers"});
    parts = {};
    parts.more = [](CgnsFile &f, double zone) { f.section(zone, "Again", 5, 4, 4, Ints{1, 2, 3}); };
    expect(parts, {"section 'Again'", "section 'Tets'"});
}

TEST_P(CgnsBroken, StreamsThatCannotBeFollowed) {
    Parts parts;
    parts.type = 20;
    parts.cells = Ints{10, 1, 2, 3, 4, 10, 2, 3, 4, 5, 99, 2, 5, 3, 6, 10, 2, 4, 5, 6};
    expect(parts, {"section 'Tets'", "element 3 ", "element type 99"});
    parts.cells = Ints{10, 1, 2, 3, 4, 10, 2, 3, 4, 5, 30, 2, 5, 3, 6, 10, 2, 4, 5, 6};
    expect(parts, {"section 'Tets'", "element 3 of a MIXED", "element type 30 (TETRA_20) is of order 3"});
    parts.cells = Ints{10, 1, 2, 3, 4, 10, 2, 3, 4, 5, 10, 2, 5, 3, 6, 17, 2, 4, 5, 6};
    expect(parts, {"section 'Tets'", "element 4:", "longer"});
    parts.cells = Ints{10, 1, 2, 3, 4, 10, 2, 3, 4, 5, 10, 2, 5, 3, 6};
    expect(parts, {"section 'Tets'", "4 elements", "holds 3"});
    parts.cells = Ints{10, 1, 2, 3, 4, 10, 2, 3, 4, 5, 10, 2, 5, 3, 6, 10, 2, 4, 5, 6, 10, 2, 4, 5, 6};
    expect(parts, {"section 'Tets'", "element 5:"});
    parts.cells = Ints{10, 1, 2, 3, 4, 20, 2, 3, 4, 5, 10, 2, 5, 3, 6, 10, 2, 4, 5, 6};
    expect(parts, {"section 'Tets'", "element 2 ", "element type 20"});
    parts = {};
    parts.more = [](CgnsFile &f, double zone) { f.section(zone, "Faces", 22, 5, 6, Ints{3, 1, 2, 3, -1, 1, 2, 3}); };
    expect(parts, {"section 'Faces'", "element 6:"});
    parts.more = [](CgnsFile &f, double zone) { f.section(zone, "Faces", 22, 5, 6, Ints{3, 1, 2, 3, 2, 1, 2}); };
    expect(parts, {"section 'Faces'", "element 6:", "2 corners"});
}

TEST_P(CgnsBroken, OffsetsThatDoNotFit) {
    const Ints good{10, 1, 2, 3, 4, 10, 2, 3, 4, 5, 10, 2, 5, 3, 6, 10, 2, 4, 5, 6};
    for (const Ints &offsets :
         {Ints{0, 5, 4, 15, 20}, Ints{0, 5, 10, 15, 21}, Ints{1, 5, 10, 15, 20}, Ints{0, 5, 10, 15, 19},
          Ints{0, 5, 1000000, 15, 20}, Ints{0, -5, 10, 15, 20}, Ints{0, 5, 11, 15, 20}, Ints{0, 0, 10, 15, 20}}) {
        Parts parts;
        parts.version = 4.0F;
        parts.type = 20;
        parts.cells = good;
        parts.offsets = offsets;
        expect(parts, {"section 'Tets'", "element"});
    }
    Parts parts;
    parts.version = 4.0F;
    parts.type = 20;
    parts.cells = good;
    parts.offsets = Ints{0, 5, 10, 15};
    expect(parts, {"section 'Tets'", "4 start offsets"});
}

TEST_P(CgnsBroken, ZonesWithoutGoodCoordinates) {
    Parts parts;
    parts.points.pop_back();
    expect(parts, {"zone 'Block'", "6 nodes", "CoordinateX has 5"});
    parts = {};
    parts.nodes = 1'000'000'000;
    expect(parts, {"zone 'Block'", "1000000000 nodes"});
    parts.nodes = -5;
    expect(parts, {"zone 'Block'", "size"});
    parts = {};
    parts.points[4][1] = std::numeric_limits<double>::quiet_NaN();
    expect(parts, {"zone 'Block'", "node 5:", "CoordinateY"});
}

TEST_P(CgnsBroken, PolyhedraWithFacesThatAreNotThere) {
    Parts parts;
    const auto withCells = [](const Ints &cells) {
        return [cells](CgnsFile &f, double zone) {
            f.section(zone, "Faces", 22, 5, 8, Ints{3, 1, 3, 2, 3, 1, 2, 4, 3, 2, 3, 4, 3, 1, 4, 3});
            f.section(zone, "Poly", 23, 9, 9, cells);
        };
    };
    parts.more = withCells({4, 5, 6, 7, 8});
    parts.fileType = GetParam();
    write(file_, parts);
    EXPECT_FALSE(errorOf(file_.path()).has_value());
    parts.more = withCells({4, 5, 6, 7, 9});
    expect(parts, {"section 'Poly'", "element 9:", "no face 9"});
    parts.more = withCells({4, 5, 0, 7, 8});
    expect(parts, {"section 'Poly'", "element 9:", "no face 0"});
    parts.more = withCells({3, 5, 6, 7});
    expect(parts, {"section 'Poly'", "element 9:", "3 faces"});
}

TEST_P(CgnsBroken, ParentsThatAreNoCells) {
    for (const int wrong : {-2, 1}) {
        file_.write(GetParam(), 4.0F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Base", 3, 3), "Block", 4, wrong == 1 ? 3 : 1);
            f.coordinates(zone, {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
            const double faces =
                f.section(zone, "Faces", 22, 1, 4, Ints{1, 3, 2, 1, 2, 4, 2, 3, 4, 1, 4, 3}, Ints{0, 3, 6, 9, 12});
            f.add(faces, "ParentElements", "DataArray_t", Ints{1, 1, 1, 1, 0, 0, 0, wrong == 1 ? 0 : wrong}, {4, 2});
        });
        expectError(file_, {"zone 'Block'", wrong == 1 ? "no face has cell 2" : "parent -2"});
    }
}

TEST_P(CgnsBroken, PointSetsAndConnectionsThatNameWhatIsNotThere) {
    Parts parts;
    for (const Longs &range :
         {Longs{1, std::int64_t{1} << 50}, Longs{5, 2}, Longs{0, 3}}) { // conditions only lose faces: see WildCgns
        parts.more = [&](CgnsFile &f, double zone) { f.condition(zone, "wall", "BCWall", "PointRange", range); };
        parts.fileType = GetParam();
        write(file_, parts);
        EXPECT_FALSE(errorOf(file_.path()).has_value());
    }
    parts.more = [](CgnsFile &f, double zone) { f.connection(zone, "join", "Elsewhere", Ints{1}, Ints{2}); };
    expect(parts, {"zone 'Block'", "connection 'join'", "'Elsewhere'"});
    parts.more = [](CgnsFile &f, double zone) { f.connection(zone, "join", "Block", Ints{1, 2}, Ints{3}); };
    expect(parts, {"zone 'Block'", "connection 'join'", "2 points", "1 on the other"});
    parts.more = [](CgnsFile &f, double zone) { f.connection(zone, "join", "Block", Ints{1}, Ints{9}, "FaceCenter"); };
    expect(parts, {"zone 'Block'", "connection 'join'", "element 9"});
}

TEST_P(CgnsBroken, FilesWithoutAMesh) {
    file_.write(GetParam(), 3.1F, [](CgnsFile &) {});
    expectError(file_, {"no base"});
    file_.write(GetParam(), 3.1F, [](CgnsFile &f) { f.base("Base", 3, 3); });
    expectError(file_, {"no base with cells"});
    file_.write(GetParam(), 3.1F, [](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Block", 1, 1);
        f.coordinates(zone, {{0, 0, 0}});
    });
    expectError(file_, {"no cells"});
}

TEST_P(CgnsBroken, LinksThatLeadRoundInACircleOrNowhere) {
    Parts parts;
    parts.more = [](CgnsFile &f, double zone) { f.link(zone, "Loop", "", "/Base"); };
    expect(parts, {"cycle"});
    const WrittenFile gone;
    parts.more = [&](CgnsFile &f, double zone) { f.link(zone, "Gone", gone.path(), "/Base"); };
    expect(parts, {"Gone"});
    parts.more = [](CgnsFile &f, double zone) { f.link(zone, "Gone", "", "/Base/Nobody"); };
    expect(parts, {});
}

TEST(CgnsBrokenFiles, NoCgnsFile) {
    const WrittenFile file;
    expectError(file, {"No such file"});
    expectError(file.write(""), {"neither an HDF5 nor an ADF file"});
    expectError(file.write("a text"), {"neither an HDF5 nor an ADF file"});
    expectError(file.write("\211HDF\r\n\032\n and no more"), {"HDF5 cannot open it"});
    expectError(file.write(std::string("\300\250\243\251") + "ADF Database Version and no more"), {});
    const auto message = errorOf("/tmp");
    EXPECT_TRUE(message.has_value());
}

/// Every file that a byte or two turn a good one into either is read or is an error; there is no third way.
void damage(FileType type, const std::function<void(std::string &, std::mt19937_64 &)> &change, int times) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const WrittenFile good;
    Parts parts;
    parts.fileType = type;
    parts.type = 20;
    parts.cells = Ints{10, 1, 2, 3, 4, 10, 2, 3, 4, 5, 10, 2, 5, 3, 6, 10, 2, 4, 5, 6};
    parts.more = [](CgnsFile &f, double zone) {
        f.section(zone, "Faces", 5, 5, 6, Ints{1, 3, 2, 1, 2, 4});
        f.condition(zone, "wall", "BCWall", "PointList", Ints{5, 6}, "FaceCenter");
        f.periodic(f.connection(zone, "join", "Block", Ints{1}, Ints{2}), {0, 0, 0}, {0, 0, 0}, {1, 0, 0});
    };
    write(good, parts);
    ASSERT_FALSE(errorOf(good.path()).has_value());
    const std::string bytes = comm.rank() == 0 ? good.bytes() : std::string();
    const WrittenFile bad;
    std::mt19937_64 random(DNDS::test::seed());
    int errors = 0;
    for (int k = 0; k < times; k++) {
        std::string changed = bytes;
        if (comm.rank() == 0)
            change(changed, random);
        bad.write(changed);
        const std::optional<std::string> error = errorOf(bad.path());
        errors += error ? 1 : 0;
        EXPECT_EQ(withoutRank(error.value_or("")), withoutRank(errorAlone(bad.path()))) << "on one rank: file " << k;
    }
    EXPECT_GT(errors, 0);
}

void truncate(std::string &bytes, std::mt19937_64 &random) { bytes.resize(random() % bytes.size()); }

/// Changes bytes in places that are not all zero, where the structure of the file is.
void flip(std::string &bytes, std::mt19937_64 &random) {
    for (std::uint64_t n = 1 + random() % 3; n > 0;) {
        const std::size_t at = random() % bytes.size();
        if (bytes[at] == '\0' && random() % 8 != 0)
            continue;
        bytes[at] =
            static_cast<char>(random() % 2 == 0 ? random() % 256 : static_cast<std::uint64_t>("09AF"[random() % 4]));
        n--;
    }
}

TEST_P(CgnsBroken, AnyByteMayBeWrong) { damage(GetParam(), flip, 120); }

TEST_P(CgnsBroken, AnyPartOfTheEndMayBeMissing) { damage(GetParam(), truncate, 30); }

} // namespace
} // namespace DNDS::Geom
