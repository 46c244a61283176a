/// @file ReplicatedGrid.hpp
/// @brief A model of fields on blocks: the values of all blocks on every rank, in plain arrays, without messages.
#pragma once

#include "DNDS/Blocks/PointCase.hpp"

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS::test {

/// The points and ghosts of all blocks of a grid, and what each one is a copy of. Found point by point from `keyOf`,
/// without the library's regions, transforms and patterns. Points of a block are numbered in C order of its extent.
class ReplicatedGrid {
  public:
    struct Point {
        int block = -1;       ///< block of its owner; -1: a copy of no point
        std::size_t at = 0;   ///< number of the point there
        bool isCopy = false;  ///< exchanges fill it
        bool isInner = false; ///< one of the points of the block's cells
    };

    ReplicatedGrid(std::shared_ptr<const BlockGrid> grid, GhostWidths widths, const Centring &centring, KeyOf keyOf)
        : grid_(std::move(grid)), widths_(widths), centring_(centring.in(grid_->dims())), keyOf_(std::move(keyOf)),
          owners_(ownersOf(*grid_, centring_, keyOf_)) {
        for (const Block &block : grid_->blocks()) {
            inner_.push_back(block.cells);
            for (std::size_t d = 0; d < toSize(grid_->dims()); ++d)
                inner_.back().upper[d] += centring_.nodal[d] ? 1 : 0;
            Box &extent = extents_.emplace_back(inner_.back());
            for (std::size_t d = 0; d < toSize(grid_->dims()); ++d) {
                extent.lower[d] -= widths_.low[d];
                extent.upper[d] += widths_.high[d];
            }
        }
        for (int b = 0; b < blocks(); ++b) {
            auto &points = points_.emplace_back();
            forEachCell(extent(b), [&](const IndexVector &position) { points.push_back(pointAt(b, position)); });
        }
    }

    int blocks() const { return static_cast<int>(inner_.size()); }
    /// The points of the block's cells, and all with ghosts.
    const Box &inner(int block) const { return inner_[toSize(block)]; }
    const Box &extent(int block) const { return extents_[toSize(block)]; }
    const std::vector<Point> &points(int block) const { return points_[toSize(block)]; }
    const std::shared_ptr<const BlockGrid> &grid() const { return grid_; }
    const Centring &centring() const { return centring_; }
    const GhostWidths &widths() const { return widths_; }
    /// All points, each with its owner.
    const std::map<PointKey, Owner> &owners() const { return owners_; }
    /// Identifies the point at a position in the numbers of the block's index space.
    PointKey keyOf(int block, const IndexVector &position) const {
        return keyOf_({grid_->blocks()[toSize(block)].space, position});
    }
    std::size_t numberOf(int block, const IndexVector &position) const {
        const Box &box = extent(block);
        index number = 0;
        for (std::size_t d = 0; d < toSize(box.dims); ++d)
            number = number * (box.upper[d] - box.lower[d]) + position[d] - box.lower[d];
        return toSize(number);
    }

  private:
    Point pointAt(int block, const IndexVector &position) const {
        Point point;
        point.isInner = inner(block).contains(position);
        const auto found = owners_.find(keyOf(block, position));
        if (found == owners_.end())
            return point;
        const auto &[space, place, owner] = found->second;
        point.block = owner;
        point.at = numberOf(owner, place);
        point.isCopy = inShape(inner(block), widths_, position) &&
                       found->second != Owner{grid_->blocks()[toSize(block)].space, position, block};
        return point;
    }

    std::shared_ptr<const BlockGrid> grid_;
    GhostWidths widths_;
    Centring centring_;
    KeyOf keyOf_;
    std::map<PointKey, Owner> owners_;
    std::vector<Box> inner_;
    std::vector<Box> extents_;
    std::vector<std::vector<Point>> points_; ///< [blocks][points of the extent]
};

/// The rule for ghosts beyond one face, for one component.
template <class T>
struct WallRule {
    enum { None, Constant, Nearest, Mirror, Function } kind = None;
    T value{};
    T factor{};
};
/// By dimension, whether it is the upper face, and component.
template <class T>
using WallRules = std::map<std::tuple<int, bool, rowsize>, WallRule<T>>;

/// The values of all points and ghosts of all blocks, and what operations of the library make of them.
template <class T>
class ReplicatedField {
  public:
    ReplicatedField(std::shared_ptr<const ReplicatedGrid> grid, rowsize components)
        : grid_(std::move(grid)), components_(components) {
        for (int b = 0; b < grid_->blocks(); ++b)
            values_.emplace_back(grid_->points(b).size() * toSize(components));
    }
    const ReplicatedGrid &grid() const { return *grid_; }
    std::vector<std::vector<T>> &values() { return values_; } ///< [blocks][points x components]
    T &at(int block, std::size_t point, rowsize c) {
        return values_[toSize(block)][point * toSize(components_) + toSize(c)];
    }
    T &at(int block, const IndexVector &position, rowsize c) { return at(block, grid_->numberOf(block, position), c); }

    /// New values. A block's copies of one point are equal, so that pushes do not depend on the order of its regions;
    /// sums of real numbers depend on the order of blocks.
    void draw(std::uint64_t salt) {
        for (int b = 0; b < grid_->blocks(); ++b)
            forEachCell(grid_->extent(b), [&](const IndexVector &position) {
                std::uint64_t bits = mix({salt, static_cast<std::uint64_t>(b)});
                for (const index k : grid_->keyOf(b, position))
                    bits = mix({bits, static_cast<std::uint64_t>(k)});
                for (rowsize c = 0; c < components_; ++c) {
                    const std::uint64_t drawn = mix({bits, toSize(c)});
                    at(b, position, c) = std::is_integral_v<T>
                                             ? static_cast<T>(static_cast<int>(drawn % 2001) - 1000)
                                             : static_cast<T>(static_cast<double>(drawn % 2000003) / 7 - 100000);
                }
            });
    }

    void exchange() {
        forEachCopy([&](int block, std::size_t point, const ReplicatedGrid::Point &owner) {
            for (rowsize c = 0; c < components_; ++c)
                at(block, point, c) = at(owner.block, owner.at, c);
        });
    }

    /// False where one block has deposited different values for one point: then results depend on the order of the
    /// block's regions, which this model does not know.
    bool canPush() {
        std::map<std::tuple<int, int, std::size_t>, std::size_t> firsts; // by depositor and owner
        bool equal = true;
        forEachCopy([&](int block, std::size_t point, const ReplicatedGrid::Point &owner) {
            const auto first = firsts.try_emplace({block, owner.block, owner.at}, point).first->second;
            equal = equal && std::memcmp(&at(block, first, 0), &at(block, point, 0), rowBytes()) == 0;
        });
        return equal;
    }
    /// Deposits are combined in the order of the numbers of their blocks.
    void push(PushOp op) {
        forEachCopy([&](int block, std::size_t point, const ReplicatedGrid::Point &owner) {
            for (rowsize c = 0; c < components_; ++c) {
                T &ghost = at(block, point, c);
                T &value = at(owner.block, owner.at, c);
                value = combineElements(value, ghost, op);
                if (op == PushOp::Sum)
                    ghost = 0;
            }
        });
    }

    /// Copies as copyBlocks, with this field as the destination.
    void copyFrom(ReplicatedField &from, bool ghosts, PushOp op) {
        for (int b = 0; b < grid_->blocks(); ++b)
            forEachCell(ghosts ? grid_->extent(b) : grid_->inner(b), [&](const IndexVector &position) {
                const ReplicatedGrid::Point &point = grid_->points(b)[grid_->numberOf(b, position)];
                const auto found = from.grid().owners().find(grid_->keyOf(b, position));
                if (found == from.grid().owners().end() || !inShape(grid_->inner(b), grid_->widths(), position) ||
                    (op != PushOp::Replace && (point.isCopy || !point.isInner)))
                    return;
                for (rowsize c = 0; c < components_; ++c) {
                    T &value = at(b, position, c);
                    value =
                        combineElements(value, from.at(std::get<2>(found->second), std::get<1>(found->second), c), op);
                }
            });
    }

    /// Fills the ghosts beyond the ends of the only index space, dimension by dimension; `function(position, dimension,
    /// high, c)` is for rules that are one.
    template <class Function>
    void fillWalls(const WallRules<T> &rules, const Function &function) {
        const IndexSpace &space = grid_->grid()->spaces()[0];
        for (int d = 0; d < space.cells.dims; ++d)
            for (int b = 0; b < grid_->blocks() && !space.periodic[toSize(d)]; ++b)
                forEachCell(grid_->extent(b), [&](const IndexVector &position) {
                    const index first = space.cells.lower[toSize(d)];
                    const bool nodal = grid_->centring().nodal[toSize(d)];
                    const index last = space.cells.upper[toSize(d)] - (nodal ? 0 : 1);
                    const bool high = position[toSize(d)] > last;
                    if (!high && position[toSize(d)] >= first)
                        return;
                    IndexVector nearest = position;
                    nearest[toSize(d)] = high ? last : first;
                    IndexVector mirror = position;
                    const int between = nodal ? 0 : high ? 1 : -1; // cells mirror at a face between two
                    mirror[toSize(d)] = 2 * nearest[toSize(d)] + between - position[toSize(d)];
                    for (rowsize c = 0; c < components_; ++c) {
                        const WallRule<T> &rule = rules.at({d, high, c});
                        T &ghost = at(b, position, c);
                        if (rule.kind == WallRule<T>::Constant)
                            ghost = rule.value;
                        else if (rule.kind == WallRule<T>::Nearest)
                            ghost = at(b, nearest, c);
                        else if (rule.kind == WallRule<T>::Mirror)
                            ghost = static_cast<T>(rule.factor * at(b, mirror, c));
                        else if (rule.kind == WallRule<T>::Function)
                            ghost = function(position, d, high, c);
                    }
                });
    }

    T largest() {
        T most = std::numeric_limits<T>::lowest();
        for (const auto &[key, owner] : grid_->owners())
            for (rowsize c = 0; c < components_; ++c)
                most = std::max(most, at(std::get<2>(owner), std::get<1>(owner), c));
        return most;
    }

  private:
    std::size_t rowBytes() const { return toSize(components_) * sizeof(T); }
    /// Calls `visit(block, number of the ghost, its owner)` for all blocks in the order of their numbers.
    template <class Visit>
    void forEachCopy(const Visit &visit) const {
        for (int b = 0; b < grid_->blocks(); ++b)
            for (std::size_t p = 0; p < grid_->points(b).size(); ++p)
                if (const ReplicatedGrid::Point &point = grid_->points(b)[p]; point.isCopy)
                    visit(b, p, point);
    }

    std::shared_ptr<const ReplicatedGrid> grid_;
    rowsize components_;
    std::vector<std::vector<T>> values_;
};

/// Gives this rank's blocks, ghosts included, the values of the model. On the host.
template <class T>
void load(BlockField<T> &field, ReplicatedField<T> &model) {
    for (int b = 0; b < field.blocks(); ++b) {
        const auto view = field.view(b);
        forEachIn(field.block(b), field.block(b).extent, [&](const IndexVector &at, const IndexVector &position) {
            for (rowsize c = 0; c < field.components(); ++c)
                test::at(view, at, c) = model.at(field.block(b).block, position, c);
        });
    }
}

/// Counts values of this rank's blocks, ghosts included, that differ in a bit from the model; describes the first one.
/// On the host.
template <class T>
index differences(const BlockField<T> &field, ReplicatedField<T> &model, std::string &first) {
    index wrong = 0;
    for (int b = 0; b < field.blocks(); ++b) {
        const auto view = field.view(b);
        const int number = field.block(b).block;
        if (field.block(b).extent != model.grid().extent(number))
            first = fmt::format("block {} has {}", number, toString(field.block(b).extent)), ++wrong;
        else
            forEachIn(field.block(b), field.block(b).extent, [&](const IndexVector &at, const IndexVector &position) {
                for (rowsize c = 0; c < field.components(); ++c) {
                    const T expected = model.at(number, position, c);
                    if (std::memcmp(&test::at(view, at, c), &expected, sizeof expected) != 0 && wrong++ == 0)
                        first = fmt::format("component {} of ({}) of block {} on rank {} is {}, not {}", c,
                                            fmt::join(position, ", "), number, here().rank(), test::at(view, at, c),
                                            expected);
                }
            });
    }
    return wrong;
}

} // namespace DNDS::test
