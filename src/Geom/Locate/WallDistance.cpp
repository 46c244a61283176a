#include "DNDS/Geom/Locate/Probe.hpp"

#include "DNDS/Geom/Locate/RankQueries.hpp"
#include "DNDS/Geom/Locate/Triangles.hpp"
#include "DNDS/Geom/Source/PeriodicImages.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace DNDS::Geom {

namespace {

/// A face and the squared distance to it. Its cell and the number of the face there are the same on any ranks.
struct NearFace {
    real distance2 = std::numeric_limits<real>::infinity();
    index cell = -1; ///< in the file; -1: there is no face
    index slot = -1;
    int rank = -1;
    LocalIndex face = noEntity;

    bool found() const { return cell >= 0; }
    bool isBetterThan(const NearFace &other) const {
        return found() &&
               (!other.found() || std::tie(distance2, cell, slot) < std::tie(other.distance2, other.cell, other.slot));
    }
};

/// The distance from a point to an image of a wall is that from the point, moved back, to the wall: faces need no
/// images. The identity, and motions across up to one periodic boundary of each direction.
/// The set is closed under inversion, so it does not matter whether the point or the wall is moved. The same on all
/// ranks, as the connections and the box are.
std::vector<RigidMotion> motionsOf(const UnstructuredMesh &mesh, const BoundingBox &bounds) {
    ImageTable table(mesh.periodic, bounds.lower, bounds.upper);
    std::vector<int> steps; // one of each pair of a step and its inverse
    for (int connection = 0; connection < static_cast<int>(mesh.periodic.size()); connection++)
        steps.push_back(std::min(table.stepAt(connection, 0), table.stepAt(connection, 1)));
    std::ranges::sort(steps);
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    // Three directions at most give 27 images; with more, only single steps are taken.
    const bool products = steps.size() <= 3;
    std::vector<int> images{0};
    for (const int step : steps) {
        const std::size_t before = products ? images.size() : 1;
        for (std::size_t i = 0; i < before; i++)
            for (const int each : {step, ImageTable::inverseStep(step)})
                images.push_back(table.compose(images[i], each));
    }
    std::vector<RigidMotion> motions;
    for (const int image : images)
        motions.push_back(table.motion(image));
    return motions;
}

} // namespace

/// Own faces of the patches and their tree, boxes of all ranks, and the motions of images.
/// Memory: a box and a tree node for each own wall face, and a box for each rank. Collective to make: a gather of
/// one box a rank and two reductions.
struct WallDistance::Search {
    /// O(own wall faces log). Boxes are grown by the rounding of distances, so that the distance to a box never
    /// exceeds that to its face.
    Search(const UnstructuredMesh &meshOfFaces, const std::vector<std::string> &patches)
        : mesh(meshOfFaces), context(CommunicatorContext::of(mesh.comm)), coordinates(mesh.coordinates.view()),
          faceNodes(mesh.faceNodes.view()) {
        for (const std::string &name : patches) {
            const auto own = mesh.patch(name).ownFaces();
            faces.insert(faces.end(), own.begin(), own.end());
        }
        // A face may be in several of the patches.
        std::ranges::sort(faces);
        faces.erase(std::unique(faces.begin(), faces.end()), faces.end());
        std::vector<BoundingBox> boxes;
        for (const LocalIndex face : faces) {
            BoundingBox box;
            forEachPart(
                face, [&](const Point &a, const Point &b) { box.add(a), box.add(b); },
                [&](const Point &a, const Point &b, const Point &c) { box.add(a), box.add(b), box.add(c); });
            const real rounding = 1e-14 * box.diagonal(); // of distances to its parts
            box.grow({rounding, rounding, rounding});
            boxes.push_back(box);
        }
        tree = BoundingBoxTree(std::move(boxes));
        ranks = treeOfRanks(mesh.comm, tree.bounds());
        BoundingBox whole;
        for (index node = 0; node < mesh.nodes.owned; node++)
            whole.add(nodeAt(static_cast<LocalIndex>(node)));
        mesh.comm.allReduce(whole.lower.data(), 3, MPI_MIN);
        mesh.comm.allReduce(whole.upper.data(), 3, MPI_MAX);
        motions = motionsOf(mesh, whole);
    }

