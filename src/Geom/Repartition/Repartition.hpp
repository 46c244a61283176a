/// @file Repartition.hpp
/// @brief Moves the cells of a mesh, and the fields on it, to other ranks while a program runs.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// A mesh with another partition, made beside the old one, and the movement of rows to it: the basis of `Repartition`,
/// for programs that keep both meshes.
class MovedMesh {
  public:
    /// Builds the new mesh from the old one; `targets` are ranks, [own cells]. Collective; sends only cells that change
    /// ranks, but collects ghosts and renumbers everything. Of the options, uses ghosts, order of cells and progress:
    /// pass those with which the mesh was built. `before` must outlive this. Throws on all ranks ArgumentError for
    /// targets that are not ranks, or whose number is not that of own cells; StateError for a mesh that was moved from;
    /// MemoryError.
    MovedMesh(const UnstructuredMesh &before, std::span<const int> targets, const MeshOptions &options = {});

    /// The new mesh. Local.
    const UnstructuredMesh &after() const noexcept { return after_; }
    /// Hands over the new mesh; afterwards `after` is empty. Local.
    UnstructuredMesh take() noexcept { return std::move(after_); }
    /// The movement of owned rows, for any arrays. Local for cells; for others Collective at the first call. Throws on
    /// all ranks ArgumentError for edges, which the new mesh numbers in another way; StateError for faces of a mesh
    /// without ghosts on several ranks, and for rows first requested after the new mesh was handed over or the old one
    /// replaced.
    const Redistribute &rows(MeshEntityKind kind);
    /// The entities of the new mesh: see UnstructuredMesh::entities.
    const MeshEntities &entitiesOf(MeshEntityKind kind) const { return after_.entities(kind); }

    /// Whether a field with this pattern has rows of the old mesh, as it was when this was made. Local.
    bool wasOn(MeshEntityKind kind, const std::shared_ptr<const ExchangePattern> &pattern) const noexcept;
    /// Throws StateError unless both meshes still exist. Local.
    void requireMeshes() const;

  private:
    /// The old mesh, which the program may replace: `patterns_` tell.
    const UnstructuredMesh &before_;
    UnstructuredMesh after_;
    std::array<std::shared_ptr<const ExchangePattern>, 3> patterns_; ///< patterns of the old mesh: cells, nodes, faces
    /// The movement of cells is made with the mesh; those of nodes and faces when first asked for.
    std::unique_ptr<const Redistribute> cells_, nodes_, faces_;
};

/// The owned rows of a field to move, and the entities that they belong to.
struct MovingRows {
    MeshEntityKind kind;
    const ArrayBase *rows;
};
/// Throws ArgumentError on all ranks, naming the first difference, if their fields differ in number, name, type, layout
/// or kind. Collective; two reductions if all is well.
void requireSameFields(const CommunicatorView &comm, std::span<const MovingRows> fields);

/// The interface of Repartition to a field of any type that moves to another partition.
/// Calls come in the order of declaration, each for all fields before the next: prepare, rows move, attach, pull,
/// device, commit.
class MovingField {
  public:
    MovingField() = default;
    MovingField(const MovingField &) = delete;
    MovingField &operator=(const MovingField &) = delete;
    virtual ~MovingField() = default;

    /// The owned rows of the old field, and its ghosts' pattern. Local. Throws StateError for a pair without arrays.
    virtual const ArrayBase &father() const = 0;
    virtual const std::shared_ptr<const ExchangePattern> &pattern() const = 0;
    /// Whether a pull or push of the old field was started and not waited for yet. Local.
    virtual bool inFlight() const noexcept = 0;
    /// Makes the new field, without rows. Local.
    virtual Redistribute::Move prepare(const CommunicatorView &comm) = 0;
    /// Whether this rank's rows were on the device when it was prepared.
    bool onDevice() const noexcept { return onDevice_; }
    /// After its rows have moved: adds ghosts, and prepares their pull. Collective.
    virtual void attach(const MeshEntities &entities) = 0;
    /// The first pull of the new ghosts, and its completion. All ranks.
    virtual void startPull() = 0;
    virtual void waitPull() = 0;
    /// Sends it to the device and prepares its pull there. Collective.
    virtual void toDevice() = 0;
    /// Replaces the old field by the new one. Local.
    virtual void commit() noexcept = 0;

  protected:
    bool onDevice_ = false;
};

/// A father and its son, in memory of the host or of a device.
template <class TArray>
class MovingPair final : public MovingField {
  public:
    /// Refers to the field, which must outlive this.
    explicit MovingPair(ArrayPair<TArray> &field) : field_(field) {
        static_assert(!TArray::shapeStatic.shapePerRow(),
                      "matrices whose shapes differ by row cannot be moved: make the field anew");
    }
    const ArrayBase &father() const override { return *field_.father; }
    const std::shared_ptr<const ExchangePattern> &pattern() const override { return field_.trans.pattern(); }
    bool inFlight() const noexcept override { return field_.trans.inFlight(); }
    Redistribute::Move prepare(const CommunicatorView &comm) override {
        onDevice_ = field_.father->dataSize() > 0 && field_.father->valid(MemorySpace::Device);
        field_.father->toHost();
        made_.father = std::make_shared<TArray>(field_.father->name(), comm);
        made_.father->adoptShape(*field_.father);
        made_.son = std::make_shared<TArray>(field_.son->name(), comm);
        return {&*field_.father, &*made_.father};
    }
    void attach(const MeshEntities &entities) override {
        attachField(made_, entities);
        made_.trans.initPersistentPull();
    }
    void startPull() override { made_.trans.startPersistentPull(); }
    void waitPull() override { made_.trans.waitPersistentPull(); }
    void toDevice() override {
        made_.father->comm().guarded([&] { made_.toDevice(); });
        made_.trans.initPersistentPull();
    }
    void commit() noexcept override {
        field_.father = std::move(made_.father);
        field_.son = std::move(made_.son);
        field_.trans = std::move(made_.trans);
    }

