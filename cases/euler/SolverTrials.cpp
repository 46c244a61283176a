// A solver's functions for implicit steps: flows other than the one reached, and the Jacobian of first order.

#include "Solver.hpp"

#include "DNDS/Linear/SparseMatrix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace Euler {

namespace {

using Block = DNDS::SparseMatrix<variables>::Block;
using Rotation = Eigen::Matrix<real, 3, 3, Eigen::RowMajor>;

/// The derivatives of `flux(state)` by the conserved variables, by differences of a ten-millionth.
template <class Flux>
Block derivatives(const Gas &gas, const Primitive &state, const Flux &flux) {
    constexpr real share = 1e-7;
    const real sound = gas.soundSpeed(state);
    const real momentum = state.density * sound;
    const std::array<real, variables> scales{state.density, momentum, momentum, momentum, momentum * sound};
    std::array<real, variables> base{}, now{};
    flux(state).store(base.data());
    Block result;
    for (int k = 0; k < variables; k++) {
        const real step = share * scales[static_cast<std::size_t>(k)];
        gas.conserved(state).store(now.data());
        now[static_cast<std::size_t>(k)] += step;
        flux(gas.primitive(Conserved::load(now.data()))).store(now.data());
        for (int row = 0; row < variables; row++)
            result(row, k) = (now[static_cast<std::size_t>(row)] - base[static_cast<std::size_t>(row)]) / step;
    }
    return result;
}

/// Derivatives of the flux through a face, by the states of its first and its second cell.
struct FaceBlocks {
    Block first = Block::Zero();
    Block second = Block::Zero();
};

FaceBlocks boundaryBlocks(const Gas &gas, const BoundaryCondition &condition, const Primitive &inside, Vector normal,
                          real area) {
    FaceBlocks blocks;
    blocks.first =
        area * derivatives(gas, inside, [&](const Primitive &w) { return boundaryFlux(gas, condition, w, normal); });
    return blocks;
}

/// Dissipation of the Jacobian beyond that of the fluxes, in fastest waves: without it the Jacobian of first order is
/// too small for the shortest waves of the second order, and steps with CFL numbers from 30 on overshoot.
constexpr real extraDissipation = 0.5;

template <class Flux>
FaceBlocks innerBlocks(const Gas &gas, const Primitive &left, const Primitive &right, Vector normal, real area,
                       const Flux &flux) {
    const auto fastest = [&](const Primitive &w) { return std::fabs(dot(w.velocity, normal)) + gas.soundSpeed(w); };
    const Block extra = extraDissipation * larger(fastest(left), fastest(right)) * Block::Identity();
    FaceBlocks blocks;
    blocks.first = area * (derivatives(gas, left, [&](const Primitive &w) { return flux(w, right); }) + extra);
    blocks.second = area * (derivatives(gas, right, [&](const Primitive &w) { return flux(left, w); }) - extra);
    return blocks;
}

} // namespace

void Solver::prepareTrials() {
    DNDS_CHECK(!device_, DNDS::ArgumentError, "{}: implicit steps are computed on the host", mesh_.origin);
    mesh_.comm.guarded([&] {
        trial_ = std::make_unique<Trial>();
        trial_->change.setName("change");
        trial_->rates.setName("rates");
        trial_->share.setName("share of the change");
        trial_->change.resize(mesh_.cells.owned);
        trial_->rates.resize(mesh_.cells.owned);
        trial_->share.resize(1);
        std::fill_n(trial_->change.data(), trial_->change.dataSize(), real(0));
    });
    trial_->plan = declareTrial(*trial_);
}

const DNDS::Array<real, variables> &Solver::ratesWith(real share) {
    trial_->share(0) = share;
    trial_->plan->start();
    stagesDone_++;
    finish();
    return trial_->rates;
}

void Solver::accept(real share) {
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        changed(conserved_[cell], share, trial_->change[cell]).store(conserved_[cell]);
}

const DNDS::Array<real, 1> &Solver::longestTimeSteps() {
    timeSteps_->start();
    return timeStep_;
}

void Solver::setJacobian(DNDS::SparseMatrix<variables> &matrix) const {
    const auto state = std::as_const(state_).view();
    const auto blocksOf = [&](index face) {
        const real area = view_.areas(face);
        const Vector normal = (1 / area) * Vector::load(view_.areaVectors[face]);
        const Primitive left = Primitive::load(state[view_.faceCells(face, 0)]);
        const LocalIndex second = view_.faceCells(face, 1);
        if (second < 0)
            return boundaryBlocks(gas_, conditions_(faceCondition_(face)), left, normal, area);
        return innerBlocks(
            gas_, left, Primitive::load(state[second]), normal, area, [&](const Primitive &a, const Primitive &b) {
                return scheme_.flux == FluxScheme::Hllc ? hllcFlux(gas_, a, b, normal)
                                                        : roeFlux(gas_, a, b, normal, scheme_.entropyFix);
            });
    };
    const auto isOwn = [&](LocalIndex cell) { return cell >= 0 && cell < mesh_.cells.owned; };
    std::vector<FaceBlocks> blocks(DNDS::toSize(mesh_.faces.size()));
    for (index face = 0; face < mesh_.faces.size(); face++)
        if (isOwn(view_.faceCells(face, 0)) || isOwn(view_.faceCells(face, 1)))
            blocks[DNDS::toSize(face)] = blocksOf(face);
    matrix.setZero();
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const auto faces = view_.cellFaces[cell];
        const auto cells = view_.cellCells[cell];
        for (rowsize j = 0; j < faces.size(); j++) {
            const FaceBlocks &block = blocks[DNDS::toSize(faces[j])];
            const bool isFirst = DNDS::Geom::pointsOut(view_.faceCells, faces, cell, j);
            const real sign = (isFirst ? -1 : 1) / view_.volumes(cell);
            matrix.add(cell, cell, sign * (isFirst ? block.first : block.second));
            if (cells[j] < 0)
                continue;
            Block other = sign * (isFirst ? block.second : block.first);
            const Eigen::Map<const Rotation> turn(turns_[images_(cells[j])]); // of what ghosts in images pull
            other.middleCols<3>(1) = (other.middleCols<3>(1) * turn).eval();
            matrix.add(cell, cells[j], other);
        }
    }
}

} // namespace Euler
