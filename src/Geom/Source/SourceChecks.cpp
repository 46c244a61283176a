#include "DNDS/Geom/Source/SourceChecks.hpp"

#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Geom/Source/MirroredElement.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace DNDS::Geom {

namespace {

/// Throws DataError unless a polyhedron's list is a sequence of faces.
void checkPolyhedron(const std::string &origin, std::span<const index> list, index fileId) {
    std::size_t faces = 0;
    for (std::size_t at = 0; at < list.size(); faces++) {
        const index corners = list[at];
        DNDS_CHECK(corners >= 3 && corners <= static_cast<index>(list.size() - at) - 1, DataError,
                   "{}: polyhedron {} has a face of {} corners", origin, fileId, corners);
        at += toSize(corners) + 1;
    }
    // A tetrahedron is the least polyhedron; slots of faces have 14 bits.
    DNDS_CHECK(faces >= 4, DataError, "{}: polyhedron {} has {} faces", origin, fileId, faces);
    DNDS_CHECK(faces < static_cast<std::size_t>(1 << 14), DataError, "{}: polyhedron {} has {} faces, too many", origin,
               fileId, faces);
}

/// Errors quote the file's number. Nodes are checked here once, so that later code indexes without checks.
void checkElement(const SourceMesh &source, const ElementBlock &block, index element, int dimension, const char *what) {
    const auto e = toSize(element);
    const index fileId = block.fileIds[e];
    const ElementType type = block.types[e];
    DNDS_CHECK(isElementType(static_cast<int>(type)) && type != ElementType::Mixed &&
                   elementInfo(type).dimension == dimension,
               DataError, "{}: {} {} is of type {}, which does not have {} dimensions", source.origin, what, fileId,
               static_cast<int>(type), dimension);
    const auto nodes = block.nodesOf(element);
    const ElementInfo &info = elementInfo(type);
    DNDS_CHECK(info.nodes == 0 || static_cast<index>(nodes.size()) == info.nodes, DataError,
               "{}: {} {} has {} nodes, but a {} has {}", source.origin, what, fileId, nodes.size(), info.name,
               info.nodes);
    if (type == ElementType::Polyhedron)
        checkPolyhedron(source.origin, nodes, fileId);
    DNDS_CHECK(type != ElementType::Polygon || (nodes.size() >= 3 && nodes.size() < toSize(1 << 14)), DataError,
               "{}: polygon {} has {} corners", source.origin, fileId, nodes.size());
    forEachNode(type, nodes, [&](index node) {
        DNDS_CHECK(node >= 0 && node < source.globalNodes, IndexError, "{}: {} {} has node {}, but nodes are 1 to {}",
                   source.origin, what, fileId, node + 1, source.globalNodes);
    });
}

/// CSR invariants, then each element.
void checkBlock(const SourceMesh &source, const ElementBlock &block, int dimension, const char *what) {
    DNDS_CHECK(block.starts.size() == block.types.size() + 1 && block.starts.front() == 0 &&
                   block.starts.back() == static_cast<index>(block.nodes.size()) &&
                   std::is_sorted(block.starts.begin(), block.starts.end()) &&
                   block.fileIds.size() == block.types.size(),
               DataError, "{}: the lists of {}s contradict each other", source.origin, what);
    for (index e = 0; e < block.size(); e++)
        checkElement(source, block, e, dimension, what);
}

// Also refuses NaN, with which no comparison holds.
void checkTransform(const SourceMesh &source, const PeriodicConnection &connection) {
    constexpr real limit = 1e100; // so that products do not overflow
    const PeriodicTransform &transform = connection.transform;
    for (const Point *part : {&transform.centre, &transform.angles, &transform.translation})
        for (const real x : *part)
            DNDS_CHECK(std::abs(x) <= limit, DataError, "{}: periodic connection '{}' rotates or moves by {}",
                       source.origin, connection.name, x);
}

// Two negative marks for each connection, one a side.
void checkMark(const SourceMesh &source, index mark) {
    DNDS_CHECK(mark < static_cast<index>(source.patches.size()) &&
                   mark >= -2 * static_cast<index>(source.periodic.size()),
               DataError, "{}: a face or node has mark {}, but there are {} patches and {} periodic connections",
               source.origin, mark, source.patches.size(), source.periodic.size());
}

/// Throws unless each rank's block begins at the end of the previous rank's block. Collective.
void checkRanges(CommunicatorView comm, const SourceMesh &source, index first, index count, index total,
                 const char *what) {
    const auto mapping = GlobalMapping::create(comm, count);
    comm.guarded([&] {
        DNDS_CHECK(total == mapping->globalSize() && (count == 0 || first == mapping->localBegin()), DataError,
                   "{}: rank {} has {} {}s from {} of {}, but they begin at {} of {}", source.origin, comm.rank(),
                   count, what, first, total, mapping->localBegin(), mapping->globalSize());
    });
}

/// The result of pairing the edges of a polyhedron: whether each belongs to two faces, and whether these traverse it in
/// opposite directions, as faces that all point outward (or all inward) do.
struct EdgeCheck {
    bool closed;
    bool consistent;
};

// An edge as one face uses it.
struct Edge {
    index low;
    index high;
    int face;
    bool forward;
    bool same(const Edge &other) const { return low == other.low && high == other.high; }
};

/// Sorted by nodes, then face: the two uses of an edge are neighbours. O(e log e).
std::vector<Edge> polyhedronEdges(std::span<const index> list) {
    std::vector<Edge> edges;
    int face = 0;
    for (std::size_t at = 0; at < list.size(); at += toSize(list[at]) + 1, face++) {
        const auto corners = list.subspan(at + 1, toSize(list[at]));
        for (std::size_t i = 0; i < corners.size(); i++) {
            const index a = corners[i];
            const index b = corners[i + 1 == corners.size() ? 0 : i + 1];
            if (a != b)
                edges.push_back({std::min(a, b), std::max(a, b), face, a < b});
        }
    }
    std::sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) {
        return a.low != b.low ? a.low < b.low : a.high != b.high ? a.high < b.high : a.face < b.face;
    });
    return edges;
}

