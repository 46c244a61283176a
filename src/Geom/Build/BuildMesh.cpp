#include "DNDS/Geom/Build/BuildMesh.hpp"

#include "DNDS/Geom/Build/FaceLinks.hpp"
#include "DNDS/Geom/Build/FaceMarks.hpp"
#include "DNDS/Geom/Build/GhostCells.hpp"
#include "DNDS/Geom/Build/LocalFaces.hpp"
#include "DNDS/Geom/Mesh/PeriodicNodes.hpp"
#include "DNDS/Geom/Partition/GraphPartition.hpp"
#include "DNDS/Geom/Partition/SpaceFillingCurve.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"
#include "DNDS/Mpi/RequireSame.hpp"

#include <cmath>

namespace DNDS::Geom {

namespace {

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
    const bool weighted = needWeights(comm, options.cellWeights, source.cells.size());
    comm.guarded([&] {
        DNDS_CHECK(options.ghostLayers >= 0 && options.ghostLayers <= 16, ArgumentError, "{} ghost layers",
                   options.ghostLayers);
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

/// The weights of cells, from the ranks of their source blocks: [cells]. Collective.
std::vector<index> fetchWeights(const GlobalMapping &cellBlocks, std::span<const index> weights,
                                std::span<const index> numbers) {
    std::vector<index> result(numbers.size());
    queryOwners(
        *cellBlocks.context(), numbers.size(), [&](std::size_t i) { return cellBlocks.owner(numbers[i]).rank; },
        [&](std::size_t i) { return numbers[i]; },
        [&](index number, std::vector<index> &reply) {
            reply.push_back(weights[toSize(number - cellBlocks.localBegin())]);
        },
        [&](std::size_t i, RecordReader &reader) { result[i] = reader.next(); });
    return result;
}

/// Moves cells to their parts in a graph partition. `cellBlocks` numbers the cells of the source.
void partitionByGraph(CommunicatorView comm, CellRecords &cells, const GlobalMapping &cellBlocks,
                      const MeshOptions &options, const std::function<void(std::string_view)> &progress) {
    progress("graph");
    const auto before = GlobalMapping::create(comm, cells.size());
    DistributedGraph graph = dualGraph(cells, before->localBegin());
    if (comm.allReduce(options.cellWeights.empty() ? 0 : 1, MPI_MAX) != 0)
        graph.weights = fetchWeights(cellBlocks, options.cellWeights, cells.numbers);
    progress("partition");
    const std::vector<int> part = partitionGraph(
        comm, graph, comm.size(), {.imbalance = options.imbalance, .seed = options.seed, .effort = options.effort});
    graph = {};
    progress("migrate");
    std::vector<index> numbers(toSize(cells.size()));
    std::iota(numbers.begin(), numbers.end(), before->localBegin());
    cells = migrateCells(*before->context(), std::move(cells), part, numbers).cells;
    renumberLinks(cells, Redistribute::toRanks(before, part));
}

CellNumbers numberCells(UnstructuredMesh &mesh, std::shared_ptr<const GlobalMapping> global, const LocalCells &cells,
                        ImageTable &images, CellOrder order) {
    std::vector<index> base;
    if (order == CellOrder::ReverseCuthillMcKee) {
        std::vector<index> starts{0};
        std::vector<LocalIndex> neighbours;
        for (index c = 0; c < cells.owned; c++) {
            for (const index word : cells.cells.linksOf(c))
                if (word != FaceLink::none)
                    neighbours.push_back(cells.across(c, FaceLink::unpack(word), images));
            starts.push_back(static_cast<index>(neighbours.size()));
        }
        base = reverseCuthillMcKee(starts, neighbours);
    }
    std::vector<GhostEntity> ghosts;
    for (index c = cells.owned; c < cells.size(); c++)
        ghosts.push_back({cells.numbers[toSize(c)], cells.images[toSize(c)]});
    Renumbering renumbering = renumber(std::move(global), ghosts, base);

    CellNumbers numbers;
    numbers.order.resize(toSize(cells.size()));
    for (std::size_t c = 0; c < numbers.order.size(); c++)
        numbers.order[static_cast<std::size_t>(renumbering.newOfOld[c])] = static_cast<index>(c);
    numbers.newOfOld = std::move(renumbering.newOfOld);
    mesh.cells.owned = cells.owned;
    mesh.cells.ghosts = cells.size() - cells.owned;
    mesh.cells.pattern = std::make_shared<const ExchangePattern>(std::move(renumbering.mapping));
    mesh.cells.fileNumbers.reserve(numbers.order.size());
    mesh.cells.fileIds.reserve(numbers.order.size());
    mesh.cells.images.reserve(numbers.order.size());
    mesh.cellTypes.reserve(numbers.order.size());
    mesh.cellLayers.reserve(numbers.order.size());
    for (const index old : numbers.order) {
        mesh.cells.fileNumbers.push_back(cells.cells.numbers[toSize(old)]);
        mesh.cells.fileIds.push_back(cells.cells.fileIds[toSize(old)]);
        mesh.cells.images.push_back(cells.images[toSize(old)]);
        mesh.cellTypes.push_back(cells.cells.types[toSize(old)]);
        mesh.cellLayers.push_back(cells.layers[toSize(old)]);
    }
    return numbers;
}

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
    // More than what single precision leaves of a position.
    if (periodic.relativeOffset > 1e-3 && periodic.offset > 1e-6 * size)
        report.warnings.push_back(fmt::format("{}: sides of periodic connections lie up to {:.3g} apart, {:.2g} of a "
                                              "face's shortest edge: their transform "
                                              "does not fit",
                                              report.origin, periodic.offset, periodic.relativeOffset));
}

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
    mesh.ghostLayers = options.ghostLayers;
    const auto nodeBlocks = GlobalMapping::create(comm, source.nodes());
    const auto cellBlocks = GlobalMapping::create(comm, source.cells.size());
    CommunicatorContext &context = *nodeBlocks->context();
    const SourceGeometry geometry = orientCells(*nodeBlocks, source, report, options.openPolyhedra);
    mesh.planar = mesh.dimension == 2 && geometry.lower[2] == geometry.upper[2];

    // Gather neighbours in space on one rank, in order along the curve: then most of the following is local.
    progress("curve");
    const std::vector<index> keys = curveKeys(geometry.centres, geometry.lower, geometry.upper);
    // Before graph partitioning, ranks get equal numbers of cells, whatever their weights.
    const std::span<const index> weights = options.partitioner == Partitioner::Curve
                                               ? std::span<const index>(options.cellWeights)
                                               : std::span<const index>();
    const std::vector<int> part = options.partitioner == Partitioner::Given
                                      ? options.givenPart
                                      : partitionCurve(comm, keys, weights, comm.size());
    CellRecords cells = migrateCells(context, cellRecords(std::move(source.cells)), part, keys).cells;
    needLocalNumbers(comm, cells.size(), "cells", source.origin);
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
    if (options.partitioner == Partitioner::Graph && comm.size() > 1)
        partitionByGraph(comm, cells, *cellBlocks, options, progress);

    needLocalNumbers(comm, cells.size(), "cells", source.origin);
    needLocalNumbers(comm, static_cast<index>(cells.links.size()), "faces of cells", source.origin);
    progress("ghosts");
    const auto cellMapping = GlobalMapping::create(comm, cells.size());
    const bool byNodes = options.ghostsBy == GhostNeighbours::Nodes && options.ghostLayers > 0;
    const NodeSharing sharing = shareNodes(*nodeBlocks, *cellMapping, cells, periodic.partners, byNodes, source.origin);
    report.unusedNodes = sharing.unused;
    if (sharing.unused > 0)
        report.warnings.push_back(
            fmt::format("{}: {} nodes are in no cell and are left out", source.origin, sharing.unused));
    const LocalCells local = collectGhosts(*cellMapping, *nodeBlocks, std::move(cells), sharing, images,
                                           options.ghostsBy, options.ghostLayers);

    needLocalNumbers(comm, local.size(), "cells, ghosts included", source.origin);
    needLocalNumbers(comm, static_cast<index>(local.cells.links.size()), "faces of cells, ghosts included",
                     source.origin);
    needLocalNumbers(comm, static_cast<index>(local.cells.nodes.size()), "nodes of cells, ghosts included",
                     source.origin);
    progress("number");
    const CellNumbers numbers = numberCells(mesh, cellMapping, local, images, options.cellOrder);
    const NodeFinder nodes = numberNodes(mesh, *nodeBlocks, source.coordinates, local, numbers, sharing, images);
    numberFaces(mesh, *cellMapping, local, numbers, nodes, images, report);
    mesh.images = images.images();
    mesh.nodeCells = transpose("node cells", mesh.cellNodes, mesh.nodes.size(), cellsInFileOrder(mesh));
    if (options.report != nullptr)
        *options.report = std::move(report);
    source = {};
    return mesh;
}

} // namespace

UnstructuredMesh buildMesh(CommunicatorView comm, SourceMesh &&source, const MeshOptions &options) {
    const Doing doing("buildMesh");
    return failTogether(comm, [&] { return build(comm, source, options); });
}

} // namespace DNDS::Geom
