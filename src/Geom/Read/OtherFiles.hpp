/// @file OtherFiles.hpp
/// @brief Names the format of mesh files that DNDS does not read, and the tools that convert them.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <span>
#include <string>
#include <string_view>

namespace DNDS::Geom {

/// "it is a Medit mesh; Gmsh converts it: ..." for files of other formats, found in one table of signatures; "" for
/// files that DNDS reads and for unknown ones. `bytes` are the first ones of `size` (0 if unknown), `hdfNames` those in
/// the root group of an HDF5 file. Local.
std::string describeOtherFile(std::string_view bytes, index size, std::span<const std::string> hdfNames);

/// The next line that is neither empty nor begins with `comment`, without blanks around it; "" at the end. `text` loses
/// all up to it.
std::string_view nextLine(std::string_view &text, char comment = '\0');

} // namespace DNDS::Geom