/// Looks at pairs: an edge with one use or three uses breaks the pairing.
EdgeCheck checkEdges(const std::vector<Edge> &edges) {
    EdgeCheck check{true, true};
    for (std::size_t i = 0; i < edges.size() && check.closed; i += 2) {
        check.closed = i + 1 < edges.size() && edges[i].same(edges[i + 1]) &&
                       (i + 2 >= edges.size() || !edges[i].same(edges[i + 2]));
        check.consistent = check.consistent && check.closed && edges[i].forward != edges[i + 1].forward;
    }
    return check;
}

/// Orients the faces of a closed polyhedron like its first one.
/// Spreads the orientation of one face of each component over shared edges until nothing changes. O(edges) per round.
/// Invariant: two faces that are consistent traverse their common edge in opposite directions.
/// Faces connected by edges take the orientation of the seed whichever way the search runs: with a closed
/// orientable surface the parity of a face is unique. At most as many rounds as faces.
void alignFaces(std::span<index> list, const std::vector<Edge> &edges) {
    std::vector<std::span<index>> faces;
    for (std::size_t at = 0; at < list.size(); at += toSize(list[at]) + 1)
        faces.push_back(list.subspan(at + 1, toSize(list[at])));
    std::vector<signed char> turn(faces.size(), -1); // unknown, kept, turned
    for (std::size_t seed = 0; seed < faces.size(); seed++) {
        if (turn[seed] >= 0)
            continue;
        // The first face of each component keeps its orientation; the volume's sign corrects the whole cell later.
        turn[seed] = 0;
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t i = 0; i < edges.size(); i += 2) {
                const auto a = static_cast<std::size_t>(edges[i].face);
                const auto b = static_cast<std::size_t>(edges[i + 1].face);
                const signed char differ = edges[i].forward == edges[i + 1].forward ? 1 : 0;
                if ((turn[a] < 0) == (turn[b] < 0))
                    continue;
                (turn[a] < 0 ? turn[a] : turn[b]) =
                    static_cast<signed char>((turn[a] < 0 ? turn[b] : turn[a]) ^ differ);
                changed = true;
            }
        }
    }
    for (std::size_t f = 0; f < faces.size(); f++)
        if (turn[f] == 1)
            std::reverse(faces[f].begin() + 1, faces[f].end());
}

