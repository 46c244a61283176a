// Pushes of sparse fields, compared with dense pushes, with brute force, and with runs on one rank.

#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Mpi/Survival.hpp"
#include "DNDS/Sparse/DevicePath.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"
#include "support/ScopedVariable.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

namespace DNDS::test {
namespace {

/// That of the test, on which its way of messages is chosen.
MPI_Comm inUse = MPI_COMM_WORLD;
CommunicatorView world() { return {inUse}; }

struct Pushed;

/// On the host, and on the device with each way of messages there.
class SparsePushes : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override {
        if (!onDevice())
            return;
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
        transport.emplace("DNDS_TRANSPORT", GetParam());
        owner = Communicator::duplicate(MPI_COMM_WORLD);
        if (const auto whyNot = whyNotBy(GetParam(), owner.view()))
            GTEST_SKIP() << *whyNot;
        inUse = owner.view().handle();
    }
    void TearDown() override { inUse = MPI_COMM_WORLD; }
    static bool onDevice() { return GetParam() != std::string_view("host"); }
    /// Runs `call` with the fields where the test wants them.
    template <class Call>
    static void run(const std::vector<SparseFieldCore *> &fields, Call &&call) {
        for (SparseFieldCore *field : fields)
            if (onDevice())
                field->toDevice();
        call();
        for (SparseFieldCore *field : fields)
            field->toHost();
    }
    template <class T>
    static void expectTheDensePush(const std::shared_ptr<const SparsePattern> &pattern,
                                   const std::shared_ptr<const BlockPattern> &densePattern, PushOp op,
                                   std::uint64_t round);
    static Pushed pushAndPull(const SparseGrid &grid, const CommunicatorView &comm);

