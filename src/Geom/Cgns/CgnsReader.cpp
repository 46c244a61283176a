#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "DNDS/Geom/Cgns/Boundary.hpp"
#include "DNDS/Geom/Cgns/Model.hpp"
#include "DNDS/Geom/Cgns/NodeJoin.hpp"
#include "DNDS/Geom/Cgns/ResolvedElements.hpp"
#include "DNDS/Geom/Cgns/SectionElements.hpp"
#include "DNDS/Geom/Cgns/Solutions.hpp"
#include "DNDS/Geom/Cgns/TreeSource.hpp"
#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <span>
#include <tuple>

namespace DNDS::Geom {

namespace Cgns {

namespace {

/// Numbers the marked faces of all ranks in the order of the file. [marks.faces]; and how many there are.
/// A prefix sum over (section, rank): marked faces of earlier sections first, then those of lower ranks, then this
/// rank's in order. One scan and one reduction of as many words as there are sections.
std::pair<std::vector<index>, index> numberFaces(CommunicatorContext &context, const Elements &elements,
                                                 const Marks &marks) {
    // The sections of both lists in the order of the file, which interleaves them: MIXED ones hold cells and faces.
    std::vector<std::tuple<int, index, std::size_t>> sections;
    for (const SectionTable *table : {&elements.faceTable, &elements.cellTable})
        for (const Section &section : table->sections())
            sections.emplace_back(section.zone, section.firstId, sections.size());
    std::ranges::sort(sections);
    std::vector<std::size_t> placeOf(sections.size());
    for (std::size_t k = 0; k < placeOf.size(); k++)
        placeOf[std::get<2>(sections[k])] = k;
    std::vector<std::size_t> places;
    std::vector<index> counts(placeOf.size(), 0);
    for (const MarkedElement &face : marks.faces) {
        const SectionTable &table = face.inCells ? elements.cellTable : elements.faceTable;
        const ElementRun &run = face.inCells ? elements.cells : elements.faces;
        places.push_back(placeOf[(face.inCells ? elements.faceTable.sections().size() : 0) +
                                 table.sectionOf(run.first() + face.element)]);
        counts[places.back()]++;
    }
    const CommunicatorView &comm = context.comm();
    const auto width = static_cast<int>(counts.size());
    std::vector<index> before = counts;
    comm.exclusiveScan(before.data(), width);
    comm.allReduce(counts.data(), width, MPI_SUM);
    index total = 0;
    for (std::size_t k = 0; k < counts.size(); k++) {
        before[k] += total;
        total += counts[k];
    }
    std::vector<index> numbers;
    for (const std::size_t place : places)
        numbers.push_back(before[place]++);
    return {std::move(numbers), total};
}

/// The cells of this rank as a block. Collective.
/// Elements of MIXED sections other than cells: faces are taken by their marks, the rest is counted and left out.
/// Zones' own numbers of cells are only compared, since many files state them wrongly. O(own elements) time; one
/// reduction of a word a zone, which also makes the warnings the same on all ranks.
ElementBlock cellBlock(CommunicatorContext &context, const Model &model, const Elements &elements,
                       std::vector<std::string> &warnings, std::vector<std::string> &notes) {
    const ElementRun &run = elements.cells;
    ElementBlock cells;
    std::vector<index> counts(model.zones.size() + 1, 0); // of cells in each zone; of unusable elements
    for (index element = 0; element < run.size(); element++) {
        const ElementType type = run.types[static_cast<std::size_t>(element)];
        const int dimension = elementInfo(type).dimension;
        if (dimension == model.cellDimension) {
            const index ordinal = run.first() + element;
            const std::size_t section = elements.cellTable.sectionOf(ordinal);
            counts[static_cast<std::size_t>(elements.cellTable.sections()[section].zone)]++;
            appendElement(cells, type, run.nodesOf(element), elements.cellTable.idOf(ordinal));
        } else if (dimension != model.cellDimension - 1) {
            counts.back()++;
        }
    }
    context.comm().allReduce(counts.data(), static_cast<int>(counts.size()), MPI_SUM);
    for (std::size_t zone = 0; zone < model.zones.size(); zone++)
        if (counts[zone] != model.zones[zone].cells)
            warnings.push_back(fmt::format("{}: it states {} cells, but its sections hold {}",
                                           model.zoneText(static_cast<int>(zone)), model.zones[zone].cells,
                                           counts[zone]));
    if (counts.back() > 0)
        notes.push_back(fmt::format("{}: {} elements of MIXED sections are neither cells nor faces and are left out",
                                    model.file, counts.back()));
    numberBlock(context.comm(), cells);
    DNDS_CHECK(cells.globalSize > 0, DataError, "{}: base '{}' has no cells", model.file, model.base);
    return cells;
}

/// Adds the marked faces in file order, distributed evenly, with their marks. Collective.
/// Faces go to the ranks of an even split of their numbers: a patch in one section may lie on a single rank. Record:
/// number, mark, type, number in the file, number of nodes, nodes.
/// One sparse exchange of 5 + nodes words a marked face; O(own marks + faces received) memory. Numbers are dense,
/// so `at` is a direct table and needs no sort.
void addMarkedFaces(CommunicatorContext &context, const Elements &elements, const Marks &marks, SourceMesh &mesh) {
    const auto [numbers, total] = numberFaces(context, elements, marks);
    Outbox outbox;
    for (std::size_t k = 0; k < marks.faces.size(); k++) {
        const MarkedElement &face = marks.faces[k];
        const SectionTable &table = face.inCells ? elements.cellTable : elements.faceTable;
        const ElementRun &run = face.inCells ? elements.cells : elements.faces;
        const auto nodes = run.nodesOf(face.element);
        std::vector<index> &record = outbox.to(EvenSplit(total, context.comm().size()).owner(numbers[k]));
        record.insert(record.end(),
                      {numbers[k], face.mark, static_cast<index>(run.types[static_cast<std::size_t>(face.element)]),
                       table.idOf(run.first() + face.element), static_cast<index>(nodes.size())});
        record.insert(record.end(), nodes.begin(), nodes.end());
    }
    const RankLists arrived = sparseExchange(context, outbox.take());

    const Range own = EvenSplit(total, context.comm().size()).part(context.comm().rank());
    std::vector<std::size_t> at(static_cast<std::size_t>(own.size()));
    for (std::size_t i = 0; i < arrived.values.size(); i += 5 + static_cast<std::size_t>(arrived.values[i + 4]))
        at[static_cast<std::size_t>(arrived.values[i] - own.begin)] = i;
    const std::span<const index> values(arrived.values);
    for (const std::size_t i : at) {
        appendElement(mesh.faces, static_cast<ElementType>(values[i + 2]),
                      values.subspan(i + 5, static_cast<std::size_t>(values[i + 4])), values[i + 3]);
        mesh.faceMarks.push_back(static_cast<int>(values[i + 1]));
    }
    numberBlock(context.comm(), mesh.faces);
}

/// Applies the node numbers after joining. Collective.
/// Collects all node references, translates them in one call, and puts them back in the same order.
void renumberMesh(CommunicatorContext &context, const NodeBlock &block, SourceMesh &mesh) {
    if (!block.joined)
        return;
    // The lists of polyhedra hold corner counts among the nodes: only the nodes are translated.
    std::vector<index> nodes;
    const auto forEachNode = [&](auto &&visit) {
        for (index c = 0; c < mesh.cells.size(); c++)
            Geom::forEachNode(
                mesh.cells.types[toSize(c)],
                std::span(mesh.cells.nodes).subspan(toSize(mesh.cells.starts[toSize(c)]), mesh.cells.nodesOf(c).size()),
                visit);
        for (index &node : mesh.faces.nodes)
            visit(node);
        for (SourceMesh::NodeMark &mark : mesh.nodeMarks)
            visit(mark.node);
    };
    forEachNode([&](index &node) { nodes.push_back(node); });
    renumberNodes(context, block, nodes);
    auto next = nodes.begin();
    forEachNode([&](index &node) { node = *next++; });
}

} // namespace

} // namespace Cgns

namespace {

using namespace Cgns; // NOLINT(google-build-using-namespace): its own parts

/// Stages, each collective: tree, model, elements of both lists, polyhedra and faces given by parents, marks, nodes,
/// joining, assembly. Everything up to joining uses the file's numbering; renumberMesh translates the finished lists
/// once.
/// Memory: O(own elements + own nodes), besides the tree of small nodes on every rank. Elements are split evenly
/// over all zones, nodes likewise, so no rank holds a zone.
SourceMesh readParts(CommunicatorView user, const std::string &path, const CgnsOptions &options) {
    const auto owner = CommunicatorContext::of(user);
    CommunicatorContext &context = *owner;
    const CommunicatorView comm = context.comm();
    std::unique_ptr<TreeSource> source;
    const TreeNode root = readSharedTree(comm, path, source, options.fields != nullptr);
    Model model;
    comm.guarded([&] { model = buildModel(root, options); });
    findListedDirections(comm, model, *source);

    // Tables refer to the sections of the model, which does not change after this.
    const SectionTable cellTable(model.cells);
    const SectionTable faceTable(model.faces);
    ElementRun cells = readElements(context, model, cellTable, faceTable, *source);
    ElementRun faces = readElements(context, model, faceTable, faceTable, *source);
    // Faces before polyhedra, which consist of them.
    resolveParentFaces(context, model, cellTable, cells, faceTable, faces, *source);
    resolvePolyhedra(context, model, cellTable, cells, faceTable, faces, *source);

    const Elements elements{cellTable, cells, faceTable, faces};
    Marks marks = readMarks(context, model, elements, *source);
    NodeBlock nodes = readNodes(comm, model, *source);
    // Pairs in the numbering of the file; joinNodes turns it into that of the mesh.
    const JoinPairs joins = readJoins(context, model, elements, *source);

    SourceMesh mesh;
    mesh.origin = path;
    mesh.cellDimension = model.cellDimension;
    mesh.physicalDimension = model.physicalDimension;
    mesh.warnings = model.warnings;
    mesh.notes = model.notes;
    mesh.warnings.insert(mesh.warnings.end(), marks.warnings.begin(), marks.warnings.end());
    joinNodes(context, model, elements, joins, options, nodes, mesh.warnings);
    mesh.cells = cellBlock(context, model, elements, mesh.warnings, mesh.notes);
    addMarkedFaces(context, elements, marks, mesh);
    mesh.nodeMarks = std::move(marks.nodes);
    mesh.patches = std::move(marks.patches);
    mesh.periodic = std::move(marks.periodic);
    renumberMesh(context, nodes, mesh);
    mesh.coordinates = std::move(nodes.coordinates);
    const auto mapping = GlobalMapping::create(comm, mesh.nodes());
    mesh.firstNode = mapping->localBegin();
    mesh.globalNodes = mapping->globalSize();
    if (options.fields != nullptr)
        *options.fields = readSolutions(comm, model, nodes, mesh, *source);
    return mesh;
}

} // namespace

void requireSameOptions(CommunicatorView comm, const CgnsOptions &options) {
    requireSameSettings(comm, "the reader", [&] {
        return std::vector<std::string>{fmt::format("base = '{}'", options.base),
                                        fmt::format("joinCoincidentNodes = {}", options.joinCoincidentNodes),
                                        fmt::format("joinTolerance = {}", options.joinTolerance),
                                        fmt::format("fields = {}", options.fields != nullptr ? "given" : "none")};
    });
}

SourceMesh readCgns(CommunicatorView user, const std::string &path, const CgnsOptions &options) {
    return failTogether(user, [&] {
        requireSameOptions(user, options);
        return readParts(user, path, options);
    });
}

} // namespace DNDS::Geom
