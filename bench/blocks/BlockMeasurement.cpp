#include "BlockMeasurement.hpp"

#include "DNDS/Transport/TransportTypes.hpp"
#include "Statistics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace DNDS::Bench {

namespace {

/// A method with its case, and the values that were written for it last.
struct Entry {
    const BlockCase *of;
    GhostMethod *method;
    std::shared_ptr<int> round = std::make_shared<int>(0);

    void rewrite() const { method->rewrite(++*round); }
};

void check(const Setting &setting, std::span<const Entry> entries) {
    for (const Entry &entry : entries) {
        if (!entry.method->checked())
            continue;
        for (int time = 0; time < 2; ++time) {
            entry.rewrite();
            setting.sync.barrier();
            entry.method->exchange();
            setting.comm.guarded([&] { entry.method->compare(*entry.round); });
            setting.sync.barrier();
        }
    }
}

/// Times of one regime.
class Regimes {
  public:
    Regimes(std::span<const Entry> entries, const std::vector<std::vector<Block>> &blocks, Regime regime)
        : entries_(entries) {
        for (const auto &own : blocks)
            summaries_.push_back(summarize(own, regime));
    }
    bool empty() const {
        return std::ranges::all_of(summaries_, [](const Summary &one) { return one.blocks == 0; });
    }
    const Summary &operator[](std::size_t k) const { return summaries_[k]; }
    /// Of a method of the same case, or NotMeasured.
    double timeOf(const BlockCase &of, const std::string &name) const {
        for (std::size_t k = 0; k < entries_.size(); ++k)
            if (entries_[k].of == &of && entries_[k].method->name() == name)
                return summaries_[k].microseconds;
        return NotMeasured;
    }
    double bestByHand(const BlockCase &of) const { return std::min(timeOf(of, PackedName), timeOf(of, SubarrayName)); }

  private:
    std::span<const Entry> entries_;
    std::vector<Summary> summaries_;
};

void report(const Setting &setting, const std::string &title, std::span<const Entry> entries,
            std::span<const double> megabytes, const Regimes &times, Regime regime) {
    Table table({fmt::format("{}, {} ({} ns)", title, regimeName(regime), numberOrDash(times[0].latency)), "us", "min",
                 "p90", "us/MB", "/by hand", "/g2l", "/l2l", "/p4est", "/copy", "reps"});
    const BlockCase *last = nullptr;
    for (std::size_t k = 0; k < entries.size(); ++k) {
        const BlockCase &of = *entries[k].of;
        const Summary &own = times[k];
        if (own.blocks == 0)
            continue;
        if (last != &of && entries.front().of != entries.back().of)
            table.add({" " + of.name(), "", "", "", "", "", "", "", "", "", ""});
        last = &of;
        Record record;
        record["benchmark"] = "blocks";
        record["case"] = of.name();
        record["ranks"] = setting.comm.size();
        record["components"] = of.components();
        record["ghosts"] = of.width();
        record["method"] = entries[k].method->name();
        record["regime"] = std::string(regimeName(regime));
        record["median_us"] = own.microseconds;
        record["min_us"] = numberOrNull(quantile(own.times, 0));
        record["p90_us"] = numberOrNull(quantile(own.times, 0.9));
        record["us_per_MB"] = numberOrNull(own.microseconds / megabytes[k]);
        std::vector<std::string> row{"  " + entries[k].method->name(), numberOrDash(own.microseconds),
                                     numberOrDash(quantile(own.times, 0)), numberOrDash(quantile(own.times, 0.9)),
                                     numberOrDash(own.microseconds / megabytes[k])};
        for (const auto &[key, baseline] : {std::pair{"ratio_to_by_hand", times.bestByHand(of)},
                                            {"ratio_to_global_to_local", times.timeOf(of, GlobalToLocalName)},
                                            {"ratio_to_local_to_local", times.timeOf(of, LocalToLocalName)},
                                            {"ratio_to_p4est", times.timeOf(of, P4estName)},
                                            {"ratio_to_strided_copy", times.timeOf(of, StridedCopyName)}}) {
            record[key] = numberOrNull(own.microseconds / baseline);
            row.push_back(numberOrDash(own.microseconds / baseline));
        }
        record["repetitions"] = own.times.size();
        record["latency_ns"] = numberOrNull(own.latency);
        setting.report.add(std::move(record));
        row.push_back(fmt::format("{}", own.times.size()));
        table.add(std::move(row));
    }
    say(setting.comm, table.text());
}

} // namespace

Contest makeContest(const Setting &setting, std::unique_ptr<BlockCase> of) {
    Contest contest{std::move(of), {}};
    contest.methods.push_back(makePacked(*contest.of));
    contest.methods.push_back(makeSubarray(*contest.of));
    for (const TransportKind kind : setting.transports) {
        try { // it throws on all ranks or on none
            contest.methods.push_back(makeDnds(*contest.of, kind));
        } catch (const Error &error) {
            say(setting.comm, fmt::format("{}: skipped, {}\n", transportName(kind), error.message()));
        }
    }
    contest.methods.push_back(makeStridedCopy(*contest.of));
    return contest;
}

void measure(const Setting &setting, const std::string &title, std::span<const Contest> contests) {
    std::vector<Entry> entries;
    std::vector<Contestant> contestants;
    std::vector<double> megabytes;
    for (const Contest &contest : contests) {
        const index most =
            setting.comm.allReduce(contest.of->received() + contest.of->copied(), MPI_MAX); // the rank that gets most
        for (const auto &method : contest.methods) {
            entries.push_back({contest.of.get(), method.get()});
            megabytes.push_back(static_cast<double>(most) * sizeof(double) * 1e-6);
        }
    }
    check(setting, entries);
    for (const Entry &entry : entries)
        contestants.push_back(
            {entry.method->name(), [&entry] { entry.rewrite(); }, [&entry] { entry.method->exchange(); }, {}});
    const auto blocks = interleave(setting.comm, setting.sync, contestants, setting.plan);
    for (const Regime regime : {Regime::Near, Regime::Far, Regime::SharedCore, Regime::Unknown})
        if (const Regimes times(entries, blocks, regime); !times.empty())
            report(setting, title, entries, megabytes, times, regime);
    check(setting, entries);
}

} // namespace DNDS::Bench
