// What do ghosts of species cost that are present in a few blocks only? See README.md.

#include "Options.hpp"
#include "Report.hpp"
#include "RunBenchmark.hpp"
#include "Turns.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Sparse/SparseField.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace DNDS::Bench {
namespace {

struct Choice {
    index blocks = 16; ///< in each direction
    index cells = 16;  ///< cells of a block in each direction
    index ghosts = 1;
    int species = 8;
    std::vector<double> presence{1, 5, 20, 100}; ///< percent of blocks
    int repetitions = 9;
    int loops = 5; ///< exchanges in one turn
};

/// Common to all ways.
struct Setting {
    Choice choice;
    CommunicatorView comm;
    std::shared_ptr<const BlockGrid> grid;
    GhostWidths ghosts;

    Setting(const Choice &chosen, const CommunicatorView &on)
        : choice(chosen), comm(on), ghosts(GhostWidths::uniform(3, chosen.ghosts)) {
        const index side = choice.blocks * choice.cells;
        const IndexSpace space{"box", Box({0, 0, 0}, {side, side, side}), {true, true, true}};
        grid = BlockGrid::blocksOf(comm, space, {choice.cells, choice.cells, choice.cells});
    }
};

/// All species in all blocks, in one message a peer.
class Dense {
  public:
    explicit Dense(const Setting &setting) : pattern_(BlockPattern::make(setting.comm, setting.grid, setting.ghosts)) {
        for (int s = 0; s < setting.choice.species; ++s)
            fields_.push_back(std::make_unique<BlockField<real>>(fmt::format("dense{}", s), setting.comm, pattern_));
        for (const auto &field : fields_)
            group_.add(*field);
        group_.initPersistentPull();
    }
    void exchange() {
        group_.startPersistentPull();
        group_.waitPersistentPull();
    }
    double memory() const {
        return static_cast<double>(pattern_->rows()) * sizeof(real) * static_cast<double>(fields_.size());
    }

  private:
    std::shared_ptr<const BlockPattern> pattern_;
    std::vector<std::unique_ptr<BlockField<real>>> fields_;
    ExchangeGroup group_;
};

/// Species that are present in some blocks, drawn at random: above the threshold in the middle, below it at the rim, so
/// that rims are sent and nothing comes or goes.
class Sparse {
  public:
    Sparse(const Setting &setting, const std::shared_ptr<const SparsePattern> &pattern, double percent)
        : pattern_(pattern) {
        std::vector<SparseFieldCore *> cores;
        for (int s = 0; s < setting.choice.species; ++s) {
            fields_.push_back(std::make_unique<SparseField<real>>(
                fmt::format("sparse{}", s), pattern_,
                SparseFieldOptions{.allocationThreshold = 1e-6, .deallocationThreshold = 1e-7}));
            cores.push_back(fields_.back().get());
            fill(*fields_.back(), s, percent);
        }
        exchange_ = std::make_unique<SparseFields>(fmt::format("sparse {}", percent), cores);
    }
    void exchange() { exchange_->exchangeGhosts(); }
    SparseTraffic traffic() const { return exchange_->traffic(); }
    int present() const {
        int blocks = 0;
        for (const auto &field : fields_)
            blocks += static_cast<int>(field->allocatedBlocks().size());
        return blocks;
    }
    double memory() const {
        double bytes = static_cast<double>(exchange_->traffic().bufferBytes);
        for (const auto &field : fields_)
            bytes += static_cast<double>(field->memoryBytes());
        return bytes;
    }

  private:
    static void fill(SparseField<real> &field, int species, double percent) {
        for (int b = 0; b < field.blocks(); ++b) {
            ContentHash draw;
            draw.add(static_cast<std::uint64_t>(species));
            draw.add(static_cast<std::uint64_t>(field.block(b).block));
            if (static_cast<double>(draw.value() % 10000) >= percent * 100)
                continue;
            field.allocate(b);
            const auto v = field.view(b);
            for (index n = 0; n < v.size(); ++n)
                v(v.indexOf(n, 0), v.indexOf(n, 1), v.indexOf(n, 2)) = 5e-7;
            v(v.extent(0) / 2, v.extent(1) / 2, v.extent(2) / 2) = 1;
        }
    }

