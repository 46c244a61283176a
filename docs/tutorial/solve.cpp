// The second program of docs/start/tutorial.md: rows as vectors, and an iterative solver on them.
//
//   mpiexec -n 3 solve
//
// It ends with exit code 0 only if the solution is right on all ranks.

#include "DNDS/DNDS.hpp"

#include <fmt/core.h>

#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace {

using DNDS::Index;
using DNDS::LocalIndex;
using DNDS::real;
using Field = DNDS::ArrayDof<2, 1>; // a vector of two numbers a row, and the operations of iterative solvers

/// result = A u on a ring: (A u)_i = 2.1 u_i - u_left - u_right. Pulls the ghosts of `u`.
void apply(Field &u, std::span<const LocalIndex> sides, Field &result) {
    const auto rows = [&](std::span<const Index> which, const auto &from) {
        const auto to = result.father->view();
        for (const Index i : which) {
            const LocalIndex *side = sides.data() + 2 * i;
            to[i] = 2.1 * from[i] - from[side[0]] - from[side[1]];
        }
    };
    u.trans.startPersistentPull();
    rows(u.trans.pattern()->innerRows(), std::as_const(*u.father).view());
    u.trans.waitPersistentPull();
    rows(u.trans.pattern()->boundaryRows(), std::as_const(u).view());
}

/// Solves A x = b by the method of conjugate gradients (Hestenes and Stiefel 1952). Returns the number of steps.
int solve(Field &x, const Field &b, Field &residual, Field &direction, Field &product,
          std::span<const LocalIndex> sides) {
    x.setConstant(0);
    residual.copyFrom(b);
    direction.copyFrom(b);
    real square = residual.dot(residual);
    const real enough = 1e-24 * square;
    int step = 0;
    for (; square > enough && step < 1000; step++) {
        apply(direction, sides, product);
        const real length = square / direction.dot(product);
        x.axpy(length, direction);
        residual.axpy(-length, product);
        const real before = std::exchange(square, residual.dot(residual));
        direction *= square / before;
        direction += residual;
    }
    return step;
}

int run(DNDS::CommunicatorView world) {
    using DNDS::Index;
    const Index cells = 20; // on each rank

    Field x;
    x.initPair("x", world);
    x.father->resize(cells);
    x.transAttach();
    x.trans.createFatherGlobalMapping();
    const DNDS::GlobalMapping &rows = *x.father->globalMapping();
    std::vector<Index> reads; // two for each cell
    for (Index row = rows.localBegin(); row < rows.localBegin() + cells; row++)
        for (const Index other : {row - 1, row + 1})
            reads.push_back((other + rows.globalSize()) % rows.globalSize());
    x.trans.createGhostMapping(std::vector<Index>{reads.front(), reads.back()});
    x.trans.createMPITypes();
    const std::vector<LocalIndex> sides = x.trans.ghostMapping()->toLocal(reads);

    Field b, residual, direction, product, exact;
    for (Field *field : {&b, &residual, &direction, &product, &exact}) {
        field->initPair("one of five", world);
        field->father->resize(cells);
        field->borrowAndPull(x);
        field->trans.initPersistentPull();
    }

    // b = A exact, so that we know what to find.
    for (Index i = 0; i < cells; i++) {
        const Index row = rows.toGlobal(world.rank(), i);
        (*exact.father)[i] = Eigen::Vector2d(std::sin(static_cast<real>(row)), static_cast<real>(row % 7));
    }
    apply(exact, sides, b);

    const int steps = solve(x, b, residual, direction, product, sides);
    const bool right = steps < 1000 && x.norm2(exact) < 1e-10 * exact.norm2();
    if (world.rank() == 0)
        fmt::print("{} cells: {}\n", rows.globalSize(), right ? "the solution is right" : "the solution is wrong");
    return right ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
