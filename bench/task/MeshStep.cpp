#include "MeshStep.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"

#include <algorithm>
#include <cmath>

namespace DNDS::Bench {
namespace {

struct GradientKernel {
    Geom::MeshView mesh;

    template <class Read, class Write>
    void operator()(index cell, const Read &u, const Write &gradient) const {
        real sum[2] = {};
        const auto faces = mesh.cellFaces[cell];
        for (rowsize k = 0; k < faces.size(); k++) {
            const LocalIndex other = mesh.cellCells(cell, k);
            const real mean = other >= 0 ? 0.5 * (u(cell, 0) + u(other, 0)) : u(cell, 0);
            const real sign = mesh.faceCells(faces[k], 0) == cell ? 1 : -1;
            for (int d = 0; d < 2; d++)
                sum[d] += sign * mean * mesh.areaVectors(faces[k], d);
        }
        for (int d = 0; d < 2; d++)
            gradient(cell, d) = sum[d] / mesh.volumes(cell);
    }
};

struct FluxKernel {
    Geom::MeshView mesh;

    template <class State, class Gradient, class Material, class Write>
    void operator()(index face, const State &u, const Gradient &gradient, const Material &material,
                    const Write &flux) const {
        const LocalIndex first = mesh.faceCells(face, 0), second = mesh.faceCells(face, 1);
        real value = 0;
        if (second >= 0) {
            const real mean = 0.5 * (material(first, 0) + material(second, 0));
            for (int d = 0; d < 2; d++)
                value -= mean * 0.5 * (gradient(first, d) + gradient(second, d)) * mesh.areaVectors(face, d);
            value += 0.1 * mesh.areas(face) * (u(first, 0) - u(second, 0));
        }
        flux(face, 0) = value;
    }
};

struct UpdateKernel {
    Geom::MeshView mesh;

    template <class Flux, class State>
    void operator()(index cell, const Flux &flux, const State &u) const {
        real sum = 0;
        for (const LocalIndex face : mesh.cellFaces[cell])
            sum += (mesh.faceCells(face, 0) == cell ? 1 : -1) * flux(face, 0);
        u(cell, 0) -= 1e-5 * sum / mesh.volumes(cell);
    }
};

Geom::SourceMesh makeSquare(CommunicatorView comm, index cells) {
    const index side = std::max<index>(2, std::llround(std::sqrt(static_cast<double>(cells))));
    return Geom::makeBoxMesh({.fill = Geom::BoxCells::Quadrilaterals, .cells = {side, side}}, comm);
}

} // namespace

SquareMesh::SquareMesh(CommunicatorView comm, index cells)
    : mesh(
          Geom::buildMesh(comm, makeSquare(comm, cells), {.ghostsBy = Geom::GhostNeighbours::Faces, .ghostLayers = 2})),
      metrics(Geom::computeMetrics(mesh)) {}

MeshStep::MeshStep(const SquareMesh &square)
    : mesh_(square.mesh), view_(Geom::viewOf(square.mesh, square.metrics)), flux_("flux", mesh_.comm),
      mpi_(Communicator::duplicate(mesh_.comm)) {
    const auto attach = [&](auto &field, const char *name) {
        field.initPair(name, mesh_.comm);
        field.father->resize(mesh_.cells.owned);
        Geom::attachField(field, mesh_.cells);
        field.trans.initPersistentPull();
    };
    attach(u_, "u");
    attach(material_, "material");
    attach(gradient_, "gradient");
    flux_.resize(mesh_.faces.size());
    std::vector<LocalIndex> faces = mesh_.sharedFaces;
    for (index face = 0; face < mesh_.faces.owned; face++)
        faces.push_back(static_cast<LocalIndex>(face));
    std::ranges::sort(faces);
    for (const LocalIndex face : faces) {
        const bool edge = std::max(mesh_.faceCells(face, 0), mesh_.faceCells(face, 1)) >= mesh_.cells.owned;
        (edge ? edgeFaces_ : innerFaces_).push_back(face);
    }
    const auto byMpi = [&](auto &field, int tag, int width) {
        const HandPull::Field rows{field.father->data(), field.son->data(), width};
        return std::make_unique<HandPull>(*mesh_.cells.pattern, mpi_.view(), tag, std::vector{rows});
    };
    stateByMpi_ = byMpi(u_, 1, 1);
    gradientByMpi_ = byMpi(gradient_, 2, 2);
    reset();
    material_.trans.startPersistentPull();
    material_.trans.waitPersistentPull();
}

void MeshStep::reset() {
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        u_(cell, 0) = std::sin(7 * view_.centroids(cell, 0)) * std::cos(5 * view_.centroids(cell, 1));
        material_(cell, 0) = 1 + 0.5 * view_.centroids(cell, 0);
    }
}

