/// @file VtuFile.hpp
/// @brief The arrays of a VTU file (VTK XML, UnstructuredGrid) of one piece. Part of VtuReader.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Vtk/XmlTags.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Geom {

/// An array as the file describes it.
struct VtuArray {
    std::string group; ///< "Points", "Cells", "PointData", "CellData"
    std::string name;
    std::string type; ///< "Float32"; "String" and others have no numbers
    std::string format;
    index components = 1;
    index offset = 0;      ///< into appended data
    std::size_t begin = 0; ///< first byte of the tag in the file
    std::string_view text; ///< inline data
};

/// A file that this rank holds in memory.
///
/// Its data, in the byte order that VTKFile names, with sizes of the type `header_type`:
///
/// - ascii: numbers between blanks.
/// - binary, in base64: the number of bytes, then the bytes.
/// - appended: the same, in base64 or as it is, `offset` bytes after the '_' in AppendedData.
/// - compressed, binary or appended: instead of the number of bytes there are the number of blocks, the size of a
///   block, the size of the last block if it is smaller (else 0), and the compressed size of each block. In base64,
///   these sizes are encoded by themselves, and so are the blocks together.
///
/// Raw data may contain "<", so tags are looked for up to AppendedData only, which comes last.
///
/// All functions are Local; all throw DataError, with the path and the array or the byte, if the file is damaged.
class VtuFile {
  public:
    /// Reads all of it. Also throws unless the file has exactly one piece.
    explicit VtuFile(std::string path);
    VtuFile(const VtuFile &) = delete;
    VtuFile &operator=(const VtuFile &) = delete;
    ~VtuFile() = default;

    /// Counts of the piece, at most what the file can hold.
    index points() const noexcept { return points_; }
    index cells() const noexcept { return cells_; }
    /// In the order of the file.
    const std::vector<VtuArray> &arrays() const noexcept { return arrays_; }
    /// The first array of a group with this name; of any name if that is empty.
    const VtuArray &array(std::string_view group, std::string_view name) const;
    /// Whether an array is of a type of numbers.
    static bool hasNumbers(const VtuArray &array);

    /// All numbers of an array, as T, which is `index` or `real`. Memory: twice the array.
    template <class T>
    std::vector<T> values(const VtuArray &array) const;
    /// The same; throws unless there are `count`.
    template <class T>
    std::vector<T> values(const VtuArray &array, index count) const;

    /// Throws DataError: path, array, message.
    [[noreturn]] void fail(const VtuArray &array, const std::string &message) const;

  private:
    void requireEnd() const;
    /// Finds the arrays, and where the appended data begins.
    void scan();
    /// Takes the attributes of an element; `parents` are the elements around it, the outermost first.
    void open(const XmlTag &tag, const std::vector<std::string_view> &parents);
    void takeRoot(const XmlTag &tag);
    /// A count from an attribute, at most what the file can hold. Throws if it is missing or not a number.
    index countOf(const XmlTag &tag, std::string_view attribute) const;
    /// The bytes of an array in binary or appended form, decompressed. Memory: these, and the largest block.
    std::string bytesOf(const VtuArray &array) const;
    /// The numbers of an array that the file has as `Stored`. Numbers in text are rounded to that type, too, so that
    /// all forms of a file give the same bits.
    template <class Stored, class T>
    std::vector<T> decode(const VtuArray &array) const;

    std::string path_;
    /// The whole file; `arrays_` and `appended_` point into it, hence no copies and moves.
    std::string content_;
    std::string compressor_;
    bool swapped_ = false;
    /// Sizes in front of data have 64 bits.
    bool wideHeaders_ = false;
    index points_ = 0, cells_ = 0;
    int pieces_ = 0;
    std::vector<VtuArray> arrays_;
    std::string_view appended_; ///< the data that '_' precedes
    bool appendedBase64_ = false;
};

} // namespace DNDS::Geom
