#include "DNDS/Geom/Refine/RefineLevel.hpp"

#include "DNDS/Geom/Refine/RefinementPattern.hpp"
#include "DNDS/Geom/Refine/SharedPlaces.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Geom/Source/NodeMarks.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>

namespace DNDS::Geom {

namespace {

using Pattern = RefinementPattern;

// Patterns are made once for each type.
const Pattern &patternOf(const ElementBlock &block, index element) {
    return refinementPattern(refinedAs(block, element));
}

/// Throws, on all ranks, for elements that cannot be cut. Collective.
/// Findings of both blocks are numbered one after the other, so the first in the file is named.
void requireRefinable(CommunicatorView comm, const SourceMesh &mesh) {
    Finding polygons;
    Finding collapsed;
    index before = 0; // cells come before faces
    for (const ElementBlock *block : {&mesh.cells, &mesh.faces}) {
        for (index e = 0; e < block->size(); e++) {
            const ElementType type = refinedAs(*block, e);
            const index number = before + block->first + e;
            const index fileId = block->fileIds[toSize(e)];
            if (elementLayout(type).order == 0)
                polygons.add(number, fileId);
            else if (hasRepeats(cornerNodes(type, block->nodesOf(e))))
                collapsed.add(number, fileId);
        }
        before += block->globalSize;
    }
    polygons.agree(comm);
    collapsed.agree(comm);
    DNDS_CHECK(polygons.count == 0, DataError,
               "{}: polyhedra, and polygons of more than four corners, cannot be refined: it has {} of them, the first "
               "is element {}; refine the mesh that they were made of, or make a finer one",
               mesh.origin, polygons.count, polygons.fileId);
    DNDS_CHECK(collapsed.count == 0, DataError,
               "{}: {} elements list a corner twice and cannot be refined, the first is element {}; save them as the "
               "type that they are, such as a collapsed HEXA_8 as PENTA_6",
               mesh.origin, collapsed.count, collapsed.fileId);
}

/// The place of a node on an edge or a face, in terms that all elements there agree on: neighbours list corners in
/// other orders, and a boundary face may lack the second-order nodes of its cell, but all have the same corners.
/// O(1). Sorted by node number: the least corner, which comes first, decides the rank where the place is numbered.
PlaceKey keyOf(const Pattern::Node &node, std::span<const index> nodes) {
    PlaceKey key;
    key.fill(SharedPlaces::none);
    for (std::size_t k = 0; k < static_cast<std::size_t>(node.corners); k++)
        key[k] = (nodes[node.corner[k]] << 5) | node.weight[k];
    std::sort(key.begin(), key.end());
    return key;
}

/// Rows of consecutive nodes.
struct RowPiece {
    index first;
    std::span<const real> rows;
};

/// Deals rows of all ranks, which together are those of nodes 0 to `total` - 1, out in blocks of equal size; returns
/// the first node of this rank's. Collective.
/// Each rank holds old nodes, new shared ones and new inner ones: three ranges of numbers. They are sent to the even
/// blocks of the refined numbering, as `buildMesh` and writers expect.
/// One exchange of 1 + width words a node. Each number is sent by exactly one rank, so every row of the block is
/// written once.
index dealOut(CommunicatorContext &context, std::span<const RowPiece> pieces, index total, std::size_t width,
              std::vector<real> &rows) {
    const EvenSplit split(total, context.comm().size());
    std::vector<std::pair<index, const real *>> list; // number, row
    for (const RowPiece &piece : pieces)
        for (std::size_t at = 0; at < piece.rows.size(); at += width)
            list.emplace_back(piece.first + static_cast<index>(at / width), piece.rows.data() + at);
    const RankLists received = sparseExchange(
        context, packByRank(
                     split.parts(), list.size(), [&](std::size_t i) { return split.owner(list[i].first); },
                     [&](std::size_t) { return 1 + width; },
                     [&](std::size_t i, index *words) {
                         *words++ = list[i].first;
                         std::transform(list[i].second, list[i].second + width, words, packReal);
                     }));
    const auto [first, end] = split.part(context.comm().rank());
    rows.assign(toSize(end - first) * width, 0.0);
    for (RecordReader reader(received.values); !reader.atEnd();) {
        const std::size_t row = toSize(reader.next() - first) * width;
        for (std::size_t k = 0; k < width; k++)
            rows[row + k] = reader.nextReal();
    }
    return first;
}

/// The state of one level, in the order of work: `collect` lists the places of all new nodes, `numberPlaces` and a scan
/// number them, `cut` makes the children, and the rows go to the blocks of the refined mesh.
///
/// Numbers: old nodes; nodes on edges and faces in the order of their corners; nodes inside cells in the order of
/// these. None of it depends on which rank has which cell. Memory: the places of own elements, each once, and 4 bytes
/// for each time that an element has one.
/// Exchanges: rows of nodes (a query), places and their numbers, rows of the refined nodes; marks of nodes and
/// checks of replaced nodes only if there are any. O(children) time.
class LevelRefiner {
  public:
    LevelRefiner(CommunicatorView comm, const SourceMesh &coarse, std::vector<real> &rows, std::size_t width)
        : comm_(comm), coarse_(coarse), rows_(rows), width_(width),
          blocks_(GlobalMapping::create(comm, coarse.nodes())) {}

