/// @file UnstructuredMesh.hpp
/// @brief One rank's part of a mesh: cells, nodes and faces with ghosts, and their connectivity. Plain data.
///
/// - lists of mesh entities by global or by local number: two types, and conversions between them
/// - `fingerprint`: a number that identifies the mesh of a checkpoint
#pragma once

#include "DNDS/Array/ArrayAdjacency.hpp"
#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// Rows of global numbers.
/// State is a type: conversions make the other type, so a list is never read with the wrong kind of numbers.
using GlobalAdjacency = ArrayAdjacency<NonUniformSize, NonUniformSize, index>;
/// Rows of local numbers: owned entities first, then ghosts.
using LocalAdjacency = ArrayAdjacency<NonUniformSize, NonUniformSize, LocalIndex>;
/// Two local numbers per row.
using LocalPairs = ArrayAdjacency<2, 2, LocalIndex>;

/// The local number for "none", at the boundary of the mesh.
inline constexpr LocalIndex noEntity = -1;
/// A local number for an entity that exists, but of which this rank has no copy.
inline constexpr LocalIndex notLocal = -2;

/// The same rows with local numbers of the entities of `mapping`. Local. O(entries log ghosts). Negative entries mean
/// "none" and become `noEntity`. Throws IndexError for an entity that this rank neither owns nor has as a ghost,
/// ArgumentError if local numbers do not fit 32 bits.
LocalAdjacency toLocal(const GlobalAdjacency &rows, const GhostMapping &mapping);

/// The same rows with global numbers; the inverse of `toLocal`. `noEntity` and `notLocal` become InvalidIndex. Local.
/// Throws IndexError for an entry that is no local number.
GlobalAdjacency toGlobal(const LocalAdjacency &rows, const GhostMapping &mapping);

/// Rows from starts [rows + 1] and entries. Local.
LocalAdjacency makeAdjacency(std::string name, CommunicatorView comm, std::span<const index> starts,
                             std::span<const LocalIndex> entries);

/// The transpose: the rows of `rows` that contain each of `columns` entities, in the order of `order` [rows]. Negative
/// entries are skipped. Local. O(entries).
LocalAdjacency transpose(std::string name, const LocalAdjacency &rows, index columns,
                         std::span<const LocalIndex> order);

/// The same, in ascending order: the inverse of an adjacency. Local. O(entries).
LocalAdjacency transpose(std::string name, const LocalAdjacency &rows, index columns);

/// The composition: row i has the entries of the rows `second[k]` of all k in `first[i]`, each once, in the order of
/// their first appearance. Negative entries are skipped. Local. O(entries of the rows that are read). Throws IndexError
/// for an entry of `first` that is no row of `second`.
///
///     auto cellsAround = compose("cells around", mesh.cellNodes, mesh.nodeCells); // the cell itself included
LocalAdjacency compose(std::string name, const LocalAdjacency &first, const LocalAdjacency &second);

/// The restriction: the rows `kept`, in that order, with `newNumbers[c]` in place of each entry c. Entries are left out
/// where they or their new numbers are negative. Local. O(entries). Throws IndexError for rows that do not exist and
/// for entries without a new number.
LocalAdjacency restricted(std::string name, const LocalAdjacency &rows, std::span<const LocalIndex> kept,
                          std::span<const LocalIndex> newNumbers);

struct MeshConnectivity;
struct MeshEntities;
template <class TArray>
void attachField(ArrayPair<TArray> &field, const MeshEntities &entities);

/// An ArrayPair, or a class derived from one, as ArrayDof.
template <class T>
concept PairField = requires {
    typename T::ArrayType;
    requires std::derived_from<T, ArrayPair<typename T::ArrayType>>;
};

/// The patch number of faces inside the mesh or on a periodic boundary. Boundary faces that the file puts into no patch
/// have the number of the patch `unassigned`.
inline constexpr int noPatch = -1;

/// The kinds of entities of a mesh, for fields and adjacencies. Edges join two corners of a cell; in two dimensions
/// they are the faces.
enum class MeshEntityKind : unsigned char { Cells, Nodes, Faces, Edges };

