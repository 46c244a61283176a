/// @file Pipeline.cpp
/// @brief The pipeline of DNDS::Geom.
#include "MeshMethod.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"

namespace DNDS::Bench {

namespace {

MeshParts runPipeline(CommunicatorView comm, const MeshCase &start, StageClock &clock, Geom::Partitioner partitioner) {
    clock.begin(start.file.empty() ? GenerateStage : ReadStage);
    Geom::SourceMesh source =
        start.file.empty() ? Geom::makeBoxMesh(start.box, comm) : Geom::readMesh(comm, start.file);
    comm.barrier();
    Geom::MeshOptions options;
    options.partitioner = partitioner;
    options.progress = [&](std::string_view step) { clock.begin(step); };
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(comm, std::move(source), options);
    clock.begin("metrics");
    const Geom::MeshMetrics metrics = Geom::computeMetrics(mesh);
    clock.end();

    MeshParts parts{mesh.cells.owned, mesh.cells.ghosts, mesh.faces.size(), 0.0};
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        parts.volume += metrics.volumes(cell, 0);
    return parts;
}

} // namespace

std::vector<MeshMethod> dndsMethods() {
    const auto with = [](Geom::Partitioner partitioner) {
        return [partitioner](CommunicatorView comm, const MeshCase &start, StageClock &clock) {
            return runPipeline(comm, start, clock, partitioner);
        };
    };
    return {{"dnds", with(Geom::Partitioner::Graph)}, {"dnds_curve", with(Geom::Partitioner::Curve)}};
}

} // namespace DNDS::Bench
