/// @file PointCase.hpp
/// @brief Fields on points of random grids: every copy and ghost against a list of all points, made cell by cell.
#pragma once

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Blocks/ZoneCase.hpp"

#include <map>
#include <random>
#include <tuple>

namespace DNDS::test {

using Random = std::mt19937_64;
/// Identifies a point, whichever place of it is asked for.
using PointKey = std::vector<index>;
using KeyOf = std::function<PointKey(const CellOf &)>;
/// The place of a point that owns it, in the order of precedence.
using Owner = std::tuple<int, IndexVector, int>; // index space, position, block

inline CommunicatorView here() { return {MPI_COMM_WORLD}; }

inline std::vector<Centring> centringsOf(int dims) {
    std::vector<Centring> all;
    for (unsigned mask = 0; mask < 1U << static_cast<unsigned>(dims); ++mask) {
        Centring &centring = all.emplace_back();
        for (int d = 0; d < dims; ++d)
            centring.nodal[toSize(d)] = (mask >> static_cast<unsigned>(d) & 1U) != 0;
    }
    return all;
}

/// All points of all blocks, and their owners.
inline std::map<PointKey, Owner> ownersOf(const BlockGrid &grid, const Centring &centring, const KeyOf &keyOf) {
    std::map<PointKey, Owner> owners;
    for (int b = 0; b < static_cast<int>(grid.blocks().size()); ++b) {
        const Block &block = grid.block(b);
        forEachCell(centring.pointsOf(block.cells), [&](const IndexVector &point) {
            const Owner owner{block.space, point, b};
            const auto [at, isNew] = owners.try_emplace(keyOf({block.space, point}), owner);
            at->second = std::min(at->second, owner);
        });
    }
    return owners;
}

/// Calls `visit(owner or null, key, local block, local indices, point)` for all of this rank's points and ghosts.
inline void forEachPoint(const BlockFieldCore &field, const std::map<PointKey, Owner> &owners, const KeyOf &keyOf,
                         const auto &visit) {
    for (const BlockMemory &block : field.blockPattern()->blocks()) {
        const int local = static_cast<int>(&block - field.blockPattern()->blocks().data());
        const int space = field.grid()->block(block.block).space;
        forEachIn(block, block.extent, [&](const IndexVector &at, const IndexVector &point) {
            const auto found = owners.find(keyOf({space, point}));
            visit(found == owners.end() ? nullptr : &found->second, local, at, point);
        });
    }
}

inline bool isOwner(const Owner &owner, const BlockFieldCore &field, int local, const IndexVector &point) {
    const int block = field.blockPattern()->blocks()[toSize(local)].block;
    return owner == Owner{field.grid()->block(block).space, point, block};
}

/// A whole number to deposit, so that sums do not depend on the order.
template <class T>
T depositOf(int block, const IndexVector &point, rowsize c) {
    return static_cast<T>(mix({static_cast<std::uint64_t>(block), static_cast<std::uint64_t>(point[0]),
                               static_cast<std::uint64_t>(point[1]), static_cast<std::uint64_t>(point[2]),
                               static_cast<std::uint64_t>(point[3]), static_cast<std::uint64_t>(c)}) %
                          100);
}

template <class T>
T combined(T a, T b, PushOp op) {
    return op == PushOp::Sum ? static_cast<T>(a + b) : op == PushOp::Min ? std::min(a, b) : std::max(a, b);
}

/// Deposits into all points and ghosts of all blocks, pushes, and compares all with what all blocks have deposited.
template <class T>
void expectPush(BlockField<T> &field, const KeyOf &keyOf, PushOp op) {
    const BlockGrid &grid = *field.grid();
    const BlockPattern &pattern = *field.blockPattern();
    const auto owners = ownersOf(grid, pattern.centring(), keyOf);
    std::map<PointKey, std::vector<T>> expected; // [components]
    for (int b = 0; b < static_cast<int>(grid.blocks().size()); ++b) {
        const Box points = pattern.centring().pointsOf(grid.block(b).cells);
        forEachCell(points.grow(pattern.ghosts()), [&](const IndexVector &p) {
            const PointKey key = keyOf({grid.block(b).space, p});
            if (!owners.contains(key) || !inShape(points, pattern.ghosts(), p))
                return;
            auto &all = expected[key];
            for (rowsize c = 0; c < field.components(); ++c)
                if (toSize(c) == all.size())
                    all.push_back(depositOf<T>(b, p, c));
                else
                    all[toSize(c)] = combined(all[toSize(c)], depositOf<T>(b, p, c), op);
        });
    }
    std::vector<BlockView<T>> views;
    for (int b = 0; b < field.blocks(); ++b)
        views.push_back(field.view(b));
    const auto numberOf = [&](int local) { return pattern.blocks()[toSize(local)].block; };
    forEachPoint(field, owners, keyOf, [&](const Owner *, int local, const IndexVector &at, const IndexVector &p) {
        for (rowsize c = 0; c < field.components(); ++c)
            test::at(views[toSize(local)], at, c) = depositOf<T>(numberOf(local), p, c);
    });
    field.pushGhosts(op);
    index wrong = 0;
    std::string first;
    forEachPoint(field, owners, keyOf, [&](const Owner *owner, int local, const IndexVector &at, const IndexVector &p) {
        for (rowsize c = 0; c < field.components(); ++c) {
            const T deposited = depositOf<T>(numberOf(local), p, c);
            T value = op == PushOp::Sum ? T{} : deposited; // of a ghost
            if (owner == nullptr || !inShape(field.block(local).cells, pattern.ghosts(), p))
                value = deposited;
            else if (isOwner(*owner, field, local, p))
                value = expected.at(keyOf({grid.block(numberOf(local)).space, p}))[toSize(c)];
            if (test::at(views[toSize(local)], at, c) != value && wrong++ == 0)
                first = fmt::format("component {} of ({}) of block {} is {}, not {}", c, fmt::join(p, ", "),
                                    numberOf(local), test::at(views[toSize(local)], at, c), value);
        }
    });
    EXPECT_EQ(wrong, 0) << first;
}

/// Gives owned points contents and all others poison, exchanges, and compares all; then pushes deposits.
template <class T>
void expectPoints(BlockField<T> &field, const KeyOf &keyOf, bool pushes = true) {
    const BlockPattern &pattern = *field.blockPattern();
    const auto owners = ownersOf(*field.grid(), pattern.centring(), keyOf);
    index owned = 0;
    index wrong = 0;
    std::vector<BlockView<T>> views;
    for (int b = 0; b < field.blocks(); ++b)
        views.push_back(field.view(b));
    const auto contentsOf = [](const Owner &owner, rowsize c) {
        return contents<T>({std::get<0>(owner), std::get<1>(owner)}, c, 1);
    };
    forEachPoint(field, owners, keyOf, [&](const Owner *owner, int local, const IndexVector &at, const IndexVector &p) {
        const bool mine = owner != nullptr && isOwner(*owner, field, local, p);
        const auto boxes = pattern.owned(local);
        wrong +=
            std::ranges::count_if(boxes, [&](const Box &box) { return box.contains(p); }) == (mine ? 1 : 0) ? 0 : 1;
        owned += mine ? 1 : 0;
        for (rowsize c = 0; c < field.components(); ++c)
            test::at(views[toSize(local)], at, c) = mine ? contentsOf(*owner, c) : poison<T>();
    });
    EXPECT_EQ(wrong, 0) << "owned boxes";
    EXPECT_EQ(here().allReduce(owned, MPI_SUM), static_cast<index>(owners.size())) << "each point has one owner";
    field.exchangeGhosts();
    std::string first;
    forEachPoint(field, owners, keyOf, [&](const Owner *owner, int local, const IndexVector &at, const IndexVector &p) {
        for (rowsize c = 0; c < field.components(); ++c) {
            const bool filled = owner != nullptr && inShape(field.block(local).cells, pattern.ghosts(), p);
            const T expected = filled ? contentsOf(*owner, c) : poison<T>();
            if (test::at(views[toSize(local)], at, c) != expected && wrong++ == 0)
                first = fmt::format("component {} of ({}) of local block {}", c, fmt::join(p, ", "), local);
        }
    });
    EXPECT_EQ(wrong, 0) << first;
    if (pushes)
        expectPush(field, keyOf, PushOp::Sum);
}

/// Cuts a box at random into blocks on random ranks; some are left out if there are to be holes.
inline void cutAtRandom(const Box &cells, int space, bool holes, Random &random, std::vector<Block> &into) {
    const int d = static_cast<int>(random() % toSize(cells.dims));
    if (cells.extent(d) < 2 || random() % 5 == 0) {
        if (!holes || random() % 4 != 0)
            into.push_back({cells, static_cast<int>(random() % toSize(here().size())), space});
        return;
    }
    Box low = cells;
    Box high = cells;
    low.upper[toSize(d)] = high.lower[toSize(d)] =
        cells.lower[toSize(d)] + 1 + static_cast<index>(random() % toSize(cells.extent(d) - 1));
    cutAtRandom(low, space, holes, random, into);
    cutAtRandom(high, space, holes, random, into);
}

/// One index space of random extents and periods, cut at random.
inline std::shared_ptr<const BlockGrid> randomGrid(int dims, bool holes, Random &random) {
    IndexSpace space{"space", Box(dims, {}, {}), {}};
    for (int d = 0; d < dims; ++d) {
        const std::size_t k = toSize(d);
        space.cells.lower[k] = static_cast<index>(random() % 5) - 2;
        space.cells.upper[k] = space.cells.lower[k] + 1 + static_cast<index>(random() % (dims < 3 ? 8 : 4));
        space.periodic[k] = random() % 2 == 0;
    }
    std::vector<Block> blocks;
    cutAtRandom(space.cells, 0, holes, random, blocks);
    std::ranges::shuffle(blocks, random);
    return BlockGrid::make({space}, blocks);
}

inline GhostWidths randomWidths(int dims, Random &random) {
    GhostWidths widths;
    for (int d = 0; d < dims; ++d) {
        widths.low[toSize(d)] = static_cast<index>(random() % 4);
        widths.high[toSize(d)] = static_cast<index>(random() % 4);
    }
    if (random() % 2 == 0)
        widths.shape = GhostShape::Star;
    return widths;
}

/// The position modulo the periods.
inline KeyOf moduloPeriods(const IndexSpace &space) {
    return [space](const CellOf &at) {
        PointKey key(at.cell.begin(), at.cell.begin() + space.cells.dims);
        for (int d = 0; d < space.cells.dims; ++d)
            if (space.periodic[toSize(d)]) {
                const index n = space.cells.extent(d);
                key[toSize(d)] = ((key[toSize(d)] - space.cells.lower[toSize(d)]) % n + n) % n;
            }
        return key;
    };
}

} // namespace DNDS::test
