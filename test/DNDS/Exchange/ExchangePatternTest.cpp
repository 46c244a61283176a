#include "DNDS/Exchange/ExchangePattern.hpp"

#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

/// Rows that everybody gives to everybody, itself included, by hand: in any order, some of them twice. With three ranks
/// or more the last one has no rows and no peers.
struct Hand {
    static constexpr index rows = 6;
    static constexpr index unused = 2; ///< ghosts without a sender, before and after the others

    static bool lonely(int rank) { return worldSize() > 2 && rank == worldSize() - 1; }
    static std::vector<index> given(int from, int to) {
        if (lonely(from) || lonely(to))
            return {};
        return (from + to) % 2 == 0 ? std::vector<index>{5, 0, 3, 0} : std::vector<index>{1};
    }
    /// The rows this rank receives, rank and row: owners descend, so that ranges do not follow each other as ranks do.
    static std::vector<std::pair<int, index>> gets() {
        std::vector<std::pair<int, index>> list;
        for (int from = worldSize(); from-- > 0;)
            for (const index row : given(from, worldRank()))
                list.emplace_back(from, row);
        return list;
    }
    /// The ghost that number `k` of `count` becomes: scattered, every other one is counted from the end.
    static index ghostOf(std::size_t k, std::size_t count, bool scattered) {
        const std::size_t place = !scattered ? k : k % 2 == 0 ? k / 2 : count - 1 - k / 2;
        return unused + static_cast<index>(place);
    }
    /// The originals of ghosts.
    static std::vector<std::pair<int, index>> ghosts(bool scattered) {
        const auto all = gets();
        std::vector<std::pair<int, index>> list(all.size() + 2 * unused, {-1, 0});
        for (std::size_t k = 0; k < all.size(); ++k)
            list[static_cast<std::size_t>(ghostOf(k, all.size(), scattered))] = all[k];
        return list;
    }
    static ExchangePattern::Rows mine(bool scattered = false) {
        ExchangePattern::Rows list;
        list.fatherSize = lonely(worldRank()) ? 0 : rows;
        const auto all = gets();
        list.sonSize = static_cast<index>(all.size()) + 2 * unused;
        for (int peer = 0; peer < worldSize(); ++peer) {
            list.given.append(peer, given(worldRank(), peer)); // empty lists, too
            std::vector<index> received;
            for (std::size_t k = 0; k < all.size(); ++k)
                if (all[k].first == peer)
                    received.push_back(ghostOf(k, all.size(), scattered));
            list.received.append(peer, received);
        }
        return list;
    }
    static std::shared_ptr<const ExchangePattern> pattern(bool scattered = false) {
        return ExchangePattern::fromLists(CommunicatorContext::of(MPI_COMM_WORLD), [&] { return mine(scattered); });
    }
    template <class Pair>
    static Pair field(const std::shared_ptr<const ExchangePattern> &pattern) {
        Pair pair = emptyPair<Pair>();
        pair.father->resize(pattern->fatherSize());
        pair.transAttach();
        pair.trans.usePattern(pattern);
        pair.trans.createMPITypes();
        return pair;
    }
    static real value(int rank, index row) { return static_cast<real>(100 * (rank + 1) + row); }
};

/// A pull by `pattern` of a field on the ring whose ghosts were -1: fails the test where other ghosts than those in
/// `moved` have changed, or these have not.
void expectPulls(const RealField &u, const std::set<index> &moved) {
    const auto ghosts = u.trans.ghostMapping()->ghosts();
    const auto son = std::as_const(*u.son).view();
    for (index k = 0; k < son.size(); ++k)
        for (rowsize j = 0; j < 5; ++j)
            EXPECT_EQ(son(k, j), moved.contains(k) ? ringValue<real>(ghosts[static_cast<std::size_t>(k)], j, 1) : -1)
                << "ghost " << k;
}

void fillGhosts(RealField &u, real value) {
    auto son = u.son->view();
    for (index k = 0; k < son.size(); ++k)
        for (rowsize j = 0; j < 5; ++j)
            son(k, j) = value;
}

TEST(ExchangePattern, NeedsAMapping) { EXPECT_THROW(ExchangePattern(nullptr), StateError); }

/// Whether ghosts of one owner are scattered.
class ExchangePatternByHand : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ghosts, ExchangePatternByHand, testing::Bool(),
                         [](const auto &scattered) { return scattered.param ? "Scattered" : "InRanges"; });

