#include "DNDS/Geom/Clusters/MeshClusters.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Geom/Mesh/PeriodicNodes.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/RebalancedRuns.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

namespace DNDS::Geom {

/// Builds the clusters of a rank, their ghosts and the lists of rows to exchange. The order of steps: clusters of all
/// local cells, ghosts included; own cells; owners of all clusters, which finds split ones; then, without messages,
/// ghosts and neighbours; at last the links. Runs within `failTogether`: a rank that throws ends the others at the next
/// collective. Lives for the constructor of MeshClusters only.
class MeshClusters::Maker {
  public:
    Maker(MeshClusters &made, const UnstructuredMesh &mesh, const SourceClusters &clusters)
        : made_(made), mesh_(mesh), clusters_(clusters), context_(CommunicatorContext::of(mesh.comm)),
          around_("cells around cells", mesh.comm), places_(toSize(mesh.cells.size())),
          layers_(toSize(mesh.cells.size()), -1), rows_(toSize(mesh.cells.size()), notLocal) {
        DNDS_CHECK(mesh.ghostLayers > 0, ArgumentError,
                   "{}: this mesh has no layer of ghosts, which clusters need: give ghostLayers 1 or more",
                   mesh.origin);
        clusters.require(mesh.comm);
        findClusters();
        addOwnCells();
        findRanks();
        LocalIndex place = 0;
        for (const LocalIndex cell : cellsInFileOrder(mesh))
            places_[toSize(cell)] = place++;
        if (mesh.ghostsByNodes)
            around_ = neighboursThrough(mesh, MeshEntityKind::Nodes);
        for (Piece &piece : made_.pieces_) {
            addGhosts(piece);
            addNeighbours(piece);
        }
        connect();
    }

  private:
    /// The cell's number in the file, the same on all ranks; images of a cell share it.
    index fileNumber(LocalIndex cell) const { return mesh_.cells.fileNumbers[toSize(cell)]; }

    /// The cluster of each local cell, asked of the rank that read the cell: clusters are distributed as the source,
    /// cells by the partition. Collective; two sparse exchanges.
    void findClusters() {
        clusterOf_.resize(toSize(mesh_.cells.size()));
        const std::vector<index> &firsts = clusters_.firstCells;
        const auto &numbers = mesh_.cells.fileNumbers;
        const index mine = firsts[toSize(mesh_.comm.rank())];
        queryOwners(
            *context_, clusterOf_.size(),
            [&](std::size_t i) {
                DNDS_CHECK(numbers[i] < firsts.back(), ArgumentError,
                           "the mesh has cell {} of its file, and the clusters are of {} cells: cut that file's cells",
                           numbers[i], firsts.back());
                return static_cast<int>(std::ranges::upper_bound(firsts, numbers[i]) - firsts.begin()) - 1;
            },
            [&](std::size_t i) { return numbers[i]; },
            [&](index number, std::vector<index> &reply) {
                reply.push_back(clusters_.clusterOf.at(toSize(number - mine)));
            },
            [&](std::size_t i, RecordReader &reader) { clusterOf_[i] = reader.next(); });
    }

    /// Makes a piece for each cluster with own cells, in ascending order, its cells in file order: rows of blocks, and
    /// with them checkpoints and sums, do not depend on the partition. O(own cells log own cells).
    void addOwnCells() {
        std::vector<LocalIndex> own(toSize(mesh_.cells.owned));
        std::iota(own.begin(), own.end(), 0);
        std::ranges::sort(own, {}, [&](LocalIndex c) { return std::pair(clusterOf_[toSize(c)], fileNumber(c)); });
        for (const LocalIndex cell : own) {
            const index cluster = clusterOf_[toSize(cell)];
            if (made_.pieces_.empty() || made_.pieces_.back().cluster != cluster)
                made_.pieces_.emplace_back().cluster = cluster;
            made_.pieces_.back().cells.push_back(cell);
            made_.pieces_.back().own++;
        }
    }

    /// The rank of each cluster, from the ranks' lists of clusters; a cluster in two lists is split. All ranks see the
    /// same lists and throw alike. Collective; O(clusters) on each rank.
    void findRanks() {
        std::vector<index> own;
        for (const Piece &piece : made_.pieces_)
            own.push_back(piece.cluster);
        const std::vector<index> counts = mesh_.comm.allGather(static_cast<index>(own.size()));
        const std::vector<index> all = mesh_.comm.allGatherV(std::span<const index>(own));
        ranks_.assign(toSize(clusters_.count), -1);
        auto next = all.begin();
        for (int rank = 0; rank < mesh_.comm.size(); ++rank)
            for (index k = 0; k < counts[toSize(rank)]; ++k) {
                const index cluster = *next++;
                int &known = ranks_.at(toSize(cluster));
                DNDS_CHECK(known < 0, ArgumentError,
                           "{}: cluster {} has cells on ranks {} and {}, but one rank owns all cells of a cluster: "
                           "build the mesh with Partitioner::Given and SourceClusters::parts, or other parts that keep "
                           "clusters whole; repartition it with the repartitionTargets of its clusters",
                           mesh_.origin, cluster, known, rank);
                known = rank;
            }
    }

