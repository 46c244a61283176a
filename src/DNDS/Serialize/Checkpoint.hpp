/// @file Checkpoint.hpp
/// @brief Arrays and values of all ranks in one HDF5 file that is either whole or not there, readable on any number of
/// ranks. `CheckpointContent` is what is in a file, as plain data.
///
/// docs/guides/checkpoints.md describes the file.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Storage/Array.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace DNDS {

class DurableFile;

/// Synchronises a file to the disk, renames it, replacing an existing file, and synchronises the folder: at any moment
/// the name refers to a whole file. Local. Throws DataError.
void renameDurably(const std::string &from, const std::string &to);

/// The position of a dataset's bytes and of the checksums of its blocks in the file.
struct CheckpointPlace {
    index values = 0;    ///< bytes from the start of the file
    index checksums = 0; ///< the same; one CRC-32 of 4 bytes per block
};

/// An array in a checkpoint. Rows are in the order of their ids, in blocks of `blockRows` rows; the last one may have
/// fewer. Each block of each dataset has a checksum.
struct CheckpointArray {
    std::string name;
    ElementKind kind = ElementKind::Opaque;
    index elementBytes = 0;
    bool ragged = false; ///< rows differ in size: the file has offsets
    bool listed = false; ///< ids are not 0, 1, ...: the file has a list of them
    index width = 0;     ///< elements of a row that is not ragged
    index rows = 0;      ///< number of rows of all ranks
    index elements = 0;  ///< number of elements of all rows
    index blockRows = 1;
    CheckpointPlace values;  ///< elements, row after row
    CheckpointPlace offsets; ///< ragged: [rows + 1] the element at which each row starts
    CheckpointPlace ids;     ///< listed: [rows]

    /// The number of blocks, the shorter last one included.
    index blocks() const { return (rows + blockRows - 1) / blockRows; }
    /// For example "float64[8] x 5, 1000 rows in 2 blocks".
    std::string description() const;
};

/// One number is a list of one.
using CheckpointValue = std::variant<std::vector<index>, std::vector<real>, std::string>;

/// The contents of a checkpoint without the rows themselves.
struct CheckpointContent {
    /// The fingerprint of the mesh that the ids belong to; empty if the file has none.
    std::optional<std::uint64_t> mesh;
    std::vector<CheckpointArray> arrays;
    std::map<std::string, CheckpointValue, std::less<>> values;

    /// All names, sorted, with their types and shapes, one per line; also stored in the file.
    std::string manifest() const;
};

namespace Detail {
class FileRanks;
}

/// Choices for `CheckpointWriter`; the same on all ranks.
struct CheckpointOptions {
    /// Bytes per checksum. Ranks read and write whole blocks, so small arrays involve few ranks.
    index blockBytes = index{1} << 20;
    /// Identifies the numbering of ids: `Geom::fingerprint(mesh)`, or any number that differs for other meshes and
    /// numberings. The same on all ranks. Readers compare it; without it, ids of another mesh go unnoticed.
    std::optional<std::uint64_t> mesh{};
    /// The maximum number of ranks that open the file; the others send their rows to these. 0: all of up to 256 ranks,
    /// one in eight of more than 2048. A rank needs memory for its share of one array. The file is the same.
    int writers = 0;
};

/// Choices for `CheckpointReader`; the same on all ranks.
struct CheckpointReadOptions {
    /// The mesh for which rows are read, as `CheckpointOptions::mesh`. The same on all ranks.
    std::optional<std::uint64_t> mesh{};
    /// Read rows even if the file may be for another mesh.
    bool anyMesh = false;
    /// The maximum number of ranks that open the file, as `CheckpointOptions::writers`.
    int readers = 0;
};

/// An array that keeps a matrix shape per row beside its elements (an `ArrayEigenMatrix` of differing matrices).
template <class TArray>
concept HasRowShapes = requires {
    requires TArray::shapePerRow;
};

