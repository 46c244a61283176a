/// @file MeshView.hpp
/// @brief A trivially copyable view of a mesh, for kernels.
#pragma once

#include "DNDS/Geom/Mesh/MeshMetrics.hpp"

#include <type_traits>

namespace DNDS::Geom {

/// Pointers into an UnstructuredMesh and its metrics: both must outlive it and not be resized.
struct MeshView {
    using Adjacency = LocalAdjacency::ConstView;
    template <rowsize width>
    using Rows = ArrayView<const real, width>;

    // Counts: owned ones come first, then ghosts, up to `cells`, `nodes` and `faces`.
    index ownedCells = 0;
    index cells = 0;
    index ownedNodes = 0;
    index nodes = 0;
    index ownedFaces = 0;
    index faces = 0;
    // As the members of UnstructuredMesh of the same names.
    Adjacency cellNodes;
    Adjacency cellFaces;
    Adjacency cellCells;
    Adjacency nodeCells;
    Adjacency faceNodes;
    LocalPairs::ConstView faceCells;
    ArrayView<const int, 1> facePatches; ///< [faces] the id of the first patch, or `noPatch`
    Rows<3> coordinates;
    // As the members of MeshMetrics of the same names.
    Rows<1> volumes;
    Rows<3> centroids;
    Rows<1> areas;
    Rows<3> areaVectors;
    Rows<3> faceCentres;
};
static_assert(std::is_trivially_copyable_v<MeshView>);

/// Copies the arrays of a MeshView to the device. Local; waits. Throws NotBuiltError, MemoryError.
inline void toDevice(UnstructuredMesh &mesh, MeshMetrics &metrics) {
    for (LocalAdjacency *adjacency :
         {&mesh.cellNodes, &mesh.cellFaces, &mesh.cellCells, &mesh.nodeCells, &mesh.faceNodes})
        adjacency->toDevice();
    mesh.faceCells.toDevice();
    mesh.facePatches.toDevice();
    mesh.coordinates.toDevice();
    metrics.volumes.toDevice();
    metrics.centroids.toDevice();
    metrics.areas.toDevice();
    metrics.areaVectors.toDevice();
    metrics.faceCentres.toDevice();
}

/// The view of the memory of `backend`, where the arrays must be current. Local, O(1). Throws StaleError.
template <DeviceBackend backend = DeviceBackend::Host>
MeshView viewOf(const UnstructuredMesh &mesh, const MeshMetrics &metrics) {
    MeshView view;
    view.ownedCells = mesh.cells.owned;
    view.cells = mesh.cells.size();
    view.ownedNodes = mesh.nodes.owned;
    view.nodes = mesh.nodes.size();
    view.ownedFaces = mesh.faces.owned;
    view.faces = mesh.faces.size();
    view.cellNodes = mesh.cellNodes.template deviceView<backend>();
    view.cellFaces = mesh.cellFaces.template deviceView<backend>();
    view.cellCells = mesh.cellCells.template deviceView<backend>();
    view.nodeCells = mesh.nodeCells.template deviceView<backend>();
    view.faceNodes = mesh.faceNodes.template deviceView<backend>();
    view.faceCells = mesh.faceCells.template deviceView<backend>();
    view.facePatches = mesh.facePatches.template deviceView<backend>();
    view.coordinates = mesh.coordinates.template deviceView<backend>();
    view.volumes = metrics.volumes.template deviceView<backend>();
    view.centroids = metrics.centroids.template deviceView<backend>();
    view.areas = metrics.areas.template deviceView<backend>();
    view.areaVectors = metrics.areaVectors.template deviceView<backend>();
    view.faceCentres = metrics.faceCentres.template deviceView<backend>();
    return view;
}

/// Deleted for temporaries, such as `viewOf(mesh, computeMetrics(mesh))`: mesh and metrics must outlive the view.
template <DeviceBackend backend = DeviceBackend::Host>
MeshView viewOf(const UnstructuredMesh &mesh, const MeshMetrics &&) = delete; // name the metrics: the view points there
template <DeviceBackend backend = DeviceBackend::Host>
MeshView viewOf(const UnstructuredMesh &&, const MeshMetrics &metrics) = delete; // name the mesh: the view points there
template <DeviceBackend backend = DeviceBackend::Host>
MeshView viewOf(const UnstructuredMesh &&, const MeshMetrics &&) = delete; // name both: the view points there

} // namespace DNDS::Geom
