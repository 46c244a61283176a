#include "AirfoilMethod.hpp"
#include "Benchmarks.hpp"

#include <algorithm>
#include <utility>

namespace DNDS::Bench {

AirfoilSide sideOf(const Geom::UnstructuredMesh &mesh, LocalIndex face) {
    const int patch = mesh.facePatches(face);
    return mesh.patches[static_cast<std::size_t>(patch)].name == "y-" ? AirfoilSide::Wall : AirfoilSide::FarField;
}

namespace {

/// The largest difference of two ways' flows, by the largest value.
double disagreement(CommunicatorView comm, std::span<const double> a, std::span<const double> b) {
    double most[2] = {0, 0};
    for (std::size_t i = 0; i < a.size(); i++) {
        const double difference = std::fabs(a[i] - b[i]);
        most[0] = difference <= most[0] ? most[0] : difference; // takes what is no number, too
        most[1] = std::max(most[1], std::fabs(a[i]));
    }
    comm.allReduce(most, 2, MPI_MAX);
    return most[0] / most[1];
}

} // namespace

void benchmarkAirfoil(const Setting &setting) {
    const CommunicatorView comm = setting.comm;
    const Geom::UnstructuredMesh mesh = buildBox(comm, boxOf("quadrilaterals", setting.cells));
    const Geom::MeshMetrics metrics = computeMetrics(mesh);
    const index cells = comm.allReduce(mesh.cells.owned, MPI_SUM);
    const AirfoilFlow flow;
    const std::vector<std::pair<std::string, std::unique_ptr<AirfoilMethod>>> methods = [&] {
        std::vector<std::pair<std::string, std::unique_ptr<AirfoilMethod>>> list;
        list.emplace_back("by_hand", makeAirfoilByHand(mesh, metrics, flow));
        list.emplace_back("dnds", makeAirfoilDnds(mesh, metrics, flow));
        return list;
    }();
    std::vector<Way> ways;
    for (const auto &entry : methods) {
        AirfoilMethod *method = entry.second.get();
        method->reset();
        ways.push_back({entry.first, [method, &setting] { method->iterate(setting.steps); }});
    }
    const std::vector<TurnTimes> times = takeTurns(comm, ways, setting.turns);
    const double difference = disagreement(comm, methods[0].second->rows(), methods[1].second->rows());
    DNDS_CHECK(difference < 1e-10, DataError, "by hand and by the library the flows differ by {}", difference);

    Table table({fmt::format("airfoil, {} quadrilaterals, {} ranks", cells, comm.size()), "ms an iteration",
                 "Mcells/s/core", "/by_hand", "processor ms", "/by_hand"});
    for (std::size_t k = 0; k < ways.size(); k++) {
        const double wall = times[k].medianWall() / setting.steps;
        const double processor = times[k].medianProcessor() / setting.steps;
        const double ratio = times[k].medianWall() / times[0].medianWall();
        const double processorRatio = times[k].medianProcessor() / times[0].medianProcessor();
        const double rate = static_cast<double>(cells) / wall / comm.size();
        table.add({fmt::format("  {}", ways[k].name), numberOrDash(1e3 * wall), numberOrDash(1e-6 * rate, 4),
                   numberOrDash(ratio, 4), numberOrDash(1e3 * processor), numberOrDash(processorRatio, 4)});
        setting.report.add({{"benchmark", "airfoil"},
                            {"cells", cells},
                            {"ranks", comm.size()},
                            {"method", ways[k].name},
                            {"seconds_an_iteration", wall},
                            {"processor_seconds_an_iteration", processor},
                            {"cells_a_second_a_core", rate},
                            {"ratio_to_by_hand", ratio},
                            {"processor_ratio_to_by_hand", processorRatio},
                            {"iterations", setting.steps},
                            {"turns", setting.turns}});
    }
    say(comm, fmt::format("\n{}", table.text()));
}

} // namespace DNDS::Bench
