/// @file RingField.hpp
/// @brief Small fields on a ring of ranks, for tests of what happens when something is wrong.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Index/PullLists.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <string>
#include <vector>

namespace DNDS::test {

inline constexpr index ringRows = 6; ///< rows on each rank
using RealField = ArrayPair<ParArray<real, 5>>;

/// The element of an owner's row in some version of the contents. Exact in every arithmetic type with enough bits.
template <class T>
T ringValue(index row, rowsize j, int version) {
    return static_cast<T>(version * 1000 + row * 8 + j);
}

/// Arrays without rows.
template <class Pair>
Pair emptyPair(const std::string &name = "u", CommunicatorView comm = MPI_COMM_WORLD) {
    Pair pair;
    pair.initPair(name, comm);
    return pair;
}

/// Father, mapping and son on `pullLists`; `resize(father, rows)` gives the father its rows. Collective.
template <class Pair, class Resize>
Pair makePair(const PullLists &pullLists, Resize &&resize, const std::string &name = "u",
              CommunicatorView comm = MPI_COMM_WORLD) {
    Pair pair = emptyPair<Pair>(name, comm);
    resize(*pair.father, pullLists.size(worldRank()));
    pair.transAttach();
    pair.trans.createFatherGlobalMapping();
    pair.trans.createGhostMapping(pullLists.myReads());
    pair.trans.createMPITypes();
    return pair;
}

/// A field of static width on the ring. Collective.
template <class Pair = RealField>
Pair ringField(const std::string &name = "u", CommunicatorView comm = MPI_COMM_WORLD, index rows = ringRows) {
    return makePair<Pair>(
        PullLists::ring(rows), [](auto &father, index n) { father.resize(n); }, name, comm);
}

template <class Pair>
void fill(Pair &pair, int version) {
    using T = typename Pair::ArrayType::Element;
    const index begin = pair.trans.ghostMapping()->global()->localBegin();
    auto father = pair.father->view();
    for (index row = 0; row < father.size(); ++row)
        for (rowsize j = 0; j < father.rowSize(row); ++j)
            father(row, j) = ringValue<T>(begin + row, j, version);
}

/// Number of elements of the son that differ from their owners' in that version.
template <class Pair>
index wrongGhosts(const Pair &pair, int version) {
    using T = typename Pair::ArrayType::Element;
    const auto ghosts = pair.trans.ghostMapping()->ghosts();
    const auto son = std::as_const(*pair.son).view();
    index wrong = son.size() == static_cast<index>(ghosts.size()) ? 0 : 1;
    for (index row = 0; row < son.size() && wrong == 0; ++row)
        for (rowsize j = 0; j < son.rowSize(row); ++j)
            wrong += son(row, j) == ringValue<T>(ghosts[static_cast<std::size_t>(row)], j, version) ? 0 : 1;
    return wrong;
}

/// Gives the father a new version, by way of the host, to the device.
template <class Pair>
void refill(Pair &pair, int version) {
    pair.toHost();
    fill(pair, version);
    pair.toDevice();
}

/// Fails the test unless that version of the ghosts is on the device.
template <class Pair>
void expectGhosts(Pair &pair, int version) {
    pair.toHost();
    EXPECT_EQ(wrongGhosts(pair, version), 0);
    pair.toDevice();
}

/// One round of a persistent pull. Collective.
template <class Pair>
void pull(Pair &pair) {
    pair.trans.startPersistentPull();
    pair.trans.waitPersistentPull();
}

/// Fails the test unless a new version arrives everywhere through the persistent pull. Collective.
template <class Pair>
void expectPullWorks(Pair &pair, int version) {
    fill(pair, version);
    pull(pair);
    EXPECT_EQ(wrongGhosts(pair, version), 0);
}

} // namespace DNDS::test
