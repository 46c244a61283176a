#include "DNDS/Geom/Foam/FoamReader.hpp"

#include "DNDS/Geom/File/CellFaces.hpp"
#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/Foam/Cyclics.hpp"
#include "DNDS/Geom/Foam/FoamCase.hpp"
#include "DNDS/Geom/Foam/PolyMesh.hpp"
#include "DNDS/Geom/Source/CsrLists.hpp"
#include "DNDS/Index/SortUnique.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace DNDS::Geom {

namespace Foam {

namespace {

// ---------------------------------------------------------------------------------------------------------------------
// Tetrahedra, pyramids, prisms and hexahedra among polyhedra

using Corners = std::span<const index>;

/// The faces of a polyhedron.
std::vector<Corners> facesOf(Corners list) {
    std::vector<Corners> faces;
    for (std::size_t at = 0; at < list.size(); at += static_cast<std::size_t>(list[at]) + 1)
        faces.push_back(list.subspan(at + 1, static_cast<std::size_t>(list[at])));
    return faces;
}

/// The only type that may have faces with these numbers of corners.
std::optional<ElementType> typeByFaces(const std::vector<Corners> &faces) {
    std::array<int, 5> counts{};
    for (const Corners face : faces) {
        if (face.size() != 3 && face.size() != 4)
            return {};
        counts[face.size()]++;
    }
    if (counts[3] == 4 && counts[4] == 0)
        return ElementType::Tetra4;
    if (counts[3] == 4 && counts[4] == 1)
        return ElementType::Pyra5;
    if (counts[3] == 2 && counts[4] == 3)
        return ElementType::Penta6;
    if (counts[3] == 0 && counts[4] == 6)
        return ElementType::Hexa8;
    return {};
}

// Faces have three or four corners: a search is enough.
bool contains(Corners corners, index node) { return std::ranges::find(corners, node) != corners.end(); }

/// The node at the other end of the edge that leaves the base at `node`, or `node` without such an edge. O(faces).
index aboveOf(const std::vector<Corners> &faces, Corners base, index node) {
    for (const Corners face : faces)
        for (std::size_t k = 0; k < face.size(); k++)
            if (const index next = face[k + 1 == face.size() ? 0 : k + 1]; face[k] == node && !contains(base, next))
                return next;
    return node;
}

/// Whether the corners are the same from some first one on.
bool sameCycle(Corners a, Corners b) {
    for (std::size_t turn = 0; turn < a.size(); turn++) {
        std::size_t k = 0;
        while (k < a.size() && a[(k + turn) % a.size()] == b[k])
            k++;
        if (k == a.size())
            return true;
    }
    return false;
}

/// Each face of the type must be one of the given ones, with the same orientation.
bool hasFaces(ElementType type, Corners nodes, const std::vector<Corners> &faces) {
    return std::ranges::all_of(elementInfo(type).faces, [&](const ElementFace &wanted) {
        std::array<index, 4> corners{};
        const auto count = static_cast<std::size_t>(wanted.corners);
        for (std::size_t k = 0; k < count; k++)
            corners[k] = nodes[wanted.corner[k]];
        return std::ranges::any_of(faces, [&](Corners face) {
            return face.size() == count && sameCycle(face, Corners(corners).first(count));
        });
    });
}

/// The nodes of an element of this type with the given faces; empty if these do not fit.
///
/// Any base with the right number of corners will do: an element looks the same from each. The other nodes are found
/// along edges from the base. Then all faces of the element are compared with the given ones, because numbers of
/// corners also fit cells that are collapsed, or of which a face points inward.
std::vector<index> nodesOfShape(ElementType type, const std::vector<Corners> &faces) {
    // CGNS lists the base of each of these types first, counter-clockwise seen from inside, then the nodes above it.
    const std::size_t corners = type == ElementType::Pyra5 || type == ElementType::Hexa8 ? 4 : 3;
    const Corners base = *std::ranges::find_if(faces, [&](Corners face) { return face.size() == corners; });
    std::vector<index> nodes(base.rbegin(), base.rend());
    const bool pointed = type == ElementType::Tetra4 || type == ElementType::Pyra5;
    for (std::size_t k = 0; k < (pointed ? 1 : corners); k++)
        nodes.push_back(aboveOf(faces, base, nodes[k]));
    if (sortedUnique(nodes).size() != nodes.size() || !hasFaces(type, nodes, faces))
        nodes.clear();
    return nodes;
}

/// Replaces each Polyhedron that has the faces of a linear element, turned outwards, by this element. Local.
///
/// The faces decide, not the shape: a hexahedron that has one of its faces divided stays a polyhedron.
/// O(faces of cells), as shapes have at most six faces.
void recognizeShapes(ElementBlock &cells) {
    ElementBlock result;
    for (index cell = 0; cell < cells.size(); cell++) {
        const Corners list = cells.nodesOf(cell);
        const std::vector<Corners> faces = facesOf(list);
        const std::optional<ElementType> type = typeByFaces(faces);
        const std::vector<index> nodes = type ? nodesOfShape(*type, faces) : std::vector<index>();
        const index id = cells.fileIds[static_cast<std::size_t>(cell)];
        if (nodes.empty())
            appendElement(result, ElementType::Polyhedron, list, id);
        else
            appendElement(result, *type, nodes, id);
    }
    result.first = cells.first;
    result.globalSize = cells.globalSize;
    cells = std::move(result);
}

// ---------------------------------------------------------------------------------------------------------------------
// The lists of a mesh

/// This rank's faces: contiguous, in order of rank.
struct FileFaces {
    index first = 0;
    CsrLists<index> corners;
    std::vector<index> owner;     ///< cells
    std::vector<index> neighbour; ///< cells, for inner faces only; these come first