    std::shared_ptr<const SparsePattern> pattern_;
    std::vector<std::unique_ptr<SparseField<real>>> fields_;
    std::unique_ptr<SparseFields> exchange_;
};

/// Bytes that this rank sends to others when all blocks are there.
double denseBytes(const SparsePattern &pattern, const Choice &choice) {
    double cells = 0;
    const std::vector<BlockMemory> blocks(pattern.blocks().begin(), pattern.blocks().end());
    for (const BlockMemory &block : blocks)
        for (const GhostRegion &region : pattern.grid()->ghostRegions(block.block, pattern.ghosts()))
            if (pattern.localOf(region.source) < 0)
                cells += static_cast<double>(region.ghosts.size());
    return cells * sizeof(real) * choice.species; // received, which all ranks together also send
}

int run(int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Ghosts of sparse species on blocks, beside the dense exchange", "bench_sparse");
    Choice choice;
    CommonOptions common;
    common.addTo(app);
    app.add_option("--grid", choice.blocks, "blocks in each direction")->capture_default_str();
    app.add_option("--cells", choice.cells, "cells of a block in each direction")->capture_default_str();
    app.add_option("--ghosts", choice.ghosts, "layers of ghosts")->capture_default_str();
    app.add_option("--species", choice.species, "fields")->capture_default_str();
    app.add_option("--presence", choice.presence, "percent of blocks")->capture_default_str();
    app.add_option("--repeats", choice.repetitions, "turns of each way")->capture_default_str();
    app.add_option("--loops", choice.loops, "exchanges in one turn")->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return *code;
    if (common.quick) {
        choice.blocks = std::min<index>(choice.blocks, 6);
        choice.cells = std::min<index>(choice.cells, 8);
        choice.repetitions = 3;
    }
    if (common.pin)
        pinToCore(comm);
    const Setting setting(choice, comm);
    const auto pattern = SparsePattern::make(comm, setting.grid, setting.ghosts);
    Dense dense(setting);
    std::vector<std::unique_ptr<Sparse>> sparse;
    std::vector<Way> ways{{"dense", [&] {
                               for (int loop = 0; loop < choice.loops; ++loop)
                                   dense.exchange();
                           }}};
    for (const double percent : choice.presence) {
        sparse.push_back(std::make_unique<Sparse>(setting, pattern, percent));
        ways.push_back({fmt::format("{} %", percent), [&choice, way = sparse.back().get()] {
                            for (int loop = 0; loop < choice.loops; ++loop)
                                way->exchange();
                        }});
    }
    const std::vector<TurnTimes> times = takeTurns(comm, ways, choice.repetitions);

    const auto total = [&](double mine) { return comm.allReduce(mine, MPI_SUM); };
    const double bytes = total(denseBytes(*pattern, choice));
    const double memory = total(dense.memory());
    Report records;
    Table table({"present", "us", "of dense", "bytes", "of dense", "messages", "memory MB", "of dense"});
    table.add({"dense", numberOrDash(1e6 * times[0].medianWall() / choice.loops, 4), "1", numberOrDash(bytes, 4), "1",
               "", numberOrDash(memory / 1e6, 4), "1"});
    for (std::size_t k = 0; k < sparse.size(); ++k) {
        const SparseTraffic traffic = sparse[k]->traffic();
        const auto exchanges = static_cast<double>(traffic.exchanges);
        const double sent = total(static_cast<double>(traffic.bytes)) / exchanges;
        const double messages = total(static_cast<double>(traffic.messages)) / exchanges;
        const double kept = total(sparse[k]->memory());
        const double time = times[k + 1].medianWall();
        table.add({ways[k + 1].name, numberOrDash(1e6 * time / choice.loops, 4),
                   fmt::format("{:.3f}", time / times[0].medianWall()), numberOrDash(sent, 4),
                   bytes > 0 ? fmt::format("{:.3f}", sent / bytes) : "-", numberOrDash(messages, 4),
                   numberOrDash(kept / 1e6, 4), fmt::format("{:.3f}", kept / memory)});
        records.add({{"bench", "sparse"},
                     {"ranks", comm.size()},
                     {"presence", choice.presence[k]},
                     {"blocks", comm.allReduce(sparse[k]->present(), MPI_SUM)},
                     {"microseconds", 1e6 * time / choice.loops},
                     {"core_microseconds", 1e6 * times[k + 1].medianProcessor() / choice.loops},
                     {"dense_microseconds", 1e6 * times[0].medianWall() / choice.loops},
                     {"time_ratio", time / times[0].medianWall()},
                     {"bytes_ratio", bytes > 0 ? sent / bytes : 0.0},
                     {"memory_ratio", kept / memory},
                     {"messages", messages}});
    }
    say(comm,
        fmt::format("{} ranks, {}^3 blocks of {}^3 cells, {} species, {} ghosts, {} peers here\n{}", comm.size(),
                    choice.blocks, choice.cells, choice.species, choice.ghosts, pattern->peers().size(), table.text()));
    if (comm.rank() == 0 && !common.json.empty())
        records.write(common.json);
    return 0;
}

} // namespace
} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_sparse", argc, argv, DNDS::Bench::run); }
