#include "DNDS/Geom/Build/RebuildMesh.hpp"

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Geom/Build/AssembleMesh.hpp"
#include "DNDS/Geom/Build/FaceLinks.hpp"
#include "DNDS/Geom/Mesh/CellNodes.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace DNDS::Geom {

namespace {

// ---------------------------------------------------------------------------------------------------------------------
// The cells of a mesh on their way to other ranks

/// The sort key of cells.
struct SortKey {
    index key;
    index number;
    index row; ///< row at arrival

    friend bool operator<(const SortKey &a, const SortKey &b) {
        return a.key != b.key ? a.key < b.key : a.number < b.number;
    }
};

/// Sorts a list that consists of a few ascending runs, in O(n log runs).
/// Method: natural two-way merge sort (Knuth, The Art of Computer Programming 3, section 5.2.4), with a plain sort for
/// too many runs.
/// Cells arrive rank by rank, each rank's in curve order, so there are about as many runs as sending ranks.
void sortRuns(std::vector<SortKey> &list) {
    std::vector<std::ptrdiff_t> ends{0};
    for (auto at = list.begin(); at != list.end();) {
        at = std::is_sorted_until(at, list.end());
        ends.push_back(at - list.begin());
    }
    if (ends.size() > 4096) { // as good as unsorted
        std::sort(list.begin(), list.end());
        return;
    }
    while (ends.size() > 2) {
        std::vector<std::ptrdiff_t> merged{0};
        for (std::size_t k = 2; k < ends.size(); k += 2) {
            std::inplace_merge(list.begin() + ends[k - 2], list.begin() + ends[k - 1], list.begin() + ends[k]);
            merged.push_back(ends[k]);
        }
        if (ends.size() % 2 == 0)
            merged.push_back(ends.back());
        ends = std::move(merged);
    }
}

/// The movement to other ranks, which sort cells along the curve; fills in their `keys`. Collective.
/// Two words a cell travel first: key and file number determine the final order, hence the new numbers, which the
/// records then carry in their links.
/// File numbers are distinct, so the order is total: it depends on neither the sender of a cell nor the order of
/// arrival. O(cells log runs) time.
Redistribute sortedRows(const UnstructuredMesh &mesh, std::span<const int> targets, std::vector<index> &keys) {
    const Redistribute arriving = Redistribute::toRanks(mesh.cells.mapping().global(), targets);
    ParArray<index, 2> sortKeys("sort keys", mesh.comm);
    std::vector<index> places;
    sortKeys.resize(mesh.cells.owned);
    for (index c = 0; c < mesh.cells.owned; ++c) {
        sortKeys(c, 0) = mesh.curvePositions[toSize(c)];
        sortKeys(c, 1) = mesh.cells.fileNumbers[toSize(c)];
    }
    arriving.move(sortKeys);
    std::vector<SortKey> order;
    order.reserve(toSize(sortKeys.size()));
    const auto view = std::as_const(sortKeys).view();
    for (index row = 0; row < sortKeys.size(); ++row)
        order.push_back({view(row, 0), view(row, 1), row});
    sortRuns(order);
    places.resize(order.size());
    for (std::size_t place = 0; place < order.size(); ++place) {
        keys.push_back(order[place].key);
        places[toSize(order[place].row)] = static_cast<index>(place);
    }
    return arriving.permuted(places);
}

/// This rank's values for own cells, followed by the owners' values for ghosts: [cells]. Collective. Owners send along
/// the pattern's lists, so values arrive in the order of the ghosts.
/// One exchange of a word a ghost. Invariant: GhostMapping sorts ghosts by owner and number, and owners send in
/// that order.
std::vector<index> withGhosts(const MeshEntities &entities, std::span<const index> own) {
    std::vector<index> all(own.begin(), own.end());
    RankLists readers = entities.mapping().readerPeers();
    for (index &row : readers.values)
        row = own[toSize(row)];
    const RankLists told = sparseExchange(*entities.mapping().global()->context(), readers);
    all.insert(all.end(), told.values.begin(), told.values.end());
    return all;
}

/// Writes own cells of a mesh as records, see CellRecords, with links by new numbers.
/// Records are written one at a time into a reused buffer: the memory is that of the outgoing words.
/// O(nodes + faces x faces of the neighbour) a cell: a link's slot at the other cell is found by a search in its
/// row.
class CellWriter {
  public:
    CellWriter(const UnstructuredMesh &mesh, std::vector<index> newNumbers)
        : mesh_(mesh), newNumbers_(std::move(newNumbers)), linked_(mesh.ghostLayers > 0 || mesh.comm.size() == 1),
          cellFaces_(mesh.cellFaces.view()), cellCells_(mesh.cellCells.view()), faceCells_(mesh.faceCells.view()) {}

