// Overhead of a part: published to a team one by one, or all ahead, compared with oneTBB's loops and a plain one.

#include "Benchmarks.hpp"
#include "Statistics.hpp"

#include "DNDS/Task/ThreadTeam.hpp"

#include <fmt/format.h>

#include <deque>
#include <numeric>
#include <utility>

namespace DNDS::Bench {
namespace {

/// Work of chunks: each counts its calls in a cache line of its own, and adds up some numbers.
struct Chunks {
    struct alignas(64) Line {
        index calls = 0;
        real sum = 0;
    };
    Chunks(index chunks, int rows) : lines(toSize(chunks)), numbers(static_cast<std::size_t>(rows), 1.0) {}

    static void run(void *context, index chunk) {
        auto &chunks = *static_cast<Chunks *>(context);
        Line &line = chunks.lines[toSize(chunk)];
        line.calls++;
        line.sum += std::accumulate(chunks.numbers.begin(), chunks.numbers.end(), 0.0);
    }

    std::vector<Line> lines;
    std::vector<real> numbers;
};

std::vector<Contestant> contestants(const PartLoop &loop, Task::ThreadTeam &team,
                                    std::deque<Task::ThreadTeam::Loop> &parts) {
    std::vector<Contestant> all{{"plain loop",
                                 {},
                                 [&loop] {
                                     for (int part = 0; part < loop.parts; part++)
                                         for (index c = 0; c < loop.chunks; c++)
                                             loop.chunk(loop.context, c);
                                 },
                                 {}},
                                {"team",
                                 {},
                                 [&] {
                                     team.begin(static_cast<index>(parts.size()));
                                     for (Task::ThreadTeam::Loop &part : parts) {
                                         team.publish(part);
                                         team.wait(part);
                                     }
                                     team.end();
                                 },
                                 {}}};
    if (team.threads() == 1) // else chunks of several parts would count calls at once
        all.push_back({"team, ahead",
                       {},
                       [&] {
                           team.begin(static_cast<index>(parts.size()));
                           for (Task::ThreadTeam::Loop &part : parts)
                               team.publish(part);
                           team.end();
                       },
                       {}});
    for (Contestant &other : tbbContestants(loop, team.threads()))
        all.push_back(std::move(other));
    return all;
}

double medianOf(const std::vector<Block> &blocks) {
    std::vector<double> times;
    for (const Block &block : blocks)
        times.push_back(block.microseconds);
    return median(std::move(times));
}

void measure(const Setting &setting, int threads, index chunks, Table &table) {
    Chunks work(chunks, setting.rows);
    const PartLoop loop{setting.parts, chunks, Chunks::run, &work};
    Task::ThreadTeam team(threads);
    std::deque<Task::ThreadTeam::Loop> parts(static_cast<std::size_t>(setting.parts));
    for (Task::ThreadTeam::Loop &part : parts) {
        part.chunks = chunks;
        part.run = loop.chunk;
        part.context = loop.context;
    }
    std::vector<Contestant> all = contestants(loop, team, parts);
    index runs = 0;
    for (Contestant &contestant : all)
        contestant.finish = [&runs] { runs++; };
    const auto blocks = interleave(setting.comm, setting.sync, all, setting.common.plan);
    index wrong = 0;
    for (const Chunks::Line &line : work.lines)
        wrong += line.calls == runs * setting.parts ? 0 : 1;
    wrong = setting.comm.allReduce(wrong, MPI_SUM);
    DNDS_CHECK(wrong == 0, DataError, "{} chunks did not run once a part", wrong);

    double yardstick = NotMeasured; // parallel_for
    for (std::size_t k = 0; k < all.size(); k++)
        if (all[k].name == "parallel_for")
            yardstick = medianOf(blocks[k]);
    for (std::size_t k = 0; k < all.size(); k++) {
        const double median = medianOf(blocks[k]);
        table.add({all[k].name, fmt::to_string(threads), fmt::to_string(chunks), numberOrDash(median / setting.parts),
                   numberOrDash(median / yardstick)});
        setting.report.add({{"benchmark", "team"},
                            {"method", all[k].name},
                            {"ranks", setting.comm.size()},
                            {"threads", threads},
                            {"chunks", chunks},
                            {"rows", setting.rows},
                            {"parts", setting.parts},
                            {"us_per_part", numberOrNull(median / setting.parts)},
                            {"ratio_to_parallel_for", numberOrNull(median / yardstick)}});
    }
}

} // namespace

void benchmarkThreadTeam(const Setting &setting) {
    Table table({"method", "threads", "chunks", "us a part", "of parallel_for"});
    for (const int threads : setting.threads) {
        for (const index chunks : setting.chunks)
            measure(setting, threads, chunks, table);
    }
    say(setting.comm, fmt::format("{} parts a run, {} numbers a chunk\n{}", setting.parts, setting.rows, table.text()));
}

} // namespace DNDS::Bench
