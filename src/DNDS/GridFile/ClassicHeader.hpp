/// @file ClassicHeader.hpp
/// @brief The header of classic NetCDF files (CDF-1, CDF-2, CDF-5), as far as it says how long the file must be. Part
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

/// What the first bytes of a file say. Local.
NetcdfKind netcdfKindOf(const ReadBytesAt &read, index fileBytes);

/// Checks the header of a classic file before a library sees it, and that the file holds all that it announces:
/// libraries read from truncated files without an error. Local; reads the header only.
/// @throws DataError that names what is wrong, and the variable that ends behind the file's end.
///
/// Format: https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html
void checkClassicFile(const std::string &path, index fileBytes, const ReadBytesAt &read);

/// The bytes that a classic file needs for all that its header announces, and for `records` records, be it shorter.
/// Local. The largest number where they are more. @throws DataError for a header that is wrong.
index classicFileBytes(const std::string &path, index fileBytes, const ReadBytesAt &read, index records = 0);

} // namespace DNDS::Detail
