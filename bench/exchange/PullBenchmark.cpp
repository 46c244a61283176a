#include "Benchmarks.hpp"
#include "DndsPull.hpp"
#include "PullMethod.hpp"
#include "Statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

namespace DNDS::Bench {

namespace {

/// The value of element `j` of global row `row` after the `round`-th rewriting: exact, and different everywhere.
double valueOf(index row, int width, int j, int round) {
    return static_cast<double>(row * width + j) + 1e10 * static_cast<double>(round);
}

void writeRows(double *father, std::span<const LocalIndex> rows, index firstRow, int width, int round) {
    for (const LocalIndex row : rows)
        for (int j = 0; j < width; ++j)
            father[static_cast<std::ptrdiff_t>(row) * width + j] = valueOf(firstRow + row, width, j, round);
}

/// Keeps the compiler from dropping the reading of ghosts.
volatile double sink = 0.0;

void readGhosts(std::span<const double> son) {
    std::array<double, 8> sums{};
    std::size_t i = 0;
    for (; i + 8 <= son.size(); i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane)
            sums[lane] += son[i + lane];
    for (; i < son.size(); ++i)
        sums[0] += son[i];
    for (const double sum : sums)
        sink = sink + sum;
}

/// Everything that is measured for one problem and width.
struct Arena {
    Arena(CommunicatorView given, const Problem &of, int rowWidth)
        : comm(given), problem(of), width(rowWidth), rawComm(Communicator::duplicate(given)),
          field(given, of, rowWidth), plan(PullPlan::make(rawComm.view(), of.offsets, of.pullList)),
          boundary(plan.sentRows) {
        std::sort(boundary.begin(), boundary.end());
        boundary.erase(std::unique(boundary.begin(), boundary.end()), boundary.end());
        std::fill_n(field.father(), static_cast<std::size_t>(problem.owned() * width), 0.0);
    }

    void rewrite() {
        ++round;
        writeRows(field.father(), boundary, problem.offsets[static_cast<std::size_t>(problem.rank)], width, round);
    }

    /// Pulls twice, with rows rewritten, and throws on all ranks if any ghost of any rank is wrong. Collective.
    void check(PullMethod &method, NodeSync &sync) {
        for (int time = 0; time < 2; ++time) {
            std::fill(method.son().begin(), method.son().end(), -1.0);
            rewrite();
            sync.barrier();
            method.pull();
            comm.guarded([&] { compare(method); });
        }
    }

    void compare(PullMethod &method) const {
        const std::span<const double> son = method.son();
        DNDS_CHECK(son.size() == plan.ghosts.size() * static_cast<std::size_t>(width), DataError,
                   "{}: the son has {} doubles", method.name(), son.size());
        auto value = son.begin();
        for (const index row : plan.ghosts)
            for (int j = 0; j < width; ++j, ++value)
                DNDS_CHECK(*value == valueOf(row, width, j, round), DataError,
                           "{} pulled {} instead of {} into the ghost of row {}, element {}", method.name(), *value,
                           valueOf(row, width, j, round), row, j);
    }

