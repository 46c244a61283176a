#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "DNDS/Geom/Cgns/Assemble.hpp"
#include "DNDS/Geom/Cgns/Boundary.hpp"
#include "DNDS/Geom/Cgns/Model.hpp"
#include "DNDS/Geom/Cgns/NodeJoin.hpp"
#include "DNDS/Geom/Cgns/ParentFaces.hpp"
#include "DNDS/Geom/Cgns/Polyhedra.hpp"
#include "DNDS/Geom/Cgns/SectionElements.hpp"
#include "DNDS/Geom/Cgns/SharedTree.hpp"
#include "DNDS/Geom/Cgns/Solutions.hpp"
#include "DNDS/Geom/Cgns/TreeSource.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

namespace DNDS::Geom {

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
