#include "DNDS/Blocks/Passages.hpp"

#include <algorithm>
#include <utility>

namespace DNDS {

/// Follows the cells or points of a box through passages to the blocks that own them. Depth first: the part inside an
/// index space is looked up in its bins, the part outside goes through the passages, by axis; pieces for which one
/// passage finds no owner try the next. O(pieces x (passages + blocks nearby)), without messages. For one periodic
/// space AMReX intersects a BoxArray with the shifts of Periodicity; chains of connections need the recursion.
/// Local, for blocks of any rank, as every rank has the whole grid. The order of regions depends on bins and passages
/// alone, so all ranks find the same one.
class BlockGrid::GhostFinder {
  public:
    /// Finds all sources. If `block` is not -1, leaves out the cells that it owns at their own place. Points in the
    /// plane of a connected face may be on no passage: `findAround` looks for their owners.
    GhostFinder(const BlockGrid &grid, const Centring &centring, int space, const Box &box, int block)
        : grid_(grid), centring_(centring.in(grid.dims())), box_(box), block_(block) {
        const std::vector<Box> left = find(space, box, here_, 0);
        if (!centring_.ofCells() && !grid_.passages_[toSize(space)].empty())
            for (const Box &points : left)
                findAround(space, points);
    }
    std::vector<GhostRegion> take() { return std::move(regions_); }

  private:
    /// One place of shared points: an index space, and the map of the ghosts to it. A corner that k connections share
    /// has a place in each of their spaces.
    struct Place {
        int space = 0;
        Box points; ///< in the numbers of the index space
        IndexTransform toSource;
    };

    /// Finds the owners of the cells of `box`, to which `toHere` maps the ghosts. Returns the cells without an owner,
    /// in the numbers of `space`, so that the caller can try another passage for them. Terminates, because each passage
    /// brings cells nearer to their index space; `passed` counts the passages so far. The limits are for ghosts that
    /// are far wider than the spaces.
    /// Pieces never overlap: each passage takes its part out of `outside` and returns what it could not place.
    std::vector<Box> find(int space, const Box &box, const IndexTransform &toHere, int passed) {
        DNDS_CHECK(
            passed <= maxPassed && ++searches_ <= maxSearches, ArgumentError,
            "the ghosts in {} reach through {} periods and connections in {} pieces: they are far wider than the "
            "index spaces",
            toString(box_), passed, searches_);
        const Box cells = centring_.pointsOf(grid_.spaces_[toSize(space)].cells);
        const Box inside = box.intersect(cells);
        std::vector<Box> left =
            centring_.ofCells() ? findCells(space, inside, toHere) : findPoints(space, inside, toHere);
        std::vector<Box> outside;
        subtractBox(box, cells, outside);
        for (const Passage &passage : grid_.passages_[toSize(space)]) {
            const Box beyond = passage.pointsBeyond(centring_);
            const IndexTransform toOther = passage.toOther.ofPoints(centring_);
            std::vector<Box> still = subtractBox(outside, beyond);
            for (const Box &piece : outside) {
                const Box through = piece.intersect(beyond);
                if (through.empty())
                    continue;
                const IndexTransform back = toOther.inverse();
                for (const Box &missed : find(passage.other, toOther(through), toHere.then(toOther), passed + 1))
                    still.push_back(back(missed));
            }
            outside = std::move(still);
        }
        left.insert(left.end(), outside.begin(), outside.end());
        return left;
    }

    /// The blocks with cells of `box`, all inside of the index space. Returns the cells in holes.
    std::vector<Box> findCells(int space, const Box &box, const IndexTransform &toHere) {
        std::vector<Box> left;
        if (box.empty())
            return left;
        // Blocks do not overlap, so equal numbers of cells mean no holes: nothing to subtract.
        const bool full = grid_.cellsOfBlocks(space) == grid_.spaces_[toSize(space)].cells.size();
        if (!full)
            left.push_back(box);
        const IndexTransform back = toHere.inverse();
        grid_.visitBlocks(space, box, [&](int source, const Box &common) {
            left = subtractBox(left, common);
            add({back(common), source, toHere});
        });
        return left;
    }

