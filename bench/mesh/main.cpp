/// @file main.cpp
/// @brief bench_mesh: from a file to a partitioned mesh with ghosts, faces and metrics, beside DMPlex.
#include "MeshMethod.hpp"
#include "NodeSync.hpp"
#include "Options.hpp"
#include "Report.hpp"
#include "RunBenchmark.hpp"
#include "Statistics.hpp"

#include "DNDS/Geom/Cgns/Cgns.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <unistd.h>

namespace DNDS::Bench {

namespace {

struct Options {
    bool quick = false;
    bool pin = true;
    std::string json;
    int repeats = 3;
    std::vector<std::string> cases{"hexahedra:216000", "tetrahedra:216000", "tetrahedra:700000", "tetrahedra:5000000"};
    std::vector<std::string> methods{"dnds", "dnds_curve", "dmplex", "dmplex_root"};
    bool shuffled = false;
    bool read = true;
    std::string folder = std::filesystem::temp_directory_path().string();
};

std::optional<int> parseOptions(Options &options, int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Times the mesh pipeline stage by stage, and its memory, beside PETSc's DMPlex.", "bench_mesh");
    app.add_flag("--quick", options.quick, "small meshes, once: does it run, not how fast");
    app.add_option("--json", options.json, "write the records to this file");
    app.add_flag("!--no-pin", options.pin, "leave ranks where the launcher and the kernel put them");
    const auto *repeats = app.add_option("--repeats", options.repeats, "turns of each method")
                              ->capture_default_str()
                              ->check(CLI::PositiveNumber);
    const auto *cases = app.add_option("--cases", options.cases, "kind of cells (tetrahedra, hexahedra) and number")
                            ->delimiter(',')
                            ->capture_default_str();
    app.add_option("--methods", options.methods, "what is compared")->delimiter(',')->capture_default_str();
    app.add_flag("--shuffled", options.shuffled, "numbers at random: blocks are no neighbourhoods");
    app.add_flag("!--no-read", options.read, "DNDS, too, begins with blocks that it makes, not with a CGNS file");
    app.add_option("--folder", options.folder, "where that file is written, and removed again")->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return code;
    if (options.quick && repeats->count() == 0)
        options.repeats = 1;
    if (options.quick && cases->count() == 0)
        options.cases = {"hexahedra:8000", "tetrahedra:20000"};
    return std::nullopt;
}

/// A cube of nearly the number of cells in `text`, slightly distorted.
Geom::BoxMeshOptions boxOf(const std::string &text, bool shuffled) {
    const auto colon = text.find(':');
    Geom::BoxMeshOptions box;
    box.fill = Geom::boxCellsOf(text.substr(0, colon));
    DNDS_CHECK(colon != std::string::npos &&
                   (box.fill == Geom::BoxCells::Tetrahedra || box.fill == Geom::BoxCells::Hexahedra),
               ArgumentError, "a case is tetrahedra:NUMBER or hexahedra:NUMBER, not '{}'", text);
    const double bricks = std::stod(text.substr(colon + 1)) / (box.fill == Geom::BoxCells::Tetrahedra ? 6 : 1);
    box.cells.fill(std::max<index>(1, std::lround(std::cbrt(bricks))));
    box.jitter = 0.1;
    box.shuffled = shuffled;
    return box;
}

/// One turn of a method, the same on all ranks.
struct Turn {
    std::vector<StageClock::Stage> stages; ///< maxima over ranks
    double read = 0.0;                     ///< seconds, maximum over ranks
    double total = 0.0;                    ///< without making or reading the mesh
    double withoutPartitioner = 0.0;       ///< seconds, maximum over ranks
    double memory = 0.0;                   ///< MiB of the rank that needed most
    double memoryOfAll = 0.0;
};

struct Contest {
    MeshMethod method;
    std::vector<Turn> turns;
    MeshParts parts; ///< sums over ranks, except ghosts: the maximum
};

void takeTurn(CommunicatorView comm, const MeshCase &start, Contest &contest) {
    comm.barrier();
    StageClock clock;
    comm.barrier();
    contest.parts = contest.method.run(comm, start, clock);
    Turn turn;
    turn.memory = clock.peak();
    turn.memoryOfAll = comm.allReduce(turn.memory, MPI_SUM);
    turn.memory = comm.allReduce(turn.memory, MPI_MAX);
    double partition = 0.0;
    for (const StageClock::Stage &stage : clock.stages()) {
        if (stage.name == ReadStage)
            turn.read = stage.seconds;
        else if (stage.name != GenerateStage)
            turn.total += stage.seconds;
        if (stage.name == PartitionStage)
            partition = stage.seconds;
        turn.stages.push_back(
            {stage.name, comm.allReduce(stage.seconds, MPI_MAX), comm.allReduce(stage.peak, MPI_MAX)});
    }
    turn.withoutPartitioner = comm.allReduce(turn.total - partition, MPI_MAX);
    turn.total = comm.allReduce(turn.total, MPI_MAX);
    turn.read = comm.allReduce(turn.read, MPI_MAX);
    contest.turns.push_back(turn);
    contest.parts.cells = comm.allReduce(contest.parts.cells, MPI_SUM);
    contest.parts.faces = comm.allReduce(contest.parts.faces, MPI_SUM);
    contest.parts.volume = comm.allReduce(contest.parts.volume, MPI_SUM);
    contest.parts.ghosts = comm.allReduce(contest.parts.ghosts, MPI_MAX);
}

/// The median over turns of what `valueOf(turn)` is.
template <class ValueOf>
double medianOf(const Contest &contest, ValueOf &&valueOf) {
    std::vector<double> values;
    for (const Turn &turn : contest.turns)
        values.push_back(valueOf(turn));
    return median(std::move(values));
}

class CaseReport {
  public:
    CaseReport(const std::vector<Contest> &contests, Report &report) : report_(report) {
        for (const Contest &contest : contests)
            if (contest.method.name.starts_with("dmplex")) {
                baseSeconds_ = std::fmin(baseSeconds_, secondsOf(contest));
                baseMemory_ = std::fmin(baseMemory_, memoryOf(contest));
            }
    }

