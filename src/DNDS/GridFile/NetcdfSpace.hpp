/// @file NetcdfSpace.hpp
/// @brief The disk space to reserve before NetCDF-4 writes (`DurableFile::reserveBehind`). If the disk is full in a
/// collective call of HDF5, one rank waits in it indefinitely while the others get an error.
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

} // namespace DNDS::Detail
