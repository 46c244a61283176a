#include "DNDS/Geom/Build/BuildMesh.hpp"

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Geom/Build/AssembleMesh.hpp"
#include "DNDS/Geom/Build/FaceLinks.hpp"
#include "DNDS/Geom/Build/FaceRendezvous.hpp"
#include "DNDS/Geom/Partition/GraphPartition.hpp"
#include "DNDS/Geom/Partition/SpaceFillingCurve.hpp"
#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/NodeMarks.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Index/RowPacking.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <cmath>

namespace DNDS::Geom {

namespace {

// ---------------------------------------------------------------------------------------------------------------------
// Marks of faces, and of their nodes, go to the cells with these faces

/// The source's marked faces: [marks] of key, mark and file id.
/// Words: hash, least node, mark, number in the file, position in the sender's list, by which the sender learns of
/// faces without a cell.
/// Keys are those of distinct corners, as forEachFace gives them, so that collapsed boundary elements match. Each
/// pass of packByRank computes them again, which saves a list of keys.
RankLists sendMarks(const GlobalMapping &nodeBlocks, const ElementBlock &block, std::span<const int> marks,
                    const std::vector<index> &chosen) {
    const auto keyOf = [&](std::size_t i) {
        const index face = chosen[i];
        return faceKey(distinctCorners(cornerNodes(block.types[toSize(face)], block.nodesOf(face))));
    };
    return sparseExchange(*nodeBlocks.context(),
                          packByRank(
                              nodeBlocks.ranks(), chosen.size(),
                              [&](std::size_t i) { return rendezvousRank(keyOf(i), nodeBlocks); },
                              [](std::size_t) { return 5; },
                              [&](std::size_t i, index *words) {
                                  const FaceKey key = keyOf(i);
                                  words[0] = static_cast<index>(key.hash);
                                  words[1] = key.least;
                                  words[2] = marks[toSize(chosen[i])];
                                  words[3] = block.fileIds[toSize(chosen[i])];
                                  words[4] = chosen[i];
                              }));
}

/// Matches marked faces with cells' faces; returns those of `chosen` without a cell. Collective.
/// A join at the rendezvous: sides of cells and marked faces with equal keys meet there; marks are forwarded to the
/// cells, and marks without a side go back to their sender.
/// Four exchanges: six words a wanted side, five a mark, four an answer, one a lost mark. O(sides + marks) time on
/// average.
template <class Wanted>
std::vector<index> joinMarks(const GlobalMapping &nodeBlocks, const GlobalMapping &cellMapping, CellRecords &cells,
                             const OwnFaces &faces, const SourceMesh &source, const std::vector<index> &chosen,
                             Wanted &&wanted) {
    CommunicatorContext &context = *cellMapping.context();
    const GatheredSides meeting(
        sendSides(nodeBlocks, cells, cellMapping.localBegin(), faces, std::forward<Wanted>(wanted), nullptr));
    const RankLists marks = sendMarks(nodeBlocks, source.faces, source.faceMarks, chosen);

    // Sides of one key are chained: an inner face has two.
    FaceTable table(meeting.keys);
    std::vector<index> next(meeting.keys.size(), -1);
    for (std::size_t i = 0; i < next.size(); i++)
        if (const index found = table.findOrAdd(static_cast<index>(i)); found >= 0)
            next[toSize(found)] = static_cast<index>(i);
    struct Answer {
        int rank;
        FaceMark mark; // its cell by the global number
    };
    std::vector<Answer> answers;
    std::vector<std::pair<int, index>> lost; // the sender and its position
    for (std::size_t k = 0; k < marks.size(); k++)
        for (RecordReader reader(marks.list(k)); !reader.atEnd();) {
            FaceKey key;
            key.hash = static_cast<std::uint64_t>(reader.next());
            key.least = reader.next();
            const auto mark = static_cast<int>(reader.next());
            const index fileId = reader.next();
            const index asker = reader.next();
            index side = table.find(key);
            if (side < 0)
                lost.emplace_back(marks.ranks[k], asker);
            for (; side >= 0; side = next[toSize(side)])
                answers.push_back({meeting.ranks[toSize(side)],
                                   {meeting.sides[toSize(side)].cell, meeting.sides[toSize(side)].slot, mark, fileId}});
        }
    for (FaceMark mark : exchangeRecords(
             context, answers.size(), [&](std::size_t i) { return answers[i].rank; },
             [&](std::size_t i) { return answers[i].mark; })) {
        mark.cell -= cellMapping.localBegin();
        cells.marks.push_back(mark);
    }
    return exchangeRecords(
        context, lost.size(), [&](std::size_t i) { return lost[i].first; },
        [&](std::size_t i) { return lost[i].second; });
}

/// Marks boundary faces all of whose corners have a mark. Collective.
/// Two passes over boundary faces: the first collects their nodes, whose marks are then fetched in one query; the
/// second intersects the marks of each face's corners.
/// O(corners of boundary faces) time and memory. Marks of nodes have no number in the file (0). Only boundary faces
/// qualify: an inner face may have all its corners in a patch without being one of its faces.
void markByNodes(const GlobalMapping &blocks, CellRecords &cells, const SourceMesh &source) {
    if (blocks.context()->comm().allReduce(source.nodeMarks.empty() ? 0 : 1, MPI_MAX) == 0)
        return;
    NumberTable nodes;
    // Slots count all faces of a cell, as links do.
    const auto forEachBoundaryFace = [&](auto &&visit) {
        for (index c = 0; c < cells.size(); c++) {
            int slot = 0;
            const auto links = cells.linksOf(c);
            forEachFace(cells.types[toSize(c)], cells.nodesOf(c), [&](std::span<const index> corners) {
                if (links[static_cast<std::size_t>(slot)] == FaceLink::none)
                    visit(c, slot, corners);
                slot++;
            });
        }
    };
    forEachBoundaryFace([&](index, int, std::span<const index> corners) {
        for (const index node : corners)
            nodes.add(node);
    });
    const CsrLists<int> marks = fetchNodeMarks(blocks, source, nodes.numbers());
    const auto marksOf = [&](index node) { return marks[static_cast<std::size_t>(nodes.find(node))]; };
    forEachBoundaryFace([&](index c, int slot, std::span<const index> corners) {
        for (const int mark : commonMarks(corners, marksOf))
            cells.marks.push_back({c, slot, mark, 0});
    });
}

/// Attaches the marks of the source to faces of cells: fills `cells.marks`. Collective. After `linkFaces`.
///
/// Both sides of an inner face get its marks. Marks of nodes apply to boundary faces all of whose corners have the
/// mark. The result counts listed faces of no cell.
/// Two or four sparse exchanges for listed faces, three more for marks of nodes; O(own faces and marks) memory.
/// A second join with inner faces takes place only if some marked faces have not found a cell.
/// Marks ascend and have no repeats afterwards, as CellRecords requires. O(own faces + own marks) memory.
Finding markFaces(const GlobalMapping &nodeBlocks, CellRecords &cells, const SourceMesh &source) {
    const CommunicatorView &comm = nodeBlocks.context()->comm();
    const auto cellMapping = GlobalMapping::create(comm, cells.size());
    Finding lost;
    if (source.faces.globalSize > 0) {
        std::vector<index> chosen(toSize(source.faces.size()));
        std::iota(chosen.begin(), chosen.end(), index{0});
        const OwnFaces faces = listFaces(cells);
        // Nearly all marked faces are on the boundary; inner faces take part only if some are not.
        chosen = joinMarks(nodeBlocks, *cellMapping, cells, faces, source, chosen,
                           [&](std::size_t f) { return cells.links[f] == FaceLink::none; });
        if (comm.allReduce(chosen.empty() ? 0 : 1, MPI_MAX) != 0)
            chosen = joinMarks(nodeBlocks, *cellMapping, cells, faces, source, chosen,
                               [&](std::size_t f) { return cells.links[f] != FaceLink::none; });
        for (const index face : chosen)
            lost.add(source.faces.first + face, source.faces.fileIds[toSize(face)]);
        lost.agree(comm);
    }
    markByNodes(nodeBlocks, cells, source);
    std::sort(cells.marks.begin(), cells.marks.end());
    cells.marks.erase(std::unique(cells.marks.begin(), cells.marks.end()), cells.marks.end());
    return lost;
}

// ---------------------------------------------------------------------------------------------------------------------
// The steps of a build

/// Options that steer collective calls must agree on all ranks, or some ranks would enter steps that others skip.
void checkOptions(CommunicatorView comm, const SourceMesh &source, const MeshOptions &options) {
    requireSameSettings(comm, "buildMesh", [&] {
        return std::vector<std::string>{fmt::format("ghostLayers = {}", options.ghostLayers),
                                        fmt::format("ghostsBy = {}", static_cast<int>(options.ghostsBy)),
                                        fmt::format("partitioner = {}", static_cast<int>(options.partitioner)),
                                        fmt::format("cellOrder = {}", static_cast<int>(options.cellOrder)),
                                        fmt::format("imbalance = {}", options.imbalance),
                                        fmt::format("seed = {}", options.seed),
                                        fmt::format("effort = {}", static_cast<int>(options.effort)),
                                        fmt::format("openPolyhedra = {}", options.openPolyhedra)};
    });
    const bool weighted = requireWeights(comm, options.cellWeights, source.cells.size());
    comm.guarded([&] {
        checkGhostLayers(options);
        DNDS_CHECK(!weighted || options.partitioner != Partitioner::Given, ArgumentError,
                   "cell weights have no effect where parts are given");
        if (options.partitioner != Partitioner::Given)
            return;
        DNDS_CHECK(static_cast<index>(options.givenPart.size()) == source.cells.size(), ArgumentError,
                   "{} parts are given for {} cells", options.givenPart.size(), source.cells.size());
        for (const int part : options.givenPart)
            DNDS_CHECK(part >= 0 && part < comm.size(), ArgumentError, "a cell is given to part {} of {}", part,
                       comm.size());
    });
}

/// Moves the lists; file numbers are the source's global numbers. Links and marks come later.
CellRecords cellRecords(ElementBlock &&block) {
    CellRecords cells;
    cells.numbers.resize(toSize(block.size()));
    std::iota(cells.numbers.begin(), cells.numbers.end(), block.first);
    cells.fileIds = std::move(block.fileIds);
    cells.types = std::move(block.types);
    cells.nodeStarts = std::move(block.starts);
    cells.nodes = std::move(block.nodes);
    block = {};
    return cells;
}

/// Moves cells to their parts in a graph partition. `cellBlocks` numbers the cells of the source.
/// The cells keep their order along the curve: their keys move with them, by the same redistribution.
/// O(own cells + own faces) memory besides that of PT-Scotch. Exchanges: one query for weights, if there are any;
/// the cells; the new numbers of links; the keys.
void partitionByGraph(CommunicatorView comm, MigratedCells &migrated, const GlobalMapping &cellBlocks,
                      const MeshOptions &options, const std::function<void(std::string_view)> &progress) {
    progress("graph");
    CellRecords &cells = migrated.cells;
    const auto before = GlobalMapping::create(comm, cells.size());
    DistributedGraph graph = dualGraph(cells, before->localBegin());
    if (comm.allReduce(options.cellWeights.empty() ? 0 : 1, MPI_MAX) != 0)
        graph.weights = DNDS::Detail::lookUp(cellBlocks, options.cellWeights, cells.numbers);
    progress("partition");
    // The new part of each cell, in the present order of cells.
    const std::vector<int> part = partitionGraph(
        comm, graph, comm.size(), {.imbalance = options.imbalance, .seed = options.seed, .effort = options.effort});
    graph = {};
    progress("migrate");
    // migrateCells sorts by these old global numbers, and `moved` delivers rows in their order: cells and keys stay
    // aligned.
    std::vector<index> numbers(toSize(cells.size()));
    std::iota(numbers.begin(), numbers.end(), before->localBegin());
    cells = migrateCells(*before->context(), std::move(cells), part, numbers).cells;
    // Links name cells by global numbers, which the move changes: the same redistribution tells the new ones.
    const Redistribute moved = Redistribute::toRanks(before, part);
    renumberLinks(cells, moved);
    ParArray<index, 1> keys("positions on the curve", comm);
    keys.resize(before->localSize());
    std::ranges::copy(migrated.keys, keys.data());
    moved.move(keys); // in the order of `numbers`
    migrated.keys.assign(keys.data(), keys.data() + keys.size());
}

/// Patches get one more entry at the end, for boundary faces in no patch.
void describe(UnstructuredMesh &mesh, MeshReport &report, const SourceMesh &source) {
    report.origin = mesh.origin = source.origin;
    report.dimension = mesh.dimension = source.cellDimension;
    report.nodes = source.globalNodes;
    report.warnings = source.warnings;
    report.notes = source.notes;
    mesh.periodic = source.periodic;
    for (const BoundaryPatch &patch : source.patches)
        mesh.patches.push_back({patch.name, patch.kind, patch.family, {}});
    for (MeshPatch &patch : mesh.patches)
        if (patch.name == "unassigned") {
            patch.name = "unassigned_in_file";
            report.warnings.push_back(fmt::format("{}: the file's patch 'unassigned' is called '{}' here: faces in no "
                                                  "patch have that name",
                                                  report.origin, patch.name));
        }
    mesh.patches.push_back({"unassigned", "", "", {}});
}

/// `size` is the diagonal of the mesh.
void warnAboutFaces(MeshReport &report, const Finding &lost, const PeriodicResult &periodic, real size) {
    if (lost.count > 0)
        report.warnings.push_back(fmt::format("{}: {} boundary elements are no face of a cell, the first is {}",
                                              report.origin, lost.count, lost.fileId));
    if (periodic.unmatched.count > 0)
        report.warnings.push_back(
            fmt::format("{}: {} faces of periodic connections have no partner, the first is one of element {}",
                        report.origin, periodic.unmatched.count, periodic.unmatched.fileId));
    report.periodicPairs = periodic.pairs;
    // More than the rounding error of single precision.
    if (periodic.relativeOffset > 1e-3 && periodic.offset > 1e-6 * size)
        report.warnings.push_back(fmt::format("{}: sides of periodic connections lie up to {:.3g} apart, {:.2g} of a "
                                              "face's shortest edge: their transform "
                                              "does not fit",
                                              report.origin, periodic.offset, periodic.relativeOffset));
}

/// Steps: check, reorient, sort along the curve, link faces, mark them, link periodic ones, partition, then
/// assembleMesh. Lists of the source are freed as soon as they are used, so the peak is about two copies of the
/// cells. Each step is collective and O(own part); the graph partition dominates on many ranks.
UnstructuredMesh build(CommunicatorView comm, SourceMesh &source, const MeshOptions &options) {
    const auto progress = [&](std::string_view step) {
        if (options.progress)
            options.progress(step);
    };
    progress("check");
    checkOptions(comm, source, options);
    checkSource(comm, source);
    UnstructuredMesh mesh(comm);
    MeshReport report;
    describe(mesh, report, source);
    const auto nodeBlocks = GlobalMapping::create(comm, source.nodes());
    const auto cellBlocks = GlobalMapping::create(comm, source.cells.size());
    CommunicatorContext &context = *nodeBlocks->context();
    // Flat meshes, orientation of cells, centres and bounds, in one pass over the source.
    const SourceGeometry geometry = orientCells(*nodeBlocks, source, report, options.openPolyhedra);
    mesh.planar = geometry.planar;

    // Gathers spatial neighbours on one rank, in curve order, so that most of the following is local.
    progress("curve");
    const std::vector<index> keys = curveKeys(geometry.centres, geometry.lower, geometry.upper);
    // Before graph partitioning, ranks get equal numbers of cells, whatever their weights.
    const std::span<const index> weights = options.partitioner == Partitioner::Curve
                                               ? std::span<const index>(options.cellWeights)
                                               : std::span<const index>();
    const std::vector<int> part = options.partitioner == Partitioner::Given
                                      ? options.givenPart
                                      : partitionCurve(comm, keys, weights, comm.size());
    MigratedCells migrated = migrateCells(context, cellRecords(std::move(source.cells)), part, keys);
    CellRecords &cells = migrated.cells;
    requireLocalNumbers(comm, cells.size(), "cells", source.origin);
    progress("faces");
    linkFaces(*nodeBlocks, cells, source.origin);
    const Finding lost = markFaces(*nodeBlocks, cells, source);
    ImageTable images(source.periodic, geometry.lower, geometry.upper);
    const PeriodicResult periodic = linkPeriodic(*nodeBlocks, cells, source, images);
    source.faces = {};
    source.nodeMarks = {};
    warnAboutFaces(report, lost, periodic,
                   std::hypot(geometry.upper[0] - geometry.lower[0], geometry.upper[1] - geometry.lower[1],
                              geometry.upper[2] - geometry.lower[2]));
    // Faces are linked by now: they are the edges of the graph.
    if (options.partitioner == Partitioner::Graph && comm.size() > 1)
        partitionByGraph(comm, migrated, *cellBlocks, options, progress);

    assembleMesh(mesh, std::move(migrated), {*nodeBlocks, source.coordinates, periodic.partners}, images, options,
                 &report);
    if (options.report != nullptr)
        *options.report = std::move(report);
    source = {};
    return mesh;
}

} // namespace

UnstructuredMesh buildMesh(CommunicatorView comm, SourceMesh &&source, const MeshOptions &options) {
    const ActivityScope activity("buildMesh");
    return failTogether(comm, [&] { return build(comm, source, options); });
}

} // namespace DNDS::Geom
