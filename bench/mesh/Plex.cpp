/// @file Plex.cpp
/// @brief PETSc's DMPlex.
#include "MeshMethod.hpp"
#include "PlexCells.hpp"

#include "DNDS/Petsc/Session.hpp"

#include <petsc/private/partitionerimpl.h> // to time the partitioner alone
#include <petscdmplex.h>
#include <petscsf.h>

#include <utility>

namespace DNDS::Bench {

namespace {

using Numbers = Petsc::Owner<Vec, VecDestroy>;

/// PT-Scotch as PETSc calls it, with the time of the call. PETSc gives a partitioner's function no place for data.
double partitionSeconds = 0.0;
decltype(_PetscPartitionerOps::partition) originalPartition = nullptr;

PetscErrorCode timedPartition(PetscPartitioner partitioner, PetscInt parts, PetscInt vertices, PetscInt starts[],
                              PetscInt neighbours[], PetscSection vertexWeights, PetscSection edgeWeights,
                              PetscSection target, IS *result) {
    // Waiting for slower ranks is no part of the partitioner.
    MPI_Barrier(PetscObjectComm(reinterpret_cast<PetscObject>(partitioner)));
    const double start = MPI_Wtime();
    const PetscErrorCode code =
        originalPartition(partitioner, parts, vertices, starts, neighbours, vertexWeights, edgeWeights, target, result);
    partitionSeconds += MPI_Wtime() - start;
    return code;
}

void usePtScotch(DM plex) {
    PetscPartitioner partitioner = nullptr;
    Petsc::check(DMPlexGetPartitioner(plex, &partitioner), "DMPlexGetPartitioner");
    Petsc::check(PetscPartitionerSetType(partitioner, PETSCPARTITIONERPTSCOTCH), "PetscPartitionerSetType");
    originalPartition = partitioner->ops->partition;
    partitioner->ops->partition = timedPartition;
}

/// Moves the cells to parts and adds a layer of cells that share a node with them.
void distribute(Plex &plex, StageClock &clock) {
    Plex moved;
    partitionSeconds = 0.0;
    clock.begin("distribute");
    usePtScotch(plex);
    Petsc::check(DMPlexDistribute(plex, 0, nullptr, moved.out()), "DMPlexDistribute");
    clock.moveTo(PartitionStage, partitionSeconds);
    std::swap(plex, moved);
    moved.out();
    clock.begin("ghosts");
    Petsc::check(DMPlexDistributeOverlap(plex, 1, nullptr, moved.out()), "DMPlexDistributeOverlap");
    std::swap(plex, moved);
}

MeshParts measure(DM plex, StageClock &clock) {
    clock.begin("metrics");
    Numbers cellGeometry;
    Numbers faceGeometry;
    Petsc::check(DMPlexComputeGeometryFVM(plex, cellGeometry.out(), faceGeometry.out()), "DMPlexComputeGeometryFVM");
    clock.end();

    MeshParts parts;
    PetscInt begin = 0;
    PetscInt end = 0;
    Petsc::check(DMPlexGetHeightStratum(plex, 1, &begin, &end), "DMPlexGetHeightStratum");
    parts.faces = end - begin;
    Petsc::check(DMPlexGetHeightStratum(plex, 0, &begin, &end), "DMPlexGetHeightStratum");
    PetscSF points = nullptr;
    Petsc::check(DMGetPointSF(plex, &points), "DMGetPointSF");
    PetscInt leaves = 0;
    const PetscInt *places = nullptr;
    Petsc::check(PetscSFGetGraph(points, nullptr, &leaves, &places, nullptr), "PetscSFGetGraph");
    std::vector<bool> isGhost(static_cast<std::size_t>(end - begin), false);
    for (PetscInt i = 0; i < leaves; i++)
        if (const PetscInt point = places != nullptr ? places[i] : i; point >= begin && point < end)
            isGhost[static_cast<std::size_t>(point - begin)] = true;
    DM geometryPlex = nullptr;
    Petsc::check(VecGetDM(cellGeometry, &geometryPlex), "VecGetDM");
    const PetscScalar *values = nullptr;
    Petsc::check(VecGetArrayRead(cellGeometry, &values), "VecGetArrayRead");
    for (PetscInt cell = begin; cell < end; cell++) {
        if (isGhost[static_cast<std::size_t>(cell - begin)]) {
            parts.ghosts++;
            continue;
        }
        parts.cells++;
        PetscFVCellGeom *geometry = nullptr;
        Petsc::check(DMPlexPointLocalRead(geometryPlex, cell, values, &geometry), "DMPlexPointLocalRead");
        parts.volume += geometry->volume;
    }
    Petsc::check(VecRestoreArrayRead(cellGeometry, &values), "VecRestoreArrayRead");
    return parts;
}

/// From blocks of cells as a parallel reader has them, or from rank 0, which has all as a serial reader would.
MeshParts run(CommunicatorView comm, const Geom::BoxMeshOptions &box, StageClock &clock, bool fromRoot) {
    clock.begin(GenerateStage);
    Plex plex;
    {
        CellList list(fromRoot ? comm.rank() == 0 ? Geom::makeBoxMesh(box, 0, 1) : Geom::SourceMesh()
                               : Geom::makeBoxMesh(box, comm));
        list.corners = comm.allReduce(list.corners, MPI_MAX);
        comm.barrier();
        clock.begin("create");
        plex = list.create(comm);
    }
    clock.begin("faces");
    plex = interpolated(plex);
    if (comm.size() > 1)
        distribute(plex, clock);
    return measure(plex, clock);
}

} // namespace

// A mesh is distributed when the benchmark says so.
std::shared_ptr<void> startPetsc() { return std::make_shared<Petsc::Session>("-dm_distribute false"); }

std::string plexVersion() {
    return fmt::format("{}.{}.{}", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR);
}

std::vector<MeshMethod> plexMethods() {
    const auto from = [](bool fromRoot) {
        return [fromRoot](CommunicatorView comm, const MeshCase &start, StageClock &clock) {
            return run(comm, start.box, clock, fromRoot);
        };
    };
    return {{"dmplex", from(false)}, {"dmplex_root", from(true)}};
}

} // namespace DNDS::Bench