    // `cut` meets elements and places in the same order as `collect`, first cells and then faces.
    SourceMesh refine(std::vector<std::uint8_t> &children) {
        requireRefinable(comm_, coarse_);
        fetchNodes();
        for (index c = 0; c < coarse_.cells.size(); c++)
            collect(coarse_.cells, c, true);
        for (index f = 0; f < coarse_.faces.size(); f++)
            collect(coarse_.faces, f, false);
        places_.slots = {};
        placed_ = numberPlaces(*blocks_, places_, width_);
        const auto inner = GlobalMapping::create(comm_, static_cast<index>(inner_.size() / width_));
        nextInner_ = coarse_.globalNodes + placed_.newNodes + inner->localBegin();

        SourceMesh fine;
        fine.origin = coarse_.origin;
        fine.cellDimension = coarse_.cellDimension;
        fine.physicalDimension = coarse_.physicalDimension;
        fine.patches = coarse_.patches;
        fine.periodic = coarse_.periodic;
        fine.warnings = coarse_.warnings;
        fine.notes = coarse_.notes;
        const RowPiece pieces[] = {{coarse_.firstNode, rows_}, {placed_.first, placed_.rows}, {nextInner_, inner_}};
        fine.globalNodes = coarse_.globalNodes + placed_.newNodes + inner->globalSize();
        children.clear();
        cut(coarse_.cells, true, fine.cells, children);
        std::vector<std::uint8_t> ofFaces;
        cut(coarse_.faces, false, fine.faces, ofFaces);
        requireOnePlace();
        markFaces(fine);
        markNodes(fine);
        std::vector<real> dealt;
        fine.firstNode = dealOut(*blocks_->context(), pieces, fine.globalNodes, width_, dealt);
        rows_ = std::move(dealt);
        return fine;
    }

  private:
    /// Rows of all nodes of own elements, each once.
    void fetchNodes() {
        for (const ElementBlock *block : {&coarse_.cells, &coarse_.faces})
            for (const index node : block->nodes)
                nodes_.add(node);
        fetched_ = fetchRows(*blocks_, rows_, width_, nodes_.numbers());
    }

    /// Writes row `place` of `to`, which grows where it is too short, for a place in an element: its shape functions
    /// times the rows of its nodes.
    void writeRow(const Pattern::Node &node, std::span<const index> nodes, std::vector<real> &to,
                  std::size_t place) const {
        const std::size_t at = place * width_;
        to.resize(std::max(to.size(), at + width_));
        std::fill_n(to.begin() + static_cast<std::ptrdiff_t>(at), width_, 0.0);
        for (std::size_t k = 0; k < node.values.size(); k++) {
            if (node.values[k] == 0.0)
                continue;
            const std::size_t row = static_cast<std::size_t>(nodes_.find(nodes[k])) * width_;
            for (std::size_t i = 0; i < width_; i++)
                to[at + i] += node.values[k] * fetched_[row + i];
        }
    }

    /// Lists the places that an element needs nodes at: those on edges and faces to be shared, those inside its own.
    ///
    /// Cells come first, then boundary faces: the row of a place is that of the first, so that it is a cell's where
    /// there is one, and the same cell's on any number of ranks. Linear elements come last: the middle of a flat face
    /// is not that of the curved one that it adjoins. A node that exists at a place takes part: where
    /// neighbours lack it, they get its number instead of a new one, and where they have another one, the least counts.
    void collect(const ElementBlock &block, index element, bool isCell) {
        const bool linear = elementLayout(refinedAs(block, element)).order == 1;
        const index order =
            orderOf(block, element) + (linear ? coarse_.cells.globalSize + coarse_.faces.globalSize : 0);
        const auto nodes = block.nodesOf(element);
        for (const Pattern::Node &node : patternOf(block, element).nodes) {
            const bool own = isCell && node.inner;
            if (own && node.old < 0)
                writeRow(node, nodes, inner_, inner_.size() / width_);
            if (own || node.corners == 1)
                continue;
            const auto [slot, isFirst] = places_.add(keyOf(node, nodes), order);
            if (isFirst)
                writeRow(node, nodes, places_.rows, static_cast<std::size_t>(slot));
            slots_.push_back(slot);
            if (node.old < 0)
                continue;
            index &known = places_.known[static_cast<std::size_t>(slot)];
            known = std::min(known, nodes[static_cast<std::size_t>(node.old)]);
        }
    }

