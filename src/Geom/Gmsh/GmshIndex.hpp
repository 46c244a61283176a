/// @file GmshIndex.hpp
/// @brief Positions in a Gmsh file, and its values in text or binary. Part of GmshReader.
#pragma once

#include "DNDS/Geom/File/FileSegments.hpp"
#include "DNDS/Geom/Gmsh/GmshElements.hpp"

#include <array>
#include <compare>
#include <string>
#include <tuple>
#include <vector>

namespace DNDS::Geom::Detail {

/// The largest tag, far below overflow of sums.
inline constexpr index largestTag = index{1} << 60;

/// The dimension of a physical name that the file gives without one.
inline constexpr index anyDimension = -1;

/// From $MeshFormat. Trivially copyable: rank 0 broadcasts its bytes.
struct GmshFormat {
    int version = 22; ///< times 10: 20 to 22, 40, 41
    bool binary = false;
    bool swapped = false; ///< binary values have the other byte order
    int sizeBytes = 8;    ///< size of counts, and in version 4.1 of tags, in binary files of version 4

    bool version4() const noexcept { return version >= 40; }
    bool version41() const noexcept { return version == 41; }
};

/// A curve or surface and one of its physical groups.
struct GmshGroup {
    index dimension;
    index entity;
    index group;

    friend auto operator<=>(const GmshGroup &,
                            const GmshGroup &) = default; // NOLINT(modernize-use-nullptr): false alarm
};

/// A part of a curve or surface of a partitioned mesh, or one that separates two parts of its parent.
struct GmshPiece {
    index dimension;
    index entity;
    index parentDimension;
    index parent;

    bool separates() const noexcept { return parentDimension > dimension; }
    friend bool operator<(const GmshPiece &a, const GmshPiece &b) {
        return std::tie(a.dimension, a.entity) < std::tie(b.dimension, b.entity);
    }
};

/// A curve or surface whose mesh is that of another, moved by an affine map (by rows; the last is 0 0 0 1).
struct GmshPeriodicLink {
    index dimension;
    index entity;
    index master;
    bool known; ///< whether the file gives the map
    std::array<real, 16> map;
};

/// The result of rank 0's scan, which it broadcasts.
/// Plain data, the same on all ranks after `broadcastIndex`. Its size is O(ranks + entities of the geometry), not
/// O(mesh).
struct GmshIndex {
    GmshFormat format;
    /// Number of nodes of the file.
    index nodes = 0;
    /// Number of elements of all dimensions.
    index elements = 0;
    /// Positions in $Nodes, about eight a rank.
    std::vector<FileSegment> nodeSegments;
    std::vector<FileSegment> elementSegments;
    std::vector<GmshGroup> groups;           ///< ascending
    std::vector<GmshPiece> pieces;           ///< ascending
    std::vector<std::array<index, 2>> named; ///< dimension and tag of the groups in `names`
    std::vector<std::string> names;
    std::vector<GmshPeriodicLink> links;
    /// Become those of the source mesh.
    std::vector<std::string> warnings;
};

/// Scans the file. Local. `ranks` determines the length of segments. Throws DataError as `readGmsh`.
GmshIndex indexGmsh(const MeshFile &file, int ranks);

/// Broadcasts rank 0's index. Collective.
void broadcastIndex(CommunicatorView comm, GmshIndex &gmsh);

/// Values in text, one record per line, or in binary, one after the other.
/// Hides the difference between text and binary: a record is a line, or some bytes.
class GmshInput {
  public:
    GmshInput(const MeshFile &file, const GmshFormat &format, FilePlace place = {})
        : cursor_(file, place), words_(cursor_), format_(format) {}
    GmshInput(const GmshInput &) = delete;
    GmshInput &operator=(const GmshInput &) = delete;

    FileCursor &cursor() noexcept { return cursor_; }
    const GmshFormat &format() const noexcept { return format_; }
    void setFormat(const GmshFormat &format) noexcept { format_ = format; }

    /// Text: takes the next line. Binary: does nothing.
    void beginRecord(std::string_view what);
    /// Text: throws if the line has more words. Binary: does nothing.
    void endRecord() const;
    /// Skips records of `bytes` bytes in binary files.
    void skipRecords(index count, index bytes, std::string_view what);
    /// A 32-bit integer in binary files.
    index integer(std::string_view what, index lowest, index highest);
    /// Counts: in binary files of version 4 as wide as the file states, else 32 bits.
    index size(std::string_view what, index highest = largestTag, index lowest = 0);
    /// Tags of nodes and elements, and numbers of partitions and links: sizes in version 4.1, else 32 bits.
    index size41(std::string_view what);
    real number(std::string_view what);
    index sizeBytes() const noexcept { return format_.version4() ? format_.sizeBytes : 4; }
    index size41Bytes() const noexcept { return format_.version41() ? format_.sizeBytes : 4; }
    /// Throws unless `count` records of at least `bytes` bytes (of 2 per record in text) fit the rest of the file.
    void checkCount(index count, index bytes, std::string_view what) const;

  private:
    FileCursor cursor_;
    WordReader words_;
    GmshFormat format_;
};

/// The header of a block of elements: how many, of what type, on which entity. In version 2 text each element states it
/// itself.
struct GmshBlock {
    index count = 0;
    index dimension = 0;
    index tag = 0;
    index type = 0; ///< elements: Gmsh's number; nodes: how many parameters follow the coordinates
    index tags = 0; ///< number of tags of elements in binary files of version 2
};
GmshBlock readNodeHeader(GmshInput &input, index most);
GmshBlock readElementHeader(GmshInput &input, index most);
/// The bytes of an element in a binary block.
index elementBytes(const GmshInput &input, const GmshBlock &block);

} // namespace DNDS::Geom::Detail
