/// @file Components.hpp
/// @brief Connected components by union-find on rows that any rank changes in place.
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Geom/Geom.hpp"
#include "DNDS/OneSided/GhostWindow.hpp"

namespace Components {

using DNDS::index;
using Numbers = DNDS::ArrayPair<DNDS::ParArray<index, 1>>;

/// The representative of a cell's component, a global number, by the rows of parents: those with a smaller number are
/// nearer to it. Halves the path on its way. `Parents` is a GhostWindow or its view.
template <class Parents>
DNDS_HOST_DEVICE index rootOf(Parents &parents, index cell) {
    while (true) {
        const index parent = parents.fetch(parents.global(cell));
        if (parent == cell)
            return cell;
        const index grandparent = parents.fetch(parents.global(parent));
        if (grandparent != parent)
            parents.compareAndSwap(parents.global(cell), 0, parent, grandparent);
        cell = parent;
    }
}

/// Joins the components of two cells, whatever other ranks and threads join meanwhile: the larger root gets the smaller
/// one as its parent, if it still is a root (Anderson and Woll: Wait-free parallel algorithms for the union-find
/// problem, STOC 1991). So the root of a component is its smallest cell in the end.
template <class Parents>
DNDS_HOST_DEVICE void join(Parents &parents, index a, index b) {
    while (true) {
        a = rootOf(parents, a);
        b = rootOf(parents, b);
        if (a == b)
            return;
        const index larger = a < b ? b : a;
        const index smaller = a < b ? a : b;
        if (parents.compareAndSwap(parents.global(larger), 0, larger, smaller) == larger)
            return;
    }
}

/// Joins an own cell with its neighbours of smaller number; cells with number -1 are closed. Each face between two
/// ranks is looked at by one of them.
template <class Parents>
struct JoinNeighbours {
    Parents parents;
    DNDS::ArrayPairView<decltype(std::declval<const DNDS::ParArray<index, 1> &>().view())> numbers;
    DNDS::Geom::LocalAdjacency::ConstView neighbours;

    DNDS_HOST_DEVICE void operator()(index cell) const {
        const index number = numbers(cell, 0);
        if (number < 0)
            return;
        auto rows = parents;
        for (const DNDS::LocalIndex other : neighbours[cell])
            if (other >= 0 && numbers(other, 0) >= 0 && numbers(other, 0) < number)
                join(rows, number, numbers(other, 0));
    }
};

/// Once all are joined: gives an own cell its root as its parent.
template <class Parents>
struct PointAtRoot {
    Parents parents;

    DNDS_HOST_DEVICE void operator()(index cell) const {
        auto rows = parents;
        const index parent = rows.fetch(rows.local(cell));
        if (parent >= 0)
            rows.accumulate(rows.local(cell), 0, rootOf(rows, parent), DNDS::AtomicOp::Set);
    }
};

using ParentsView = DNDS::GhostWindowView<index>;
/// Kernels on the host or on the device.
void joinAll(const DNDS::Executor &executor, index cells, const JoinNeighbours<ParentsView> &body);
void pointAll(const DNDS::Executor &executor, index cells, const PointAtRoot<ParentsView> &body);

} // namespace Components
