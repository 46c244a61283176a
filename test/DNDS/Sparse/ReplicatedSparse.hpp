/// @file ReplicatedSparse.hpp
/// @brief A model of sparse fields: all blocks on every rank, in plain arrays, without messages.
#pragma once

#include "DNDS/Blocks/ReplicatedGrid.hpp"
#include "DNDS/Sparse/SparseCase.hpp"

#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace DNDS::test {

/// Points of a block that are ghosts of another one at one place: what an exchange sends as one rim.
struct Rim {
    int owner = 0;
    int ghosts = 0;                                            ///< the block that has them as ghosts
    std::vector<std::pair<std::size_t, std::size_t>> points{}; ///< numbers in both blocks
};

/// The rims of a grid of one index space. A place is the distance between ghosts and cells; the arms of a star are
/// apart.
inline std::vector<Rim> rimsOf(const ReplicatedGrid &grid) {
    std::map<std::tuple<int, int, IndexVector, int>, Rim> rims;
    for (int b = 0; b < grid.blocks(); ++b)
        forEachCell(grid.extent(b), [&](const IndexVector &position) {
            const std::size_t number = grid.numberOf(b, position);
            const ReplicatedGrid::Point &point = grid.points(b)[number];
            if (!point.isCopy)
                return;
            IndexVector distance = position;
            int arm = 0;
            const IndexVector &cell = std::get<1>(grid.owners().at(grid.keyOf(b, position)));
            for (std::size_t d = 0; d < toSize(grid.extent(b).dims); ++d) {
                distance[d] -= cell[d];
                if (grid.widths().shape == GhostShape::Star && position[d] < grid.inner(b).lower[d])
                    arm = 2 * static_cast<int>(d) + 1;
                else if (grid.widths().shape == GhostShape::Star && position[d] >= grid.inner(b).upper[d])
                    arm = 2 * static_cast<int>(d) + 2;
            }
            Rim &rim = rims.try_emplace({b, point.block, distance, arm}, Rim{point.block, b}).first->second;
            rim.points.emplace_back(point.at, number);
        });
    std::vector<Rim> list;
    for (auto &[place, rim] : rims)
        list.push_back(std::move(rim));
    return list;
}

/// All blocks of a sparse field, of which some are allocated, and what operations of the library make of them.
template <class T>
class ReplicatedSparse {
  public:
    ReplicatedSparse(std::shared_ptr<const ReplicatedGrid> grid, const SparseFieldOptions &options, T background)
        : grid_(std::move(grid)), rims_(rimsOf(*grid_)), options_(options), background_(background),
          blocks_(toSize(grid_->blocks())) {}

    bool isAllocated(int block) const { return !blocks_[toSize(block)].stages.empty(); }
    int emptyExchanges(int block) const { return blocks_[toSize(block)].empty; }
    /// All values of a stage, ghosts included.
    const std::vector<T> &stage(int block, int number) const { return blocks_[toSize(block)].stages[toSize(number)]; }
    /// The sum of the values beyond the default in freed blocks and in deposits for absent ones, exact for integers;
    /// and that of their sizes.
    real dropped() const { return dropped_; }
    real droppedSizes() const { return droppedSizes_; }

    void allocate(int block) {
        if (!isAllocated(block))
            blocks_[toSize(block)].stages.assign(
                toSize(options_.stages),
                std::vector<T>(grid_->points(block).size() * toSize(options_.components), background_));
    }
    void free(int block) { blocks_[toSize(block)] = {}; }
    void reset() {
        blocks_.assign(blocks_.size(), {});
        dropped_ = droppedSizes_ = 0;
    }
    void swapStages() {
        for (Block &block : blocks_)
            if (!block.stages.empty())
                std::swap(block.stages[0], block.stages[1]);
    }

