#include "Benchmarks.hpp"
#include "Statistics.hpp"

#include "Solver.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace DNDS::Bench {

namespace {

/// A mesh with a solver on it: a vortex-like disturbance in a free stream that nothing else disturbs.
class Run {
  public:
    Run(CommunicatorView comm, const Geom::BoxMeshOptions &box, bool overlap)
        : mesh_(buildBox(comm, box)), metrics_(computeMetrics(mesh_)) {
        const Euler::Primitive far{1, {0.5, 0.3, 0}, 1};
        Euler::Scheme scheme;
        scheme.overlap = overlap;
        scheme.limiter.constant = 1;
        solver_.emplace(
            mesh_, metrics_, Euler::Gas{}, scheme,
            std::vector<Euler::BoundaryCondition>(mesh_.patches.size(), {Euler::BoundaryKind::FarField, far}));
        solver_->setState([&](Euler::Vector x) {
            const Euler::Vector d = x - Euler::Vector{0.4, 0.5, x.z};
            const real bump = 0.3 * std::exp(-30 * dot(d, d));
            return Euler::Primitive{far.density + bump, far.velocity + bump * Euler::Vector{-d.y, d.x, 0},
                                    far.pressure + bump};
        });
    }

    void advance(int steps) {
        for (int i = 0; i < steps; i++)
            solver_->advance(0.5, std::numeric_limits<real>::infinity());
    }
    Euler::Solver &solver() { return *solver_; }
    const Geom::UnstructuredMesh &mesh() const { return mesh_; }

  private:
    Geom::UnstructuredMesh mesh_;
    Geom::MeshMetrics metrics_;
    std::optional<Euler::Solver> solver_;
};

/// Seconds that starting and waiting for pulls took, late peers included, in each timed turn of a run: mean of ranks.
class PullClock {
  public:
    explicit PullClock(Run &run) : run_(run) {}
    void advance(int steps) {
        const Euler::SolverTimes before = run_.solver().times();
        run_.advance(steps);
        const Euler::SolverTimes &after = run_.solver().times();
        if (!std::exchange(timed_, true))
            return; // the first turn is not timed
        seconds_.push_back(after.start - before.start + after.wait - before.wait);
    }
    double perTurn(CommunicatorView comm) const {
        std::vector<double> seconds = seconds_;
        comm.allReduce(seconds.data(), static_cast<int>(seconds.size()), MPI_SUM);
        return median(std::move(seconds)) / comm.size();
    }

  private:
    Run &run_;
    bool timed_ = false;
    std::vector<double> seconds_;
};

constexpr int stages = 3;

} // namespace

