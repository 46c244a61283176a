/// @file Repartition.hpp
/// @brief Moves the cells of a mesh, and the fields on it, to other ranks while a program runs.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Geom/Build/MeshOptions.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Index/Redistribute.hpp"

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// Whose rows a field has.
enum class MeshEntityKind : unsigned char { Cells, Nodes, Faces };

/// A mesh with another partition, made beside the old one, and how rows get there: what `Repartition` stands on, for
/// programs that keep both meshes.
class MovedMesh {
  public:
    /// Builds the new mesh: [own cells] `targets` are ranks. Collective; cost as buildMesh without a partitioner. Of
    /// the options, ghosts, order of cells and openPolyhedra count: give those that the mesh was built with. `before`
    /// must outlive this. Throws on all ranks ArgumentError for targets that are no ranks or not as many as own cells;
    /// StateError for a mesh that was moved from; MemoryError.
    MovedMesh(const UnstructuredMesh &before, std::span<const int> targets, const MeshOptions &options = {});

    /// The new mesh. Local.
    const UnstructuredMesh &after() const noexcept { return after_; }
    /// Hands it out, when nothing else is asked any more. Local.
    UnstructuredMesh take() noexcept { return std::move(after_); }
    /// How owned rows move, for any arrays. Local for cells; for others collective at the first call. Throws on all
    /// ranks StateError for faces of a mesh without ghosts on several ranks.
    const Redistribute &rows(MeshEntityKind kind);
    /// Those of the new mesh. Local.
    const MeshEntities &entitiesOf(MeshEntityKind kind) const noexcept;

  private:
    const UnstructuredMesh &before_;
    UnstructuredMesh after_;
    std::unique_ptr<const Redistribute> cells_, nodes_, faces_;
};

/// A mesh on its way to another partition, beside the old one, with fields of any type and layout:
///
///     const std::vector<int> targets = repartitionTargets(mesh, costs);   // or any ranks: [own cells]
///     Repartition move(mesh, targets, options);                           // those of buildMesh
///     move.onCells(u, residual).onNodes(p);
///     move.commit();                                                      // mesh, u, residual and p are the new ones
///
/// Until `commit` mesh and fields are as they were; so they stay where anything fails, which throws on all ranks. The
/// new mesh is the one that `buildMesh` makes of the same file with the parts `targets`, to the bit; file numbers are
/// kept. (With polyhedra, corners of faces may begin elsewhere, and so nodes be numbered otherwise on a rank.) Fields
/// keep their values by file number; their ghosts are pulled, and their persistent pulls prepared anew with default
/// options. What else refers to the old mesh (patterns, exchanges, groups, plans, views) is made anew by the program.
/// Fields on the device go through the host, and are there afterwards, too.
///
/// Needs about the memory of the old mesh and fields once more. Nothing may be in flight.
class Repartition : private MovedMesh {
  public:
    /// Builds the new mesh, as MovedMesh.
    Repartition(UnstructuredMesh &mesh, std::span<const int> targets, const MeshOptions &options = {})
        : MovedMesh(mesh, targets, options), mesh_(mesh) {}
    Repartition(const Repartition &) = delete;
    Repartition &operator=(const Repartition &) = delete;

    /// Takes fields along. Collective, one field after the other; all ranks give the same. They must outlive `commit`.
    /// Throws on all ranks ArgumentError for a field that has not the rows of the old mesh; StateError for a
    /// decompressed CSR array, and for faces of a mesh without ghosts on several ranks; MemoryError.
    template <class... TArray>
    Repartition &onCells(ArrayPair<TArray> &...fields) {
        (add(fields, MeshEntityKind::Cells), ...);
        return *this;
    }
    template <class... TArray>
    Repartition &onNodes(ArrayPair<TArray> &...fields) {
        (add(fields, MeshEntityKind::Nodes), ...);
        return *this;
    }
    template <class... TArray>
    Repartition &onFaces(ArrayPair<TArray> &...fields) {
        (add(fields, MeshEntityKind::Faces), ...);
        return *this;
    }

    using MovedMesh::after;
    using MovedMesh::rows;

    /// Puts the new mesh and fields in the place of the old ones. Local. Later calls do nothing.
    void commit() noexcept;

