// Ghosts in boxes within an owner's and a reader's arrays, on a node: long runs are written where they belong, short
// ones pass through a slot, and neither side need be in time.

#include "NodeSharedCase.hpp"

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Transport/BoxToBox.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

using Cells = ParArray<real, DynamicSize>;

/// Every rank has a cube of cells and, for each rank (itself included), ghosts of that rank's cube, all in one array
/// and with room around them: a slab of two layers, and the first column of the other two. Owners count in other
/// directions than readers, if asked.
struct Cubes {
    static constexpr index n = 4;
    static constexpr index room = n + 2;
    static constexpr index cube = room * room * room;

    explicit Cubes(CommunicatorView onRanks, bool areTurned = false) : comm(onRanks), turned(areTurned) {}

    static index row(index place, index i, index j, index k) {
        return place * cube + ((i + 1) * room + j + 1) * room + k + 1;
    }
    index rows() const { return (comm.size() + 1) * cube; }
    /// Ghosts of `owner`, in the order in which they are given.
    static std::vector<RowBox> received(int owner) {
        const index place = owner + 1;
        return {{row(place, 0, 0, 0), {1, 1, 2, n, n}, {0, 0, room * room, room, 1}},
                {row(place, 2, 0, 0), {1, 1, 2, n, 1}, {0, 0, room * room, room, 1}}};
    }
    /// The cells of `owner` that are these ghosts of `reader`.
    std::vector<RowBox> given(int owner, int reader) const {
        std::vector<RowBox> boxes = received(-1);
        if (!turned)
            return boxes;
        const std::array<index, 3> strides{room * room, room, 1};
        const std::size_t first = static_cast<std::size_t>(owner + reader) % 3;
        for (std::size_t b = 0; b < boxes.size(); ++b) {
            boxes[b].first = row(0, 0, 0, 0);
            for (std::size_t d = 0; d < 3; ++d) {
                const index stride = strides[(first + 2 * d) % 3];
                const bool back = (owner + 2 * reader + static_cast<int>(d)) % 2 == 0;
                index begin = b == 1 && d == 0 ? 2 : 0;
                if (back)
                    begin = n - 1 - begin;
                boxes[b].first += begin * stride;
                boxes[b].strides[2 + d] = back ? -stride : stride;
            }
        }
        return boxes;
    }
    /// `spoil` changes what rank 0 gives and receives.
    std::shared_ptr<const ExchangePattern> pattern(const std::function<void(ExchangePattern::Boxes &)> &spoil =
                                                       [](auto &) {}) const {
        return ExchangePattern::fromBoxes(CommunicatorContext::of(comm.handle()), [&] {
            ExchangePattern::Boxes boxes;
            boxes.fatherSize = boxes.sonSize = rows();
            for (int peer = 0; peer < comm.size(); ++peer) {
                boxes.given.append(peer, RowList::boxes(given(comm.rank(), peer)));
                boxes.received.append(peer, RowList::boxes(received(peer)));
            }
            if (comm.rank() == 0)
                spoil(boxes);
            return boxes;
        });
    }

    CommunicatorView comm;
    bool turned;
};

/// Values on cubes, in rows of some doubles.
struct CubeField {
    CubeField(const Cubes &on, rowsize width, const std::string &name = "cubes")
        : cubes(on), cells(std::make_shared<Cells>(name, on.comm)) {
        cells->rehost(CommunicatorContext::of(on.comm)->node().arena); // exchanges do not move it there
        cells->resize(cubes.rows(), width);
    }

