// Ghosts beyond walls against their definition, cell by cell.

#include "DNDS/Blocks/BlockBoundary.hpp"

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Device/Stream.hpp"

#include "../Mpi/ThrowsOnAll.hpp"

#include <random>

namespace DNDS {
namespace {

using test::contents;
using test::expectContains;
using test::messageOnAll;

/// Distinct for all ghosts, faces, components and times of these tests.
struct Somewhere {
    DNDS_HOST_DEVICE real operator()(const BoundaryGhost &ghost) const {
        real value = ghost.time;
        for (int d = 0; d < maxBlockDims; ++d)
            value = 100 * value + static_cast<real>(ghost.cell[d] + 20);
        return 10 * value + static_cast<real>(ghost.component + 2 * ghost.face.dim + (ghost.face.high ? 1 : 0));
    }
};

using Boundary = BlockBoundary<real, Somewhere>;

/// The rule of each face and component, for one index space.
struct Walls {
    struct Rule {
        BoundaryRule kind = BoundaryRule::None;
        real value = 0;
        bool dirichlet = false;
    };
    IndexSpace space;
    Rule rules[maxBlockDims][2][2]; // [dimensions x faces x components]
    int version = 1;
    real time = 0;

    /// The value by definition: the rule of the highest dimension that has one.
    real at(IndexVector cell, rowsize c) const {
        bool beyond = false;
        for (int d = space.cells.dims - 1; d >= 0; --d) {
            const std::size_t k = toSize(d);
            const bool high = cell[k] >= space.cells.upper[k];
            if (space.periodic[k] || (!high && cell[k] >= space.cells.lower[k]))
                continue;
            beyond = true;
            const Rule &rule = rules[k][high ? 1 : 0][c];
            const index face = high ? space.cells.upper[k] : space.cells.lower[k];
            switch (rule.kind) {
            case BoundaryRule::None:
                continue;
            case BoundaryRule::Constant:
                return rule.value;
            case BoundaryRule::Function: {
                BoundaryGhost ghost{{}, c, {d, high, 0}, time};
                std::copy_n(cell.begin(), space.cells.dims, ghost.cell);
                return Somewhere{}(ghost);
            }
            case BoundaryRule::Nearest:
                cell[k] = high ? face - 1 : face;
                return at(cell, c);
            case BoundaryRule::Mirror:
                cell[k] = 2 * face - 1 - cell[k];
                return rule.dirichlet ? 2 * rule.value - at(cell, c) : rule.value * at(cell, c);
            }
        }
        if (beyond)
            return test::poison<real>();
        return contents<real>(*test::modulo(space)({0, cell}), c, version);
    }

    /// Gives random rules to all faces; all ranks take the same.
    void choose(Boundary &boundary, std::mt19937 &random) {
        for (int d = 0; d < space.cells.dims; ++d)
            for (const bool high : {false, true})
                for (rowsize c = 0; c < 2 && !space.periodic[toSize(d)]; ++c) {
                    const BlockFace face{d, high};
                    Rule &rule = rules[d][high ? 1 : 0][c];
                    rule = {static_cast<BoundaryRule>(random() % 5), static_cast<real>(random() % 7) - 3,
                            random() % 2 == 0};
                    if (rule.kind == BoundaryRule::Constant)
                        boundary.constant(face, rule.value, c);
                    else if (rule.kind == BoundaryRule::Function)
                        boundary.function(face, c);
                    else if (rule.kind == BoundaryRule::Mirror)
                        mirrorOrCopy(boundary, face, rule, c);
                    else if (rule.kind == BoundaryRule::Nearest)
                        boundary.nearest(face, c);
                }
    }
    static void mirrorOrCopy(Boundary &boundary, const BlockFace &face, Rule &rule, rowsize c) {
        try {
            if (rule.dirichlet)
                boundary.dirichlet(face, rule.value, c);
            else
                boundary.mirror(face, rule.value, c);
        } catch (const ArgumentError &) { // some block is thinner than its ghosts
            rule.kind = BoundaryRule::Nearest;
            boundary.nearest(face, c);
        }
    }
};

bool isBeyondWall(const IndexSpace &space, const IndexVector &cell) {
    for (std::size_t d = 0; d < toSize(space.cells.dims); ++d)
        if (!space.periodic[d] && (cell[d] < space.cells.lower[d] || cell[d] >= space.cells.upper[d]))
            return true;
    return false;
}

/// In the shape of a star, ghosts at corners that are beyond no wall are poison still; those beyond walls are not
/// compared.
void expectFilled(const BlockField<real> &u, const std::function<real(int, const IndexVector &, rowsize)> &expected) {
    for (int b = 0; b < u.blocks(); ++b) {
        const auto v = u.view(b);
        const int space = u.grid()->block(u.block(b).block).space;
        for (rowsize c = 0; c < u.components(); ++c)
            test::forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &local, const IndexVector &cell) {
                const bool filled = test::inShape(u.block(b).cells, u.blockPattern()->ghosts(), cell);
                if (!filled && isBeyondWall(u.grid()->spaces()[toSize(space)], cell))
                    return;
                ASSERT_EQ(test::at(v, local, c), filled ? expected(space, cell, c) : test::poison<real>())
                    << "component " << c << " of " << fmt::format("({})", fmt::join(cell, ", ")) << ", block of "
                    << toString(u.block(b).cells);
            });
    }
}

