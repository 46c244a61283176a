/// @file UgridFile.hpp
/// @brief Reads the lists of a UGRID file, text or binary, each rank its share. Part of UgridReader.
#pragma once

#include "DNDS/Geom/File/MeshFile.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Geom {

/// The lists in the order of the file. Tags belong to triangles, then quadrilaterals.
enum class UgridList : std::uint8_t { Nodes, Triangles, Quadrilaterals, Tags, Tetrahedra, Pyramids, Prisms, Hexahedra };

/// The storage of numbers.
struct UgridForm {
    bool text = false;
    bool swapped = false; ///< binary: not in the byte order of this machine
    bool records = false; ///< binary: Fortran's unformatted records, in subrecords where they are long
    int realBytes = 8;    ///< binary: 4 or 8
    int integerBytes = 4; ///< binary: 4 or 8
};

/// Whether a file is a UGRID mesh: by the end of its name, by the line of counts of a text file, or because the counts
/// explain the size of a binary file. `size` is that of the whole file, 0 if unknown. Local.
bool isUgrid(std::string_view path, std::string_view firstBytes, index size);

/// The path without `.ugrid` or `.ugrid64`, and without the form before it (`.b8`, `.lb8l`). Local.
std::string ugridStem(std::string_view path);

/// An open file; each rank reads its part of each list. The elements of all cell lists are divided together, as are
/// those of the face lists, so that parts of ranks follow each other in the order of the file.
class UgridFile {
  public:
    /// Rank 0 finds the form and reads the counts; it reads all of a text file, to find where parts begin. Collective.
    /// Throws DataError if the file cannot be opened, is damaged or too short for its counts.
    /// Cost on rank 0: O(bytes) for text; O(1) for plain binary files, whose places follow from the counts;
    /// O(subrecords) for Fortran records. The content decides the form before the name does, as names are often
    /// wrong.
    UgridFile(CommunicatorView comm, const std::string &path);

    /// Entries of all ranks, and this rank's part of them. Local.
    index count(UgridList list) const { return counts_[static_cast<std::size_t>(list)]; }
    IndexRange part(UgridList list) const { return part(list, comm_.rank()); }

    /// This rank's coordinates: [3 * own nodes]. Local. Throws DataError with line or byte if one is not finite.
    std::vector<real> coordinates() const;
    /// This rank's numbers of another list: [width * own entries]. Local. Throws DataError with line or byte for a
    /// number outside [lowest, highest].
    std::vector<index> integers(UgridList list, index lowest, index highest) const;

  private:
    /// Contiguous bytes of the lists: those from `first` on are at `place` in the file.
    struct Piece {
        index first;
        index place;
        index size;
    };

    /// Reads the counts, and all words once: fills in `places_`.
    void openText();
    /// Reads the counts and compares them with the size of the file: fills in `pieces_`.
    void openBinary(std::string_view begin);
    /// Finds the subrecords of the second record, whose lists need `need` bytes.
    void findRecords(index need);
    /// A rank's part of a list.
    /// The even split of the concatenated lists (all cells, or all faces), clipped to one list. Tags are split like
    /// faces: a rank's tags are those of its triangles and quadrilaterals.
    IndexRange part(UgridList list, int rank) const;
    /// Bytes of the lists before this one. Lists are addressed by such bytes, whatever marks are between them.
    index bytesBefore(UgridList list) const;
    /// The piece that has a byte of the lists, and where that is in the file.
    /// O(log pieces): they ascend without gaps from byte 0, so a predecessor always exists.
    const Piece &pieceOf(index byte) const;
    index placeOf(index byte) const { return pieceOf(byte).place + (byte - pieceOf(byte).first); }
    /// Reads bytes of the lists, across pieces.
    void read(index byte, std::span<char> into) const;
    /// Throws DataError with the byte of the file.
    [[noreturn]] void fail(index place, const std::string &message) const;
    /// Calls `take` with each number of this rank's part of a list.
    /// Through a buffer of 2^17 numbers, 1 MiB, whatever the share.
    template <class Take>
    void forEachNumber(UgridList list, int bytes, Take &&take) const;

    CommunicatorView comm_;
    MeshFile file_;
    UgridForm form_;
    /// Entries by UgridList, of all ranks.
    std::array<index, 8> counts_{};
    /// Binary: ascending, without gaps; a single piece in files without records.
    std::vector<Piece> pieces_;
    std::vector<FilePlace> places_; ///< text: [lists x ranks], where parts begin
};

} // namespace DNDS::Geom
