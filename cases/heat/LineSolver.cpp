#include "LineSolver.hpp"

#include <algorithm>
#include <utility>

namespace Heat {

namespace {

constexpr index linesOnHost = 16; ///< two cache lines

} // namespace

LineSolver::LineSolver(DNDS::CommunicatorView comm, const Triple &cells, real number, const Placement &placement)
    : number_(number) {
    DNDS_CHECK(std::ranges::all_of(cells, [](index count) { return count > 0; }), DNDS::ArgumentError,
               "a box of {} x {} x {} cells is empty", cells[0], cells[1], cells[2]);
    if (placement.space == DNDS::MemorySpace::Device)
        stream_.emplace();
    const std::vector<index> shape{cells[2], cells[1], cells[0]};
    slabs_.decompose(comm, {.shape = shape, .parts = {-1, 1, 1}});
    turned_.decompose(comm, {.shape = shape, .parts = {1, -1, 1}});
    for (int along = 0; along < 3; ++along)
        factorLine(along, shape[static_cast<std::size_t>(along)]);
    if (stream_) {
        slabs_.toDevice();
        turned_.toDevice();
    }
    there_ = DNDS::makeBlockCopy(slabs_.field(), turned_.field(), {.transport = placement.transport});
    back_ = DNDS::makeBlockCopy(turned_.field(), slabs_.field(), {.transport = placement.transport});
}

/// The elimination of the matrix without its corners, and its solution for the vector (-(1 + 2 r), 0, ..., 0, -r) of
/// the change of rank one that adds them.
void LineSolver::factorLine(int along, index cells) {
    Factors &factors = factors_[static_cast<std::size_t>(along)];
    factors.setName("factors of lines");
    factors.resize(cells);
    const real diagonal = 1 + 2 * number_;
    const auto f = factors.view();
    for (index i = 0; i < cells; ++i) {
        real pivot = diagonal;
        if (i == 0)
            pivot += diagonal;
        if (i == cells - 1)
            pivot += number_ * number_ / diagonal;
        const real before = i == 0 ? 0 : number_ * f(i - 1, Upper);
        f(i, Pivot) = 1 / (pivot + before);
        f(i, Upper) = -number_ * f(i, Pivot);
        real right = i == 0 ? -diagonal : 0;
        if (i == cells - 1)
            right -= number_;
        f(i, Corner) = (right + (i == 0 ? 0 : number_ * f(i - 1, Corner))) * f(i, Pivot);
    }
    for (index i = cells - 1; i-- > 0;)
        f(i, Corner) -= f(i, Upper) * f(i + 1, Corner);
    if (stream_)
        factors.toDevice();
}

void LineSolver::solve(Field &field, int along) {
    const Factors &factors = factors_[static_cast<std::size_t>(along)];
    if (stream_)
        solveLines(DNDS::Executor::device(*stream_), {field.deviceView<DNDS::DeviceBackend::CUDA>(),
                                                      factors.deviceView<DNDS::DeviceBackend::CUDA>(), along, number_});
    else
        solveLines(DNDS::Executor::host(), {field.view(), factors.view(), along, number_, linesOnHost});
}

void LineSolver::move(DNDS::Exchange &copy) {
    if (stream_) {
        copy.start(*stream_);
        copy.wait(*stream_);
    } else {
        copy.start();
        copy.wait();
    }
}

void LineSolver::advance(int steps) {
    for (int step = 0; step < steps; ++step) {
        solve(slabs_, 2);
        solve(slabs_, 1);
        move(*there_);
        solve(turned_, 0);
        move(*back_);
    }
}

void LineSolver::synchronize() {
    if (stream_)
        stream_->synchronize();
}

void LineSolver::set(const std::vector<real> &values) {
    synchronize();
    slabs_.toHost();
    const auto v = slabs_.view();
    DNDS_CHECK(static_cast<index>(values.size()) == v.size(), DNDS::ArgumentError,
               "{} temperatures are given for {} cells", values.size(), v.size());
    std::ranges::copy(values, v.data()); // there are no ghosts
    if (stream_)
        slabs_.toDevice();
}

std::vector<real> LineSolver::values() {
    synchronize();
    slabs_.toHost();
    const auto v = std::as_const(slabs_).view();
    std::vector<real> values(v.data(), v.data() + v.size());
    if (stream_)
        slabs_.toDevice(); // both sides are current
    return values;
}

} // namespace Heat
