// Files that were damaged, and disks that are full.
#include "CheckpointCase.hpp"
#include "support/FileSizeLimit.hpp"

#include <csignal>

#include <hdf5.h>
#include <sys/mount.h>

namespace DNDS {
namespace {

using namespace test;

struct Fields {
    std::vector<index> ids = spreadIds(world(), 40, 5);
    std::vector<index> listed = spreadIds(world(), 40, 6, [](index row) { return 3 * row + 1; });
    Array<real, 5> fixed;
    Array<std::int32_t, NonUniformSize> ragged;

    explicit Fields(index step) {
        fixed.resize(static_cast<index>(ids.size()));
        for (index i = 0; i < fixed.size(); i++)
            for (rowsize j = 0; j < 5; j++)
                fixed(i, j) = static_cast<real>(step * 1000 + ids[static_cast<std::size_t>(i)]) + 0.1 * j;
        ragged.resize(static_cast<index>(listed.size()),
                      [&](index i) { return listed[static_cast<std::size_t>(i)] % 4; });
        for (index i = 0; i < ragged.size(); i++)
            for (rowsize j = 0; j < ragged.rowSize(i); j++)
                ragged(i, j) = static_cast<std::int32_t>(step + listed[static_cast<std::size_t>(i)] * 10 + j);
    }

    void write(const std::string &path, index step) const {
        CheckpointWriter writer(world(), path, {256});
        writer.set("step", step);
        writer.set("text", "what a file may say");
        writer.add("fixed", fixed, ids);
        writer.add("ragged", ragged, listed);
        writer.write();
    }
};

/// All that a reader can see in a file, as one text. Collective.
std::string everythingIn(CommunicatorView comm, const std::string &path) {
    const CheckpointReader reader(comm, path);
    Array<real, 5> fixed;
    Array<std::int32_t, NonUniformSize> ragged;
    reader.read("fixed", fixed, reader.ownBlock("fixed"));
    reader.read("ragged", ragged, reader.ownBlock("ragged"));
    return fmt::format("{}|{}|{}|{}|{}", reader.content().manifest(), reader.integer("step"), reader.text("text"),
                       fixed.hash(), ragged.hash());
}

TEST(CheckpointDamage, NeverChangesWhatIsRead) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.h5");
    Fields(1).write(path, 1);
    world().barrier();
    if (world().rank() > 0)
        return; // each rank would do the same
    const std::string whole = contentOf(path);
    const std::string expected = everythingIn(MPI_COMM_SELF, path);
    std::size_t refused = 0, harmless = 0;
    std::mt19937_64 random(seed());
    const auto attempt = [&](const std::string &content) {
        overwrite(path, content);
        try {
            EXPECT_EQ(everythingIn(MPI_COMM_SELF, path), expected);
            harmless++;
        } catch (const DataError &error) {
            EXPECT_CONTAINS(error.message(), path);
            refused++;
        }
    };
    // Bytes between structures (padding to pages) may change without consequence.
    for (std::size_t byte = random() % 11; byte < whole.size();
         byte += 1 + random() % static_cast<std::size_t>(20 + 40 * (world().size() - 1))) {
        if (whole[byte] == 0 && random() % 8 != 0)
            continue;
        std::string content = whole;
        content[byte] = static_cast<char>(content[byte] ^ (1 << random() % 8));
        attempt(content);
    }
    EXPECT_GT(refused, 5U);
    EXPECT_LT(harmless, refused);
    for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 50) {
        const std::size_t before = refused;
        attempt(whole.substr(0, size));
        EXPECT_EQ(refused, before + 1) << "cut at " << size;
    }
    overwrite(path, whole.substr(0, whole.size() - 100));
    try {
        (void)everythingIn(MPI_COMM_SELF, path);
        ADD_FAILURE() << "a truncated file was read";
    } catch (const DataError &error) {
        EXPECT_CONTAINS(error.message(), fmt::format("has {} bytes instead of {}", whole.size() - 100, whole.size()));
    }
    const std::size_t before = refused;
    attempt("step,time\n1,2\n");
    attempt(std::string(5000, '\0'));
    EXPECT_EQ(refused, before + 2);
}

