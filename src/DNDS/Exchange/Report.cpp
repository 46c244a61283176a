#include "DNDS/Exchange/Report.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Table.hpp"
#include "DNDS/Exchange/ExchangeCounts.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <iterator>
#include <mutex>
#include <numeric>

#include <sys/resource.h>

namespace DNDS {

namespace {

/// Whether new exchanges are counted; at first as DNDS_REPORT says.
std::atomic<bool> &counting() {
    static std::atomic<bool> on = reportsAtEnd();
    return on;
}

/// A row of an exchange's table: which count, where its statistics are in the report, and how they are printed.
struct ReportRow {
    const char *what;
    std::size_t count;
    RankStatistics ExchangeReport::*spread;
    std::string (*text)(double);
};

/// Binary units (IEC 80000-13), one decimal beyond bytes.
std::string bytesText(double bytes) {
    static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    for (; bytes >= 1024.0 && unit + 1 < std::size(units); ++unit)
        bytes /= 1024.0;
    return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

std::string numberText(double value) { return fmt::format("{:.0f}", value); }

std::string secondsText(double value) { return fmt::format("{:.3g} s", value); }

constexpr std::array<ReportRow, 7> lines{
    {{"    peers", Count::Peers, &ExchangeReport::peers, numberText},
     {"    owned rows", Count::Owned, &ExchangeReport::owned, numberText},
     {"    ghosts", Count::Ghosts, &ExchangeReport::ghosts, numberText},
     {"    rows sent a run", Count::RowsSent, &ExchangeReport::rowsSent, numberText},
     {"    bytes sent a run", Count::BytesSent, &ExchangeReport::bytesSent, bytesText},
     {"    in start", Count::StartSeconds, &ExchangeReport::startSeconds, secondsText},
     {"    in wait", Count::WaitSeconds, &ExchangeReport::waitSeconds, secondsText}}};

/// A rank's figures of the exchanges of one name.
using Told = std::array<double, Count::All>;

/// This rank's figures of one name; zeros if it has no such exchange.
Told toldOf(const std::string &name, double clockOffset) {
    CountsOfProcess &process = CountsOfProcess::instance();
    const std::lock_guard lock(process.mutex);
    Told told{};
    if (const auto found = process.exchanges.find(name); found != process.exchanges.end())
        std::ranges::copy(found->second->numbers, told.begin());
    // A sum of `Begun` times, each of which is shifted to rank 0's clock.
    told[Count::StartsAt] += clockOffset * told[Count::Begun];
    return told;
}

/// The names of all ranks' exchanges, those of the lowest rank first. Collective.
std::vector<std::string> namesOnAllRanks(CommunicatorView comm) {
    std::string mine;
    comm.guarded([&] {
        CountsOfProcess &process = CountsOfProcess::instance();
        const std::lock_guard lock(process.mutex);
        for (const auto &exchange : process.exchanges)
            mine += exchange.first + '\0';
    });
    const std::vector<char> all = comm.allGatherV(std::span<const char>(mine));
    std::vector<std::string> names;
    comm.guarded([&] {
        // Distinct names in the order of their first rank; O(names^2), of which there are some tens.
        for (auto begin = all.begin(); begin != all.end();) {
            const auto end = std::find(begin, all.end(), '\0');
            if (const std::string name(begin, end); std::ranges::find(names, name) == names.end())
                names.push_back(name);
            begin = end + 1;
        }
    });
    return names;
}

/// The rank that starts last, and whether the others wait for it. None where these are not the ranks of one
/// communicator: ranks of another one do not wait. Method: a rank that is late in `start` makes its peers wait about as
/// long as it is late. Compares the mean start times (on rank 0's clock) of the last rank and of the others with the
/// others' mean time in `wait`.
/// O(ranks). Clocks are aligned to rank 0's before (`clockOffset`), with an error of half a round trip: delays of
/// some microseconds are not attributed.
void findLatest(ExchangeReport &exchange, std::span<const Told> told, std::span<const int> ranks) {
    if (told.size() < 2)
        return;
    // Sums of start times compare as means, since all ranks have started equally often.
    const auto count = static_cast<double>(told.size());
    const double runs = told.front()[Count::Begun];
    if (runs == 0.0 ||
        std::ranges::any_of(told, [&](const Told &t) { return t[Count::Begun] != runs || t[Count::Ranks] != count; }))
        return;
    const auto last = std::ranges::max_element(told, {}, [](const Told &t) { return t[Count::StartsAt]; });
    const auto meanOfOthers = [&](std::size_t number) {
        const auto sum = [&](double before, const Told &t) { return before + t[number]; };
        return std::accumulate(told.begin(), told.end(), -(*last)[number], sum) / (count - 1.0) / runs;
    };
    exchange.latest = ranks[static_cast<std::size_t>(last - told.begin())];
    exchange.late = (*last)[Count::StartsAt] / runs - meanOfOthers(Count::StartsAt);
    const double othersWait = meanOfOthers(Count::WaitSeconds);
    // Seconds. A rank is to blame if it is late by more than half of the others' mean wait.
    constexpr double little = 5e-6;
    exchange.keepsOthersWaiting = othersWait > little && exchange.late > 0.5 * othersWait;
}

/// Statistics over the ranks that have an exchange of this name; `all` has an entry a rank of the communicator.
/// O(ranks log ranks) for each line of the table. All ranks compute it from the same numbers, and so get the same
/// report.
ExchangeReport summaryOf(const std::string &name, std::span<const Told> all) {
    // One exchange from the figures of all ranks; the same on each of them.
    ExchangeReport exchange;
    exchange.name = name;
    std::vector<Told> told;
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank][Count::Made] > 0.0) {
            told.push_back(all[rank]);
            ranks.push_back(static_cast<int>(rank));
        }
    // Ranks without an exchange of this name do not count, not even as zeros.
    exchange.ranks = static_cast<int>(told.size());
    for (const ReportRow &line : lines) {
        std::vector<double> values(told.size());
        std::ranges::transform(told, values.begin(), [&](const Told &t) { return t[line.count]; });
        exchange.*line.spread = RankStatistics::of(values, ranks);
    }
    for (const Told &t : told) {
        exchange.runs = std::max(exchange.runs, static_cast<std::uint64_t>(t[Count::Runs]));
        for (std::size_t way = 0; way < pathClasses; ++way) {
            exchange.paths[way].first += static_cast<std::uint64_t>(t[Count::PathPeers + way]);
            exchange.paths[way].second += static_cast<std::uint64_t>(t[Count::PathBytes + way]);
        }
    }
    findLatest(exchange, told, ranks);
    return exchange;
}

/// Bytes by kind, in the order of Report::memory. Arrays of one name count once, with their largest sizes: an array
/// has several exchanges.
std::array<double, 6> memoryOfProcess() {
    CountsOfProcess &process = CountsOfProcess::instance();
    const std::lock_guard lock(process.mutex);
    std::map<std::string, std::pair<std::size_t, std::size_t>> arrays; // of one name, the largest
    std::array<double, 6> memory{};
    auto &[owned, ghosts, lists, buffers, shared, resident] = memory;
    for (const auto &[name, counts] : process.exchanges) {
        for (const auto &[array, bytes] : counts->arrays) {
            auto &most = arrays[array];
            most = {std::max(most.first, bytes.first), std::max(most.second, bytes.second)};
        }
        lists += counts->numbers[Count::ListBytes];
        buffers += counts->numbers[Count::BufferBytes];
    }
    for (const auto &[name, bytes] : arrays) {
        owned += static_cast<double>(bytes.first);
        ghosts += static_cast<double>(bytes.second);
    }
    shared = static_cast<double>(process.arenaBytes);
    ::rusage usage{};
    (void)::getrusage(RUSAGE_SELF, &usage);
    resident = 1024.0 * static_cast<double>(usage.ru_maxrss);
    return memory;
}

void add(Table &table, const char *what, const RankStatistics &spread, std::string (*text)(double)) {
    table.add({what, text(spread.min), text(spread.median), text(spread.max), fmt::to_string(spread.maxRank),
               fmt::format("{:.0f} %", 100.0 * spread.imbalance())});
}

void add(Table &table, const ExchangeReport &exchange) {
    static constexpr std::array<const char *, pathClasses> ways{"own memory", "node-shared", "messages", "device"};
    const auto out = std::back_inserter(table.text);
    fmt::format_to(out, "  {}: run {} times on {} rank{}\n", exchange.name, exchange.runs, exchange.ranks,
                   exchange.ranks == 1 ? "" : "s");
    for (const ReportRow &line : lines)
        add(table, line.what, exchange.*line.spread, line.text);
    for (std::size_t way = 0; way < pathClasses; ++way)
        if (const auto [peers, bytes] = exchange.paths[way]; peers > 0)
            fmt::format_to(out, "    by {}: {} peers, {} a run\n", ways[way], peers,
                           bytesText(static_cast<double>(bytes)));
    if (exchange.latest >= 0 && exchange.keepsOthersWaiting)
        fmt::format_to(out, "    rank {} keeps the others waiting: it starts {:.3g} us after them, on average\n",
                       exchange.latest, 1e6 * exchange.late);
}

} // namespace

