#include "DNDS/GridFile/ClassicHeader.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/Netcdf.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

namespace DNDS {
namespace {

using Detail::checkClassicFile;

/// The bytes of a classic file with dimensions t (unlimited), y 3, x 2, and variables "a" (y, x) of shorts and "b" (t,
/// x) of doubles with attributes.
class ClassicBytes {
  public:
    explicit ClassicBytes(int version, index records, std::string padding = "")
        : version_(version), padding_(std::move(padding)) {
        bytes_ = std::string("CDF") + static_cast<char>(version);
        wide(records);
        list(10, 3);
        for (const auto &[name, length] : {std::pair{"t", 0}, std::pair{"y", 3}, std::pair{"x", 2}}) {
            text(name + padding_);
            wide(length);
        }
        list(12, 1);
        text("title" + padding_);
        number(2, 4);
        text("hello");
        list(11, 2);
        variable("a", {1, 2}, 3, 12);
        placeOfA_ = bytes_.size() - placeBytes();
        variable("b", {0, 2}, 6, 16);
        const std::size_t placeOfB = bytes_.size() - placeBytes();
        patch(placeOfA_, bytes_.size());
        bytes_.append(12, 'a');
        patch(placeOfB, bytes_.size());
        bytes_.append(static_cast<std::size_t>(16 * records), 'b');
    }
    const std::string &bytes() const { return bytes_; }

  private:
    std::size_t placeBytes() const { return version_ == 1 ? 4 : 8; }
    void number(std::uint64_t value, std::size_t width) {
        for (std::size_t i = width; i-- > 0;)
            bytes_ += static_cast<char>(value >> (8 * i));
    }
    void wide(index value) { number(static_cast<std::uint64_t>(value), version_ == 5 ? 8 : 4); }
    void list(std::uint64_t tag, index size) {
        number(tag, 4);
        wide(size);
    }
    void text(const std::string &characters) {
        wide(static_cast<index>(characters.size()));
        bytes_ += characters;
        bytes_.append((4 - characters.size() % 4) % 4, '\0');
    }
    void variable(const char *name, const std::vector<int> &dims, int type, int size) {
        text(name + padding_);
        wide(static_cast<index>(dims.size()));
        for (const int d : dims)
            wide(d);
        list(0, 0);
        number(static_cast<std::uint64_t>(type), 4);
        wide(size);
        number(0, placeBytes());
    }
    void patch(std::size_t at, std::size_t value) {
        for (std::size_t i = 0; i < placeBytes(); i++)
            bytes_[at + i] = static_cast<char>(value >> (8 * (placeBytes() - 1 - i)));
    }

