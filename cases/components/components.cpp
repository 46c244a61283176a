// Connected components of the open cells of a mesh, found twice: by compare-and-swap on the rows of their owners, and
// by pulling ghosts until nothing changes.
//
//   mpiexec -n 4 components --cells 100000 --open 0.6 --on kernels
//
// Components cross many ranks, and no rank knows which rows it will have to change: there are no push lists to make.
// The program ends with an error unless both ways find the same component for each cell.

#include "Components.hpp"

#include "DNDS/DNDS.hpp"
#include "DNDS/Device/Stream.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

namespace {

using namespace Components;
using DNDS::index; // POSIX has a function of that name
namespace Geom = DNDS::Geom;
using DNDS::CommunicatorView;
using DNDS::Executor;
using DNDS::MemorySpace;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Geom::UnstructuredMesh makeMesh(CommunicatorView comm, index cells) {
    const auto side = std::max<index>(1, std::lround(std::sqrt(0.5 * static_cast<double>(cells))));
    Geom::BoxMeshOptions box;
    box.fill = Geom::BoxCells::Triangles;
    box.cells = {side, side, 1};
    box.shuffled = true;
    Geom::MeshOptions options;
    options.ghostsBy = Geom::GhostNeighbours::Faces;
    return Geom::buildMesh(comm, Geom::makeBoxMesh(box, comm), options);
}

/// Whether a cell is open: drawn from its number in the mesh as it was generated, so the same on any number of ranks.
bool isOpen(index fileNumber, double share) {
    std::uint64_t bits = static_cast<std::uint64_t>(fileNumber) + 0x9E3779B97F4A7C15U;
    bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
    bits ^= bits >> 31U;
    return static_cast<double>(bits >> 11U) < share * 9007199254740992.0;
}

/// Of each cell its global number, -1 if it is closed.
Numbers numberCells(const Geom::UnstructuredMesh &mesh, double share) {
    Numbers numbers;
    numbers.initPair("number", mesh.comm);
    numbers.father->resize(mesh.cells.owned);
    Geom::attachField(numbers, mesh.cells);
    const index first = mesh.cells.mapping().global()->localBegin();
    for (index cell = 0; cell < mesh.cells.owned; ++cell)
        (*numbers.father)(cell, 0) = isOpen(mesh.cells.fileNumbers[DNDS::toSize(cell)], share) ? first + cell : -1;
    numbers.trans.pullOnce();
    return numbers;
}

struct Found {
    Numbers labels;
    double time = 0;
    index rounds = 0; ///< pulls
};

/// By calls on the host: the same as the kernels.
void joinOnHost(const Geom::UnstructuredMesh &mesh, const Numbers &numbers, DNDS::GhostWindow<index> &parents) {
    const auto number = numbers.view();
    const auto neighbours = mesh.cellCells.view();
    for (index cell = 0; cell < mesh.cells.owned; ++cell)
        for (const DNDS::LocalIndex other : neighbours[cell])
            if (number(cell, 0) >= 0 && other >= 0 && number(other, 0) >= 0 && number(other, 0) < number(cell, 0))
                join(parents, number(cell, 0), number(other, 0));
    parents.barrier();
    for (index cell = 0; cell < mesh.cells.owned; ++cell)
        if (number(cell, 0) >= 0)
            parents.accumulate(parents.local(cell), 0, rootOf(parents, number(cell, 0)), DNDS::AtomicOp::Set);
    parents.barrier();
}

Found byCompareAndSwap(Geom::UnstructuredMesh &mesh, Numbers &numbers, const std::string &on) {
    Found found;
    found.labels.clone(numbers);
    if (on == "device") {
        mesh.cellCells.toDevice();
        numbers.toDevice();
        found.labels.toDevice();
    }
    DNDS::GhostWindow parents(found.labels, on == "device" ? MemorySpace::Device : MemorySpace::Host);
    const index cells = mesh.cells.owned;
    const auto &neighbours = std::as_const(mesh.cellCells);
    const Numbers &number = numbers;
    mesh.comm.barrier();
    const double start = seconds();
    if (on == "host") {
        joinOnHost(mesh, numbers, parents);
    } else if (on == "kernels") {
        joinAll(Executor::host(), cells, {parents.view(), number.view(), neighbours.view()});
        parents.barrier();
        pointAll(Executor::host(), cells, {parents.view()});
        parents.barrier();
    } else {
        const DNDS::Device::Stream stream;
        joinAll(Executor::device(stream), cells,
                {parents.view(), number.deviceView<DNDS::DeviceBackend::CUDA>(),
                 neighbours.deviceView<DNDS::DeviceBackend::CUDA>()});
        parents.barrier(stream);
        pointAll(Executor::device(stream), cells, {parents.view()});
        parents.barrier(stream);
    }
    found.time = seconds() - start;
    found.labels.father->toHost();
    return found;
}

/// Each cell takes the smallest label of its neighbours until no label changes anywhere.
Found byPulls(const Geom::UnstructuredMesh &mesh, const Numbers &numbers) {
    Found found;
    found.labels.clone(numbers);
    found.labels.trans.initPersistentPull();
    const auto neighbours = std::as_const(mesh.cellCells).view();
    mesh.comm.barrier();
    const double start = seconds();
    for (index changed = 1; changed > 0; ++found.rounds) {
        found.labels.trans.startPersistentPull();
        found.labels.trans.waitPersistentPull();
        const auto label = found.labels.view();
        changed = 0;
        for (bool again = true; again;) { // until nothing changes on this rank
            again = false;
            for (index cell = 0; cell < mesh.cells.owned; ++cell)
                for (const DNDS::LocalIndex other : neighbours[cell])
                    if (label(cell, 0) >= 0 && other >= 0 && label(other, 0) >= 0 && label(other, 0) < label(cell, 0)) {
                        label(cell, 0) = label(other, 0);
                        again = true;
                        ++changed;
                    }
        }
        changed = mesh.comm.allReduce(changed, MPI_SUM);
    }
    found.time = seconds() - start;
    return found;
}

/// Components and the size of the largest: each cell adds one to its root's count, wherever that is.
std::pair<index, index> countComponents(const Numbers &labels) {
    Numbers counts;
    counts.clone(labels);
    for (index cell = 0; cell < counts.father->size(); ++cell)
        (*counts.father)(cell, 0) = 0;
    {
        DNDS::GhostWindow window(counts);
        for (index cell = 0; cell < labels.father->size(); ++cell)
            if ((*labels.father)(cell, 0) >= 0)
                window.accumulate(window.global((*labels.father)(cell, 0)), 0, 1);
        window.barrier();
    }
    index components = 0, largest = 0;
    for (index cell = 0; cell < counts.father->size(); ++cell) {
        components += (*counts.father)(cell, 0) > 0 ? 1 : 0;
        largest = std::max(largest, (*counts.father)(cell, 0));
    }
    const CommunicatorView comm = labels.father->comm();
    return {comm.allReduce(components, MPI_SUM), comm.allReduce(largest, MPI_MAX)};
}

int run(CommunicatorView comm, index cells, double share, const std::string &on) {
    Geom::UnstructuredMesh mesh = makeMesh(comm, cells);
    Numbers numbers = numberCells(mesh, share);
    const Found pulled = byPulls(mesh, numbers); // first: it is for fields that are on the host alone
    const Found swapped = byCompareAndSwap(mesh, numbers, on);
    index different = 0;
    for (index cell = 0; cell < mesh.cells.owned; ++cell)
        different += (*swapped.labels.father)(cell, 0) != (*pulled.labels.father)(cell, 0) ? 1 : 0;
    different = comm.allReduce(different, MPI_SUM);
    const auto [components, largest] = countComponents(swapped.labels);
    const index total = mesh.cells.mapping().global()->globalSize();
    if (comm.rank() == 0) {
        fmt::print("{} cells on {} ranks, {:.3g} of them open\n", total, comm.size(), share);
        fmt::print("components         {}, the largest has {} cells\n", components, largest);
        fmt::print("compare-and-swap   {:9.3f} ms on the owners' rows ({})\n", 1e3 * swapped.time, on);
        fmt::print("pulls              {:9.3f} ms, {} of them\n", 1e3 * pulled.time, pulled.rounds);
        fmt::print("{}\n",
                   different == 0 ? "both find the same components" : fmt::format("{} cells differ", different));
    }
    return different == 0 ? 0 : 1;
}

int runWithArguments(CommunicatorView comm, int argc, char **argv) {
    CLI::App app("Finds connected components of a mesh by one-sided compare-and-swap.");
    index cells = 100000;
    double share = 0.6;
    std::string on = "host";
    app.option_defaults()->always_capture_default();
    app.add_option("--cells", cells, "number of cells, about")->check(CLI::Range(2, 100000000));
    app.add_option("--open", share, "share of cells that are open")->check(CLI::Range(0.0, 1.0));
    app.add_option("--on", on, "who joins cells: calls on the host, or kernels on the host or on the device")
        ->check(CLI::IsMember({"host", "kernels", "device"}));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &stop) { // --help, or an option that does not exist
        return comm.rank() == 0 ? app.exit(stop) : stop.get_exit_code();
    }
    return run(comm, cells, share, on);
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](CommunicatorView world) { return runWithArguments(world, argc, argv); });
}
