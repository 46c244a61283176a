#include "Advection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace SparseAdvection {

using DNDS::CommunicatorView;
using DNDS::toSize;

std::vector<Species> threeSpecies() {
    return {{"dust", {1, 0, 0}, {0.25, 0.3, 0.3}, 0.14},
            {"soot", {0.5, 1, 0}, {0.7, 0.25, 0.5}, 0.1},
            {"radical", {-1, 0.5, 0.5}, {0.6, 0.7, 0.75}, 0.07}};
}

std::vector<Species> burningSpecies() {
    return {{"dust", {1, 0, 0}, {0.25, 0.5, 0.5}, 0.14},
            {"soot", {-1, 0, 0}, {0.75, 0.5, 0.5}, 0.12},
            {"radical", {0, 0.5, 0.5}, {0, 0, 0}, 0}};
}

real Setup::timeStep() const {
    real fastest = 0;
    for (const Species &one : species)
        fastest = std::max(fastest, std::abs(one.wind[0]) + std::abs(one.wind[1]) + std::abs(one.wind[2]));
    return courant * cellSize() / fastest;
}

std::shared_ptr<const DNDS::BlockGrid> Setup::grid(const CommunicatorView &comm) const {
    const std::vector<index> shape(3, cellsAcross());
    const DNDS::IndexSpace space{"box", DNDS::Box::ofShape(shape), {true, true, true}};
    return DNDS::BlockGrid::blocksOf(comm, space, {cells, cells, cells});
}

real blobAt(const Species &species, const std::array<real, 3> &point) {
    real square = 0;
    for (std::size_t d = 0; d < 3; ++d) {
        const real away = point[d] - species.centre[d];
        const real nearest = away - std::round(away); // through the periods
        square += nearest * nearest;
    }
    const real r = std::sqrt(square) / species.radius;
    return r < 1 ? 0.5 + 0.5 * std::cos(std::numbers::pi * r) : 0;
}

namespace {

/// The upwind value at the face between `b` and `c`, of four cells in a row.
real upwindValue(real a, real b, real c, real d, real wind) {
    const auto from = [](real before, real here, real ahead) {
        const real left = here - before;
        const real right = ahead - here;
        return here + (left * right > 0 ? left * right / (left + right) : 0);
    };
    return wind > 0 ? from(a, b, c) : from(d, c, b);
}

/// Flow into a cell along one dimension, whose neighbours are `stride` elements away.
real inflow(const real *cell, index stride, real courant) {
    const real low = upwindValue(cell[-2 * stride], cell[-stride], cell[0], cell[stride], courant);
    const real high = upwindValue(cell[-stride], cell[0], cell[stride], cell[2 * stride], courant);
    return courant * (low - high);
}

std::array<real, 3> courantsOf(const Species &species, const Setup &setup) {
    std::array<real, 3> courants{};
    for (std::size_t d = 0; d < 3; ++d)
        courants[d] = species.wind[d] * setup.timeStep() / setup.cellSize();
    return courants;
}

template <class Visit>
void forEachCell(const BlockView<const real> &view, Visit &&visit) {
    for (index i = 0; i < view.extent(0); ++i)
        for (index j = 0; j < view.extent(1); ++j)
            for (index k = 0; k < view.extent(2); ++k)
                visit(i, j, k);
}

std::array<real, 3> centreOf(const BlockView<const real> &view, const Setup &setup, const std::array<index, 3> &cell) {
    std::array<real, 3> centre{};
    for (int d = 0; d < 3; ++d)
        centre[toSize(d)] = (static_cast<real>(view.global(cell[toSize(d)], d)) + 0.5) * setup.cellSize();
    return centre;
}

} // namespace

void advanceBlock(const BlockView<const real> &now, const BlockView<const real> &old, const BlockView<real> &next,
                  const std::array<real, 3> &courants, real keep) {
    forEachCell(now, [&](index i, index j, index k) {
        const real *cell = &now(i, j, k);
        real change = 0;
        for (int d = 0; d < 3; ++d)
            change += inflow(cell, now.stride(d), courants[toSize(d)]);
        next(i, j, k) = keep * old(i, j, k) + (1 - keep) * (*cell + change);
    });
}