/// The entities of one kind of a mesh on one rank: owned ones first, then ghosts.
struct MeshEntities {
    index owned = 0;
    index ghosts = 0;
    /// Owners and copies; `pattern->mapping()` has the global numbers. Each periodic image is a ghost of its own, so an
    /// entity may be copied more than once.
    std::shared_ptr<const ExchangePattern> pattern;
    std::vector<index> fileNumbers; ///< [all] position in the file, from 0; faces and edges: -1
    std::vector<index> fileIds;     ///< [all] the file's own number, from 1 in each zone; nodes: number + 1; faces: 0
                                    ///< if the file does not list them; edges: 0
    std::vector<int> images;        ///< [all] number in UnstructuredMesh::images; 0 for owned ones

    /// Owned entities and ghosts. Local, O(1).
    index size() const noexcept { return owned + ghosts; }
    /// Global numbers and owners. Local. Throws StateError if there is no pattern.
    const GhostMapping &mapping() const { return *builtPattern().mapping(); }
    /// `*pattern`. Throws StateError without one. Local.
    const ExchangePattern &builtPattern() const {
        DNDS_CHECK(pattern != nullptr, StateError, "this mesh was not built by buildMesh, or was moved from");
        return *pattern;
    }
    /// [owned] of `fileNumbers`: the permanent numbers of own rows, as checkpoints take them. Local, O(1).
    std::span<const index> ownFileNumbers() const {
        return std::span<const index>(fileNumbers).first(std::min(fileNumbers.size(), static_cast<std::size_t>(owned)));
    }

    /// A field of zeros with a row for each owned entity and each ghost, and its persistent pull. Collective. On the
    /// device, prepare the pull again after `toDevice`.
    ///
    ///     auto u = mesh.cells.field<5>("u");                    // ArrayPair<ParArray<real, 5>>
    ///     auto p = mesh.nodes.field<1, float>("p");
    ///     auto q = mesh.cells.field<real>("q", species);        // a width chosen at run time
    ///     auto r = mesh.cells.field<ArrayDof<5>>("r");          // run-time sizes follow the name: ("r", 5, 1)
    ///     u.trans.startPersistentPull();
    ///     u.trans.waitPersistentPull();
    template <rowsize width, class T = real>
    ArrayPair<ParArray<T, width>> field(const std::string &name) const {
        return field<ArrayPair<ParArray<T, width>>>(name);
    }
    template <class T>
    requires(!PairField<T>) ArrayPair<ParArray<T, DynamicSize>> field(const std::string &name, rowsize width)
    const {
        return makeField<ArrayPair<ParArray<T, DynamicSize>>>([&](auto &made, CommunicatorView comm) {
            DNDS_CHECK(width > 0, ArgumentError, "a field has at least one number in a row: '{}' was to have {}", name,
                       width);
            made.initPair(name, comm);
            made.father->resize(owned, width);
        });
    }
    template <PairField TField, class... Shape>
    TField field(const std::string &name, Shape... shape) const {
        return makeField<TField>([&](TField &made, CommunicatorView comm) {
            made.initPair(name, comm, shape...);
            made.father->resize(owned);
        });
    }

  private:
    template <class TField, class Create>
    TField makeField(const Create &create) const {
        const CommunicatorView comm = builtPattern().context().comm();
        TField made;
        comm.guarded([&] { create(made, comm); });
        attachField(made, *this);
        made.trans.initPersistentPull();
        return made;
    }
};

/// A part of the boundary.
struct MeshPatch {
    std::string name;
    std::string kind;
    std::string family;
    std::vector<LocalIndex> faces; ///< owned and ghost, ascending; a face may be in several patches
    int id = noPatch;              ///< its position in UnstructuredMesh::patches
    index owned = 0;               ///< number of `faces` that this rank owns: the first ones

    /// The faces of the patch that this rank owns: each face is in the list of one rank, for boundary sums. A
    /// boundary face is owned by the rank of its cell.
    std::span<const LocalIndex> ownFaces() const {
        return std::span<const LocalIndex>(faces).first(static_cast<std::size_t>(owned));
    }
};

/// The result of `buildMesh`. Sizes [cells], [nodes], [faces] count owned ones and ghosts.
///
/// Faces are those of all local cells. The first cell of a face is the one that comes first in the file; its nodes are
/// counter-clockwise seen from the second, so that its normal leaves the first. (In two dimensions a face is an edge
/// with the first cell on its left.) That is the same on all ranks and for every number of ranks. For each face of a
/// periodic boundary the own cell is first and a ghost, an image of the cell on the other side, is second.
struct UnstructuredMesh {
    /// Empty; `buildMesh` makes whole ones.
    explicit UnstructuredMesh(CommunicatorView comm);

