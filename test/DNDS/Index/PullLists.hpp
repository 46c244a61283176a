/// @file PullLists.hpp
/// @brief Owners and readers of rows, known to all ranks, so that each can compute the expected results.
#pragma once

#include "DNDS/Index/Mappings.hpp"
#include "support/MpiTest.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace DNDS::test {

/// Rows of all ranks and the pull list of each rank. Made alike on all ranks, without communication.
struct PullLists {
    std::string name;
    std::vector<index> begins{0};          ///< first row of each rank, and the end
    std::vector<std::vector<index>> reads; ///< the pull list of each rank: any order, duplicates

    index rows() const { return begins.back(); }
    index begin(int rank) const { return begins[static_cast<std::size_t>(rank)]; }
    index end(int rank) const { return begins[static_cast<std::size_t>(rank) + 1]; }
    index size(int rank) const { return end(rank) - begin(rank); }
    int owner(index row) const {
        return static_cast<int>(std::upper_bound(begins.begin(), begins.end(), row) - begins.begin()) - 1;
    }
    const std::vector<index> &readsOf(int rank) const { return reads[static_cast<std::size_t>(rank)]; }
    const std::vector<index> &myReads() const { return readsOf(worldRank()); }
    /// The ghosts of a rank in the order of its son.
    std::vector<index> ghostsOf(int rank) const {
        const std::set<index> sorted(readsOf(rank).begin(), readsOf(rank).end());
        return {sorted.begin(), sorted.end()};
    }
    bool hasReader(int from, int reader) const {
        const auto &list = readsOf(reader);
        return std::any_of(list.begin(), list.end(), [&](index row) { return owner(row) == from; });
    }
    std::shared_ptr<const GlobalMapping> global() const {
        return GlobalMapping::create(MPI_COMM_WORLD, size(worldRank()));
    }

    /// Random sizes (some empty) and lists (some empty, with duplicates and own rows).
    static PullLists random(std::uint64_t round) {
        std::seed_seq seeds{seed(), round};
        std::mt19937_64 random(seeds);
        PullLists pullLists;
        pullLists.name = "random " + std::to_string(round);
        for (int rank = 0; rank < worldSize(); ++rank)
            pullLists.begins.push_back(pullLists.rows() + (random() % 4 == 0 ? 0 : static_cast<index>(random() % 30)));
        for (int rank = 0; rank < worldSize(); ++rank) {
            auto &list = pullLists.reads.emplace_back();
            if (pullLists.rows() == 0 || random() % 5 == 0)
                continue;
            list.resize(random() % 100);
            for (index &row : list)
                row = static_cast<index>(random() % static_cast<std::uint64_t>(pullLists.rows()));
        }
        return pullLists;
    }
    /// `rowsEach` rows a rank; each reads its own row 0, the first two rows of the next and the last row of the
    /// previous rank.
    static PullLists ring(index rowsEach = 6) {
        PullLists pullLists;
        pullLists.name = "ring";
        const int n = worldSize();
        for (int rank = 0; rank < n; ++rank)
            pullLists.begins.push_back(pullLists.rows() + rowsEach);
        for (int rank = 0; rank < n; ++rank) {
            const index next = pullLists.begin((rank + 1) % n);
            pullLists.reads.push_back(
                {next + 1, next, pullLists.begin(rank), pullLists.end((rank + n - 1) % n) - 1, next});
        }
        return pullLists;
    }
    /// Every rank reads every row, its own included.
    static PullLists everything() {
        PullLists pullLists;
        pullLists.name = "everything";
        for (int rank = 0; rank < worldSize(); ++rank)
            pullLists.begins.push_back(pullLists.rows() + 3 + rank % 3);
        for (int rank = 0; rank < worldSize(); ++rank) {
            auto &list = pullLists.reads.emplace_back();
            for (index row = pullLists.rows(); row-- > 0;)
                list.push_back(row);
        }
        return pullLists;
    }
    /// Everything, but rank 0 owns nothing and the last rank neither reads from others nor is read.
    static PullLists withEmptyAndLonelyRanks() {
        PullLists pullLists = everything();
        pullLists.name = "empty first rank, last rank without peers";
        const index shift = pullLists.size(0);
        for (std::size_t rank = 1; rank < pullLists.begins.size(); ++rank)
            pullLists.begins[rank] -= shift;
        const int lonely = worldSize() - 1;
        for (int rank = 0; rank < worldSize(); ++rank)
            std::erase_if(pullLists.reads[static_cast<std::size_t>(rank)], [&](index row) {
                return row >= pullLists.rows() || rank == lonely || pullLists.owner(row) == lonely;
            });
        return pullLists;
    }
    /// Ranks read only their own rows.
    static PullLists ownRowsOnly() {
        PullLists pullLists = ring();
        pullLists.name = "own rows only";
        for (int rank = 0; rank < worldSize(); ++rank)
            pullLists.reads[static_cast<std::size_t>(rank)] = {pullLists.end(rank) - 1, pullLists.begin(rank),
                                                               pullLists.begin(rank) + 2};
        return pullLists;
    }
    /// Rows without any reader; or no rows at all.
    static PullLists nothing(index rowsEach) {
        PullLists pullLists = ring(std::max<index>(rowsEach, 2));
        pullLists.name = "nothing of " + std::to_string(rowsEach) + " rows a rank";
        for (int rank = 0; rank < worldSize(); ++rank) {
            pullLists.begins[static_cast<std::size_t>(rank) + 1] = pullLists.begin(rank) + rowsEach;
            pullLists.reads[static_cast<std::size_t>(rank)].clear();
        }
        return pullLists;
    }
};

} // namespace DNDS::test