    int version_;
    std::string padding_; ///< padding of names, counted as part of them
    std::size_t placeOfA_ = 0;
    std::string bytes_;
};

std::string complaintAbout(const std::string &bytes) {
    try {
        checkClassicFile("file.nc", static_cast<index>(bytes.size()), [&](index place, std::span<std::byte> to) {
            ASSERT_LE(place + static_cast<index>(to.size()), static_cast<index>(bytes.size()));
            std::memcpy(to.data(), bytes.data() + place, to.size());
        });
    } catch (const DataError &error) {
        EXPECT_EQ(error.message().rfind("file.nc ", 0), 0u) << error.message();
        return error.message();
    }
    return "";
}

TEST(ClassicHeader, WholeFilesPassAndEveryShorterOneIsRefused) {
    for (const int version : {1, 2, 5})
        for (const index records : {0, 1, 3}) {
            const std::string bytes = ClassicBytes(version, records).bytes();
            EXPECT_EQ(complaintAbout(bytes), "") << version << " " << records;
            for (std::size_t length = 4; length < bytes.size(); length++)
                ASSERT_NE(complaintAbout(bytes.substr(0, length)), "")
                    << version << ": " << length << " of " << bytes.size();
        }
}

TEST(ClassicHeader, SaysWhichVariableEndsBehindTheFile) {
    std::string bytes = ClassicBytes(2, 3).bytes();
    bytes.resize(bytes.size() - 1);
    const std::string message = complaintAbout(bytes);
    EXPECT_NE(message.find("variable 'b'"), std::string::npos) << message;
    EXPECT_NE(message.find("3 records"), std::string::npos) << message;
}

TEST(ClassicHeader, SaysHowManyBytesAFileNeeds) {
    for (const int version : {1, 2, 5})
        for (const index records : {0, 1, 3}) {
            const std::string bytes = ClassicBytes(version, records).bytes();
            for (const std::size_t length : {bytes.size(), bytes.size() - 2}) {
                const auto read = [&](index place, std::span<std::byte> to) {
                    std::memcpy(to.data(), bytes.data() + place, to.size());
                };
                EXPECT_EQ(Detail::classicFileBytes("file.nc", static_cast<index>(length), read),
                          static_cast<index>(bytes.size()))
                    << version << " " << records;
            }
        }
}

TEST(ClassicHeader, StreamsOfUnknownLengthAreRefused) {
    std::string bytes = ClassicBytes(1, 3).bytes();
    bytes.replace(4, 4, "\xff\xff\xff\xff");
    EXPECT_NE(complaintAbout(bytes).find("stream"), std::string::npos);
}

/// As Unidata's ref_nctest_classic.nc.
TEST(ClassicHeader, NamesPaddedByNulsAreNames) {
    using namespace std::string_literals;
    for (const int version : {1, 2, 5}) {
        const std::string bytes = ClassicBytes(version, 3, "\0\0\0"s).bytes();
        EXPECT_EQ(complaintAbout(bytes), "") << version;
        EXPECT_NE(complaintAbout(ClassicBytes(version, 3, "\0x"s).bytes()).find("that no name has"), std::string::npos);
        if (!NetcdfReader::built())
            continue;
        const Geom::test::TemporaryFile path(".nc", bytes);
        const NetcdfReader file(MPI_COMM_WORLD, path.path());
        EXPECT_EQ(file.content().dimensions[1].name, "y");
        EXPECT_EQ(file.content().attributes[0].name, "title");
        std::vector<double> values(6);
        file.read("b", slabOf(values.data(), {0, 0}, {3, 2}), {.raw = true});
        double expected = 0;
        std::memset(&expected, 'b', sizeof expected);
        EXPECT_EQ(values, std::vector<double>(6, expected));
    }
}

/// Damaged headers through the reader: an error or a file that can be read, never a crash, a hang or an endless
/// allocation.
TEST(ClassicHeader, MutantsAreRefusedOrRead) {
    const CommunicatorView comm(MPI_COMM_SELF);
    if (CommunicatorView(MPI_COMM_WORLD).rank() != 0)
        GTEST_SKIP() << "rank 0 alone";
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("dnds_mutant_{}.nc", ::getpid())).string();
    std::mt19937 random(12345);
    int refused = 0;
    int read = 0;
    for (int trial = 0; trial < 1500; trial++) {
        std::string bytes = ClassicBytes(trial % 3 == 0 ? 1 : trial % 3 == 1 ? 2 : 5, 3).bytes();
        const std::size_t header = bytes.size() - 60;
        for (auto changes = 1 + random() % 3; changes > 0; changes--) {
            const std::size_t at = 3 + random() % (header - 3);
            constexpr std::array<unsigned, 6> favourites{0, 1, 0x7f, 0x80, 0xff, 12};
            bytes[at] =
                static_cast<char>(random() % 2 == 0 ? favourites[random() % favourites.size()] : random() % 256);
        }
        if (!NetcdfReader::built()) { // the check of headers alone
            (complaintAbout(bytes).empty() ? read : refused)++;
            continue;
        }
        std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        try {
            const NetcdfReader file(comm, path);
            for (const NetcdfVariable &variable : file.content().variables) {
                const std::vector<index> shape = variable.shape();
                index elements = 1;
                for (const index n : shape)
                    elements *= n;
                ASSERT_LE(elements, static_cast<index>(bytes.size()));
                std::vector<double> values(static_cast<std::size_t>(elements));
                if (variable.kind != ElementKind::Opaque)
                    file.read(variable.name,
                              slabOf(values.data(), std::vector<index>(shape.size(), 0), std::vector<index>(shape)));
            }
            read++;
        } catch (const Error &) {
            refused++;
        }
    }
    std::filesystem::remove(path);
    EXPECT_GT(refused, 300);
    EXPECT_GT(read, 100) << "mutants that only change names, types of bytes or values pass";
}

} // namespace
} // namespace DNDS
