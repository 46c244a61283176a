#include "DNDS/Exchange/Report.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Warning.hpp"
#include "DNDS/Exchange/ExchangeCounts.hpp"
#include "DNDS/Mpi/BroadcastList.hpp"
#include "DNDS/Mpi/ClockOffset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <iterator>
#include <mutex>
#include <numeric>
#include <set>

#include <sys/resource.h>

namespace DNDS {

namespace {

std::atomic<bool> &counting() {
    static std::atomic<bool> on = reportsAtEnd();
    return on;
}

/// What ranks tell each other about the exchanges of one name.
struct Told {
    std::int64_t commRanks;
    std::uint64_t made, runs, begun, peers, owned, ghosts, rowsSent, bytesSent;
    double startSeconds, waitSeconds, startsAt;
    std::array<PathShare, pathClasses> paths;
};

Told toldOf(const std::string &name, double clockOffset) {
    CountsOfProcess &process = CountsOfProcess::instance();
    const std::lock_guard lock(process.mutex);
    const auto &exchanges = process.exchanges;
    const auto found = exchanges.find(name);
    if (found == exchanges.end())
        return {};
    const ExchangeCounts &counts = *found->second;
    return {counts.ranks,        counts.made,        counts.runs,
            counts.begun,        counts.peers,       counts.owned,
            counts.ghosts,       counts.rowsSent,    counts.bytesSent,
            counts.startSeconds, counts.waitSeconds, counts.startsAt + clockOffset * static_cast<double>(counts.begun),
            counts.paths};
}

/// Of all ranks: those of rank 0 first, then what only others have.
std::vector<std::string> namesOnAllRanks(CommunicatorView comm) {
    std::vector<std::string> names;
    std::string others;
    CountsOfProcess &process = CountsOfProcess::instance();
    const auto &exchanges = process.exchanges;
    comm.guarded([&] {
        const std::lock_guard lock(process.mutex);
        if (comm.rank() == 0)
            for (const auto &exchange : exchanges)
                names.push_back(exchange.first);
    });
    broadcastStrings(comm, names);
    comm.guarded([&] {
        const std::lock_guard lock(process.mutex);
        for (const auto &exchange : exchanges)
            if (std::ranges::find(names, exchange.first) == names.end())
                others += exchange.first + '\0';
    });
    const std::vector<char> more = comm.allGatherV(std::span<const char>(others));
    comm.guarded([&] {
        std::set<std::string> sorted;
        for (auto begin = more.begin(); begin != more.end();) {
            const auto end = std::find(begin, more.end(), '\0');
            sorted.emplace(begin, end);
            begin = end + 1;
        }
        names.insert(names.end(), sorted.begin(), sorted.end());
    });
    return names;
}

/// Who starts last, and whether the others wait for that. Nobody where these are not the ranks of one communicator:
/// ranks of another one do not wait.
void findLatest(ExchangeReport &exchange, std::span<const Told> told, std::span<const int> ranks) {
    const auto count = static_cast<std::int64_t>(told.size());
    if (count < 2 || told.front().begun == 0 ||
        std::ranges::any_of(told, [&](const Told &t) { return t.begun != told.front().begun || t.commRanks != count; }))
        return;
    const auto runs = static_cast<double>(told.front().begun);
    std::vector<double> starts(told.size());
    std::ranges::transform(told, starts.begin(), [&](const Told &t) { return t.startsAt / runs; });
    const std::size_t last = static_cast<std::size_t>(std::ranges::max_element(starts) - starts.begin());
    const double others = std::accumulate(starts.begin(), starts.end(), -starts[last]);
    exchange.latest = ranks[last];
    exchange.late = starts[last] - others / static_cast<double>(starts.size() - 1);
    const double othersWait = (exchange.waitSeconds.mean * static_cast<double>(told.size()) - told[last].waitSeconds) /
                              static_cast<double>(told.size() - 1) / runs;
    constexpr double little = 5e-6;
    exchange.keepsOthersWaiting = othersWait > little && exchange.late > 0.5 * othersWait;
}

ExchangeReport summaryOf(const std::string &name, std::span<const Told> all) {
    ExchangeReport exchange;
    exchange.name = name;
    std::vector<Told> told;
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank].made > 0) {
            told.push_back(all[rank]);
            ranks.push_back(static_cast<int>(rank));
        }
    exchange.ranks = static_cast<int>(told.size());
    const auto spread = [&](auto member) {
        std::vector<double> values(told.size());
        std::ranges::transform(told, values.begin(), [&](const Told &t) { return static_cast<double>(t.*member); });
        return Spread::of(values, ranks);
    };
    exchange.peers = spread(&Told::peers);
    exchange.owned = spread(&Told::owned);
    exchange.ghosts = spread(&Told::ghosts);
    exchange.rowsSent = spread(&Told::rowsSent);
    exchange.bytesSent = spread(&Told::bytesSent);
    exchange.startSeconds = spread(&Told::startSeconds);
    exchange.waitSeconds = spread(&Told::waitSeconds);
    for (const Told &t : told) {
        exchange.runs = std::max(exchange.runs, t.runs);
        for (std::size_t c = 0; c < pathClasses; ++c) {
            exchange.paths[c].first += t.paths[c].peers;
            exchange.paths[c].second += t.paths[c].bytes;
        }
    }
    findLatest(exchange, told, ranks);
    return exchange;
}