/// Writes a checkpoint.
///
///     CheckpointWriter file(comm, "run/checkpoint.h5", {.mesh = Geom::fingerprint(mesh)});
///     file.set("time", time);
///     file.add("state", state, ids);   // ParArray, ArrayDof's father, CSR, ...
///     file.write();
///
/// Rows are stored in the order of their original ids: the file has the same bytes for any number of ranks and any
/// partition. `write` writes `path.part`, syncs it to the disk and renames it: a file at `path` stays intact until then
/// and is whole afterwards. If anything fails on any rank, all ranks throw and `path.part` is removed.
class CheckpointWriter {
  public:
    /// Writes nothing yet. Local.
    CheckpointWriter(CommunicatorView comm, std::string path, const CheckpointOptions &options = {});
    CheckpointWriter(const CheckpointWriter &) = delete;
    CheckpointWriter &operator=(const CheckpointWriter &) = delete;
    ~CheckpointWriter();

    /// Values that are equal on all ranks; rank 0's are written. Local. At most 60000 bytes each.
    template <std::integral T>
    void set(const std::string &name, T value) {
        setValue(name, std::vector<index>{static_cast<index>(value)});
    }
    void set(const std::string &name, real value) { setValue(name, std::vector<real>{value}); }
    void set(const std::string &name, std::string text) { setValue(name, std::move(text)); }
    void set(const std::string &name, const char *text) { setValue(name, std::string(text)); }
    void set(const std::string &name, std::vector<index> numbers) { setValue(name, std::move(numbers)); }
    void set(const std::string &name, std::vector<real> numbers) { setValue(name, std::move(numbers)); }

    /// Rows of all ranks: row `i` has the original id `ids[i]` >= 0, unique over all ranks. Do not change or destroy
    /// the array and ids before `write`. Local; all ranks add the same arrays in the same order.
    ///
    /// Any layout and element type: fixed rows are stored as [rows x width]; padded and CSR rows as elements without
    /// padding, with offsets. Each can be read into the others. Elements are read on the host. Array and ids must live
    /// until `write`.
    void add(const std::string &name, const ArrayBase &array, std::span<const index> ids);
    void add(const std::string &name, const ArrayBase &&array, std::span<const index> ids) = delete; ///< ends too early
    template <std::same_as<std::vector<index>> Ids>
    void add(const std::string &name, const ArrayBase &array, Ids &&ids) = delete; ///< they, too
    /// The same for matrices of differing shapes; the shapes are stored as a second array `name.shapes`.
    template <HasRowShapes TArray>
    void add(const std::string &name, const TArray &array, std::span<const index> ids) {
        add(name, static_cast<const ArrayBase &>(array), ids);
        Array<rowsize, 2> &shapes = shapes_.emplace_back();
        copyShapes_.emplace_back([&array, &shapes] {
            shapes.resize(array.size());
            for (index i = 0; i < array.size(); i++) {
                shapes(i, 0) = array.matrixShape(i).rows;
                shapes(i, 1) = array.matrixShape(i).cols;
            }
        });
        add(name + ".shapes", shapes, ids);
    }

    /// Writes everything added, as it is now. Collective. Returns the size of the file in bytes. Each row is sent once,
    /// to the rank that writes its block, unless it is there already; needs memory for up to three copies of a rank's
    /// part of one array. Can be repeated.
    ///
    /// @throws on all ranks: ArgumentError for invalid names, negative or repeated ids, and arrays that differ between
    /// ranks; LayoutError for fixed rows of different widths; StaleError, StateError for arrays that are not current on
    /// the host; DataError if the file cannot be written (a full disk, for example); NotBuiltError without HDF5.
    index write();

    /// Whether this build contains HDF5.
    static bool built() noexcept;

  private:
    struct Source;
    void setValue(const std::string &name, CheckpointValue value);
    void checkSources() const;
    void describe();
    index writeFile(const std::string &temporary);

    CommunicatorView comm_;
    std::string path_;
    CheckpointOptions options_;
    /// In the order of `add`.
    std::vector<Source> sources_;
    /// Copies of row shapes, which are written as arrays of their own. A deque: `sources_` points to its entries.
    std::deque<Array<rowsize, 2>> shapes_;
    /// Each fills one of them.
    std::vector<std::function<void()>> copyShapes_;
    CheckpointContent content_;
};

