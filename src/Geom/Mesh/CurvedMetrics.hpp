/// @file CurvedMetrics.hpp
/// @brief Metrics by quadrature of the elements' maps.
#pragma once

#include "DNDS/Geom/Mesh/MeshView.hpp"

namespace DNDS::Geom {

/// Replaces what corners gave by what the maps of all nodes give: `MetricOptions::curved`. Returns how many own cells
/// are inverted somewhere. Local.
index curveMetrics(const UnstructuredMesh &mesh, MeshMetrics &metrics);

} // namespace DNDS::Geom
