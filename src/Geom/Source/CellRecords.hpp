/// @file CellRecords.hpp
/// @brief Cells on their way from a file to the rank that will own them.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <functional>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// The other side of a cell's face; packed into 63 bits, or -1 for no cell.
/// Bits of the word, from the lowest: `first` 1, `step` 8, `slot` 14, `cell` 40. A global cell number costs one word
/// a face in messages, and links sort by cell. Link and partner point to each other: following a link twice leads
/// back to the face.
struct FaceLink {
    /// The cell at the other side: its global number, in the numbering of the moment. Migration changes it
    /// (renumberLinks).
    index cell;
    /// Number of the face in that cell, in the order of forEachFace, which skips collapsed faces.
    int slot;
    /// 0, or the periodic step from this side to the other one: ImageTable::stepAt. The partner's link has the
    /// inverse step.
    int step;
    /// The face's normal points away from this side. Of the two links of an inner face exactly one has it, so that both
    /// ranks of a shared face orient it alike. Links across a periodic boundary all have it: each side is a face.
    bool first;

    static constexpr index none = -1;
    static constexpr index maxCells = index{1} << 40;
    static constexpr int maxSlots = 1 << 14;
    static constexpr int maxSteps = 1 << 8;

    /// The caller ensures the limits above: no check here.
    index pack() const noexcept {
        return (cell << 23) | (static_cast<index>(slot) << 9) | (static_cast<index>(step) << 1) | (first ? 1 : 0);
    }
    static FaceLink unpack(index word) noexcept {
        return {word >> 23, static_cast<int>((word >> 9) & (maxSlots - 1)),
                static_cast<int>((word >> 1) & (maxSteps - 1)), (word & 1) != 0};
    }
};

/// A mark of a face of an own cell: its membership in a patch or in a side of a periodic connection. The file marks the
/// face itself or all of its corners. Sorted by cell, slot and mark, so that the marks of a face are contiguous in
/// CellRecords::marks; a face may have several.
struct FaceMark {
    /// Index into the CellRecords that hold the mark, on this rank.
    index cell;
    /// Number of the face in the cell, as in FaceLink.
    int slot;
    int mark;     ///< as in SourceMesh::faceMarks
    index fileId; ///< number of the file's element, 0 without one

    friend auto operator<=>(const FaceMark &, const FaceMark &) = default; // NOLINT(modernize-use-nullptr): false alarm
};

/// Cells of this rank, numbered after those of lower ranks.
/// Filled by the readers' side of the pipeline from a SourceMesh, moved by migrateCells as often as partition and
/// order require, and turned into a mesh by src/Geom/Build. Struct of arrays: cells have 3 to some hundreds of nodes,
/// and records of one size would waste most of the memory.
struct CellRecords {
    /// [cells] The cell's number in file order, over all zones. It never changes: the tie-breaker of every sort, and
    /// the key by which fields of files find their cells.
    std::vector<index> numbers;
    /// [cells] The number by which the file knows the cell within its zone; for messages only.
    std::vector<index> fileIds;
    /// [cells]
    std::vector<ElementType> types;
    std::vector<index> nodeStarts{0}; ///< [cells + 1]
    std::vector<index> nodes;         ///< as in ElementBlock: node numbers of the file
    std::vector<index> linkStarts{0}; ///< [cells + 1]; one entry per face. Only {0} before faces are linked
    std::vector<index> links;         ///< packed FaceLinks
    std::vector<FaceMark> marks;      ///< ascending

    index size() const noexcept { return static_cast<index>(types.size()); }
    /// Node numbers of cell `cell` of this rank, in the encoding of ElementBlock. O(1).
    std::span<const index> nodesOf(index cell) const { return row(nodeStarts, nodes, cell); }
    /// Packed links of its faces, by slot. Only after faces are linked.
    std::span<const index> linksOf(index cell) const { return row(linkStarts, links, cell); }

    /// Row `i` of a CSR list.
    static std::span<const index> row(const std::vector<index> &starts, const std::vector<index> &entries, index i) {
        const auto at = static_cast<std::size_t>(i);
        return std::span<const index>(entries).subspan(static_cast<std::size_t>(starts[at]),
                                                       static_cast<std::size_t>(starts[at + 1] - starts[at]));
    }
};

/// One cell as words: number, file id, type and counts, nodes, links. The inverse is `appendCell`. Local.
/// The length lets a reader step from record to record in one message (migrateCells).
index cellRecordSize(const CellRecords &cells, index cell);
void writeCellRecord(const CellRecords &cells, index cell, index *words);
/// The length of the record that starts here, from its head.
index cellRecordSize(std::span<const index> words);
void appendCell(CellRecords &cells, std::span<const index> record);

/// Sends each cell to rank `part[cell]`, which sorts its cells by `keys` [own cells], then by file number. Marks go
/// with their cells. Links keep referring to the old numbers; `renumberLinks` updates them. Collective; O(own cells
/// before and after) memory.
struct MigratedCells {
    CellRecords cells;
    std::vector<index> keys; ///< [cells]
};
MigratedCells migrateCells(CommunicatorContext &context, CellRecords &&cells, std::span<const int> part,
                           std::span<const index> keys);

/// Sends marks of this rank's cells to the ranks `part[cell]`. `keyOf(cell)` is the key of a cell here; `cellOf` finds
/// the cell of a key there. The result is ascending. Collective; O(marks) memory.
std::vector<FaceMark> moveMarks(CommunicatorContext &context, std::span<const FaceMark> marks,
                                std::span<const int> part, const std::function<index(index)> &keyOf,
                                const std::function<index(index)> &cellOf);

/// Updates links to the new global numbers, after `migrateCells` with the old global numbers as keys has moved the
/// cells as `moved` moves rows. Collective; one message pair for each pair of ranks that keep neighbours.
void renumberLinks(CellRecords &cells, const Redistribute &moved);

} // namespace DNDS::Geom
