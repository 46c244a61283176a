/// @file Assemble.hpp
/// @brief Assembles the SourceMesh from the parts read.
#pragma once

#include "DNDS/Geom/Cgns/Boundary.hpp"
#include "DNDS/Geom/Cgns/NodeJoin.hpp"

namespace DNDS::Geom::Cgns {

/// The cells of this rank as a block. Collective.
ElementBlock cellBlock(CommunicatorContext &context, const Model &model, const Elements &elements,
                       std::vector<std::string> &warnings, std::vector<std::string> &notes);

/// Adds the marked faces in file order, distributed evenly, with their marks. Collective.
void addMarkedFaces(CommunicatorContext &context, const Elements &elements, const Marks &marks, SourceMesh &mesh);

/// Applies the node numbers after joining. Collective.
void renumberMesh(CommunicatorContext &context, const NodeBlock &block, SourceMesh &mesh);

} // namespace DNDS::Geom::Cgns
