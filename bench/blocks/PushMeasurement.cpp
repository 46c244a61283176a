#include "PushMeasurement.hpp"

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Transport/TransportTypes.hpp"
#include "Statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>

namespace DNDS::Bench {

namespace {

/// Fills a field with ones, ghosts included, pushes, and compares the sum of all cells and ghosts: nothing is lost, and
/// nothing counted twice.
void check(const Setting &setting, BlockField<real> &field) {
    const auto count = static_cast<std::size_t>(field.array().size() * field.array().rowSize());
    const std::span<real> values(field.array().view().data(), count);
    std::ranges::fill(values, 1);
    field.pushGhosts();
    const real lost = setting.comm.allReduce(
        static_cast<real>(count) - std::accumulate(values.begin(), values.end(), real{0}), MPI_SUM);
    DNDS_CHECK(lost == 0, DataError, "a push lost {} of what was deposited", lost);
    const real most = setting.comm.allReduce(values.empty() ? 0 : std::ranges::max(values), MPI_MAX);
    DNDS_CHECK(most > 1, DataError, "a push added nothing");
    std::ranges::fill(values, 0);
}

} // namespace

void measurePushes(const Setting &setting, const std::string &name, const std::shared_ptr<const BlockGrid> &grid,
                   index width, int components) {
    const auto pattern = BlockPattern::make(setting.comm, grid, GhostWidths::uniform(grid->dims(), width));
    std::vector<std::unique_ptr<BlockField<real>>> fields;
    std::vector<Contestant> contestants; // a pull and its push, one after the other
    for (const TransportKind kind : setting.transports) {
        auto field = std::make_unique<BlockField<real>>("u", setting.comm, pattern, components);
        try { // it throws on all ranks or on none
            field->initPushGhosts(PushOp::Sum, {.transport = kind});
            check(setting, *field);
            field->initExchangeGhosts({.transport = kind});
        } catch (const Error &error) {
            say(setting.comm, fmt::format("{}: skipped, {}\n", transportName(kind), error.message()));
            continue;
        }
        contestants.push_back(
            {fmt::format("pull, {}", transportName(kind)), {}, [&u = *field] { u.exchangeGhosts(); }, {}});
        contestants.push_back(
            {fmt::format("push, {}", transportName(kind)), {}, [&u = *field] { u.pushGhosts(); }, {}});
        fields.push_back(std::move(field));
    }
    const auto blocks = interleave(setting.comm, setting.sync, contestants, setting.plan);
    for (const Regime regime : {Regime::Near, Regime::Far, Regime::SharedCore, Regime::Unknown}) {
        std::vector<Summary> times;
        for (const auto &own : blocks)
            times.push_back(summarize(own, regime));
        if (std::ranges::all_of(times, [](const Summary &one) { return one.blocks == 0; }))
            continue;
        Table table({fmt::format("push, {}, {}", name, regimeName(regime)), "us", "min", "/pull", "reps"});
        for (std::size_t k = 0; k < contestants.size(); ++k) {
            const Summary &own = times[k];
            const double ratio = own.microseconds / times[k / 2 * 2].microseconds;
            Record record;
            record["benchmark"] = "blocks";
            record["case"] = fmt::format("push, {}", name);
            record["ranks"] = setting.comm.size();
            record["components"] = components;
            record["method"] = contestants[k].name;
            record["regime"] = std::string(regimeName(regime));
            record["median_us"] = numberOrNull(own.microseconds);
            record["ratio_to_pull"] = numberOrNull(ratio);
            setting.report.add(std::move(record));
            table.add({"  " + contestants[k].name, numberOrDash(own.microseconds), numberOrDash(quantile(own.times, 0)),
                       numberOrDash(ratio), fmt::format("{}", own.times.size())});
        }
        say(setting.comm, table.text());
    }
}

} // namespace DNDS::Bench
