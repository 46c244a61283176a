/// @file NodeSharedCase.hpp
/// @brief For tests of node-shared exchanges: a communicator with an arena, and a field whose ghosts
/// tell which rows they are copies of.
#pragma once

#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Transport/TransportTable.hpp"
#include "support/ScopedVariable.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace DNDS::test {

using Clock = std::chrono::steady_clock;

constexpr ExchangeOptions nodeShared{.transport = TransportKind::NodeShared};

inline double secondsSince(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// All ranks on a communicator of their own, in virtual nodes if asked.
struct World {
    explicit World(int ranksPerNode = 0) {
        const ScopedVariable setting("DNDS_RANKS_PER_NODE", std::to_string(ranksPerNode));
        owner = Communicator::duplicate(MPI_COMM_WORLD);
        context = CommunicatorContext::of(owner.view());
    }
    CommunicatorView comm() const { return owner.view(); }
    NodeArena *arena() const { return context->node().arena.get(); }

    Communicator owner;
    std::shared_ptr<CommunicatorContext> context;
};

/// A field whose contents tell row, component and version.
struct Field {
    using A = ParArray<real, 3>;

    Field(CommunicatorView comm, const PullLists &wanted, const std::string &name = "field") : pullLists(wanted) {
        pair.initPair(name, comm);
        pair.father->resize(pullLists.size(worldRank()));
        pair.transAttach();
        pair.trans.createFatherGlobalMapping();
        pair.trans.createGhostMapping(pullLists.myReads());
        pair.trans.createMPITypes();
    }

    static real value(index row, rowsize j, int version) {
        return static_cast<real>(version) * 1e6 + static_cast<real>(row) * 8 + static_cast<real>(j);
    }
    void fill(int version) {
        auto father = pair.father->view();
        for (index i = 0; i < father.size(); ++i)
            for (rowsize j = 0; j < 3; ++j)
                father(i, j) = value(pullLists.begin(worldRank()) + i, j, version);
    }
    /// Describes the first ghost that is not of that version; empty if all are.
    std::string wrongGhost(int version) const {
        const A &son = *pair.son;
        const auto ghosts = son.view();
        const std::vector<index> rows = pullLists.ghostsOf(worldRank());
        if (ghosts.size() != static_cast<index>(rows.size()))
            return "the son has " + std::to_string(ghosts.size()) + " rows";
        for (std::size_t k = 0; k < rows.size(); ++k)
            for (rowsize j = 0; j < 3; ++j)
                if (const real found = ghosts(static_cast<index>(k), j); found != value(rows[k], j, version))
                    return "ghost of row " + std::to_string(rows[k]) + " is " + std::to_string(found) + " in version " +
                           std::to_string(version);
        return {};
    }
    void expect(int version) const { EXPECT_EQ(wrongGhost(version), ""); }

    void pull(int version) {
        fill(version);
        pair.trans.startPersistentPull();
        pair.trans.waitPersistentPull();
        expect(version);
    }

    PullLists pullLists;
    ArrayPair<A> pair;
};

/// Rows enough that messages are large; every rank reads all rows of the next rank and every third row of all.
inline PullLists largePullLists(index rowsEach) {
    PullLists pullLists = PullLists::ring(rowsEach);
    pullLists.name = "large";
    for (int rank = 0; rank < worldSize(); ++rank) {
        auto &list = pullLists.reads[static_cast<std::size_t>(rank)];
        const int next = (rank + 1) % worldSize();
        list.clear();
        for (index row = 0; row < pullLists.rows(); ++row)
            if (row % 3 == rank % 3 || pullLists.owner(row) == next)
                list.push_back(row);
    }
    return pullLists;
}

/// Waits for a message from `from`, or sends one: an order between ranks that MPI makes.
inline void signalTo(int to, CommunicatorView comm) { MPI_Send(nullptr, 0, MPI_BYTE, to, 7, comm.handle()); }
inline void awaitSignal(int from, CommunicatorView comm) {
    MPI_Recv(nullptr, 0, MPI_BYTE, from, 7, comm.handle(), MPI_STATUS_IGNORE);
}

/// Most tests share one communicator, because making one is slow where ranks outnumber cores.
class NodeShared : public testing::Test {
  protected:
    static void SetUpTestSuite() { shared = std::make_unique<World>(); }
    static void TearDownTestSuite() { shared.reset(); }
    void SetUp() override {
        if (worldSize() < 2)
            GTEST_SKIP() << "needs peers";
        if (world.arena() == nullptr) // the same on all ranks of one machine; NodeArenaTest fails here
            GTEST_SKIP() << "no shared memory: " << world.context->node().whyNoArena;
    }

    static inline std::unique_ptr<World> shared;
    const World &world = *shared;
};

} // namespace DNDS::test
