// What do sums at nodes cost whose bits do not depend on the partition? See README.md.

#include "Options.hpp"
#include "Report.hpp"
#include "RunBenchmark.hpp"
#include "Turns.hpp"

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace DNDS::Bench {
namespace {

constexpr rowsize width = 5;

struct Choice {
    index cells = 30; ///< bricks in each direction, of six tetrahedra
    int repetitions = 7;
    int loops = 20; ///< in one turn
};

/// The nodes of a mesh as elements of type `T`, with a push that leaves ghosts zero.
template <class T>
struct Nodes {
    ArrayPair<ParArray<T, width>> sums;

    explicit Nodes(const Geom::UnstructuredMesh &mesh) {
        sums.initPair("sums", mesh.comm);
        sums.father->resize(mesh.nodes.owned);
        attachField(sums, mesh.nodes);
        sums.trans.initPersistentPush(PushOp::Sum, {.ghosts = GhostsAfterPush::Zero});
    }
    void push() {
        sums.trans.startPersistentPush();
        sums.trans.waitPersistentPush();
    }
};

class Assembly {
  public:
    Assembly(CommunicatorView comm, const Choice &choice)
        : mesh_(meshOf(comm, choice)), float64_(mesh_), accumulators_(mesh_), results_("results", comm) {
        cells_.initPair("cells", comm);
        cells_.father->resize(mesh_.cells.owned);
        for (index c = 0; c < mesh_.cells.owned; c++)
            for (rowsize k = 0; k < width; k++)
                (*cells_.father)(c, k) =
                    std::sin(static_cast<real>(mesh_.cells.fileNumbers[static_cast<std::size_t>(c)] * width + k));
        attachField(cells_, mesh_.cells);
        cells_.trans.initPersistentPull();
        results_.resize(mesh_.nodes.owned);
    }

    const Geom::UnstructuredMesh &mesh() const { return mesh_; }
    real result(index node, rowsize k) const { return results_(node, k); }

    void pushFloat64() {
        add(float64_);
        copyRows([](const real &sum) { return sum; }, float64_);
    }
    void pushAccumulators() {
        add(accumulators_);
        copyRows([](const ExactAccumulator &sum) { return sum.value(); }, accumulators_);
    }
    void gather() {
        pull();
        const auto cells = std::as_const(cells_).view();
        const auto nodeCells = std::as_const(mesh_.nodeCells).view();
        auto results = results_.view();
        for (index n = 0; n < mesh_.nodes.owned; n++) {
            std::array<real, width> sum{};
            for (const LocalIndex c : nodeCells[n])
                for (rowsize k = 0; k < width; k++)
                    sum[static_cast<std::size_t>(k)] += cells(c, k);
            std::ranges::copy(sum, results[n]);
        }
    }
    void pushFloat64Alone() { float64_.push(); }
    void pushAccumulatorsAlone() { accumulators_.push(); }
    void pull() {
        cells_.trans.startPersistentPull();
        cells_.trans.waitPersistentPull();
    }

  private:
    static Geom::UnstructuredMesh meshOf(CommunicatorView comm, const Choice &choice) {
        Geom::BoxMeshOptions box;
        box.cells = {choice.cells, choice.cells, choice.cells};
        return Geom::buildMesh(comm, Geom::makeBoxMesh(box, comm));
    }
    template <class T>
    void add(Nodes<T> &nodes) {
        const auto cells = std::as_const(cells_).view();
        const auto cellNodes = std::as_const(mesh_.cellNodes).view();
        auto sums = nodes.sums.view();
        auto father = nodes.sums.father->view();
        std::fill_n(father.data(), father.size() * width, T{}); // ghosts are zero already
        for (index c = 0; c < mesh_.cells.owned; c++)
            for (const LocalIndex n : cellNodes[c])
                for (rowsize k = 0; k < width; k++)
                    sums(n, k) += cells(c, k);
        nodes.push();
    }
    template <class Round, class T>
    void copyRows(const Round &round, const Nodes<T> &nodes) {
        const auto sums = std::as_const(*nodes.sums.father).view();
        auto results = results_.view();
        for (index n = 0; n < sums.size(); n++)
            for (rowsize k = 0; k < width; k++)
                results(n, k) = round(sums(n, k));
    }

    Geom::UnstructuredMesh mesh_;
    ArrayPair<ParArray<real, width>> cells_;
    Nodes<real> float64_;
    Nodes<ExactAccumulator> accumulators_;
    ParArray<real, width> results_;
};

struct Method {
    std::string name;
    std::string baseline;
    std::function<void()> run;
};

/// The largest difference of what the methods give, on all ranks.
real difference(CommunicatorView comm, Assembly &assembly) {
    std::vector<real> exact;
    const auto rows = [&](auto &&visit) {
        for (index n = 0; n < assembly.mesh().nodes.owned; n++)
            for (rowsize k = 0; k < width; k++)
                visit(assembly.result(n, k));
    };
    assembly.pushAccumulators();
    rows([&](real value) { exact.push_back(value); });
    real largest = 0;
    for (const bool gathered : {false, true}) {
        if (gathered)
            assembly.gather();
        else
            assembly.pushFloat64();
        std::size_t at = 0;
        rows([&](real value) { largest = std::max(largest, std::abs(value - exact[at++])); });
    }
    return comm.allReduce(largest, MPI_MAX);
}

int run(int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Sums at nodes: pushes of float64 and of accumulators, and gathered in the order of the file",
                 "bench_assembly");
    Choice choice;
    CommonOptions common;
    common.addTo(app);
    app.add_option("--cells", choice.cells, "bricks in each direction, of six tetrahedra")->capture_default_str();
    app.add_option("--repeats", choice.repetitions, "turns of each method")->capture_default_str();
    app.add_option("--loops", choice.loops, "repetitions in one turn")->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return *code;
    if (common.quick) {
        choice.cells = std::min<index>(choice.cells, 8);
        choice.repetitions = 2;
        choice.loops = 3;
    }
    if (common.pin)
        pinToCore(comm);
    Assembly assembly(comm, choice);
    const real off = difference(comm, assembly);
    DNDS_CHECK(off < 1e-12, StateError, "the methods' sums differ by {}", off);

    const std::vector<Method> methods{
        {"push float64", "push float64", [&] { assembly.pushFloat64(); }},
        {"push accumulators", "push float64", [&] { assembly.pushAccumulators(); }},
        {"gather", "push float64", [&] { assembly.gather(); }},
        {"push float64: exchange", "push float64: exchange", [&] { assembly.pushFloat64Alone(); }},
        {"push accumulators: exchange", "push float64: exchange", [&] { assembly.pushAccumulatorsAlone(); }},
        {"gather: exchange", "push float64: exchange", [&] { assembly.pull(); }}};
    std::vector<Way> ways;
    for (const Method &method : methods)
        ways.push_back({method.name, [&choice, &method] {
                            for (int loop = 0; loop < choice.loops; loop++)
                                method.run();
                        }});
    const std::vector<TurnTimes> times = takeTurns(comm, ways, choice.repetitions);

    const index nodes = comm.allReduce(assembly.mesh().nodes.owned, MPI_SUM);
    const index ghosts = comm.allReduce(assembly.mesh().nodes.ghosts, MPI_SUM);
    Report records;
    Table table({"method", "us", "of the baseline", "us of a core"});
    for (std::size_t k = 0; k < methods.size(); k++) {
        const double microseconds = 1e6 * times[k].medianWall() / choice.loops;
        const double core = 1e6 * times[k].medianProcessor() / choice.loops;
        double ratio = 1;
        for (std::size_t other = 0; other < methods.size(); other++)
            if (methods[other].name == methods[k].baseline)
                ratio = times[k].medianWall() / times[other].medianWall();
        table.add(
            {methods[k].name, numberOrDash(microseconds, 4), fmt::format("{:.2f}", ratio), numberOrDash(core, 4)});
        records.add({{"bench", "assembly"},
                     {"method", methods[k].name},
                     {"ranks", comm.size()},
                     {"nodes", nodes},
                     {"ghost_nodes", ghosts},
                     {"repetitions", choice.repetitions},
                     {"microseconds", microseconds},
                     {"core_microseconds", core},
                     {"ratio_to_baseline", ratio}});
    }
    say(comm, fmt::format("{} ranks, {} nodes and {} ghosts of nodes, {} numbers each, median of {}\n{}", comm.size(),
                          nodes, ghosts, width, choice.repetitions, table.text()));
    if (comm.rank() == 0 && !common.json.empty())
        records.write(common.json);
    return 0;
}

} // namespace
} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_assembly", argc, argv, DNDS::Bench::run); }
