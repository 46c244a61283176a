/// @file UgridFiles.hpp
/// @brief For tests only: meshes as UGRID files.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <string>

namespace DNDS::Geom::test {

struct UgridFileOptions {
    bool text = false;
    bool bigEndian = false;
    bool records = false;
    int realBytes = 8;
    int integerBytes = 4;
    std::size_t subrecord = 0; ///< longest subrecord; 0: any length
};

/// A whole mesh; its lists must be sorted by type, as UGRID's are. Tags are the patches' numbers from 1.
std::string ugridFile(const SourceMesh &mesh, const UgridFileOptions &options);

/// The same mesh with elements sorted by type, in the order of UGRID, and renumbered.
SourceMesh sortedByType(SourceMesh mesh);

} // namespace DNDS::Geom::test
