#include "DNDS/Mpi/NodeArena.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "support/FileSizeLimit.hpp"
#include "support/MpiTest.hpp"
#include "support/ScopedVariable.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace DNDS {
namespace {

using test::FileSizeLimit;
using test::rankSeed;
using test::worldRank;
using test::worldSize;

/// Freed after MPI_Finalize, when static objects are destroyed: a crash then fails the whole program.
HostDeviceBuffer outlivesMpi;

/// Mappings and open files of this process that belong to arenas, and the number of all open files.
struct Resources {
    std::ptrdiff_t mappings = 0;
    std::ptrdiff_t arenaFiles = 0;
    std::ptrdiff_t files = 0;

    static Resources now() {
        Resources found;
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            found.mappings += line.find("dnds-arena") != std::string::npos ? 1 : 0;
        for (const auto &file : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone; // the folder's own descriptor
            const std::string target = std::filesystem::read_symlink(file.path(), gone).string();
            found.files += 1;
            found.arenaFiles += target.find("dnds-arena") != std::string::npos ? 1 : 0;
        }
        return found;
    }
};

/// The ranks of this node and an arena of theirs.
struct Node {
    Communicator owner = Communicator::splitNode(MPI_COMM_WORLD);
    CommunicatorView comm = owner.view();
    std::string whyNot;
    std::shared_ptr<NodeArena> arena = NodeArena::create(comm, whyNot);

    std::vector<ArenaLocation> gather(const ArenaLocation &mine) const {
        const auto segments = comm.allGather(static_cast<std::int64_t>(mine.segment));
        const auto offsets = comm.allGather(static_cast<std::int64_t>(mine.offset));
        std::vector<ArenaLocation> all;
        for (std::size_t r = 0; r < segments.size(); ++r)
            all.push_back({static_cast<std::uint32_t>(segments[r]), static_cast<std::uint64_t>(offsets[r])});
        return all;
    }
};

/// All tests share one arena, because creation is slow where ranks outnumber cores. Each frees its memory.
class NodeArenaOfAllRanks : public testing::Test {
  protected:
    static void SetUpTestSuite() { shared = std::make_unique<Node>(); }
    static void TearDownTestSuite() { shared.reset(); }
    void SetUp() override {
        ASSERT_NE(arena, nullptr) << "ranks of this machine cannot share memory: " << node.whyNot;
        ASSERT_EQ(arena->bytesInUse(), 0U);
    }

    static inline std::unique_ptr<Node> shared;
    const Node &node = *shared;
    NodeArena *arena = node.arena.get();
};

std::byte patternByte(int rank, std::size_t block, std::size_t i) {
    return static_cast<std::byte>((static_cast<std::size_t>(rank) * 131 + block * 31 + i * 7 + i / 251) & 0xffU);
}

#ifdef __SANITIZE_ADDRESS__
TEST_F(NodeArenaOfAllRanks, MemoryThatNobodyHasIsForbiddenUnderTheAddressSanitizer) {
    constexpr std::size_t bytes = 1000;
    void *block = arena->allocate(bytes, 64);
    EXPECT_EQ(__asan_region_is_poisoned(block, bytes), nullptr);
    EXPECT_NE(__asan_region_is_poisoned(block, bytes + 1), nullptr);
    arena->deallocate(block, bytes, 64);
    EXPECT_EQ(__asan_region_is_poisoned(block, bytes), block);
}
#endif

TEST_F(NodeArenaOfAllRanks, EveryRankReadsAndWritesTheMemoryOfEveryOther) {
    // More than the first segment has room for, one block larger than all before it, so that segments are added.
    const std::vector<std::size_t> sizes{1, 64, 100'000, 700'000, 900'000, 3'000'000, 5, 2'000'001};
    std::vector<std::byte *> blocks;
    std::uint32_t lastSegment = 0;
    for (std::size_t b = 0; b < sizes.size(); ++b) {
        const std::size_t alignment = std::size_t{16} << b;
        auto *block = static_cast<std::byte *>(arena->allocate(sizes[b] + 8, alignment));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % std::max<std::size_t>(alignment, 64), 0U);
        blocks.push_back(block);
        for (std::size_t i = 0; i < sizes[b]; ++i)
            block[i] = patternByte(node.comm.rank(), b, i);
        std::memset(block + sizes[b], 0, 8);
        const auto place = arena->locate(block);
        ASSERT_TRUE(place.has_value());
        lastSegment = std::max(lastSegment, place->segment);
        const std::vector<ArenaLocation> places = node.gather(*place);
        node.comm.barrier();
        for (int rank = 0; rank < node.comm.size(); ++rank) {
            std::byte *seen = arena->translate(rank, places[static_cast<std::size_t>(rank)]);
            EXPECT_EQ(arena->translate(rank, places[static_cast<std::size_t>(rank)]), seen);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < sizes[b]; ++i)
                wrong += seen[i] != patternByte(rank, b, i) ? 1U : 0U;
            EXPECT_EQ(wrong, 0U) << "block " << b << " of rank " << rank;
            seen[sizes[b] + static_cast<std::size_t>(node.comm.rank())] = static_cast<std::byte>(node.comm.rank() + 1);
        }
        node.comm.barrier();
        for (int rank = 0; rank < node.comm.size(); ++rank)
            EXPECT_EQ(block[sizes[b] + static_cast<std::size_t>(rank)], static_cast<std::byte>(rank + 1));
    }
    EXPECT_GE(lastSegment, 2U) << "the test means to use several segments";
    EXPECT_GT(arena->bytesInUse(), 6'000'000U);
    for (std::size_t b = 0; b < blocks.size(); ++b)
        arena->deallocate(blocks[b], sizes[b] + 8, std::size_t{16} << b);
    EXPECT_EQ(arena->bytesInUse(), 0U);
}

