#include "Solver.hpp"

#include <algorithm>
#include <utility>

namespace Heat {

Solver::Solver(DNDS::CommunicatorView comm, const Triple &cells, real number, const Placement &placement)
    : number_(number) {
    DNDS_CHECK(std::ranges::all_of(cells, [](index count) { return count > 0; }), DNDS::ArgumentError,
               "a box of {} x {} x {} cells is empty", cells[0], cells[1], cells[2]);
    const bool device = placement.space == DNDS::MemorySpace::Device;
    if (device)
        streams_.emplace();
    for (Field &field : fields_)
        field.decompose(comm, {cells[2], cells[1], cells[0]}, 0, {}, {1, 1, 1}, {true, true, true});
    listCells();
    for (Field &field : fields_) {
        if (device)
            field.toDevice();
        field.field().initExchangeGhosts({placement.transport});
    }
}

void Solver::listCells() {
    const auto v = std::as_const(fields_[0]).view();
    std::vector<LocalIndex> lists[2];
    for (index k = 0; k < v.extent(0); ++k)
        for (index j = 0; j < v.extent(1); ++j)
            for (index i = 0; i < v.extent(2); ++i) {
                const bool inside =
                    k > 0 && k + 1 < v.extent(0) && j > 0 && j + 1 < v.extent(1) && i > 0 && i + 1 < v.extent(2);
                lists[inside ? 0 : 1].push_back(static_cast<LocalIndex>(&v(k, j, i) - v.data()));
            }
    const auto keep = [&](Cells &cells, const std::vector<LocalIndex> &list, const char *name) {
        cells.setName(name);
        cells.resize(static_cast<index>(list.size()));
        std::copy(list.begin(), list.end(), cells.data());
        if (onDevice())
            cells.toDevice();
    };
    keep(inner_, lists[0], "inner cells");
    keep(boundary_, lists[1], "boundary cells");
}

void Solver::set(const std::vector<real> &values) {
    synchronize();
    Field &field = fields_[current_];
    field.toHost(); // to be written there
    const auto v = field.view();
    DNDS_CHECK(static_cast<index>(values.size()) == v.size(), DNDS::ArgumentError,
               "{} temperatures are given for {} cells", values.size(), v.size());
    for (index n = 0; n < v.size(); ++n)
        v(v.indexOf(n, 0), v.indexOf(n, 1), v.indexOf(n, 2)) = values[static_cast<std::size_t>(n)];
    if (onDevice())
        field.toDevice();
}

std::vector<real> Solver::values() {
    synchronize();
    Field &field = fields_[current_];
    field.toHost();
    const auto v = std::as_const(field).view();
    std::vector<real> values;
    for (index n = 0; n < v.size(); ++n)
        values.push_back(v(v.indexOf(n, 0), v.indexOf(n, 1), v.indexOf(n, 2)));
    if (onDevice())
        field.toDevice(); // where the next exchange is; both sides are current
    return values;
}

void Solver::synchronize() {
    if (!onDevice())
        return;
    streams_->boundary.synchronize();
    streams_->inner.synchronize();
}

template <DNDS::DeviceBackend backend>
Diffuse Solver::kernel(const Field &from, Field &to, const Cells &cells) const {
    return {from.deviceView<backend>(), to.deviceView<backend>(), cells.deviceView<backend>(), number_};
}

void Solver::advance(int steps) {
    for (int step = 0; step < steps; ++step) {
        Field &from = fields_[current_];
        current_ = 1 - current_;
        onDevice() ? stepOnDevice(from, fields_[current_]) : stepOnHost(from, fields_[current_]);
    }
}

void Solver::stepOnHost(Field &from, Field &to) {
    const auto host = DNDS::Executor::host();
    from.startExchangeGhosts();
    diffuse(host, kernel<DNDS::DeviceBackend::Host>(from, to, inner_));
    from.finishExchangeGhosts();
    diffuse(host, kernel<DNDS::DeviceBackend::Host>(from, to, boundary_));
}

void Solver::stepOnDevice(Field &from, Field &to) {
    using DNDS::Executor;
    StreamPair &streams = *streams_;
    from.startExchangeGhosts(streams.boundary);
    // Each kernel reads the output of both kernels of the previous step, and overwrites their input.
    streams.boundaryDone.holdBack(streams.inner);
    streams.innerDone.holdBack(streams.boundary);

    diffuse(Executor::device(streams.inner), kernel<DNDS::DeviceBackend::CUDA>(from, to, inner_));
    streams.innerDone.record(streams.inner);

    from.finishExchangeGhosts(streams.boundary);
    diffuse(Executor::device(streams.boundary), kernel<DNDS::DeviceBackend::CUDA>(from, to, boundary_));
    streams.boundaryDone.record(streams.boundary);
}

} // namespace Heat
