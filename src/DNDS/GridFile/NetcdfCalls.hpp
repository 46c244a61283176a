/// @file NetcdfCalls.hpp
/// @brief Types and descriptions shared by NetcdfReader and NetcdfWriter. Part of both.
#pragma once

#include "DNDS/GridFile/Netcdf.hpp"

#include <netcdf.h>

#include <string>
#include <vector>

namespace DNDS::Detail {

/// Handles of a variable in the library.
struct NetcdfPlace {
    int group = -1;
    int variable = -1;
};

/// Throws DataError with the library's text: "path: NetCDF cannot `what`: ...".
void requireNetcdf(int status, const std::string &path, const std::string &what);

/// The library's number of a type. Throws LayoutError for kinds that are no numbers.
nc_type netcdfType(ElementKind kind);
ElementKind kindOfNetcdf(nc_type type);

/// Describes an open file. `places` gets an entry per variable, `notes` the omissions. Local. Throws DataError.
NetcdfContent readNetcdfContent(int file, const std::string &path, std::vector<NetcdfPlace> &places,
                                std::vector<std::string> &notes);

/// Checks on one rank, before the library opens it, that a file exists, is NetCDF and, if classic, is complete. Local.
/// Throws DataError.
void checkNetcdfFile(const std::string &path);

/// Extends a classic file to the length in its header, and to hold `records` records. Elements that are never
/// written are then 0, and a full disk is detected now: MPI-IO may drop data silently. Local. Throws
/// DataError.
void makeRoomInNetcdf(const std::string &path, index records);

} // namespace DNDS::Detail