  private:
    ArrayPair<TArray> &field_;
    /// The field on the new partition, until `commit`.
    ArrayPair<TArray> made_;
};

/// A mesh on its way to another partition, beside the old one, with fields of any type and layout:
///
///     const std::vector<int> targets = repartitionTargets(mesh, costs);   // or any ranks: [own cells]
///     Repartition move(mesh, targets, options);                           // those of buildMesh
///     move.onCells(u, residual).onNodes(p);
///     move.commit();                                                      // mesh, u, residual and p are the new ones
///
/// Until `commit`, mesh and fields are unchanged, and remain so if anything fails, which throws on all ranks. The new
/// mesh is the one that `buildMesh` makes of the same file with the parts `targets`, to the bit; file numbers are kept.
/// (With polyhedra, the corners of faces may begin elsewhere, which may change a rank's node numbers.) Fields keep
/// their values by file number; their ghosts are pulled, and their persistent pulls prepared with default options. The
/// program remakes everything else that refers to the old mesh (patterns, exchanges, groups, plans, views). Fields on
/// the device are moved through the host and end on the device.
///
/// Needs about as much memory again as the old mesh and fields. No pull or push of the fields may be in flight.
class Repartition : private MovedMesh {
  public:
    /// Builds the new mesh, as MovedMesh.
    Repartition(UnstructuredMesh &mesh, std::span<const int> targets, const MeshOptions &options = {})
        : MovedMesh(mesh, targets, options), mesh_(mesh) {}
    Repartition(const Repartition &) = delete;
    Repartition &operator=(const Repartition &) = delete;

    /// Adds fields to move: ArrayPairs, and ranges of them. Collective; all ranks pass the same. The fields of one call
    /// share one message per peer. They must outlive `commit`. Throws on all ranks, without adding any of them,
    /// ArgumentError for a field of another mesh or another partition of this one, and for fields that differ between
    /// ranks; StateError for a field whose persistent pull or push is in flight, for a decompressed CSR array, for
    /// faces of a mesh without ghosts on several ranks, and after `commit`; MemoryError.
    template <class... TFields>
    Repartition &onCells(TFields &...fields) {
        return on(MeshEntityKind::Cells, fields...);
    }
    template <class... TFields>
    Repartition &onNodes(TFields &...fields) {
        return on(MeshEntityKind::Nodes, fields...);
    }
    template <class... TFields>
    Repartition &onFaces(TFields &...fields) {
        return on(MeshEntityKind::Faces, fields...);
    }

    using MovedMesh::after;
    using MovedMesh::rows;

    /// Replaces the old mesh and fields by the new ones; `after` is empty then. Local. Later calls do nothing. A pull
    /// or push started since a field was added is dropped, with a warning that names the field.
    void commit() noexcept;

  private:
    template <class... TFields>
    Repartition &on(MeshEntityKind kind, TFields &...fields) {
        std::vector<std::unique_ptr<MovingField>> moving;
        after().comm.guarded([&] { (list(fields, moving), ...); });
        take(kind, std::move(moving));
        return *this;
    }
    template <class TFields>
    static void list(TFields &fields, std::vector<std::unique_ptr<MovingField>> &moving) {
        if constexpr (PairField<TFields>)
            moving.push_back(std::make_unique<MovingPair<typename TFields::ArrayType>>(fields));
        else
            for (auto &field : fields)
                list(field, moving);
    }
    void take(MeshEntityKind kind, std::vector<std::unique_ptr<MovingField>> moving);

    UnstructuredMesh &mesh_;
    bool committed_ = false;
    /// Moved, not committed.
    std::vector<std::unique_ptr<MovingField>> fields_;
};

/// Options of `repartitionTargets`.
struct RepartitionOptions {
    /// Curve: quick, and few cells move if costs change little. Graph: fewest faces between ranks.
    Partitioner partitioner = Partitioner::Curve;
    double imbalance = 0.03; ///< for Graph: see PartitionOptions
    int seed = 1;
};

/// Ranks for the own cells of a mesh such that all have equal shares of the costs: [own cells], from 1, or empty on all
/// ranks for equal costs. Finds parts from scratch, then gives each to the rank that already has most of it.
/// Collective. Memory on each rank O(ranks), and on rank 0 a number for each rank and part that overlap. Throws as
/// partitionCells, hence for options that differ between ranks.
std::vector<int> repartitionTargets(const UnstructuredMesh &mesh, std::span<const index> costs = {},
                                    const RepartitionOptions &options = {});

using DNDS::describeImbalance;
using DNDS::measureImbalance;
using DNDS::Rebalancing;

} // namespace DNDS::Geom
