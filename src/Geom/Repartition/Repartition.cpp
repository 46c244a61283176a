#include "DNDS/Geom/Repartition/Repartition.hpp"

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Build/RebuildMesh.hpp"
#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace DNDS::Geom {

namespace {

/// Numbers of owned nodes or faces that are the same on any partition: file numbers; for a face, the number of its
/// first cell and the face's place in that cell.
/// O(owned entities); the place in the cell is below FaceLink::maxSlots.
std::vector<index> permanentNumbers(const UnstructuredMesh &mesh, MeshEntityKind kind) {
    if (kind == MeshEntityKind::Nodes) {
        const auto own = mesh.nodes.ownFileNumbers();
        return {own.begin(), own.end()};
    }
    std::vector<index> numbers;
    const auto faceCells = mesh.faceCells.view();
    for (index face = 0; face < mesh.faces.owned; ++face) {
        const LocalIndex cell = faceCells(face, 0);
        DNDS_CHECK(
            cell >= 0, StateError,
            "face {} belongs to a cell that is not on this rank: rows of faces move where meshes have a layer of "
            "ghosts",
            face);
        const auto ofCell = mesh.cellFaces.view()[cell];
        const auto slot = std::ranges::find(ofCell, static_cast<LocalIndex>(face)) - ofCell.begin();
        numbers.push_back(mesh.cells.fileNumbers[toSize(cell)] * FaceLink::maxSlots + slot);
    }
    return numbers;
}

/// The rank that owns each of `before` afterwards, found where old and new owners meet. Collective.
/// A directory by hashes of numbers modulo ranks: new owners register, old owners ask. One sparse exchange and one
/// query. O(before + after) words and time.
std::vector<int> findOwners(CommunicatorContext &context, std::span<const index> before, std::span<const index> after) {
    const int ranks = context.comm().size();
    // Mixed first: numbers of faces are multiples of a power of two plus small numbers.
    const auto meetsAt = [ranks](index number) {
        return static_cast<int>(mixBits(static_cast<std::uint64_t>(number)) % static_cast<std::uint64_t>(ranks));
    };
    const RankLists told = sparseExchange(
        context, packByRank(
                     ranks, after.size(), [&](std::size_t i) { return meetsAt(after[i]); },
                     [](std::size_t) { return 1; }, [&](std::size_t i, index *word) { *word = after[i]; }));
    std::vector<int> owners(before.size());
    std::unordered_map<index, int> known;
    context.comm().guarded([&] {
        for (std::size_t k = 0; k < told.size(); ++k)
            for (const index number : told.list(k))
                known.emplace(number, told.ranks[k]);
    });
    queryOwners(
        context, before.size(), [&](std::size_t i) { return meetsAt(before[i]); },
        [&](std::size_t i) { return before[i]; },
        [&](index number, std::vector<index> &reply) { reply.push_back(known.at(number)); },
        [&](std::size_t i, RecordReader &reader) { owners[i] = static_cast<int>(reader.next()); });
    return owners;
}

/// The movement of rows to `targets`, after which row k is the row with number `after[k]`. Collective.
/// Rows arrive in the order of sending; the permanent numbers travel first and give the permutation to the order of
/// the new mesh. O(rows) on average.
Redistribute movement(std::shared_ptr<const GlobalMapping> mapping, std::span<const int> targets,
                      std::span<const index> before, std::span<const index> after) {
    const CommunicatorView comm = mapping->context()->comm();
    const Redistribute arriving = Redistribute::toRanks(std::move(mapping), targets);
    ParArray<index, 1> numbers("permanent numbers", comm);
    comm.guarded([&] {
        numbers.resize(static_cast<index>(before.size()));
        std::ranges::copy(before, numbers.data());
    });
    arriving.move(numbers);
    std::vector<index> places;
    comm.guarded([&] {
        std::unordered_map<index, index> placeOf;
        for (std::size_t k = 0; k < after.size(); ++k)
            placeOf.emplace(after[k], static_cast<index>(k));
        for (index i = 0; i < numbers.size(); ++i)
            places.push_back(placeOf.at(std::as_const(numbers)(i, 0)));
    });
    return arriving.permuted(places);
}

const char *wordOf(MeshEntityKind kind) {
    return kind == MeshEntityKind::Cells ? "cells" : kind == MeshEntityKind::Nodes ? "nodes" : "faces";
}

} // namespace

