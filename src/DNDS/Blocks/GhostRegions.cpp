#include "DNDS/Blocks/GridParts.hpp"

#include <cstdlib>
#include <iterator>
#include <utility>

namespace DNDS {

namespace {

/// Stands for infinity. Transforms of it stay far from overflow.
constexpr index endless = index{1} << 61;

/// All cells beyond the face whose first layer of cells is `face`.
Box beyondFace(const Box &face, int axis, bool upper, const Box &space) {
    Box beyond = face;
    for (int d = 0; d < space.dims; ++d) {
        const std::size_t k = toSize(d);
        if (d == axis ? !upper : face.lower[k] == space.lower[k])
            beyond.lower[k] = -endless;
        if (d == axis ? upper : face.upper[k] == space.upper[k])
            beyond.upper[k] = endless;
    }
    return beyond;
}

/// One side of a connection: the face in vertices, its normal, and which end of the space it lies on.
struct ConnectedFace {
    IndexVector low{};
    IndexVector high{};
    int axis = -1;
    bool upper = false;

    ConnectedFace(const IndexSpace &space, const IndexVector &begin, const IndexVector &end, std::size_t number) {
        for (int d = 0; d < space.cells.dims; ++d) {
            const std::size_t k = toSize(d);
            low[k] = std::min(begin[k], end[k]);
            high[k] = std::max(begin[k], end[k]);
            DNDS_CHECK(low[k] >= space.cells.lower[k] && high[k] <= space.cells.upper[k], ArgumentError,
                       "connection {} has vertices [{}, {}] in dimension {}, index space '{}' has [{}, {}]", number,
                       low[k], high[k], d, space.name, space.cells.lower[k], space.cells.upper[k]);
            if (low[k] != high[k])
                continue;
            DNDS_CHECK(axis == -1, ArgumentError,
                       "connection {} is no face in index space '{}': it has one vertex in dimensions {} and {}",
                       number, space.name, axis, d);
            axis = d;
        }
        DNDS_CHECK(axis >= 0, ArgumentError,
                   "connection {} is no face in index space '{}': it has several vertices in all dimensions", number,
                   space.name);
        const std::size_t normal = toSize(axis);
        upper = low[normal] == space.cells.upper[normal];
        DNDS_CHECK(upper || low[normal] == space.cells.lower[normal], ArgumentError,
                   "connection {} lies inside of index space '{}': vertex {} of dimension {}, which has [{}, {}]",
                   number, space.name, low[normal], axis, space.cells.lower[normal], space.cells.upper[normal]);
        DNDS_CHECK(!space.periodic[normal], ArgumentError,
                   "connection {} is on a face of index space '{}' in dimension {}, which is periodic", number,
                   space.name, axis);
    }

    /// The first layer of cells beyond the face.
    Box layer(int dims) const {
        Box cells(dims, low, high);
        const std::size_t k = toSize(axis);
        cells.lower[k] -= upper ? 0 : 1;
        cells.upper[k] = cells.lower[k] + 1;
        return cells;
    }
};

/// The vertex of the other space at `vertex`; dimensions with a transform of 0 do not move.
IndexVector otherVertexOf(const Connection &connection, const IndexVector &vertex, int dims) {
    IndexVector other = connection.otherBegin;
    for (int d = 0; d < dims; ++d) {
        const std::size_t k = toSize(d);
        const int to = connection.transform[k];
        if (to != 0)
            other[toSize(std::abs(to) - 1)] += (to > 0 ? 1 : -1) * (vertex[k] - connection.begin[k]);
    }
    return other;
}

/// The transform with the entry of the normal, if it is 0, derived from the faces.
std::array<int, maxBlockDims> completedTransform(std::array<int, maxBlockDims> transform, const ConnectedFace &here,
                                                 const ConnectedFace &there, std::size_t number) {
    const bool sameWay = here.upper != there.upper; // leaving here by the upper end enters there at the lower one
    const int normal = (there.axis + 1) * (sameWay ? 1 : -1);
    int &entry = transform[toSize(here.axis)];
    if (entry == 0)
        entry = normal;
    DNDS_CHECK(entry == normal, ArgumentError,
               "entry {} of the transform of connection {} is {}: the faces need {}, or one index space lies on the "
               "other",
               here.axis, number, entry, normal);
    return transform;
}

} // namespace

void BlockGrid::addPeriods() {
    for (std::size_t s = 0; s < spaces_.size(); ++s)
        for (int d = 0; d < dims(); ++d) {
            const Box &cells = spaces_[s].cells;
            if (!spaces_[s].periodic[toSize(d)] || cells.empty())
                continue;
            for (const bool upper : {false, true}) {
                Passage passage{d, upper, cells, {}, static_cast<int>(s), {}};
                passage.face.lower[toSize(d)] = upper ? cells.upper[toSize(d)] : cells.lower[toSize(d)] - 1;
                passage.face.upper[toSize(d)] = passage.face.lower[toSize(d)] + 1;
                IndexVector period{};
                period[toSize(d)] = upper ? -cells.extent(d) : cells.extent(d);
                passage.toOther = IndexTransform::translation(dims(), period);
                addPassage(static_cast<int>(s), passage, 0);
            }
        }
}

void BlockGrid::addPassages(const Connection &connection, std::size_t number) {
    for (const int space : {connection.space, connection.other})
        DNDS_CHECK(space >= 0 && toSize(space) < spaces_.size(), ArgumentError,
                   "connection {} names index space {}, of which there are {}", number, space, spaces_.size());
    const IndexSpace &mine = spaces_[toSize(connection.space)];
    const IndexSpace &others = spaces_[toSize(connection.other)];
    const ConnectedFace here(mine, connection.begin, connection.end, number);
    for (int d = 0; d < dims(); ++d) {
        const int entry = connection.transform[toSize(d)];
        DNDS_CHECK(entry >= -dims() && entry <= dims(), ArgumentError,
                   "entry {} of the transform of connection {} is {}: there are {} dimensions", d, number, entry,
                   dims());
        DNDS_CHECK(entry != 0 || d == here.axis, ArgumentError,
                   "entry {} of the transform of connection {} is 0: only that of the face's normal, {}, may be", d,
                   number, here.axis);
    }
    const ConnectedFace there(others, connection.otherBegin, otherVertexOf(connection, connection.end, dims()), number);
    const auto transform = completedTransform(connection.transform, here, there, number);
    IndexTransform toOther;
    try {
        toOther = IndexTransform::ofVertices(std::span(transform).first(toSize(dims())), connection.begin,
                                             connection.otherBegin);
    } catch (const ArgumentError &error) {
        throw ArgumentError(fmt::format("connection {}: {}", number, error.message()));
    }
    addPassage(connection.space, {here.axis, here.upper, here.layer(dims()), {}, connection.other, toOther}, number);
    addPassage(connection.other,
               {there.axis, there.upper, there.layer(dims()), {}, connection.space, toOther.inverse()}, number);
}

void BlockGrid::addPassage(int space, Passage passage, std::size_t number) {
    std::vector<Passage> &all = passages_[toSize(space)];
    const IndexSpace &mine = spaces_[toSize(space)];
    for (const Passage &before : all) {
        const bool same = before.face == passage.face && before.other == passage.other &&
                          before.toOther == passage.toOther; // files name each connection in both zones
        if (same)
            return;
        DNDS_CHECK(before.axis != passage.axis || before.upper != passage.upper ||
                       !before.face.intersects(passage.face),
                   ArgumentError, "connection {} and another one share cells {} next to index space '{}'", number,
                   toString(before.face.intersect(passage.face)), mine.name);
    }
    passage.beyond = beyondFace(passage.face, passage.axis, passage.upper, mine.cells);
    const auto place = std::ranges::upper_bound(all, passage.axis, {}, &Passage::axis);
    all.insert(place, passage);
}

/// Follows the cells of a box through passages to the blocks that own them.
class BlockGrid::GhostFinder {
  public:
    /// Leaves out the cells of `box` that are those of `block`, if any.
    GhostFinder(const BlockGrid &grid, int space, const Box &box, int block) : grid_(grid), box_(box), block_(block) {
        find(space, box, IndexTransform::translation(grid.dims(), {}), 0);
    }
    std::vector<GhostRegion> take() { return std::move(regions_); }