    /// New values for some blocks, of which some are near the default or have nothing in ghosts; others are freed.
    /// `all`: no block stays as it is. Returns which have new values. As with ReplicatedField::draw, a block's copies
    /// of one cell are equal.
    std::vector<bool> draw(std::uint64_t salt, bool all = false) {
        std::vector<bool> drawn(blocks_.size());
        for (int b = 0; b < grid_->blocks(); ++b) {
            const std::uint64_t bits = mix({salt, static_cast<std::uint64_t>(b)}) >> 11U;
            const std::uint64_t what = bits % (all ? 2 : 6);
            if (what == 1)
                free(b);
            drawn[toSize(b)] = what == 0;
            if (!drawn[toSize(b)])
                continue;
            allocate(b);
            forEachCell(grid_->extent(b), [&](const IndexVector &position) {
                std::uint64_t place = bits;
                for (const index k : grid_->keyOf(b, position))
                    place = mix({place, static_cast<std::uint64_t>(k)});
                const bool filled = bits / 6 % 2 == 0 || grid_->inner(b).contains(position);
                for (rowsize c = 0; c < options_.components; ++c)
                    at(b, grid_->numberOf(b, position), c) =
                        filled ? valueFrom(mix({place, toSize(c)}) >> 11U, bits / 12 % 3 == 0) : background_;
            });
        }
        return drawn;
    }

    void exchange() {
        std::vector<bool> sent(rims_.size());
        std::vector<int> wanted;
        for (std::size_t k = 0; k < rims_.size(); ++k) {
            const Rim &rim = rims_[k];
            if (!isAllocated(rim.owner))
                continue;
            bool above = false;
            for (const auto &[cell, ghost] : rim.points)
                above = above || isAbove(rim.owner, cell, options_.allocationThreshold);
            sent[k] = above || options_.sendBelowThreshold;
            if (above)
                wanted.push_back(rim.ghosts);
        }
        for (const int block : wanted)
            allocate(block);
        for (std::size_t k = 0; k < rims_.size(); ++k)
            for (const auto &[cell, ghost] : rims_[k].points)
                for (rowsize c = 0; c < options_.components && isAllocated(rims_[k].ghosts); ++c)
                    at(rims_[k].ghosts, ghost, c) = sent[k] ? at(rims_[k].owner, cell, c) : background_;
        for (int b = 0; b < grid_->blocks() && options_.deallocationCount > 0; ++b)
            if (isAllocated(b))
                countEmpty(b);
    }

    /// False where results depend on the order in which one block's deposits for one cell are added.
    bool canPush() {
        std::map<std::tuple<int, int, std::size_t, rowsize>, T> deposits; // by depositor and cell
        bool equal = true;
        forEachDeposit([&](const Rim &rim, std::size_t cell, std::size_t ghost) {
            for (rowsize c = 0; c < options_.components; ++c)
                if (const T value = at(rim.ghosts, ghost, c); value != T{})
                    equal =
                        equal && deposits.try_emplace({rim.ghosts, rim.owner, cell, c}, value).first->second == value;
        });
        return equal;
    }
    /// Sums; the default is 0. Rims without a deposit add nothing; the others are added in the order of their blocks.
    void push() {
        std::vector<int> wanted;
        forEachDeposit([&](const Rim &rim, std::size_t /*cell*/, std::size_t ghost) {
            if (isAbove(rim.ghosts, ghost, options_.allocationThreshold))
                wanted.push_back(rim.owner);
        });
        std::vector<bool> deposits(blocks_.size());
        for (int b = 0; b < grid_->blocks(); ++b)
            deposits[toSize(b)] = isAllocated(b);
        for (const int block : wanted)
            allocate(block);
        for (const Rim &rim : rims_) // in the order of the blocks that deposit
            for (const auto &[cell, ghost] : rim.points)
                for (rowsize c = 0; c < options_.components && deposits[toSize(rim.ghosts)]; ++c)
                    if (const T value = at(rim.ghosts, ghost, c); isAllocated(rim.owner))
                        at(rim.owner, cell, c) = combineElements(at(rim.owner, cell, c), value, PushOp::Sum);
                    else
                        drop(static_cast<real>(value));
        clearGhosts();
    }
    void clearGhosts() {
        forEachDeposit([&](const Rim &rim, std::size_t /*cell*/, std::size_t ghost) {
            for (rowsize c = 0; c < options_.components; ++c)
                at(rim.ghosts, ghost, c) = background_;
        });
    }

  private:
    /// Absent without stages.
    struct Block {
        std::vector<std::vector<T>> stages{};
        int empty = 0;
    };

