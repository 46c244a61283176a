#include "BlockCase.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <cstring>

namespace DNDS::Bench {

namespace {

template <int Doubles>
void copyRows(double *__restrict to, const std::array<index, 3> &toStride, const double *__restrict from,
              const std::array<index, 3> &fromStride, const std::array<index, 3> &count) {
    for (index i = 0; i < count[0]; ++i)
        for (index j = 0; j < count[1]; ++j) {
            double *row = to + i * toStride[0] + j * toStride[1];
            const double *source = from + i * fromStride[0] + j * fromStride[1];
            for (int k = 0; k < Doubles; ++k)
                row[k] = source[k];
        }
}

void copyBox(double *to, const std::array<index, 3> &toStride, const double *from,
             const std::array<index, 3> &fromStride, const std::array<index, 3> &count, index doubles) {
    switch (doubles) {
    case 1:
        return copyRows<1>(to, toStride, from, fromStride, count);
    case 2:
        return copyRows<2>(to, toStride, from, fromStride, count);
    case 5:
        return copyRows<5>(to, toStride, from, fromStride, count);
    case 10:
        return copyRows<10>(to, toStride, from, fromStride, count);
    default:
        for (index i = 0; i < count[0]; ++i)
            for (index j = 0; j < count[1]; ++j)
                std::memcpy(to + i * toStride[0] + j * toStride[1], from + i * fromStride[0] + j * fromStride[1],
                            static_cast<std::size_t>(doubles) * sizeof(double));
    }
}

std::array<index, 3> packedStride(const Region &region) {
    const index row = region.count[2] * region.stride[2];
    return {region.count[1] * row, row, region.stride[2]};
}

} // namespace

void copyRegion(double *to, const Region &at, const double *from, const Region &of) {
    copyBox(to + at.first, at.stride, from + of.first, of.stride, of.count, of.count[2] * of.stride[2]);
}

double *packRegion(double *to, const double *from, const Region &of) {
    copyBox(to, packedStride(of), from + of.first, of.stride, of.count, of.count[2] * of.stride[2]);
    return to + of.doubles();
}

const double *unpackRegion(double *to, const Region &at, const double *from) {
    copyBox(to + at.first, at.stride, from, packedStride(at), at.count, at.count[2] * at.stride[2]);
    return from + at.doubles();
}

namespace {

std::shared_ptr<const BlockPattern> patternOf(const CommunicatorView &comm, std::shared_ptr<const BlockGrid> grid,
                                              index width, GhostShape shape) {
    GhostWidths ghosts = GhostWidths::uniform(grid->dims(), width);
    ghosts.shape = shape;
    return BlockPattern::make(comm, std::move(grid), ghosts);
}

} // namespace

BlockCase::BlockCase(CommunicatorView comm, std::string name, const std::shared_ptr<const BlockGrid> &grid, index width,
                     int components, GhostShape shape)
    : comm_(comm), name_(std::move(name)), pattern_(patternOf(comm, grid, width, shape)), width_(width),
      components_(components) {
    DNDS_CHECK(grid->dims() == 3, ArgumentError, "the benchmark is for 3 dimensions");
    for (const BlockMemory &memory : pattern_->blocks())
        addGhosts(memory);
    // Cells that others need of this rank, in the order in which they hold them.
    const auto memoryOf = [&](int block) { return *std::ranges::find(pattern_->blocks(), block, &BlockMemory::block); };
    for (int rank = 0; rank < grid->ranks(); ++rank) {
        if (rank == comm.rank())
            continue;
        for (const int block : grid->blocksOfRank(rank))
            for (const GhostRegion &ghosts : grid->ghostRegions(block, pattern_->ghosts())) {
                if (grid->block(ghosts.source).rank != comm.rank())
                    continue;
                const BlockMemory source = memoryOf(ghosts.source);
                const Box cells = ghosts.toSource(ghosts.ghosts);
                PeerRegions &to = peer(sends_, rank);
                to.regions.push_back(regionOf(cells, source));
                to.doubles += to.regions.back().doubles();
                addNeeded(cells, source);
            }
    }
    std::ranges::sort(needed_, {}, &Value::place);
    needed_.erase(std::ranges::unique(needed_, {}, &Value::place).begin(), needed_.end());
}

void BlockCase::addGhosts(const BlockMemory &memory) {
    const BlockGrid &grid = *pattern_->grid();
    for (const GhostRegion &ghosts : grid.ghostRegions(memory.block, pattern_->ghosts())) {
        const Region here = regionOf(ghosts.ghosts, memory);
        const int owner = grid.block(ghosts.source).rank;
        const int space = grid.block(ghosts.source).space;
        forEachCell(ghosts.ghosts, [&](const IndexVector &cell) {
            const Box one(3, cell, {cell[0] + 1, cell[1] + 1, cell[2] + 1, 1});
            const index place = regionOf(one, memory).first;
            for (int k = 0; k < components_; ++k)
                ghosts_.push_back({place + k, valueOf(ghosts.toSource(cell), space, k, 0)});
        });
        if (owner == comm_.rank()) {
            const auto source = std::ranges::find(pattern_->blocks(), ghosts.source, &BlockMemory::block);
            const Box cells = ghosts.toSource(ghosts.ghosts);
            own_.push_back({regionOf(cells, *source), here});
            addNeeded(cells, *source);
            continue;
        }
        PeerRegions &from = peer(receives_, owner);
        from.regions.push_back(here);
        from.doubles += here.doubles();
        IndexVector inwards{};
        for (int d = 0; d < 3; ++d) {
            const std::size_t k = toSize(d);
            if (ghosts.ghosts.lower[k] < memory.cells.lower[k])
                inwards[k] = width_;
            else if (ghosts.ghosts.lower[k] >= memory.cells.upper[k])
                inwards[k] = -width_;
        }
        inner_.push_back({regionOf(ghosts.ghosts.shift(inwards), memory), here});
    }
}

void BlockCase::addNeeded(const Box &cells, const BlockMemory &memory) {
    const int space = pattern_->grid()->block(memory.block).space;
    forEachCell(cells, [&](const IndexVector &cell) {
        const Box one(3, cell, {cell[0] + 1, cell[1] + 1, cell[2] + 1, 1});
        const index place = regionOf(one, memory).first;
        for (int k = 0; k < components_; ++k)
            needed_.push_back({place + k, valueOf(cell, space, k, 0)});
    });
}

PeerRegions &BlockCase::peer(std::vector<PeerRegions> &peers, int rank) {
    const auto found = std::ranges::find(peers, rank, &PeerRegions::rank);
    if (found != peers.end())
        return *found;
    peers.push_back({rank, {}, 0});
    return peers.back();
}

Region BlockCase::regionOf(const Box &cells, const BlockMemory &memory) const {
    Region region;
    index stride = components_;
    for (int d = 2; d >= 0; --d) {
        const std::size_t k = toSize(d);
        region.count[k] = cells.extent(d);
        region.stride[k] = stride;
        region.extent[k] = memory.extent.extent(d);
        region.start[k] = cells.lower[k] - memory.extent.lower[k];
        region.first += region.start[k] * stride;
        stride *= region.extent[k];
    }
    region.blockFirst = memory.firstRow * components_;
    region.first += region.blockFirst;
    return region;
}

index BlockCase::received() const {
    index sum = 0;
    for (const PeerRegions &from : receives_)
        sum += from.doubles;
    return sum;
}

index BlockCase::copied() const {
    index sum = 0;
    for (const RegionCopy &copy : own_)
        sum += copy.to.doubles();
    return sum;
}

double BlockCase::valueOf(const IndexVector &cell, int space, int component, int round) {
    const index number = ((cell[0] * 1024 + cell[1]) * 1024 + cell[2]) * 8 + component + (index{space} << 34);
    return static_cast<double>(number) + 0x1p42 * round;
}

void BlockCase::rewrite(double *memory, int round) const {
    for (const Value &value : needed_)
        memory[value.place] = value.base + 0x1p42 * round;
}

void BlockCase::compare(const double *memory, int round, const std::string &method) const {
    for (const Value &ghost : ghosts_)
        DNDS_CHECK(memory[ghost.place] == ghost.base + 0x1p42 * round, DataError,
                   "{}: {} brought {} instead of {} to the ghost at double {}", name_, method, memory[ghost.place],
                   ghost.base + 0x1p42 * round, ghost.place);
}

} // namespace DNDS::Bench