/// A mesh that is replaced gets other patterns: the pointers kept here tell whether a field, and `before_` itself,
/// still belong to the mesh that was moved.
MovedMesh::MovedMesh(const UnstructuredMesh &mesh, std::span<const int> targets, const MeshOptions &options)
    : before_(mesh), after_(mesh.comm), patterns_{mesh.cells.pattern, mesh.nodes.pattern, mesh.faces.pattern} {
    auto [after, cells] = rebuildMesh(mesh, targets, options);
    mesh.comm.guarded([&, &moved = cells] { cells_ = std::make_unique<const Redistribute>(std::move(moved)); });
    after_ = std::move(after);
}

bool MovedMesh::wasOn(MeshEntityKind kind, const std::shared_ptr<const ExchangePattern> &pattern) const noexcept {
    return kind != MeshEntityKind::Edges && pattern == patterns_[static_cast<std::size_t>(kind)];
}

void MovedMesh::requireMeshes() const {
    DNDS_CHECK(after_.cells.pattern != nullptr, StateError,
               "the new mesh has been handed out, by commit or take: move fields before, or make another Repartition");
    DNDS_CHECK(before_.cells.pattern == patterns_.front(), StateError,
               "{}: the mesh has been replaced since this movement was made: make another Repartition", after_.origin);
}

/// Cells moved with the mesh. Nodes and faces are numbered by the new owners, so rows of these are found by permanent
/// numbers when they are first asked for: a sparse exchange, a query, and a move of the numbers.
const Redistribute &MovedMesh::rows(MeshEntityKind kind) {
    if (kind == MeshEntityKind::Cells)
        return *cells_;
    DNDS_CHECK(kind != MeshEntityKind::Edges, ArgumentError,
               "{}: fields on edges do not move: the new mesh numbers its edges anew", after_.origin);
    std::unique_ptr<const Redistribute> &known = kind == MeshEntityKind::Nodes ? nodes_ : faces_;
    if (known == nullptr)
        failTogether(after_.comm, [&] {
            requireMeshes();
            const std::vector<index> before = permanentNumbers(before_, kind);
            const std::vector<index> after = permanentNumbers(after_, kind);
            const MeshEntities &entities = kind == MeshEntityKind::Nodes ? before_.nodes : before_.faces;
            const std::shared_ptr<const GlobalMapping> mapping = entities.mapping().global();
            const std::vector<int> targets = findOwners(*mapping->context(), before, after);
            known = std::make_unique<const Redistribute>(movement(mapping, targets, before, after));
        });
    return *known;
}

/// Before anything moves: the fields of a call share messages, whose lengths would differ.
void requireSameFields(const CommunicatorView &comm, std::span<const MovingRows> fields) {
    std::vector<std::string> mine;
    comm.guarded([&] {
        for (const auto &[kind, rows] : fields)
            mine.push_back(fmt::format("'{}' on {} ({})", rows->label(), wordOf(kind), rows->shape().signature()));
    });
    requireSame(comm, mine, [&](std::size_t k, const std::string *first) {
        const std::string none = "missing";
        throw ArgumentError(fmt::format("ranks move different fields: field {} is {} on rank {}, {} on rank 0", k + 1,
                                        k < mine.size() ? mine[k] : none, comm.rank(),
                                        first != nullptr ? *first : none));
    });
}

/// Fields are moved now and committed later: until then both copies exist, so that a failure leaves the old ones
/// untouched. Pulls of all fields overlap.
/// O(rows of the fields) memory until commit: both copies of each field. Rows of all fields share the messages of
/// one move; pulls of their ghosts are all started before the first wait.
void Repartition::take(MeshEntityKind kind, std::vector<std::unique_ptr<MovingField>> moving) {
    const CommunicatorView &comm = after().comm;
    std::vector<MovingRows> given;
    comm.guarded([&] {
        requireMeshes();
        for (const auto &field : moving) {
            given.push_back({kind, &field->father()});
            DNDS_CHECK(wasOn(kind, field->pattern()), ArgumentError,
                       "'{}' is no field on the {} of this mesh as it was partitioned when the movement was made: it "
                       "belongs to another mesh, or was not moved when the mesh was; arrays that are no fields move by "
                       "`rows`",
                       field->father().label(), wordOf(kind));
            DNDS_CHECK(!field->inFlight(), StateError,
                       "a pull or push of '{}' is in flight: wait for it before the field moves to other ranks",
                       field->father().label());
        }
    });
    requireSameFields(comm, given);
    const Redistribute &moved = rows(kind);
    // Each step for all fields before the next. Until the last line `fields_` is unchanged, so a failure adds none of
    // them.
    std::vector<Redistribute::Move> moves;
    std::vector<int> onDevice;
    comm.guarded([&] {
        for (const auto &field : moving) {
            moves.push_back(field->prepare(comm));
            onDevice.push_back(field->onDevice() ? 1 : 0);
        }
        fields_.reserve(fields_.size() + moving.size());
    });
    moved.move(moves);
    for (const auto &field : moving)
        field->attach(entitiesOf(kind));
    for (const auto &field : moving)
        field->startPull();
    for (const auto &field : moving)
        field->waitPull();
    // A field goes to the device if any rank had it there: ranks without rows cannot tell.
    comm.allReduce(onDevice.data(), static_cast<int>(onDevice.size()), MPI_MAX);
    for (std::size_t k = 0; k < moving.size(); ++k)
        if (onDevice[k] != 0)
            moving[k]->toDevice();
    std::ranges::move(moving, std::back_inserter(fields_));
}