    index newNumber(index cell) const { return newNumbers_[toSize(cell)]; }
    /// The record of a cell; valid until the next one.
    std::span<const index> operator()(index cell) {
        record_.assign({mesh_.cells.fileNumbers[toSize(cell)], mesh_.cells.fileIds[toSize(cell)], 0, 0});
        appendCellNodes(mesh_, cell, mesh_.nodes.fileNumbers, record_);
        const auto nodes = static_cast<index>(record_.size()) - 4;
        record_[2] = (nodes << 8) | static_cast<index>(mesh_.cellTypes[toSize(cell)]);
        if (linked_) {
            const auto faces = cellFaces_[cell];
            record_[3] = faces.size();
            for (rowsize slot = 0; slot < faces.size(); ++slot)
                record_.push_back(link(cell, slot, cellCells_[cell][slot]));
        }
        return record_;
    }

  private:
    /// Periodic neighbours are images, whose links are found again from positions: they get none here. A cell that is
    /// its own neighbour has a face in two slots, of which the smaller one is the first side, as FaceLinks.cpp has it.
    index link(index cell, rowsize slot, LocalIndex other) const {
        if (other < 0 || mesh_.cells.images[static_cast<std::size_t>(other)] != 0)
            return FaceLink::none;
        const LocalIndex face = cellFaces_[cell][slot];
        const auto faces = cellFaces_[other];
        auto found = std::find(faces.begin(), faces.end(), face);
        if (other == cell && found - faces.begin() == slot)
            found = std::find(found + 1, faces.end(), face);
        // Both orientations agree on either side: the other cell's record has the opposite.
        const auto there = static_cast<int>(found - faces.begin());
        const bool first = other == cell ? slot < there : faceCells_(face, 0) == cell;
        return FaceLink{newNumbers_[static_cast<std::size_t>(other)], there, 0, first}.pack();
    }

