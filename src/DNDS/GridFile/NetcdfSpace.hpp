/// @file NetcdfSpace.hpp
/// @brief Reserves disk space before NetCDF-4 writes. If the disk is full in a collective call of HDF5, one rank waits
/// in it indefinitely while the others get an error.
#pragma once

#include "DNDS/GridFile/NetcdfCalls.hpp"

#include <string>
#include <vector>

namespace DNDS::Detail {

/// An upper bound for the bytes of a new file: variables without unlimited dimensions, which HDF5 fills, and
/// descriptions. `deflate` as in NetcdfWriteOptions. Local.
index netcdf4BytesAtStart(const NetcdfContent &content, int deflate);

/// Boxes of one variable that all ranks write in one call: begin and end along each dimension.
struct WrittenBox {
    std::vector<index> first;
    std::vector<index> last; ///< one past the last element
};

/// An upper bound for the bytes of writing them to a variable of length `extent` along each dimension. Local, on a rank
/// that has the file open. Throws DataError.
index netcdf4BytesOf(const NetcdfPlace &place, ElementKind kind, const std::vector<index> &extent,
                     const WrittenBox &box, const std::string &path);

/// Reserves disk space of `bytes` beyond the end of a file without changing its length, or nothing if the file system
/// has no such call. Local. Throws DataError if the disk is full.
void reserveBehind(const std::string &path, index bytes);
/// Releases the unused part of the reservation. Local. Throws DataError.
void giveBackBehind(const std::string &path);

} // namespace DNDS::Detail
