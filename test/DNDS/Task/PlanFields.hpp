/// @file PlanFields.hpp
/// @brief Fields on the cells and faces of a `GraphWorld`, and what one rank that has all of them would compute.
#pragma once

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Task/Graph.hpp"
#include "DNDS/Task/GraphWorld.hpp"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::test {

using PlanPair = ArrayPair<ParArray<real, 1>>;
using PlanLocal = ParArray<real, 1>;
using AllRows = std::vector<real>; ///< rows of all ranks

/// Not exact in sums: other orders give other bits.
inline real fieldValue(index global, int version) {
    return std::sin(static_cast<real>(global * 7 + version * 131)) * std::ldexp(1.0, static_cast<int>(global % 11));
}

/// A mesh with fields on it; some ranks may have no faces or cells.
struct PlanWorld : GraphWorld {
    explicit PlanWorld(unsigned seed = 3, index count = 60, int layers = 1, CommunicatorView ranks = MPI_COMM_WORLD)
        : GraphWorld(ranks, seed, count, layers),
          exchanges(ranks.allReduce(cells.ghosts, MPI_MAX) > 0 && ranks.allReduce(faces.ghosts, MPI_MAX) > 0) {}

    bool exchanges; ///< whether any rank has ghosts

    /// Number of pulls where `count` are due with ghosts.
    index times(index count) const { return exchanges ? count : 0; }

    static std::unique_ptr<PlanPair> pair(const std::string &name, const WorldRows &rows, int version,
                                          CommunicatorView ranks = MPI_COMM_WORLD) {
        auto made = std::make_unique<PlanPair>();
        made->initPair(name, ranks);
        made->father->resize(rows.owned);
        made->transAttach();
        made->trans.usePattern(rows.pattern);
        made->trans.createMPITypes();
        set(*made, rows, version);
        return made;
    }
    /// Sets owned rows, ghosts to something that is seen in results.
    static void set(PlanPair &field, const WorldRows &rows, int version) {
        const auto father = field.father->view();
        for (index row = 0; row < rows.owned; ++row)
            father(row, 0) = fieldValue(rows.global[toSize(row)], version);
        const auto son = field.son->view();
        for (index row = 0; row < rows.ghosts; ++row)
            son(row, 0) = 1e30;
    }
    AllRows all(bool ofCells, int version) const {
        AllRows rows(ofCells ? allCellCells.size() : allFaceCells.size());
        for (std::size_t row = 0; row < rows.size(); ++row)
            rows[row] = fieldValue(static_cast<index>(row), version);
        return rows;
    }
    /// Number of owned rows that differ from those of all ranks, by a bit.
    static index wrong(const PlanPair &field, const WorldRows &rows, const AllRows &expected) {
        index count = 0;
        for (index row = 0; row < rows.owned; ++row)
            count += field(row, 0) == expected[toSize(rows.global[toSize(row)])] ? 0 : 1;
        return count;
    }

    auto viewOf(const Adjacency &adjacency) const { return std::as_const(adjacency).view(); }
};

/// A row's own value and those of its neighbours, in their order.
struct MeanKernel {
    GraphWorld::Adjacency::ConstView adjacency;

    template <class In, class Out>
    void operator()(index row, const In &in, const Out &out) const {
        real sum = 0.125;
        for (const LocalIndex other : adjacency[row])
            if (other >= 0)
                sum = 0.7 * sum + 0.3 * in(other);
        out(row) = sum;
    }
};
/// The same for all ranks' rows.
inline AllRows meanOf(const GraphWorld::Lists &lists, const AllRows &in) {
    AllRows out(lists.size());
    for (std::size_t row = 0; row < lists.size(); ++row) {
        real sum = 0.125;
        for (const index other : lists[row])
            if (other >= 0)
                sum = 0.7 * sum + 0.3 * in[toSize(other)];
        out[row] = sum;
    }
    return out;
}

/// out += 0.5 in
struct AddHalf {
    template <class In, class Out>
    void operator()(index row, const In &in, const Out &out) const {
        out(row) += 0.5 * in(row);
    }
};

} // namespace DNDS::test