/// Reads a checkpoint, on any number of ranks.
///
///     CheckpointReader file(comm, "run/checkpoint.h5", {.mesh = Geom::fingerprint(mesh)});
///     const real time = file.number("time");
///     file.read("state", state, ids);   // the rows that this rank wants, from any writer
///
/// Rank 0 reads and checks the description; each rank reads blocks, verifies their checksums and sends rows to the
/// other ranks that asked for them. Arrays change only when all ranks know that everything is right.
///
/// Reading ranks keep the file open from construction on, all of them the same file: if it is replaced or removed,
/// values and rows still come from the first. Copies share the open file.
class CheckpointReader {
  public:
    /// Collective; each rank that has blocks opens the file once. @throws on all ranks: DataError for a file that is
    /// missing, truncated, damaged or no checkpoint, and if ranks find different files at this path; ArgumentError for
    /// a file of another mesh; NotBuiltError without HDF5.
    CheckpointReader(CommunicatorView comm, std::string path, const CheckpointReadOptions &options = {});

    /// The file. Local.
    const std::string &path() const noexcept { return path_; }
    /// The arrays and values in the file. Local.
    const CheckpointContent &content() const noexcept { return content_; }
    /// Local. @throws ArgumentError for an unknown name; it lists the known ones.
    const CheckpointArray &array(std::string_view name) const;
    bool has(std::string_view name) const noexcept;

    /// Throws ArgumentError if the file was written for another mesh. A file without a fingerprint (`content().mesh`)
    /// fits every mesh. Local.
    void requireMesh(std::uint64_t mesh) const;

    /// A value. Local. @throws ArgumentError as above; LayoutError for a value of another type, or a list where one
    /// number is requested.
    index integer(std::string_view name) const;
    real number(std::string_view name) const;
    const std::string &text(std::string_view name) const;
    const std::vector<index> &integers(std::string_view name) const;
    const std::vector<real> &numbers(std::string_view name) const;

    /// Makes `array` the rows with these ids, in this order: the number of rows and, if not chosen yet, run-time widths
    /// and one dimension of matrices come from the file. Several ranks may request the same id. Ghosts of rows
    /// whose sizes differ from those before must be made again. Collective. Needs memory for up to three copies of a
    /// rank's part.
    /// @throws on all ranks: ArgumentError if the file is for a mesh and the reader was given neither a mesh nor
    /// `anyMesh`; LayoutError for another element type or width, rows that do not fit, or matrices whose shape is open;
    /// DataError for ids missing in the file and for damaged blocks; ArgumentError as `array`. The array then stays
    /// unchanged, except matrices beyond its limits.
    void read(std::string_view name, ArrayBase &array, std::span<const index> ids) const;
    template <HasRowShapes TArray>
    void read(std::string_view name, TArray &array, std::span<const index> ids) const {
        Array<rowsize, 2> shapes;
        read(std::string(name) + ".shapes", shapes, ids);
        std::vector<index> sizes;
        for (index i = 0; i < shapes.size(); i++)
            sizes.push_back(std::min(shapes(i, 0), shapes(i, 1)) < 0 ? -1
                                                                     : static_cast<index>(shapes(i, 0)) * shapes(i, 1));
        readRows(name, array, ids, sizes, [&] {
            array.resize(shapes.size(),
                         [&](index i) { return std::pair<rowsize, rowsize>(shapes(i, 0), shapes(i, 1)); });
        });
    }

    /// The ids of this rank's even share of all rows: each row is on one rank. For reading without a partition.
    /// Collective. @throws as `read`.
    std::vector<index> ownBlock(std::string_view name) const;

    /// Reads every block and compares its checksum. Collective. @throws DataError on all ranks.
    void verify() const;

  private:
    /// Opens the file and reads its description. False if ranks find different files. Collective.
    bool open();
    Detail::FileRanks fileRanks() const;
    /// With `resize`, rows must have `sizes` elements, and `resize` gives `array` such rows. Collective; throws on all
    /// ranks.
    void readRows(std::string_view name, ArrayBase &array, std::span<const index> ids, std::span<const index> sizes,
                  const std::function<void()> &resize) const;

    CommunicatorView comm_;
    std::string path_;
    /// As CheckpointReadOptions::readers.
    int readers_ = 0;
    bool meshKnown_ = false; ///< it fits, or any mesh is allowed
    /// Open on ranks that have blocks of some array, and on rank 0.
    std::shared_ptr<const DurableFile> file_;
    CheckpointContent content_;
};

} // namespace DNDS
