/// @file Wishes.hpp
/// @brief Who owns and who reads which rows, known to all ranks, so that each can compute what it must find.
#pragma once

#include "DNDS/Index/GhostMapping.hpp"
#include "support/MpiTest.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace DNDS::test {

/// Rows of all ranks and the pull list of each rank. Made alike on all ranks, without communication.
struct Wishes {
    std::string name;
    std::vector<index> begins{0};          ///< of each rank's rows, and the end
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
    static Wishes random(std::uint64_t round) {
        std::seed_seq seeds{seed(), round};
        std::mt19937_64 random(seeds);
        Wishes wishes;
        wishes.name = "random " + std::to_string(round);
        for (int rank = 0; rank < worldSize(); ++rank)
            wishes.begins.push_back(wishes.rows() + (random() % 4 == 0 ? 0 : static_cast<index>(random() % 30)));
        for (int rank = 0; rank < worldSize(); ++rank) {
            auto &list = wishes.reads.emplace_back();
            if (wishes.rows() == 0 || random() % 5 == 0)
                continue;
            list.resize(random() % 100);
            for (index &row : list)
                row = static_cast<index>(random() % static_cast<std::uint64_t>(wishes.rows()));
        }
        return wishes;
    }
    /// `rowsEach` rows a rank; each reads its own row 0, the first two rows of the next and the last row of the
    /// previous rank.
    static Wishes ring(index rowsEach = 6) {
        Wishes wishes;
        wishes.name = "ring";
        const int n = worldSize();
        for (int rank = 0; rank < n; ++rank)
            wishes.begins.push_back(wishes.rows() + rowsEach);
        for (int rank = 0; rank < n; ++rank) {
            const index next = wishes.begin((rank + 1) % n);
            wishes.reads.push_back({next + 1, next, wishes.begin(rank), wishes.end((rank + n - 1) % n) - 1, next});
        }
        return wishes;
    }
    /// Every rank reads every row, its own included.
    static Wishes everything() {
        Wishes wishes;
        wishes.name = "everything";
        for (int rank = 0; rank < worldSize(); ++rank)
            wishes.begins.push_back(wishes.rows() + 3 + rank % 3);
        for (int rank = 0; rank < worldSize(); ++rank) {
            auto &list = wishes.reads.emplace_back();
            for (index row = wishes.rows(); row-- > 0;)
                list.push_back(row);
        }
        return wishes;
    }
    /// Everything, but rank 0 owns nothing and the last rank neither reads from others nor is read.
    static Wishes withEmptyAndLonelyRanks() {
        Wishes wishes = everything();
        wishes.name = "empty first rank, last rank without peers";
        const index shift = wishes.size(0);
        for (std::size_t rank = 1; rank < wishes.begins.size(); ++rank)
            wishes.begins[rank] -= shift;
        const int lonely = worldSize() - 1;
        for (int rank = 0; rank < worldSize(); ++rank)
            std::erase_if(wishes.reads[static_cast<std::size_t>(rank)], [&](index row) {
                return row >= wishes.rows() || rank == lonely || wishes.owner(row) == lonely;
            });
        return wishes;
    }
    /// Nobody reads anything but own rows.
    static Wishes ownRowsOnly() {
        Wishes wishes = ring();
        wishes.name = "own rows only";
        for (int rank = 0; rank < worldSize(); ++rank)
            wishes.reads[static_cast<std::size_t>(rank)] = {wishes.end(rank) - 1, wishes.begin(rank),
                                                            wishes.begin(rank) + 2};
        return wishes;
    }
    /// Rows, but nobody reads any; or no rows at all.
    static Wishes nothing(index rowsEach) {
        Wishes wishes = ring(std::max<index>(rowsEach, 2));
        wishes.name = "nothing of " + std::to_string(rowsEach) + " rows a rank";
        for (int rank = 0; rank < worldSize(); ++rank) {
            wishes.begins[static_cast<std::size_t>(rank) + 1] = wishes.begin(rank) + rowsEach;
            wishes.reads[static_cast<std::size_t>(rank)].clear();
        }
        return wishes;
    }
};

} // namespace DNDS::test
