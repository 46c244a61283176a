/// @file FoamCase.hpp
/// @brief Finds the files of a mesh in a case of OpenFOAM.
#pragma once

#include "DNDS/Geom/File/MeshFile.hpp"

#include <string>

namespace DNDS::Geom::Foam {

/// Whether this is a folder of OpenFOAM (a case, or one of the folders above its mesh) or the empty file (.foam) by
/// which programs open one. Local.
bool isFoamCase(const std::string &path);

/// The folder of the mesh of a case, of one of its regions if `region` names one. Local.
///
/// `path` is a case, one of the folders down to polyMesh, or a file in one of these. Throws DataError if there is no
/// mesh, or only that of a decomposed case, or several regions, of which none is chosen.
std::string meshFolder(const std::string &path, const std::string &region);

/// The path of `name`, or else of `name`.gz, in a folder. Local. Throws DataError if there is neither.
std::string findFile(const std::string &folder, const std::string &name);

/// Opens such a file, whose name says whether it is compressed. Local. Errors as MeshFile.
MeshFile openFile(const std::string &path);

} // namespace DNDS::Geom::Foam
