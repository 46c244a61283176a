/// @file Checkpoint.hpp
/// @brief Arrays and values of all ranks in one HDF5 file that is either whole or not there, readable on any number of
/// ranks.
///
/// docs/checkpoints.md describes the file.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Serialize/CheckpointContent.hpp"
#include "DNDS/Serialize/DurableFile.hpp"
#include "DNDS/Storage/Array.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

struct CheckpointOptions {
    /// Bytes that share a checksum. A rank reads and writes whole blocks, so small arrays go through few ranks.
    index blockBytes = index{1} << 20;
    /// What the ids number: `Geom::fingerprint(mesh)`, or any number that another mesh or numbering does not have. The
    /// same on all ranks. Readers compare it. Without it, ids of another mesh go unnoticed.
    std::optional<std::uint64_t> mesh{};
};

struct CheckpointReadOptions {
    /// The mesh for which rows are read, as `CheckpointOptions::mesh`. The same on all ranks.
    std::optional<std::uint64_t> mesh{};
    /// Rows are read although the file may be for another mesh.
    bool anyMesh = false;
};

/// An array that keeps a matrix shape for each row beside its elements (an `ArrayEigenMatrix` of differing matrices).
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
/// Rows are stored in the order of their original ids, so that the bytes of the file depend neither on the number of
/// ranks nor on the partition. `write` goes to `path.part`, has it brought to the disk, and renames it: until then a
/// file at `path` stays as it was, and afterwards it is whole. If anything fails on any rank, all ranks throw, and
/// `path.part` is removed.
class CheckpointWriter {
  public:
    /// Nothing is written yet. Local.
    CheckpointWriter(CommunicatorView comm, std::string path, const CheckpointOptions &options = {});
    CheckpointWriter(const CheckpointWriter &) = delete;
    CheckpointWriter &operator=(const CheckpointWriter &) = delete;
    ~CheckpointWriter();

    /// Values that all ranks have alike; rank 0's are written. Local. At most 60000 bytes each.
    template <std::integral T>
    void set(const std::string &name, T value) {
        setValue(name, std::vector<index>{static_cast<index>(value)});
    }
    void set(const std::string &name, real value) { setValue(name, std::vector<real>{value}); }
    void set(const std::string &name, std::string text) { setValue(name, std::move(text)); }
    void set(const std::string &name, const char *text) { setValue(name, std::string(text)); }
    void set(const std::string &name, std::vector<index> numbers) { setValue(name, std::move(numbers)); }
    void set(const std::string &name, std::vector<real> numbers) { setValue(name, std::move(numbers)); }

    /// Rows of all ranks: row `i` has the original id `ids[i]`, a number >= 0 that no other row of any rank has. Array
    /// and ids must stay as they are until `write`. Local; all ranks add the same arrays in the same order.
    ///
    /// Any layout and element type: fixed rows are stored as [rows x width], padded and CSR rows as their elements
    /// alone with offsets, and each can be read into the others. Elements are read on the host side.
    void add(const std::string &name, const ArrayBase &array, std::span<const index> ids);
    /// The same for matrices of differing shapes, which are stored as a second array `name.shapes`.
    template <HasRowShapes TArray>
    void add(const std::string &name, const TArray &array, std::span<const index> ids) {
        add(name, static_cast<const ArrayBase &>(array), ids);
        Array<rowsize, 2> &shapes = shapes_.emplace_back();
        shapes.resize(array.size());
        for (index i = 0; i < array.size(); i++) {
            shapes(i, 0) = array.matrixShape(i).rows;
            shapes(i, 1) = array.matrixShape(i).cols;
        }
        add(name + ".shapes", shapes, ids);
    }

    /// Writes all that was added. Collective. Returns the size of the file in bytes. Rows travel once, to the rank that
    /// writes their block; memory for three copies of a rank's part of one array. Can be repeated.
    ///
    /// @throws on all ranks: ArgumentError for names, negative or repeated ids, and arrays that differ between ranks;
    /// StaleError, StateError for arrays that the host has not; DataError where the file cannot be written (a full
    /// disk, say); NotBuiltError without HDF5.
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
    std::vector<Source> sources_;
    std::deque<Array<rowsize, 2>> shapes_;
    CheckpointContent content_;
};

/// Reads a checkpoint, on any number of ranks.
///
///     CheckpointReader file(comm, "run/checkpoint.h5", {.mesh = Geom::fingerprint(mesh)});
///     const real time = file.number("time");
///     file.read("state", state, ids);   // those that this rank wants, whoever wrote them
///
/// Rank 0 reads and checks the description; each rank reads blocks, verifies their checksums, and sends rows to whoever
/// asked for them. Nothing is handed over before all ranks know that it is right: until then arrays stay as they were.
///
/// Ranks that read keep the file open from construction on, and all have the same one: where another checkpoint takes
/// its place or it is removed, values and rows still come from the first. Copies share the open file.
class CheckpointReader {
  public:
    /// Collective; each rank that has blocks opens the file once. @throws on all ranks: DataError for a file that is
    /// missing, truncated, damaged, or no checkpoint, and where ranks find different files by this path; ArgumentError
    /// for a file of another mesh; NotBuiltError without HDF5.
    CheckpointReader(CommunicatorView comm, std::string path, const CheckpointReadOptions &options = {});

    const std::string &path() const noexcept { return path_; }
    /// What is in the file: arrays and values. Local.
    const CheckpointContent &content() const noexcept { return content_; }
    /// Local. @throws ArgumentError for a name that is not there, listing what is.
    const CheckpointArray &array(std::string_view name) const;
    bool has(std::string_view name) const noexcept;

    /// Throws ArgumentError where the file says that it is for another mesh than this one. A file that does not say
    /// (`content().mesh`; it is of a time before, or was written without) fits each. Local.
    void needMesh(std::uint64_t mesh) const;

    /// A value. Local. @throws ArgumentError as above; LayoutError where the value is of another type, or a list where
    /// one number is asked for.
    index integer(std::string_view name) const;
    real number(std::string_view name) const;
    const std::string &text(std::string_view name) const;
    const std::vector<index> &integers(std::string_view name) const;
    const std::vector<real> &numbers(std::string_view name) const;

    /// Makes `array` the rows with these ids, in this order: rows and, where they are not chosen yet, run-time widths
    /// are taken from the file. An id may be asked for by several ranks. Collective. Memory for three copies of a
    /// rank's part.
    /// @throws on all ranks: ArgumentError where the file is for a mesh, and the reader was not told for which mesh it
    /// reads, nor `anyMesh`; LayoutError for another element type, width, or rows that do not fit; DataError for ids
    /// that the file lacks and for damaged blocks; ArgumentError as `array`. The array then stays as it was, but for
    /// matrices beyond its limits.
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

    /// The ids of the rows in this rank's blocks: all ranks together have each row once. For reading without a
    /// partition. Collective. @throws as `read`.
    std::vector<index> ownBlock(std::string_view name) const;

    /// Reads every block and compares its checksum. Collective. @throws DataError on all ranks.
    void verify() const;

  private:
    /// Opens the file and reads what it says. False where ranks find different files. Collective.
    bool open();
    /// With `resize`, rows must have `sizes` elements, and it gives `array` such rows.
    void readRows(std::string_view name, ArrayBase &array, std::span<const index> ids, std::span<const index> sizes,
                  const std::function<void()> &resize) const;

    CommunicatorView comm_;
    std::string path_;
    bool meshKnown_ = false; ///< it fits, or may be any
    std::shared_ptr<const DurableFile> file_;
    CheckpointContent content_;
};

} // namespace DNDS
