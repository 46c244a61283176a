/// @file NetcdfSpace.hpp
/// @brief Disk space that a NetCDF-4 file is about to need. Where the disk is full in a collective call of HDF5, ranks
/// part: one waits in it for ever, the others have an error. So space is asked for before.
#pragma once

#include "DNDS/GridFile/NetcdfCalls.hpp"

#include <string>
#include <vector>

namespace DNDS::Detail {

/// What creating a file takes at most: variables without unlimited dimensions, which HDF5 fills, and descriptions.
/// `deflate` as in NetcdfWriteOptions. Local.
index netcdf4BytesAtStart(const NetcdfContent &content, int deflate);

/// Boxes of one variable that all ranks write in one call: where they begin and end, along each dimension.
struct WrittenBox {
    std::vector<index> first;
    std::vector<index> last; ///< one past the last element
};

/// What writing them takes at most, where the variable has had `extent` elements along each dimension. Local, on a rank
/// that has the file open. Throws DataError.
index netcdf4BytesOf(const NetcdfPlace &place, ElementKind kind, const std::vector<index> &extent,
                     const WrittenBox &box, const std::string &path);

/// Asks for so many bytes of disk space behind the end of a file, whose length stays as it is; where the file system
/// knows no such space, for none. Local. Throws DataError where there is no room.
void reserveBehind(const std::string &path, index bytes);
/// Gives back what was not used of it. Local. Throws DataError.
void giveBackBehind(const std::string &path);

} // namespace DNDS::Detail
