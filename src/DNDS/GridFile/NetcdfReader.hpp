/// @file NetcdfReader.hpp
/// @brief Reads boxes of NetCDF variables: classic files (CDF-1, CDF-2, CDF-5) and NetCDF-4.
#pragma once

#include "DNDS/GridFile/NetcdfContent.hpp"
#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

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
/// fill value, except of bytes), `valid_min`, `valid_max` and `valid_range` mark missing ones in the file's type, then
/// `scale_factor` and `add_offset` apply. Integers are checked to fit memory's type.
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
    std::unique_ptr<File> file_;
};

} // namespace DNDS
