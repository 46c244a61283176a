#include "DNDS/Blocks/BlockField.hpp"

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Blocks/ZoneCase.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "support/World.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <type_traits>

namespace DNDS::test {
namespace {

/// Random numbers that are the same on all ranks.
class Dice {
  public:
    explicit Dice(std::uint64_t salt) : engine_(seed() + salt) {}
    index upTo(index most) { return static_cast<index>(engine_() % static_cast<std::uint64_t>(most + 1)); }
    bool once(index in) { return upTo(in - 1) == 0; }
    std::vector<int> permutation(int dims) {
        std::vector<int> axes(toSize(dims));
        std::iota(axes.begin(), axes.end(), 0);
        std::ranges::shuffle(axes, engine_);
        return axes;
    }
    GhostWidths widths(int dims) {
        GhostWidths made;
        for (int d = 0; d < dims; ++d) {
            made.low[toSize(d)] = upTo(2);
            made.high[toSize(d)] = upTo(2);
        }
        return once(3) ? made.star() : made;
    }

  private:
    std::mt19937_64 engine_;
};

/// Cuts index spaces at random places; each block on a random rank, or absent.
std::shared_ptr<const BlockGrid> randomGrid(Dice &dice, const std::vector<IndexSpace> &spaces) {
    std::vector<Block> blocks;
    for (std::size_t s = 0; s < spaces.size(); ++s) {
        const Box &cells = spaces[s].cells;
        std::vector<std::vector<index>> cuts;
        IndexVector parts{1, 1, 1, 1};
        for (int d = 0; d < cells.dims; ++d) {
            std::vector<index> &cut = cuts.emplace_back();
            cut = {cells.lower[toSize(d)], cells.upper[toSize(d)]};
            for (index k = dice.upTo(2); k > 0; --k)
                cut.push_back(cells.lower[toSize(d)] + dice.upTo(cells.extent(d)));
            std::ranges::sort(cut);
            cut.erase(std::unique(cut.begin(), cut.end()), cut.end());
            parts[toSize(d)] = static_cast<index>(cut.size()) - 1;
        }
        const index absent = dice.once(2) ? 5 : 1000000;
        forEachCell(Box(cells.dims, {}, parts), [&](const IndexVector &part) {
            Block block{cells, static_cast<int>(dice.upTo(world().size() - 1)), static_cast<int>(s)};
            for (std::size_t d = 0; d < cuts.size(); ++d) {
                block.cells.lower[d] = cuts[d][toSize(part[d])];
                block.cells.upper[d] = cuts[d][toSize(part[d] + 1)];
            }
            if (!dice.once(absent))
                blocks.push_back(block);
        });
    }
    return BlockGrid::make(spaces, blocks);
}

/// The space of `from` and its image under `axes`, with periods of its own.
std::pair<IndexSpace, IndexSpace> randomSpaces(Dice &dice, int dims, const std::vector<int> &axes) {
    IndexSpace from{"from", Box(dims, {}, {}), {}};
    IndexSpace to{"to", Box(dims, {}, {}), {}};
    for (std::size_t d = 0; d < axes.size(); ++d) {
        const std::size_t a = toSize(axes[d]);
        to.cells.lower[a] = from.cells.lower[d] = dice.upTo(6) - 3;
        to.cells.upper[a] = from.cells.upper[d] = from.cells.lower[d] + 1 + dice.upTo(dims < 3 ? 13 : 6);
        from.periodic[d] = dice.once(2);
        to.periodic[a] = dice.once(2);
    }
    return {from, to};
}

/// The cell of `from` that a cell or ghost of `to` gets, if any. Brute force.
Meaning meaningIn(const BlockGrid &from, std::vector<int> axes, bool ghosts) {
    return [&from, axes = std::move(axes), ghosts](const CellOf &target) -> std::optional<CellOf> {
        CellOf cell{target.space, {}};
        for (std::size_t d = 0; d < axes.size(); ++d)
            cell.cell[d] = target.cell[toSize(axes[d])];
        const std::optional<CellOf> source = ghosts ? modulo(from.spaces()[toSize(cell.space)])(cell) : cell;
        const auto has = [&](const Block &block) {
            return block.space == source->space && block.cells.contains(source->cell);
        };
        return source && std::ranges::any_of(from.blocks(), has) ? source : std::nullopt;
    };
}

constexpr int versionBefore = 1000;

/// Fails the test unless cells (and with `ghosts` ghosts) of `to` were combined with their sources by `op`, and all
/// other values are as `fillField` left them.
template <class T>
void expectCopied(const BlockField<T> &to, int version, const Meaning &meaning, bool ghosts, PushOp op) {
    index wrong = 0;
    for (int b = 0; b < to.blocks(); ++b) {
        const BlockMemory &block = to.block(b);
        const int space = to.grid()->block(block.block).space;
        const auto v = to.view(b);
        for (rowsize c = 0; c < to.components(); ++c)
            forEachIn(block, block.extent, [&](const IndexVector &local, const IndexVector &cell) {
                const bool ghost = !block.cells.contains(cell);
                T expected = ghost ? poison<T>() : contents<T>({space, cell}, c, versionBefore);
                const bool takes = !ghost || (ghosts && inShape(block.cells, to.blockPattern()->ghosts(), cell));
                const auto source = takes ? meaning({space, cell}) : std::nullopt;
                if (source)
                    expected = combineElements(expected, contents<T>(*source, c, version), op);
                wrong += at(v, local, c) == expected ? 0 : 1;
            });
    }
    EXPECT_EQ(wrong, 0);
}

/// Copies between fields of random cuts, ghosts and orders, several times. Trials take turns in dimensions and
/// transports.
template <class T>
void tryRandomCopies(Dice &dice, int trial, PushOp op) {
    const int dims = 1 + trial % 4;
    const auto transports = allTransports();
    const TransportKind transport = transports[toSize(trial / 4 + trial) % transports.size()];
    const std::vector<int> axes = dice.permutation(dims);
    const auto [source, target] = randomSpaces(dice, dims, axes);
    const auto order = [&] { return dice.once(2) ? ComponentOrder::Inside : ComponentOrder::Outside; };
    const auto components = static_cast<rowsize>(1 + dice.upTo(2));
    BlockField<T> from("from", world(), randomGrid(dice, {source, source}),
                       {.ghosts = dice.widths(dims), .components = components, .order = order()});
    BlockField<T> to("to", world(), randomGrid(dice, {target, target}),
                     {.ghosts = dice.widths(dims), .components = components, .order = order()});
    const bool ghosts = op == PushOp::Replace && dice.once(2);
    SCOPED_TRACE(fmt::format("axes {}, {} components, {}ghosts, {} to {} blocks", fmt::join(axes, " "), components,
                             ghosts ? "" : "no ", from.grid()->blocks().size(), to.grid()->blocks().size()));
    const Meaning meaning = meaningIn(*from.grid(), axes, ghosts);
    const auto copy = makeBlockCopy(from, to, {.axes = axes, .ghosts = ghosts, .op = op, .transport = transport});
    for (int version = 1; version <= 2; ++version) {
        fillField(from, version);
        fillField(to, versionBefore);
        copy->start();
        copy->wait();
        expectCopied(to, version, meaning, ghosts, op);
    }
}

TEST(BlockCopy, RandomGridsMatchBruteForce) {
    Dice dice(1);
    for (int trial = 0; trial < 16; ++trial)
        tryRandomCopies<real>(dice, trial, PushOp::Replace);
    for (int trial = 0; trial < 4; ++trial)
        tryRandomCopies<float>(dice, trial, PushOp::Replace);
}

TEST(BlockCopy, CombinesValuesWithThoseThatAreThere) {
    Dice dice(2);
    for (int trial = 0; trial < 4; ++trial) {
        tryRandomCopies<real>(dice, trial, PushOp::Sum);
        tryRandomCopies<std::int64_t>(dice, trial + 4, PushOp::Max);
    }
}

TEST(BlockCopy, GathersToOneRankAndScattersAgain) {
    const IndexSpace space{"box", Box({0, 0, 0}, {7, 9, 8}), {}};
    BlockField<real> spread("spread", world(), BlockGrid::cut(world(), space), {.ghosts = {1, 1, 1}, .components = 2});
    const std::vector<Block> whole{{space.cells, world().size() - 1, 0}};
    BlockField<real> gathered("gathered", world(), BlockGrid::make({space}, whole),
                              {.components = 2, .order = ComponentOrder::Outside});
    fillField(spread, 1);
    copyBlocks(spread, gathered);
    checkField(gathered, 1, [](const CellOf &) { return std::nullopt; });
    fillField(spread, 2);
    copyBlocks(gathered, spread);
    checkField(spread, 1, [](const CellOf &) { return std::nullopt; });
}

TEST(BlockCopy, GhostsAreThoseOfTheSourceThroughPeriodsAndConnections) {
    const Box left({0, 0, 0}, {3, 4, 3});
    const Box right({3, 0, 0}, {5, 4, 3});
    for (const std::vector<int> &turn : {std::vector<int>{1, 2, 3}, {-2, 3, 1}, {3, -1, -2}, {-1, -2, -3}}) {
        SCOPED_TRACE(fmt::format("turn {}", fmt::join(turn, " ")));
        const std::vector<Zone> zones{{left, {1, 2, 3}, 1}, {right, turn, -2}};
        const std::vector<Connection> connections{*connectionOf(zones, 0, 1, false)};
        const auto cut = [&](index edge) {
            return BlockGrid::blocksOf(world(), spacesOf(zones), std::vector<index>(3, edge), connections);
        };
        const GhostWidths ghosts = turn[0] < 0 ? GhostWidths{2, 2, 2}.star() : GhostWidths{2, 2, 2};
        BlockField<real> from("from", world(), cut(3), {});
        BlockField<real> to("to", world(), cut(2), {.ghosts = ghosts, .order = ComponentOrder::Outside});
        BlockField<real> exchanged("exchanged", world(), cut(2), {.ghosts = ghosts});
        fillField(from, 1);
        fillField(to, 2);
        fillField(exchanged, 1);
        copyBlocks(from, to, {.ghosts = true});
        exchanged.exchangeGhosts();
        EXPECT_EQ(to.array().size(), exchanged.array().size());
        const std::span a(to.array().view().data(), toSize(to.array().size()));
        const std::span b(exchanged.array().view().data(), a.size());
        EXPECT_TRUE(std::ranges::equal(a, b));
    }
}

TEST(BlockCopy, FollowsSwappedContents) {
    const IndexSpace space{"line", Box({0}, {40}), {}};
    const auto pattern = BlockPattern::make(world(), BlockGrid::cut(world(), space), {1});
    BlockField<real> now("now", world(), pattern);
    BlockField<real> next("next", world(), pattern);
    BlockField<real> to("to", world(), BlockGrid::blocksOf(world(), space, {3}), {});
    fillField(now, 1);
    fillField(next, 2);
    const auto copy = makeBlockCopy(now, to);
    for (const int version : {1, 2, 1}) {
        copy->start();
        copy->wait();
        checkField(to, version, [](const CellOf &) { return std::nullopt; });
        now.swapData(next);
    }
}

TEST(BlockCopy, ErrorsAreThoseOfAllRanks) {
    const auto make = [&](std::vector<index> shape, rowsize components = 1) {
        return BlockField<real>("u", world(), BlockGrid::cut(world(), shape, {}, {}), {.components = components});
    };
    BlockField<real> u = make({6, 5});
    BlockField<real> v = make({6, 5});
    const auto refuses = [&]<class TError>(std::type_identity<TError>, const char *part, const BlockFieldCore &from,
                                           BlockFieldCore &to, const BlockCopyOptions &options = {}) {
        expectContains(messageOnAll<TError>([&] { makeBlockCopy(from, to, options); }), part);
    };
    constexpr std::type_identity<ArgumentError> argument;
    BlockField<real> turned = make({5, 6});
    refuses(argument, "equal index spaces", u, turned);
    refuses(argument, "after its axes are permuted", u, v, {.axes = {1, 0}});
    BlockField<real> box = make({6, 5, 1});
    refuses(argument, "of 3: cells are copied between equal index spaces", u, box);
    refuses(argument, "are [0, 0]: name each dimension from 0 to 1 once", u, v, {.axes = {0, 0}});
    refuses(argument, "are [0]: name each dimension", u, v, {.axes = {0}});
    BlockField<real> wide = make({6, 5}, 3);
    refuses(argument, "has 1 components a cell, 'u' has 3", u, wide);
    refuses(argument, "copied to itself", u, u);
    refuses(argument, "can only be replaced", u, v, {.ghosts = true, .op = PushOp::Sum});
    BlockField<float> single("single", world(), u.grid(), {});
    refuses(std::type_identity<LayoutError>(), "those of 'single' are float32 of 4", u, single);
    if (world().size() > 1)
        refuses(std::type_identity<StateError>(), "different fields or options", u, v,
                {.op = world().rank() == 0 ? PushOp::Sum : PushOp::Min});
    const Communicator other = Communicator::duplicate(world());
    BlockField<real> elsewhere("elsewhere", other.view(), u.grid(), {});
    refuses(argument, "different communicators", u, elsewhere);
    const BlockField<real> none;
    messageOnAll<StateError>([&] { makeBlockCopy(none, v); });
    BlockField<real> never;
    const bool here = world().rank() == world().size() - 1; // on one rank alone
    refuses(std::type_identity<StateError>(), "was declared only", here ? none : u, v);
    refuses(std::type_identity<StateError>(), "was declared only", u, here ? never : v);
    fillField(u, 1);
    copyBlocks(u, v); // all of them left everything as it was
    checkField(v, 1, [](const CellOf &) { return std::nullopt; });
}

} // namespace
} // namespace DNDS::test