/// A copy of this rank's cells whose nodes are positions in a short list of coordinates, in the order of first use. The
/// nodes may be in any rank's block of the file: each is fetched once, in one query for all cells.
/// O(entries of own cells) memory: a second copy of the lists, with local numbers. Coordinates of each node are
/// stored once.
class CellPoints {
  public:
    CellPoints(const GlobalMapping &blocks, const SourceMesh &source) : cells_(source.cells) {
        NumberTable table(source.cells.nodes.size() / 4);
        for (index c = 0; c < cells_.size(); c++)
            forEachNode(cells_.types[toSize(c)], nodesOf(c), [&](index &node) { node = table.add(node).first; });
        points_ = fetchCoordinates(blocks, source.coordinates, table.numbers());
    }
    std::span<index> nodesOf(index cell) {
        return std::span<index>(cells_.nodes)
            .subspan(toSize(cells_.starts[toSize(cell)]),
                     toSize(cells_.starts[toSize(cell) + 1] - cells_.starts[toSize(cell)]));
    }
    ElementType type(index cell) const { return cells_.types[toSize(cell)]; }
    const Point &operator()(index node) const { return points_[toSize(node)]; }
    std::span<const Point> points() const { return points_; }

    /// The mean of the corners; those of polyhedra are weighted by the number of faces that list them.
    Point centre(index cell) {
        Point sum{};
        real count = 0.0;
        const auto corners = type(cell) == ElementType::Polyhedron
                                 ? std::span<const index>(nodesOf(cell))
                                 : cornerNodes(type(cell), std::span<const index>(nodesOf(cell)));
        forEachNode(type(cell), corners, [&](index node) {
            sum = sum + (*this)(node);
            count += 1.0;
        });
        return (1.0 / count) * sum;
    }
    /// A length squared or cubed, with which a cell's measure is compared.
    real size(index cell, int dimension) {
        Point low = (*this)(firstNode(cell));
        Point high = low;
        forEachNode(type(cell), nodesOf(cell), [&](index node) {
            for (std::size_t d = 0; d < 3; d++) {
                low[d] = std::min(low[d], (*this)(node)[d]);
                high[d] = std::max(high[d], (*this)(node)[d]);
            }
        });
        return std::pow(norm(high - low), dimension);
    }
    /// The sum of face areas over their total: 0 for a closed surface, even if its edges do not match (hanging
    /// nodes).
    real areaDefect(index cell) {
        Point sum{};
        real total = 0.0;
        forEachFace(type(cell), nodesOf(cell), [&](std::span<const index> corners) {
            const Point area = twiceArea(corners.size(), [&](std::size_t i) { return (*this)(corners[i]); });
            sum = sum + area;
            total += norm(area);
        });
        return total > 0.0 ? norm(sum) / total : 0.0;
    }

  private:
    index firstNode(index cell) { return type(cell) == ElementType::Polyhedron ? nodesOf(cell)[1] : nodesOf(cell)[0]; }
    ElementBlock cells_;
    std::vector<Point> points_;
};

/// Allowed: hexahedra with two coincident corners are common as prisms.
bool isCollapsed(ElementType type, std::span<const index> nodes) {
    if (type != ElementType::Polyhedron)
        return hasRepeats(cornerNodes(type, nodes));
    bool repeats = false;
    for (std::size_t at = 0; at < nodes.size(); at += toSize(nodes[at]) + 1)
        repeats = repeats || hasRepeats(nodes.subspan(at + 1, toSize(nodes[at])));
    return repeats;
}

enum class Polyhedron : unsigned char { Kept, Turned, Open };

/// Orients the faces of a polyhedron consistently, unless it is open. Edges decide first. Hanging nodes leave edges
/// without a partner: then the cell counts as closed if its area vectors sum to zero (divergence theorem), but its
/// faces cannot be aligned.
/// O(e log e) for e edges. `nodes` and the copy in `geometry` are turned alike, so that both keep the same slots.
Polyhedron closePolyhedron(index cell, std::span<index> nodes, CellPoints &geometry) {
    constexpr real hangingTolerance = 1e-6;
    const std::vector<Edge> edges = polyhedronEdges(nodes);
    const EdgeCheck check = checkEdges(edges);
    if (check.closed && !check.consistent) {
        alignFaces(nodes, edges);
        alignFaces(geometry.nodesOf(cell), edges);
        return Polyhedron::Turned;
    }
    return check.closed || geometry.areaDefect(cell) < hangingTolerance ? Polyhedron::Kept : Polyhedron::Open;
}

