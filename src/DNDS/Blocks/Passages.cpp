#include "DNDS/Blocks/Passages.hpp"

#include <fmt/ranges.h>

#include <cstdlib>
#include <span>

namespace DNDS {

namespace {

/// Stands for infinity: beyond all cells and ghosts. Transforms of it stay far from overflow.
constexpr index endless = index{1} << 61;

/// All cells beyond the face whose first layer of cells is `face`. Where the face ends with the space, so do its
/// neighbour's edges: cells beside it continue there, and the passage takes them as well. Elsewhere another face
/// begins.
/// Half-infinite boxes make membership one intersection, however wide the ghosts are.
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
    IndexVector low{};  ///< first vertex
    IndexVector high{}; ///< last vertex, included
    int axis = -1;      ///< the normal: the dimension with one vertex
    bool upper = false; ///< at the upper end of the space

    /// Throws ArgumentError unless the vertices are a face on an end of the space that is not periodic.
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

// Between cells along `axis` there is a plane of nodes, and no middle of a cell.
Box BlockGrid::Passage::pointsOfFace(const Centring &centring) const noexcept {
    Box points = centring.pointsOf(face);
    const std::size_t k = toSize(axis);
    points.lower[k] = upper ? face.lower[k] : face.upper[k];
    points.upper[k] = points.lower[k] + (centring.nodal[k] ? 1 : 0);
    return points;
}

// Nodes on the face are points of the space itself, so only nodes after them are beyond.
Box BlockGrid::Passage::pointsBeyond(const Centring &centring) const noexcept {
    Box points = centring.pointsOf(beyond);
    if (centring.nodal[toSize(axis)])
        upper ? ++points.lower[toSize(axis)] : --points.upper[toSize(axis)]; // without those on the face
    return points;
}

// A period is a pair of passages from the space to itself, shifted by its extent. No connection is on such faces.
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

// One connection is two passages, the second with the inverse map. The transform's entry for the normal is redundant:
// of the two signs, only one puts the spaces side by side.
// O(dims). The two maps are inverses, so a ghost and its source agree from whichever side they are found.
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

// Passages of one face may not overlap, so the source of a ghost is unique. Insertion keeps the order of axes, in which
// ghosts at edges try passages: the rule of BlockGrid. O(passages of the space).
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

std::vector<Box> BlockGrid::continuedBeyond(int space, int dim, bool high, const Centring &centring) const {
    std::vector<Box> boxes;
    for (const Passage &passage : passages_[toSize(space)])
        if (passage.axis == dim && passage.upper == high)
            boxes.push_back(passage.pointsBeyond(centring));
    return boxes;
}

void BlockGrid::requireCentring(const Centring &centring) const {
    const Centring points = centring.in(dims());
    for (std::size_t s = 0; s < spaces_.size(); ++s)
        for (const Passage &passage : passages_[s])
            DNDS_CHECK(passage.toOther.mapsToItself(points), ArgumentError,
                       "points that are nodes in dimensions [{}] only cannot continue from index space '{}' to '{}', "
                       "which is turned: its dimensions run along [{}] there. Turn the index space, or use nodes",
                       fmt::join(std::span(points.nodal).first(toSize(dims())), ", "), spaces_[s].name,
                       spaces_[toSize(passage.other)].name,
                       fmt::join(std::span(passage.toOther.axis).first(toSize(dims())), ", "));
}

} // namespace DNDS
