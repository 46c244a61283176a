/// @file OtherFiles.hpp
/// @brief Names the format of mesh files that DNDS does not read, and the tools that convert them.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <span>
#include <string>
#include <string_view>

namespace DNDS::Geom {

/// Data about a file, without reading all of it.
struct FileStart {
    std::string_view bytes;                  ///< the first ones
    index size = 0;                          ///< size of the whole file; 0 if unknown
    std::span<const std::string> hdfNames{}; ///< in the root group of an HDF5 file
};

/// "it is a Medit mesh; Gmsh converts it: ..." for files of other formats, found in one table of signatures; "" for
/// files that DNDS reads and for unknown ones. Local.
std::string describeOtherFile(const FileStart &file);

} // namespace DNDS::Geom