    std::optional<ScopedVariable> transport;
    const ScopedVariable pretend{"DNDS_EMULATED_DEVICE", "gpu-aware-mpi"};
    Communicator owner;
};

/// The grids of all tests, and some random ones: the same on all ranks.
std::vector<SparseGrid> gridsToPush() {
    std::vector<SparseGrid> grids = sparseGrids();
    for (std::uint64_t k = 0; k < 4; ++k) {
        std::uint64_t draws = 0;
        const auto upTo = [&](index most) {
            return static_cast<index>(drawn(static_cast<std::uint64_t>(most) + 1, {k, ++draws, 77}));
        };
        const int dims = 1 + static_cast<int>(upTo(2));
        IndexSpace space{"random", Box(dims, {}, {}), {}};
        std::vector<index> shape;
        GhostWidths ghosts;
        for (int d = 0; d < dims; ++d) {
            const std::size_t at = toSize(d);
            space.cells.lower[at] = upTo(5) - 2;
            space.cells.upper[at] = space.cells.lower[at] + 4 + upTo(dims == 3 ? 5 : 12);
            space.periodic[at] = upTo(2) > 0;
            shape.push_back(2 + upTo(4));
            ghosts.low[at] = upTo(2);
            ghosts.high[at] = upTo(2);
        }
        grids.push_back({"random", {space}, shape, ghosts});
    }
    return grids;
}

/// Calls `visit(local indices, number in the block, whether it is a ghost)` for all cells and ghosts of a block.
template <class Visit>
void forEachElement(const BlockMemory &block, Visit &&visit) {
    std::uint64_t number = 0;
    forEachIn(block, block.extent, [&](const IndexVector &local, const IndexVector &cell) {
        visit(local, number++, !block.cells.contains(cell));
    });
}

template <class T>
T identityOf(PushOp op) {
    using Limits = std::numeric_limits<T>;
    if (op == PushOp::Sum)
        return 0;
    if (op == PushOp::Min)
        return Limits::has_infinity ? Limits::infinity() : Limits::max();
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

/// A sparse field at threshold 0 and a dense one with the same contents: deposits in some ghosts of some blocks.
template <class T>
void SparsePushes::expectTheDensePush(const std::shared_ptr<const SparsePattern> &pattern,
                                      const std::shared_ptr<const BlockPattern> &densePattern, PushOp op,
                                      std::uint64_t round) {
    constexpr rowsize components = 2;
    const T background = identityOf<T>(op);
    SparseField<T> sparse("sparse", pattern, {.components = components, .stages = 2}, background);
    BlockField<T> dense("dense", world(), densePattern, components);
    std::fill_n(dense.array().data(), dense.blockPattern()->rows() * components, background);
    for (int b = 0; b < sparse.blocks(); ++b) {
        const auto number = static_cast<std::uint64_t>(sparse.block(b).block);
        if (drawn(3, {number, round}) != 0)
            continue;
        sparse.allocate(b);
        forEachElement(sparse.block(b), [&](const IndexVector &cell, std::uint64_t n, bool /*ghost*/) {
            for (rowsize c = 0; c < components; ++c)
                if (drawn(4, {number, round, n, toSize(c)}) == 0)
                    at(sparse.view(b), cell, c) = at(dense.view(b), cell, c) =
                        static_cast<T>(1 + drawn(50, {number, round, n, toSize(c), 1}));
        });
    }
    ExchangeGroup group;
    group.add(dense);
    group.pushOnce(op, op == PushOp::Sum ? ExchangeOptions{.ghosts = GhostsAfterPush::Zero} : ExchangeOptions{});
    run({&sparse}, [&] { sparse.pushGhosts(op); });
    for (int b = 0; b < sparse.blocks(); ++b) {
        const auto whole = elementsOf(std::as_const(dense).view(b));
        if (!sparse.isAllocated(b)) {
            forEachIn(sparse.block(b), sparse.block(b).cells, [&](const IndexVector &cell, const IndexVector &) {
                EXPECT_EQ(at(dense.view(b), cell, 0), background) << "an absent block should have got something";
            });
            continue;
        }
        if (op == PushOp::Sum) { // ghosts and walls, too
            EXPECT_TRUE(sameBits(elementsOf(std::as_const(sparse).view(b)), whole));
        }
        forEachIn(sparse.block(b), sparse.block(b).cells, [&](const IndexVector &cell, const IndexVector &) {
            for (rowsize c = 0; c < components; ++c)
                EXPECT_EQ(at(sparse.view(b), cell, c), at(dense.view(b), cell, c));
        });
    }
    EXPECT_EQ(sparse.exchange().traffic().frees, 0U);
}

TEST_P(SparsePushes, AreTheDenseOnesAtThreshold0) {
    for (const SparseGrid &grid : gridsToPush()) {
        SCOPED_TRACE(grid.name);
        const auto blocks = grid.on(world());
        const auto sparse = SparsePattern::make(world(), blocks, grid.ghosts);
        const auto dense = BlockPattern::make(world(), blocks, grid.ghosts);
        expectTheDensePush<real>(sparse, dense, PushOp::Sum, 0);
        expectTheDensePush<std::int8_t>(sparse, dense, PushOp::Sum, 1); // wraps around
        expectTheDensePush<float>(sparse, dense, PushOp::Min, 2);
        expectTheDensePush<std::int32_t>(sparse, dense, PushOp::Min, 3);
        expectTheDensePush<real>(sparse, dense, PushOp::Max, 4);
        expectTheDensePush<std::uint64_t>(sparse, dense, PushOp::Max, 5);
    }
}

/// The cell that each ghost stands for, by a pull of numbers: block << 32 | cell; -1 for none.
BlockField<std::int64_t> cellNumbers(const SparseGrid &grid, const std::shared_ptr<const BlockGrid> &blocks) {
    BlockField<std::int64_t> numbers("numbers", world(), blocks, {.ghosts = grid.ghosts});
    for (int b = 0; b < numbers.blocks(); ++b)
        forEachElement(numbers.block(b), [&](const IndexVector &cell, std::uint64_t n, bool ghost) {
            at(numbers.view(b), cell, 0) =
                ghost ? -1 : static_cast<std::int64_t>(n) | static_cast<std::int64_t>(numbers.block(b).block) << 32;
        });
    numbers.exchangeGhosts();
    return numbers;
}

/// A deposit into a cell.
struct Given {
    std::int64_t cell;
    real value;
};

/// Loud and quiet deposits, multiples of 1/64, whose sums are exact in any order.
TEST_P(SparsePushes, AllocateAboveTheThresholdAndCountTheRest) {
    constexpr real threshold = 0.75;
    for (const SparseGrid &grid : gridsToPush())
        for (std::uint64_t round = 0; round < 3; ++round) {
            SCOPED_TRACE(grid.name);
            const auto blocks = grid.on(world());
            SparseField<real> u("u", SparsePattern::make(world(), blocks, grid.ghosts),
                                {.stages = 2, .allocationThreshold = threshold, .sendBelowThreshold = round != 1});
            const auto numbers = cellNumbers(grid, blocks);
            std::vector<Given> mine;
            std::map<std::int64_t, real> expected; // cells of this rank
            std::vector<char> there(blocks->blocks().size());
            for (int b = 0; b < u.blocks(); ++b) {
                const auto number = static_cast<std::uint64_t>(u.block(b).block);
                if (drawn(4, {number, round, 3}) != 0)
                    continue;
                u.allocate(b);
                there[number] = 1;
                forEachElement(u.block(b), [&](const IndexVector &cell, std::uint64_t n, bool ghost) {
                    const bool loud = drawn(9, {number, round, n, 4}) == 0 && drawn(3, {number, round, 5}) == 0;
                    const real value = (loud ? 1 : -0.5) * static_cast<real>(drawn(65, {number, round, n})) / 64;
                    at(u.view(b), cell, 0) = value;
                    const std::int64_t of = at(numbers.view(b), cell, 0);
                    if (ghost && of >= 0 && value != 0)
                        mine.push_back({of, value});
                    if (!ghost)
                        expected[of] = value;
                });
            }
            std::vector<int> before(there.begin(), there.end());
            world().allReduce(before.data(), static_cast<int>(before.size()), MPI_MAX);
            const std::vector<Given> all = world().allGatherV(std::span<const Given>(mine));
            std::vector<int> after = before;
            for (const Given &given : all)
                if (std::abs(given.value) > threshold)
                    after[static_cast<std::size_t>(given.cell >> 32)] = 1;
            real lost = 0;
            for (const Given &given : all)
                if (after[static_cast<std::size_t>(given.cell >> 32)] == 0)
                    lost += given.value;
                else
                    expected[given.cell] += given.value; // and some of others
            const DroppedSums<real> dropped(u);
            run({&u}, [&] { u.pushGhosts(); });
            EXPECT_EQ(dropped.sums()[0], lost);
            for (int b = 0; b < u.blocks(); ++b) {
                ASSERT_EQ(u.isAllocated(b), after[toSize(u.block(b).block)] == 1) << "block " << u.block(b).block;
                if (!u.isAllocated(b))
                    continue;
                forEachElement(u.block(b), [&](const IndexVector &cell, std::uint64_t, bool ghost) {
                    const std::int64_t of = at(numbers.view(b), cell, 0);
                    if (of >= 0) {
                        EXPECT_EQ(at(u.view(b), cell, 0), ghost ? 0 : expected[of]);
                    }
                    if (before[toSize(u.block(b).block)] == 0) {
                        EXPECT_EQ(at(u.view(b, 1), cell, 0), 0);
                    }
                });
            }
            EXPECT_EQ(u.exchange().traffic().allocations, [&] {
                std::uint64_t made = 0;
                for (int b = 0; b < u.blocks(); ++b)
                    made += after[toSize(u.block(b).block)] - before[toSize(u.block(b).block)] == 1 ? 1U : 0U;
                return made;
            }());
        }
}

/// Result of a run on some ranks: blocks by field and number, and sums of what was dropped.
struct Pushed {
    std::map<std::pair<std::string, int>, std::vector<real>> blocks;
    std::vector<real> dropped;
};

/// Three fields, pushed and pulled in turn: sums of real numbers of any size.
Pushed SparsePushes::pushAndPull(const SparseGrid &grid, const CommunicatorView &comm) {
    const auto pattern = SparsePattern::make(comm, grid.on(comm), grid.ghosts);
    SparseField<real> mass("mass", pattern,
                           {.components = 2, .stages = 2, .allocationThreshold = 1e-2, .deallocationThreshold = 1e-3});
    SparseField<float> heat("heat", pattern, {.deallocationCount = 2});
    SparseField<std::int32_t> count("count", pattern, {.allocationThreshold = 3, .deallocationCount = 0});
    SparseFields all("all", {&mass, &heat, &count});
    const DroppedSums<real> dropped(mass);
    const auto deposit = [&](auto &field, std::uint64_t round) {
        using T = typename std::remove_reference_t<decltype(field)>::Element;
        field.clearGhosts();
        for (int b = 0; b < field.blocks(); ++b) {
            const auto number = static_cast<std::uint64_t>(field.block(b).block);
            if (drawn(5, {number, round, 6}) == 0)
                field.allocate(b);
            if (!field.isAllocated(b))
                continue;
            forEachElement(field.block(b), [&](const IndexVector &cell, std::uint64_t n, bool) {
                for (rowsize c = 0; c < field.components(); ++c) {
                    const auto draw = static_cast<real>(drawn(1000, {number, round, n, toSize(c)}));
                    at(field.view(b), cell, c) +=
                        static_cast<T>(draw * std::pow(2.7, -static_cast<real>(drawn(20, {number, round, 8}))));
                }
            });
        }
    };
    for (std::uint64_t round = 0; round < 4; ++round) {
        deposit(mass, round);
        deposit(heat, round);
        deposit(count, round);
        run({&mass, &heat, &count}, [&] {
            all.startPushGhosts();
            while (!all.receiveBoundBufs()) {
            }
            all.finishPushGhosts();
            EXPECT_FALSE(all.inFlight());
            if (round % 2 == 1)
                all.exchangeGhosts();
        });
    }
    Pushed result{{}, dropped.sums()};
    const auto keep = [&](const auto &field) {
        for (const int b : field.allocatedBlocks()) {
            const auto elements = elementsOf(field.view(b));
            result.blocks[{field.name(), field.block(b).block}] = {elements.begin(), elements.end()};
        }
    };
    keep(mass);
    keep(heat);
    keep(count);
    return result;
}

TEST_P(SparsePushes, HaveTheSameBitsOnAnyNumberOfRanks) {
    for (const SparseGrid &grid : gridsToPush()) {
        SCOPED_TRACE(grid.name);
        const Pushed alone = pushAndPull(grid, {MPI_COMM_SELF});
        const Pushed together = pushAndPull(grid, world());
        EXPECT_TRUE(sameBits(together.dropped, alone.dropped));
        for (const auto &[block, elements] : together.blocks) {
            ASSERT_TRUE(alone.blocks.contains(block)) << block.first << " " << block.second;
            EXPECT_TRUE(sameBits(elements, alone.blocks.at(block))) << block.first << " " << block.second;
        }
        EXPECT_EQ(world().allReduce(static_cast<index>(together.blocks.size()), MPI_SUM),
                  static_cast<index>(alone.blocks.size()));
    }
}

/// Particles of mass 1 at multiples of 1/8 of a cell, each in the 2 x 2 cells that are nearest (cloud in cell).
TEST_P(SparsePushes, ParticlesNearFacesKeepTheirMass) {
    const SparseGrid grid{"torus", {{"torus", Box({0, 0}, {40, 24}), {true, true}}}, {8, 6}, {1, 1}};
    const auto blocks = grid.on(world());
    const auto pattern = SparsePattern::make(world(), blocks, grid.ghosts);
    for (const real threshold : {0.0, 0.02, 0.3}) {
        SparseField<real> mass("mass", pattern, {.allocationThreshold = threshold});
        const DroppedSums<real> dropped(mass);
        constexpr std::uint64_t particles = 200;
        for (std::uint64_t k = 0; k < particles; ++k) {
            const index i = static_cast<index>(drawn(12, {k, 1})) + 20;
            const index j = static_cast<index>(drawn(24, {k, 2}));
            const int b = pattern->localOf(blocks->blockOf({i, j}));
            if (b < 0)
                continue; // another rank's
            mass.allocate(b);
            const auto u = mass.view(b);
            const auto x = static_cast<real>(drawn(8, {k, 3})) / 8 - 0.5; // from the cell's centre
            const auto y = static_cast<real>(drawn(8, {k, 4})) / 8 - 0.5;
            const index di = x < 0 ? -1 : 1;
            const index dj = y < 0 ? -1 : 1;
            const real wx = std::abs(x);
            const real wy = std::abs(y);
            const index li = u.local(i, 0);
            const index lj = u.local(j, 1);
            u(li, lj) += (1 - wx) * (1 - wy);
            u(li + di, lj) += wx * (1 - wy);
            u(li, lj + dj) += (1 - wx) * wy;
            u(li + di, lj + dj) += wx * wy;
        }
        run({&mass}, [&] { mass.pushGhosts(); });
        EXPECT_EQ(sums(mass)[0] + dropped.sums()[0], static_cast<real>(particles));
        if (threshold == 0) {
            EXPECT_EQ(dropped.sums()[0], 0);
        }
        run({&mass}, [&] { mass.pushGhosts(); }); // nothing is left in ghosts
        EXPECT_EQ(sums(mass)[0] + dropped.sums()[0], static_cast<real>(particles));
    }
}

TEST_P(SparsePushes, ClearGhostsLeavesCellsAndWalls) {
    const SparseGrid grid = sparseGrids()[1]; // a plane with walls
    const auto blocks = grid.on(world());
    SparseField<real> u("u", SparsePattern::make(world(), blocks, grid.ghosts), {.stages = 2});
    const auto numbers = cellNumbers(grid, blocks);
    for (int b = 0; b < u.blocks(); b += 2) {
        u.allocate(b);
        for (int stage = 0; stage < 2; ++stage)
            forEachElement(u.block(b),
                           [&](const IndexVector &cell, std::uint64_t, bool) { at(u.view(b, stage), cell, 0) = 5; });
    }
    u.swapStages(0, 1);
    run({&u}, [&] { u.clearGhosts(1); });
    for (const int b : u.allocatedBlocks())
        forEachElement(u.block(b), [&](const IndexVector &cell, std::uint64_t, bool ghost) {
            EXPECT_EQ(at(u.view(b), cell, 0), 5);
            EXPECT_EQ(at(u.view(b, 1), cell, 0), ghost && at(numbers.view(b), cell, 0) >= 0 ? 0 : 5);
        });
    EXPECT_THROW(u.clearGhosts(2), IndexError);
}

INSTANTIATE_TEST_SUITE_P(Places, SparsePushes, testing::Values("host", "staged", "direct", "peer"));

TEST(MisuseOfSparsePushes, Throws) {
    const SparseGrid grid = sparseGrids().front();
    const auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
    SparseField<real> u("u", pattern), warm("warm", pattern, {}, 20.0);
    SparseField<int> least("least", pattern, {}, std::numeric_limits<int>::max());
    const auto settle = [] {
        world().barrier(); // all ranks have failed by now
        // A rank on another node may not have heard of it yet.
        if (world().allReduce(isRevoked(world()) ? 1 : 0, MPI_MAX) != 0)
            recover(world());
    };
    const auto refused = [&](auto &&call) {
        const std::string text = messageOf<Error>(call);
        settle();
        return text;
    };
    expectContains(refused([&] { warm.pushGhosts(); }), "20");
    expectContains(refused([&] { u.pushGhosts(PushOp::Min); }), "identity");
    expectContains(refused([&] { u.pushGhosts(PushOp::Replace); }), "no value for Replace");
    expectContains(refused([&] { least.pushGhosts(PushOp::Max); }), "2147483647");
    expectContains(refused([&] { u.exchange().finishPushGhosts(); }), "startPushGhosts first");
    const auto duringAPush = [&](auto &&call) {
        return refused([&] {
            u.exchange().startPushGhosts();
            call();
        });
    };
    expectContains(duringAPush([&] { u.exchange().startPushGhosts(); }), "not finished");
    expectContains(duringAPush([&] { u.exchange().setBounds(); }), "finishPushGhosts");
    expectContains(duringAPush([&] { u.exchange().finishExchangeGhosts(); }), "finishPushGhosts");
    expectContains(duringAPush([&] { u.clearGhosts(); }), "during an exchange");
    u.exchange().abandon();
    settle();
    least.pushGhosts(PushOp::Min);
    world().barrier(); // or the next failure stops ranks that are still in the push
    u.pushGhosts();
    u.exchangeGhosts();
}

} // namespace
} // namespace DNDS::test