/// Reports open polyhedra: an error, or a warning if `accepted`. Collective.
/// Findings have been agreed on: all ranks throw or none.
void reportOpen(const SourceMesh &source, const Finding &open, bool accepted, MeshReport &report) {
    if (open.count == 0)
        return;
    const std::string text =
        fmt::format("{}: {} polyhedra are open: some edges do not belong to two faces; the first is element {}",
                    source.origin, open.count, open.fileId);
    DNDS_CHECK(accepted, DataError,
               "{}. With MeshOptions::openPolyhedra (dnds-mesh --open) they are kept, and faces of their neighbours "
               "that they lack are unassigned boundary faces",
               text);
    report.warnings.push_back(text);
}

void countTypes(CommunicatorView comm, const ElementBlock &cells, MeshReport &report) {
    // [types]; one reduction for all.
    std::array<index, 32> counts{};
    for (const ElementType type : cells.types)
        counts[static_cast<std::size_t>(type)]++;
    comm.allReduce(counts.data(), static_cast<int>(counts.size()), MPI_SUM);
    for (std::size_t type = 0; type < counts.size(); type++)
        if (counts[type] > 0) {
            report.cells.push_back({static_cast<ElementType>(type), counts[type]});
            report.cellsTotal += counts[type];
        }
}

} // namespace

// The least number first: it is unique, so a single rank contributes its file id to the sums.
void Finding::agree(CommunicatorView comm) {
    const index here = number;
    index least = count > 0 ? number : std::numeric_limits<index>::max();
    least = comm.allReduce(least, MPI_MIN);
    std::array<index, 2> sums{count, count > 0 && here == least ? fileId : 0};
    comm.allReduce(sums.data(), 2, MPI_SUM);
    *this = {sums[0], least, sums[1]};
}

void checkMarks(const SourceMesh &source) {
    DNDS_CHECK(source.faceMarks.size() == source.faces.types.size(), DataError, "{}: {} marks for {} faces",
               source.origin, source.faceMarks.size(), source.faces.size());
    for (const int mark : source.faceMarks)
        checkMark(source, mark);
    for (const SourceMesh::NodeMark &mark : source.nodeMarks) {
        checkMark(source, mark.mark);
        DNDS_CHECK(mark.node >= 0 && mark.node < source.globalNodes, IndexError,
                   "{}: a boundary condition lists node {}, but nodes are 1 to {}", source.origin, mark.node + 1,
                   source.globalNodes);
    }
}

// A rank without cells has no weights either way.
bool requireWeights(CommunicatorView comm, std::span<const index> weights, index cells) {
    const bool weighted = comm.allReduce(weights.empty() ? 0 : 1, MPI_MAX) != 0;
    comm.guarded([&] {
        DNDS_CHECK(!weighted || static_cast<index>(weights.size()) == cells, ArgumentError,
                   "this rank gives {} weights for its {} cells: give one for each on all ranks, or none on any",
                   weights.size(), cells);
        for (const index weight : weights)
            DNDS_CHECK(weight >= 1 && weight <= std::numeric_limits<std::int32_t>::max(), ArgumentError,
                       "a cell has weight {}: weights must be from 1 to 2^31 - 1", weight);
    });
    return weighted;
}