    /// Adds the layers of ghosts, breadth-first, and sorts them by cluster, so that the rows from one are contiguous,
    /// then in file order, images of a cell by their place. None is missing: the mesh has as wide a halo of all own
    /// cells. `layers_` marks visited cells and is reset cell by cell, so the cost is O(cells of the block), not of the
    /// mesh.
    void addGhosts(Piece &piece) {
        const auto across = std::as_const(mesh_.cellCells).view();
        const auto around = std::as_const(around_).view();
        int layer = 0;
        const auto add = [&](LocalIndex cell) {
            if (cell >= 0 && layers_[toSize(cell)] < 0) {
                layers_[toSize(cell)] = layer;
                piece.cells.push_back(cell);
            }
        };
        for (const LocalIndex cell : piece.cells)
            layers_[toSize(cell)] = 0;
        std::size_t begin = 0;
        for (layer = 1; layer <= mesh_.ghostLayers; ++layer)
            for (const std::size_t end = piece.cells.size(); begin < end; ++begin) {
                const LocalIndex cell = piece.cells[begin];
                std::ranges::for_each(across[cell], add);
                if (mesh_.ghostsByNodes)
                    std::ranges::for_each(around[cell], add);
            }
        std::ranges::sort(piece.cells.begin() + piece.own, piece.cells.end(), {},
                          [&](LocalIndex c) { return std::pair(clusterOf_[toSize(c)], places_[toSize(c)]); });
        for (const LocalIndex cell : piece.cells)
            piece.layers.push_back(static_cast<std::uint8_t>(std::exchange(layers_[toSize(cell)], -1)));
    }

    /// Translates the mesh's neighbours across faces to rows of the piece; cells that it lacks become `notLocal`.
    /// Resets `rows_` as `addGhosts` resets `layers_`.
    void addNeighbours(Piece &piece) {
        const auto across = std::as_const(mesh_.cellCells).view();
        for (LocalIndex row = 0; const LocalIndex cell : piece.cells)
            rows_[toSize(cell)] = row++;
        for (const LocalIndex cell : piece.cells) {
            for (const LocalIndex other : across[cell])
                piece.neighbours.push_back(other < 0 ? other : rows_[toSize(other)]);
            piece.starts.push_back(static_cast<index>(piece.neighbours.size()));
        }
        for (const LocalIndex cell : piece.cells)
            rows_[toSize(cell)] = notLocal;
    }

    /// Tells owners which of their cells are ghosts here, and makes the pattern. The record of a run of ghosts is the
    /// cluster, their number, and their numbers in the file, which reader and owner both know. Owners append records in
    /// the order in which the reader adds links: link k of both ends has the same rows. The own rank is a peer like
    /// others: for its other clusters and for images. Collective; one sparse exchange.
    void connect() {
        SparseLinks links;
        Outbox wanted;
        for (std::size_t b = 0; b < made_.pieces_.size(); ++b) {
            const Piece &piece = made_.pieces_[b];
            const auto rows = static_cast<index>(piece.cells.size());
            const Box cells({0}, {piece.own});
            links.blocks.push_back({static_cast<int>(piece.cluster), cells,
                                    cells.grow(GhostWidths::of({0}, {rows - piece.own})), 0, rows});
            for (index i = piece.own; i < rows;) {
                const index cluster = clusterOf_[toSize(piece.cells[toSize(i)])];
                index end = i;
                while (end < rows && clusterOf_[toSize(piece.cells[toSize(end)])] == cluster)
                    ++end;
                links.peers[ranks_[toSize(cluster)]].received.push_back({static_cast<int>(b), RowList(i, end)});
                std::vector<index> &words = wanted.to(ranks_[toSize(cluster)]);
                words.insert(words.end(), {cluster, end - i});
                for (; i < end; ++i)
                    words.push_back(fileNumber(piece.cells[toSize(i)]));
            }
        }
        const RankLists heard = sparseExchange(*context_, wanted.take());
        const auto lists = std::make_shared<std::deque<std::vector<index>>>();
        for (std::size_t k = 0; k < heard.size(); ++k)
            for (RecordReader reader(heard.list(k)); !reader.atEnd();) {
                const int block = blockOf(reader.next());
                const auto numbers = reader.next(reader.next());
                links.peers[heard.ranks[k]].given.push_back({block, RowList(rowsOf(block, numbers, *lists))});
            }
        links.kept = lists;
        links.signature = signature();
        links.ranks = std::move(ranks_);
        made_.pattern_ = SparsePattern::fromLinks(context_, std::move(links));
    }

