#include "DNDS/Geom/Build/LocalFaces.hpp"

#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace DNDS::Geom {

namespace {

/// A face, as a face of the first local cell that has it: `cell` is a position in LocalCells.
struct FoundFace {
    LocalIndex cell;
    // Number of the face among those of its cell.
    int slot;
    LocalIndex other; ///< the cell across it, `noEntity` or `notLocal`
};

/// The faces of local cells in the order of cells.
/// Each face once, at its first cell in the final order of cells, so that faces of a cell have nearby numbers. Both
/// slots of a face refer to it if both cells are local.
/// O(slots of local cells) time; memory: one number a slot and one FoundFace a face. No hash table is needed: a
/// link names the slot at the other cell, so the first visit of a face fills both slots.
class FaceList {
  public:
    FaceList(const LocalCells &cells, const CellNumbers &numbers, ImageTable &images) : cells_(cells) {
        faceOfSlot_.assign(cells.cells.links.size(), -1);
        // Inner faces are in two cells; the rest is room for the boundary.
        faces_.reserve(cells.cells.links.size() / 2 + cells.cells.links.size() / 16);
        for (const index cell : numbers.order)
            for (int slot = 0; slot < static_cast<int>(cells.cells.linksOf(cell).size()); slot++)
                if (faceOfSlot_[slotIndex(cell, slot)] < 0)
                    addFace(cell, slot, images);
    }
    const std::vector<FoundFace> &faces() const { return faces_; }
    /// The packed link of a face, or none.
    index linkOf(const FoundFace &face) const { return cells_.cells.links[slotIndex(face.cell, face.slot)]; }
    LocalIndex faceOf(index cell, int slot) const { return faceOfSlot_[slotIndex(cell, slot)]; }

  private:
    std::size_t slotIndex(index cell, int slot) const { return toSize(cells_.cells.linkStarts[toSize(cell)] + slot); }
    // Also enters the face at the other cell, if that is local: it is then not found again.
    void addFace(index cell, int slot, ImageTable &images) {
        const auto face = static_cast<LocalIndex>(faces_.size());
        faceOfSlot_[slotIndex(cell, slot)] = face;
        const index word = cells_.cells.linksOf(cell)[static_cast<std::size_t>(slot)];
        LocalIndex other = noEntity;
        if (word != FaceLink::none) {
            const FaceLink link = FaceLink::unpack(word);
            const LocalIndex across = cells_.across(cell, link, images);
            other = across == NumberTable::none ? notLocal : across;
            if (other >= 0)
                faceOfSlot_[slotIndex(other, link.slot)] = face;
        }
        faces_.push_back({static_cast<LocalIndex>(cell), slot, other});
    }

    const LocalCells &cells_;
    std::vector<FoundFace> faces_;
    std::vector<LocalIndex> faceOfSlot_;
};

/// The owner of a face, and the cell that identifies it in requests.
/// Every rank that has the face computes the same owner from links alone, without a message. A hash of the two cells'
/// numbers spreads the faces between two ranks evenly over both. Periodic and boundary faces belong to the rank of
/// their own cell: a periodic pair consists of two faces.
/// The choice depends on the unordered pair of cells: both ranks compute the same bit and apply it to the same two
/// numbers.
struct FaceOwner {
    int rank;
    index cell; ///< global
    int slot;

