#include "DNDS/Array/ArrayTransformer.hpp"

#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"

#include <type_traits>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

using Transformer = ArrayTransformer<ParArray<real, 5>>;
static_assert(!std::is_copy_constructible_v<Transformer> && std::is_nothrow_move_constructible_v<Transformer> &&
              std::is_nothrow_move_assignable_v<Transformer>);

TEST(ArrayTransformer, APushListMakesAMappingThatIsSearchableAndPulls) {
    for (std::uint64_t round = 0; round < 6; ++round) {
        const PullLists pullLists = PullLists::random(50 + round);
        SCOPED_TRACE(testing::Message() << "DNDS_TEST_SEED=" << seed() << ", " << pullLists.name);
        RealField u = emptyPair<RealField>();
        u.father->resize(pullLists.size(worldRank()));
        u.transAttach();
        u.trans.createFatherGlobalMapping();
        std::vector<index> localRows;
        std::vector<index> starts{0};
        for (int reader = 0; reader < worldSize(); ++reader) {
            for (const index row : pullLists.readsOf(reader))
                if (pullLists.owner(row) == worldRank())
                    localRows.push_back(row - pullLists.begin(worldRank()));
            starts.push_back(static_cast<index>(localRows.size()));
        }
        u.trans.createGhostMapping(localRows, starts);
        u.trans.createMPITypes();
        for (const index row : pullLists.myReads())
            EXPECT_TRUE(u.trans.ghostMapping()->findGhost(row).has_value());
        u.trans.initPersistentPull();
        expectPullWorks(u, 1);
    }
}

TEST(ArrayTransformer, RowSizesChangedAreTakenOverByCreateMPITypes) {
    using Csr = ArrayPair<ParArray<index, NonUniformSize>>;
    Csr u = makePair<Csr>(PullLists::ring(), [](auto &father, index n) { father.resize(n, [](index) { return 1; }); });
    for (const TransportKind kind : allTransports())
        for (rowsize size = 4; size >= 0; --size) { // zero-width rows, too
            u.father->resize(ringRows, [&](index row) { return size == 0 ? 0 : size + row; });
            u.trans.createMPITypes();
            u.trans.initPersistentPull({.transport = kind});
            expectPullWorks(u, 3);
        }
}

TEST(ArrayTransformer, MappingsAreBorrowedWithoutCommunicatingThemAgain) {
    RealField u = ringField();
    ArrayPair<ParArray<std::uint8_t, 3>> v;
    v.initPair("v", CommunicatorView(MPI_COMM_WORLD));
    v.father->resize(ringRows);
    v.transAttach();
    v.trans.borrowGGIndexing(u.trans);
    EXPECT_EQ(v.trans.ghostMapping(), u.trans.ghostMapping());
    EXPECT_EQ(v.trans.pattern(), u.trans.pattern());
    EXPECT_EQ(v.father->globalMapping(), u.father->globalMapping());
    v.trans.createMPITypes();
    u = {}; // the mapping outlives the field that made it
    v.trans.initPersistentPull();
    expectPullWorks(v, 1);
}

TEST(ArrayTransformer, ArraysOnPartsOfTheRanks) {
    // Even and odd ranks have fields of their own, on communicators in which ranks are ordered the other way round.
    const Communicator part = Communicator::split(MPI_COMM_WORLD, worldRank() % 2, -worldRank());
    RealField u = emptyPair<RealField>("u", part.view());
    u.father->resize(2);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    std::vector<index> all;
    for (index row = 0; row < u.father->globalMapping()->globalSize(); ++row)
        all.push_back(row);
    u.trans.createGhostMapping(all);
    u.trans.createMPITypes();
    for (const TransportKind kind : allTransports()) {
        u.trans.initPersistentPull({.transport = kind});
        expectPullWorks(u, 6 + worldRank() % 2);
    }
}

} // namespace
} // namespace DNDS