    index size() const { return static_cast<index>(corners.size()); }
};

/// One rank's share of a list.
/// Segments of all lists with an entry for each face are cut at the same faces, so the entries of a face are read by
/// one rank.
class ListReader {
  public:
    /// `entries` of the list that decides which rank reads an entry.
    ListReader(CommunicatorView comm, const ListFile &list, index entries)
        : list_(list), segments_(ownSegments(list.segments, entries, comm)), file_(openFile(list.path)),
          cursor_(file_) {}

    const std::vector<FileSegment> &segments() const { return segments_; }
    const ListFile &list() const { return list_; }
    FileCursor &cursor() { return cursor_; }

    /// Calls `take(entry)` with the cursor before each entry of this rank.
    template <class Take>
    void forEach(Take &&take) {
        for (const FileSegment &segment : segments_) {
            cursor_.moveTo(segment.place);
            for (index i = 0; i < segment.count; i++) {
                if (list_.uniform)
                    cursor_.moveTo(segment.place);
                take(segment.first + i);
            }
        }
    }
    // An integer of the list's width.
    index label(std::string_view what, index lowest, index highest) {
        return takeLabel(cursor_, list_.encoding, what, lowest, highest);
    }

  private:
    const ListFile &list_;
    std::vector<FileSegment> segments_;
    MeshFile file_;
    FileCursor cursor_;
};

constexpr index minCorners = 3;
constexpr index maxCorners = (index{1} << 14) - 1;

/// Reads faces that are lists of their own: "4(0 1 5 4)".
/// Text, or binary lists that are not compact: a face is a number and a list.
void readCorners(ListReader &list, index nodes, FileFaces &faces) {
    list.forEach([&](index) {
        const index count = takeInteger(list.cursor(), "the number of corners of a face", minCorners, maxCorners);
        takeByte(list.cursor(), '(');
        for (index k = 0; k < count; k++)
            faces.corners.values.push_back(list.label("a corner", 0, nodes - 1));
        takeByte(list.cursor(), ')');
        faces.corners.starts.push_back(static_cast<index>(faces.corners.values.size()));
    });
}

/// Reads the offsets of own faces and of the one after. The result is the first: the position of own corners in the
/// list of all corners.
/// Offsets ascend by the number of corners of each face; the range check bounds memory before anything is allocated.
/// O(own faces). Only the first segment's place is used: the segments of a rank follow each other in a binary list.
index readOffsets(ListReader &list, FileFaces &faces) {
    if (list.segments().empty())
        return 0;
    const FileSegment &first = list.segments().front();
    const index total = list.list().corners;
    const auto offset = [&](index lowest, index highest) {
        return list.label("where the corners of a face begin", lowest, std::min(highest, total));
    };
    list.cursor().moveTo(first.place);
    const index begin = offset(0, first.first == 0 ? 0 : total);
    for (auto i = entriesOf(list.segments()); i > 0; i--) {
        const index before = begin + faces.corners.starts.back();
        faces.corners.starts.push_back(offset(before + minCorners, before + maxCorners) - begin);
    }
    return begin;
}

/// Reads the corners from the position that `readOffsets` gave.
void readCornersFrom(ListReader &list, index begin, index nodes, FileFaces &faces) {
    if (list.segments().empty())
        return;
    const FilePlace place = list.segments().front().secondPlace;
    list.cursor().moveTo({place.offset + begin * list.list().encoding.labelBytes, place.line});
    for (index k = faces.corners.starts.back(); k > 0; k--)
        faces.corners.values.push_back(list.label("a corner", 0, nodes - 1));
}

/// The cells on both sides. A cell has four faces at least, which bounds the numbers of cells.
void readCells(CommunicatorView comm, const PolyMesh &poly, FileFaces &faces) {
    const index total = poly.faces.count;
    const index highest = total / 2 - 1;
    comm.guarded([&] {
        ListReader list(comm, poly.owner, total);
        list.forEach([&](index) { faces.owner.push_back(list.label("the owner of a face", 0, highest)); });
    });
    comm.guarded([&] {
        ListReader list(comm, poly.neighbour, total);
        list.forEach([&](index face) {
            const index neighbour = list.label("the neighbour of a face", 0, highest);
            const index owner = faces.owner[static_cast<std::size_t>(face - faces.first)];
            if (neighbour <= owner)
                list.cursor().fail(fmt::format("face {} has the owner {} and the neighbour {}, which must be a larger "
                                               "number (here faces and cells are counted from 0)",
                                               face, owner, neighbour));
            faces.neighbour.push_back(neighbour);
        });
    });
}

/// Collective.
/// One agreement for each list, so that the first error of the file is named on any number of ranks.
/// O(own faces + own corners) memory; no messages but a scan and the agreements.
FileFaces readFaces(CommunicatorView comm, const PolyMesh &poly, index nodes) {
    FileFaces faces;
    std::optional<ListReader> list;
    comm.guarded([&] { list.emplace(comm, poly.faces, poly.faces.count); });
    if (poly.faces.compact) {
        index begin = 0;
        comm.guarded([&] { begin = readOffsets(*list, faces); });
        comm.guarded([&] { readCornersFrom(*list, begin, nodes, faces); });
    } else {
        comm.guarded([&] { readCorners(*list, nodes, faces); });
    }
    faces.first = comm.exclusiveScan(faces.size());
    readCells(comm, poly, faces);
    return faces;
}

/// Sends faces to the ranks of their cells. Collective.
/// OpenFOAM lists no cells: the highest number in owner and neighbour gives their count. A face's normal leaves its
/// owner, hence `inward` for the neighbour.
/// One exchange: each face goes to the ranks of its cells with 3 + corners words. O(corners of own faces + of
/// faces received) memory. polyhedraOfFaces sorts by cell and face, so the result does not depend on the order of
/// arrival.
ElementBlock assembleCells(CommunicatorContext &context, const PolyMesh &poly, const FileFaces &faces) {
    const CommunicatorView &comm = context.comm();
    index highest = -1;
    for (const std::vector<index> *cells : {&faces.owner, &faces.neighbour})
        for (const index cell : *cells)
            highest = std::max(highest, cell);
    const EvenSplit split(comm.allReduce(highest, MPI_MAX) + 1, comm.size());
    Outbox outbox;
    const auto send = [&](index cell, index face, bool inward) {
        appendFaceOfCell(outbox.to(split.owner(cell)), cell, faces.first + face, faces.corners[toSize(face)], inward);
    };
    for (index face = 0; face < faces.size(); face++) {
        const auto f = static_cast<std::size_t>(face);
        send(faces.owner[f], face, false);
        if (f < faces.neighbour.size())
            send(faces.neighbour[f], face, true);
    }
    const RankLists arrived = sparseExchange(context, outbox.take());
    const IndexRange own = split.part(comm.rank());
    ElementBlock cells = polyhedraOfFaces(arrived.values, own.begin, own.size());
    comm.guarded([&] {
        for (index cell = 0; cell < cells.size(); cell++)
            DNDS_CHECK(!cells.nodesOf(cell).empty(), DataError, "{}: no face has the owner or neighbour {}",
                       poly.owner.path, own.begin + cell);
    });
    recognizeShapes(cells);
    numberBlock(comm, cells);
    return cells;
}

/// The faces without a neighbour, which come last in the file. Collective.
ElementBlock boundaryFaces(CommunicatorView comm, const FileFaces &faces) {
    ElementBlock block;
    for (index face = static_cast<index>(faces.neighbour.size()); face < faces.size(); face++) {
        const auto corners = faces.corners[toSize(face)];
        const ElementType type = corners.size() == 3   ? ElementType::Tri3
                                 : corners.size() == 4 ? ElementType::Quad4
                                                       : ElementType::Polygon;
        appendElement(block, type, corners, faces.first + face + 1);
    }
    numberBlock(comm, block);
    return block;
}

/// Lists are read in the order points, faces, cells of faces, boundary.
SourceMesh readParts(CommunicatorView comm, const std::string &path, const std::string &region) {
    const PolyMesh poly = scanPolyMesh(comm, path, region);
    SourceMesh mesh;
    mesh.origin = path;
    mesh.cellDimension = 3;
    // One agreement per list, so that the first error of the file is named on any number of ranks.
    comm.guarded([&] {
        ListReader list(comm, poly.points, poly.points.count);
        list.forEach([&](index) { mesh.coordinates.push_back(takePoint(list.cursor(), list.list().encoding)); });
    });
    numberNodes(comm, mesh);
    const FileFaces faces = readFaces(comm, poly, mesh.globalNodes);
    const auto context = CommunicatorContext::of(comm);
    mesh.cells = assembleCells(*context, poly, faces);
    mesh.faces = boundaryFaces(comm, faces);
    addBoundaries(*context, poly, mesh);
    return mesh;
}

} // namespace

} // namespace Foam

SourceMesh readFoam(CommunicatorView comm, const std::string &path, const std::string &region) {
    return failTogether(comm, [&] { return Foam::readParts(comm, path, region); });
}

} // namespace DNDS::Geom
