// Checkpoints that are for another mesh.
#include "CheckpointCase.hpp"

namespace DNDS {
namespace {

using namespace test;

constexpr std::uint64_t mesh = 0xfedcba9876543210;
constexpr std::uint64_t otherMesh = mesh + 1;

void write(const std::string &path, const CheckpointOptions &options) {
    const std::vector<index> ids = spreadIds(world(), 20, 1);
    Array<index, 1> state;
    state.resize(static_cast<index>(ids.size()));
    for (index i = 0; i < state.size(); i++)
        state(i, 0) = ids[static_cast<std::size_t>(i)];
    CheckpointWriter writer(world(), path, options);
    writer.add("state", state, ids);
    writer.write();
}

void expectRows(const CheckpointReader &reader) {
    Array<index, 1> state;
    reader.read("state", state, std::vector<index>{3, 19});
    EXPECT_EQ(state(1, 0), 19);
}

TEST(CheckpointOfAnotherMesh, IsRefusedUnlessAskedForByName) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.h5");
    write(path, {.mesh = mesh});
    const CheckpointReader same(world(), path, {.mesh = mesh});
    EXPECT_EQ(same.content().mesh, mesh);
    expectRows(same);
    const std::string other = failureOf<ArgumentError>([&] { CheckpointReader(world(), path, {.mesh = otherMesh}); });
    EXPECT_CONTAINS(other, "is for another mesh");
    EXPECT_CONTAINS(other, "fedcba9876543211");
    EXPECT_CONTAINS(other, "anyMesh");
    const CheckpointReader silent(world(), path); // values and sizes are there for all
    EXPECT_EQ(silent.array("state").rows, 20);
    silent.verify();
    EXPECT_CONTAINS(failureOf<ArgumentError>([&] { expectRows(silent); }), "is for one mesh");
    EXPECT_CONTAINS(failureOf<ArgumentError>([&] { silent.requireMesh(otherMesh); }), "is for another mesh");
    expectRows(CheckpointReader(world(), path, {.mesh = otherMesh, .anyMesh = true}));
    expectRows(CheckpointReader(world(), path, {.anyMesh = true}));
}

TEST(CheckpointOfAnotherMesh, IsNotToldByFilesWithoutOne) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.h5");
    write(path, {});
    const CheckpointReader reader(world(), path, {.mesh = mesh});
    EXPECT_FALSE(reader.content().mesh.has_value());
    expectRows(reader);
    expectRows(CheckpointReader(world(), path));
}

} // namespace
} // namespace DNDS