TEST_F(NodeArenaOfAllRanks, LocatesOwnMemoryOnlyAndToTheByte) {
    auto *block = static_cast<std::byte *>(arena->allocate(1000, 64));
    const auto first = arena->locate(block);
    const auto inside = arena->locate(block + 321);
    ASSERT_TRUE(first && inside);
    EXPECT_EQ(inside->segment, first->segment);
    EXPECT_EQ(inside->offset, first->offset + 321);
    int elsewhere = 0;
    EXPECT_FALSE(arena->locate(&elsewhere).has_value());
    EXPECT_FALSE(arena->locate(nullptr).has_value());
    // The memory of others is not this rank's, though it is mapped here.
    const std::vector<ArenaLocation> places = node.gather(*first);
    for (int rank = 0; rank < node.comm.size(); ++rank)
        EXPECT_FALSE(arena->locate(arena->translate(rank, places[static_cast<std::size_t>(rank)])).has_value());
    node.comm.barrier();
    arena->deallocate(block, 1000, 64);
}

TEST_F(NodeArenaOfAllRanks, WhatCannotBeHadIsRefusedAndChangesNothing) {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    for (const std::size_t bytes : {most, most - 62, most - 63, most - 100, most / 2, std::size_t{1} << 60U})
        EXPECT_THROW((void)arena->allocate(bytes, 64), std::bad_alloc) << bytes;
    EXPECT_THROW((void)arena->allocate(100, std::size_t{1} << 20U), std::bad_alloc) << "more than a page";
    EXPECT_EQ(arena->bytesInUse(), 0U);
    void *block = arena->allocate(2'000'000, 64);
    std::memset(block, 1, 2'000'000);
    arena->deallocate(block, 2'000'000, 64);
}

TEST(NodeArena, MapsOtherRanksWhenTheyAreFirstNeeded) {
    const Resources before = Resources::now();
    Node node;
    ASSERT_NE(node.arena, nullptr) << node.whyNot;
    const auto mapped = [&] { return Resources::now().mappings - before.mappings; };
    const int ranks = node.comm.size();
    // Its own memory, and that of the rank after it, with which each has tried.
    EXPECT_EQ(mapped(), std::min(ranks, 2));
    const int me = node.comm.rank();
    node.comm.barrier();
    for (int step = 0; step < ranks; ++step) {
        const int peer = (me + step) % ranks;
        if (peer != me) {
            EXPECT_NE(node.arena->translate(peer, {0, 0}), nullptr);
        }
        EXPECT_EQ(mapped(), std::max(std::min(ranks, 2), step + 1));
    }
    node.comm.barrier();
}

