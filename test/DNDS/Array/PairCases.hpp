/// @file PairCases.hpp
/// @brief A distribution of rows with empty ranks, and ghosts of every kind, for tests of arrays in pairs.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"

#include "support/MpiTest.hpp"

#include <Eigen/Core>
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace DNDS::test {

inline CommunicatorView world() { return MPI_COMM_WORLD; }

/// Rows that a rank owns: none on ranks 1, 4, 7.
inline index ownedRows(int rank) { return rank % 3 == 1 ? 0 : 6 + rank % 4; }
inline index firstRow(int rank) {
    index first = 0;
    for (int r = 0; r < rank; ++r)
        first += ownedRows(r);
    return first;
}
inline index ownedRows() { return ownedRows(worldRank()); }
inline index firstRow() { return firstRow(worldRank()); }
inline index allRows() { return firstRow(worldSize()); }

/// Rows that this rank pulls: random ones, including own rows and duplicates. Rank 2 pulls none.
inline std::vector<index> wantedRows() {
    std::vector<index> rows;
    if (worldRank() == 2)
        return rows;
    std::mt19937 random(static_cast<std::mt19937::result_type>(rankSeed(7)));
    std::uniform_int_distribution<index> any(0, allRows() - 1);
    for (int k = 0; k < 9; ++k)
        rows.push_back(any(random));
    rows.push_back(rows.front());
    return rows;
}

/// Maps, and gives the son its rows; the father has its own.
template <class Pair>
void makeGhosts(Pair &pair) {
    pair.transAttach();
    pair.trans.createFatherGlobalMapping();
    pair.trans.createGhostMapping(wantedRows());
    pair.trans.createMPITypes();
}

/// A number that tells element `j` of a global row from all others.
inline real valueOf(index global, index j, int round = 0) {
    return static_cast<real>(global) + 0.001 * static_cast<real>(j) + 1000.0 * round;
}

/// Calls `function(local row of the pair, global row)` for all owned rows.
template <class Function>
void forOwned(const Function &function) {
    for (index i = 0; i < ownedRows(); ++i)
        function(i, firstRow() + i);
}
/// The same for all ghosts of `pair`.
template <class Pair, class Function>
void forGhosts(const Pair &pair, const Function &function) {
    const auto ghosts = pair.trans.ghostMapping()->ghosts();
    for (std::size_t k = 0; k < ghosts.size(); ++k)
        function(ownedRows() + static_cast<index>(k), ghosts[k]);
}

/// Fills the father with `fill(row, global, round)`, pulls in every way, and has ghosts looked at by `check(row,
/// global, round)`; rows are rows of the pair. Persistent exchanges run several rounds.
template <class Pair, class Fill, class Check>
void pullInEveryWay(Pair &pair, const Fill &fill, const Check &check) {
    int round = 1;
    for (const TransportKind transport : {TransportKind::Datatype, TransportKind::Packed, TransportKind::Auto}) {
        SCOPED_TRACE(transportName(transport));
        const auto fillAll = [&] { forOwned([&](index i, index global) { fill(i, global, round); }); };
        const auto checkAll = [&] { forGhosts(pair, [&](index i, index global) { check(i, global, round); }); };
        fillAll();
        pair.trans.pullOnce({.transport = transport});
        checkAll();
        pair.trans.initPersistentPull({.transport = transport});
        for (int k = 0; k < 2; ++k) {
            ++round;
            fillAll();
            pair.trans.startPersistentPull();
            pair.trans.waitPersistentPull();
            checkAll();
        }
        pair.trans.clearPersistentPull();
        ++round;
    }
}

/// Compares two Eigen objects exactly, shapes included.
template <class A, class B>
void expectEqual(const A &a, const B &b) {
    ASSERT_EQ(a.rows(), b.rows());
    ASSERT_EQ(a.cols(), b.cols());
    for (Eigen::Index r = 0; r < a.rows(); ++r)
        for (Eigen::Index c = 0; c < a.cols(); ++c)
            ASSERT_EQ(a(r, c), b(r, c)) << "element " << r << ", " << c;
}

} // namespace DNDS::test