const ExchangeReport *Report::find(std::string_view name) const noexcept {
    const auto found = std::ranges::find(exchanges, name, &ExchangeReport::name);
    return found == exchanges.end() ? nullptr : &*found;
}

std::string Report::text() const {
    static constexpr std::array<const char *, 6> kinds{"    owned rows", "    ghosts",          "    lists of rows",
                                                       "    buffers",    "    shared by nodes", "    process"};
    Table table({-26, 11, 11, 11, 6, 8});
    table.text = fmt::format("DNDS: exchanges of {} rank{}\n", ranks, ranks == 1 ? "" : "s");
    if (exchanges.empty())
        return table.text + "  none were counted: set DNDS_REPORT=1, or call countExchanges before they are made\n";
    table.add({"", "least", "median", "most", "rank", "imbalance"});
    for (const ExchangeReport &exchange : exchanges)
        add(table, exchange);
    table.add({"  memory of a rank", "least", "median", "most", "rank", "imbalance"});
    for (std::size_t k = 0; k < kinds.size(); ++k)
        add(table, kinds[k], memory[k], bytesText);
    return table.text;
}

void countExchanges(bool on) { counting().store(on, std::memory_order_relaxed); }

bool countsExchanges() { return counting().load(std::memory_order_relaxed); }

bool reportsAtEnd() {
    static const bool asked = readEnvironment().report;
    return asked;
}