    // Flat meshes may be at any z.
    Point inPlane(const Point &point) const { return mesh.planar ? Point{point[0], point[1], 0.0} : point; }
    Point nodeAt(LocalIndex node) const {
        return inPlane({coordinates(node, 0), coordinates(node, 1), coordinates(node, 2)});
    }
    // A face as one segment or as triangles.
    template <class OnSegment, class OnTriangle>
    void forEachPart(LocalIndex face, OnSegment &&onSegment, OnTriangle &&onTriangle) const {
        const auto corners = faceNodes[face];
        if (mesh.dimension == 2)
            onSegment(nodeAt(corners[0]), nodeAt(corners[1]));
        else
            forEachTriangle(
                static_cast<std::size_t>(corners.size()),
                [&](std::size_t i) { return nodeAt(corners[static_cast<rowsize>(i)]); }, onTriangle);
    }
    real distance2(LocalIndex face, const Point &point) const {
        real least = std::numeric_limits<real>::infinity();
        forEachPart(
            face, [&](const Point &a, const Point &b) { least = distance2ToSegment(point, a, b); },
            [&](const Point &a, const Point &b, const Point &c) {
                least = std::min(least, distance2ToTriangle(point, a, b, c));
            });
        return least;
    }
    /// The best own face at most `limit2` away, or none. Local.
    NearFace nearestOwn(const Point &point, real limit2) const {
        NearFace best;
        tree.forEachWithin(point, limit2, [&](int number) {
            const LocalIndex face = faces[static_cast<std::size_t>(number)];
            NearFace found{distance2(face, point), -1, -1, mesh.comm.rank(), face};
            if (!(found.distance2 <= limit2) || std::isinf(found.distance2))
                return;
            // Faces as near are still visited: of these the first in the file is taken.
            limit2 = found.distance2;
            // Without ghost layers, the first cell of a face inside the mesh may be on another rank.
            const LocalIndex cell = mesh.faceCells(face, mesh.faceCells(face, 0) >= 0 ? 0 : 1);
            found.cell = mesh.cells.fileNumbers[static_cast<std::size_t>(cell)];
            const auto slots = mesh.cellFaces[cell];
            found.slot = std::find(slots.begin(), slots.end(), face) - slots.begin();
            if (found.isBetterThan(best))
                best = found;
        });
        return best;
    }
    /// The point, moved by a motion: the distance to a wall from there is that from the point to an image of the wall.
    Point moved(const Point &point, std::size_t motion) const {
        return inPlane(motion == 0 ? point : motions[motion](point));
    }
    /// The best own faces for points and their images: [points]. Local.
    std::vector<NearFace> nearestOwn(std::span<const Point> points) const;
    std::vector<NearFace> nearest(std::span<const Point> points) const;

    const UnstructuredMesh &mesh;
    std::shared_ptr<CommunicatorContext> context;
    ArrayView<const real, 3> coordinates;
    LocalAdjacency::ConstView faceNodes;
    std::vector<LocalIndex> faces;
    BoundingBoxTree tree;
    BoundingBoxTree ranks;
    std::vector<RigidMotion> motions;
};

// Consecutive points are near each other: the triangle inequality bounds the search from the point before.
// About O(log faces) a point and image if the bound is tight. The factor 1 + 1e-9 covers the rounding of the bound,
// so that the true nearest face is never cut off.
std::vector<NearFace> WallDistance::Search::nearestOwn(std::span<const Point> points) const {
    std::vector<NearFace> best(points.size());
    for (std::size_t i = 0; i < points.size(); i++)
        for (std::size_t m = 0; m < motions.size(); m++) {
            real limit2 = best[i].distance2;
            if (m == 0 && i > 0 && best[i - 1].found()) { // no farther than by way of the point before
                const real limit =
                    std::sqrt(best[i - 1].distance2) + norm(moved(points[i], 0) - moved(points[i - 1], 0));
                limit2 = limit * limit * (1.0 + 1e-9) + std::numeric_limits<real>::min();
            }
            const NearFace found = nearestOwn(moved(points[i], m), limit2);
            if (found.isBetterThan(best[i]))
                best[i] = found;
        }
    return best;
}