    /// The place of a cluster among this rank's. Throws DataError unless this rank owns it.
    int blockOf(index cluster) const {
        const auto found = std::ranges::lower_bound(made_.pieces_, cluster, {}, &Piece::cluster);
        DNDS_CHECK(found != made_.pieces_.end() && found->cluster == cluster, DataError,
                   "cluster {} is expected on this rank, which has no cell of it", cluster);
        return static_cast<int>(found - made_.pieces_.begin());
    }

    /// The rows of own cells by their numbers in the file, in a list that is kept: a deque does not move its elements,
    /// so that RowList can refer to them. O(numbers log cells).
    const std::vector<index> &rowsOf(int block, std::span<const index> numbers,
                                     std::deque<std::vector<index>> &lists) const {
        const Piece &piece = made_.pieces_[toSize(block)];
        const auto own = std::span(piece.cells).first(toSize(piece.own));
        std::vector<index> &rows = lists.emplace_back();
        for (const index number : numbers) {
            const auto found = std::ranges::lower_bound(own, number, {}, [&](LocalIndex c) { return fileNumber(c); });
            DNDS_CHECK(found != own.end() && fileNumber(*found) == number, DataError,
                       "cell {} of the file is expected in cluster {}, where it is not", number, piece.cluster);
            rows.push_back(found - own.begin());
        }
        return rows;
    }

    /// A hash of the rows of all blocks, whatever their ranks: the sum of the blocks' hashes has no order. Collective.
    std::uint64_t signature() const {
        std::uint64_t sum = 0;
        for (const Piece &piece : made_.pieces_) {
            ContentHash hash;
            hash.add(static_cast<std::uint64_t>(piece.cluster));
            hash.add(static_cast<std::uint64_t>(piece.own));
            for (const LocalIndex cell : piece.cells)
                hash.add(static_cast<std::uint64_t>(fileNumber(cell)));
            sum += hash.value();
        }
        return mesh_.comm.allReduce(sum, MPI_SUM);
    }

    MeshClusters &made_;
    const UnstructuredMesh &mesh_;
    const SourceClusters &clusters_;
    std::shared_ptr<CommunicatorContext> context_;
    std::vector<index> clusterOf_;   ///< [cells]
    std::vector<int> ranks_;         ///< [clusters]
    LocalAdjacency around_;          ///< [cells] cells that share a node; empty if ghosts are by faces
    std::vector<LocalIndex> places_; ///< [cells] position of each in file order
    std::vector<int> layers_;        ///< [cells] of the block in work, or -1
    std::vector<LocalIndex> rows_;   ///< [cells] of the block in work, or notLocal
};

MeshClusters::MeshClusters(const UnstructuredMesh &mesh, const SourceClusters &clusters) {
    failTogether(mesh.comm, [&] { const Maker make(*this, mesh, clusters); });
}

// `rows` maps cells of the mesh to rows of one block; it is allocated once and reset after each block. `restricted`
// leaves out cells that are not in the block.
std::vector<LocalAdjacency> nodeNeighbours(const UnstructuredMesh &mesh, const MeshClusters &clusters) {
    DNDS_CHECK(mesh.ghostsByNodes, ArgumentError,
               "{}: the ghosts of this mesh share faces with its cells, so not all cells around nodes are known: build "
               "it with GhostNeighbours::Nodes",
               mesh.origin);
    const LocalAdjacency around = neighboursThrough(mesh, MeshEntityKind::Nodes);
    std::vector<LocalIndex> rows(toSize(mesh.cells.size()), notLocal);
    std::vector<LocalAdjacency> all;
    for (int b = 0; b < static_cast<int>(clusters.pattern()->blocks().size()); ++b) {
        const auto cells = clusters.cells(b);
        for (LocalIndex row = 0; const LocalIndex cell : cells)
            rows[toSize(cell)] = row++;
        LocalAdjacency &ofBlock = all.emplace_back(restricted("cells around nodes", around, cells, rows));
        for (index i = 0; i < ofBlock.size(); ++i)
            std::ranges::sort(ofBlock[i]);
        for (const LocalIndex cell : cells)
            rows[toSize(cell)] = notLocal;
    }
    return all;
}

// All ranks know the owners of all clusters and compute the same runs; cells then follow their cluster.
// O(own cells + clusters) time. Costs are gathered by rebalancedRuns, and no cell needs a message of its own.
std::vector<int> repartitionTargets(const MeshClusters &clusters, std::span<const real> costs, real imbalance) {
    const SparsePattern &pattern = *clusters.pattern();
    const CommunicatorView comm = pattern.context()->comm();
    return failTogether(comm, [&] {
        const std::vector<int> rankOf = rebalancedRuns(comm, pattern.ranks(), costs, imbalance, "cluster");
        index own = 0;
        for (const BlockMemory &block : pattern.blocks())
            own += block.cells.size();
        std::vector<int> targets(toSize(own));
        for (int b = 0; const BlockMemory &block : pattern.blocks())
            for (const LocalIndex cell : clusters.cells(b++).first(toSize(block.cells.size())))
                targets[toSize(cell)] = rankOf[toSize(block.block)];
        return targets;
    });
}

} // namespace DNDS::Geom
