/// @file main.cpp
/// @brief bench_scale: what the core asks of MPI and of memory, counted on more and more ranks of one job.
#include "MemoryCounts.hpp"
#include "MpiCounts.hpp"
#include "Options.hpp"
#include "Report.hpp"
#include "RunBenchmark.hpp"
#include "Statistics.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Repartition/Repartition.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace DNDS::Bench {

namespace {

constexpr index rowsEach = 1000;     ///< rows of a rank, in the ring
constexpr int reach = 3;             ///< neighbours on either side
constexpr index rowsOfPeer = 32;     ///< ghosts from each
constexpr int pulls = 10;            ///< counted together
constexpr index bytesOfBlock = 2560; ///< in checkpoints: bytes of a rank's block of the mesh
constexpr index firstOfFarIds = 1'000'000'000'000;

/// Quantities counted for a phase on a rank: the maximum over ranks is reported.
enum Quantity : std::size_t {
    Messages,
    MessageBytes,
    RanksSentTo,
    Collectives,
    CollectiveBytes,
    Communicators,
    MemoryKept,
    MemoryPeak,
    Microseconds,
    quantities
};
constexpr std::array<const char *, quantities> keys{"messages",    "message_bytes",    "ranks_sent_to",
                                                    "collectives", "collective_bytes", "communicators",
                                                    "memory_kept", "memory_peak",      "microseconds"};
using Counts = std::array<double, quantities>;

/// Limits of a phase. "Each": for each rank of the communicator, between the fewest and the most ranks.
struct Limit {
    const char *phase;
    double messages;
    double ranksSentTo;
    double collectives;         ///< and communicators
    double collectiveBytesEach; ///< the lists that every rank gets of all ranks
    double keptEach;            ///< bytes of memory that stay
    double keptMore = 600;      ///< and besides, for lists whose lengths depend on how the blocks of ranks meet
};

constexpr double notOurs = 1e9; ///< no limit: the cost of PT-Scotch is counted only

/// docs/reference/scale.md explains what grows with the ranks.
constexpr std::array limits{
    Limit{"context", 0, 0, 14, 0, 0},
    Limit{"numbering", 0, 0, 1, 8, 8},
    Limit{"mapping", 12, 6, 5, 0, 0},
    Limit{"arrays", 12, 6, 10, 8, 8},
    Limit{"binding", 0, 0, 6, 0, 0},
    Limit{"pull", 6, 6, 0, 0, 0},
    Limit{"mesh", 1500, 60, 400, 4200, 24, 40'000}, // of 16 ranks none has neighbours on all sides
    Limit{"PT-Scotch", notOurs, notOurs, notOurs, notOurs, 32},
    Limit{"checkpoint write", 100, 32, 40, 0, 0},
    Limit{"checkpoint read", 100, 32, 40, 0, 0},
    Limit{"far ids write", 150, 48, 140, 4200, 0},
    Limit{"far ids read", 100, 32, 40, 8, 0},
};
struct Options {
    std::string json;
    std::string folder = ".";
    std::vector<int> ranks;
    index bricks = 4;
    bool check = false;
};

std::optional<int> parseOptions(Options &options, int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Counts messages, collectives and memory of the core on more and more ranks.", "bench_scale");
    app.add_option("--json", options.json, "write the records to this file");
    app.add_option("--folder", options.folder, "where checkpoints are written")->capture_default_str();
    app.add_option("--parts", options.ranks, "numbers of ranks to count on; all by default")->delimiter(',');
    app.add_option("--bricks", options.bricks, "hexahedra of a rank's block of the mesh, in each direction")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_flag("--check", options.check, "fail if something grows with the number of ranks that should not");
    if (const auto code = parse(app, argc, argv, comm))
        return code;
    if (options.ranks.empty())
        options.ranks = {comm.size()};
    std::sort(options.ranks.begin(), options.ranks.end());
    DNDS_CHECK(options.ranks.front() > 0 && options.ranks.back() <= comm.size(), ArgumentError,
               "--parts: {} to {} ranks of {} cannot be had", options.ranks.front(), options.ranks.back(), comm.size());
    return std::nullopt;
}

/// Runs the phases on the ranks of one communicator.
class Phases {
  public:
    Phases(CommunicatorView comm, const Options &options)
        : comm_(comm), folder_(options.folder), bricksEach_(options.bricks) {}

    void run() {
        ring();
        mesh();
    }
    const std::vector<std::pair<std::string, Counts>> &counts() const { return counts_; }

  private:
    /// Counts `work`, and divides by `times`. Ranks start together, by messages that are not counted.
    void phase(const std::string &name, const std::function<void()> &work, int times = 1) {
        comm_.barrier();
        resetMpiCounts();
        takeMemoryPeak();
        const auto before = memoryInUse();
        const auto start = std::chrono::steady_clock::now();
        work();
        const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const MpiCounts mpi = mpiCounts();
        const auto per = [times](auto value) { return static_cast<double>(value) / times; };
        Counts mine{};
        mine[Messages] = per(mpi.messages);
        mine[MessageBytes] = per(mpi.messageBytes);
        mine[RanksSentTo] = static_cast<double>(ranksSentTo());
        mine[Collectives] = per(mpi.collectives);
        mine[CollectiveBytes] = per(mpi.collectiveBytes);
        mine[Communicators] = per(mpi.communicators);
        mine[MemoryPeak] = static_cast<double>(takeMemoryPeak() - before);
        mine[MemoryKept] = static_cast<double>(memoryInUse() - before);
        mine[Microseconds] = per(1e6 * seconds);
        comm_.allReduce(mine.data(), static_cast<int>(quantities), MPI_MAX);
        counts_.emplace_back(name, mine);
    }

    /// Rows of ranks in a ring, with ghosts of the nearest ranks on both sides.
    void ring() {
        std::shared_ptr<CommunicatorContext> context;
        phase("context", [&] { context = CommunicatorContext::of(comm_); });
        std::shared_ptr<const GlobalMapping> global;
        phase("numbering", [&] { global = GlobalMapping::create(comm_, rowsEach); });
        std::vector<index> wanted;
        for (int step = -reach; step <= reach; ++step)
            if (const int peer = (comm_.rank() + step + comm_.size()) % comm_.size(); step != 0)
                for (index row = 0; row < rowsOfPeer; ++row)
                    wanted.push_back(global->begin(peer) + row);
        std::shared_ptr<const GhostMapping> mapping;
        phase("mapping", [&] { mapping = GhostMapping::fromPullList(global, wanted); });
        ArrayPair<ParArray<real, 5>> u;
        phase("arrays", [&] {
            u.initPair("u", comm_);
            u.father->resize(rowsEach);
            u.transAttach();
            u.trans.createFatherGlobalMapping();
            u.trans.createGhostMapping(wanted);
            u.trans.createMPITypes();
        });
        phase("binding", [&] { u.trans.initPersistentPull(); });
        phase(
            "pull",
            [&] {
                for (int k = 0; k < pulls; ++k) {
                    u.trans.startPersistentPull();
                    u.trans.waitPersistentPull();
                }
            },
            pulls);
    }

    static std::array<index, 3> blocksOf(int ranks) {
        std::array<index, 3> blocks{1, 1, 1};
        for (int factor = 2; ranks > 1; ++factor)
            for (; ranks % factor == 0; ranks /= factor)
                *std::min_element(blocks.begin(), blocks.end()) *= factor;
        return blocks;
    }

    void mesh() {
        Geom::BoxMeshOptions box;
        box.fill = Geom::BoxCells::Hexahedra;
        box.cells = blocksOf(comm_.size());
        for (index &bricks : box.cells)
            bricks *= bricksEach_;
        std::optional<Geom::SourceMesh> source = makeBoxMesh(box, comm_);
        std::optional<Geom::UnstructuredMesh> mesh;
        phase("mesh", [&] {
            Geom::MeshOptions options;
            options.partitioner = Geom::Partitioner::Curve;
            mesh.emplace(buildMesh(comm_, std::move(*source), options));
        });
        phase("PT-Scotch",
              [&] { (void)Geom::repartitionTargets(*mesh, {}, {.partitioner = Geom::Partitioner::Graph}); });
        auto u = mesh->field<5>("u");
        const auto own = mesh->cells.ownFileNumbers();
        checkpoint("checkpoint", *u.father, own);
        std::vector<index> far(own.begin(), own.end());
        for (index &id : far)
            id = firstOfFarIds + 1'000'003 * id;
        checkpoint("far ids", *u.father, far);
    }

    void checkpoint(const std::string &name, ArrayBase &rows, std::span<const index> ids) {
        if (!CheckpointWriter::built())
            return;
        const std::string path = fmt::format("{}/scale.{}.h5", folder_, comm_.size());
        phase(name + " write", [&] {
            CheckpointWriter writer(comm_, path, {.blockBytes = bytesOfBlock});
            writer.add("u", rows, ids);
            writer.write();
        });
        phase(name + " read", [&] { CheckpointReader(comm_, path).read("u", rows, ids); });
        comm_.barrier();
        if (comm_.rank() == 0)
            std::remove(path.c_str());
    }

    CommunicatorView comm_;
    std::string folder_;
    index bricksEach_;
    std::vector<std::pair<std::string, Counts>> counts_;
};

/// Complains on rank 0 about each quantity beyond its limit; returns their number.
int check(const std::map<int, Phases> &all) {
    int wrong = 0;
    const auto require = [&wrong](const char *phase, const char *what, double is, double limit) {
        if (is <= limit)
            return;
        fmt::print(stderr, "{}: {} {:.6g} exceeds {:.6g}\n", phase, what, is, limit);
        ++wrong;
    };
    const auto &[few, least] = *all.begin();
    const auto &[many, most] = *all.rbegin();
    for (std::size_t k = 0; k < most.counts().size(); ++k) {
        const auto &[name, counts] = most.counts()[k];
        const Counts &before = least.counts()[k].second;
        const auto limit =
            std::ranges::find_if(limits, [&phase = name](const Limit &one) { return one.phase == phase; });
        DNDS_CHECK(limit != limits.end(), StateError, "the phase {} has no limits", name);
        require(limit->phase, "messages", counts[Messages], limit->messages);
        require(limit->phase, "ranks sent to", counts[RanksSentTo], limit->ranksSentTo);
        require(limit->phase, "collectives", counts[Collectives] + counts[Communicators], limit->collectives);
        const double more = many - few;
        require(limit->phase, "more bytes of collectives", counts[CollectiveBytes] - before[CollectiveBytes],
                limit->collectiveBytesEach * more);
        require(limit->phase, "more memory kept", counts[MemoryKept] - before[MemoryKept],
                limit->keptEach * more + limit->keptMore);
    }
    return wrong;
}

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    if (const auto code = parseOptions(options, argc, argv, comm))
        return *code;
    Report report;
    std::map<int, Phases> all;
    for (const int ranks : options.ranks) {
        Communicator part = Communicator::split(comm, comm.rank() < ranks ? 0 : 1, 0);
        if (comm.rank() < ranks) {
            Phases &phases = all.try_emplace(ranks, part.view(), options).first->second;
            phases.run();
            Table table(
                {"phase", "messages", "bytes", "to ranks", "coll", "coll bytes", "comms", "kept", "peak", "us"});
            for (const auto &[name, counts] : phases.counts()) {
                Record record{{"benchmark", "scale"}, {"phase", name}, {"ranks", ranks}};
                std::vector<std::string> row{name};
                for (std::size_t q = 0; q < quantities; ++q) {
                    record[keys[q]] = counts[q];
                    row.push_back(numberOrDash(counts[q], 6));
                }
                report.add(record);
                table.add(row);
            }
            say(comm, fmt::format("{} ranks\n{}", ranks, table.text()));
        }
        // The others sleep, so that they do not take the cores of counting ranks.
        MPI_Request together = MPI_REQUEST_NULL;
        MPI_Ibarrier(comm.handle(), &together);
        for (int done = 0; done == 0; MPI_Test(&together, &done, MPI_STATUS_IGNORE))
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (comm.rank() == 0 && !options.json.empty())
        report.write(options.json);
    return comm.rank() == 0 && options.check && check(all) > 0 ? 1 : 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_scale", argc, argv, DNDS::Bench::run); }
