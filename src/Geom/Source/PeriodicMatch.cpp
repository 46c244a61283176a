#include "DNDS/Geom/Source/PeriodicMatch.hpp"

#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Geom/Source/PeriodicImages.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace DNDS::Geom {

namespace {

/// Boxes at least twice as large as any reach, so that a face searches few of them.
/// A box is a cube of a uniform grid, of edge 4 x the largest reach of all ranks, named by a hash of connection and
/// grid coordinates. Different boxes may share a hash: candidates are compared by connection and distance, so a
/// collision costs time, not correctness.
class Boxes {
  public:
    Boxes(CommunicatorView comm, std::span<const PeriodicFace> faces) {
        real reach = 0.0;
        for (const PeriodicFace &face : faces)
            reach = std::max(reach, face.reach);
        size_ = 4.0 * comm.allReduce(reach, MPI_MAX);
        ranks_ = comm.size();
    }
    /// The box that contains a point.
    std::uint64_t boxAt(int connection, const Point &point) const {
        // Mixed, so that no two connections share boxes: each is searched along an axis of its own.
        std::uint64_t hash = mixBits(static_cast<std::uint64_t>(connection) + 1);
        for (const real x : point)
            hash = mixBits(hash ^ static_cast<std::uint64_t>(coordinate(x)));
        return hash;
    }
    /// All boxes that a ball around the face's centre intersects.
    std::vector<std::uint64_t> boxesOf(const PeriodicFace &face) const {
        std::vector<std::uint64_t> boxes;
        const Point centre = face.centre();
        for (unsigned corner = 0; corner < 8; corner++) {
            Point x = centre;
            for (std::size_t d = 0; d < 3; d++)
                x[d] += ((corner >> d) & 1U) != 0 ? face.reach : -face.reach;
            boxes.push_back(boxAt(face.connection, x));
        }
        std::sort(boxes.begin(), boxes.end());
        boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
        return boxes;
    }
    /// Hashes are spread evenly, and so are faces over ranks, wherever they are in space.
    int rankOf(std::uint64_t box) const { return static_cast<int>(box % static_cast<std::uint64_t>(ranks_)); }

  private:
    /// Number of the box along one axis. Damaged files hold NaN and huge numbers: they are clamped, so that the
    /// conversion to an integer is defined.
    index coordinate(real x) const {
        constexpr real limit = 1e15;
        const real boxes = x / size_;
        return size_ > 0.0 && !std::isnan(boxes) ? static_cast<index>(std::floor(std::clamp(boxes, -limit, limit))) : 0;
    }
    real size_;
    int ranks_;
};

/// For each corner of `face`, the node of `other` at the same place; empty if a corner has no such node.
/// O(corners^2); faces have three to some ten corners. Two corners at one node mean that the faces do not correspond.
std::vector<index> matchCorners(const PeriodicFace &face, const PeriodicFace &other, real &offset) {
    std::vector<index> matched;
    offset = 0;
    if (other.nodes.size() != face.nodes.size())
        return matched;
    for (const Point &corner : face.corners) {
        std::size_t nearest = 0;
        for (std::size_t i = 1; i < other.corners.size(); i++)
            if (norm(other.corners[i] - corner) < norm(other.corners[nearest] - corner))
                nearest = i;
        if (norm(other.corners[nearest] - corner) > face.reach)
            return {};
        offset = std::max(offset, norm(other.corners[nearest] - corner));
        matched.push_back(other.nodes[nearest]);
    }
    if (hasRepeats(matched))
        return {};
    return matched;
}

/// Second sides that this rank received, sorted by box, and within a box along the direction of the connection's
/// largest extent, because many faces of a plane share one x.
/// O(n log n) to sort n faces; a search costs O(log n + faces in the window). The window contains every candidate
/// within reach, as distance along one axis is at most the distance.
class Candidates {
  public:
    Candidates(const RankLists &lists, const Boxes &boxes) {
        for (RecordReader reader(lists.values); !reader.atEnd();) {
            PeriodicFace face = PeriodicFace::read(reader);
            const Point centre = face.centre();
            axes_.resize(std::max(axes_.size(), static_cast<std::size_t>(face.connection) + 1), 0);
            entries_.push_back({boxes.boxAt(face.connection, centre), centre, std::move(face)});
        }
        findAxes();
        std::sort(entries_.begin(), entries_.end(), [&](const Entry &a, const Entry &b) {
            const auto key = [&](const Entry &e) { return std::tuple(e.box, e.centre[axisOf(e.face)], e.centre); };
            return key(a) < key(b);
        });
    }
    /// The nearest of the entries of `box` whose corners match. A window of 2 x reach along the axis bounds the
    /// search.
    PeriodicMatch nearest(std::uint64_t box, const PeriodicFace &face) const {
        PeriodicMatch best;
        if (static_cast<std::size_t>(face.connection) >= axes_.size())
            return best;
        const Point centre = face.centre();
        const std::size_t axis = axisOf(face);
        const auto begin = std::lower_bound(entries_.begin(), entries_.end(), std::pair{box, centre[axis] - face.reach},
                                            [&](const Entry &entry, const auto &bound) {
                                                return entry.box != bound.first ? entry.box < bound.first
                                                                                : entry.centre[axis] < bound.second;
                                            });
        for (auto it = begin; it != entries_.end() && it->box == box && it->centre[axis] <= centre[axis] + face.reach;
             ++it) {
            const real distance = norm(it->centre - centre);
            // Cheap tests first.
            if (it->face.connection != face.connection || distance > face.reach || distance >= best.distance)
                continue;
            real offset = 0;
            if (std::vector<index> nodes = matchCorners(face, it->face, offset); !nodes.empty())
                best = {distance, it->face.cell, it->face.slot, offset, std::move(nodes)};
        }
        return best;
    }

