// Checkpoints that another one takes the place of while they are read.
#include "CheckpointCase.hpp"

namespace DNDS {
namespace {

using namespace test;

constexpr index rows = 100;

/// Checkpoint number `step`: each element is its row and the step.
void writeStep(CommunicatorView comm, const std::string &path, index step, bool told) {
    const std::vector<index> ids = spreadIds(comm, rows, static_cast<unsigned>(step));
    Array<index, 2> state;
    state.resize(static_cast<index>(ids.size()));
    for (index i = 0; i < state.size(); i++)
        for (rowsize j = 0; j < 2; j++)
            state(i, j) = 1000 * step + ids[static_cast<std::size_t>(i)];
    CheckpointWriter writer(comm, path, {256});
    if (told)
        writer.set("step", step);
    writer.add("state", state, ids);
    writer.write();
}

void expectStep(const CheckpointReader &reader, index step, index first = 0) {
    Array<index, 2> state;
    const std::vector<index> ids{first, first + 1, rows - 1};
    reader.read("state", state, ids);
    for (index i = 0; i < state.size(); i++)
        EXPECT_EQ(state(i, 1), 1000 * step + ids[static_cast<std::size_t>(i)]);
}

TEST(CheckpointReplaced, IsReadToItsEndByWhomHasItOpen) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.h5");
    writeStep(world(), path, 1, true);
    const CheckpointReader reader(world(), path);
    const CheckpointReader copy = reader;
    writeStep(world(), path, 2, true);
    EXPECT_EQ(reader.integer("step"), 1);
    expectStep(reader, 1);
    reader.verify();
    const CheckpointReader second(world(), path);
    EXPECT_EQ(second.integer("step"), 2);
    expectStep(second, 2, 7);
    world().barrier();
    if (world().rank() == 0)
        std::filesystem::remove(path);
    world().barrier();
    expectStep(copy, 1, 40);
    expectStep(second, 2, 40);
}

/// A path that is another file on some rank, as it is while a file is replaced.
TEST(CheckpointReplaced, IsOneFileForAllRanks) {
    if (world().size() == 1)
        GTEST_SKIP() << "one rank finds one file";
    const TemporaryFolder folder;
    const auto before = std::filesystem::current_path();
    for (const index step : {1, 2}) {
        if (world().rank() == 0)
            std::filesystem::create_directory(folder.file(std::to_string(step)));
        world().barrier();
        writeStep(world(), folder.file(fmt::format("{}/a.h5", step)), step, false); // nothing but rows tells them apart
    }
    std::filesystem::current_path(folder.file(world().rank() == world().size() - 1 ? "2" : "1"));
    const std::string message = failureOf<DataError>([&] { CheckpointReader(world(), "a.h5").verify(); });
    std::filesystem::current_path(before);
    EXPECT_CONTAINS(message, "ranks find different files at a.h5");
    world().barrier();
}

} // namespace
} // namespace DNDS