    static real value(int rank, index row, rowsize j, int version) {
        return 1e8 * (rank + 1) + 1e5 * version + 50.0 * static_cast<real>(row) + static_cast<real>(j);
    }
    /// Gives everything the values of this rank; what is a ghost then has to come from elsewhere.
    void fill(int version) {
        for (index row = 0; row < cells->size(); ++row)
            for (rowsize j = 0; j < cells->rowSize(row); ++j)
                (*cells)(row, j) = value(cubes.comm.rank(), row, j, version);
    }
    /// Only the cells, as solvers do.
    void fillCells(int version) {
        for (index row = 0; row < Cubes::cube; ++row)
            for (rowsize j = 0; j < cells->rowSize(row); ++j)
                (*cells)(row, j) = value(cubes.comm.rank(), row, j, version);
    }
    /// The number of values that are not those of `version`, or are no ghosts and were changed since `filled`; of the
    /// ghosts only those whose owner `isChecked`.
    index wrong(
        int version, int filled, const std::function<bool(int)> &isChecked = [](int) { return true; }) const {
        std::vector<std::pair<int, index>> sources(static_cast<std::size_t>(cells->size()), {-1, 0});
        for (int owner = 0; owner < cubes.comm.size(); ++owner) {
            std::vector<index> from;
            RowList::boxes(cubes.given(owner, cubes.comm.rank())).forEach([&](index row) { from.push_back(row); });
            std::size_t k = 0;
            RowList::boxes(Cubes::received(owner)).forEach([&](index row) {
                sources[static_cast<std::size_t>(row)] = {owner, from[k++]};
            });
        }
        index count = 0;
        for (index row = 0; row < cells->size(); ++row)
            for (rowsize j = 0; j < cells->rowSize(row); ++j) {
                const auto [owner, from] = sources[static_cast<std::size_t>(row)];
                const real expected = owner < 0 ? value(cubes.comm.rank(), row, j, row < Cubes::cube ? version : filled)
                                                : value(owner, from, j, version);
                if (owner < 0 || isChecked(owner))
                    count += std::as_const(*cells)(row, j) == expected ? 0 : 1;
            }
        return count;
    }
    ExchangeMember member() const {
        const auto layout = [array = cells](MemorySpace space, Access access, RowLayout &into) {
            array->rowLayout(space, access, into);
        };
        return {.name = std::string(cells->label()),
                .father = layout,
                .son = layout,
                .onDevice = [array = cells] { return array->valid(MemorySpace::Device); },
                .pattern = nullptr};
    }
    std::unique_ptr<Exchange> makePull(std::shared_ptr<const ExchangePattern> pattern,
                                       const ExchangeOptions &options = {}) const {
        return std::make_unique<Exchange>(std::move(pattern), Direction::Pull, std::vector{member()}, options);
    }
    /// One pull of a version of all rows.
    void pullOnce(std::shared_ptr<const ExchangePattern> pattern, int version, const ExchangeOptions &options = {}) {
        const auto pull = makePull(std::move(pattern), options);
        fill(version);
        pull->start();
        pull->wait();
    }

    Cubes cubes;
    std::shared_ptr<Cells> cells;
};

/// The bytes that pass through slots, of rows of `bytes` bytes: 32 in runs of 4 rows, 8 in runs of one.
void expectSlots(const Exchange &pull, std::size_t bytes, bool inArena = true) {
    const std::size_t slab = inArena && 4 * bytes >= shortestRunInPlace ? 0 : 32 * bytes;
    const std::size_t column = inArena && bytes >= shortestRunInPlace ? 0 : 8 * bytes;
    for (const PeerPath &path : pull.paths()) {
        const bool shared = path.transport == TransportKind::NodeShared;
        EXPECT_EQ(path.bytesReceived, 40 * bytes);
        EXPECT_EQ(path.bytesThroughSlot, shared ? slab + column : 0) << "rank " << path.peer;
        const char *why = inArena ? "in runs of less than 96 bytes" : "the array is not in the memory that the node";
        EXPECT_EQ(path.why.find(why) != std::string::npos, path.bytesThroughSlot > 0) << path.why;
        if (path.bytesThroughSlot > 0) {
            EXPECT_NE(pull.describe().find(why), std::string::npos) << pull.describe();
        }
    }
}

class NodeSharedBoxes : public testing::Test {
  protected:
    World world;

    bool inArena(const Cells &cells) const { return world.arena()->locate(cells.data()).has_value(); }
};

