/// @file CurvedMetrics.hpp
/// @brief Metrics by quadrature of the elements' maps.
#pragma once

#include "DNDS/Geom/Mesh/MeshView.hpp"

namespace DNDS::Geom {

/// Sets a row of three.
template <class View>
void setPoint(const View &view, index row, const Point &point) {
    for (rowsize d = 0; d < 3; d++)
        view(row, d) = point[static_cast<std::size_t>(d)];
}

/// Replaces the results from corners by those from the maps of all nodes: `MetricOptions::curved`. Returns the number
/// of own cells that are inverted somewhere. Local.
index curveMetrics(const UnstructuredMesh &mesh, MeshMetrics &metrics);

} // namespace DNDS::Geom