TEST(CheckpointDamage, OfEveryDatasetIsToldOnAllRanks) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.h5");
    const Fields fields(1);
    fields.write(path, 1);
    const std::string whole = contentOf(path);
    const CheckpointReader reader(world(), path);
    const auto &fixed = reader.array("fixed");
    const auto &ragged = reader.array("ragged");
    const auto damaged = [&](index byte) {
        world().barrier();
        if (world().rank() == 0) {
            std::string content = whole;
            content[static_cast<std::size_t>(byte)] ^= 1;
            overwrite(path, content);
        }
        world().barrier();
        const std::string all = failureOf<DataError>([&] { CheckpointReader(world(), path).verify(); });
        Fields copy(2);
        const std::string reading = failureOf<DataError>([&] {
            const CheckpointReader again(world(), path);
            again.read("fixed", copy.fixed, copy.ids);
            again.read("ragged", copy.ragged, copy.listed);
        });
        EXPECT_EQ(all.substr(0, all.find(" (rank")), reading.substr(0, reading.find(" (rank")));
        return reading;
    };
    EXPECT_CONTAINS(damaged(fixed.values.values + 7 * 40 + 3),
                    "the values of array fixed, rows 6 to 11, have checksum");
    EXPECT_CONTAINS(damaged(fixed.values.checksums + 2), "the values of array fixed, rows 0 to 5");
    EXPECT_CONTAINS(damaged(ragged.values.values), "the values of array ragged, rows 0 to");
    EXPECT_CONTAINS(damaged(ragged.offsets.values + 8 * 40), "the offsets of array ragged");
    EXPECT_CONTAINS(damaged(ragged.offsets.checksums), "the offsets of array ragged, rows 0 to");
    EXPECT_CONTAINS(damaged(ragged.ids.values + 8 * 39), "the ids of array ragged");
    EXPECT_CONTAINS(damaged(ragged.ids.checksums), "the ids of array ragged, rows 0 to");
}

TEST(CheckpointDamage, ForeignFilesAreTold) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.h5");
    if (world().rank() == 0)
        H5Fclose(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    world().barrier();
    EXPECT_CONTAINS(failureOf<DataError>([&] { CheckpointReader(world(), path); }), "another kind of file");
    if (world().rank() == 0)
        overwrite(path, "a text");
    world().barrier();
    EXPECT_CONTAINS(failureOf<DataError>([&] { CheckpointReader(world(), path); }), "another kind of file");
    if (world().rank() == 0)
        overwrite(path, "");
    world().barrier();
    EXPECT_CONTAINS(failureOf<DataError>([&] { CheckpointReader(world(), path); }), "it is empty");
    EXPECT_CONTAINS(failureOf<DataError>([&] { CheckpointReader(world(), folder.file("")); }), "Is a directory");
}

TEST(CheckpointSpace, FailuresOnAnyRankLeaveTheLastOne) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.h5");
    Fields(1).write(path, 1);
    const std::string expected = everythingIn(world(), path);
    for (int rank = 0; rank < world().size(); rank++) {
        // Rank 0 knows before it starts; others fail when they write.
        const std::string message = failureOf<DataError>([&] {
            const FileSizeLimit limit(world().rank() == rank ? 4200 : RLIM_INFINITY);
            Fields(2).write(path, 2);
        });
        EXPECT_CONTAINS(message, "ulimit -f");
        EXPECT_CONTAINS(message, fmt::format("rank {}", rank));
        EXPECT_EQ(everythingIn(world(), path), expected);
        world().barrier();
        EXPECT_EQ(folder.names(), std::vector<std::string>{"a.h5"});
        world().barrier();
    }
    Fields(2).write(path, 2);
    EXPECT_NE(everythingIn(world(), path), expected);
}

TEST(CheckpointSpace, AFullDiskLeavesTheLastOne) {
    const TemporaryFolder folder;
    const std::string disk = folder.file("disk");
    int mounted = 0;
    if (world().rank() == 0) {
        std::filesystem::create_directory(disk);
        mounted = ::mount("none", disk.c_str(), "tmpfs", MS_NOSUID, "size=256k") == 0 ? 1 : 0;
    }
    mounted = world().allReduce(mounted, MPI_MAX);
    if (mounted == 0)
        GTEST_SKIP() << "no right to mount a small file system";
    const std::string path = disk + "/a.h5";
    Fields(1).write(path, 1);
    const std::string expected = everythingIn(world(), path);
    std::vector<index> ids = spreadIds(world(), 20000, 5);
    Array<real, 5> large;
    large.resize(static_cast<index>(ids.size()));
    const auto write = [&] {
        CheckpointWriter writer(world(), path);
        writer.add("large", large, ids);
        writer.write();
    };
    EXPECT_CONTAINS(failureOf<DataError>(write), "has no room for");
    EXPECT_EQ(everythingIn(world(), path), expected);
    world().barrier();
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
    world().barrier();
    if (world().rank() == 0)
        ::umount2(disk.c_str(), MNT_DETACH);
}

} // namespace
} // namespace DNDS
