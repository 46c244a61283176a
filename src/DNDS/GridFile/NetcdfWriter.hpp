/// @file NetcdfWriter.hpp
/// @brief Writes NetCDF files by all ranks together.
#pragma once

#include "DNDS/GridFile/NetcdfContent.hpp"
#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

enum class NetcdfFormat {
    Automatic, ///< CDF-2; CDF-5 for large variables and for types that CDF-2 lacks; NetCDF-4 if compressed
    Cdf2,
    Cdf5,
    Netcdf4
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

    std::unique_ptr<File> file_;
};

} // namespace DNDS
