#include "AirfoilMethod.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace DNDS::Bench {

namespace {

using Field = ArrayPair<ParArray<real, rowWidth>>;
using ReadRows = ArrayPairView<ArrayView<const real, rowWidth>>;

struct SaveKernel {
    ArrayView<const real, rowWidth> state;
    ArrayView<real, flowWidth> old;

    DNDS_HOST_DEVICE void operator()(index cell) const {
        for (int k = 0; k < flowWidth; k++)
            old(cell, k) = state(cell, k);
    }
};

struct TimeStepKernel {
    Geom::MeshView mesh;
    AirfoilFlow flow;
    ArrayView<real, rowWidth> state;

    DNDS_HOST_DEVICE void operator()(index cell) const {
        real *q = state[cell];
        const real u = q[1] / q[0];
        const real v = q[2] / q[0];
        const real sound = std::sqrt(flow.gamma * flow.pressure(q) / q[0]);
        real sum = 0;
        for (const LocalIndex face : mesh.cellFaces[cell]) {
            const real *n = mesh.areaVectors[face];
            sum += AirfoilFlow::waveSpeed(u, v, sound, n[0], n[1], mesh.areas(face));
        }
        q[4] = sum;
    }
};

struct FluxKernel {
    Geom::MeshView mesh;
    AirfoilFlow flow;
    ReadRows state;
    ArrayView<real, flowWidth> residual;

    DNDS_HOST_DEVICE void operator()(index face) const {
        const LocalIndex first = mesh.faceCells(face, 0);
        const LocalIndex second = mesh.faceCells(face, 1);
        const real *n = mesh.areaVectors[face];
        real flux[flowWidth];
        flow.through(state[first], state[second], n[0], n[1], flux);
        for (int k = 0; k < flowWidth; k++) {
            residual(first, k) += flux[k];
            residual(second, k) -= flux[k];
        }
    }
};

struct SideFluxKernel {
    Geom::MeshView mesh;
    AirfoilFlow flow;
    ArrayView<const LocalIndex> faces;
    ArrayView<const AirfoilSide> sides;
    ArrayView<const real, rowWidth> state;
    ArrayView<real, flowWidth> residual;

    DNDS_HOST_DEVICE void operator()(index i) const {
        const LocalIndex face = faces(i);
        const LocalIndex cell = mesh.faceCells(face, 0);
        const real *n = mesh.areaVectors[face];
        real flux[flowWidth];
        flow.atSide(sides(i), state[cell], n[0], n[1], flux);
        for (int k = 0; k < flowWidth; k++)
            residual(cell, k) += flux[k];
    }
};

struct UpdateKernel {
    AirfoilFlow flow;
    ArrayView<const real, flowWidth> old;
    ArrayView<real, rowWidth> state;
    ArrayView<real, flowWidth> residual;

    /// Returns the square of the change.
    DNDS_HOST_DEVICE real operator()(index cell) const {
        real *q = state[cell];
        const real step = flow.cfl / q[4];
        real square = 0;
        for (int k = 0; k < flowWidth; k++) {
            const real change = step * residual(cell, k);
            q[k] = old(cell, k) - change;
            residual(cell, k) = 0;
            square += change * change;
        }
        return square;
    }
};

template <class T>
void fill(Array<T> &list, const std::vector<T> &values) {
    list.resize(static_cast<index>(values.size()));
    std::copy(values.begin(), values.end(), list.data());
}

template <class Kernel>
void forRows(index count, const Kernel &kernel) {
    for (index row = 0; row < count; row++)
        kernel(row);
}
template <class Kernel>
void forList(ArrayView<const LocalIndex> list, const Kernel &kernel) {
    for (index i = 0; i < list.size(); i++)
        kernel(list(i));
}

class AirfoilDnds final : public AirfoilMethod {
  public:
    AirfoilDnds(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics, const AirfoilFlow &flow)
        : mesh_(mesh), view_(viewOf(mesh, metrics)), flow_(flow) {
        old_.resize(mesh.cells.owned);
        residual_.resize(mesh.cells.size());
        std::vector<LocalIndex> inner, edge, side;
        std::vector<AirfoilSide> sides;
        const auto sort = [&](LocalIndex face) {
            const LocalIndex second = view_.faceCells(face, 1);
            if (second < 0) {
                side.push_back(face);
                sides.push_back(sideOf(mesh, face));
            } else
                (std::max(view_.faceCells(face, 0), second) >= mesh.cells.owned ? edge : inner).push_back(face);
        };
        for (index face = 0; face < mesh.faces.owned; face++)
            sort(static_cast<LocalIndex>(face));
        for (const LocalIndex face : mesh.sharedFaces)
            sort(face);
        fill(inner_, inner);
        fill(edge_, edge);
        fill(sideFaces_, side);
        fill(sides_, sides);
        state_.initPair("state", mesh.comm);
        state_.father->resize(mesh.cells.owned);
        attachField(state_, mesh.cells);
        state_.trans.initPersistentPull();
    }

    void reset() override {
        for (index cell = 0; cell < mesh_.cells.owned; cell++)
            flow_.initial(view_.centroids(cell, 0), view_.centroids(cell, 1), (*state_.father)[cell]);
        std::fill_n(residual_.data(), residual_.dataSize(), 0.0);
    }

    double iterate(int iterations) override {
        double rms = 0;
        const index cells = mesh_.cells.owned;
        for (int i = 0; i < iterations; i++) {
            forRows(cells, SaveKernel{readState(), old_.view()});
            for (int stage = 0; stage < airfoilStages; stage++) {
                forRows(cells, TimeStepKernel{view_, flow_, state_.father->view()});
                state_.trans.startPersistentPull();
                forList(std::as_const(inner_).view(), fluxKernel());
                state_.trans.waitPersistentPull();
                forList(std::as_const(edge_).view(), fluxKernel());
                forRows(sideFaces_.size(), SideFluxKernel{view_, flow_, std::as_const(sideFaces_).view(),
                                                          std::as_const(sides_).view(), readState(), residual_.view()});
                rms = update();
            }
        }
        return rms;
    }

    std::span<const double> rows() override {
        return {std::as_const(*state_.father).data(), static_cast<std::size_t>(state_.father->dataSize())};
    }

  private:
    ArrayView<const real, rowWidth> readState() const { return std::as_const(*state_.father).view(); }
    FluxKernel fluxKernel() { return {view_, flow_, std::as_const(state_).view(), residual_.view()}; }
    double update() {
        const UpdateKernel kernel{flow_, std::as_const(old_).view(), state_.father->view(), residual_.view()};
        double rms = 0;
        for (index cell = 0; cell < mesh_.cells.owned; cell++)
            rms += kernel(cell);
        const index owned = mesh_.cells.owned * flowWidth;
        std::fill(residual_.data() + owned, residual_.data() + residual_.dataSize(), 0.0); // ghosts
        return rms;
    }

    const Geom::UnstructuredMesh &mesh_;
    Geom::MeshView view_;
    AirfoilFlow flow_;
    Field state_;
    Array<real, flowWidth> old_, residual_;
    Array<LocalIndex> inner_, edge_, sideFaces_;
    Array<AirfoilSide> sides_;
};

} // namespace

std::unique_ptr<AirfoilMethod> makeAirfoilDnds(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics,
                                               const AirfoilFlow &flow) {
    return std::make_unique<AirfoilDnds>(mesh, metrics, flow);
}

} // namespace DNDS::Bench