TEST_F(NodeArenaOfAllRanks, RetiredMemoryIsFreedWhenTheOtherRankIsDoneWithIt) {
    const int next = (node.comm.rank() + 1) % node.comm.size();
    arena->retire(arena->allocate(300, 64), 300, nullptr);
    EXPECT_EQ(arena->bytesInUse(), 0U) << "nobody else uses it";

    using Flag = std::atomic<std::uint32_t>;
    auto *flag = new (arena->allocate(256, 64)) Flag(0);
    const std::vector<ArenaLocation> places = node.gather(*arena->locate(flag));
    arena->retire(flag, 256, flag);
    EXPECT_EQ(arena->bytesInUse(), 256U);
    arena->reap();
    EXPECT_EQ(arena->bytesInUse(), 256U);
    node.comm.barrier();
    reinterpret_cast<Flag *>(arena->translate(next, places[static_cast<std::size_t>(next)]))->store(1);
    node.comm.barrier();
    EXPECT_EQ(arena->bytesInUse(), 256U);
    arena->reap();
    EXPECT_EQ(arena->bytesInUse(), 0U);
}

TEST_F(NodeArenaOfAllRanks, MayBeUsedByTwoThreads) {
    const auto work = [&](unsigned seed) {
        std::minstd_rand random(seed);
        std::vector<std::pair<void *, std::size_t>> blocks;
        for (int step = 0; step < 400; ++step) {
            const std::size_t bytes = 1 + random() % 30'000;
            blocks.emplace_back(arena->allocate(bytes, 64), bytes);
            std::memset(blocks.back().first, static_cast<int>(seed), bytes);
            if (!arena->locate(blocks.back().first))
                std::abort();
            if (step % 2 == 0) {
                arena->deallocate(blocks.front().first, blocks.front().second, 64);
                blocks.erase(blocks.begin());
            }
        }
        for (const auto &[block, bytes] : blocks)
            arena->deallocate(block, bytes, 64);
    };
    std::thread other([&] { work(1); });
    work(2);
    other.join();
    EXPECT_EQ(arena->bytesInUse(), 0U);
}

TEST_F(NodeArenaOfAllRanks, BlocksMayBeRetiredByAnotherThread) {
    // Each thread retires what the other one may free by `reap`, and what it flags itself.
    std::deque<std::atomic<std::uint32_t>> flags(2);
    const auto work = [&](std::size_t me) {
        for (int step = 0; step < 3000; ++step) {
            arena->retire(arena->allocate(300, 64), 300, &flags[1 - me]);
            arena->reap();
        }
        flags[me].store(1);
    };
    std::thread other([&] { work(1); });
    work(0);
    other.join();
    arena->reap();
    EXPECT_EQ(arena->bytesInUse(), 0U);
}

TEST_F(NodeArenaOfAllRanks, OtherRanksAreSeenByTwoThreads) {
    HostDeviceBuffer block(3'000'000, node.arena);
    const auto places = node.gather(*arena->locate(block.read(MemorySpace::Host, "block")));
    std::vector<std::byte *> seen(2 * places.size());
    const auto look = [&](std::size_t thread) {
        for (std::size_t rank = 0; rank < places.size(); ++rank)
            seen[thread * places.size() + rank] = arena->translate(static_cast<int>(rank), places[rank]);
    };
    std::thread other([&] { look(1); });
    look(0);
    other.join();
    for (std::size_t rank = 0; rank < places.size(); ++rank)
        EXPECT_EQ(seen[rank], seen[places.size() + rank]) << "it is mapped once";
    node.comm.barrier();
}

TEST(NodeArena, ALimitOnFileSizesIsAnErrorThatSaysSo) {
    Node node;
    ASSERT_NE(node.arena, nullptr) << node.whyNot;
    const FileSizeLimit limit(4U << 20U);
    try {
        const HostDeviceBuffer refused(8U << 20U, node.arena);
        FAIL() << "the limit was passed";
    } catch (const MemoryError &error) {
        EXPECT_NE(error.message().find("8388608 bytes"), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("ulimit -f"), std::string::npos) << error.message();
    }
    EXPECT_EQ(node.arena->bytesInUse(), 0U);
}

