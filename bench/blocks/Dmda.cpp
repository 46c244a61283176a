/// @file Dmda.cpp
/// @brief PETSc's distributed arrays as contestants.
#include "GhostMethod.hpp"
#include "SlabMethod.hpp"

#include "DNDS/Petsc/Session.hpp"

#include <petscdmda.h>

namespace DNDS::Bench {

namespace {

/// The cells of one index space; PETSc's x is the last dimension here.
class Dmda : public GhostMethod {
  public:
    Dmda(const char *name, const BlockCase &of, const IndexVector &parts) : GhostMethod(name, of) {
        const Box &cells = of.pattern()->grid()->spaces().front().cells;
        const auto size = [&](int d) { return static_cast<PetscInt>(cells.extent(d)); };
        const auto cut = [&](std::size_t d) { return static_cast<PetscInt>(parts[d]); };
        const bool star = of.pattern()->ghosts().shape == GhostShape::Star;
        Petsc::check(DMDACreate3d(of.comm().handle(), DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE,
                                  star ? DMDA_STENCIL_STAR : DMDA_STENCIL_BOX, size(2), size(1), size(0), cut(2),
                                  cut(1), cut(0), of.components(), static_cast<PetscInt>(of.width()), nullptr, nullptr,
                                  nullptr, &dm_),
                     "DMDACreate3d");
        Petsc::check(DMSetUp(dm_), "DMSetUp");
        Petsc::check(DMCreateLocalVector(dm_, &local_), "DMCreateLocalVector");
        std::array<PetscInt, 3> low{}, count{};
        Petsc::check(DMDAGetCorners(dm_, &low[2], &low[1], &low[0], &count[2], &count[1], &count[0]), "DMDAGetCorners");
        owned_ = boxOf(low, count);
        Petsc::check(DMDAGetGhostCorners(dm_, &low[2], &low[1], &low[0], &count[2], &count[1], &count[0]),
                     "DMDAGetGhostCorners");
        extent_ = boxOf(low, count);
        inner_ = owned_;
        for (int d = 0; d < 3; ++d) {
            inner_.lower[toSize(d)] += of.width();
            inner_.upper[toSize(d)] = std::max(inner_.lower[toSize(d)], inner_.upper[toSize(d)] - of.width());
        }
    }
    ~Dmda() override {
        VecDestroy(&local_);
        DMDestroy(&dm_);
    }
    void compare(int round) const override {
        const double *values = nullptr;
        Petsc::check(VecGetArrayRead(local_, &values), "VecGetArrayRead");
        const auto filled = withGhosts(owned_, of().pattern()->ghosts());
        forEachCell(extent_, [&](const IndexVector &cell) {
            if (owned_.contains(cell) ||
                std::ranges::none_of(filled, [&](const Box &box) { return box.contains(cell); }))
                return;
            for (int k = 0; k < of().components(); ++k)
                DNDS_CHECK(values[placeIn(extent_, cell) + k] == BlockCase::valueOf(cell, 0, k, round), DataError,
                           "{} brought a wrong ghost", name());
        });
        VecRestoreArrayRead(local_, &values);
    }

  protected:
    /// Writes the cells near the ends of the owned box in memory of `layout`.
    void write(Vec vector, const Box &layout, int round) {
        double *values = nullptr;
        Petsc::check(VecGetArray(vector, &values), "VecGetArray");
        forEachCell(owned_, [&](const IndexVector &cell) {
            if (inner_.contains(cell))
                return;
            for (int k = 0; k < of().components(); ++k)
                values[placeIn(layout, cell) + k] = BlockCase::valueOf(cell, 0, k, round);
        });
        VecRestoreArray(vector, &values);
    }
    DM dm() { return dm_; }
    Vec local() { return local_; }
    const Box &owned() const { return owned_; }
    const Box &extent() const { return extent_; }

  private:
    static Box boxOf(const std::array<PetscInt, 3> &low, const std::array<PetscInt, 3> &count) {
        return {{low[0], low[1], low[2]}, {low[0] + count[0], low[1] + count[1], low[2] + count[2]}};
    }
    index placeIn(const Box &layout, const IndexVector &cell) const {
        index place = 0;
        for (int d = 0; d < 3; ++d)
            place = place * layout.extent(d) + cell[toSize(d)] - layout.lower[toSize(d)];
        return place * of().components();
    }

    DM dm_ = nullptr;
    Vec local_ = nullptr;
    Box owned_, extent_, inner_;
};

class GlobalToLocal final : public Dmda {
  public:
    GlobalToLocal(const BlockCase &of, const IndexVector &parts) : Dmda(GlobalToLocalName, of, parts) {
        Petsc::check(DMCreateGlobalVector(dm(), &global_), "DMCreateGlobalVector");
    }
    ~GlobalToLocal() override { VecDestroy(&global_); }
    void exchange() override {
        Petsc::check(DMGlobalToLocalBegin(dm(), global_, INSERT_VALUES, local()), "DMGlobalToLocalBegin");
        Petsc::check(DMGlobalToLocalEnd(dm(), global_, INSERT_VALUES, local()), "DMGlobalToLocalEnd");
    }
    void rewrite(int round) override { write(global_, owned(), round); }

