/// @file VtuFiles.hpp
/// @brief For tests only: VTU files in all forms.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom::test {

struct VtuOptions {
    std::string format = "ascii"; ///< "ascii", "binary", "appended"
    bool base64 = false;          ///< appended data
    bool bigEndian = false;
    bool wideHeaders = false;   ///< UInt64
    bool compressed = false;    ///< zlib, without making it smaller; blocks of 64 bytes
    bool single = false;        ///< Float32, Int32
    bool numberedFaces = false; ///< polyhedra as VTK 9.4 writes them
    std::string cellArrays{};   ///< text inside CellData
};

/// Of a whole mesh. The point data `place` are the coordinates, the cell data `a < b` their numbers and a half.
std::string vtuFile(const SourceMesh &mesh, const VtuOptions &options);

} // namespace DNDS::Geom::test
