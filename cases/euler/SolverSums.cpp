// Sums and checks of a solver: validity of states, residuals, forces, totals, messages, memory. On the device they run
// there, and only results are copied to the host.

#include "Solver.hpp"

#include "DNDS/Array/ExactSums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace Euler {

namespace {

using DNDS::LocalIndex;
using DNDS::toSize;

constexpr index noCell = std::numeric_limits<index>::max();

/// A view that reads, on the host.
template <class TArray>
auto readOnly(const TArray &array) {
    return array.view();
}

} // namespace

index Solver::firstImpossibleCell() const {
    if (streams_ && smallestTimeStep() >= 0) // found there: nothing has to come to the host
        return noCell;
    index first = noCell;
    const auto state = readOnly(this->state());
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        if (!Primitive::load(state[cell]).physical())
            first = std::min(first, mesh_.cells.fileNumbers[toSize(cell)]);
    return first;
}

void Solver::checkState() {
    const index first = mesh_.comm.allReduce(firstImpossibleCell(), MPI_MIN);
    DNDS_CHECK(first == noCell, DNDS::DataError,
               "{}: cell {} (counted from 0) has lost its density or pressure: lower the CFL number, or choose another "
               "limiter or flux",
               mesh_.origin, first);
}

/// Of all ranks' rows, which are where kernels run.
void Solver::sumColumns(std::span<const real> rows, std::span<real> sums) const {
    if (scheme_.reproducible || streams_) { // where exact sums cost little
        exactSums(mesh_.comm, inner(), rows, sums);
        return;
    }
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t begin = 0; begin < rows.size(); begin += sums.size())
        for (std::size_t k = 0; k < sums.size(); k++)
            sums[k] += rows[begin + k];
    mesh_.comm.allReduce(sums.data(), static_cast<int>(sums.size()), MPI_SUM);
}

std::array<real, variables> Solver::residual() const {
    run(inner(), allCells_, ResidualKernel{rateKernel(), toWrite(start_)});
    std::array<real, variables> sums{};
    sumColumns(elementsOf(toRead(start_)), sums);
    for (real &sum : sums)
        sum = std::sqrt(sum / volume_);
    return sums;
}

/// Keeps the faces, so that histories look for them once.
void Solver::findForceFaces(const std::vector<int> &patches) const {
    if (forceFaces_.found && forceFaces_.patches == patches)
        return;
    std::vector<index> faces;
    for (const int patch : patches)
        for (const LocalIndex face : mesh_.patches[toSize(patch)].faces)
            if (face < mesh_.faces.owned && faceCondition_(face) == patch)
                faces.push_back(face);
    ForceFaces next;
    next.found = true;
    next.patches = patches;
    next.faces.resize(static_cast<index>(faces.size()));
    std::copy(faces.begin(), faces.end(), next.faces.data());
    next.forces.resize(next.faces.size());
    if (streams_) {
        next.faces.toDevice();
        next.forces.toDevice();
    }
    forceFaces_ = std::move(next);
}

Vector Solver::force(const std::vector<int> &patches, real reference) const {
    mesh_.comm.guarded([&] { findForceFaces(patches); });
    launch(inner(),
           ForceKernel{kernelMesh_, toRead(flux_), toRead(forceFaces_.faces), reference, toWrite(forceFaces_.forces)});
    std::array<real, 3> sums{};
    sumColumns(elementsOf(toRead(forceFaces_.forces)), sums);
    return Vector::load(sums.data());
}

std::array<real, variables> Solver::total() const {
    run(inner(), allCells_, AmountKernel{kernelMesh_, toRead(conserved_), toWrite(start_)});
    std::array<real, variables> sums{};
    sumColumns(elementsOf(toRead(start_)), sums);
    return sums;
}

std::vector<real> Solver::wallPressures(std::span<const index> faces) const {
    const auto fluxes = readOnly(fetched(flux_));
    std::vector<real> pressures;
    for (const index face : faces) {
        const Vector area = Vector::load(view_.areaVectors[face]);
        pressures.push_back(dot(Conserved::load(fluxes[face]).momentum, area) / dot(area, area));
    }
    return pressures;
}

std::vector<DNDS::PeerPath> Solver::pullPaths() const {
    std::vector<DNDS::PeerPath> paths = state_.trans.pullPaths();
    for (const DNDS::PeerPath &path : gradient_.trans.pullPaths())
        paths.push_back(path);
    return paths;
}

std::size_t Solver::bytes() const {
    const auto cells = toSize(mesh_.cells.size());
    const auto owned = toSize(mesh_.cells.owned);
    const std::size_t numbers = (variables + gradientWidth) * cells + (2 * variables + 1) * owned +
                                toSize(flux_.dataSize()) + toSize(weights_.dataSize());
    return sizeof(real) * numbers;
}

} // namespace Euler