/// Cannot fail: it only moves what was made before. Messages in flight are reported, as waiting would be collective.
void Repartition::commit() noexcept {
    if (std::exchange(committed_, true))
        return;
    for (const auto &field : fields_) {
        if (field->inFlight())
            warn("a pull or push of '{}' is dropped: it was started before the field moved to other ranks, and not "
                 "waited for",
                 field->father().label());
        field->commit();
    }
    fields_.clear();
    mesh_ = MovedMesh::take();
}

// ---------------------------------------------------------------------------------------------------------------------
// Targets

namespace {

/// Assigns parts to ranks: in descending order of the overlap with a rank's present cells, then the rest in order.
/// O(s log s) for s overlaps. Method: the greedy assignment on the similarity matrix of PLUM (Oliker and Biswas, PLUM:
/// parallel load balancing for adaptive unstructured meshes, Journal of Parallel and Distributed Computing 52, 1998).
/// Every part gets a rank of its own, as there are equally many. Greedy: at least half of the best possible overlap
/// stays in place.
std::vector<index> ranksOfParts(int ranks, std::vector<std::tuple<index, index, index>> shared) {
    std::ranges::sort(shared, std::greater<>());
    std::vector<index> rankOf(toSize(ranks), -1);
    std::vector<bool> taken(toSize(ranks), false);
    for (const auto &[cells, part, rank] : shared)
        if (rankOf[toSize(part)] < 0 && !taken[toSize(rank)]) {
            rankOf[toSize(part)] = rank;
            taken[toSize(rank)] = true;
        }
    std::size_t next = 0;
    for (index &rank : rankOf) {
        if (rank >= 0)
            continue;
        while (taken[next])
            ++next;
        rank = static_cast<index>(next);
        taken[next] = true;
    }
    return rankOf;
}

/// Parts come from the partitioner with arbitrary numbers; renaming them to the ranks that hold most of their cells
/// keeps data in place. Overlaps are gathered on rank 0, which decides for all.
/// O(ranks x parts per rank) words on rank 0: parts that share no cell with a rank are not sent.
std::vector<int> targetsOf(const UnstructuredMesh &mesh, std::span<const index> costs,
                           const RepartitionOptions &options) {
    const CommunicatorView comm = mesh.comm;
    std::vector<int> parts = partitionCells(mesh, comm.size(), options.partitioner,
                                            {.imbalance = options.imbalance, .seed = options.seed}, costs);
    RankLists shared;
    comm.guarded([&] {
        std::vector<index> cells(toSize(comm.size()), 0);
        for (const int part : parts)
            ++cells[toSize(part)];
        shared.ranks.push_back(0);
        for (std::size_t part = 0; part < cells.size(); ++part)
            if (cells[part] > 0)
                shared.values.insert(shared.values.end(), {cells[part], static_cast<index>(part)});
        shared.starts.push_back(static_cast<index>(shared.values.size()));
    });
    const RankLists all = sparseExchange(*CommunicatorContext::of(comm), shared);
    std::vector<index> rankOf(toSize(comm.size()));
    // Ties are broken by part, then rank: the same targets in every run.
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        std::vector<std::tuple<index, index, index>> found;
        for (std::size_t k = 0; k < all.size(); ++k)
            for (RecordReader reader(all.list(k)); !reader.atEnd();) {
                const index cells = reader.next();
                found.emplace_back(cells, reader.next(), all.ranks[k]);
            }
        rankOf = ranksOfParts(comm.size(), std::move(found));
    });
    comm.broadcast(rankOf.data(), rankOf.size());
    for (int &part : parts)
        part = static_cast<int>(rankOf[toSize(part)]);
    return parts;
}

} // namespace

std::vector<int> repartitionTargets(const UnstructuredMesh &mesh, std::span<const index> costs,
                                    const RepartitionOptions &options) {
    return failTogether(mesh.comm, [&] { return targetsOf(mesh, costs, options); });
}

} // namespace DNDS::Geom
