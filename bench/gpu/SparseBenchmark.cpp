// Exchanges of a sparse field on the device by each transport of its messages.

#include "Setting.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Sparse/SparseField.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

namespace DNDS::Bench {

namespace {

/// A field whose messages take one transport.
struct Way {
    std::string name;
    std::unique_ptr<SparseField<real>> field;
};

real contents(index i, index j, index k, rowsize c) { return static_cast<real>((i * 131 + j * 17 + k) * 8 + c); }

/// Fills the cells of all blocks, or counts wrong ghosts, on the host.
index fillOrCount(SparseField<real> &field, const Box &space, bool fill) {
    field.toHost();
    index wrong = 0;
    for (int b = 0; b < field.blocks(); ++b) {
        field.allocate(b);
        const auto u = field.view(b);
        const auto global = [&](index local, int d) {
            const std::size_t at = toSize(d);
            return (field.block(b).cells.lower[at] + local + space.upper[at]) % space.upper[at];
        };
        const auto isGhost = [&](int d, index local) { return local < 0 || local >= u.extent(d); };
        for (index i = -u.ghostsLow(0); i < u.extent(0) + u.ghostsHigh(0); ++i)
            for (index j = -u.ghostsLow(1); j < u.extent(1) + u.ghostsHigh(1); ++j)
                for (index k = -u.ghostsLow(2); k < u.extent(2) + u.ghostsHigh(2); ++k)
                    for (rowsize c = 0; c < u.components(); ++c) {
                        const real right = contents(global(i, 0), global(j, 1), global(k, 2), c);
                        if (fill)
                            u(i, j, k, c) = isGhost(0, i) || isGhost(1, j) || isGhost(2, k) ? -1 : right;
                        else
                            wrong += u(i, j, k, c) == right ? 0 : 1;
                    }
    }
    field.toDevice();
    return wrong;
}

/// Makes the field and its exchange; null, with the reason, where its transport is impossible.
std::unique_ptr<SparseField<real>> make(const std::shared_ptr<const SparsePattern> &pattern, const Box &space,
                                        rowsize components, const std::string &transport, std::string &reason) {
    auto field = std::make_unique<SparseField<real>>(
        "u", pattern, SparseFieldOptions{.components = components, .deallocationCount = 0}, real{-1});
    ::setenv("DNDS_TRANSPORT", transport.c_str(), 1);
    (void)field->exchange(); // chooses
    ::unsetenv("DNDS_TRANSPORT");
    fillOrCount(*field, space, true);
    if (field->exchange().describe().find("  " + transport + ' ') == std::string::npos) {
        reason = field->exchange().describe();
        return nullptr;
    }
    return field;
}

} // namespace

void benchmarkSparse(const Setting &setting) {
    const CommunicatorView comm = setting.comm;
    const index edge = setting.common.quick ? 8 : 32;
    const IndexSpace space{"box", Box({0, 0, 0}, {2 * edge, 2 * edge, 2 * edge * comm.size()}), {true, true, true}};
    setting.say(fmt::format("\nExchanges of a sparse field by {} ranks, 8 blocks of {}^3 cells a rank, all there\n",
                            comm.size(), edge));
    const auto grid = BlockGrid::blocksOf(comm, space, {edge, edge, edge});
    const auto pattern = SparsePattern::make(comm, grid, {2, 2, 2});
    Table table({"components", "transport", "us", "GB/s a rank", "to staged"});
    for (const rowsize components : {1, 5}) {
        std::vector<Way> ways;
        for (const std::string &transport : setting.transports) {
            std::string reason;
            if (auto field = make(pattern, space.cells, components, transport, reason))
                ways.push_back({transport, std::move(field)});
            else
                setting.say(fmt::format("{} is not used here:\n{}", transport, reason));
        }
        std::vector<Contestant> contestants;
        for (const Way &way : ways)
            contestants.push_back({way.name, {}, [&field = *way.field] { field.exchangeGhosts(); }, {}});
        const auto blocks = interleave(comm, setting.sync, contestants, setting.common.plan);
        std::map<std::string, double> times;
        for (std::size_t k = 0; k < ways.size(); ++k)
            times[ways[k].name] = medianOf(blocks[k]);
        const double staged = times.contains("staged") ? times["staged"] : NotMeasured;
        for (const Way &way : ways) {
            requireNone(comm, fillOrCount(*way.field, space.cells, false), way.name + " of a sparse field");
            const SparseTraffic traffic = way.field->exchange().traffic();
            const double bytes = static_cast<double>(traffic.bytes) / static_cast<double>(traffic.exchanges);
            const double time = times[way.name];
            setting.add({{"benchmark", "sparse"},
                         {"transport", way.name},
                         {"doubles_per_row", components},
                         {"cells", 8 * edge * edge * edge},
                         {"median_us", numberOrNull(time)},
                         {"gb_per_s", numberOrNull(bytes / time / 1e3)},
                         {"ratio_to_staged", numberOrNull(time / staged)}});
            table.add({fmt::to_string(components), way.name, numberOrDash(time), numberOrDash(bytes / time / 1e3),
                       numberOrDash(time / staged)});
        }
    }
    setting.say(table.text());
}

} // namespace DNDS::Bench