TEST_F(NodeSharedBoxes, RowsOfAnyWidthArriveWhicheverWayTheyGo) {
    const World nodes(2);
    for (const bool turned : {false, true})
        for (const rowsize width : {1, 2, 3, 5, 8, 11, 12, 25}) { // 8, 16, 24, 40, 64, 88, 96, 200 bytes
            SCOPED_TRACE(width);
            const Cubes cubes(width == 2 || width == 5 ? nodes.comm() : world.comm(), turned);
            CubeField u(cubes, width);
            const auto pull = u.makePull(cubes.pattern());
            u.fill(0);
            for (int version = 1; version <= 40; ++version) { // every way of storing is tried
                u.fillCells(version);
                pull->start();
                pull->wait();
                ASSERT_EQ(u.wrong(version, 0), 0) << "version " << version;
            }
            expectSlots(*pull, static_cast<std::size_t>(width) * sizeof(real));
        }
}

TEST_F(NodeSharedBoxes, OtherTransportsMoveTheSame) {
    const Cubes cubes(world.comm(), true);
    forEachTransport([&](const ExchangeOptions &options) {
        CubeField u(cubes, 5);
        u.pullOnce(cubes.pattern(), 1, options);
        EXPECT_EQ(u.wrong(1, 1), 0);
    });
}

TEST_F(NodeSharedBoxes, OfARestrictionTheChosenGhostsMove) {
    const Cubes cubes(world.comm(), true);
    const auto pattern = cubes.pattern();
    const int me = cubes.comm.rank();
    std::set<index> some;
    for (int owner = 0; owner < cubes.comm.size(); ++owner)
        RowList::boxes(Cubes::received(owner)).forEach([&](index row) {
            if ((row * 7 + me) % 3 == 0)
                some.insert(row);
        });
    CubeField u(cubes, 5), all(cubes, 5);
    all.pullOnce(pattern, 1);
    u.pullOnce(pattern->restrictedTo(std::vector<index>(some.begin(), some.end())), 1);
    for (index row = 0; row < cubes.rows(); ++row)
        for (rowsize j = 0; j < 5; ++j)
            ASSERT_EQ((*u.cells)(row, j), some.contains(row) ? (*all.cells)(row, j) : CubeField::value(me, row, j, 1));
}

TEST_F(NodeSharedBoxes, PatternsKnowBoundaryRows) {
    const Cubes cubes(world.comm(), true);
    std::set<index> given;
    for (int reader = 0; reader < cubes.comm.size(); ++reader)
        RowList::boxes(cubes.given(cubes.comm.rank(), reader)).forEach([&](index row) { given.insert(row); });
    EXPECT_TRUE(std::ranges::equal(cubes.pattern()->boundaryRows(), given));
}

TEST_F(NodeSharedBoxes, WrongBoxesOfOneRankThrowOnAll) {
    using Boxes = ExchangePattern::Boxes;
    const Cubes cubes(world.comm());
    const auto made = [&](const std::function<void(Boxes &)> &spoil) {
        return [&, spoil] { (void)cubes.pattern(spoil); };
    };
    const auto peer = static_cast<std::size_t>(cubes.comm.size() - 1);
    const RowBox before{-1, {1, 1, 1, 1, 2}, {0, 0, 0, 0, 7}}, twice{1, {1, 1, 1, 2, 2}, {0, 0, 0, 1, 1}};
    expectContains(messageOnAll<IndexError>(made([&](Boxes &all) {
                       all.received.lists[0] = RowList::boxes({&before, 1});
                   })),
                   "row -1 is in the boxes of received rows");
    expectContains(messageOnAll<IndexError>(made([](Boxes &all) { all.given.lists[0] = RowList(5, 99999); })),
                   "row 99998 is in the boxes of given rows");
    expectContains(messageOnAll<ArgumentError>(made([&](Boxes &all) {
                       all.received.lists[0] = RowList::boxes({&twice, 1});
                   })),
                   "ghost 2 is received twice");
    // Runs longer than a machine word, one of them starting where the other ends.
    const RowBox runs{0, {1, 1, 1, 2, 130}, {0, 0, 0, 129, 1}};
    expectContains(messageOnAll<ArgumentError>(made([&](Boxes &all) {
                       all.received.lists[0] = RowList::boxes({&runs, 1});
                   })),
                   "ghost 129 is received twice");
    const std::vector<index> rows{3, 1};
    expectContains(messageOnAll<ArgumentError>(made([&](Boxes &all) { all.given.lists[0] = RowList(rows); })),
                   "make boxes or a range");
    expectContains(messageOnAll<StateError>(made([&](Boxes &all) { all.given.lists[peer] = RowList(0, 1); })),
                   "rank 0 gives 1 rows to rank");
    (void)cubes.pattern(); // and the next one is made
}