    T &at(int block, std::size_t point, rowsize c) {
        return blocks_[toSize(block)].stages[0][point * toSize(options_.components) + toSize(c)];
    }
    /// Two thirds of the values differ from the default. Never -0, whose sign a sum with 0 would lose.
    T valueFrom(std::uint64_t bits, bool quiet) const {
        if (bits % 3 == 0)
            return background_;
        const std::uint64_t size = 1 + bits / 3 % 1999;
        if constexpr (std::is_integral_v<T>)
            return static_cast<T>(background_ + static_cast<T>(size % (quiet ? 2 : 9)));
        const real by = (quiet ? 0.01 : 1.0) * static_cast<real>(size) / 700;
        return static_cast<T>(background_ + static_cast<T>(bits % 5 == 0 ? -by : by));
    }
    bool isAbove(int block, std::size_t point, real threshold) {
        for (rowsize c = 0; c < options_.components; ++c)
            if (!(std::fabs(static_cast<real>(at(block, point, c)) - static_cast<real>(background_)) <= threshold))
                return true;
        return false;
    }
    void drop(real value) {
        dropped_ += value;
        droppedSizes_ += std::fabs(value);
    }
    /// Counts exchanges in which the block was empty, its ghosts included, and frees it.
    void countEmpty(int block) {
        bool empty = true;
        for (std::size_t p = 0; p < grid_->points(block).size(); ++p)
            if (grid_->points(block)[p].isInner || grid_->points(block)[p].isCopy)
                empty = empty && !isAbove(block, p, options_.deallocationThreshold);
        int &count = blocks_[toSize(block)].empty;
        count = empty ? count + 1 : 0;
        if (count < options_.deallocationCount)
            return;
        for (std::size_t p = 0; p < grid_->points(block).size(); ++p)
            for (rowsize c = 0; c < options_.components && grid_->points(block)[p].isInner; ++c)
                drop(static_cast<real>(at(block, p, c)) - static_cast<real>(background_));
        free(block);
    }
    /// Calls `visit(rim, number of the cell, number of the ghost)` for the ghosts of allocated blocks.
    template <class Visit>
    void forEachDeposit(const Visit &visit) const {
        for (const Rim &rim : rims_)
            for (const auto &[cell, ghost] : rim.points)
                if (isAllocated(rim.ghosts))
                    visit(rim, cell, ghost);
    }

    std::shared_ptr<const ReplicatedGrid> grid_;
    std::vector<Rim> rims_; ///< sorted by the number of the block that has the ghosts
    SparseFieldOptions options_;
    T background_;
    std::vector<Block> blocks_;
    real dropped_ = 0;
    real droppedSizes_ = 0;
};

/// Gives this rank's blocks the allocation of the model, and drawn blocks its values. On the host.
template <class T>
void load(SparseField<T> &field, const ReplicatedSparse<T> &model, const std::vector<bool> &drawn) {
    for (int b = 0; b < field.blocks(); ++b) {
        const int number = field.block(b).block;
        model.isAllocated(number) ? field.allocate(b) : field.free(b);
        if (!drawn[toSize(number)])
            continue;
        const auto view = field.view(b);
        std::size_t n = 0;
        forEachIn(field.block(b), field.block(b).extent, [&](const IndexVector &at, const IndexVector &) {
            for (rowsize c = 0; c < field.components(); ++c)
                test::at(view, at, c) = model.stage(number, 0)[n++];
        });
    }
}

/// The first difference of this rank's blocks from the model, to the bit, or "". On the host.
template <class T>
std::string difference(const SparseField<T> &field, const ReplicatedSparse<T> &model) {
    for (int b = 0; b < field.blocks(); ++b) {
        const int number = field.block(b).block;
        if (field.isAllocated(b) != model.isAllocated(number))
            return fmt::format("block {} of '{}' is {}", number, field.name(),
                               field.isAllocated(b) ? "allocated" : "absent");
        if (field.emptyExchanges(b) != model.emptyExchanges(number))
            return fmt::format("block {} of '{}' was empty in {} exchanges, not {}", number, field.name(),
                               field.emptyExchanges(b), model.emptyExchanges(number));
        for (int s = 0; s < field.options().stages && field.isAllocated(b); ++s)
            if (!sameBits(elementsOf(field.view(b, s)), model.stage(number, s)))
                return fmt::format("stage {} of block {} of '{}' differs", s, number, field.name());
    }
    return {};
}

} // namespace DNDS::test