    CommunicatorView comm;
    std::string origin;
    int dimension = 0;   ///< dimension of cells: 2 or 3
    bool planar = false; ///< two-dimensional cells in a plane z = const

    MeshEntities cells;
    MeshEntities nodes;
    MeshEntities faces;
    std::vector<ElementType> cellTypes; ///< [cells]
    std::vector<int> cellLayers;        ///< [cells] 0: owned, 1: first layer of ghosts, ...
    /// [own cells] positions on the Hilbert curve through the mesh, by which ranks sort their cells.
    std::vector<index> curvePositions;
    int ghostLayers = 0;           ///< number of layers of ghost cells with which the mesh was built
    bool ghostsByNodes = true;     ///< whether a cell shares a node with one of the previous layer, or else a face
    ParArray<real, 3> coordinates; ///< [nodes]; images at their own positions

    /// [cells] nodes as in the standard; of a Polyhedron each once, its faces are in `cellFaces`.
    LocalAdjacency cellNodes;
    /// [cells] in the order of the standard; collapsed faces are left out.
    LocalAdjacency cellFaces;
    /// [cells] the cell across each of `cellFaces`; `noEntity` at the boundary, `notLocal` beyond the last layer.
    LocalAdjacency cellCells;
    /// [nodes] all local cells that have it, in file order. Complete around own cells if ghosts are by nodes, except
    /// across periodic boundaries, whose images have nodes of their own: see `nodeCellsAcrossPeriodic`. Where rows are
    /// complete, sums over them have the same bits for every number of ranks.
    LocalAdjacency nodeCells;
    LocalAdjacency faceNodes; ///< [faces] corners
    LocalPairs faceCells;     ///< [faces] first and second cell, or as in `cellCells`

    std::vector<LocalIndex> boundaryFaces; ///< ascending; without those of periodic boundaries
    std::vector<LocalIndex> boundaryCells; ///< [boundaryFaces] the cell of each
    /// Ascending: faces of own cells that another rank owns. With the owned faces, these are all faces of own cells.
    std::vector<LocalIndex> sharedFaces;
    ParArray<int, 1> facePatches;   ///< [faces] the id of the face's first patch, or `noPatch`
    std::vector<MeshPatch> patches; ///< as in the source, then "unassigned": boundary faces in no other
    /// Own faces of periodic boundaries, including those whose other side is also owned here: pairs of a face and the
    /// image in `images` of its second cell.
    std::vector<std::pair<LocalIndex, int>> periodicFaces;
    /// The marks of `periodicFaces` in the source, in the same order: pairs of a face and a mark as in
    /// `SourceMesh::faceMarks`. A face has several if several connections of one motion list it.
    std::vector<std::pair<LocalIndex, int>> periodicMarks;
    std::vector<PeriodicConnection> periodic; ///< as in the source
    std::vector<MeshImage> images;            ///< 0 is the mesh itself

    /// The patch of that name. Local, O(patches). Throws an ArgumentError that lists the existing names: the same on
    /// all ranks, which all know all patches.
    const MeshPatch &patch(std::string_view name) const;

    /// A pattern that pulls only the first `layers` layers of ghost cells and leaves the other ghosts unchanged.
    /// Collective; see ExchangePattern::restrictedTo. Throws ArgumentError on all ranks for more layers than there are.
    ///
    ///     Exchange pull(mesh.firstLayers(1), Direction::Pull, {u.trans.member()});
    std::shared_ptr<const ExchangePattern> firstLayers(int layers) const;

    /// `cells`, `nodes`, `faces`, or the edges: those of all local cells, with global numbers, owners and ghosts. Local
    /// for all but edges of a three-dimensional mesh, which are numbered when they are first used, here, in `adjacency`
    /// or in `ghostsBy`: that is Collective. O(edges of local cells), seven sparse exchanges; then Local, O(1).
    ///
    /// An edge is identified by the file numbers of its two corners. A rank that has it in an own cell owns it, chosen
    /// evenly by a hash. Numbers depend only on the mesh and the partition. Kept until the mesh is replaced, as by
    /// `Repartition::commit`; the first call must be the only one on this rank. Throws on all ranks StateError for a
    /// mesh that was not built, ArgumentError for more than 2^31 - 1 local edges, MemoryError.
    ///
    ///     auto circulation = mesh.entities(MeshEntityKind::Edges).field<1>("circulation");
    const MeshEntities &entities(MeshEntityKind kind) const;