  private:
    struct Entry {
        std::uint64_t box;
        Point centre;
        PeriodicFace face;
    };
    std::size_t axisOf(const PeriodicFace &face) const { return axes_[static_cast<std::size_t>(face.connection)]; }
    /// Sides are flat in most meshes: sorting along their thin direction would put all faces of a box into the
    /// window.
    void findAxes() {
        constexpr real far = std::numeric_limits<real>::infinity();
        std::vector<std::pair<Point, Point>> bounds(axes_.size(), {{far, far, far}, {-far, -far, -far}});
        for (const Entry &entry : entries_) {
            auto &[low, high] = bounds[static_cast<std::size_t>(entry.face.connection)];
            for (std::size_t d = 0; d < 3; d++) {
                low[d] = std::min(low[d], entry.centre[d]);
                high[d] = std::max(high[d], entry.centre[d]);
            }
        }
        for (std::size_t c = 0; c < axes_.size(); c++)
            for (std::size_t d = 1; d < 3; d++)
                if (bounds[c].second[d] - bounds[c].first[d] > bounds[c].second[axes_[c]] - bounds[c].first[axes_[c]])
                    axes_[c] = d;
    }

    std::vector<Entry> entries_;
    std::vector<std::size_t> axes_; ///< [connections]
};

} // namespace

// The sum runs in the order of the corners, which messages keep: sender and receiver compute the same bits, hence
// the same box.
Point PeriodicFace::centre() const {
    return meanPoint(corners.size(), [&](std::size_t i) { return corners[i]; });
}

// `read` takes the words in the same order.
void PeriodicFace::write(index *to) const {
    *to++ = connection;
    *to++ = side;
    *to++ = cell;
    *to++ = slot;
    *to++ = fileId;
    *to++ = packReal(reach);
    *to++ = static_cast<index>(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); i++) {
        *to++ = nodes[i];
        for (const real x : corners[i])
            *to++ = packReal(x);
    }
}

PeriodicFace PeriodicFace::read(RecordReader &reader) {
    PeriodicFace face{};
    face.connection = static_cast<int>(reader.next());
    face.side = static_cast<int>(reader.next());
    face.cell = reader.next();
    face.slot = static_cast<int>(reader.next());
    face.fileId = reader.next();
    face.reach = reader.nextReal();
    for (index count = reader.next(); count > 0; count--) {
        face.nodes.push_back(reader.next());
        face.corners.push_back(reader.nextPoint());
    }
    return face;
}

