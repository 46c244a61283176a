/// @file RefineLevel.hpp
/// @brief One level of uniform refinement; not for users.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <vector>

namespace DNDS::Geom {

/// Cuts all cells once. `rows` are the values at own nodes, `width` numbers each, coordinates and fields: they become
/// those of the refined mesh, whose coordinates are left empty. `children` is the number of each new cell within its
/// parent. Collective.
SourceMesh refineLevel(CommunicatorView comm, const SourceMesh &coarse, std::vector<real> &rows, std::size_t width,
                       std::vector<std::uint8_t> &children);

/// The type by which an element is cut: of polygons of three or four corners TRI_3 or QUAD_4. Local.
ElementType refinedAs(const ElementBlock &block, index element);

} // namespace DNDS::Geom