/// Random shapes, periods, ghosts, cuts and rules.
void fillRandomGrids(const Executor &on) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    std::mt19937 random(static_cast<unsigned>(test::seed()));
    const auto below = [&](index n) { return static_cast<index>(random() % static_cast<unsigned>(n)); };
    for (int round = 0; round < 24; ++round) {
        Walls walls;
        const int dims = 1 + round % 3;
        std::vector<index> shape, blocks, low, high;
        for (int d = 0; d < dims; ++d) {
            shape.push_back(2 + below(6));
            blocks.push_back(1 + below(5));
            low.push_back(below(3));
            high.push_back(below(3));
            walls.space.periodic[toSize(d)] = below(3) == 0;
        }
        walls.space.cells = Box::ofShape(shape).shift({1, -2, 3, 0});
        walls.space.name = fmt::format("round {}, blocks of {}", round, fmt::join(blocks, " x "));
        SCOPED_TRACE(walls.space.name + ", cells " + toString(walls.space.cells));
        const auto grid =
            round % 2 == 0 ? BlockGrid::blocksOf(comm, walls.space, blocks) : BlockGrid::cut(comm, walls.space);
        const GhostWidths ghosts = GhostWidths::of(low, high);
        BlockField<real> u("u", comm, grid,
                           {.ghosts = below(2) == 0 ? ghosts.star() : ghosts,
                            .components = 2,
                            .order = round % 4 < 2 ? ComponentOrder::Inside : ComponentOrder::Outside});
        Boundary boundary(u);
        walls.choose(boundary, random);
        for (walls.version = 1; walls.version < 3; ++walls.version) {
            test::fillField(u, walls.version);
            walls.time = walls.version;
            boundary.setTime(walls.time);
            if (on.onDevice())
                u.toDevice();
            exchangeAndFill(u, boundary, on);
            on.synchronize();
            u.toHost();
            expectFilled(u, [&](int, const IndexVector &cell, rowsize c) { return walls.at(cell, c); });
            if (testing::Test::HasFatalFailure())
                return;
        }
    }
}

TEST(BlockBoundary, FillsByDefinition) { fillRandomGrids(Executor::host()); }

TEST(BlockBoundary, InThreads) { fillRandomGrids(Executor::hostThreads(3)); }

TEST(BlockBoundaryOnDevice, FillsByDefinition) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    fillRandomGrids(Executor::device(stream));
}

