/// @file MeshFields.hpp
/// @brief Fields read from a file, with the mesh that they belong to.
#pragma once

#include "DNDS/Geom/Source/MeshSlice.hpp"

#include <string>
#include <vector>

namespace DNDS::Geom {

/// An array of a file's solution, in file order: one number for each of this rank's nodes or cells of the SourceMesh.
/// All number types of the file are converted to double.
/// Values stay in file order on the ranks that read them; takeFromFileOrder (Write/FileOrder.hpp) sends them to the
/// owners of nodes and cells.
struct MeshField {
    std::string solution; ///< "FlowSolution"
    std::string name;     ///< "Density"
    std::vector<real> values;
};

/// All ranks have the same fields in the same order. Plain data.
struct MeshFields {
    std::vector<MeshField> nodes;
    std::vector<MeshField> cells;
};

/// Fields in the form that writers take; `fields` must outlive them. If two solutions have a field of the same name,
/// the second is called "<solution>.<name>". Local.
std::vector<FieldSlice> slicesOf(const std::vector<MeshField> &fields);

} // namespace DNDS::Geom