    /// Appends the children of a block's elements to `fine`, in the order in which `collect` saw the elements.
    void cut(const ElementBlock &block, bool isCell, ElementBlock &fine, std::vector<std::uint8_t> &children) {
        std::vector<index> numbers;
        for (index e = 0; e < block.size(); e++) {
            const auto nodes = block.nodesOf(e);
            const Pattern &pattern = patternOf(block, e);
            numbers.clear();
            for (const Pattern::Node &node : pattern.nodes) {
                const index old = node.old < 0 ? -1 : nodes[static_cast<std::size_t>(node.old)];
                const bool own = (isCell && node.inner) || node.corners == 1;
                numbers.push_back(!own       ? placed_.numbers[static_cast<std::size_t>(slots_[nextSlot_++])]
                                  : old >= 0 ? old
                                             : nextInner_++);
                if (old >= 0 && numbers.back() != old)
                    noteReplaced(block, e, node, numbers.back());
            }
            for (std::size_t child = 0; child < pattern.children.size(); child++) {
                for (const std::uint8_t node : pattern.children[child].nodes)
                    fine.nodes.push_back(numbers[node]);
                fine.types.push_back(pattern.children[child].type);
                fine.starts.push_back(static_cast<index>(fine.nodes.size()));
                children.push_back(static_cast<std::uint8_t>(child));
            }
        }
        const auto mapping = GlobalMapping::create(comm_, fine.size());
        fine.first = mapping->localBegin();
        fine.globalSize = mapping->globalSize();
        for (index e = 0; e < fine.size(); e++)
            fine.fileIds.push_back(fine.first + e + 1);
    }

    /// A node of an element in whose place its neighbours' counts.
    struct Replaced {
        index element; ///< as `orderOf` numbers it
        index fileId;
        index by; ///< the node that counts
        Point at;
        real size; ///< the length of its edge, or the longest distance from a corner of its face
    };
    /// Keeps the positions that `requireOnePlace` compares: only here is the element at hand.
    void noteReplaced(const ElementBlock &block, index element, const Pattern::Node &node, index by) {
        const auto nodes = block.nodesOf(element);
        const auto pointOf = [&](int k) {
            const auto row = fetched_.begin() +
                             nodes_.find(nodes[static_cast<std::size_t>(k)]) * static_cast<std::ptrdiff_t>(width_);
            return Point{row[0], row[1], row[2]};
        };
        real size = 0.0;
        for (std::size_t k = 1; k < static_cast<std::size_t>(node.corners); k++)
            size = std::max(size, norm(pointOf(node.corner[k]) - pointOf(node.corner[0])));
        replaced_.push_back({orderOf(block, element), block.fileIds[toSize(element)], by, pointOf(node.old), size});
    }

    /// The number of an element among all cells and, after these, all faces.
    index orderOf(const ElementBlock &block, index element) const {
        return (&block == &coarse_.faces ? coarse_.cells.globalSize : 0) + block.first + element;
    }