    static FaceOwner of(const FoundFace &face, index word, const LocalCells &cells, const GlobalMapping &cellMapping) {
        const index mine = cells.numbers[toSize(face.cell)];
        const FaceLink link = FaceLink::unpack(word);
        const bool single = word == FaceLink::none || link.step != 0;
        // Boundary and periodic faces, and faces between own cells: no choice to make. (Another rank may name either of
        // two cells of one rank, but finds the same owner.)
        if (single || (cellMapping.isLocal(mine) && cellMapping.isLocal(link.cell)))
            return {cellMapping.owner(mine).rank, mine, face.slot};
        const auto low = static_cast<std::uint64_t>(std::min(mine, link.cell));
        const auto high = static_cast<std::uint64_t>(std::max(mine, link.cell));
        const bool takeLow = (mixBits(mixBits(low) ^ high) & 1U) != 0;
        if (takeLow == (mine < link.cell))
            return {cellMapping.owner(mine).rank, mine, face.slot};
        return {cellMapping.owner(link.cell).rank, link.cell, link.slot};
    }
};

/// The file's data about faces, sorted by own cells.
/// Only own cells have marks; owners pass them on with the numbers of ghosts.
/// O(marks log marks) to build. Few faces have marks: `marked_` answers most look-ups without a search.
class MarksOfFaces {
  public:
    MarksOfFaces(const CellRecords &cells, const FaceList &list) {
        for (const FaceMark &mark : cells.marks)
            entries_.push_back({list.faceOf(mark.cell, mark.slot), mark.mark, mark.fileId});
        std::sort(entries_.begin(), entries_.end());
        entries_.erase(std::unique(entries_.begin(), entries_.end()), entries_.end());
        marked_.assign(list.faces().size(), false);
        for (const Entry &entry : entries_)
            marked_[static_cast<std::size_t>(entry.face)] = true;
    }
    struct Entry {
        LocalIndex face; ///< in the list
        int mark;
        index fileId;
        friend auto operator<=>(const Entry &, const Entry &) = default; // NOLINT(modernize-use-nullptr): false alarm
    };
    std::span<const Entry> of(LocalIndex face) const {
        if (!marked_[static_cast<std::size_t>(face)])
            return {};
        const auto begin = std::lower_bound(entries_.begin(), entries_.end(), face,
                                            [](const Entry &entry, LocalIndex f) { return entry.face < f; });
        auto end = begin;
        while (end != entries_.end() && end->face == face)
            ++end;
        return {begin, end};
    }
    /// Marks of periodic connections, each once.
    std::vector<int> periodic(LocalIndex face) const {
        std::vector<int> marks;
        for (const Entry &entry : of(face))
            if (entry.mark < 0 && (marks.empty() || marks.back() != entry.mark))
                marks.push_back(entry.mark);
        return marks;
    }

  private:
    std::vector<Entry> entries_;
    std::vector<bool> marked_; ///< [faces of the list]
};

/// The file's number of a face and its patches, ascending.
/// At most a few patches a face; `patches` ascends without repeats, as entries do.
struct FaceNotes {
    index fileId = 0;
    std::vector<int> patches;

    // Entries ascend by mark. A face that the file lists several times keeps the least of its numbers.
    static FaceNotes of(std::span<const MarksOfFaces::Entry> entries) {
        FaceNotes notes;
        for (const MarksOfFaces::Entry &entry : entries) {
            if (entry.mark >= 0 && (notes.patches.empty() || notes.patches.back() != entry.mark))
                notes.patches.push_back(entry.mark);
            if (entry.fileId > 0 && (notes.fileId == 0 || entry.fileId < notes.fileId))
                notes.fileId = entry.fileId;
        }
        return notes;
    }
};

/// The corners of faces in local nodes. Caches the faces of the last cell, as callers go through faces cell by cell.
/// O(corners) a face if faces are visited cell by cell, as FaceList stores them; a visit in another order costs one
/// decoding of a cell for each face.
class FaceCorners {
  public:
    FaceCorners(const UnstructuredMesh &mesh, const LocalCells &cells, const CellNumbers &numbers,
                const NodeFinder &nodes)
        : mesh_(mesh), cells_(cells), numbers_(numbers), nodes_(nodes), cellNodes_(mesh.cellNodes.view()) {}