std::vector<real> MeshStep::state() const {
    const auto view = u_.father->view();
    return {view.data(), view.data() + mesh_.cells.owned};
}

Task::Plan MeshStep::compile(const Executor &executor, const Task::CompileOptions &options) {
    Task::Graph step("step", mesh_.comm);
    step.task("gradient", mesh_.cells)
        .reads(Task::around(u_, mesh_.cellCells))
        .writes(gradient_)
        .run(GradientKernel{view_});
    step.task("flux", mesh_.faces)
        .reads(Task::through(u_, mesh_.faceCells), Task::through(gradient_, mesh_.faceCells),
               Task::through(material_, mesh_.faceCells))
        .writes(flux_)
        .run(FluxKernel{view_});
    step.task("update", mesh_.cells)
        .reads(Task::through(flux_, mesh_.cellFaces))
        .readsWrites(u_)
        .run(UpdateKernel{view_});
    return step.compile(executor, options);
}

void MeshStep::byHandGradients(std::span<const index> cells) {
    const GradientKernel kernel{view_};
    const auto u = std::as_const(u_).view(GhostUse::Unchecked); // the library does not see pulls by MPI
    const auto gradient = gradient_.father->view();
    for (const index cell : cells)
        kernel(cell, u, gradient);
}

void MeshStep::byHandFluxes(std::span<const LocalIndex> faces) {
    const FluxKernel kernel{view_};
    const auto u = std::as_const(u_).view(GhostUse::Unchecked);
    const auto gradient = std::as_const(gradient_).view(GhostUse::Unchecked);
    const auto material = std::as_const(material_).view();
    const auto flux = flux_.view();
    for (const LocalIndex face : faces)
        kernel(face, u, gradient, material, flux);
}

void MeshStep::byHandUpdate() {
    const UpdateKernel kernel{view_};
    const auto flux = std::as_const(flux_).view();
    const auto u = u_.father->view();
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        kernel(cell, flux, u);
}

void MeshStep::innerGradients() { byHandGradients(mesh_.cells.pattern->innerRows()); }
void MeshStep::innerFluxes() { byHandFluxes(innerFaces_); }

void MeshStep::advanceByHand(bool overlap, Pulls by) {
    const auto pullBeside = [&](auto &field, HandPull &byMpi, auto &&work) {
        if (by == Pulls::Persistent)
            field.trans.startPersistentPull();
        else if (by == Pulls::Mpi)
            byMpi.start();
        if (overlap)
            work();
        if (by == Pulls::Persistent)
            field.trans.waitPersistentPull();
        else if (by == Pulls::Mpi)
            byMpi.wait();
        if (!overlap)
            work();
    };
    pullBeside(u_, *stateByMpi_, [this] { innerGradients(); });
    byHandGradients(mesh_.cells.pattern->boundaryRows());
    pullBeside(gradient_, *gradientByMpi_, [this] { innerFluxes(); });
    byHandFluxes(edgeFaces_);
    byHandUpdate();
}

} // namespace DNDS::Bench