std::array<double, 6> memoryOfProcess() {
    CountsOfProcess &process = CountsOfProcess::instance();
    const std::lock_guard lock(process.mutex);
    std::map<std::string, ExchangeCounts::Array> arrays;
    double lists = 0.0;
    double buffers = 0.0;
    for (const auto &[name, counts] : process.exchanges) {
        for (const auto &[array, bytes] : counts->arrays) {
            ExchangeCounts::Array &most = arrays[array];
            most.owned = std::max(most.owned, bytes.owned);
            most.ghosts = std::max(most.ghosts, bytes.ghosts);
        }
        lists += static_cast<double>(counts->listBytes);
        buffers += static_cast<double>(counts->bufferBytes);
    }
    double owned = 0.0;
    double ghosts = 0.0;
    for (const auto &[name, bytes] : arrays) {
        owned += static_cast<double>(bytes.owned);
        ghosts += static_cast<double>(bytes.ghosts);
    }
    ::rusage usage{};
    (void)::getrusage(RUSAGE_SELF, &usage);
    return {owned,
            ghosts,
            lists,
            buffers,
            static_cast<double>(process.arenaBytes),
            1024.0 * static_cast<double>(usage.ru_maxrss)};
}

std::string bytesText(double bytes) {
    static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    for (; bytes >= 1024.0 && unit + 1 < std::size(units); ++unit)
        bytes /= 1024.0;
    return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

void appendExchange(std::string &text, const ExchangeReport &exchange) {
    static constexpr std::array<const char *, pathClasses> ways{"own memory", "node-shared", "messages", "device",
                                                                "added transports"};
    const auto out = std::back_inserter(text);
    const auto line = [&](const char *what, const Spread &spread, auto format) {
        fmt::format_to(out, "    {:<22} {:>12} {:>12} {:>12}  {:>6}  {:>6.0f} %\n", what, format(spread.least),
                       format(spread.median), format(spread.most), spread.mostAt, 100.0 * spread.imbalance());
    };
    const auto count = [](double value) { return fmt::format("{:.0f}", value); };
    const auto seconds = [](double value) { return fmt::format("{:.3g} s", value); };
    fmt::format_to(out, "  {}: run {} times on {} rank{}\n", exchange.name, exchange.runs, exchange.ranks,
                   exchange.ranks == 1 ? "" : "s");
    line("peers", exchange.peers, count);
    line("owned rows", exchange.owned, count);
    line("ghosts", exchange.ghosts, count);
    line("rows sent a run", exchange.rowsSent, count);
    line("bytes sent a run", exchange.bytesSent, bytesText);
    line("in start", exchange.startSeconds, seconds);
    line("in wait", exchange.waitSeconds, seconds);
    for (std::size_t way = 0; way < pathClasses; ++way)
        if (const auto [peers, bytes] = exchange.paths[way]; peers > 0)
            fmt::format_to(out, "    by {}: {} peers, {} a run\n", ways[way], peers,
                           bytesText(static_cast<double>(bytes)));
    if (exchange.latest >= 0 && exchange.keepsOthersWaiting)
        fmt::format_to(out, "    rank {} keeps the others waiting: it starts {:.3g} us after them, on average\n",
                       exchange.latest, 1e6 * exchange.late);
}

} // namespace