void benchmarkSolver(const Setting &setting) {
    const CommunicatorView comm = setting.comm;
    const Geom::BoxMeshOptions box = boxOf(setting.fill, setting.cells);
    std::optional<Run> alone;
    std::optional<Run> own;
    comm.guarded([&] {
        if (comm.rank() == 0)
            alone.emplace(MPI_COMM_SELF, box, false);
        own.emplace(MPI_COMM_SELF, boxOf(setting.fill, std::max<index>(1, setting.cells / comm.size())), false);
    });
    Run together(comm, box, true);
    Run waiting(comm, box, false);
    PullClock togetherPulls(together), waitingPulls(waiting);
    const index cells = comm.allReduce(together.mesh().cells.owned, MPI_SUM);
    const index maxCells = comm.allReduce(together.mesh().cells.owned, MPI_MAX);
    const index ownCells = comm.allReduce(own->mesh().cells.owned, MPI_SUM);
    const index ghosts = comm.allReduce(together.mesh().cells.ghosts, MPI_MAX);
    const std::vector<Way> ways{{"one rank",
                                 [&] {
                                     if (alone)
                                         alone->advance(setting.steps);
                                 }},
                                {"a mesh for each rank", [&] { own->advance(setting.steps); }},
                                {"all ranks", [&] { togetherPulls.advance(setting.steps); }},
                                {"all ranks, no overlap", [&] { waitingPulls.advance(setting.steps); }}};
    enum : std::size_t { OneRank, OwnMeshes, AllRanks };
    const std::vector<TurnTimes> times = takeTurns(comm, ways, setting.turns);
    const double bare = comm.allReduce(together.solver().timePulls(200), MPI_SUM) / comm.size();

    const auto rateOf = [&](std::size_t k, double seconds) { // cells a second of all cores, `seconds` being a turn's
        return static_cast<double>(k == OwnMeshes ? ownCells : cells) * setting.steps / seconds;
    };
    const auto wallRate = [&](std::size_t k) { return rateOf(k, times[k].medianWall()); };
    const auto processorRate = [&](std::size_t k) { return rateOf(k, times[k].medianProcessor()); };
    const double imbalance = static_cast<double>(maxCells) * comm.size() / static_cast<double>(cells) - 1;
    say(comm,
        fmt::format("\n{} {}, {} ranks, at most {} ghosts a rank, imbalance {:.2g} %; {} steps of {} stages a turn\n",
                    cells, setting.fill, comm.size(), ghosts, 100 * imbalance, setting.steps, stages));
    Table table({"", "ms a step", "ns a cell stage", "Mcells/s/core", "speed-up", "processor ms", "speed-up",
                 "of own meshes", "pulls %", "bare pulls %"});
    for (std::size_t k = 0; k < ways.size(); k++) {
        const double wall = times[k].medianWall() / setting.steps;
        const double processor = times[k].medianProcessor() / setting.steps;
        const double speedUp = wallRate(k) / wallRate(OneRank);
        const double processorSpeedUp = processorRate(k) / processorRate(OneRank);
        const int cores = k == OneRank ? 1 : comm.size();
        const double rate = wallRate(k) / cores;
        const bool pulls = k >= AllRanks;
        const double ofOwn = pulls ? wallRate(k) / wallRate(OwnMeshes) : NotMeasured;
        const double pull =
            pulls ? (k == AllRanks ? togetherPulls : waitingPulls).perTurn(comm) / setting.steps : NotMeasured;
        const double bareShare = pulls ? stages * bare / processor : NotMeasured;
        const double stage = 1e9 * cores / (stages * processorRate(k));
        table.add({fmt::format("  {}", ways[k].name), numberOrDash(1e3 * wall), numberOrDash(stage),
                   numberOrDash(1e-6 * rate), numberOrDash(speedUp), numberOrDash(1e3 * processor),
                   numberOrDash(processorSpeedUp), numberOrDash(ofOwn), numberOrDash(100 * pull / wall),
                   numberOrDash(100 * bareShare)});
        setting.report.add(
            {{"benchmark", "solver"},
             {"way", ways[k].name},
             {"fill", setting.fill},
             {"cells", k == OwnMeshes ? ownCells : cells},
             {"ranks", cores},
             {"overlap", k == AllRanks},
             {"seconds_a_step", wall},
             {"processor_seconds_a_step", processor},
             {"cells_a_second_a_core", rate},
             {"processor_ns_a_cell_stage", stage},
             {"speed_up", speedUp},
             {"processor_speed_up", processorSpeedUp},
             {"ratio_to_own_meshes", numberOrNull(ofOwn)},
             {"pull_seconds_a_step", numberOrNull(pull)},
             {"pull_share", numberOrNull(pull / wall)},
             {"bare_pull_seconds_a_stage", pulls ? numberOrNull(bare) : Record()},
             {"bare_pull_share", numberOrNull(bareShare)},
             {"hidden_share", k == AllRanks ? numberOrNull(std::fmax(0.0, 1 - pull / stages / bare)) : Record()},
             {"ghosts", ghosts},
             {"imbalance", imbalance},
             {"steps", setting.steps},
             {"turns", setting.turns}});
    }
    say(comm, table.text());
}

} // namespace DNDS::Bench