/// Coordinates come from the owners of the node blocks in one query for all faces; nodes shared by faces are asked
/// for once.
void placeFaces(const GlobalMapping &nodeBlocks, const SourceMesh &source, std::vector<PeriodicFace> &faces) {
    NumberTable nodes;
    for (const PeriodicFace &face : faces)
        for (const index node : face.nodes)
            nodes.add(node);
    const std::vector<Point> points = fetchCoordinates(nodeBlocks, source.coordinates, nodes.numbers());
    for (PeriodicFace &face : faces) {
        const RigidMotion motion = motionOf(source.periodic[static_cast<std::size_t>(face.connection)].transform);
        for (const index node : face.nodes) {
            const Point &point = points[static_cast<std::size_t>(nodes.find(node))];
            face.corners.push_back(face.side == 0 ? motion(point) : point);
        }
        // A single corner has no edges: its reach was given.
        if (face.corners.size() == 1)
            continue;
        face.reach = std::numeric_limits<real>::infinity();
        for (std::size_t i = 0; i < face.corners.size(); i++)
            face.reach = std::min(face.reach,
                                  periodicReach * norm(face.corners[(i + 1) % face.corners.size()] - face.corners[i]));
    }
}

// Spatial hashing: second sides go to the rank of the box around their centre, first sides ask the ranks of all boxes
// within reach and take the nearest answer. O(own faces) on average. Invariant: boxes are at least twice as large as
// any reach, so a face asks few of them and misses no partner.
// A question has 8 + 4 corners words and goes to at most 8 boxes, mostly to one or two. The nearest answer over all
// boxes wins, so the order of answers does not matter.
std::vector<PeriodicMatch> matchPeriodic(CommunicatorContext &context, const std::vector<PeriodicFace> &faces) {
    const int ranks = context.comm().size();
    const Boxes boxes(context.comm(), faces);
    const Candidates candidates(
        sparseExchange(context, packByRank(
                                    ranks, faces.size(),
                                    [&](std::size_t f) {
                                        return faces[f].side == 1
                                                   ? boxes.rankOf(boxes.boxAt(faces[f].connection, faces[f].centre()))
                                                   : -1;
                                    },
                                    [&](std::size_t f) { return faces[f].words(); },
                                    [&](std::size_t f, index *words) { faces[f].write(words); })),
        boxes);
    // A face and one of the boxes that its partner may be in.
    struct Question {
        std::size_t face;
        std::uint64_t box;
    };
    std::vector<Question> questions;
    for (std::size_t f = 0; f < faces.size(); f++)
        if (faces[f].side == 0)
            for (const std::uint64_t box : boxes.boxesOf(faces[f]))
                questions.push_back({f, box});
    // Grouped by rank, as sparseExchange returns replies in ascending order of ranks: reply q answers question q.
    std::stable_sort(questions.begin(), questions.end(),
                     [&](const Question &a, const Question &b) { return boxes.rankOf(a.box) < boxes.rankOf(b.box); });
    const RankLists asked = sparseExchange(
        context, packByRank(
                     ranks, questions.size(), [&](std::size_t q) { return boxes.rankOf(questions[q].box); },
                     [&](std::size_t q) { return 1 + faces[questions[q].face].words(); },
                     [&](std::size_t q, index *words) {
                         words[0] = static_cast<index>(questions[q].box);
                         faces[questions[q].face].write(words + 1);
                     }));
    RankLists replies;
    for (std::size_t k = 0; k < asked.size(); k++) {
        for (RecordReader reader(asked.list(k)); !reader.atEnd();) {
            const auto box = static_cast<std::uint64_t>(reader.next());
            const PeriodicMatch match = candidates.nearest(box, PeriodicFace::read(reader));
            replies.values.insert(replies.values.end(),
                                  {packReal(match.distance), match.cell, match.slot, packReal(match.offset),
                                   static_cast<index>(match.nodes.size())});
            replies.values.insert(replies.values.end(), match.nodes.begin(), match.nodes.end());
        }
        replies.ranks.push_back(asked.ranks[k]);
        replies.starts.push_back(static_cast<index>(replies.values.size()));
    }
    const RankLists received = sparseExchange(context, replies);
    std::vector<PeriodicMatch> matches(faces.size());
    RecordReader reader(received.values);
    for (const Question &question : questions) {
        PeriodicMatch match;
        match.distance = reader.nextReal();
        match.cell = reader.next();
        match.slot = static_cast<int>(reader.next());
        match.offset = reader.nextReal();
        const auto nodes = reader.next(reader.next());
        match.nodes.assign(nodes.begin(), nodes.end());
        // The nearest of all boxes; without a partner the distance is infinite.
        if (match.distance < matches[question.face].distance)
            matches[question.face] = std::move(match);
    }
    return matches;
}

} // namespace DNDS::Geom