// Three steps, each collective: names, clock offsets, figures. O(names x ranks) numbers are sent in all.
Report report(CommunicatorView comm) {
    // Names of all ranks first, since ranks of different communicators have different exchanges; then one gather a
    // name.
    const std::vector<std::string> names = namesOnAllRanks(comm);
    const double offset = clockOffset(comm);
    Report made;
    made.ranks = comm.size();
    // All ranks have the same names in the same order, and so make the same collectives. Memory O(ranks) for one
    // name at a time.
    for (const std::string &name : names) {
        const Told mine = toldOf(name, offset);
        const std::vector<Told> all = comm.allGatherV(std::span(&mine, 1));
        comm.guarded([&] { made.exchanges.push_back(summaryOf(name, all)); });
    }
    std::array<double, 6> mine{};
    comm.guarded([&] { mine = memoryOfProcess(); });
    for (std::size_t k = 0; k < mine.size(); ++k)
        made.memory[k] = RankStatistics::over(comm, mine[k]);
    std::ranges::stable_sort(made.exchanges, std::greater{}, [](const ExchangeReport &exchange) {
        return exchange.startSeconds.mean + exchange.waitSeconds.mean;
    });
    return made;
}

// Collective over MPI_COMM_WORLD: all ranks have registered it in `announceReport`.
void printReportAtEnd() noexcept {
    if (inForkedChild())
        return;
    try {
        // At the start of MPI_Finalize on all ranks (announceReport), so collectives still work. Nothing may be
        // thrown there.
        const CommunicatorView world(MPI_COMM_WORLD);
        const Report made = report(world);
        if (world.rank() == 0)
            std::fputs(made.text().c_str(), stderr);
    } catch (const std::exception &error) {
        warn("there is no report (DNDS_REPORT): {}", error.what());
    }
}

} // namespace DNDS
