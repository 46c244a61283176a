/// @file Netcdf.hpp
/// @brief NetCDF files.
///
/// - `NetcdfContent`: what is in one, as plain data: dimensions, variables, attributes
/// - `NetcdfReader`: reads boxes of variables: classic files (CDF-1, CDF-2, CDF-5) and NetCDF-4
/// - `NetcdfWriter`: writes files by all ranks together
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace DNDS {

/// Text, or one or several numbers; their type in the file is `NetcdfAttribute::kind`.
using NetcdfValue = std::variant<std::string, std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<real>>;

/// An attribute of a file or variable.
struct NetcdfAttribute {
    std::string name;
    ElementKind kind = ElementKind::Opaque; ///< Opaque: text
    NetcdfValue value;

    NetcdfAttribute() = default;
    /// A text; one number as Float64; or values, which the file stores as `type`.
    NetcdfAttribute(std::string attribute, std::string text) : name(std::move(attribute)), value(std::move(text)) {}
    NetcdfAttribute(std::string attribute, const char *text)
        : NetcdfAttribute(std::move(attribute), std::string(text)) {}
    NetcdfAttribute(std::string attribute, real number)
        : name(std::move(attribute)), kind(ElementKind::Float64), value(std::vector<real>{number}) {}
    NetcdfAttribute(std::string attribute, ElementKind type, NetcdfValue values)
        : name(std::move(attribute)), kind(type), value(std::move(values)) {}

    friend bool operator==(const NetcdfAttribute &, const NetcdfAttribute &) = default;
};

/// A dimension of a file.
struct NetcdfDimension {
    std::string name;
    index length = 0;       ///< current length, if it is unlimited
    bool unlimited = false; ///< grows as records are written

    friend bool operator==(const NetcdfDimension &, const NetcdfDimension &) = default;
};

/// A variable of a file, without its numbers.
struct NetcdfVariable {
    std::string name;                        ///< "group/name" for variables in groups
    ElementKind kind = ElementKind::Opaque;  ///< Opaque: not numbers, see `type`
    std::string type;                        ///< for messages: "int16", "char", "string", ...
    std::vector<NetcdfDimension> dimensions; ///< slowest first
    std::vector<NetcdfAttribute> attributes;

    /// The attribute of this name, or null. Local.
    const NetcdfAttribute *attribute(std::string_view attributeName) const;
    /// The text of an attribute ("units", "long_name"), or "". Local.
    std::string text(std::string_view attributeName) const;
    std::vector<index> shape() const;
    /// For example "int16 z(month: 2, level: 3, latitude: 241, longitude: 480)".
    std::string description() const;
};

/// The contents of a NetCDF file without the numbers themselves.
struct NetcdfContent {
    std::string format; ///< "CDF-1", "CDF-2", "CDF-5", "NetCDF-4"
    std::vector<NetcdfDimension> dimensions;
    std::vector<NetcdfVariable> variables;
    std::vector<NetcdfAttribute> attributes;

    /// Whether the file has a variable of this name. Local.
    bool has(std::string_view variable) const;
    /// Local. @throws ArgumentError for an unknown name; it lists all variables with their shapes.
    const NetcdfVariable &variable(std::string_view name, std::string_view path) const;
    /// All variables with types, shapes and units, one per line.
    std::string manifest() const;
};

/// One index of a dimension, which is dropped from the shape.
struct DimensionPick {
    std::string dimension;
    bool byValue = false;
    index at = 0;   ///< its index; negative: counted from the end, -1 is the last one
    real value = 0; ///< with `byValue`: the nearest coordinate is taken
};

/// The `at`-th index of a dimension; -1: the last one.
inline DimensionPick atIndex(std::string dimension, index at) { return {std::move(dimension), false, at, 0}; }
/// The place whose coordinate (variable of the dimension's name) is nearest to `value`, in its units.
inline DimensionPick atValue(std::string dimension, real value) { return {std::move(dimension), true, 0, value}; }

/// The dimensions of a variable to pick so that `shape` remains: extra dimensions of length 1, and a leading dimension
/// at index `step`. Local. @throws LayoutError, which shows both shapes.
std::vector<DimensionPick> picksFor(const NetcdfVariable &variable, const std::vector<index> &shape, index step);

/// Choices for `NetcdfReader`; the same on all ranks.
struct NetcdfReadOptions {
    /// Dimensions fixed at one index; slabs have the others, in the file's order.
    std::vector<DimensionPick> picks{};
    /// Reads the stored numbers: no `_Unsigned`, no masking, no scaling. Memory must have the file's type.
    bool raw = false;
    /// Replaces missing values, which are NaN by default; integers have no NaN and need it, or a mask.
    std::optional<real> fill{};
};

/// Reads a NetCDF file.
///
///     NetcdfReader file(comm, "input.nc");
///     file.read("temp", {slabOf(data, start, count, strides)}, {.picks = {atIndex("time", -1)}});
///
/// Values are read by the conventions: `_Unsigned` first, then `missing_value`, `_FillValue` (or the type's default
/// fill value, except of bytes), `valid_min`, `valid_max` and `valid_range` mark missing ones in the file's type
/// (limits in the wider type of `scale_factor` and `add_offset` are unpacked values), then these two apply. Integers
/// are checked to fit memory's type.
///
/// Ranks read independently, in requests below 2 GiB, and communicate only to agree on success.
class NetcdfReader {
  public:
    /// Collective. Compares the size of classic files with their header, because the library reads zeros or noise from
    /// truncated ones. @throws on all ranks: DataError for files that are missing, damaged, truncated or not NetCDF;
    /// NotBuiltError without the NetCDF library.
    NetcdfReader(CommunicatorView comm, std::string path);
    NetcdfReader(NetcdfReader &&) noexcept;
    NetcdfReader &operator=(NetcdfReader &&) noexcept;
    ~NetcdfReader();

    /// The path given when the file was opened. Local.
    const std::string &path() const noexcept { return path_; }
    /// The contents of the file, without the numbers of its variables. Local.
    const NetcdfContent &content() const noexcept { return content_; }
    /// Local. @throws ArgumentError for an unknown name; it lists the known ones.
    const NetcdfVariable &variable(std::string_view name) const { return content_.variable(name, path_); }

    /// The shape that slabs of this variable have with these picks. Local. @throws ArgumentError.
    std::vector<index> shape(std::string_view name, std::span<const DimensionPick> picks = {}) const;
    /// A one-dimensional variable, such as coordinates, in full on all ranks. Collective. @throws as `read`.
    std::vector<real> values(std::string_view name) const;
    /// The index to which a pick refers. Collective for picks by value. @throws as `read`, and ArgumentError if the
    /// dimension has no coordinate.
    index place(const NetcdfVariable &variable, const DimensionPick &pick) const;

    /// Reads this rank's boxes, any number. Collective; all ranks name the same variable and picks. Missing values:
    /// NaN, `fill` or the slab's mask (with 1; the value is `fill`, NaN or, of integers, 0).
    /// @throws on all ranks: ArgumentError for an unknown variable or dimension; LayoutError for boxes outside the
    /// variable, text, and memory whose type cannot hold the values; DataError if the file cannot be read, an
    /// integer does not fit, or a missing value has no place.
    void read(std::string_view name, std::span<const Slab> slabs, const NetcdfReadOptions &options = {}) const;
    void read(std::string_view name, const Slab &slab, const NetcdfReadOptions &options = {}) const {
        read(name, std::span<const Slab>(&slab, 1), options);
    }

    /// Values that could not be taken over from the file, for example a `_FillValue` that the variable's type cannot
    /// hold. Local.
    std::vector<std::string> notes() const;

    /// Whether this build contains the NetCDF library. Local.
    static bool built() noexcept;

  private:
    struct File;

    CommunicatorView comm_;
    std::string path_;
    NetcdfContent content_;
    /// The library's handle; null if moved from.
    std::unique_ptr<File> file_;
};

enum class NetcdfFormat {
    Automatic, ///< CDF-2; CDF-5 for large variables and for types that CDF-2 lacks; NetCDF-4 if compressed
    Cdf2,
    Cdf5,
    Netcdf4
};

/// One dimension of a grid and its coordinates.
struct GridAxis {
    std::string name;
    std::vector<real> nodes; ///< [cells + 1], ascending or descending
    std::vector<NetcdfAttribute> attributes = {};
    std::vector<real> centres = {}; ///< [cells] {}: the middles between nodes
};

/// Choices for `NetcdfWriter`; the same on all ranks.
struct NetcdfWriteOptions {
    NetcdfFormat format = NetcdfFormat::Automatic;
    int deflate = 0;     ///< 1 to 9: variables are compressed, which needs NetCDF-4
    bool append = false; ///< open an existing file, in place, to add steps to its variables
};

/// Writes a NetCDF file.
///
///     NetcdfWriter file(comm, "output.nc");
///     file.attribute({"Conventions", "CF-1.8"});                   // only what the program claims is in the file
///     file.coordinate("lat", latitudes, {{"units", "degrees_north"}});
///     file.unlimited("time");
///     file.variable("temp", ElementKind::Float32, {"time", "lat", "lon"}, {{"units", "K"}});
///     file.write("temp", {slabOf(data, {step, i, j}, {1, ni, nj}, strides)});
///     file.close();
///
/// Declarations are the same on all ranks and precede the first `write`. The file is called `path` + ".part" until
/// `close` renames it: a file at `path` is complete (not with `append`).
///
/// All functions that are Collective throw the same on all ranks: ArgumentError for names and shapes that do not exist,
/// LayoutError for boxes outside the variable and types that do not fit, DataError if the file cannot be written,
/// StateError for calls in the wrong order, NotBuiltError without the NetCDF library.
class NetcdfWriter {
  public:
    /// Collective.
    NetcdfWriter(CommunicatorView comm, std::string path, const NetcdfWriteOptions &options = {});
    NetcdfWriter(NetcdfWriter &&) noexcept;
    NetcdfWriter &operator=(NetcdfWriter &&) noexcept;
    /// Leaves the file unfinished unless `close` was called.
    ~NetcdfWriter();

    /// Declarations. Local.
    void dimension(const std::string &name, index length);
    void unlimited(const std::string &name);
    void variable(const std::string &name, ElementKind kind, const std::vector<std::string> &dimensions,
                  std::vector<NetcdfAttribute> attributes = {});
    void attribute(NetcdfAttribute attribute);
    /// A dimension with its coordinates (CF), which rank 0 writes.
    void coordinate(const std::string &name, std::vector<real> values, std::vector<NetcdfAttribute> attributes = {});
    /// The dimension of cells along an axis, with their centres and `bounds` by CF: variables `name` and `name`_bnds.
    /// For `nodal` points the dimension of nodes, which are their own coordinates: `name`_node, without the last one,
    /// which a period repeats. Several fields may declare one axis. `Conventions` are CF-1.8 unless the program says
    /// otherwise. Returns the name of the dimension. Throws ArgumentError for nodes that do not ascend or descend and
    /// centres of another number.
    std::string axis(const GridAxis &axis, bool nodal = false, bool periodic = false);
    /// Copies the dimensions and attributes of a variable that was read, so that it is written alike. Drops a
    /// `_FillValue` that the type cannot hold, with a note.
    void like(const NetcdfVariable &variable);

    /// Creates the file as declared; `write` calls it. Collective.
    void define();
    /// Writes this rank's boxes, any number; along an unlimited dimension they may extend beyond the end.
    /// Floating-point memory of a variable with `scale_factor` or `add_offset` is packed; NaN and masked values become
    /// `_FillValue` or `missing_value`. `raw` writes memory of the file's type unchanged. Collective.
    void write(std::string_view name, std::span<const WrittenSlab> slabs, bool raw = false);
    void write(std::string_view name, const WrittenSlab &slab, bool raw = false) {
        write(name, std::span<const WrittenSlab>(&slab, 1), raw);
    }
    /// The current length of a dimension. Local after `define`, or with `append`.
    index length(std::string_view dimension) const;
    /// Completes the file. Collective.
    void close();

    /// The chosen format, the reason for it, and omissions. Local after `define`.
    const std::vector<std::string> &notes() const;
    const std::string &path() const;

  private:
    struct File;
    File &made() const;
    File &open() const;

    /// Null if moved from.
    std::unique_ptr<File> file_;
};

} // namespace DNDS