    CommunicatorView comm;
    const Problem &problem;
    int width;
    Communicator rawComm;
    Field field;
    PullPlan plan;
    std::vector<LocalIndex> boundary;
    int round = 0;
};

Contestant contestant(Arena &arena, PullMethod &method, const RowState &state) {
    Contestant result;
    result.name = method.name();
    if (state.ownersRewrite)
        result.prepare = [&arena] { arena.rewrite(); };
    if (state.readTimed)
        result.timed = [&method] {
            method.pull();
            readGhosts(method.son());
        };
    else
        result.timed = [&method] { method.pull(); };
    if (state.readersRead && !state.readTimed)
        result.finish = [&method] { readGhosts(method.son()); };
    return result;
}

bool fitsMemory(const Setting &setting, const Problem &problem, int width) {
    const index sons = static_cast<index>(setting.transports.size()) + 4;
    const index rows = setting.comm.allReduce(problem.owned() + 3 * sons * problem.ghosts(), MPI_SUM);
    const double needed = static_cast<double>(rows) * width * sizeof(double);
    const auto available = static_cast<double>(setting.comm.allReduce(memoryAvailable(), MPI_MIN));
    if (available == 0.0 || needed < 0.6 * available)
        return true;
    say(setting.comm, fmt::format("{} x {}: skipped, it needs {:.1f} GB of {:.1f} GB\n", problem.name, width,
                                  needed * 1e-9, available * 1e-9));
    return false;
}

std::vector<std::unique_ptr<PullMethod>> makeMethods(const Setting &setting, Arena &arena) {
    std::vector<std::unique_ptr<PullMethod>> methods;
    const double *father = arena.field.father();
    methods.push_back(makeRawMpi(arena.rawComm.view(), arena.plan, father, arena.width));
    if (auto shared = makeSharedByHand(arena.rawComm.view(), arena.plan, father, arena.width))
        methods.push_back(std::move(shared));
    for (const TransportKind kind : setting.transports) {
        // Binding throws on all ranks or on none.
        try {
            methods.push_back(arena.field.bind(kind));
        } catch (const Error &error) {
            say(setting.comm, fmt::format("{}: skipped, {}\n", transportName(kind), error.message()));
        }
    }
    if (auto petsc = makePetsc(setting.comm, arena.problem.offsets, arena.plan, father, arena.width))
        methods.push_back(std::move(petsc));
    if (auto ghex = makeGhex(setting.comm, arena.problem.offsets, arena.plan, father, arena.width))
        methods.push_back(std::move(ghex));
    for (const auto &method : methods)
        arena.check(*method, setting.sync);
    methods.push_back(makeFloor(arena.plan, father, arena.width));
    methods.push_back(makeMemcpy(arena.plan, arena.width));
    return methods;
}

void report(const Setting &setting, const Arena &arena, index ghosts, const RowState &state, Regime regime,
            std::span<const Contestant> contestants, const std::vector<std::vector<Block>> &blocks) {
    std::vector<Summary> summaries;
    for (const auto &own : blocks)
        summaries.push_back(summarize(own, regime));
    if (std::all_of(summaries.begin(), summaries.end(), [](const Summary &one) { return one.blocks == 0; }))
        return;
    const auto timeOf = [&](const std::string &name) {
        for (std::size_t i = 0; i < contestants.size(); ++i)
            if (contestants[i].name == name)
                return summaries[i].microseconds;
        return NotMeasured;
    };
    Table table({fmt::format("{} x {}, {}, {} ({} ns)", arena.problem.name, arena.width, state.name, regimeName(regime),
                             numberOrDash(summaries.front().latency)),
                 "us", "min", "p10", "p90", "max", "/raw_mpi", "/shared", "/petsc", "/ghex", "/floor", "/memcpy",
                 "reps"});
    for (std::size_t i = 0; i < contestants.size(); ++i) {
        const Summary &own = summaries[i];
        if (own.blocks == 0)
            continue;
        Record record;
        record["benchmark"] = "pull";
        record["grid"] = arena.problem.name;
        record["partitioner"] = arena.problem.partitioner;
        record["numbering"] = arena.problem.numbering;
        record["ranks"] = setting.comm.size();
        record["doubles_per_row"] = arena.width;
        record["transport"] = contestants[i].name;
        record["state"] = state.name;
        record["regime"] = std::string(regimeName(regime));
        record["median_us"] = own.microseconds;
        std::vector<std::string> row{"  " + contestants[i].name, numberOrDash(own.microseconds)};
        for (const auto &[key, share] : {std::pair{"min_us", 0.0}, {"p10_us", 0.1}, {"p90_us", 0.9}, {"max_us", 1.0}}) {
            const double time = quantile(own.times, share);
            record[key] = numberOrNull(time);
            row.push_back(numberOrDash(time));
        }
        for (const auto &[key, baseline] : {std::pair{"ratio_to_raw_mpi", RawMpiName},
                                            {"ratio_to_shared_by_hand", SharedByHandName},
                                            {"ratio_to_petsc", PetscName},
                                            {"ratio_to_ghex", GhexName},
                                            {"ratio_to_floor", FloorName},
                                            {"ratio_to_memcpy", MemcpyName}}) {
            const double ratio = own.microseconds / timeOf(baseline);
            record[key] = numberOrNull(ratio);
            row.push_back(numberOrDash(ratio));
        }
        record["repetitions"] = own.times.size();
        record["blocks"] = own.blocks;
        record["ghosts"] = ghosts;
        record["latency_ns"] = numberOrNull(own.latency);
        setting.report.add(std::move(record));
        row.push_back(fmt::format("{}", own.times.size()));
        table.add(std::move(row));
    }
    say(setting.comm, table.text());
}

} // namespace

void benchmarkPulls(const Setting &setting, const Problem &problem, int width) {
    if (!fitsMemory(setting, problem, width))
        return;
    Arena arena(setting.comm, problem, width);
    const std::vector<std::unique_ptr<PullMethod>> methods = makeMethods(setting, arena);
    const index ghosts = setting.comm.allReduce(problem.ghosts(), MPI_MAX);
    for (const RowState &state : setting.states) {
        std::vector<Contestant> contestants;
        for (const auto &method : methods)
            contestants.push_back(contestant(arena, *method, state));
        const auto blocks = interleave(setting.comm, setting.sync, contestants, setting.plan);
        for (const Regime regime : {Regime::Near, Regime::Far, Regime::SharedCore, Regime::Unknown})
            report(setting, arena, ghosts, state, regime, contestants, blocks);
    }
    for (const auto &method : methods)
        if (method->communicates())
            arena.check(*method, setting.sync);
}

} // namespace DNDS::Bench