    const UnstructuredMesh &mesh_;
    std::vector<index> newNumbers_; ///< [cells]
    /// Whether neighbours of own cells are local: with ghosts, or on one rank.
    bool linked_;
    LocalAdjacency::ConstView cellFaces_;
    LocalAdjacency::ConstView cellCells_;
    LocalPairs::ConstView faceCells_;
    std::vector<index> record_;
};

/// The cells that leave this rank, and the cells that stay.
struct Sorted {
    RankLists leaving; ///< own cells for other ranks, in their order
    std::vector<index> staying;
};

// In ascending order on both sides.
Sorted sortOut(int here, int ranks, std::span<const int> targets) {
    Sorted sorted;
    sorted.leaving =
        groupByRank(ranks, targets.size(), [&](std::size_t c) { return targets[c] == here ? -1 : targets[c]; });
    for (std::size_t c = 0; c < targets.size(); ++c)
        if (targets[c] == here)
            sorted.staying.push_back(static_cast<index>(c));
    return sorted;
}

/// Sends records of leaving cells, and merges received and staying ones in their order. Collective.
/// Received and staying cells are put together by their new numbers, a permutation known in advance: no sort.
CellRecords moveRecords(const UnstructuredMesh &mesh, const Sorted &sorted, CellWriter &writer, index firstCell,
                        index count) {
    RankLists outgoing;
    for (std::size_t k = 0; k < sorted.leaving.size(); ++k) {
        for (const index cell : sorted.leaving.list(k)) {
            outgoing.values.push_back(writer.newNumber(cell));
            const auto record = writer(cell);
            outgoing.values.insert(outgoing.values.end(), record.begin(), record.end());
        }
        outgoing.ranks.push_back(sorted.leaving.ranks[k]);
        outgoing.starts.push_back(static_cast<index>(outgoing.values.size()));
    }
    const RankLists incoming = sparseExchange(*mesh.cells.mapping().global()->context(), outgoing);
    const std::span<const index> words(incoming.values);
    std::vector<index> sources(toSize(count)); // begin of a record, or -1 - cell of one that stays
    for (std::size_t at = 0; at < words.size(); at += 1 + toSize(cellRecordSize(words.subspan(at + 1))))
        sources[toSize(words[at] - firstCell)] = static_cast<index>(at) + 1;
    for (const index cell : sorted.staying)
        sources[toSize(writer.newNumber(cell) - firstCell)] = -1 - cell;
    CellRecords cells;
    cells.numbers.reserve(sources.size());
    cells.fileIds.reserve(sources.size());
    cells.types.reserve(sources.size());
    cells.nodeStarts.reserve(sources.size() + 1);
    cells.linkStarts.reserve(sources.size() + 1);
    for (const index source : sources) {
        const auto record = source < 0 ? writer(-1 - source) : words.subspan(toSize(source));
        appendCell(cells, record);
    }
    return cells;
}

/// The marks of own cells, by old numbers.
/// Every patch but the last, which is "unassigned". A face with two own cells marks both, as markFaces does.
/// O(faces in patches x faces of a cell) time. Each rank sends the marks of its own cells only, so no mark arrives
/// twice.
std::vector<FaceMark> marksOf(const UnstructuredMesh &mesh) {
    std::vector<FaceMark> marks;
    const auto faceCells = mesh.faceCells.view();
    const auto cellFaces = mesh.cellFaces.view();
    // Marks of cells of other ranks are theirs to send.
    const auto add = [&](LocalIndex face, LocalIndex cell, int mark) {
        if (cell < 0 || cell >= mesh.cells.owned)
            return;
        const auto faces = cellFaces[cell];
        const auto slot = static_cast<int>(std::find(faces.begin(), faces.end(), face) - faces.begin());
        marks.push_back({cell, slot, mark, mesh.faces.fileIds[static_cast<std::size_t>(face)]});
    };
    for (std::size_t p = 0; p + 1 < mesh.patches.size(); ++p)
        for (const LocalIndex face : mesh.patches[p].faces)
            for (rowsize side = 0; side < 2; ++side)
                add(face, faceCells(face, side), static_cast<int>(p));
    for (const auto &[face, mark] : mesh.periodicMarks)
        add(face, faceCells(face, 0), mark);
    return marks;
}

/// Sends own cell c to rank `targets[c]`: [own cells] `targets`. Returns the own cells afterwards, sorted along the
/// curve as by buildMesh, marked, and linked except across periodic boundaries; and the movement of the rows of cells,
/// in their order. Only cells that change ranks are sent; links are taken from the mesh. Collective. Cells of meshes
/// without ghosts have no links.
/// Four exchanges: sort keys, new numbers of ghosts, records, marks.
/// Memory: the old mesh, records in both directions, and the new cells. Cells that stay are written directly from the
/// mesh, without a message.
std::pair<MigratedCells, Redistribute> moveCells(const UnstructuredMesh &mesh, std::span<const int> targets) {
    std::vector<index> keys;
    Redistribute rows = sortedRows(mesh, targets, keys);
    CellWriter writer(mesh, withGhosts(mesh.cells, rows.newNumbers()));
    const index firstCell = rows.after()->localBegin();
    CellRecords cells = moveRecords(mesh, sortOut(mesh.comm.rank(), mesh.comm.size(), targets), writer, firstCell,
                                    rows.after()->localSize());
    cells.marks = moveMarks(
        *mesh.cells.mapping().global()->context(), marksOf(mesh), targets,
        [&](index cell) { return writer.newNumber(cell); }, [&](index number) { return number - firstCell; });
    MigratedCells moved{std::move(cells), std::move(keys)};
    return {std::move(moved), std::move(rows)};
}

// ---------------------------------------------------------------------------------------------------------------------
// The mesh of the moved cells

// All checks of this function throw on all ranks.
void checkTargets(const UnstructuredMesh &mesh, std::span<const int> targets, const MeshOptions &options) {
    const CommunicatorView &comm = mesh.comm;
    comm.guarded([&] {
        (void)mesh.cells.builtPattern();
        DNDS_CHECK(static_cast<index>(mesh.curvePositions.size()) == mesh.cells.owned, StateError,
                   "the mesh has {} own cells, but positions on the curve of {}: it is not one of buildMesh",
                   mesh.cells.owned, mesh.curvePositions.size());
        checkGhostLayers(options);
        DNDS_CHECK(static_cast<index>(targets.size()) == mesh.cells.owned, ArgumentError,
                   "{} targets are given for {} own cells", targets.size(), mesh.cells.owned);
        for (std::size_t c = 0; c < targets.size(); ++c)
            DNDS_CHECK(targets[c] >= 0 && targets[c] < comm.size(), ArgumentError, "cell {} is given to rank {} of {}",
                       c, targets[c], comm.size());
    });
    requireSameSettings(comm, "Repartition", [&] {
        return std::vector<std::string>{fmt::format("ghostLayers = {}", options.ghostLayers),
                                        fmt::format("ghostsBy = {}", static_cast<int>(options.ghostsBy)),
                                        fmt::format("cellOrder = {}", static_cast<int>(options.cellOrder))};
    });
}

/// Coordinates of owned nodes, by their local numbers.
std::vector<Point> ownPoints(const UnstructuredMesh &mesh) {
    std::vector<Point> points;
    points.reserve(toSize(mesh.nodes.owned));
    const auto coordinates = mesh.coordinates.view();
    for (index node = 0; node < mesh.nodes.owned; ++node)
        points.push_back({coordinates(node, 0), coordinates(node, 1), coordinates(node, 2)});
    return points;
}

/// The nodes of all ranks in blocks by file number; nodes of no cell are at the origin. Collective.
/// Four words a node in one exchange; O(own nodes + block) memory. Blocks may differ from those of the reader:
/// owners of nodes and keys of faces depend on file numbers only, and blocks only say which rank answers.
SourceMesh nodesInBlocks(const UnstructuredMesh &mesh, std::span<const Point> points) {
    SourceMesh source;
    source.origin = mesh.origin;
    source.periodic = mesh.periodic;
    index last = -1;
    for (const index number : mesh.nodes.ownFileNumbers())
        last = std::max(last, number);
    const EvenSplit blocks(mesh.comm.allReduce(last, MPI_MAX) + 1, mesh.comm.size());
    struct Placed {
        index number;
        Point point;
    };
    const std::vector<Placed> placed = exchangeRecords(
        *mesh.nodes.mapping().global()->context(), toSize(mesh.nodes.owned),
        [&](std::size_t i) { return blocks.owner(mesh.nodes.fileNumbers[i]); },
        [&](std::size_t i) {
            return Placed{mesh.nodes.fileNumbers[i], points[i]};
        });
    const auto block = blocks.part(mesh.comm.rank());
    source.coordinates.resize(toSize(block.size()));
    for (const auto &[number, point] : placed)
        source.coordinates[toSize(number - block.begin)] = point;
    return source;
}

/// Copies the description of the mesh as a whole.
void describeLike(const UnstructuredMesh &before, UnstructuredMesh &mesh) {
    mesh.origin = before.origin;
    mesh.dimension = before.dimension;
    mesh.planar = before.planar;
    mesh.periodic = before.periodic;
    for (const MeshPatch &patch : before.patches)
        mesh.patches.push_back({patch.name, patch.kind, patch.family, {}});
}

/// The steps of `build` without reading, checking and partitioning. File numbers make the result equal to a mesh
/// built from the file with the same parts: blocks of nodes, keys of faces, and orders depend on nothing else. Links
/// across periodic boundaries depend on positions and are found again.
std::pair<UnstructuredMesh, Redistribute> rebuild(const UnstructuredMesh &before, std::span<const int> targets,
                                                  const MeshOptions &options) {
    const CommunicatorView &comm = before.comm;
    checkTargets(before, targets, options);
    UnstructuredMesh mesh(comm);
    describeLike(before, mesh);
    const std::vector<Point> points = ownPoints(before);
    // The same bounds as at the first build: they decide which images a transform makes.
    const auto [lower, upper] = nodeBoundsOf(comm, points);
    auto [cells, rows] = moveCells(before, targets);
    const SourceMesh source = nodesInBlocks(before, points);
    const auto nodeBlocks = GlobalMapping::create(comm, source.nodes());
    // A mesh without ghosts on several ranks does not know its neighbours: faces are matched as at the first build.
    if (comm.size() > 1 && before.ghostLayers == 0)
        linkFaces(*nodeBlocks, cells.cells, before.origin);
    ImageTable images(source.periodic, lower, upper);
    const PeriodicResult periodic = linkPeriodic(*nodeBlocks, cells.cells, source, images);
    const CellNumbers numbers = assembleMesh(
        mesh, std::move(cells), {*nodeBlocks, source.coordinates, periodic.partners}, images, options, nullptr);
    // `rows` has the order of moveCells, which assembleMesh has permuted within the rank.
    const std::vector<index> places(numbers.newOfOld.begin(), numbers.newOfOld.begin() + mesh.cells.owned);
    return {std::move(mesh), rows.permuted(places)};
}

} // namespace

std::pair<UnstructuredMesh, Redistribute> rebuildMesh(const UnstructuredMesh &before, std::span<const int> targets,
                                                      const MeshOptions &options) {
    const ActivityScope activity("rebuildMesh");
    return failTogether(before.comm, [&] { return rebuild(before, targets, options); });
}

} // namespace DNDS::Geom