    /// The same for points of an index space, which several blocks may share, at other places as well. All candidates
    /// compete; each point goes to the first of them (see BlockGrid for the order), whichever block asks: so all ranks
    /// agree on its owner without messages.
    /// Cost: O(places x blocks nearby) candidates, each entered among the owners found so far.
    std::vector<Box> findPoints(int space, const Box &box, const IndexTransform &toHere) {
        std::vector<Box> left;
        if (box.empty())
            return left;
        std::vector<GhostRegion> owners;
        for (const Place &place : placesOf({space, box, toHere}))
            for (const GhostRegion &copies : firstBlocksAt(place))
                enter(copies, owners);
        left.push_back(box);
        for (const GhostRegion &owner : owners) {
            left = subtractBox(left, toHere(owner.ghosts));
            add(owner);
        }
        return left;
    }

    /// Adds points that are on no passage, while a cell next to them is: points in the plane of a connected face,
    /// beside the face. Finds the owners of these cells, then the owners of the cells' points.
    void findAround(int space, const Box &box) {
        std::vector<GhostRegion> owners;
        for (const GhostRegion &cells : GhostFinder(grid_, {}, space, centring_.cellsAt(box), -1).take()) {
            const IndexTransform toSource = cells.toSource.ofPoints(centring_);
            const Box points = toSource(centring_.pointsOf(cells.ghosts).intersect(box));
            for (const Place &place : placesOf({grid_.blocks_[toSize(cells.source)].space, points, toSource}))
                for (const GhostRegion &copies : firstBlocksAt(place))
                    enter(copies, owners);
        }
        for (const GhostRegion &owner : owners)
            add(owner);
    }

    /// Adds a region, unless it is the block's own memory: its cells at another place, through a period, are ghosts.
    void add(const GhostRegion &region) {
        if (region.source != block_ || region.toSource != here_)
            regions_.push_back(region);
    }

    /// All places of points of an index space: this one, and those on faces that passages lead to. The closure under
    /// passages, breadth first; ends because only points new to a map are added, and faces have finitely many maps.
    /// A corner of k spaces has about k places; a face point has two, any other point one.
    std::vector<Place> placesOf(const Place &first) const {
        std::vector<Place> places{first};
        for (std::size_t k = 0; k < places.size(); ++k) {
            const Place from = places[k];
            for (const Passage &passage : grid_.passages_[toSize(from.space)]) {
                const Box common = from.points.intersect(passage.pointsOfFace(centring_));
                if (common.empty())
                    continue;
                const IndexTransform toOther = passage.toOther.ofPoints(centring_);
                const IndexTransform toSource = from.toSource.then(toOther);
                std::vector<Box> fresh{toOther(common)};
                for (const Place &known : places)
                    if (known.space == passage.other && known.toSource == toSource)
                        fresh = subtractBox(fresh, known.points);
                for (const Box &points : fresh)
                    places.push_back({passage.other, points, toSource});
            }
        }
        return places;
    }

    /// The blocks at one place; where several share points, the one with the lowest number. `ghosts` are in the numbers
    /// of the ghosts again, so that candidates of different places can be compared.
    std::vector<GhostRegion> firstBlocksAt(const Place &place) const {
        std::vector<int> blocks;
        grid_.visitBlocks(place.space, centring_.cellsAt(place.points),
                          [&](int block, const Box &) { blocks.push_back(block); });
        std::ranges::sort(blocks);
        const IndexTransform back = place.toSource.inverse();
        std::vector<GhostRegion> regions;
        std::vector<Box> left{place.points};
        for (const int block : blocks) {
            const Box points = centring_.pointsOf(grid_.blocks_[toSize(block)].cells);
            for (const Box &piece : left)
                if (const Box common = piece.intersect(points); !common.empty())
                    regions.push_back({back(common), block, place.toSource});
            left = subtractBox(left, points);
        }
        return regions;
    }