TEST_F(NodeSharedBoxes, LongRunsAreInPlaceBeforeWaitUnpacksAnything) {
    const Cubes cubes(world.comm(), true);
    CubeField u(cubes, 25);
    const auto pull = u.makePull(cubes.pattern());
    u.fill(0);
    for (int version = 1; version <= 3; ++version) {
        u.fillCells(version);
        pull->start();
        while (!pull->ready())
            std::this_thread::yield();
        const auto paths = pull->paths();
        const auto sharesMemory = [&](int owner) {
            return paths[static_cast<std::size_t>(owner)].transport == TransportKind::NodeShared;
        };
        EXPECT_EQ(u.wrong(version, 0, sharesMemory), 0) << "version " << version;
        pull->wait();
    }
}

TEST_F(NodeSharedBoxes, ArraysOutsideOfTheArenaGetTheirRowsThroughASlot) {
    const Cubes cubes(world.comm(), true);
    CubeField u(cubes, 5);
    const auto pull = u.makePull(cubes.pattern());
    u.fill(0);
    int version = 0;
    const bool odd = world.comm().rank() % 2 == 1;
    for (int round = 0; round < 8; ++round) {
        SCOPED_TRACE(round);
        const bool outside = round % 2 == 1 && (odd || round > 4);
        u.cells->rehost(outside || !world.arena() ? nullptr : world.context->node().arena);
        for (int repeat = 0; repeat < 3; ++repeat) {
            u.fillCells(++version);
            pull->start();
            pull->wait();
            ASSERT_EQ(u.wrong(version, 0), 0);
        }
        expectSlots(*pull, 5 * sizeof(real), !outside);
        if (world.arena()) {
            EXPECT_EQ(inArena(*u.cells), !outside);
        }
    }
}

TEST_F(NodeSharedBoxes, SwappedArraysGetTheirRowsWhereTheyAre) {
    const Cubes cubes(world.comm());
    const auto pattern = cubes.pattern();
    CubeField u(cubes, 5, "u");
    CubeField old(cubes, 5, "old");
    const auto pull = u.makePull(pattern);
    const auto pullOld = old.makePull(pattern);
    u.fill(0);
    old.fill(0);
    for (int version = 1; version <= 40; ++version) {
        if (version % 3 != 0)
            u.cells->swapData(*old.cells);
        if (version == 20)
            u.cells->rehost(nullptr); // from now on one of the two is outside
        u.fillCells(version);
        old.fillCells(version);
        pull->start();
        pullOld->start();
        pull->wait();
        pullOld->wait();
        ASSERT_EQ(u.wrong(version, 0), 0) << "version " << version;
        ASSERT_EQ(old.wrong(version, 0), 0) << "version " << version;
    }
}

TEST_F(NodeSharedBoxes, ManyBlocksWithLongAndShortRuns) {
    const std::vector<index> shape{12, 10, 40};
    const IndexSpace space{"space", Box::ofShape(shape), {true, true, true}};
    for (const std::vector<index> &blocks : std::vector<std::vector<index>>{{4, 5, 40}, {5, 4, 20}, {12, 10, 11}})
        for (const rowsize components : {1, 5, 25}) {
            SCOPED_TRACE(components);
            const auto grid = BlockGrid::blocksOf(world.comm(), space, blocks);
            BlockField<real> u("u", world.comm(), grid, {.ghosts = {1, 2, 2}, .components = components});
            expectExchanges(u, modulo(space));
            u.initExchangeGhosts();
            std::size_t slots = 0;
            bool shared = false;
            for (const PeerPath &path : u.ghostPaths()) {
                EXPECT_LE(path.bytesThroughSlot, path.bytesReceived);
                slots += path.bytesThroughSlot;
                shared = shared || path.transport == TransportKind::NodeShared;
            }
            EXPECT_EQ(slots > 0, shared && components < 25) << "no row of 200 bytes is short";
        }
}

} // namespace
} // namespace DNDS
