// Several nodes on one machine: ranks of one node share memory, others send messages, in one exchange.

#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Transport/NodeSharedCase.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

namespace DNDS {
namespace {

using namespace DNDS::test;

class VirtualNodes : public testing::TestWithParam<int> {};

TEST_P(VirtualNodes, RanksOfANodeShareMemoryAndOthersSendMessages) {
    if (worldSize() > 1 && World(0).arena() == nullptr)
        GTEST_SKIP() << "no shared memory";
    const World world(GetParam());
    for (const Wishes &wishes : {Wishes::everything(), Wishes::random(51), Wishes::withEmptyAndLonelyRanks()}) {
        SCOPED_TRACE(wishes.name);
        Field field(world.comm(), wishes, "one");
        Field other(world.comm(), wishes, "two");
        other.pair.trans.borrowGGIndexing(field.pair.trans);
        other.pair.trans.createMPITypes();
        ExchangeGroup group;
        group.add(field.pair.trans);
        group.add(other.pair.trans);
        for (const TransportKind kind : {TransportKind::Auto, TransportKind::NodeShared}) {
            field.pair.trans.initPersistentPull({.transport = kind});
            for (const PeerPath &path : field.pair.trans.pullPaths()) {
                const TransportKind expected = path.peer == worldRank()                    ? TransportKind::Local
                                               : world.context->node().sameNode(path.peer) ? TransportKind::NodeShared
                                                                                           : TransportKind::Packed;
                EXPECT_EQ(path.transport, expected) << "peer " << path.peer << ": " << path.why;
                EXPECT_FALSE(path.why.empty());
            }
            group.initPersistentPull({.transport = kind});
            for (int version = 1; version <= 10; ++version) {
                field.pull(version);
                field.fill(100 + version);
                other.fill(200 + version);
                group.startPersistentPull();
                group.waitPersistentPull();
                field.expect(100 + version);
                other.expect(200 + version);
            }
        }
    }
}

TEST_P(VirtualNodes, ManyInFlightInDifferentOrdersDoNotMix) {
    const World world(GetParam());
    std::mt19937_64 random(rankSeed(52));
    std::vector<std::unique_ptr<Field>> fields;
    for (std::uint64_t k = 0; k < 8; ++k) {
        const Wishes wishes = k % 3 == 0 ? Wishes::everything() : k % 3 == 1 ? Wishes::ring() : Wishes::random(60 + k);
        fields.push_back(std::make_unique<Field>(world.comm(), wishes));
        fields.back()->pair.trans.initPersistentPull();
    }
    std::vector<std::size_t> order(fields.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int round = 0; round < 12; ++round) {
        for (std::size_t k = 0; k < fields.size(); ++k)
            fields[k]->fill(100 * round + static_cast<int>(k));
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t k : order) {
            if (random() % 16 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 600));
            fields[k]->pair.trans.startPersistentPull();
        }
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t k : order) {
            fields[k]->pair.trans.waitPersistentPull();
            fields[k]->expect(100 * round + static_cast<int>(k));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(RanksPerNode, VirtualNodes, testing::Values(1, 2, 3),
                         [](const auto &test) { return "of" + std::to_string(test.param); });

} // namespace
} // namespace DNDS