    /// Throws, on all ranks, where neighbours have different nodes on an edge or face and these are apart: their
    /// children would leave a gap. Collective.
    /// One reduction if no node was replaced; else one query for the positions of the nodes that count. The search
    /// through all elements runs only before an error.
    void requireOnePlace() const {
        constexpr real tolerance = 1e-3; // of the edge or face, as where zones of CGNS files are joined
        if (comm_.allReduce(replaced_.empty() ? 0 : 1, MPI_MAX) == 0)
            return;
        std::vector<index> nodes;
        for (const Replaced &one : replaced_)
            nodes.push_back(one.by);
        const std::vector<real> rows = fetchRows(*blocks_, rows_, width_, nodes);
        Finding apart;
        const Replaced *first = nullptr;
        for (std::size_t i = 0; i < replaced_.size(); i++) {
            const real *row = rows.data() + i * width_;
            if (norm(Point{row[0], row[1], row[2]} - replaced_[i].at) <= tolerance * replaced_[i].size)
                continue;
            apart.add(replaced_[i].element, replaced_[i].fileId);
            first = first == nullptr ? &replaced_[i] : first;
        }
        apart.agree(comm_);
        if (apart.count == 0)
            return;
        const bool here = first != nullptr && first->element == apart.number;
        const index other = comm_.allReduce(here ? first->by : SharedPlaces::none, MPI_MIN);
        Finding neighbours; // elements that list the other node
        for (const ElementBlock *block : {&coarse_.cells, &coarse_.faces})
            for (index e = 0; e < block->size(); e++)
                if (std::ranges::count(block->nodesOf(e), other) > 0)
                    neighbours.add(orderOf(*block, e), block->fileIds[toSize(e)]);
        neighbours.agree(comm_);
        throw DataError(
            fmt::format("{}: {} nodes on edges and faces are away from those of neighbours there, the first "
                        "between elements {} and {} (its node {}): their children would leave gaps; let both "
                        "list the same nodes of second order, or nodes that coincide within {:g} of the edge",
                        coarse_.origin, apart.count, apart.fileId, neighbours.fileId, other + 1, tolerance));
    }

    /// Faces are numbered after the cells, and have the marks of their parents.
    void markFaces(SourceMesh &fine) const {
        for (index &id : fine.faces.fileIds)
            id += fine.cells.globalSize;
        for (index f = 0; f < coarse_.faces.size(); f++)
            fine.faceMarks.insert(fine.faceMarks.end(), patternOf(coarse_.faces, f).children.size(),
                                  coarse_.faceMarks[toSize(f)]);
    }

    /// Nodes on an edge or a face have the marks that all of its corners have. Collective.
    void markNodes(SourceMesh &fine) const {
        fine.nodeMarks = coarse_.nodeMarks;
        if (comm_.allReduce(coarse_.nodeMarks.empty() ? 0 : 1, MPI_MAX) == 0)
            return;
        const auto cornersOf = [](const PlaceKey &key) {
            std::vector<index> corners;
            for (const index word : key)
                if (word != SharedPlaces::none)
                    corners.push_back(word >> 5);
            return corners;
        };
        NumberTable corners;
        for (const auto &[key, node] : placed_.held)
            for (const index corner : cornersOf(key))
                corners.add(corner);
        const CsrLists<int> marks = fetchNodeMarks(*blocks_, coarse_, corners.numbers());
        const auto marksOf = [&](index node) { return marks[static_cast<std::size_t>(corners.find(node))]; };
        for (const auto &[key, node] : placed_.held)
            for (const int mark : commonMarks(cornersOf(key), marksOf))
                fine.nodeMarks.push_back({mark, node});
    }

    CommunicatorView comm_;
    const SourceMesh &coarse_;
    std::vector<real> &rows_; ///< [own nodes x width]
    std::size_t width_;
    std::shared_ptr<const GlobalMapping> blocks_; ///< blocks of the coarse nodes
    NumberTable nodes_;                           ///< nodes of own elements
    std::vector<real> fetched_;                   ///< [nodes_ x width]
    SharedPlaces places_;
    /// Slots of the places on edges and faces, in the order in which `collect` meets them; `cut` meets them again in
    /// the same order, so that no key is looked up twice.
    std::vector<LocalIndex> slots_;
    std::vector<real> inner_; ///< [new nodes inside own cells x width]
    NumberedPlaces placed_;
    std::vector<Replaced> replaced_;
    index nextInner_ = 0;
    std::size_t nextSlot_ = 0;
};

} // namespace

ElementType refinedAs(const ElementBlock &block, index element) {
    const ElementType type = block.types[toSize(element)];
    const std::size_t corners = block.nodesOf(element).size();
    if (type != ElementType::Polygon || corners > 4)
        return type;
    return corners == 3 ? ElementType::Tri3 : ElementType::Quad4;
}

// Red refinement. Invariant: a new node belongs to one edge, face or cell; those on edges and faces are found by their
// corners, at the rank of the least, so that neighbours share them and each exists once, with the bits of one element.
SourceMesh refineLevel(CommunicatorView comm, const SourceMesh &coarse, std::vector<real> &rows, std::size_t width,
                       std::vector<std::uint8_t> &children) {
    return LevelRefiner(comm, coarse, rows, width).refine(children);
}

} // namespace DNDS::Geom
