#include "Solver.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace Heat {

namespace {

void fillRows(DNDS::Array<LocalIndex, 1> &rows, std::span<const index> from, const char *name) {
    rows.setName(name);
    rows.resize(static_cast<index>(from.size()));
    std::transform(from.begin(), from.end(), rows.data(), [](index row) { return static_cast<LocalIndex>(row); });
}

} // namespace

Solver::Solver(DNDS::CommunicatorView comm, const Blocks &blocks, real number, const Placement &placement)
    : number_(number) {
    const bool device = placement.space == DNDS::MemorySpace::Device;
    if (device)
        streams_.emplace();

    Pair &first = fields_[0];
    first.initPair("temperature", comm);
    first.father->resize(blocks.rows());
    first.transAttach();
    first.trans.createFatherGlobalMapping();

    const std::vector<index> neighbours = blocks.neighbours();
    const DNDS::GlobalMapping &mapping = *first.father->globalMapping();
    std::vector<index> ghosts;
    std::copy_if(neighbours.begin(), neighbours.end(), std::back_inserter(ghosts),
                 [&](index row) { return !mapping.isLocal(row); });
    first.trans.createGhostMapping(ghosts);
    first.trans.createMPITypes();

    Pair &second = fields_[1];
    second.initPair("next temperature", comm);
    second.father->resize(blocks.rows());
    second.transAttach();
    second.trans.borrowGGIndexing(first.trans);
    second.trans.createMPITypes();

    const std::vector<LocalIndex> local = first.trans.ghostMapping()->toLocal(neighbours);
    sides_.setName("sides");
    sides_.resize(blocks.rows());
    std::copy(local.begin(), local.end(), sides_.data());
    fillRows(inner_, first.trans.pattern()->innerRows(), "inner cells");
    fillRows(boundary_, first.trans.pattern()->boundaryRows(), "boundary cells");

    if (device) {
        sides_.toDevice();
        inner_.toDevice();
        boundary_.toDevice();
    }
    for (Pair &field : fields_) {
        if (device)
            field.toDevice();
        field.trans.initPersistentPull(
            {placement.transport, device ? DNDS::ExchangeSpace::Device : DNDS::ExchangeSpace::Host});
    }
}

void Solver::set(const std::vector<real> &values) {
    synchronize();
    Pair &field = fields_[current_];
    DNDS_CHECK(static_cast<index>(values.size()) == field.father->size(), DNDS::ArgumentError,
               "{} temperatures are given for {} cells", values.size(), field.father->size());
    if (onDevice())
        field.father->toHost(); // to be written there
    std::copy(values.begin(), values.end(), field.father->view().data());
    if (onDevice())
        field.father->toDevice();
}

std::vector<real> Solver::values() {
    synchronize();
    Pair &field = fields_[current_];
    if (onDevice())
        field.father->toHost();
    const auto view = std::as_const(*field.father).view();
    return {view.data(), view.data() + view.size()};
}

void Solver::synchronize() {
    if (!onDevice())
        return;
    streams_->boundary.synchronize();
    streams_->inner.synchronize();
}

template <DNDS::DeviceBackend backend>
Diffuse Solver::kernel(Pair &from, Pair &to, const Rows &cells) const {
    return {std::as_const(from).template deviceView<backend>(), to.father->template deviceView<backend>(),
            sides_.template deviceView<backend>(), cells.template deviceView<backend>(), number_};
}

void Solver::advance(int steps) {
    for (int step = 0; step < steps; ++step) {
        Pair &from = fields_[current_];
        current_ = 1 - current_;
        onDevice() ? stepOnDevice(from, fields_[current_]) : stepOnHost(from, fields_[current_]);
    }
}

void Solver::stepOnHost(Pair &from, Pair &to) {
    const auto host = DNDS::Executor::host();
    from.trans.startPersistentPull();
    diffuse(host, kernel<DNDS::DeviceBackend::Host>(from, to, inner_)); // inner cells read no ghosts
    from.trans.waitPersistentPull();
    diffuse(host, kernel<DNDS::DeviceBackend::Host>(from, to, boundary_));
}

void Solver::stepOnDevice(Pair &from, Pair &to) {
    using DNDS::Executor;
    StreamPair &streams = *streams_;
    from.trans.startPersistentPull(streams.boundary);
    // Each kernel reads what both kernels of the previous step wrote, and overwrites what they read.
    streams.boundaryDone.holdBack(streams.inner);
    streams.innerDone.holdBack(streams.boundary);

    diffuse(Executor::device(streams.inner), kernel<DNDS::DeviceBackend::CUDA>(from, to, inner_));
    streams.innerDone.record(streams.inner);

    from.trans.waitPersistentPull(streams.boundary);
    diffuse(Executor::device(streams.boundary), kernel<DNDS::DeviceBackend::CUDA>(from, to, boundary_));
    streams.boundaryDone.record(streams.boundary);
}

} // namespace Heat