/// Two index spaces that touch have the ghosts of one.
TEST(BlockBoundary, WallsGoOnAcrossConnections) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const std::size_t along : {0U, 1U}) {
        SCOPED_TRACE(along);
        Walls walls;
        walls.space = {"both", Box({0, 0}, {6, 6}), {}};
        walls.space.cells.upper[along] = 9;
        std::vector<IndexSpace> zones{walls.space, walls.space};
        zones[0].cells.upper[along] = 5;
        zones[1].cells.upper[along] = 4;
        Connection seam{
            .space = 0, .begin = {5, 5}, .end = {5, 5}, .other = 1, .otherBegin = {0, 0}, .transform = {1, 2}};
        seam.begin[1 - along] = 0;
        seam.end[1 - along] = 6;
        const auto grid = BlockGrid::blocksOf(comm, zones, std::vector<index>{3, 2}, {seam});
        const GhostWidths ghosts{2, 2};
        BlockField<real> u("u", comm, grid, {.ghosts = along == 0 ? ghosts : ghosts.star(), .components = 2});
        Boundary boundary(u);
        for (const int d : {0, 1})
            for (const bool high : {false, true})
                for (rowsize c = 0; c < 2; ++c) {
                    walls.rules[d][high ? 1 : 0][c] = {c == 0 ? BoundaryRule::Mirror : BoundaryRule::Nearest, -2.0,
                                                       false};
                    if (c == 0) // for all spaces, without effect where they touch
                        boundary.mirror({d, high}, -2, c);
                    else
                        boundary.nearest({d, high}, c);
                }
        const auto inBoth = [&](int space, IndexVector cell) {
            cell[along] += space == 1 ? 5 : 0;
            return cell;
        };
        for (int b = 0; b < u.blocks(); ++b)
            for (rowsize c = 0; c < 2; ++c)
                test::forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &local, const IndexVector &cell) {
                    const int space = grid->block(u.block(b).block).space;
                    test::at(u.view(b), local, c) = u.block(b).cells.contains(cell)
                                                        ? contents<real>({0, inBoth(space, cell)}, c, 1)
                                                        : test::poison<real>();
                });
        exchangeAndFill(u, boundary);
        expectFilled(std::as_const(u),
                     [&](int space, const IndexVector &cell, rowsize c) { return walls.at(inBoth(space, cell), c); });
    }
}

/// Ghosts beyond a neighbour that is thinner than they are, or in a hole of it, are not at this zone's wall.
TEST(BlockBoundary, ConnectionsEndRulesHoweverThinTheNeighbour) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const int last = comm.size() - 1;
    const std::vector<IndexSpace> zones{{"A", Box({0}, {4}), {}}, {"B", Box({0}, {3}), {}}};
    const Connection seam{.space = 0, .begin = {4}, .end = {4}, .other = 1, .otherBegin = {0}, .transform = {1}};
    // B's cells, and A's ghosts beyond the seam; 7: left as it was.
    const std::vector<std::pair<Box, std::array<real, 2>>> cases{
        {Box({0}, {1}), {20, 7}}, {Box({0}, {3}), {20, 21}}, {Box({1}, {3}), {7, 21}}};
    for (const auto &[cells, expected] : cases) {
        std::vector<IndexSpace> spaces = zones;
        if (cells.upper[0] == 1)
            spaces[1].cells = cells; // as thin as that, without a hole
        const auto grid = BlockGrid::make(spaces, {{spaces[0].cells, 0, 0}, {cells, last, 1}}, {seam});
        BlockField<real> u("u", comm, grid, {.ghosts = {2}});
        BlockBoundary<real> boundary(u);
        boundary.nearest(lowFace(0));
        boundary.nearest(highFace(0));
        for (int b = 0; b < u.blocks(); ++b)
            test::forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &local, const IndexVector &cell) {
                const int space = grid->block(u.block(b).block).space;
                u.view(b)(local[0]) =
                    u.block(b).cells.contains(cell) ? static_cast<real>(10 * (space + 1) + cell[0]) : 7;
            });
        exchangeAndFill(u, boundary);
        for (int b = 0; b < u.blocks(); ++b) {
            if (grid->block(u.block(b).block).space != 0)
                continue;
            const auto view = std::as_const(u).view(b);
            EXPECT_EQ(view(-1), 10) << "a wall";
            EXPECT_EQ(view(4), expected[0]);
            EXPECT_EQ(view(5), expected[1]);
        }
    }
}

struct Spread {
    DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockView<const real> &u,
                                     const BlockView<real> &next) const {
        real sum = 0;
        for (index i = -1; i <= 1; ++i)
            for (index j = -1; j <= 1; ++j)
                sum += u(c[0] + i, c[1] + j) / static_cast<real>(3 * i + j + 5);
        next(c[0], c[1]) = sum;
    }
};