TEST(NodeArena, RequestsAreMetWhereTheArenaCannotDouble) {
    Node node;
    ASSERT_NE(node.arena, nullptr) << node.whyNot;
    const FileSizeLimit limit(4U << 20U);
    std::vector<HostDeviceBuffer> blocks;
    for (int k = 0; k < 9; ++k) // 27 MiB, of which no more than 4 MiB fit into a segment
        blocks.emplace_back(3U << 20U, node.arena);
    for (HostDeviceBuffer &block : blocks)
        std::memset(block.write(MemorySpace::Host, "block"), 1, block.bytes());
    for (int k = 0; k < 1000; ++k) // many small ones do not use up the segments
        blocks.emplace_back(20'000, node.arena);
}

TEST(NodeArena, RanksThatMayNotMakeFilesShareNoMemoryAndSayWhy) {
    const Node node = [] {
        const FileSizeLimit limit(4096);
        return Node();
    }();
    EXPECT_EQ(node.arena, nullptr);
    EXPECT_NE(node.whyNot.find("ulimit -f"), std::string::npos) << node.whyNot;
}

constexpr std::size_t mib = std::size_t{1} << 20U;

TEST(NodeArena, MemoryIsReservedBeforeItIsTouched) {
    // Or a machine without memory would end the process at first touch.
    Node node;
    ASSERT_NE(node.arena, nullptr) << node.whyNot;
    const std::size_t before = node.arena->bytesHeld();
    void *block = node.arena->allocate(5 * mib, 64);
    EXPECT_GE(node.arena->bytesHeld(), before + 5 * mib - 2 * SegmentPages::granule);
    EXPECT_LE(node.arena->bytesHeld(), before + 5 * mib + 2 * SegmentPages::granule) << "not all of the segment";
    node.arena->deallocate(block, 5 * mib, 64);
}

TEST(NodeArena, MemoryOfLargeBlocksGoesBackToTheSystem) {
    Node node;
    ASSERT_NE(node.arena, nullptr) << node.whyNot;
    const std::size_t before = node.arena->bytesHeld();
    void *small = node.arena->allocate(1000, 64);
    auto *large = static_cast<std::byte *>(node.arena->allocate(40 * mib, 64));
    void *behind = node.arena->allocate(1000, 64);
    const auto places = node.gather(*node.arena->locate(large));
    std::memset(large, 7, 40 * mib);
    node.comm.barrier();
    const int next = (node.comm.rank() + 1) % node.comm.size();
    std::byte *const seen = node.arena->translate(next, places[static_cast<std::size_t>(next)]);
    EXPECT_EQ(seen[40 * mib - 1], std::byte{7});
    node.comm.barrier();
    node.arena->deallocate(large, 40 * mib, 64);
    EXPECT_LE(node.arena->bytesHeld(), before + mib);

    // The same addresses are used again, and the neighbour sees them without mapping anything.
    auto *again = static_cast<std::byte *>(node.arena->allocate(40 * mib, 64));
    EXPECT_EQ(again, large);
    EXPECT_EQ(again[39 * mib], std::byte{0});
    again[39 * mib] = std::byte{9};
    node.comm.barrier();
    EXPECT_EQ(seen[39 * mib], std::byte{9});
    node.comm.barrier();
    node.arena->deallocate(again, 40 * mib, 64);
    node.arena->deallocate(small, 1000, 64);
    node.arena->deallocate(behind, 1000, 64);
}

TEST(NodeArena, ALoopKeepsItsMemoryUntilASecondAfterIt) {
    Node node;
    ASSERT_NE(node.arena, nullptr) << node.whyNot;
    const auto iterate = [&] {
        node.arena->deallocate(node.arena->allocate(8 * mib, 64), 8 * mib, 64);
        return node.arena->bytesHeld();
    };
    EXPECT_LT(iterate(), 2 * mib) << "nobody knows yet that it is a loop";
    for (int k = 0; k < 3; ++k)
        EXPECT_GE(iterate(), 8 * mib);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    node.arena->reap(); // as each set-up of an exchange does
    EXPECT_LT(node.arena->bytesHeld(), 2 * mib);
}

/// Checks made by a forked child: its exit status, 0 for success.
template <class Body>
int forked(Body &&body) {
    const pid_t child = fork();
    if (child == 0)
        _exit(body());
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + status;
}

TEST_F(NodeArenaOfAllRanks, AForkedChildLeavesItToTheParent) {
    std::vector<HostDeviceBuffer> blocks;
    for (int k = 0; k < 4; ++k) {
        blocks.emplace_back(2 * mib, node.arena);
        std::memset(blocks.back().write(MemorySpace::Host, "block"), 10 + k, 2 * mib);
    }
    const std::size_t held = arena->bytesHeld();
    EXPECT_EQ(forked([&] {
                  if (!inForkedChild() || mpiActive())
                      return 1;
                  blocks.erase(blocks.begin(), blocks.begin() + 3);
                  HostDeviceBuffer own(2 * mib, node.arena); // private: the parent does not know that it is taken
                  std::memset(own.write(MemorySpace::Host, "own"), 99, 2 * mib);
                  if (arena->locate(own.read(MemorySpace::Host, "own")))
                      return 2;
                  if (blocks.back().read(MemorySpace::Host, "block")[0] != std::byte{13})
                      return 3;
                  arena->retire(arena->allocate(300, 64), 300, nullptr);
                  blocks.back().resize(3 * mib);
                  if (blocks.back().read(MemorySpace::Host, "block")[2 * mib - 1] != std::byte{13})
                      return 4;
                  blocks.clear();
                  return 0;
              }),
              0);
    EXPECT_FALSE(inForkedChild());
    EXPECT_EQ(arena->bytesHeld(), held);
    for (int k = 0; k < 4; ++k) {
        const std::byte *bytes = blocks[static_cast<std::size_t>(k)].read(MemorySpace::Host, "block");
        EXPECT_TRUE(std::all_of(bytes, bytes + 2 * mib, [&](std::byte b) { return b == std::byte(10 + k); })) << k;
    }
}

TEST(NodeArena, OutlivesItsCommunicatorAndItsLastOwnerFreesIt) {
    const Resources before = Resources::now();
    HostDeviceBuffer kept;
    {
        Node node;
        ASSERT_NE(node.arena, nullptr) << node.whyNot;
        kept = HostDeviceBuffer(5'000'000, node.arena);
        std::memset(kept.write(MemorySpace::Host, "kept"), 17, 5'000'000);
        const auto places = node.gather(*node.arena->locate(kept.read(MemorySpace::Host, "kept")));
        const int next = (node.comm.rank() + 1) % node.comm.size();
        std::byte *seen = node.arena->translate(next, places[static_cast<std::size_t>(next)]);
        // The neighbour lets go of its arena first; what was mapped stays.
        node.comm.barrier();
        EXPECT_EQ(seen[4'999'999], std::byte{17});
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_GT(Resources::now().arenaFiles, before.arenaFiles);
    kept.resize(8'000'000); // still from the arena
    EXPECT_EQ(kept.read(MemorySpace::Host, "kept")[4'999'999], std::byte{17});
    EXPECT_EQ(kept.read(MemorySpace::Host, "kept")[7'999'999], std::byte{0});
    kept = HostDeviceBuffer();
    EXPECT_EQ(Resources::now().arenaFiles, before.arenaFiles);
    EXPECT_EQ(Resources::now().mappings, before.mappings);

    Node node;
    ASSERT_NE(node.arena, nullptr) << node.whyNot;
    outlivesMpi = HostDeviceBuffer(100, node.arena);
}

TEST(NodeArena, CommunicatorsComeAndGoWithoutLeavingFilesOrMappings) {
    (void)CommunicatorContext::of(MPI_COMM_WORLD)->comm().allReduce(1, MPI_SUM);
    const Resources before = Resources::now();
    constexpr int many = 8;
    for (int k = 0; k < many; ++k) {
        const Communicator user = Communicator::duplicate(MPI_COMM_WORLD);
        const auto context = CommunicatorContext::of(user.view());
        if (worldSize() == 1 || !context->node().arena)
            continue;
        NodeArena &arena = *context->node().arena;
        // A second segment, mapped by the neighbour.
        HostDeviceBuffer block(2'000'000, context->node().arena);
        const auto place = arena.locate(block.read(MemorySpace::Host, "block"));
        ASSERT_TRUE(place.has_value());
        context->comm().barrier(); // the neighbour has it, too
        const int next = (arena.nodeRank() + 1) % arena.nodeSize();
        EXPECT_NE(arena.translate(next, *place), nullptr); // the same place on all ranks
        if (k == 0) {
            EXPECT_GT(Resources::now().mappings, before.mappings) << "the test counts what it means to count";
        }
        context->comm().barrier();
    }
    const Resources after = Resources::now();
    EXPECT_EQ(after.mappings, before.mappings);
    EXPECT_EQ(after.arenaFiles, before.arenaFiles);
    EXPECT_LT(after.files, before.files + many / 2) << "MPI may keep some, but not one a communicator";
}

TEST(NodeTopology, VirtualNodesDivideEachMachine) {
    const Communicator machineOwner = Communicator::splitNode(MPI_COMM_WORLD);
    const CommunicatorView machine = machineOwner.view();
    const std::vector<int> onMachine = machine.allGather(worldRank());
    for (const int ranksPerNode : {0, 1, 2, 3, 100}) {
        const NodeTopology node = NodeTopology::discover(MPI_COMM_WORLD, ranksPerNode);
        const int per = ranksPerNode == 0 ? machine.size() : ranksPerNode;
        std::vector<int> expected(static_cast<std::size_t>(worldSize()), -1);
        int members = 0;
        for (int r = 0; r < machine.size(); ++r)
            if (r / per == machine.rank() / per) {
                expected[static_cast<std::size_t>(onMachine[static_cast<std::size_t>(r)])] = r % per;
                ++members;
            }
        EXPECT_TRUE(std::is_sorted(node.members.begin(), node.members.end())) << ranksPerNode << " ranks a node";
        for (int rank = 0; rank < worldSize(); ++rank) {
            EXPECT_EQ(node.nodeRank(rank), expected[static_cast<std::size_t>(rank)]) << ranksPerNode << " ranks a node";
            EXPECT_EQ(node.sameNode(rank), expected[static_cast<std::size_t>(rank)] >= 0);
        }
        ASSERT_EQ(node.arena != nullptr, members > 1) << node.whyNoArena;
        EXPECT_EQ(node.whyNoArena.empty(), node.arena != nullptr);
        if (node.arena) {
            EXPECT_EQ(node.arena->nodeSize(), members);
            EXPECT_EQ(node.arena->nodeRank(), machine.rank() % per);
        }
    }
}

TEST(NodeTopology, SaysWhyMemoryCannotBeShared) {
    if (worldSize() == 1)
        GTEST_SKIP() << "needs two ranks on a node";
    std::optional<FileSizeLimit> limit;
    if (worldRank() == worldSize() - 1)
        limit.emplace(100); // less than a segment
    const NodeTopology node = NodeTopology::discover(MPI_COMM_WORLD, 0);
    limit.reset();
    EXPECT_EQ(node.arena, nullptr);
    EXPECT_NE(node.whyNoArena.find("shared memory"), std::string::npos) << node.whyNoArena;
}

TEST(NodeTopology, ContextsReadTheEnvironmentWhenTheyAreMade) {
    const Communicator user = Communicator::duplicate(MPI_COMM_WORLD);
    const auto context = [&] {
        const test::ScopedVariable alone("DNDS_RANKS_PER_NODE", "1");
        return CommunicatorContext::of(user.view());
    }();
    for (int rank = 0; rank < worldSize(); ++rank)
        EXPECT_EQ(context->node().sameNode(rank), rank == worldRank());
    EXPECT_EQ(context->node().arena, nullptr);
    EXPECT_FALSE(context->node().whyNoArena.empty());
    EXPECT_EQ(CommunicatorContext::of(user.view()), context) << "later changes of the environment mean nothing to it";
}

} // namespace
} // namespace DNDS