SparseRun::SparseRun(const CommunicatorView &comm, const Setup &setup, const DNDS::SparseFieldOptions &thresholds)
    : setup_(setup), pattern_(DNDS::SparsePattern::make(comm, setup.grid(comm), {2, 2, 2})) {
    DNDS::SparseFieldOptions options = thresholds;
    options.stages = 3;
    for (const Species &species : setup.species)
        fields_.emplace_back(species.name, pattern_, options);
    for (auto &field : fields_)
        dropped_.emplace_back(field);
    for (auto &field : fields_)
        pack_.add(field);
    makeExchange();
    for (std::size_t s = 0; s < fields_.size(); ++s)
        for (int b = 0; b < fields_[s].blocks(); ++b) {
            fields_[s].allocate(b);
            const auto view = fields_[s].view(b);
            bool something = false;
            forEachCell(view, [&](index i, index j, index k) {
                view(i, j, k) = blobAt(setup.species[s], centreOf(view, setup, {i, j, k}));
                something = something || view(i, j, k) > thresholds.deallocationThreshold;
            });
            if (!something)
                fields_[s].free(b);
        }
}

void SparseRun::makeExchange() {
    std::vector<DNDS::SparseFieldCore *> cores;
    for (auto &field : fields_)
        cores.push_back(&field);
    exchange_ = std::make_unique<DNDS::SparseFields>("species", cores);
}

void SparseRun::rebalance() {
    std::vector<real> costs(pattern_->blocks().size(), 0); // [blocks of this rank]
    for (const auto &field : fields_)
        for (const int b : field.allocatedBlocks())
            costs[toSize(b)] += 1;
    const CommunicatorView comm = pattern_->context()->comm();
    pattern_ = DNDS::SparsePattern::make(comm, grid()->rebalanced(comm, costs), pattern_->ghosts());
    for (std::size_t s = 0; s < fields_.size(); ++s) {
        fields_[s] = fields_[s].moved(pattern_);
        dropped_[s].follow(fields_[s]);
    }
    earlier_ = traffic();
    makeExchange();
}

DNDS::SparseTraffic SparseRun::traffic() const {
    DNDS::SparseTraffic traffic = exchange_->traffic();
    traffic.bytes += earlier_.bytes;
    traffic.allocations += earlier_.allocations;
    traffic.frees += earlier_.frees;
    return traffic;
}

void SparseRun::step() {
    stepSeconds_ = 0;
    // Stage 0 is now, stage 1 the start of the step, stage 2 is written.
    for (const real keep : {0.0, 0.5}) {
        exchange_->exchangeGhosts();
        const double begin = MPI_Wtime();
        for (std::size_t s = 0; s < fields_.size(); ++s) {
            auto &field = fields_[s];
            const auto courants = courantsOf(setup_.species[s], setup_);
            for (const int b : field.allocatedBlocks()) {
                const auto now = std::as_const(field).view(b);
                advanceBlock(now, keep == 0 ? now : std::as_const(field).view(b, 1), field.view(b, 2), courants, keep);
            }
            if (keep == 0)
                field.swapStages(0, 1);
            field.swapStages(0, 2);
        }
        stepSeconds_ += MPI_Wtime() - begin;
    }
    if (setup_.reaction > 0) {
        const double begin = MPI_Wtime();
        react();
        stepSeconds_ += MPI_Wtime() - begin;
    }
}

void SparseRun::react() {
    for (const int b : fields_[0].allocatedBlocks())
        if (fields_[1].isAllocated(b))
            fields_[2].allocate(b);
    DNDS::forEachCell(DNDS::Executor::host(), pack_, {0, 1, 2}, React{setup_.reaction, setup_.timeStep()});
}

double SparseRun::memory() const {
    auto bytes = static_cast<double>(traffic().bufferBytes);
    for (const auto &field : fields_)
        bytes += static_cast<double>(field.memoryBytes());
    return bytes;
}

