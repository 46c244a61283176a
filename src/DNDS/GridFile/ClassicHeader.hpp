/// @file ClassicHeader.hpp
/// @brief The header of classic NetCDF files (CDF-1, CDF-2, CDF-5), as far as needed for the length of the file. Part
/// of NetcdfReader.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace DNDS::Detail {

/// A file's bytes: fills `bytes` from `place` on.
using ReadBytesAt = std::function<void(index place, std::span<std::byte> bytes)>;

enum class NetcdfKind { Classic, Hdf5, Unknown };

/// The kind of a file by its first bytes. Local.
NetcdfKind netcdfKindOf(const ReadBytesAt &read, index fileBytes);

/// Checks the header of a classic file before a library reads it, and that the file is as long as it says:
/// libraries read truncated files without an error. Local; reads the header only.
/// @throws DataError that names the defect, and the variable that ends beyond the file's end.
///
/// Format: https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html
void checkClassicFile(const std::string &path, index fileBytes, const ReadBytesAt &read);

/// The bytes that a classic file needs for the contents of its header and for `records` records, even if it is shorter.
/// Local. The largest number on overflow. @throws DataError for an invalid header.
index classicFileBytes(const std::string &path, index fileBytes, const ReadBytesAt &read, index records = 0);

} // namespace DNDS::Detail