TEST_P(ExchangePatternByHand, MovesRowsOfOneWidth) {
    const auto pattern = Hand::pattern(GetParam());
    EXPECT_EQ(pattern->mapping(), nullptr);
    const auto peers = Hand::lonely(worldRank()) ? 0 : worldSize() - (worldSize() > 2 ? 1 : 0);
    EXPECT_EQ(pattern->readers().size(), static_cast<std::size_t>(peers));
    EXPECT_EQ(pattern->readers().size(), pattern->owners().size());
    for (const RowList &list : pattern->owners().lists)
        EXPECT_EQ(list.isRange(), !GetParam() || list.count() == 1);
    for (const TransportKind kind : allTransports()) {
        SCOPED_TRACE(transportName(kind));
        auto u = Hand::field<RealField>(pattern);
        EXPECT_EQ(u.trans.ghostMapping(), nullptr);
        EXPECT_EQ(u.father->globalMapping(), nullptr);
        for (index row = 0; row < u.father->size(); ++row)
            for (rowsize j = 0; j < 5; ++j)
                (*u.father)(row, j) = Hand::value(worldRank(), row) + j;
        fillGhosts(u, -1);
        u.trans.initPersistentPull({.transport = kind});
        u.trans.startPersistentPull();
        u.trans.waitPersistentPull();
        const auto ghosts = Hand::ghosts(GetParam());
        for (std::size_t k = 0; k < ghosts.size(); ++k)
            for (rowsize j = 0; j < 5; ++j)
                EXPECT_EQ((*u.son)(static_cast<index>(k), j),
                          ghosts[k].first < 0 ? -1 : Hand::value(ghosts[k].first, ghosts[k].second) + j);
        // Each copy adds one, and ghosts without a sender are left alone.
        fillGhosts(u, 1);
        u.trans.pushOnce(PushOp::Sum, {.transport = kind, .ghosts = GhostsAfterPush::Zero});
        for (std::size_t k = 0; k < ghosts.size(); ++k)
            EXPECT_EQ((*u.son)(static_cast<index>(k), 4), ghosts[k].first < 0 ? 1 : 0);
        for (index row = 0; row < u.father->size(); ++row) {
            real copies = 0;
            for (int reader = 0; reader < worldSize(); ++reader)
                for (const index given : Hand::given(worldRank(), reader))
                    copies += given == row ? 1 : 0;
            EXPECT_EQ((*u.father)(row, 0), Hand::value(worldRank(), row) + copies) << "row " << row;
        }
    }
}

TEST_P(ExchangePatternByHand, MovesRowsOfTheirOwnSizes) {
    using Csr = ArrayPair<ParArray<real, NonUniformSize, NonUniformSize>>;
    const auto pattern = Hand::pattern(GetParam());
    Csr u = emptyPair<Csr>();
    u.father->resize(pattern->fatherSize(), [](index row) { return static_cast<rowsize>(row % 3); });
    u.transAttach();
    u.trans.usePattern(pattern);
    u.trans.createMPITypes();
    for (index row = 0; row < u.father->size(); ++row)
        for (rowsize j = 0; j < u.father->rowSize(row); ++j)
            (*u.father)(row, j) = Hand::value(worldRank(), row) + j;
    u.trans.pullOnce();
    const auto ghosts = Hand::ghosts(GetParam());
    for (std::size_t k = 0; k < ghosts.size(); ++k) {
        const auto [owner, row] = ghosts[k];
        ASSERT_EQ(u.son->rowSize(static_cast<index>(k)), owner < 0 ? 0 : row % 3);
        for (rowsize j = 0; owner >= 0 && j < row % 3; ++j)
            EXPECT_EQ((*u.son)(static_cast<index>(k), j), Hand::value(owner, row) + j);
    }
}

TEST(ExchangePattern, FromListsOfRowsIsForAsManyRows) {
    const auto pattern = Hand::pattern();
    RealField u = emptyPair<RealField>();
    u.father->resize(pattern->fatherSize() + (worldRank() == 0 ? 1 : 0));
    u.transAttach();
    expectContains(messageOnAll<StateError>([&] { u.trans.usePattern(pattern); }),
                   "'u' has 7 rows, but the pattern has 6");
}

TEST(ExchangePattern, ListsThatDoNotFitNameThePair) {
    const int reader = worldSize() > 2 ? worldSize() - 2 : worldSize() - 1;
    const std::string text = messageOnAll<StateError>([&] {
        (void)ExchangePattern::fromLists(CommunicatorContext::of(MPI_COMM_WORLD), [&] {
            auto rows = Hand::mine();
            if (worldRank() == 0) {
                RankLists longer;
                for (std::size_t k = 0; k < rows.given.size(); ++k) {
                    const auto list = rows.given.list(k);
                    std::vector<index> given(list.begin(), list.end());
                    if (rows.given.ranks[k] == reader)
                        given.push_back(0);
                    longer.append(rows.given.ranks[k], given);
                }
                rows.given = longer;
            }
            return rows;
        });
    });
    const auto count = Hand::given(0, reader).size();
    expectContains(text, fmt::format("rank 0 gives {} rows to rank {}, which expects {}", count + 1, reader, count));

    // One that gives nothing, and does not know that it should.
    const std::string silent = messageOnAll<StateError>([&] {
        (void)ExchangePattern::fromLists(CommunicatorContext::of(MPI_COMM_WORLD), [&] {
            auto rows = Hand::mine();
            if (worldRank() == 0)
                rows.given = {};
            return rows;
        });
    });
    expectContains(silent, "rank 0 gives 0 rows to rank");
    (void)Hand::pattern(); // and the next one is made
}