  private:
    template <class TArray>
    void add(ArrayPair<TArray> &field, MeshEntityKind kind) {
        static_assert(!hasRowShapes<TArray>,
                      "matrices whose shapes differ by row cannot be moved: make the field anew");
        const Redistribute &moved = rows(kind);
        const CommunicatorView comm = after().comm;
        std::shared_ptr<ArrayPair<TArray>> made;
        bool onDevice = false;
        comm.guarded([&] {
            made = std::make_shared<ArrayPair<TArray>>();
            onDevice = field.father->dataSize() > 0 && field.father->valid(MemorySpace::Device);
            field.father->toHost();
            made->father = std::make_shared<TArray>(field.father->name(), comm);
            made->father->adoptShape(*field.father);
            made->son = std::make_shared<TArray>(field.son->name(), comm);
            commits_.reserve(commits_.size() + 1);
        });
        moved.move(*field.father, *made->father);
        attachField(*made, entitiesOf(kind));
        made->trans.initPersistentPull();
        made->trans.startPersistentPull();
        made->trans.waitPersistentPull();
        if (comm.allReduce(onDevice ? 1 : 0, MPI_MAX) != 0) {
            comm.guarded([&] { made->toDevice(); });
            made->trans.initPersistentPull();
        }
        comm.guarded([&] {
            commits_.push_back([&field, made] {
                field.father = std::move(made->father);
                field.son = std::move(made->son);
                field.trans = std::move(made->trans);
            });
        });
    }
    template <class TArray>
    static constexpr bool hasRowShapes = [] {
        if constexpr (requires { TArray::shapePerRow; })
            return TArray::shapePerRow;
        else
            return false;
    }();

    UnstructuredMesh &mesh_;
    bool committed_ = false;
    std::vector<std::function<void()>> commits_;
};

/// How to find new parts.
struct RepartitionOptions {
    /// Curve: quick, and few cells move where costs change little. Graph: fewest faces between ranks.
    Partitioner partitioner = Partitioner::Curve;
    double imbalance = 0.03; ///< for Graph: see PartitionOptions
    int seed = 1;
};

/// Ranks for the own cells of a mesh so that all have equal shares of the costs, [own cells] from 1 or empty on all
/// ranks: equal costs. Parts are found from scratch and then given to the ranks that have most of them already.
/// Collective. Memory on each rank O(ranks), and on rank 0 a number for each rank and part of which it has cells.
/// Throws as partitionCells.
std::vector<int> repartitionTargets(const UnstructuredMesh &mesh, std::span<const index> costs = {},
                                    const RepartitionOptions &options = {});

/// What a distribution of work costs: the same on all ranks.
struct Imbalance {
    double mean = 0;
    double most = 0;
    int slowest = 0; ///< the lowest rank that has the most

    /// How much more than the mean the slowest rank has: 0.2 for 20 %.
    double excess() const noexcept { return mean > 0 ? most / mean - 1 : 0; }
};
/// Of seconds, cells or costs of this rank. Collective; two reductions. Throws ArgumentError on all ranks for a number
/// that is negative or not finite.
Imbalance measureImbalance(const CommunicatorView &comm, double own);
/// "rank 3 has 1.42 x the mean of 4 ranks: balancing would save at most 30 % of a step".
std::string describeImbalance(const CommunicatorView &comm, const Imbalance &imbalance);

/// Says when a time loop should repartition: when the excess over the mean, times the steps since, has cost more than
/// moving did last time, and is above a threshold.
///
///     Rebalancing policy(0.1);
///     for (...) {
///         ... measure `seconds` of this rank's own computing ...
///         if (policy.isDue(comm, seconds)) {
///             ... repartition ...
///             policy.moved(comm, secondsThatItTook);
///         }
///     }
class Rebalancing {
  public:
    /// `threshold`: less excess than this is left alone. Throws ArgumentError unless it is 0 or more.
    explicit Rebalancing(double threshold);

    /// Counts a step. Collective; three reductions. The same answer on all ranks.
    bool isDue(const CommunicatorView &comm, double seconds);
    /// After moving, which took this rank so long. Collective; two reductions.
    void moved(const CommunicatorView &comm, double seconds);
    /// Of the last step.
    const Imbalance &last() const noexcept { return last_; }

  private:
    double threshold_;
    double lost_ = 0; ///< seconds since the last move that the slowest rank took beyond the mean
    double cost_ = 0; ///< of the last move
    Imbalance last_;
};

} // namespace DNDS::Geom
