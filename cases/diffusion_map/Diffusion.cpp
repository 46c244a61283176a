#include "Diffusion.hpp"

#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace DiffusionMap {

namespace {

constexpr real wall = std::numeric_limits<real>::quiet_NaN();

/// Flow in through a face.
real inflow(real conductance, real there, real here) { return std::isnan(there) ? 0 : conductance * (there - here); }

/// Calls `visit(row, column, value)` for this rank's cells that are no walls.
template <class Visit>
void forEachValue(const Field &field, Visit &&visit) {
    const auto v = field.view();
    for (index i = 0; i < v.extent(0); ++i)
        for (index j = 0; j < v.extent(1); ++j)
            if (!std::isnan(v(i, j)))
                visit(v.global(i, 0), v.global(j, 1), v(i, j));
}

} // namespace

Diffusion::Diffusion(DNDS::CommunicatorView comm, Sphere sphere, real step)
    : comm_(comm), sphere_(std::move(sphere)), step_(step) {
    for (Field &field : fields_) {
        field.decompose(comm, {sphere_.rows(), sphere_.columns()}, 0, {}, {1, 1}, {false, sphere_.periodic()});
        std::fill_n(field.hostPointer(), field.localExtent().size(), wall);
    }
    const DNDS::Box core = field().localCore();
    inner_ = core;
    for (std::size_t d = 0; d < 2; ++d) {
        inner_.lower[d] = std::min(core.lower[d] + 1, core.upper[d]);
        inner_.upper[d] = std::max(core.upper[d] - 1, inner_.lower[d]);
    }
    DNDS::subtractBox(core, inner_, borders_);
}

void Diffusion::advance(index steps) {
    for (index step = 0; step < steps; ++step) {
        Field &from = fields_[current_];
        Field &to = fields_[1 - current_];
        from.startExchangeGhosts();
        compute(from, to, inner_);
        from.finishExchangeGhosts();
        for (const DNDS::Box &border : borders_)
            compute(from, to, border);
        current_ = 1 - current_;
    }
}

void Diffusion::compute(const Field &from, Field &to, const DNDS::Box &cells) const {
    const auto u = from.view();
    const auto next = to.view();
    for (index row = cells.lower[0]; row < cells.upper[0]; ++row)
        for (index column = cells.lower[1]; column < cells.upper[1]; ++column) {
            const index i = u.local(row, 0);
            const index j = u.local(column, 1);
            const real here = u(i, j);
            real flow = inflow(sphere_.meridional(row, column), u(i - 1, j), here);
            flow += inflow(sphere_.meridional(row + 1, column), u(i + 1, j), here);
            flow += inflow(sphere_.zonal(row, column), u(i, j - 1), here);
            flow += inflow(sphere_.zonal(row, column + 1), u(i, j + 1), here);
            next(i, j) = here + step_ * flow / sphere_.area(row, column);
        }
}

real Diffusion::integral() const {
    std::vector<real> terms;
    forEachValue(field(),
                 [&](index row, index column, real value) { terms.push_back(value * sphere_.area(row, column)); });
    return DNDS::exactSum(comm_, terms);
}

std::pair<real, real> Diffusion::range() const {
    constexpr real infinity = std::numeric_limits<real>::infinity();
    real low = infinity;
    real high = -infinity;
    forEachValue(field(), [&](index, index, real value) {
        low = std::min(low, value);
        high = std::max(high, value);
    });
    low = comm_.allReduce(low, MPI_MIN);
    high = comm_.allReduce(high, MPI_MAX);
    return low <= high ? std::pair{low, high} : std::pair{wall, wall};
}

} // namespace DiffusionMap