TEST(ExchangePattern, WrongListsOfOneRankThrowOnAll) {
    const auto refused = [](auto &&spoil) {
        return [spoil] {
            (void)ExchangePattern::fromLists(CommunicatorContext::of(MPI_COMM_WORLD), [&] {
                auto rows = Hand::mine();
                if (worldRank() == 0)
                    spoil(rows);
                return rows;
            });
        };
    };
    expectContains(messageOnAll<IndexError>(refused([](auto &rows) { rows.given.values.back() = Hand::rows; })),
                   "row 6 is in the list of given rows");
    expectContains(messageOnAll<IndexError>(refused([](auto &rows) { rows.received.values.back() = -1; })),
                   "row -1 is in the list of received rows");
    expectContains(messageOnAll<ArgumentError>(
                       refused([](auto &rows) { rows.received.values.back() = rows.received.values.front(); })),
                   "received twice");
    expectContains(messageOnAll<ArgumentError>(refused([](auto &rows) { rows.given.ranks.back() = worldSize(); })),
                   "in the order of ranks");
    expectContains(messageOnAll<ArgumentError>(refused([](auto &rows) { rows.received.starts.pop_back(); })), "starts");
    EXPECT_THROW((void)ExchangePattern::fromLists(nullptr, [] { return Hand::mine(); }), ArgumentError);
}

TEST(ExchangePattern, RestrictedMovesTheGhostsThatReadersName) {
    auto u = ringField();
    const auto all = u.trans.pattern();
    // Of each owner the first ghost: one range. The last rank wants nothing.
    std::vector<index> wanted;
    for (std::size_t k = 0; k < all->owners().size() && worldRank() < std::max(1, worldSize() - 1); ++k) {
        const index first = all->owners().starts[k];
        wanted.insert(wanted.begin(), {first, first});
    }
    const auto some = all->restrictedTo(wanted);
    EXPECT_EQ(some->mapping(), all->mapping());
    EXPECT_EQ(some->sonSize(), all->sonSize());
    EXPECT_TRUE(std::ranges::includes(all->boundaryRows(), some->boundaryRows()));
    for (const TransportKind kind : allTransports()) {
        SCOPED_TRACE(transportName(kind));
        fill(u, 1);
        fillGhosts(u, -1);
        Exchange pull(some, Direction::Pull, {u.trans.member()}, {.transport = kind});
        pull.start();
        pull.wait();
        expectPulls(u, {wanted.begin(), wanted.end()});
    }
    // A restriction of the restriction is one of the whole, too; nothing moves.
    const auto none = some->restrictedTo({});
    EXPECT_EQ(none->owners().size(), 0U);
    EXPECT_EQ(none->readers().size(), 0U);
    fillGhosts(u, -1);
    Exchange nothing(none, Direction::Pull, {u.trans.member()});
    nothing.start();
    nothing.wait();
    expectPulls(u, {});
    EXPECT_TRUE(none->moves(all.get()));
    EXPECT_TRUE(none->moves(some.get()));
    EXPECT_FALSE(all->moves(some.get()));
    EXPECT_FALSE(none->moves(nullptr));
}

TEST(ExchangePattern, RestrictingDifferentPatternsThrowsOnAllRanks) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    const auto first = ringField("first");
    const auto second = ringField("second");
    std::vector<index> wanted(static_cast<std::size_t>(first.son->size()));
    std::iota(wanted.begin(), wanted.end(), index{0});
    const auto &mine = worldRank() == 0 ? first : second;
    expectContains(messageOnAll<StateError>([&] { (void)mine.trans.pattern()->restrictedTo(wanted); }),
                   "restrict them in the same order on all ranks");
}

TEST(ExchangePattern, RestrictionRefusesWhatIsNoGhost) {
    const auto u = ringField();
    const auto all = u.trans.pattern();
    const auto one = [](index row) { return worldRank() == 0 ? std::vector<index>{row} : std::vector<index>(); };
    expectContains(messageOnAll<IndexError>([&] { (void)all->restrictedTo(one(all->sonSize())); }),
                   "there is no ghost");
    expectContains(messageOnAll<IndexError>([&] { (void)all->restrictedTo(one(-1)); }), "there is no ghost -1");
    const auto none = all->restrictedTo({});
    expectContains(messageOnAll<IndexError>([&] { (void)none->restrictedTo(one(0)); }), "nobody sends ghost 0");
    const ExchangePattern local(u.trans.ghostMapping());
    EXPECT_THROW((void)local.restrictedTo({}), StateError);
    // Arrays of another pattern are not moved.
    auto other = ringField("other");
    EXPECT_THROW((void)Exchange(none, Direction::Pull, {other.trans.member()}), StateError);
}

} // namespace
} // namespace DNDS
