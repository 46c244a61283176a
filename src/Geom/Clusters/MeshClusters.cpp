#include "DNDS/Geom/Clusters/MeshClusters.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

namespace DNDS::Geom {

/// Builds the clusters of a rank, their ghosts and the lists of rows to exchange.
class MeshClusters::Maker {
  public:
    Maker(MeshClusters &made, const UnstructuredMesh &mesh, const SourceClusters &clusters)
        : made_(made), mesh_(mesh), clusters_(clusters), context_(CommunicatorContext::of(mesh.comm)) {
        findClusters();
        addOwnCells();
        for (Piece &piece : made_.pieces_)
            addGhosts(piece);
        connect();
    }

  private:
    int rankOf(index cluster) const { return clusters_.rankOf(cluster, mesh_.comm.size()); }
    index fileNumber(LocalIndex cell) const { return mesh_.cells.fileNumbers[toSize(cell)]; }

    /// The cluster of each local cell. Collective.
    void findClusters() {
        clusterOf_.resize(toSize(mesh_.cells.size()));
        const std::vector<index> &firsts = clusters_.firstCells;
        const auto &numbers = mesh_.cells.fileNumbers;
        const index mine = firsts[toSize(mesh_.comm.rank())];
        queryOwners(
            *context_, clusterOf_.size(),
            [&](std::size_t i) {
                return static_cast<int>(std::ranges::upper_bound(firsts, numbers[i]) - firsts.begin()) - 1;
            },
            [&](std::size_t i) { return numbers[i]; },
            [&](index number, std::vector<index> &reply) {
                reply.push_back(clusters_.clusterOf.at(toSize(number - mine)));
            },
            [&](std::size_t i, RecordReader &reader) { clusterOf_[i] = reader.next(); });
    }

    void addOwnCells() {
        std::vector<LocalIndex> own(toSize(mesh_.cells.owned));
        for (std::size_t c = 0; c < own.size(); ++c) {
            own[c] = static_cast<LocalIndex>(c);
            DNDS_CHECK(
                rankOf(clusterOf_[c]) == mesh_.comm.rank(), ArgumentError,
                "cell {} of the file belongs to cluster {} of rank {}, but this rank owns it: build the mesh with "
                "Partitioner::Given and the parts of these clusters",
                fileNumber(own[c]), clusterOf_[c], rankOf(clusterOf_[c]));
        }
        std::ranges::sort(own, {}, [&](LocalIndex c) { return std::pair(clusterOf_[toSize(c)], fileNumber(c)); });
        for (const LocalIndex cell : own) {
            const index cluster = clusterOf_[toSize(cell)];
            if (made_.pieces_.empty() || made_.pieces_.back().cluster != cluster)
                made_.pieces_.emplace_back().cluster = cluster;
            made_.pieces_.back().cells.push_back(cell);
            made_.pieces_.back().own++;
        }
    }

    /// Adds ghosts cluster by cluster, so that the rows from one cluster are contiguous.
    void addGhosts(Piece &piece) {
        const auto across = std::as_const(mesh_.cellCells).view();
        const auto isInside = [&](LocalIndex c) {
            return clusterOf_[toSize(c)] == piece.cluster && c < mesh_.cells.owned;
        };
        std::vector<LocalIndex> ghosts;
        for (const LocalIndex cell : piece.cells)
            for (const LocalIndex other : across[cell]) {
                DNDS_CHECK(other != notLocal, ArgumentError,
                           "this mesh has no layer of ghosts, which clusters need: give ghostLayers 1 or more");
                if (other != noEntity && !isInside(other))
                    ghosts.push_back(other);
            }
        const auto order = [&](LocalIndex c) {
            return std::tuple(clusterOf_[toSize(c)], fileNumber(c), mesh_.cells.images[toSize(c)], c);
        };
        std::ranges::sort(ghosts, {}, order);
        ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
        std::map<LocalIndex, LocalIndex> places;
        piece.cells.insert(piece.cells.end(), ghosts.begin(), ghosts.end());
        for (std::size_t i = 0; i < piece.cells.size(); ++i)
            places[piece.cells[i]] = static_cast<LocalIndex>(i);
        for (index i = 0; i < piece.own; ++i) {
            for (const LocalIndex other : across[piece.cells[toSize(i)]])
                piece.neighbours.push_back(other == noEntity ? noEntity : places.at(other));
            piece.starts.push_back(static_cast<index>(piece.neighbours.size()));
        }
    }

    /// Tells owners which of their cells are ghosts here, and makes the pattern. Collective.
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
                links.peers[rankOf(cluster)].received.push_back({static_cast<int>(b), RowList(i, end)});
                std::vector<index> &words = wanted.to(rankOf(cluster));
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
        made_.pattern_ = SparsePattern::fromLinks(context_, std::move(links));
    }

    int blockOf(index cluster) const {
        const auto found = std::ranges::lower_bound(made_.pieces_, cluster, {}, &Piece::cluster);
        DNDS_CHECK(found != made_.pieces_.end() && found->cluster == cluster, DataError,
                   "cluster {} is expected on this rank, which has no cell of it", cluster);
        return static_cast<int>(found - made_.pieces_.begin());
    }

    /// The rows of own cells by their numbers in the file, in a list that is kept.
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

    /// A hash of the assignment of cells to clusters. Collective.
    std::uint64_t signature() const {
        std::uint64_t sum = 0;
        for (index c = 0; c < mesh_.cells.owned; ++c) {
            ContentHash hash;
            hash.add(static_cast<std::uint64_t>(mesh_.cells.fileNumbers[toSize(c)]));
            hash.add(static_cast<std::uint64_t>(clusterOf_[toSize(c)]));
            sum += hash.value();
        }
        return mesh_.comm.allReduce(sum, MPI_SUM);
    }

    MeshClusters &made_;
    const UnstructuredMesh &mesh_;
    const SourceClusters &clusters_;
    std::shared_ptr<CommunicatorContext> context_;
    std::vector<index> clusterOf_; ///< [cells]
};

MeshClusters::MeshClusters(const UnstructuredMesh &mesh, const SourceClusters &clusters) {
    failTogether(mesh.comm, [&] { const Maker make(*this, mesh, clusters); });
}

} // namespace DNDS::Geom