  private:
    /// Finds the owners of the cells of `box`, to which `toHere` maps the ghosts. Returns the cells without an owner.
    /// Terminates, because each passage brings cells nearer to their index space; `passed` counts the passages so far.
    std::vector<Box> find(int space, const Box &box, const IndexTransform &toHere, int passed) {
        DNDS_CHECK(
            passed <= maxPassed && ++searches_ <= maxSearches, ArgumentError,
            "the ghosts in {} reach through {} periods and connections in {} pieces: they are far wider than the "
            "index spaces",
            toString(box_), passed, searches_);
        const bool own = passed == 0;
        const Box &cells = grid_.spaces_[toSize(space)].cells;
        std::vector<Box> left = findInside(space, box.intersect(cells), toHere, own);
        std::vector<Box> outside;
        subtractBox(box, cells, outside);
        for (const Passage &passage : grid_.passages_[toSize(space)]) {
            std::vector<Box> still;
            for (const Box &piece : outside) {
                subtractBox(piece, passage.beyond, still);
                const Box through = piece.intersect(passage.beyond);
                if (through.empty())
                    continue;
                const IndexTransform back = passage.toOther.inverse();
                for (const Box &missed :
                     find(passage.other, passage.toOther(through), toHere.then(passage.toOther), passed + 1))
                    still.push_back(back(missed));
            }
            outside = std::move(still);
        }
        left.insert(left.end(), outside.begin(), outside.end());
        return left;
    }

    std::vector<Box> findInside(int space, const Box &box, const IndexTransform &toHere, bool own) {
        std::vector<Box> left;
        if (box.empty())
            return left;
        // Only spaces that blocks do not fill can leave cells without an owner.
        const bool full = grid_.bins_[toSize(space)].cells == grid_.spaces_[toSize(space)].cells.size();
        if (!full)
            left.push_back(box);
        const IndexTransform back = toHere.inverse();
        grid_.visitBlocks(space, box, [&](int source, const Box &common) {
            std::vector<Box> rest;
            for (const Box &piece : left)
                subtractBox(piece, common, rest);
            left = std::move(rest);
            if (!own || source != block_)
                regions_.push_back({back(common), source, toHere});
        });
        return left;
    }

    static constexpr int maxPassed = 1000;
    static constexpr int maxSearches = 1000000;

    const BlockGrid &grid_;
    const Box &box_;
    int block_;
    int searches_ = 0;
    std::vector<GhostRegion> regions_;
};

std::vector<GhostRegion> BlockGrid::ghostRegions(int block, const GhostWidths &widths) const {
    widths.requireFor(dims());
    const Block &mine = this->block(block);
    return GhostFinder(*this, mine.space, mine.cells.grow(widths), block).take();
}

std::vector<GhostRegion> BlockGrid::sourcesOf(int space, const Box &box) const {
    return GhostFinder(*this, space, box, -1).take();
}

} // namespace DNDS