    /// The entities `to` of each local entity `from`, owned ones and ghosts, by local numbers: any two different kinds.
    /// Collective if it is the first use of edges (see `entities`), else Local. Made when first asked for, O(entries),
    /// and kept as edges are; then O(1). Throws as `entities`; ArgumentError for equal kinds (`compose`: neighbours).
    ///
    /// Rows of smaller entities are complete: nodes, edges and faces of cells in the order of the standard (of a
    /// Polyhedron as its faces list them), nodes and edges of faces around them, the two nodes of an edge from the
    /// lower to the higher file number (in two dimensions, as the face has them). Faces and edges have corners,
    /// `cellNodes` other nodes, too.
    ///
    /// Rows of larger entities have local ones only: cells in file order, others ascending. They are complete for all
    /// entities of own cells if the mesh has ghosts by nodes; with ghosts by faces, only the cells of faces are;
    /// without ghosts, only rows of entities that no other rank has. Across periodic boundaries nodes and edges are not
    /// connected, as in `nodeCells`; faces are: both sides are one face, with the nodes of one of them, so that
    /// faces of nodes and edges (in two dimensions, edges of nodes) there depend on the partition: go through cells.
    ///
    ///     const LocalAdjacency &edgeNodes = mesh.adjacency(MeshEntityKind::Edges, MeshEntityKind::Nodes);
    const LocalAdjacency &adjacency(MeshEntityKind from, MeshEntityKind to) const;

    /// A pattern for fields of cells with other ghosts than the mesh's: the cells of other ranks that can be reached
    /// from own cells in `layers` steps, each to a cell that shares an entity of the kind `through`, across periodic
    /// boundaries, too. There may be more layers than the mesh has; each cell is one ghost, whatever its images. Ghosts
    /// ascend by global number: `mapping()->toLocal(number)` finds them. Collective; two sparse exchanges per layer
    /// beyond the first.
    ///
    /// Throws on all ranks ArgumentError for `through` = Cells and fewer layers than 0, and StateError if the mesh's
    /// ghosts do not have all neighbours of own cells: one layer by nodes is enough, for Faces also by faces.
    ///
    ///     u.trans.usePattern(mesh.ghostsBy(MeshEntityKind::Edges, 3)); // [own cells] u.father
    ///     u.trans.createMPITypes();
    std::shared_ptr<const ExchangePattern> ghostsBy(MeshEntityKind through, int layers) const;

    /// A field on the cells: see MeshEntities::field. Collective.
    ///
    ///     auto u = mesh.field<5>("u");
    ///     auto q = mesh.field("q", species);
    template <rowsize width, class T = real>
    auto field(const std::string &name) const {
        return cells.field<width, T>(name);
    }
    template <class T = real, class... Shape>
    auto field(const std::string &name, Shape... shape) const {
        return cells.field<T>(name, shape...);
    }

  private:
    MeshConnectivity &connectivity() const;
    mutable std::shared_ptr<MeshConnectivity> connectivity_; ///< edges and adjacencies made so far; null: none
};

/// Connects a field whose father has a row for each owned entity: afterwards it has a row for each ghost, too, and can
/// be pulled. Collective.
///
///     ArrayPair<ParArray<real, 5>> u;
///     u.initPair("u", mesh.comm);
///     u.father->resize(mesh.cells.owned);
///     attachField(u, mesh.cells);
///     u.trans.pullOnce();
template <class TArray>
void attachField(ArrayPair<TArray> &field, const MeshEntities &entities) {
    field.transAttach();
    field.trans.usePattern(entities.pattern);
    field.trans.createMPITypes();
}

/// A hash of a mesh's cells and nodes, their positions in the file, their connectivity and the coordinates: the same on
/// all ranks and for any number of ranks, partition and local order of one mesh. Another mesh, another order of the
/// file or moved nodes have another hash (except for one case in 2^64; not cryptographic). For
/// `CheckpointOptions::mesh` and `CheckpointReadOptions::mesh`.
///
/// A sum of hashes over owned cells and nodes. Collective: one reduction, O(cells + nodes). Boundary patches and the
/// file format do not matter. Coordinates matter to the last bit: a mesh written with fewer digits is another mesh.
std::uint64_t fingerprint(const UnstructuredMesh &mesh);

} // namespace DNDS::Geom