double SparseRun::allocatedBlocks() const {
    double blocks = 0;
    for (const auto &field : fields_)
        blocks += static_cast<double>(field.allocatedBlocks().size());
    return blocks;
}

std::vector<real> SparseRun::masses() const {
    std::vector<real> masses;
    for (const auto &field : fields_)
        masses.push_back(DNDS::sums(field)[0] * std::pow(setup_.cellSize(), 3));
    return masses;
}

std::vector<real> SparseRun::dropped() const {
    std::vector<real> masses;
    for (const auto &sums : dropped_)
        masses.push_back(sums.sums()[0] * std::pow(setup_.cellSize(), 3));
    return masses;
}

std::string lossText(real before, real after, real dropped) {
    return fmt::format("changed by {:.1e}: {:.1e} with blocks that were freed, {:.1e} at faces whose ghosts were 0",
                       after / before - 1, 0 - dropped / before, (after - before + dropped) / before);
}

DenseRun::DenseRun(const CommunicatorView &comm, const Setup &setup)
    : setup_(setup), pattern_(DNDS::BlockPattern::make(comm, setup.grid(comm), {2, 2, 2})) {
    for (const Species &species : setup.species)
        for (auto *fields : {&now_, &old_, &next_})
            fields->emplace_back(species.name, comm, pattern_);
    for (auto &field : now_)
        group_.add(field);
    for (auto &field : now_)
        pack_.add(field);
    group_.initPersistentPull();
    for (std::size_t s = 0; s < now_.size(); ++s)
        for (int b = 0; b < now_[s].blocks(); ++b) {
            const auto view = now_[s].view(b);
            forEachCell(view, [&](index i, index j, index k) {
                view(i, j, k) = blobAt(setup.species[s], centreOf(view, setup, {i, j, k}));
            });
        }
}

void DenseRun::exchange() {
    group_.startPersistentPull();
    group_.waitPersistentPull();
}

void DenseRun::stage(real keep) {
    exchange();
    for (std::size_t s = 0; s < now_.size(); ++s) {
        for (int b = 0; b < now_[s].blocks(); ++b) {
            const auto now = std::as_const(now_[s]).view(b);
            advanceBlock(now, keep == 0 ? now : std::as_const(old_[s]).view(b), next_[s].view(b),
                         courantsOf(setup_.species[s], setup_), keep);
        }
        if (keep == 0)
            now_[s].swapData(old_[s]);
        now_[s].swapData(next_[s]);
    }
}

void DenseRun::step() {
    stage(0);
    stage(0.5);
    if (setup_.reaction > 0)
        DNDS::forEachCell(DNDS::Executor::host(), pack_, React{setup_.reaction, setup_.timeStep()});
}

double DenseRun::memory() const {
    return static_cast<double>(pattern_->rows()) * sizeof(real) * static_cast<double>(3 * now_.size());
}

double DenseRun::bytesSent() const {
    double rows = 0;
    const auto &readers = pattern_->exchange()->readers();
    for (std::size_t k = 0; k < readers.size(); ++k)
        if (readers.ranks[k] != now_.front().array().comm().rank())
            rows += static_cast<double>(readers.lists[k].count());
    return rows * sizeof(real) * static_cast<double>(now_.size());
}

real largestDifference(const SparseRun &sparse, const DenseRun &dense) {
    real largest = 0;
    for (std::size_t s = 0; s < dense.fields().size(); ++s) {
        const auto &there = sparse.fields()[s];
        const auto all = dense.fields()[s].moved(sparse.grid());
        for (int b = 0; b < there.blocks(); ++b) {
            const auto u = all.view(b);
            const auto v = there.isAllocated(b) ? there.view(b) : BlockView<const real>();
            forEachCell(u, [&](index i, index j, index k) {
                largest = std::max(largest, std::abs(u(i, j, k) - (v.data() == nullptr ? 0 : v(i, j, k))));
            });
        }
    }
    return largest;
}

} // namespace SparseAdvection