  private:
    Vec global_ = nullptr;
};

class LocalToLocal final : public Dmda {
  public:
    LocalToLocal(const BlockCase &of, const IndexVector &parts) : Dmda(LocalToLocalName, of, parts) {}
    void exchange() override {
        Petsc::check(DMLocalToLocalBegin(dm(), local(), INSERT_VALUES, local()), "DMLocalToLocalBegin");
        Petsc::check(DMLocalToLocalEnd(dm(), local(), INSERT_VALUES, local()), "DMLocalToLocalEnd");
    }
    void rewrite(int round) override { write(local(), extent(), round); }
};

/// Cells of a DMDA in slabs of x go to those of one in slabs of z.
class PetscScatter final : public SlabMethod {
  public:
    PetscScatter(CommunicatorView comm, index edge)
        : SlabMethod("x to z, PETSc's VecScatter"),
          edge_(edge), cuts_{Cut(comm, edge, {comm.size(), 1}), Cut(comm, edge, {1, comm.size()})} {
        // The natural order of both is that of cells in memory (z, y, x), which gives each its place in the other.
        const Cut &to = cuts_[1];
        std::vector<PetscInt> cells;
        to.visit([&](index z, index y, index x, index) {
            cells.push_back(static_cast<PetscInt>((z * edge + y) * edge + x));
        });
        AO order = nullptr;
        Petsc::check(DMDAGetAO(cuts_[0].dm, &order), "DMDAGetAO");
        Petsc::check(AOApplicationToPetsc(order, static_cast<PetscInt>(cells.size()), cells.data()),
                     "AOApplicationToPetsc");
        PetscInt first = 0;
        Petsc::check(VecGetOwnershipRange(to.values, &first, nullptr), "VecGetOwnershipRange");
        IS sources = nullptr;
        IS targets = nullptr;
        const auto count = static_cast<PetscInt>(cells.size());
        Petsc::check(ISCreateGeneral(comm.handle(), count, cells.data(), PETSC_COPY_VALUES, &sources),
                     "ISCreateGeneral");
        Petsc::check(ISCreateStride(comm.handle(), count, first, 1, &targets), "ISCreateStride");
        Petsc::check(VecScatterCreate(cuts_[0].values, sources, to.values, targets, &scatter_), "VecScatterCreate");
        ISDestroy(&sources);
        ISDestroy(&targets);
    }
    ~PetscScatter() override { VecScatterDestroy(&scatter_); }
    void run() override {
        const Vec from = cuts_[0].values;
        const Vec to = cuts_[1].values;
        Petsc::check(VecScatterBegin(scatter_, from, to, INSERT_VALUES, SCATTER_FORWARD), "VecScatterBegin");
        Petsc::check(VecScatterEnd(scatter_, from, to, INSERT_VALUES, SCATTER_FORWARD), "VecScatterEnd");
    }
    void check(CommunicatorView comm, int round) override {
        double *values = nullptr;
        Petsc::check(VecGetArray(cuts_[0].values, &values), "VecGetArray");
        cuts_[0].visit([&](index z, index y, index x, index n) { values[n] = valueOf(z, y, x, edge_, round); });
        Petsc::check(VecRestoreArray(cuts_[0].values, &values), "VecRestoreArray");
        run();
        const double *brought = nullptr;
        Petsc::check(VecGetArrayRead(cuts_[1].values, &brought), "VecGetArrayRead");
        comm.guarded([&] {
            cuts_[1].visit([&](index z, index y, index x, index n) {
                DNDS_CHECK(brought[n] == valueOf(z, y, x, edge_, round), DataError, "{}: a cell is wrong", name());
            });
        });
        Petsc::check(VecRestoreArrayRead(cuts_[1].values, &brought), "VecRestoreArrayRead");
    }

  private:
    /// A cube in so many parts of x and of z, and a vector of its cells.
    struct Cut {
        Cut(CommunicatorView comm, index edge, std::array<int, 2> parts) {
            const auto size = static_cast<PetscInt>(edge);
            Petsc::check(DMDACreate3d(comm.handle(), DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE,
                                      DMDA_STENCIL_BOX, size, size, size, parts[0], 1, parts[1], 1, 0, nullptr, nullptr,
                                      nullptr, &dm),
                         "DMDACreate3d");
            Petsc::check(DMSetUp(dm), "DMSetUp");
            Petsc::check(DMCreateGlobalVector(dm, &values), "DMCreateGlobalVector");
            Petsc::check(DMDAGetCorners(dm, &low[2], &low[1], &low[0], &count[2], &count[1], &count[0]),
                         "DMDAGetCorners");
        }
        Cut(const Cut &) = delete;
        Cut &operator=(const Cut &) = delete;
        ~Cut() {
            VecDestroy(&values);
            DMDestroy(&dm);
        }
        template <class F>
        void visit(F f) const {
            index n = 0;
            for (index z = low[0]; z < low[0] + count[0]; ++z)
                for (index y = low[1]; y < low[1] + count[1]; ++y)
                    for (index x = low[2]; x < low[2] + count[2]; ++x)
                        f(z, y, x, n++);
        }

        DM dm = nullptr;
        Vec values = nullptr;
        std::array<PetscInt, 3> low{}, count{};
    };

    index edge_;
    std::array<Cut, 2> cuts_;
    VecScatter scatter_ = nullptr;
};

} // namespace

std::unique_ptr<SlabMethod> makePetscScatter(CommunicatorView comm, index edge) {
    return std::make_unique<PetscScatter>(comm, edge);
}

std::shared_ptr<void> startPetsc() { return std::make_shared<Petsc::Session>(); }

std::unique_ptr<GhostMethod> makeGlobalToLocal(const BlockCase &of, const IndexVector &parts) {
    return std::make_unique<GlobalToLocal>(of, parts);
}
std::unique_ptr<GhostMethod> makeLocalToLocal(const BlockCase &of, const IndexVector &parts) {
    return std::make_unique<LocalToLocal>(of, parts);
}

} // namespace DNDS::Bench