/// Branch and bound over ranks, in two rounds of questions: own faces and the rank with the nearest box give a bound,
/// which leaves few ranks for the second round. Four sparse exchanges, on any number of ranks.
/// The result has the same bits on any number of ranks: distance2 is computed from the same corners on whichever
/// rank owns the face, and ties go to the first cell of the file. The last round visits every box within the bound,
/// equality included, so no tie is missed.
std::vector<NearFace> WallDistance::Search::nearest(std::span<const Point> points) const {
    struct Question {
        std::size_t point;
        std::size_t motion;
        int rank;
    };
    // First this rank's faces: what is found bounds the search on other ranks.
    std::vector<NearFace> best = nearestOwn(points);
    // Answers only improve `best`, so the order of questions does not matter.
    const auto ask = [&](const std::vector<Question> &questions) {
        std::vector<RankQuery> queries;
        for (std::size_t q = 0; q < questions.size(); q++)
            queries.push_back({questions[q].rank, q});
        askRanks(
            *context, queries, 4,
            [&](std::size_t q, index *words) {
                words[0] = packReal(best[questions[q].point].distance2);
                writePoint(moved(points[questions[q].point], questions[q].motion), words + 1);
            },
            4,
            [&](int, RecordReader &question, std::vector<index> &reply) {
                const real limit2 = question.nextReal();
                const NearFace found = nearestOwn(question.nextPoint(), limit2);
                for (const index word : {packReal(found.distance2), found.cell, found.slot, index{found.face}})
                    reply.push_back(word);
            },
            [&](int rank, std::size_t q, RecordReader &reply) {
                NearFace found;
                found.distance2 = reply.nextReal();
                found.cell = reply.next();
                found.slot = reply.next();
                found.face = static_cast<LocalIndex>(reply.next());
                found.rank = rank;
                if (found.isBetterThan(best[questions[q].point]))
                    best[questions[q].point] = found;
            });
    };
    // Then the rank whose box is nearest: where this rank has no walls, that gives the first bound, which spares the
    // others most questions.
    std::vector<Question> first(points.size());
    std::vector<Question> questions;
    const int me = mesh.comm.rank();
    for (std::size_t i = 0; i < points.size(); i++) {
        first[i] = {i, 0, -1};
        real limit2 = best[i].distance2;
        for (std::size_t m = 0; m < motions.size(); m++) {
            const Point at = moved(points[i], m);
            ranks.forEachWithin(at, limit2, [&](int rank) {
                const real boxDistance2 = ranks.box(rank).distance2(at);
                if (rank == me || (first[i].rank >= 0 && boxDistance2 >= limit2))
                    return;
                first[i] = {i, m, rank};
                limit2 = std::min(limit2, boxDistance2);
            });
        }
        if (first[i].rank >= 0)
            questions.push_back(first[i]);
    }
    ask(questions);
    // Then all ranks that may still have a nearer face, or one as near whose cell comes earlier in the file.
    questions.clear();
    for (std::size_t i = 0; i < points.size(); i++)
        for (std::size_t m = 0; m < motions.size(); m++)
            ranks.forEachWithin(moved(points[i], m), best[i].distance2, [&](int rank) {
                if (rank != me && (rank != first[i].rank || m != first[i].motion))
                    questions.push_back({i, m, rank});
            });
    ask(questions);
    return best;
}

WallDistance::WallDistance(const UnstructuredMesh &mesh, const std::vector<std::string> &patches)
    : search_(failTogether(mesh.comm, [&] { return std::make_unique<const Search>(mesh, patches); })) {}
WallDistance::WallDistance(WallDistance &&) noexcept = default;
WallDistance &WallDistance::operator=(WallDistance &&) noexcept = default;
WallDistance::~WallDistance() = default;

// Collective: ranks without points answer the others.
std::vector<NearestFace> WallDistance::nearest(std::span<const Point> points) const {
    return failTogether(search_->mesh.comm, [&] {
        std::vector<NearestFace> result;
        for (const NearFace &face : search_->nearest(points))
            result.push_back({std::sqrt(face.distance2), face.rank, face.face, face.cell});
        return result;
    });
}

std::vector<real> WallDistance::ofCells(const MeshMetrics &metrics) const {
    const auto centroids = metrics.centroids.view();
    std::vector<Point> points;
    search_->mesh.comm.guarded([&] {
        for (index cell = 0; cell < search_->mesh.cells.owned; cell++)
            points.push_back({centroids(cell, 0), centroids(cell, 1), centroids(cell, 2)});
    });
    std::vector<real> distances;
    for (const NearestFace &face : nearest(points))
        distances.push_back(face.distance);
    return distances;
}

} // namespace DNDS::Geom
