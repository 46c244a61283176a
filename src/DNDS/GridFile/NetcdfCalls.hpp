/// @file NetcdfCalls.hpp
/// @brief What NetcdfReader and NetcdfWriter have in common of the library: types and descriptions. Part of both.
#pragma once

#include "DNDS/GridFile/NetcdfContent.hpp"

#include <netcdf.h>

#include <string>
#include <vector>

namespace DNDS::Detail {

/// Where the library keeps a variable.
struct NetcdfPlace {
    int group = -1;
    int variable = -1;
};

/// Throws DataError with the library's words: "path: NetCDF cannot `what`: ...".
void needNetcdf(int status, const std::string &path, const std::string &what);

/// The library's number of a type. Throws LayoutError for kinds that are no numbers.
nc_type netcdfType(ElementKind kind);
ElementKind kindOfNetcdf(nc_type type);

/// Describes an open file. `places` has an entry a variable, `notes` what is left out. Local. Throws DataError.
NetcdfContent readNetcdfContent(int file, const std::string &path, std::vector<NetcdfPlace> &places,
                                std::vector<std::string> &notes);

/// Checks on one rank, before the library opens it, that a file is there, is NetCDF, and, if classic, is whole. Local.
/// Throws DataError.
void checkNetcdfFile(const std::string &path);

/// Makes a classic file as long as its header says, and long enough for `records` records. What nobody writes is 0
/// then, and a full disk is noticed now: MPI's files may lose what does not fit without a word. Local. Throws
/// DataError.
void makeRoomInNetcdf(const std::string &path, index records);

} // namespace DNDS::Detail