Spread Spread::of(std::span<const double> values, std::span<const int> ranks) {
    if (values.empty())
        return {};
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    const std::size_t half = sorted.size() / 2;
    const auto most = static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
    return {sorted.front(), sorted.size() % 2 == 1 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]),
            sorted.back(), std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size()),
            ranks[most]};
}

const ExchangeReport *Report::find(std::string_view name) const noexcept {
    const auto found = std::ranges::find(exchanges, name, &ExchangeReport::name);
    return found == exchanges.end() ? nullptr : &*found;
}

std::string Report::text() const {
    static constexpr std::array<const char *, 6> kinds{"owned rows", "ghosts",          "lists of rows",
                                                       "buffers",    "shared by nodes", "process"};
    std::string text = fmt::format("DNDS: exchanges of {} rank{}\n", ranks, ranks == 1 ? "" : "s");
    if (exchanges.empty())
        return text + "  none were counted: set DNDS_REPORT=1, or call countExchanges before they are made\n";
    const auto heading = [&](const char *what) {
        text += fmt::format("  {:<24} {:>12} {:>12} {:>12}  {:>6}  {:>8}\n", what, "least", "median", "most", "rank",
                            "imbalance");
    };
    heading("");
    for (const ExchangeReport &exchange : exchanges)
        appendExchange(text, exchange);
    heading("memory of a rank");
    for (std::size_t k = 0; k < kinds.size(); ++k)
        text += fmt::format("    {:<22} {:>12} {:>12} {:>12}  {:>6}  {:>6.0f} %\n", kinds[k],
                            bytesText(memory[k].least), bytesText(memory[k].median), bytesText(memory[k].most),
                            memory[k].mostAt, 100.0 * memory[k].imbalance());
    return text;
}

void countExchanges(bool on) { counting().store(on, std::memory_order_relaxed); }

bool countsExchanges() { return counting().load(std::memory_order_relaxed); }

bool reportsAtEnd() {
    static const bool asked = readEnvironment().report;
    return asked;
}

Report report(CommunicatorView comm) {
    const std::vector<std::string> names = namesOnAllRanks(comm);
    const double offset = clockOffset(comm);
    Report made;
    made.ranks = comm.size();
    for (const std::string &name : names) {
        const Told mine = toldOf(name, offset);
        const std::vector<Told> all = comm.allGatherV(std::span(&mine, 1));
        comm.guarded([&] { made.exchanges.push_back(summaryOf(name, all)); });
    }
    std::array<double, 6> mine{};
    comm.guarded([&] { mine = memoryOfProcess(); });
    for (std::size_t k = 0; k < mine.size(); ++k) {
        const std::vector<double> all = comm.allGather(mine[k]);
        comm.guarded([&] {
            std::vector<int> ranks(all.size());
            std::iota(ranks.begin(), ranks.end(), 0);
            made.memory[k] = Spread::of(all, ranks);
        });
    }
    std::ranges::stable_sort(made.exchanges, std::greater{}, [](const ExchangeReport &exchange) {
        return exchange.startSeconds.mean + exchange.waitSeconds.mean;
    });
    return made;
}

void printReportAtEnd() noexcept {
    if (inForkedChild())
        return;
    try {
        const CommunicatorView world(MPI_COMM_WORLD);
        const Report made = report(world);
        if (world.rank() == 0)
            std::fputs(made.text().c_str(), stderr);
    } catch (const std::exception &error) {
        warn("there is no report (DNDS_REPORT): {}", error.what());
    }
}

} // namespace DNDS