/// In this order: scalars that steer later loops, ranges of blocks, then contents. A check may rely on those before it,
/// and the agreement after each keeps ranks in the same collective calls.
void checkSource(CommunicatorView comm, const SourceMesh &source) {
    std::array<index, 10> facts{source.cellDimension, source.physicalDimension, source.globalNodes,
                                static_cast<index>(source.patches.size()), static_cast<index>(source.periodic.size())};
    for (std::size_t i = 0; i < 5; i++)
        facts[i + 5] = -facts[i];
    // Maxima and negated minima in one reduction.
    comm.allReduce(facts.data(), 10, MPI_MAX);
    for (std::size_t i = 0; i < 5; i++)
        DNDS_CHECK(facts[i] == -facts[i + 5], DataError,
                   "{}: dimensions, nodes, patches or periodic connections differ between ranks", source.origin);
    DNDS_CHECK((source.cellDimension == 2 || source.cellDimension == 3) &&
                   source.physicalDimension >= source.cellDimension && source.physicalDimension <= 3,
               DataError, "{}: cells of {} dimensions in a space of {}", source.origin, source.cellDimension,
               source.physicalDimension);
    checkRanges(comm, source, source.firstNode, source.nodes(), source.globalNodes, "node");
    checkRanges(comm, source, source.cells.first, source.cells.size(), source.cells.globalSize, "cell");
    checkRanges(comm, source, source.faces.first, source.faces.size(), source.faces.globalSize, "face");
    DNDS_CHECK(source.cells.globalSize < FaceLink::maxCells && source.globalNodes < FaceLink::maxCells, DataError,
               "{}: {} cells and {} nodes are more than can be numbered", source.origin, source.cells.globalSize,
               source.globalNodes);
    // One agreement per list, so that the first error of the mesh is named on any number of ranks.
    comm.guarded([&] { checkBlock(source, source.cells, source.cellDimension, "element"); });
    comm.guarded([&] { checkBlock(source, source.faces, source.cellDimension - 1, "boundary element"); });
    comm.guarded([&] { checkMarks(source); });
    comm.guarded([&] {
        for (const PeriodicConnection &connection : source.periodic)
            checkTransform(source, connection);
        for (const Point &point : source.coordinates)
            DNDS_CHECK(std::isfinite(point[0]) && std::isfinite(point[1]) && std::isfinite(point[2]), DataError,
                       "{}: node {} is at ({}, {}, {})", source.origin,
                       source.firstNode + (&point - source.coordinates.data()) + 1, point[0], point[1], point[2]);
    });
}

/// One reduction if all is well; counts are gathered only for the message.
void requireLocalNumbers(CommunicatorView comm, index count, const char *what, const std::string &origin) {
    constexpr index most = std::numeric_limits<LocalIndex>::max();
    if (comm.allReduce(count, MPI_MAX) <= most)
        return;
    const std::vector<index> counts = comm.allGather(count);
    const auto first = std::find_if(counts.begin(), counts.end(), [](index n) { return n > most; });
    throw DataError(
        fmt::format("{}: rank {} of {} would have {} {}, more than 32-bit numbers allow ({}): use more ranks", origin,
                    first - counts.begin(), comm.size(), *first, what, most));
}

namespace {

/// Rows of `width` numbers for nodes, local ones without a message: `rows` is [nodes x width].
/// O(remote nodes x width) words in one query. Messages carry the bits of values, so all ranks get the same
/// coordinates.
void fetchInto(const GlobalMapping &blocks, std::span<const real> ownRows, std::size_t width,
               std::span<const index> nodes, real *rows) {
    const auto own = [&](index node) { return ownRows.subspan(toSize(node - blocks.localBegin()) * width, width); };
    // Most nodes of a rank's cells are in its own block if the file is ordered.
    std::vector<std::size_t> remote;
    for (std::size_t i = 0; i < nodes.size(); i++)
        if (blocks.isLocal(nodes[i]))
            std::ranges::copy(own(nodes[i]), rows + i * width);
        else
            remote.push_back(i);
    queryOwners(
        *blocks.context(), remote.size(), [&](std::size_t k) { return blocks.owner(nodes[remote[k]]).rank; },
        [&](std::size_t k) { return nodes[remote[k]]; },
        [&](index node, std::vector<index> &reply) {
            for (const real x : own(node))
                reply.push_back(packReal(x));
        },
        [&](std::size_t k, RecordReader &reader) {
            std::generate_n(rows + remote[k] * width, width, [&] { return reader.nextReal(); });
        });
}

} // namespace

std::vector<real> fetchRows(const GlobalMapping &blocks, std::span<const real> ownRows, std::size_t width,
                            std::span<const index> nodes) {
    std::vector<real> rows(nodes.size() * width);
    fetchInto(blocks, ownRows, width, nodes, rows.data());
    return rows;
}

std::vector<Point> fetchCoordinates(const GlobalMapping &blocks, std::span<const Point> ownCoordinates,
                                    std::span<const index> nodes) {
    std::vector<Point> points(nodes.size());
    // A Point is three reals without padding: rows of width 3.
    fetchInto(blocks, {reinterpret_cast<const real *>(ownCoordinates.data()), 3 * ownCoordinates.size()}, 3, nodes,
              reinterpret_cast<real *>(points.data()));
    return points;
}

