// The program of docs/guides/recovery.md: a step that fails on one rank is repeated on all of them, with half the time
// step.
//
//   mpiexec -n 2 recovery
//
// It ends with exit code 0 only if the steps succeed in the end, and no heat is lost.

#include "DNDS/DNDS.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <exception>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

using DNDS::Index, DNDS::real;

constexpr Index cells = 4; // of each rank; those of all ranks form a ring
constexpr int steps = 12;

/// A field of one number a cell.
struct Rod {
    explicit Rod(DNDS::CommunicatorView world) : heat("heat", world, cells) {
        const DNDS::GlobalMapping &rows = *heat.father->globalMapping();
        std::vector<Index> reads;
        for (Index row = rows.localBegin(); row < rows.localEnd(); row++)
            for (const Index other : {row - 1, row + 1})
                reads.push_back((other + rows.globalSize()) % rows.globalSize());
        neighbours = heat.ghostsFor(reads);
    }

    /// One explicit step. Throws where a cell gets less than nothing: the step is too long.
    void advance(real dt) {
        heat.pull();
        std::array<real, cells> next{};
        const auto u = std::as_const(heat).view();
        for (Index i = 0; i < cells; i++) {
            const auto *side = neighbours.data() + 2 * i;
            next[static_cast<std::size_t>(i)] = u(i) + dt * (u(side[0]) - 2 * u(i) + u(side[1]));
            if (next[static_cast<std::size_t>(i)] < 0)
                throw std::runtime_error(fmt::format("negative heat in cell {}", i));
        }
        set(next);
    }
    void set(const std::array<real, cells> &values) {
        for (Index i = 0; i < cells; i++)
            (*heat.father)(i) = values[static_cast<std::size_t>(i)];
    }
    std::array<real, cells> get() const {
        std::array<real, cells> values{};
        for (Index i = 0; i < cells; i++)
            values[static_cast<std::size_t>(i)] = std::as_const(*heat.father)(i);
        return values;
    }

    DNDS::ArrayPair<DNDS::ParArray<real, 1>> heat;
    std::vector<DNDS::LocalIndex> neighbours;
};

/// The heat of all ranks. A running call, as MPI_Allreduce is not: where a rank has failed, it throws.
real sumOf(DNDS::PendingReduction &total, const std::array<real, cells> &values) {
    DNDS::ReductionValue mine = DNDS::ReductionValue::none(DNDS::ReduceOp::Sum);
    for (const real value : values)
        mine.add(value);
    total.start(std::span(&mine, 1));
    return total.wait()[0].value();
}

int solve(DNDS::CommunicatorView world) {
    Rod rod(world);
    DNDS::PendingReduction total(DNDS::CommunicatorContext::of(world), "heat");
    rod.set({1, 1, 1, 1});

    real dt = 0.8, sum = 0;
    int step = 0, failures = 0;
    std::array<std::array<real, cells>, 2> before{}; // of this step and the one before
    while (step < steps) {
        try {
            if (step == 5 && world.rank() == world.size() - 1 && dt > 0.5) {
                std::array<real, cells> struck = rod.get(); // lightning: the next step is too long for this rank
                struck[2] = 5;
                rod.set(struck);
            }
            before[static_cast<std::size_t>(step % 2)] = rod.get();
            rod.advance(dt);
            sum = sumOf(total, rod.get()); // all ranks have done the step; nobody is further than the next one
            step++;
        } catch (const std::exception &error) {
            if (!DNDS::isRevoked(world))
                DNDS::revoke(world, std::current_exception()); // the others throw RevokedError
            DNDS::recover(world);
            if (++failures > 10)
                throw;
            step = world.allReduce(step, MPI_MIN); // this rank may have been a step ahead of the one that failed
            rod.set(before[static_cast<std::size_t>(step % 2)]);
            dt /= 2;
            if (world.rank() == 0)
                fmt::print("step {} again, with dt = {}: {}\n", step, dt, error.what());
        }
    }
    const real expected = static_cast<real>(cells * world.size() + 4);
    return failures == 1 && std::abs(sum - expected) < 1e-12 * expected ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, solve); }
