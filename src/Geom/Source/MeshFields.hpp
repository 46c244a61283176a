/// @file MeshFields.hpp
/// @brief Fields that were read from a file, beside the mesh that they belong to.
#pragma once

#include "DNDS/Geom/Source/MeshSlice.hpp"

#include <string>
#include <vector>

namespace DNDS::Geom {

/// An array of a file's solution, in the order of the file: one number for each of this rank's nodes or cells of the
/// SourceMesh. Numbers of any type of the file become double.
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

/// Fields as writers take them; `fields` must outlive them. One that shares its name with a field of another solution
/// is called "<solution>.<name>". Local.
std::vector<FieldSlice> slicesOf(const std::vector<MeshField> &fields);

} // namespace DNDS::Geom
