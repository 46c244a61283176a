/// @file Petsc.cpp
/// @brief PETSc's star forest as a contestant.
#include "AlignedVector.hpp"
#include "PullMethod.hpp"
#include "SetupMethod.hpp"

#include "DNDS/Petsc/Session.hpp"

#include <petscsf.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace DNDS::Bench {

namespace {

/// The owners' numbering of global rows, as PETSc wants its graph: O(rows log ranks).
std::vector<PetscSFNode> translate(std::span<const index> offsets, std::span<const index> rows) {
    std::vector<PetscSFNode> nodes(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto owner = std::upper_bound(offsets.begin() + 1, offsets.end(), rows[i]) - offsets.begin() - 1;
        nodes[i].rank = static_cast<PetscInt>(owner);
        nodes[i].index = static_cast<PetscInt>(rows[i] - offsets[static_cast<std::size_t>(owner)]);
    }
    return nodes;
}

/// Leaf k, at place k of the son, is a copy of `nodes[k]`.
class StarForest {
  public:
    /// Collective.
    StarForest(MPI_Comm comm, index owned, std::vector<PetscSFNode> &nodes) {
        Petsc::check(PetscSFCreate(comm, &forest_), "PetscSFCreate");
        Petsc::check(PetscSFSetType(forest_, PETSCSFBASIC), "PetscSFSetType");
        Petsc::check(PetscSFSetGraph(forest_, static_cast<PetscInt>(owned), static_cast<PetscInt>(nodes.size()),
                                     nullptr, PETSC_COPY_VALUES, nodes.data(), PETSC_COPY_VALUES),
                     "PetscSFSetGraph");
        Petsc::check(PetscSFSetUp(forest_), "PetscSFSetUp");
    }
    StarForest(const StarForest &) = delete;
    StarForest &operator=(const StarForest &) = delete;
    ~StarForest() { PetscSFDestroy(&forest_); }

    void broadcast(MPI_Datatype unit, const double *father, double *son) {
        Petsc::check(PetscSFBcastBegin(forest_, unit, father, son, MPI_REPLACE), "PetscSFBcastBegin");
        Petsc::check(PetscSFBcastEnd(forest_, unit, father, son, MPI_REPLACE), "PetscSFBcastEnd");
    }

  private:
    PetscSF forest_ = nullptr;
};

/// `width` contiguous doubles.
class RowType {
  public:
    explicit RowType(int width) {
        checkMpi(MPI_Type_contiguous(width, MPI_DOUBLE, &type_), "MPI_Type_contiguous");
        checkMpi(MPI_Type_commit(&type_), "MPI_Type_commit");
    }
    RowType(const RowType &) = delete;
    RowType &operator=(const RowType &) = delete;
    ~RowType() { MPI_Type_free(&type_); }
    MPI_Datatype handle() const { return type_; }

  private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

class PetscPull final : public PullMethod {
  public:
    PetscPull(CommunicatorView comm, index owned, std::vector<PetscSFNode> nodes, const double *father, int width)
        : PullMethod(PetscName), unit_(width), father_(father), son_(nodes.size() * static_cast<std::size_t>(width)),
          forest_(comm.handle(), owned, nodes) {}

    void pull() override { forest_.broadcast(unit_.handle(), father_, son_.data()); }
    std::span<double> son() override { return son_; }

  private:
    RowType unit_;
    const double *father_;
    AlignedVector<double> son_;
    StarForest forest_;
};

} // namespace

std::shared_ptr<void> startPetsc() { return std::make_shared<Petsc::Session>(); }

std::string petscVersion() {
    return fmt::format("{}.{}.{}", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR);
}

std::unique_ptr<PullMethod> makePetsc(CommunicatorView comm, std::span<const index> offsets, const PullPlan &plan,
                                      const double *father, int width) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    return std::make_unique<PetscPull>(comm, offsets[rank + 1] - offsets[rank], translate(offsets, plan.ghosts), father,
                                       width);
}

std::vector<SetupMethod> petscSetups(CommunicatorView comm, const Problem &problem, const double *father, int width) {
    struct State {
        std::vector<PetscSFNode> translated;
        std::vector<PetscSFNode> given;
        std::unique_ptr<StarForest> forest;
        std::unique_ptr<PetscPull> pull;
    };
    auto state = std::make_shared<State>();
    state->given = translate(problem.offsets, problem.pullList);
    std::vector<SetupMethod> methods;
    methods.push_back({PetscName, "translate",
                       [state, &problem] { state->translated = translate(problem.offsets, problem.pullList); },
                       [state] { state->translated = {}; }});
    methods.push_back({PetscName, "graph",
                       [state, comm, &problem] {
                           state->forest = std::make_unique<StarForest>(comm.handle(), problem.owned(), state->given);
                       },
                       [state] { state->forest.reset(); }});
    methods.push_back({PetscName, "first_pull",
                       [state, comm, &problem, father, width] {
                           state->pull =
                               std::make_unique<PetscPull>(comm, problem.owned(), state->given, father, width);
                           state->pull->pull();
                       },
                       [state] { state->pull.reset(); }});
    return methods;
}

} // namespace DNDS::Bench