    void add(int ranks, const std::string &fill, bool shuffled, const Contest &contest) {
        const double seconds = secondsOf(contest);
        const double memory = memoryOf(contest);
        const double timeRatio = seconds / baseSeconds_;
        const double memoryRatio = memory / baseMemory_;
        const double partition = stageValue(contest, PartitionStage, &StageClock::Stage::seconds);
        const double read = medianOf(contest, [](const Turn &turn) { return turn.read; });
        table_.add({contest.method.name, numberOrDash(read > 0.0 ? read : NotMeasured), numberOrDash(seconds),
                    numberOrDash(partition), numberOrDash(memory), numberOrDash(timeRatio), numberOrDash(memoryRatio),
                    std::to_string(contest.parts.ghosts)});
        Record stages = Record::object();
        Record peaks = Record::object();
        std::string line = fmt::format("  {}:", contest.method.name);
        for (const StageClock::Stage &stage : contest.turns.front().stages) {
            const double stageTime = stageValue(contest, stage.name, &StageClock::Stage::seconds);
            const double peak = stageValue(contest, stage.name, &StageClock::Stage::peak);
            stages[stage.name] = stageTime;
            peaks[stage.name] = numberOrNull(peak);
            line += fmt::format("  {} {} s {} MiB", stage.name, numberOrDash(stageTime), numberOrDash(peak));
        }
        lines_ += line + "\n";
        report_.add(
            {{"benchmark", "mesh"},
             {"fill", fill},
             {"shuffled", shuffled},
             {"cells", contest.parts.cells},
             {"ranks", ranks},
             {"method", contest.method.name},
             {"read_seconds", numberOrNull(read > 0.0 ? read : NotMeasured)},
             {"seconds_without_partitioner", seconds},
             {"seconds", medianOf(contest, [](const Turn &turn) { return turn.total; })},
             {"stage_seconds", stages},
             {"stage_peak_mib", peaks},
             {"peak_mib", numberOrNull(memory)},
             {"peak_mib_all_ranks", numberOrNull(medianOf(contest, [](const Turn &t) { return t.memoryOfAll; }))},
             {"ratio_to_dmplex", numberOrNull(timeRatio)},
             {"memory_ratio_to_dmplex", numberOrNull(memoryRatio)},
             {"ghosts", contest.parts.ghosts},
             {"faces", contest.parts.faces},
             {"turns", contest.turns.size()}});
    }
    std::string text() const { return table_.text() + lines_; }

