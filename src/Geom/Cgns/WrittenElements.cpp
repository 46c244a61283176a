#include "DNDS/Geom/Cgns/WrittenElements.hpp"

#include "DNDS/Geom/Cgns/FaceNumbering.hpp"
#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace DNDS::Geom::Detail {

namespace {

/// A face list may repeat a face with other marks; it becomes an element once.
struct FaceElements {
    ElementBlock block;
    std::vector<index> elementOf; ///< [own listed faces]: position in `block`
};

/// Only neighbours in the list are compared: a face that is listed again later becomes another element.
/// O(nodes of own faces). A face whose marks two ranks list is written twice, once by each.
FaceElements uniqueFaces(CommunicatorView comm, const ElementBlock &faces) {
    FaceElements result;
    for (index f = 0; f < faces.size(); f++) {
        const auto i = static_cast<std::size_t>(f);
        const auto nodes = faces.nodesOf(f);
        // Readers list the marks of a face one after the other, and FileOrder sorts by cell and nodes: copies of a face
        // on one rank follow each other.
        const auto last = result.block.size() > 0 ? result.block.nodesOf(result.block.size() - 1) : nodes.first(0);
        if (!std::equal(nodes.begin(), nodes.end(), last.begin(), last.end()))
            appendElement(result.block, faces.types[i], nodes, faces.fileIds[i]);
        result.elementOf.push_back(result.block.size() - 1);
    }
    numberBlock(comm, result.block);
    return result;
}

/// Appends the faces of a cell, corners only and each once, seen from outside counter-clockwise; returns how many.
index appendFaces(const ElementBlock &cells, index cell, CsrLists<index> &faces) {
    const auto nodes = cells.nodesOf(cell);
    const ElementType type = cells.types[static_cast<std::size_t>(cell)];
    if (type == ElementType::Polyhedron)
        for (std::size_t at = 0; at < nodes.size(); at += static_cast<std::size_t>(nodes[at]) + 1)
            DNDS_CHECK(nodes[at] >= 3 && nodes[at] < static_cast<index>(nodes.size() - at), ArgumentError,
                       "own cell {} lists a face of {} corners", cell, nodes[at]);
    index count = 0;
    forEachFace(type, nodes, [&](std::span<const index> corners) {
        faces.append(corners);
        count++;
    });
    return count;
}

// Whether this rank's part of a block has an element of the type.
bool has(const ElementBlock &block, ElementType type) {
    return std::find(block.types.begin(), block.types.end(), type) != block.types.end();
}

/// With one polyhedron anywhere, all cells are written as polyhedra: the standard has no section of both.
class ElementMaker {
  public:
    ElementMaker(CommunicatorContext &context, const SourceMesh &mesh)
        : context_(context), comm_(context.comm()), mesh_(mesh), faces_(uniqueFaces(comm_, mesh.faces)) {}

    WrittenElements make() {
        if (comm_.allReduce(has(mesh_.cells, ElementType::Polyhedron) ? 1 : 0, MPI_MAX) == 1) {
            makePolyhedralSections();
            return std::move(result_);
        }
        addSection("Cells", mesh_.cells);
        addSection("Faces", faces_.block);
        for (const index element : faces_.elementOf)
            result_.faceElements.push_back(mesh_.cells.globalSize + 1 + faces_.block.first + element);
        return std::move(result_);
    }

  private:
    /// One type, NGON_n if there is a polygon (fixed types become polygons, by their corners), or MIXED.
    /// Three reductions decide the type of the section, so all ranks write the same kind even if their own elements
    /// would fit another.
    void addSection(const char *name, const ElementBlock &block) {
        if (block.globalSize == 0)
            return;
        int lowest = std::numeric_limits<int>::max();
        int highest = 0;
        for (const ElementType type : block.types) {
            lowest = std::min(lowest, static_cast<int>(type));
            highest = std::max(highest, static_cast<int>(type));
        }
        lowest = comm_.allReduce(lowest, MPI_MIN);
        highest = comm_.allReduce(highest, MPI_MAX);
        const bool polygons = comm_.allReduce(has(block, ElementType::Polygon) ? 1 : 0, MPI_MAX) == 1;
        WrittenSection section;
        section.name = name;
        section.elements = block.globalSize;
        section.type = polygons            ? ElementType::Polygon
                       : lowest == highest ? static_cast<ElementType>(lowest)
                                           : ElementType::Mixed;
        for (index e = 0; e < block.size(); e++) {
            // In MIXED sections each element begins with its type.
            if (section.type == ElementType::Mixed)
                section.connectivity.push_back(static_cast<index>(block.types[static_cast<std::size_t>(e)]));
            for (const index node : polygons ? cornersOf(block, e) : block.nodesOf(e))
                section.connectivity.push_back(node + 1);
            section.starts.push_back(static_cast<index>(section.connectivity.size()));
        }
        result_.sections.push_back(std::move(section));
    }

    /// NGON_n has the faces, each as the first of its cells lists it, outward for this cell: NFACE_n refers to it by a
    /// positive number there and by a negative one from the other cell.
    void makePolyhedralSections() {
        CsrLists<index> ofCells;
        std::vector<index> counts;
        comm_.guarded([&] {
            for (index c = 0; c < mesh_.cells.size(); c++)
                counts.push_back(appendFaces(mesh_.cells, c, ofCells));
        });
        CsrLists<index> ofBoundary;
        for (index f = 0; f < faces_.block.size(); f++)
            ofBoundary.append(distinctCorners(cornersOf(faces_.block, f)));
        // Each face gets one number, wherever its two cells are.
        const NumberedFaces numbered = numberFaces(context_, ofCells, ofBoundary, mesh_.origin);

        WrittenSection faces;
        faces.name = "Faces";
        faces.type = ElementType::Polygon;
        faces.elements = numbered.globalSize;
        for (std::size_t f = 0; f < ofCells.size(); f++) {
            if (!numbered.listedFirst[f])
                continue;
            for (const index corner : ofCells[f])
                faces.connectivity.push_back(corner + 1);
            faces.starts.push_back(static_cast<index>(faces.connectivity.size()));
        }
        WrittenSection cells;
        cells.name = "Cells";
        cells.type = ElementType::Polyhedron;
        cells.elements = mesh_.cells.globalSize;
        std::size_t f = 0;
        for (const index count : counts) {
            // `f` runs through the faces of all own cells.
            for (const std::size_t end = f + static_cast<std::size_t>(count); f < end; f++)
                cells.connectivity.push_back(numbered.listedFirst[f] ? numbered.ofCells[f] + 1
                                                                     : -(numbered.ofCells[f] + 1));
            cells.starts.push_back(static_cast<index>(cells.connectivity.size()));
        }
        result_.sections.push_back(std::move(faces));
        result_.sections.push_back(std::move(cells));
        for (const index element : faces_.elementOf)
            result_.faceElements.push_back(numbered.ofBoundary[static_cast<std::size_t>(element)] + 1);
    }

    CommunicatorContext &context_;
    CommunicatorView comm_;
    const SourceMesh &mesh_;
    FaceElements faces_;
    WrittenElements result_;
};

} // namespace

std::span<const index> cornersOf(const ElementBlock &block, index element) {
    const auto nodes = block.nodesOf(element);
    const ElementInfo &info = elementInfo(block.types[static_cast<std::size_t>(element)]);
    return info.corners > 0 ? nodes.first(static_cast<std::size_t>(info.corners)) : nodes;
}

WrittenElements elementsToWrite(CommunicatorContext &context, const SourceMesh &mesh) {
    return ElementMaker(context, mesh).make();
}

} // namespace DNDS::Geom::Detail
