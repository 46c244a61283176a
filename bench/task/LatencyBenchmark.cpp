// Steps on meshes so small that exchanges decide.

#include "Benchmarks.hpp"
#include "MeshStep.hpp"
#include "Statistics.hpp"

#include <fmt/format.h>

#include <deque>
#include <utility>

namespace DNDS::Bench {
namespace {

constexpr int checkedSteps = 10;

struct Variant {
    std::string name;
    std::function<void()> step;
    const Task::Plan *plan = nullptr;
    double pulls = 2; ///< a step, without a plan
};

/// What a step takes without pulls, and of it the work beside each pull.
std::vector<Variant> workAlone(MeshStep &fields) {
    return {{"work alone", [&fields] { fields.advanceByHand(true, MeshStep::Pulls::None); }, nullptr, 0},
            {"work alone, inner gradients", [&fields] { fields.innerGradients(); }, nullptr, 0},
            {"work alone, inner fluxes", [&fields] { fields.innerFluxes(); }, nullptr, 0}};
}

/// All variants on fields of their own.
class Variants {
  public:
    explicit Variants(const SquareMesh &square) : square_(square) {
        using Recompute = Task::CompileOptions::Recompute;
        byHand("by hand", true, MeshStep::Pulls::Persistent);
        byHand("by hand, pulls first", false, MeshStep::Pulls::Persistent);
        byHand("MPI by hand", true, MeshStep::Pulls::Mpi);
        byHand("MPI by hand, pulls first", false, MeshStep::Pulls::Mpi);
        plan("plan", {.recompute = Recompute::Never});
        plan("plan, no overlap", {.recompute = Recompute::Never, .overlap = false});
        plan("plan, no drops", {.recompute = Recompute::Never, .fuse = true, .dropPulls = false});
        plan("plan, no drops, no fusing", {.recompute = Recompute::Never, .fuse = false, .dropPulls = false});
        plan("plan, recomputing", {.recompute = Recompute::WherePossible});
    }
    std::vector<Variant> &all() { return variants_; }

    /// Takes some steps with each from the same start. Collective.
    void check(CommunicatorView comm) {
        std::vector<real> first;
        for (std::size_t k = 0; k < variants_.size(); k++) {
            fields_[k].reset();
            for (int step = 0; step < checkedSteps; step++)
                variants_[k].step();
            const std::vector<real> state = fields_[k].state();
            if (k == 0)
                first = state;
            const int wrong = comm.allReduce(state == first ? 0 : 1, MPI_SUM);
            DNDS_CHECK(wrong == 0, DataError, "'{}' gives other bits than '{}' on {} ranks", variants_[k].name,
                       variants_[0].name, wrong);
        }
    }

  private:
    void byHand(const char *name, bool overlap, MeshStep::Pulls by) {
        MeshStep &fields = fields_.emplace_back(square_);
        variants_.push_back({name, [&fields, overlap, by] { fields.advanceByHand(overlap, by); }, nullptr});
    }
    void plan(const char *name, const Task::CompileOptions &options) {
        MeshStep &fields = fields_.emplace_back(square_);
        Task::Plan &plan = plans_.emplace_back(fields.compile(Executor::host(), options));
        variants_.push_back({name, [&plan] { plan.run(); }, &plan});
    }

    const SquareMesh &square_;
    std::deque<MeshStep> fields_;
    std::deque<Task::Plan> plans_;
    std::vector<Variant> variants_;
};

void measure(const Setting &setting, index cells, Table &table) {
    const SquareMesh square(setting.comm, cells * setting.comm.size());
    Variants variants(square);
    variants.check(setting.comm);
    MeshStep idle(square);
    std::vector<Variant> ways = variants.all();
    for (Variant &part : workAlone(idle))
        ways.push_back(std::move(part));
    std::vector<Contestant> all;
    for (const Variant &way : ways)
        all.push_back({way.name,
                       {},
                       [&way, &setting] {
                           for (int step = 0; step < setting.steps; step++)
                               way.step();
                       },
                       {}});
    const auto blocks = interleave(setting.comm, setting.sync, all, setting.common.plan);
    const index ghosts = setting.comm.allReduce(square.mesh.cells.pattern->sonSize(), MPI_MAX);
    double byHand = NotMeasured;
    for (std::size_t k = 0; k < all.size(); k++) {
        const auto [us, least] = medianAndLeast(blocks[k], setting.steps);
        if (k == 0)
            byHand = us;
        const Task::Plan *plan = ways[k].plan;
        const double pulls = plan == nullptr ? ways[k].pulls
                                             : static_cast<double>(plan->statistics().transfers) /
                                                   static_cast<double>(plan->statistics().runs);
        table.add({all[k].name, fmt::to_string(cells), numberOrDash(pulls), numberOrDash(us), numberOrDash(least),
                   numberOrDash(us / byHand)});
        setting.report.add({{"benchmark", "latency"},
                            {"method", all[k].name},
                            {"ranks", setting.comm.size()},
                            {"cells_per_rank", cells},
                            {"ghosts", ghosts},
                            {"pulls", numberOrNull(pulls)},
                            {"us_per_step", numberOrNull(us)},
                            {"least_us_per_step", numberOrNull(least)},
                            {"ratio_to_by_hand", numberOrNull(us / byHand)}});
    }
}

} // namespace

void benchmarkLatency(const Setting &setting) {
    Table table({"method", "cells a rank", "pulls a step", "us a step", "least", "of by hand"});
    for (const index cells : setting.rankCells)
        measure(setting, cells, table);
    say(setting.comm, fmt::format("{} ranks, two layers of ghosts\n{}", setting.comm.size(), table.text()));
}

} // namespace DNDS::Bench