  private:
    static double secondsOf(const Contest &contest) {
        return medianOf(contest, [](const Turn &turn) { return turn.withoutPartitioner; });
    }
    static double memoryOf(const Contest &contest) {
        return medianOf(contest, [](const Turn &turn) { return turn.memory; });
    }
    static double stageValue(const Contest &contest, const std::string &name, double StageClock::Stage::*value) {
        return medianOf(contest, [&](const Turn &turn) {
            for (const StageClock::Stage &stage : turn.stages)
                if (stage.name == name)
                    return stage.*value;
            return 0.0;
        });
    }

    Report &report_;
    double baseSeconds_ = NotMeasured; ///< of the fastest way of DMPlex
    double baseMemory_ = NotMeasured;
    Table table_{{"method", "read s", "s w/o partitioner", "partitioner s", "peak MiB", "time/dmplex", "memory/dmplex",
                  "ghosts"}};
    std::string lines_;
};

/// The mesh as a CGNS file, while it lives. Collective.
class MeshFile {
  public:
    MeshFile(CommunicatorView comm, const Options &options, const Geom::BoxMeshOptions &box) : comm_(comm) {
        if (!options.read || !Geom::canWriteCgns())
            return;
        const index process = comm.allReduce(static_cast<index>(comm.rank() == 0 ? ::getpid() : 0), MPI_SUM);
        path_ = fmt::format("{}/bench_mesh_{}.cgns", options.folder, process);
        Geom::writeCgns(comm, path_, Geom::makeBoxMesh(box, comm));
    }
    MeshFile(const MeshFile &) = delete;
    MeshFile &operator=(const MeshFile &) = delete;
    ~MeshFile() {
        std::error_code ignored;
        if (comm_.rank() == 0 && !path_.empty())
            std::filesystem::remove(path_, ignored);
    }
    const std::string &path() const { return path_; }

  private:
    CommunicatorView comm_;
    std::string path_;
};

void runCase(CommunicatorView comm, const Options &options, const std::string &text, Report &report) {
    const Geom::BoxMeshOptions box = boxOf(text, options.shuffled);
    const MeshFile file(comm, options, box);
    const MeshCase start{box, file.path()};
    std::vector<Contest> contests;
    for (const auto &methods : {dndsMethods(), plexMethods()})
        for (const MeshMethod &method : methods)
            if (std::find(options.methods.begin(), options.methods.end(), method.name) != options.methods.end())
                contests.push_back({method, {}, {}});
    for (int turn = 0; turn < options.repeats; turn++)
        for (std::size_t k = 0; k < contests.size(); k++)
            takeTurn(comm, start, contests[(k + static_cast<std::size_t>(turn)) % contests.size()]);
    CaseReport lines(contests, report);
    for (const Contest &contest : contests) {
        // DMPlex takes the volume of cells with bent faces from another approximation.
        DNDS_CHECK(contest.parts.cells == contests.front().parts.cells && std::abs(contest.parts.volume - 1.0) < 1e-3,
                   DataError, "{}: {} cells of volume {}, but the cube is of {}", contest.method.name,
                   contest.parts.cells, contest.parts.volume, contests.front().parts.cells);
        lines.add(comm.size(), text.substr(0, text.find(':')), options.shuffled, contest);
    }
    if (!contests.empty())
        say(comm, fmt::format("\n{} {} on {} ranks\n{}", contests.front().parts.cells, text.substr(0, text.find(':')),
                              comm.size(), lines.text()));
}

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    if (const auto code = parseOptions(options, argc, argv, comm))
        return *code;
    if (options.pin)
        pinToCore(comm);
    const auto petsc = startPetsc();
    say(comm, fmt::format("{} ranks, {}, {}\nPETSc: {}\n", comm.size(), mpiLibrary(), cpuName(),
                          plexVersion().empty() ? "absent, this build has no DMPlex to compare with" : plexVersion()));
    Report report;
    for (const std::string &text : options.cases)
        runCase(comm, options, text, report);
    if (!options.json.empty() && comm.rank() == 0)
        report.write(options.json);
    return 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_mesh", argc, argv, DNDS::Bench::run); }