    /// In standard order: counter-clockwise seen from the second cell, starting with the node that is first in the
    /// file: the same on all ranks. `firstCell`: whether `face.cell` is the face's first cell.
    const std::vector<LocalIndex> &operator()(const FoundFace &face, bool firstCell) {
        load(face.cell);
        const auto begin = corners_.begin() + starts_[static_cast<std::size_t>(face.slot)];
        const auto end = corners_.begin() + starts_[static_cast<std::size_t>(face.slot) + 1];
        result_.clear();
        for (auto it = begin; it != end; ++it)
            result_.push_back(static_cast<LocalIndex>(*it));
        if (!firstCell)
            std::reverse(result_.begin(), result_.end());
        if (mesh_.dimension == 3)
            std::rotate(result_.begin(),
                        std::min_element(result_.begin(), result_.end(),
                                         [&](LocalIndex a, LocalIndex b) {
                                             return mesh_.nodes.fileNumbers[static_cast<std::size_t>(a)] <
                                                    mesh_.nodes.fileNumbers[static_cast<std::size_t>(b)];
                                         }),
                        result_.end());
        return result_;
    }

  private:
    // Polyhedra have their faces in the record; other cells use the rows of `cellNodes`, which have final numbers.
    void load(index cell) {
        if (std::exchange(cell_, cell) == cell)
            return;
        starts_.assign(1, 0);
        corners_.clear();
        const ElementType type = cells_.cells.types[toSize(cell)];
        const auto given = cells_.cells.nodesOf(cell);
        list_.assign(given.begin(), given.end());
        if (type == ElementType::Polyhedron)
            forEachNode(type, std::span<index>(list_),
                        [&](index &node) { node = nodes_(node, cells_.images[toSize(cell)]); });
        else
            std::ranges::copy(cellNodes_[numbers_.newOfOld[toSize(cell)]], list_.begin());
        forEachFace(type, list_, [&](std::span<const index> corners) {
            corners_.insert(corners_.end(), corners.begin(), corners.end());
            starts_.push_back(static_cast<std::ptrdiff_t>(corners_.size()));
        });
    }
    const UnstructuredMesh &mesh_;
    const LocalCells &cells_;
    const CellNumbers &numbers_;
    const NodeFinder &nodes_;
    LocalAdjacency::ConstView cellNodes_;
    index cell_ = -1;
    std::vector<index> list_; ///< the cell's list of nodes, in local numbers
    std::vector<index> corners_;
    std::vector<std::ptrdiff_t> starts_;
    std::vector<LocalIndex> result_;
};

/// The owners of faces, and the data of other ranks about ghosts.
struct FaceNumbers {
    std::vector<LocalIndex> newOfFound; ///< [found faces] final local numbers
    std::vector<FaceNotes> ghostNotes;  ///< notes of ghosts, as found
    std::vector<std::size_t> ghosts;    ///< found faces that are ghosts
};

/// Owned faces are those of this rank that are not in an image. Ghosts ask their owners, naming the face by cell and
/// slot, for global number, number in the file and patches: one query.
/// A ghost's owner finds the face by its own cell and slot: slots depend on the cell's list of nodes alone, so the
/// owner counts them alike. Two exchanges for the query and three for `renumber`; O(ghost faces) words.
FaceNumbers numberFound(UnstructuredMesh &mesh, const GlobalMapping &cellMapping, const LocalCells &cells,
                        const FaceList &list, const MarksOfFaces &marks) {
    CommunicatorContext &context = *cellMapping.context();
    const int here = context.comm().rank();
    FaceNumbers result;
    std::vector<FaceOwner> ghostOwners;
    std::vector<LocalIndex> oldNumber(list.faces().size());
    index owned = 0;
    for (std::size_t f = 0; f < list.faces().size(); f++) {
        const FoundFace &face = list.faces()[f];
        const FaceOwner owner = FaceOwner::of(face, list.linkOf(face), cells, cellMapping);
        if (owner.rank == here && cells.images[toSize(face.cell)] == 0) {
            oldNumber[f] = static_cast<LocalIndex>(owned++);
        } else {
            result.ghosts.push_back(f);
            ghostOwners.push_back(owner);
        }
    }
    // Preliminary numbers: owned faces, then ghosts, each in the order of the list.
    for (std::size_t k = 0; k < result.ghosts.size(); k++)
        oldNumber[result.ghosts[k]] = static_cast<LocalIndex>(owned + static_cast<index>(k));
    const auto global = GlobalMapping::create(context.comm(), owned);
    std::vector<GhostEntity> entities(result.ghosts.size());
    result.ghostNotes.resize(result.ghosts.size());
    queryOwners(
        context, result.ghosts.size(), [&](std::size_t k) { return ghostOwners[k].rank; },
        [&](std::size_t k) {
            return FaceLink{ghostOwners[k].cell, ghostOwners[k].slot, 0, false}.pack();
        },
        [&](index word, std::vector<index> &reply) {
            const FaceLink side = FaceLink::unpack(word);
            const LocalIndex found = list.faceOf(side.cell - cellMapping.localBegin(), side.slot);
            const FaceNotes notes = FaceNotes::of(marks.of(found));
            reply.push_back(global->localBegin() + oldNumber[static_cast<std::size_t>(found)]);
            reply.push_back(notes.fileId);
            reply.push_back(static_cast<index>(notes.patches.size()));
            reply.insert(reply.end(), notes.patches.begin(), notes.patches.end());
        },
        [&](std::size_t k, RecordReader &reader) {
            const index face = reader.next();
            entities[k] = {face, cells.images[toSize(list.faces()[result.ghosts[k]].cell)]};
            result.ghostNotes[k].fileId = reader.next();
            for (const index patch : reader.next(reader.next()))
                result.ghostNotes[k].patches.push_back(static_cast<int>(patch));
        });
    // Final numbers: uncopied faces first, then shared ones by the ranks that copy them (Renumbering.hpp).
    const Renumbering renumbering = renumber(global, entities, {});
    result.newOfFound = std::move(oldNumber);
    for (LocalIndex &face : result.newOfFound)
        face = renumbering.newOfOld[static_cast<std::size_t>(face)];
    mesh.faces.owned = owned;
    mesh.faces.ghosts = static_cast<index>(result.ghosts.size());
    mesh.faces.pattern = std::make_shared<const ExchangePattern>(renumbering.mapping);
    return result;
}

/// Fills file numbers and patches in the final order, so that the lists of patches ascend: owned faces first.
/// Faces are visited in their final order, so `MeshPatch::faces` ascends without a sort, and its owned faces are a
/// prefix (`owned`). A patch that lists a face twice gets it once: FaceNotes has distinct marks.
void fillNotes(UnstructuredMesh &mesh, const FaceList &list, const MarksOfFaces &marks, const FaceNumbers &numbers,
               std::span<const index> foundOfNew) {
    const auto count = toSize(mesh.faces.size());
    mesh.faces.fileNumbers.assign(count, -1);
    mesh.faces.fileIds.assign(count, 0);
    mesh.faces.images.assign(count, 0);
    mesh.facePatches.resize(mesh.faces.size());
    const auto facePatches = mesh.facePatches.view();
    std::vector<std::size_t> ghostOf(count, 0);
    for (std::size_t k = 0; k < numbers.ghosts.size(); k++)
        ghostOf[static_cast<std::size_t>(numbers.newOfFound[numbers.ghosts[k]])] = k;
    const auto unassigned = mesh.patches.size() - 1;
    for (std::size_t f = 0; f < count; f++) {
        const auto found = toSize(foundOfNew[f]);
        const bool owned = static_cast<index>(f) < mesh.faces.owned;
        const FaceNotes notes =
            owned ? FaceNotes::of(marks.of(static_cast<LocalIndex>(found))) : numbers.ghostNotes[ghostOf[f]];
        mesh.faces.fileIds[f] = notes.fileId;
        for (const int patch : notes.patches)
            mesh.patches[static_cast<std::size_t>(patch)].faces.push_back(static_cast<LocalIndex>(f));
        facePatches(static_cast<index>(f)) = notes.patches.empty() ? noPatch : notes.patches.front();
        const bool boundary = list.linkOf(list.faces()[found]) == FaceLink::none;
        if (boundary && notes.patches.empty()) {
            facePatches(static_cast<index>(f)) = static_cast<int>(unassigned);
            mesh.patches[unassigned].faces.push_back(static_cast<LocalIndex>(f));
        }
    }
    for (std::size_t p = 0; p < mesh.patches.size(); p++) {
        MeshPatch &patch = mesh.patches[p];
        patch.id = static_cast<int>(p);
        patch.owned = std::ranges::lower_bound(patch.faces, mesh.faces.owned) - patch.faces.begin();
    }
}

/// The number of faces in no patch that coincide with another such face: of parts that are not joined. Collective; one
/// sparse exchange of two words for each of these faces.
/// Coordinates are compared bit for bit: faces of zones that differ by round-off do not count. The rank of a face
/// is a hash of its coordinates, so equal faces meet on one rank, and the load is even on any number of ranks.
index countCoincident(CommunicatorContext &context, const UnstructuredMesh &mesh) {
    const auto ranks = static_cast<std::uint64_t>(context.comm().size());
    const auto faceNodes = mesh.faceNodes.view();
    const auto coordinates = mesh.coordinates.view();
    std::vector<std::array<std::uint64_t, 2>> own;
    for (const LocalIndex face : mesh.patches.back().faces) {
        if (face >= mesh.faces.owned)
            continue;
        // 128 bits: two different faces have the same sums only by an unlikely accident.
        std::array<std::uint64_t, 2> sums{}; // in any order of corners
        for (const LocalIndex node : faceNodes[face]) {
            std::uint64_t corner = 0;
            for (rowsize d = 0; d < 3; d++)
                corner = mixBits(corner ^ std::bit_cast<std::uint64_t>(coordinates(node, d) + 0.0));
            sums[0] += mixBits(corner);
            sums[1] += mixBits(~corner);
        }
        own.push_back(sums);
    }
    auto keys = exchangeRecords(
        context, own.size(), [&](std::size_t i) { return static_cast<int>(mixBits(own[i][0]) % ranks); },
        [&](std::size_t i) { return own[i]; });
    std::sort(keys.begin(), keys.end());
    index coincident = 0;
    for (std::size_t i = 0; i < keys.size(); i++)
        coincident += (i > 0 && keys[i] == keys[i - 1]) || (i + 1 < keys.size() && keys[i] == keys[i + 1]);
    return context.comm().allReduce(coincident, MPI_SUM);
}

/// Faces in several patches, with two of these patches.
/// O(faces in patches) time, one flag and one number a face; one reduction, and a second one if such faces exist.
void noteSharedFaces(const UnstructuredMesh &mesh, MeshReport &report) {
    const auto none = static_cast<int>(mesh.patches.size());
    std::vector<int> first(toSize(mesh.faces.owned), none);
    std::array<index, 2> pair{none, none};
    index count = 0;
    // A face in three patches counts once.
    std::vector<bool> counted(first.size());
    for (int p = 0; p < none; p++)
        for (const LocalIndex face : mesh.patches[toSize(p)].ownFaces()) {
            const auto f = toSize(face);
            if (first[f] == none) {
                first[f] = p;
                continue;
            }
            count += counted[f] ? 0 : 1;
            counted[f] = true;
            pair = std::min(pair, std::array<index, 2>{first[f], p});
        }
    count = mesh.comm.allReduce(count, MPI_SUM);
    if (count == 0)
        return;
    // The lowest pair of all ranks, so that the message does not depend on their number.
    const index code = mesh.comm.allReduce(pair[0] * none + pair[1], MPI_MIN);
    report.notes.push_back(
        fmt::format("{}: {} faces are in several patches, as in '{}' and '{}': facePatches has the first", mesh.origin,
                    count, mesh.patches[toSize(code / none)].name, mesh.patches[toSize(code % none)].name));
}

/// Counts in one reduction: faces by kind (0 inner, 1 boundary, 2 periodic), then for each patch all of its faces and
/// the inner ones. Only owned faces, so that each counts once.
void fillReport(CommunicatorContext &context, const UnstructuredMesh &mesh, const FaceList &list,
                std::span<const index> foundOfNew, MeshReport &report) {
    std::vector<index> counts(3 + 2 * mesh.patches.size(), 0);
    const auto kind = [&](LocalIndex face) {
        const index link = list.linkOf(list.faces()[toSize(foundOfNew[static_cast<std::size_t>(face)])]);
        return link == FaceLink::none ? 1U : FaceLink::unpack(link).step != 0 ? 2U : 0U;
    };
    for (LocalIndex face = 0; face < mesh.faces.owned; face++)
        counts[kind(face)]++;
    for (std::size_t p = 0; p < mesh.patches.size(); p++)
        for (const LocalIndex face : mesh.patches[p].faces)
            if (face < mesh.faces.owned) {
                counts[3 + 2 * p]++;
                counts[4 + 2 * p] += kind(face) == 0U;
            }
    mesh.comm.allReduce(counts.data(), static_cast<int>(counts.size()), MPI_SUM);
    report.innerFaces = counts[0];
    report.boundaryFaces = counts[1] + counts[2];
    for (std::size_t p = 0; p + 1 < mesh.patches.size(); p++) {
        report.patches.push_back({mesh.patches[p].name, mesh.patches[p].kind, counts[3 + 2 * p], counts[4 + 2 * p]});
        if (counts[4 + 2 * p] > 0)
            report.warnings.push_back(fmt::format("{}: {} of {} faces of '{}' are inside the mesh", mesh.origin,
                                                  counts[4 + 2 * p], counts[3 + 2 * p], mesh.patches[p].name));
    }
    noteSharedFaces(mesh, report);
    report.unassignedFaces = counts[3 + 2 * (mesh.patches.size() - 1)];
    if (report.unassignedFaces == 0)
        return;
    report.warnings.push_back(
        fmt::format("{}: {} boundary faces are in no patch", mesh.origin, report.unassignedFaces));
    if (const index coincident = countCoincident(context, mesh); coincident > 0)
        report.warnings.push_back(
            fmt::format("{}: {} of them coincide with others: the zones that they bound are not joined; of CGNS files "
                        "CgnsOptions::joinCoincidentNodes (dnds-mesh --join) joins them",
                        mesh.origin, coincident));
}

} // namespace

