#include "AlignedVector.hpp"
#include "Benchmarks.hpp"
#include "PullMethod.hpp"
#include "SetupMethod.hpp"
#include "Statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace DNDS::Bench {

namespace {

/// The stage of PETSc that does the same work; after PetscSFSetUp there is nothing more to bind.
std::string petscStage(const std::string &stage) { return stage == "mapping" || stage == "bound" ? "graph" : stage; }

void report(const Setting &setting, const Problem &problem, int width, index ghosts, Regime regime,
            std::span<const SetupMethod> methods, const std::vector<std::vector<Block>> &blocks) {
    const auto timeOf = [&](const std::string &method, const std::string &stage) {
        for (std::size_t i = 0; i < methods.size(); ++i)
            if (methods[i].method == method && methods[i].stage == stage)
                return summarize(blocks[i], regime).microseconds;
        return NotMeasured;
    };
    Table table({fmt::format("{} x {}, set-up, {} ({} ns)", problem.name, width, regimeName(regime),
                             numberOrDash(summarize(blocks.front(), regime).latency)),
                 "us", "/raw_mpi", "/petsc", "/petsc+translate", "reps"});
    for (std::size_t i = 0; i < methods.size(); ++i) {
        const auto &[method, stage, build, release] = methods[i];
        const Summary own = summarize(blocks[i], regime);
        if (own.blocks == 0)
            continue;
        const double petsc = timeOf(PetscName, petscStage(stage));
        Record record;
        record["benchmark"] = "setup";
        record["grid"] = problem.name;
        record["partitioner"] = problem.partitioner;
        record["numbering"] = problem.numbering;
        record["ranks"] = setting.comm.size();
        record["doubles_per_row"] = width;
        record["transport"] = method;
        record["stage"] = stage;
        record["regime"] = std::string(regimeName(regime));
        record["median_us"] = own.microseconds;
        record["min_us"] = numberOrNull(quantile(own.times, 0));
        std::vector<std::string> row{fmt::format("  {} {}", method, stage), numberOrDash(own.microseconds)};
        for (const auto &[key, baseline] :
             {std::pair{"ratio_to_raw_mpi", timeOf(RawMpiName, stage == "graph" ? "bound" : stage)},
              {"ratio_to_petsc", petsc},
              {"ratio_to_petsc_with_translation", petsc + timeOf(PetscName, "translate")}}) {
            const double ratio = stage == "translate" ? NotMeasured : own.microseconds / baseline;
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
    if (!table.empty())
        say(setting.comm, table.text());
}

} // namespace

void benchmarkSetups(const Setting &setting, const Problem &problem, int width) {
    const Communicator rawComm = Communicator::duplicate(setting.comm);
    const AlignedVector<double> father(static_cast<std::size_t>(problem.owned() * width), 1.0);
    std::vector<SetupMethod> methods = handSetups(rawComm.view(), problem, father.data(), width);
    const auto append = [&](std::vector<SetupMethod> more) {
        std::move(more.begin(), more.end(), std::back_inserter(methods));
    };
    for (const TransportKind kind : setting.transports)
        append(dndsSetups(setting.comm, problem, kind, width));
    append(petscSetups(setting.comm, problem, father.data(), width));

    std::vector<Contestant> contestants;
    for (const SetupMethod &method : methods)
        contestants.push_back({method.method + " " + method.stage, {}, method.build, method.release});
    const auto blocks = interleave(setting.comm, setting.sync, contestants, setting.plan);
    const index ghosts = setting.comm.allReduce(problem.ghosts(), MPI_MAX);
    for (const Regime regime : {Regime::Near, Regime::Far, Regime::SharedCore, Regime::Unknown})
        report(setting, problem, width, ghosts, regime, methods, blocks);
}

} // namespace DNDS::Bench
