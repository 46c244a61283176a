/// @file Plex.cpp
/// @brief PETSc's DMPlex.
#include "PlexCells.hpp"
#include "PlexMove.hpp"

#include "DNDS/Petsc/Session.hpp"

#include <petscsf.h>

#include <algorithm>
#include <array>
#include <vector>

namespace DNDS::Bench {

namespace {

using Section = Petsc::Owner<PetscSection, PetscSectionDestroy>;
using Field = Petsc::Owner<Vec, VecDestroy>;
using StarForest = Petsc::Owner<PetscSF, PetscSFDestroy>;

/// The cells of a plex: its points from 0 on.
PetscInt cellsOf(DM plex) {
    PetscInt begin = 0;
    PetscInt end = 0;
    Petsc::check(DMPlexGetHeightStratum(plex, 0, &begin, &end), "DMPlexGetHeightStratum");
    return end - begin;
}

class PetscPlexMove final : public PlexMove {
  public:
    PetscPlexMove(const Geom::UnstructuredMesh &mesh, Geom::SourceMesh source, int fields)
        : comm_(mesh.comm), count_(fields) {
        source.cells = {};
        for (index cell = 0; cell < mesh.cells.owned; ++cell) {
            source.cells.types.push_back(mesh.cellTypes[static_cast<std::size_t>(cell)]);
            for (const LocalIndex node : mesh.cellNodes.view()[cell])
                source.cells.nodes.push_back(mesh.nodes.fileNumbers[static_cast<std::size_t>(node)]);
            source.cells.starts.push_back(static_cast<index>(source.cells.nodes.size()));
        }
        plex_ = interpolated(CellList(source).create(comm_));
        fieldsOf_[0] = fieldOf(mesh, 5);
        fieldsOf_[1] = fieldOf(mesh, 5 * count_);
    }

    MovedPart move(std::span<const int> targets, bool together) override {
        setTargets(targets);
        StarForest forest;
        Plex moved;
        Petsc::check(DMPlexDistribute(plex_, 1, forest.out(), moved.out()), "DMPlexDistribute");
        MovedPart part{cellsOf(moved), 0};
        const PetscInt width = together ? 5 * count_ : 5;
        const Section section = sectionOf(plex_, width);
        for (int k = 0; k < (together ? 1 : count_); ++k)
            part.field = moveField(moved, forest, section, fieldsOf_[together ? 1 : 0], width);
        return part;
    }

  private:
    void setTargets(std::span<const int> targets) {
        std::vector<PetscInt> sizes(static_cast<std::size_t>(comm_.size()), 0);
        for (const int rank : targets)
            ++sizes[static_cast<std::size_t>(rank)];
        std::vector<PetscInt> points(targets.size());
        for (std::size_t cell = 0; cell < points.size(); ++cell)
            points[cell] = static_cast<PetscInt>(cell);
        std::ranges::stable_sort(points, {}, [&](PetscInt cell) { return targets[static_cast<std::size_t>(cell)]; });
        PetscPartitioner partitioner = nullptr;
        Petsc::check(DMPlexGetPartitioner(plex_, &partitioner), "DMPlexGetPartitioner");
        Petsc::check(PetscPartitionerSetType(partitioner, PETSCPARTITIONERSHELL), "PetscPartitionerSetType");
        Petsc::check(PetscPartitionerReset(partitioner), "PetscPartitionerReset");
        Petsc::check(PetscPartitionerShellSetPartition(partitioner, comm_.size(), sizes.data(), points.data()),
                     "PetscPartitionerShellSetPartition");
    }
    Field fieldOf(const Geom::UnstructuredMesh &mesh, PetscInt width) const {
        Field field;
        Petsc::check(VecCreateMPI(comm_.handle(), width * cellsOf(plex_), PETSC_DETERMINE, field.out()),
                     "VecCreateMPI");
        PetscScalar *values = nullptr;
        Petsc::check(VecGetArray(field, &values), "VecGetArray");
        PetscScalar *next = values;
        for (const index number : mesh.cells.ownFileNumbers())
            next = std::fill_n(next, width, static_cast<PetscScalar>(number));
        Petsc::check(VecRestoreArray(field, &values), "VecRestoreArray");
        return field;
    }
    static Section sectionOf(DM plex, PetscInt width) {
        Section section;
        PetscInt begin = 0;
        PetscInt end = 0;
        Petsc::check(DMPlexGetChart(plex, &begin, &end), "DMPlexGetChart");
        Petsc::check(PetscSectionCreate(PetscObjectComm(reinterpret_cast<PetscObject>(plex)), section.out()),
                     "PetscSectionCreate");
        Petsc::check(PetscSectionSetChart(section, begin, end), "PetscSectionSetChart");
        for (PetscInt cell = 0; cell < cellsOf(plex); ++cell)
            Petsc::check(PetscSectionSetDof(section, cell, width), "PetscSectionSetDof");
        Petsc::check(PetscSectionSetUp(section), "PetscSectionSetUp");
        return section;
    }
    /// Returns the sum of the first component.
    double moveField(DM moved, PetscSF forest, PetscSection section, Vec field, PetscInt width) {
        Section newSection;
        Field newField;
        Petsc::check(PetscSectionCreate(comm_.handle(), newSection.out()), "PetscSectionCreate");
        Petsc::check(VecCreate(PETSC_COMM_SELF, newField.out()), "VecCreate");
        Petsc::check(VecSetType(newField, VECSEQ), "VecSetType");
        Petsc::check(DMPlexDistributeField(plex_, forest, section, field, newSection, newField),
                     "DMPlexDistributeField");
        const PetscScalar *values = nullptr;
        double sum = 0;
        Petsc::check(VecGetArrayRead(newField, &values), "VecGetArrayRead");
        for (PetscInt cell = 0; cell < cellsOf(moved); ++cell)
            sum += values[cell * width];
        Petsc::check(VecRestoreArrayRead(newField, &values), "VecRestoreArrayRead");
        return sum;
    }

    CommunicatorView comm_;
    int count_;
    Plex plex_;
    std::array<Field, 2> fieldsOf_; ///< fields of 5 components, and of all components together
};

} // namespace

// A mesh is distributed when the benchmark says so.
std::shared_ptr<void> startPetsc() { return std::make_shared<Petsc::Session>("-dm_distribute false"); }

std::unique_ptr<PlexMove> makePlexMove(const Geom::UnstructuredMesh &mesh, Geom::SourceMesh source, int fields) {
    return std::make_unique<PetscPlexMove>(mesh, std::move(source), fields);
}

} // namespace DNDS::Bench