// One reduction of six numbers. Minima have the same bits in any order, so bounds do not depend on the partition. A
// rank without points contributes infinities; without any point on any rank the bounds are 0.
std::pair<Point, Point> nodeBoundsOf(CommunicatorView comm, std::span<const Point> points) {
    std::array<real, 6> bounds; // lower and negated upper ones
    bounds.fill(std::numeric_limits<real>::infinity());
    for (const Point &point : points)
        for (std::size_t d = 0; d < 3; d++) {
            bounds[d] = std::min(bounds[d], point[d]);
            bounds[d + 3] = std::min(bounds[d + 3], -point[d]);
        }
    comm.allReduce(bounds.data(), 6, MPI_MIN);
    Point lower{}, upper{};
    for (std::size_t d = 0; d < 3; d++)
        if (bounds[d] <= -bounds[d + 3]) {
            lower[d] = bounds[d] + 0.0; // no -0.0, whichever of both zeros a reduction returns
            upper[d] = -bounds[d + 3] + 0.0;
        }
    return {lower, upper};
}

/// One pass over the cells. A negative measure means mirrored; of polyhedra the faces are first made consistent with
/// each other. Sums are exact, so the report does not depend on the number of ranks.
SourceGeometry orientCells(const GlobalMapping &blocks, SourceMesh &source, MeshReport &report, bool openPolyhedra) {
    constexpr real flatTolerance = 1e-13;
    constexpr real planeTolerance = 1e-9; // of the diagonal: round-off of programs that compute z = const
    const CommunicatorView &comm = blocks.context()->comm();
    CellPoints geometry(blocks, source);
    SourceGeometry result;

    const auto [lower, upper] = nodeBoundsOf(comm, geometry.points());
    result.lower = lower;
    result.upper = upper;
    // Surfaces in space have no orientation of their own: they are never turned.
    result.planar = source.cellDimension == 2 && upper[2] - lower[2] <= planeTolerance * norm(upper - lower);

    Finding turned;
    Finding flat;
    Finding collapsed;
    Finding open;
    // Measures of own cells as the file orients them, and after reorienting; exactSum adds them in any order.
    std::vector<real> asGiven;
    std::vector<real> asKept;
    comm.guarded([&] {
        for (index c = 0; c < source.cells.size(); c++) {
            const ElementType type = geometry.type(c);
            const index number = source.cells.first + c;
            const index fileId = source.cells.fileIds[toSize(c)];
            const auto nodes = std::span<index>(source.cells.nodes)
                                   .subspan(toSize(source.cells.starts[toSize(c)]), geometry.nodesOf(c).size());
            if (isCollapsed(type, nodes))
                collapsed.add(number, fileId);
            const Polyhedron closed =
                type == ElementType::Polyhedron ? closePolyhedron(c, nodes, geometry) : Polyhedron::Kept;
            if (closed == Polyhedron::Open)
                open.add(number, fileId);
            const auto local = std::span<const index>(geometry.nodesOf(c));
            const Point area = source.cellDimension == 2 ? vectorArea(type, local, geometry) : Point{};
            const real measure = source.cellDimension == 3 ? signedVolume(type, local, geometry)
                                 : result.planar           ? area[2]
                                                           : norm(area);
            asGiven.push_back(measure);
            asKept.push_back(std::abs(measure));
            if (std::abs(measure) <= flatTolerance * geometry.size(c, source.cellDimension))
                flat.add(number, fileId);
            if (measure < 0.0)
                mirrorElement(type, nodes);
            if (measure < 0.0 || closed == Polyhedron::Turned)
                turned.add(number, fileId);
            result.centres.push_back(geometry.centre(c));
        }
    });
    countTypes(comm, source.cells, report);
    report.measure = exactSum(comm, asGiven);
    report.volume = exactSum(comm, asKept);
    for (Finding *finding : {&turned, &flat, &collapsed, &open})
        finding->agree(comm);
    report.turnedCells = turned.count;
    report.flatCells = flat.count;
    report.collapsedCells = collapsed.count;
    report.lower = result.lower;
    report.upper = result.upper;
    const auto warn = [&](const Finding &finding, const char *what) {
        if (finding.count > 0)
            report.warnings.push_back(
                fmt::format("{}: {} {}, the first is element {}", source.origin, finding.count, what, finding.fileId));
    };
    reportOpen(source, open, openPolyhedra, report);
    warn(turned, "elements were left-handed, clockwise or inward and are reoriented");
    warn(flat, "elements have no volume");
    warn(collapsed, "elements repeat a corner");
    return result;
}

} // namespace DNDS::Geom
