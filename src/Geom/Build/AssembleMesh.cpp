#include "DNDS/Geom/Build/AssembleMesh.hpp"

#include "DNDS/Geom/Build/LocalFaces.hpp"
#include "DNDS/Geom/Mesh/PeriodicNodes.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"

namespace DNDS::Geom {

namespace {

/// Two orders meet here: `base` improves locality (curve or reverse Cuthill-McKee), and `renumber` then puts inner
/// rows first and boundary rows by reader, for fast exchange. Fills the lists of cells in the new order.
/// O(cells log degree) time for the order, three exchanges for `renumber`. Owned cells keep their range of global
/// numbers, so only numbers within a rank change.
CellNumbers numberCells(UnstructuredMesh &mesh, std::shared_ptr<const GlobalMapping> global, const LocalCells &cells,
                        ImageTable &images, CellOrder order) {
    std::vector<index> base;
    if (order == CellOrder::ReverseCuthillMcKee) {
        // Cells across faces; ghosts and missing neighbours are skipped by the ordering.
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
    // Ghosts are numbered by their owners: only global number and image are given here.
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

} // namespace

void checkGhostLayers(const MeshOptions &options) {
    DNDS_CHECK(options.ghostLayers >= 0 && options.ghostLayers <= 16, ArgumentError, "{} ghost layers",
               options.ghostLayers);
}

/// Stages: owners of nodes, ghost cells layer by layer, numbers of cells, nodes, faces. Each stage uses the numbers
/// of the one before. Limits of 32-bit numbers are checked where lists have their final length.
CellNumbers assembleMesh(UnstructuredMesh &mesh, MigratedCells &&migrated, const NodeBlocks &nodes, ImageTable &images,
                         const MeshOptions &options, MeshReport *report) {
    const CommunicatorView &comm = mesh.comm;
    auto [cells, keys] = std::move(migrated);
    // The same error on all ranks, whichever list is too long.
    const auto require = [&](index count, const char *what) { requireLocalNumbers(comm, count, what, mesh.origin); };
    require(cells.size(), "cells");
    require(static_cast<index>(cells.links.size()), "faces of cells");
    if (options.progress)
        options.progress("ghosts");
    mesh.ghostLayers = options.ghostLayers;
    mesh.ghostsByNodes = options.ghostsBy == GhostNeighbours::Nodes;
    const auto cellMapping = GlobalMapping::create(comm, cells.size());
    // Layers by faces need nothing about nodes but their owners.
    const int layersByNodes = options.ghostsBy == GhostNeighbours::Nodes ? options.ghostLayers : 0;
    const NodeSharing sharing =
        shareNodes(nodes.blocks, *cellMapping, cells, nodes.partners, layersByNodes, report != nullptr, mesh.origin);
    if (report != nullptr) {
        report->unusedNodes = sharing.unused;
        report->nodes -= sharing.unused;
        if (sharing.unused > 0)
            report->warnings.push_back(
                fmt::format("{}: {} nodes are in no cell and are left out", mesh.origin, sharing.unused));
    }
    const LocalCells local = collectGhosts(*cellMapping, nodes.blocks, std::move(cells), sharing, images,
                                           options.ghostsBy, options.ghostLayers);

    require(local.size(), "cells, ghosts included");
    require(static_cast<index>(local.cells.links.size()), "faces of cells, ghosts included");
    require(static_cast<index>(local.cells.nodes.size()), "nodes of cells, ghosts included");
    if (options.progress)
        options.progress("number");
    CellNumbers numbers = numberCells(mesh, cellMapping, local, images, options.cellOrder);
    for (index c = 0; c < local.owned; c++)
        mesh.curvePositions.push_back(keys[toSize(numbers.order[toSize(c)])]);
    const NodeFinder finder = numberNodes(mesh, nodes.blocks, nodes.coordinates, local, numbers, sharing, images);
    numberFaces(mesh, *cellMapping, local, numbers, finder, images, report);
    mesh.images = images.images();
    // In file order of cells, so that sums over the cells of a node do not depend on the partition.
    mesh.nodeCells = transpose("node cells", mesh.cellNodes, mesh.nodes.size(), cellsInFileOrder(mesh));
    return numbers;
}

} // namespace DNDS::Geom
