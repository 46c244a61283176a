// Sums and checks of a solver: validity of states, residuals, forces, totals, messages, memory. On the device they run
// there, and only results are copied to the host.

#include "Solver.hpp"

#include "DNDS/Array/DofKernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace Euler {

namespace {

using DNDS::toSize;

constexpr index noCell = std::numeric_limits<index>::max();

/// A view that reads, on the host.
template <class TArray>
auto readOnly(const TArray &array) {
    return array.view();
}

} // namespace

index Solver::firstImpossibleCell() const {
    if (device_ && smallestTimeStep() >= 0) // found there: nothing has to come to the host
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

/// Of all ranks' rows, where kernels run.
template <class TArray, std::size_t count>
std::array<real, count> Solver::sumColumns(const TArray &rows) const {
    std::array<real, count> sums{};
    if (scheme_.reproducible || device_) { // where exact sums cost little
        exactSums(mesh_.comm, executor(), elementsOf(rows), sums);
        return sums;
    }
    const auto elements = elementsOf(rows);
    for (std::size_t begin = 0; begin < elements.size(); begin += count)
        for (std::size_t k = 0; k < count; k++)
            sums[k] += elements[begin + k];
    mesh_.comm.allReduce(sums.data(), static_cast<int>(count), MPI_SUM);
    return sums;
}

std::array<real, variables> Solver::residual() const {
    residual_->start();
    auto sums = sumColumns<DNDS::Array<real, variables>, variables>(start_);
    for (real &sum : sums)
        sum = std::sqrt(sum / volume_);
    return sums;
}

std::array<real, variables> Solver::total() const {
    total_->start();
    return sumColumns<DNDS::Array<real, variables>, variables>(start_);
}

/// Kept for the next call, so that histories look for them once. Collective.
Solver::ForceFaces &Solver::forceFaces(const std::vector<int> &patches, real reference) const {
    if (forceFaces_ && forceFaces_->patches == patches && forceFaces_->reference == reference)
        return *forceFaces_;
    mesh_.comm.guarded([&] {
        forceFaces_ = std::make_unique<ForceFaces>();
        forceFaces_->patches = patches;
        forceFaces_->reference = reference;
        std::vector<LocalIndex> faces;
        for (const int patch : patches)
            for (const LocalIndex face : mesh_.patches[toSize(patch)].faces)
                if (face < mesh_.faces.owned && faceCondition_(face) == patch)
                    faces.push_back(face);
        forceFaces_->faces.resize(static_cast<index>(faces.size()));
        std::copy(faces.begin(), faces.end(), forceFaces_->faces.data());
        forceFaces_->forces.setName("forces");
        forceFaces_->forces.resize(forceFaces_->faces.size());
    });
    forceFaces_->plan = declareForces(*forceFaces_);
    return *forceFaces_;
}

Vector Solver::force(const std::vector<int> &patches, real reference) const {
    ForceFaces &faces = forceFaces(patches, reference);
    faces.plan->start();
    return Vector::load(sumColumns<DNDS::Array<real, 3>, 3>(faces.forces).data());
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

std::vector<DNDS::PeerPath> Solver::pullPaths() const { return stages_->paths(); }

std::size_t Solver::bytes() const {
    const auto cells = toSize(mesh_.cells.size());
    const auto owned = toSize(mesh_.cells.owned);
    const std::size_t numbers = (variables + gradientWidth) * cells + (2 * variables + 1) * owned +
                                toSize(flux_.dataSize()) + toSize(weights_.dataSize());
    return sizeof(real) * numbers;
}

} // namespace Euler
