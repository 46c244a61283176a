#include "MeshAdvection.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Repartition/Repartition.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <utility>

namespace SparseAdvection {

using DNDS::CommunicatorView;
using DNDS::LocalIndex;
using DNDS::toSize;

void MeshRun::build(const CommunicatorView &comm, index bricks, index clusterCells) {
    DNDS::Geom::BoxMeshOptions box;
    box.cells = {bricks, bricks, bricks};
    box.periodic = {true, true, true};
    DNDS::Geom::SourceMesh source = DNDS::Geom::makeBoxMesh(box, comm);
    cut_ = DNDS::Geom::cutClusters(comm, source, clusterCells);
    options_.partitioner = DNDS::Geom::Partitioner::Given;
    options_.givenPart = cut_.parts(comm.size());
    options_.ghostsBy = DNDS::Geom::GhostNeighbours::Faces;
    mesh_ = std::make_unique<DNDS::Geom::UnstructuredMesh>(DNDS::Geom::buildMesh(comm, std::move(source), options_));
    clusters_ = std::make_unique<DNDS::Geom::MeshClusters>(*mesh_, cut_);
}

void MeshRun::measure() {
    const DNDS::Geom::MeshMetrics metrics = DNDS::Geom::computeMetrics(*mesh_);
    const auto volumes = metrics.volumes.view();
    const auto centroids = metrics.centroids.view();
    const auto areas = metrics.areaVectors.view();
    const auto cellFaces = std::as_const(mesh_->cellFaces).view();
    const auto faceCells = std::as_const(mesh_->faceCells).view();
    const auto blocks = clusters_->pattern()->blocks();
    volumes_.assign(blocks.size(), {});
    centres_.assign(blocks.size(), {});
    seconds_.assign(blocks.size(), 0);
    courants_.assign(setup_.species.size(), std::vector<std::vector<real>>(blocks.size()));
    real largest = 0; // of what leaves a cell, by its volume
    for (std::size_t b = 0; b < blocks.size(); ++b)
        for (const LocalIndex cell : clusters_->cells(static_cast<int>(b)).first(toSize(blocks[b].cells.extent(0)))) {
            volumes_[b].push_back(volumes(cell, 0));
            centres_[b].push_back({centroids(cell, 0), centroids(cell, 1), centroids(cell, 2)});
            for (std::size_t s = 0; s < setup_.species.size(); ++s) {
                real leaving = 0;
                const auto faces = cellFaces[cell];
                for (DNDS::rowsize k = 0; k < faces.size(); ++k) {
                    real flow = 0;
                    for (int d = 0; d < 3; ++d)
                        flow += setup_.species[s].wind[toSize(d)] * areas(faces[k], d);
                    flow *= (DNDS::Geom::pointsOut(faceCells, faces, cell, k) ? 1 : -1) / volumes(cell, 0);
                    courants_[s][b].push_back(flow);
                    leaving += std::max(flow, 0.0);
                }
                largest = std::max(largest, leaving);
            }
        }
    timeStep_ = setup_.courant / mesh_->comm.allReduce(largest, MPI_MAX);
    for (auto &ofSpecies : courants_)
        for (auto &ofBlock : ofSpecies)
            for (real &courant : ofBlock)
                courant *= timeStep_;
}

MeshRun::MeshRun(const CommunicatorView &comm, const Setup &setup, index bricks, index clusterCells,
                 const DNDS::SparseFieldOptions &thresholds)
    : setup_(setup) {
    build(comm, bricks, clusterCells);
    measure();
    DNDS::SparseFieldOptions options = thresholds;
    options.stages = 2;
    for (const Species &species : setup.species)
        fields_.emplace_back(species.name, clusters_->pattern(), options);
    for (std::size_t s = 0; s < fields_.size(); ++s) {
        start(fields_[s], setup.species[s]);
        dropped_.emplace_back(fields_[s], weight());
    }
    makeExchange();
}

void MeshRun::makeExchange() {
    std::vector<DNDS::SparseFieldCore *> cores;
    for (auto &field : fields_)
        cores.push_back(&field);
    exchange_ = std::make_unique<DNDS::SparseFields>("species", cores);
}

DNDS::DroppedSums<real>::Weight MeshRun::weight() const {
    return [&volumes = volumes_](int block, index cell) { return volumes[toSize(block)][toSize(cell)]; };
}

void MeshRun::rebalance() {
    const std::vector<int> targets = DNDS::Geom::repartitionTargets(*clusters_, seconds_);
    DNDS::Geom::Repartition move(*mesh_, targets, options_); // and move.onCells(...) for fields of the mesh
    move.commit();
    *clusters_ = DNDS::Geom::MeshClusters(*mesh_, cut_);
    measure(); // its own data of the mesh
    for (std::size_t s = 0; s < fields_.size(); ++s) {
        fields_[s] = fields_[s].moved(clusters_->pattern());
        dropped_[s].follow(fields_[s], weight());
    }
    makeExchange();
}

void MeshRun::start(DNDS::SparseField<real> &field, const Species &species) const {
    for (int b = 0; b < field.blocks(); ++b) {
        field.allocate(b);
        const auto view = field.view(b);
        bool something = false;
        for (index i = 0; i < view.extent(0); ++i) {
            view(i) = blobAt(species, centres_[toSize(b)][toSize(i)]);
            something = something || view(i) > field.options().deallocationThreshold;
        }
        if (!something)
            field.free(b);
    }
}

void MeshRun::step() {
    exchange_->exchangeGhosts();
    for (std::size_t s = 0; s < fields_.size(); ++s) {
        DNDS::SparseField<real> &field = fields_[s];
        for (const int b : field.allocatedBlocks()) {
            const double begin = MPI_Wtime();
            const auto now = std::as_const(field).view(b);
            const auto next = field.view(b, 1);
            const real *courant = courants_[s][toSize(b)].data();
            for (index i = 0; i < now.extent(0); ++i) {
                real change = 0;
                for (const LocalIndex j : clusters_->neighbours(b, i)) { // periodic: there is one across each face
                    const real outwards = *courant++;
                    change -= outwards * (outwards > 0 ? now(i) : now(j));
                }
                next(i) = now(i) + change;
            }
            seconds_[toSize(b)] += MPI_Wtime() - begin;
        }
        field.swapStages(0, 1);
    }
}

double MeshRun::shareAllocated() const {
    double counts[] = {0, 0};
    for (const auto &field : fields_) {
        counts[0] += static_cast<double>(field.allocatedBlocks().size());
        counts[1] += field.blocks();
    }
    mesh_->comm.allReduce(counts, 2, MPI_SUM);
    return counts[0] / counts[1];
}

std::vector<real> MeshRun::masses() const {
    std::vector<real> masses;
    for (const auto &field : fields_) {
        std::vector<real> amounts;
        for (const int b : field.allocatedBlocks())
            for (index i = 0; i < field.view(b).extent(0); ++i)
                amounts.push_back(field.view(b)(i) * volumes_[toSize(b)][toSize(i)]);
        masses.push_back(DNDS::exactSum(mesh_->comm, amounts));
    }
    return masses;
}

std::vector<real> MeshRun::dropped() const {
    std::vector<real> masses;
    for (const auto &sums : dropped_)
        masses.push_back(sums.sums()[0]);
    return masses;
}

index MeshRun::cells() const { return mesh_->comm.allReduce(mesh_->cells.owned, MPI_SUM); }

} // namespace SparseAdvection