    /// Adds copies of points, except for points of which `owners` has a preceding copy; takes the others from `owners`.
    /// Invariant: `owners` do not overlap, so each point has one owner. O(owners), each of which may be cut in pieces.
    void enter(const GhostRegion &copies, std::vector<GhostRegion> &owners) const {
        std::vector<GhostRegion> remaining;
        std::vector<Box> won{copies.ghosts};
        for (const GhostRegion &owner : owners) {
            const Box common = owner.ghosts.intersect(copies.ghosts);
            std::vector<Box> first;
            if (!common.empty())
                addPreceding(copies, owner, common, first);
            std::vector<Box> kept{owner.ghosts};
            for (const Box &box : first)
                kept = subtractBox(kept, box);
            for (const Box &box : kept) {
                remaining.push_back({box, owner.source, owner.toSource});
                won = subtractBox(won, box);
            }
        }
        for (const Box &box : won)
            remaining.push_back({box, copies.source, copies.toSource});
        owners = std::move(remaining);
    }

    /// Adds the parts of `box` in which the places of `a` precede those of `b`: by index space, then in C order. The
    /// first dimension in which positions differ decides. A box in which the difference has both signs is halved:
    /// O(log extent) pieces where a face is mirrored onto itself, O(extent) along the diagonal of a transposed one.
    /// Lexicographic order of two affine images, decided for whole boxes. Halving ends, as a single cell has one sign.
    void addPreceding(const GhostRegion &a, const GhostRegion &b, const Box &box, std::vector<Box> &into) const {
        const int spaceA = grid_.blocks_[toSize(a.source)].space;
        const int spaceB = grid_.blocks_[toSize(b.source)].space;
        if (spaceA != spaceB) {
            if (spaceA < spaceB)
                into.push_back(box);
            return;
        }
        const IndexTransform fromA = a.toSource.inverse();
        const IndexTransform fromB = b.toSource.inverse();
        for (int d = 0; d < box.dims; ++d) {
            // The positions in dimension d differ by a linear function of one or two of the ghosts' dimensions, whose
            // extremes over the box, `low` and `high`, are at corners.
            const std::size_t k = toSize(d);
            IndexVector slope{};
            slope[toSize(fromA.axis[k])] += fromA.sign[k];
            slope[toSize(fromB.axis[k])] -= fromB.sign[k];
            index low = a.toSource(box.lower)[k] - b.toSource(box.lower)[k];
            index high = low;
            std::size_t longest = 0;
            for (int e = 0; e < box.dims; ++e)
                if (const index change = slope[toSize(e)] * (box.extent(e) - 1); change != 0) {
                    (change < 0 ? low : high) += change;
                    longest = toSize(e);
                }
            if (low == 0 && high == 0)
                continue;
            if (high < 0)
                into.push_back(box);
            if (high < 0 || low > 0)
                return;
            Box half = box;
            half.upper[longest] = box.lower[longest] + (box.upper[longest] - box.lower[longest]) / 2;
            addPreceding(a, b, half, into);
            half.lower[longest] = std::exchange(half.upper[longest], box.upper[longest]);
            addPreceding(a, b, half, into);
            return;
        }
    }

    static constexpr int maxPassed = 1000;      ///< depth of the recursion
    static constexpr int maxSearches = 1000000; ///< calls of `find`

    const BlockGrid &grid_;
    Centring centring_;
    const Box &box_; ///< for messages; used by the constructor only, while the caller's box lives
    int block_;      ///< the block whose ghosts are sought, or -1
    int searches_ = 0;
    IndexTransform here_ = IndexTransform::translation(grid_.dims(), {}); ///< the map of a block's own cells
    std::vector<GhostRegion> regions_;
};

// Searches the parts of a star one by one. They do not overlap, so neither do the regions.
std::vector<GhostRegion> BlockGrid::ghostRegions(int block, const GhostWidths &widths, const Centring &centring) const {
    widths.requireFor(dims());
    const Block &mine = this->block(block);
    std::vector<GhostRegion> regions;
    for (const Box &part : withGhosts(centring.pointsOf(mine.cells), widths)) {
        const std::vector<GhostRegion> found = GhostFinder(*this, centring, mine.space, part, block).take();
        regions.insert(regions.end(), found.begin(), found.end());
    }
    return regions;
}

std::vector<GhostRegion> BlockGrid::sourcesOf(int space, const Box &box, const Centring &centring) const {
    DNDS_CHECK(space >= 0 && toSize(space) < spaces_.size(), IndexError, "there is no index space {}, but {}", space,
               spaces_.size());
    return GhostFinder(*this, centring, space, box, -1).take();
}

} // namespace DNDS