/// The steps of a graph against exchanges and loops by hand.
void fillInTasks(const Executor &on, const std::array<bool, maxBlockDims> &periodic) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const IndexSpace space{"plane", Box({0, 0}, {11, 9}), periodic};
    const auto pattern = BlockPattern::make(comm, BlockGrid::blocksOf(comm, space, {4, 3}), {1, 1});
    BlockField<real> u("u", comm, pattern), next("next", comm, pattern), v("v", comm, pattern), w("w", comm, pattern);
    Boundary boundary(u);
    boundary.function(lowFace(0));
    boundary.mirror(highFace(0), -1);
    if (!periodic[1]) {
        boundary.nearest(lowFace(1));
        boundary.constant(highFace(1), 3);
    }
    test::fillField(u, 1);
    test::fillField(v, 1);
    const BlockRows cells("cells", pattern);
    Task::Graph graph("spread", comm);
    graph.task("there", cells.cells()).reads(stencil(graph, u, {1, 1}, boundary)).writes(next).run(Spread{});
    graph.task("back", cells.cells()).reads(stencil(graph, next, {1, 1}, boundary)).writes(u).run(Spread{});
    graph.task("again", cells.cells()).reads(stencil(graph, u, {1, 1}, boundary)).writes(next).run(Spread{});
    graph.swap(u, next);
    Task::Plan plan = graph.compile(on);
    for (int step = 0; step < 3; ++step) {
        boundary.setTime(step + 0.5);
        plan.run();
        for (int repeat = 0; repeat < 3; ++repeat) {
            exchangeAndFill(v, boundary);
            for (int b = 0; b < v.blocks(); ++b)
                test::forEachIn(v.block(b), v.block(b).cells, [&](const IndexVector &at, const IndexVector &) {
                    Spread{}(BlockCell{b, {at[0], at[1]}}, std::as_const(v).view(b), w.view(b));
                });
            v.swapData(w);
        }
        u.toHost();
        next.toHost(); // fields that are swapped are on one side
        for (int b = 0; b < u.blocks(); ++b)
            test::forEachIn(u.block(b), u.block(b).cells, [&](const IndexVector &at, const IndexVector &) {
                ASSERT_EQ(std::as_const(u).view(b)(at[0], at[1]), std::as_const(v).view(b)(at[0], at[1]))
                    << "step " << step << "\n"
                    << plan.describe();
            });
    }
}

TEST(BlockBoundary, InTasks) {
    for (const bool periodic : {false, true}) {
        fillInTasks(Executor::host(), {false, periodic});
        fillInTasks(Executor::hostThreads(3), {false, periodic});
    }
}

TEST(BlockBoundaryOnDevice, InTasks) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    for (const bool periodic : {false, true})
        fillInTasks(Executor::device(stream), {false, periodic});
}

TEST(BlockBoundary, RulesThatCannotBe) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const IndexSpace space{"channel", Box({0, 0}, {3, 40}), {false, true}};
    BlockField<real> u("u", comm, BlockGrid::blocksOf(comm, space, {3, 40}), {.ghosts = {4, 1}});
    Boundary boundary(u);
    const auto refuses = [&](const auto &call, const char *text) {
        expectContains(messageOnAll<ArgumentError>(call), text);
    };
    refuses([&] { boundary.nearest(lowFace(1)); }, "the dimension is periodic");
    refuses([&] { boundary.nearest(lowFace(2)); }, "there are 2 dimensions and 1 spaces");
    refuses([&] { boundary.nearest(lowFace(0, 1)); }, "there are 2 dimensions and 1 spaces");
    refuses([&] { boundary.constant(highFace(0), 1, 1); }, "component 1 of 1");
    refuses([&] { boundary.mirror(highFace(0), 1); },
            "4 layers of ghosts mirror cells at the high face of dimension 0");
    BlockField<real> other("other", comm, u.grid(), {.ghosts = {1, 1}});
    refuses([&] { fillGhosts(other, boundary); }, "'other' is not on the pattern of this boundary");
    Boundary second(u);
    Task::Graph graph("two", comm);
    static_cast<void>(stencil(graph, u, {1, 1}, boundary));
    refuses([&] { static_cast<void>(stencil(graph, u, {1, 1}, second)); }, "filled by two boundaries");
    BlockField<int> flags("flags", comm, u.blockPattern());
    BlockBoundary marks(flags);
    marks.constant(lowFace(0), 7);
    exchangeAndFill(flags, marks);
    for (int b = 0; b < flags.blocks(); ++b)
        EXPECT_EQ(flags.view(b)(-4, 40), 7);
}

} // namespace
} // namespace DNDS
