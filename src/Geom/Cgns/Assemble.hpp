/// @file Assemble.hpp
/// @brief Puts together the SourceMesh from what was read.
#pragma once

#include "DNDS/Geom/Cgns/Boundary.hpp"
#include "DNDS/Geom/Cgns/NodeJoin.hpp"

namespace DNDS::Geom::Cgns {

/// The cells of this rank, taken out of the run. Collective.
ElementBlock cellBlock(CommunicatorContext &context, const Model &model, const Elements &elements,
                       std::vector<std::string> &warnings);

/// The marked faces in the order of the file, shared out evenly, with their marks. Collective.
void addMarkedFaces(CommunicatorContext &context, const Elements &elements, const Marks &marks, SourceMesh &mesh);

/// Gives nodes the numbers they have after joining. Collective.
void renumberMesh(CommunicatorContext &context, const NodeBlock &block, SourceMesh &mesh);

} // namespace DNDS::Geom::Cgns