/// Phases: list of faces, owners and final numbers, notes, then faceCells, faceNodes, cellFaces and cellCells in the
/// final order, and the lists of special faces. O(faces of local cells).
void numberFaces(UnstructuredMesh &mesh, const GlobalMapping &cellMapping, const LocalCells &cells,
                 const CellNumbers &numbers, const NodeFinder &nodes, ImageTable &images, MeshReport *report) {
    const FaceList list(cells, numbers, images);
    const MarksOfFaces marks(cells.cells, list);
    const FaceNumbers faceNumbers = numberFound(mesh, cellMapping, cells, list, marks);
    const auto count = toSize(mesh.faces.size());
    std::vector<index> foundOfNew(count);
    for (std::size_t f = 0; f < count; f++)
        foundOfNew[static_cast<std::size_t>(faceNumbers.newOfFound[f])] = static_cast<index>(f);
    fillNotes(mesh, list, marks, faceNumbers, foundOfNew);

    const auto newCell = [&](LocalIndex old) {
        return old < 0 ? old : numbers.newOfOld[static_cast<std::size_t>(old)];
    };
    // Corners are made in the order of faces as found, and then copied to their rows.
    FaceCorners cornersOf(mesh, cells, numbers, nodes);
    std::vector<std::size_t> cornerStarts{0}; // of faces as found: cells one after the other
    std::vector<LocalIndex> corners;
    cornerStarts.reserve(count + 1);
    corners.reserve(4 * count);
    mesh.faceCells.resize(static_cast<index>(count));
    const auto faceCells = mesh.faceCells.view();
    for (std::size_t f = 0; f < count; f++) {
        const FoundFace &found = list.faces()[f];
        const LocalIndex face = faceNumbers.newOfFound[f];
        const index link = list.linkOf(found);
        const bool first = link == FaceLink::none || FaceLink::unpack(link).first;
        faceCells(face, first ? 0 : 1) = newCell(found.cell);
        faceCells(face, first ? 1 : 0) = newCell(found.other);
        mesh.faces.images[static_cast<std::size_t>(face)] = cells.images[toSize(found.cell)];
        const auto &ofFace = cornersOf(found, first);
        corners.insert(corners.end(), ofFace.begin(), ofFace.end());
        cornerStarts.push_back(corners.size());
    }
    const auto countOf = [&](index f) { return cornerStarts[toSize(f) + 1] - cornerStarts[toSize(f)]; };
    mesh.faceNodes.resize(static_cast<index>(count),
                          [&](index face) { return static_cast<rowsize>(countOf(foundOfNew[toSize(face)])); });
    const auto faceNodes = mesh.faceNodes.view();
    for (index face = 0; face < static_cast<index>(count); face++)
        std::copy_n(corners.data() + cornerStarts[toSize(foundOfNew[toSize(face)])], faceNodes[face].size(),
                    faceNodes[face].begin());

    // Rows of cells, by slots: the face, and the cell across it.
    std::vector<index> starts{0};
    std::vector<LocalIndex> cellFaces;
    std::vector<LocalIndex> cellCells;
    starts.reserve(numbers.order.size() + 1);
    cellFaces.reserve(cells.cells.links.size());
    cellCells.reserve(cells.cells.links.size());
    for (const index old : numbers.order) {
        const auto links = cells.cells.linksOf(old);
        for (std::size_t slot = 0; slot < links.size(); slot++) {
            const LocalIndex found = list.faceOf(old, static_cast<int>(slot));
            cellFaces.push_back(faceNumbers.newOfFound[static_cast<std::size_t>(found)]);
            const FoundFace &face = list.faces()[static_cast<std::size_t>(found)];
            const bool mine = face.cell == old && face.slot == static_cast<int>(slot);
            cellCells.push_back(newCell(mine ? face.other : face.cell));
        }
        starts.push_back(static_cast<index>(cellFaces.size()));
    }
    mesh.cellFaces = makeAdjacency("cell faces", mesh.comm, starts, cellFaces);
    mesh.cellCells = makeAdjacency("cell cells", mesh.comm, starts, cellCells);

    // Lists of special faces. A face may be marked by connections of other motions, too: only marks of its link's step
    // count.
    for (LocalIndex face = 0; face < static_cast<LocalIndex>(count); face++) {
        const FoundFace &found = list.faces()[toSize(foundOfNew[static_cast<std::size_t>(face)])];
        const bool touchesOwn = found.cell < cells.owned || (found.other >= 0 && found.other < cells.owned);
        const index word = list.linkOf(found);
        if (word == FaceLink::none) {
            mesh.boundaryFaces.push_back(face);
            mesh.boundaryCells.push_back(faceCells(face, 0));
        } else if (const FaceLink link = FaceLink::unpack(word); link.step != 0 && face < mesh.faces.owned) {
            mesh.periodicFaces.emplace_back(face, images.compose(0, link.step));
            for (const int mark : marks.periodic(static_cast<LocalIndex>(foundOfNew[static_cast<std::size_t>(face)])))
                if (images.stepAt((-1 - mark) / 2, (-1 - mark) % 2) == link.step)
                    mesh.periodicMarks.emplace_back(face, mark);
        }
        if (face >= mesh.faces.owned && touchesOwn)
            mesh.sharedFaces.push_back(face);
    }
    if (report != nullptr)
        fillReport(*cellMapping.context(), mesh, list, foundOfNew, *report);
}

} // namespace DNDS::Geom
