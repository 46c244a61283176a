#include "DNDS/Task/Graph.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Task/GraphWorld.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

constexpr rowsize width = 2;
using Pair = ArrayPair<ParArray<real, width>>;
using Local = ParArray<real, width>;

/// The reads of one array by one row of a random task.
struct Look {
    GraphWorld::Adjacency::ConstView adjacency;
    bool through = false;
};

/// Depends on the order in which rows are read.
DNDS_HOST_DEVICE inline real mix(real sum, real factor, real value) { return 0.7 * sum + factor * value; }

/// A multiple of 2^-20 below 16: sums of such numbers are the same in all orders.
DNDS_HOST_DEVICE inline real exact(real value) { return std::floor(std::fmod(value, 16) * 1048576) / 1048576; }

struct RandomKernel {
    Look looks[2];
    bool reads = false; ///< the row that it writes

    template <class A, class B, class Out>
    DNDS_HOST_DEVICE void operator()(index row, const A &a, const B &b, const Out &out) const {
        for (rowsize k = 0; k < width; ++k) {
            real sum = reads ? out(row, k) : 0.125;
            sum = look(looks[0], sum, 0.31, row, k, a);
            sum = look(looks[1], sum, 0.17, row, k, b);
            out(row, k) = exact(sum);
        }
    }
    template <class View>
    DNDS_HOST_DEVICE static real look(const Look &how, real sum, real factor, index row, rowsize k, const View &view) {
        if (!how.through)
            return mix(sum, factor, view(row, k));
        for (const LocalIndex other : how.adjacency[row])
            if (other >= 0)
                sum = mix(sum, factor, view(other, k));
        return sum;
    }
};

/// Adds whole numbers, so that all orders of adding give the same.
struct AddingKernel {
    Look target;
    template <class A, class Sums>
    DNDS_HOST_DEVICE void operator()(index row, const A &a, const Sums &sums) const {
        for (rowsize k = 0; k < width; ++k) {
            const real value = static_cast<real>(static_cast<int>(100 * a(row, k)) % 7);
            for (const LocalIndex other : target.adjacency[row])
                if (other >= 0)
                    sums.add(other, k, value);
        }
    }
};

/// An array on this rank, and the same of all ranks.
struct Field {
    bool ofCells = true;
    std::unique_ptr<Pair> pair;
    std::unique_ptr<Local> local;
    std::vector<real> all;

    real *row(index global) { return all.data() + global * width; }
};

/// A task as data: run by the oracle and declared to the graph.
struct Step {
    enum { Loop, Adding, Swap } kind = Loop;
    bool overCells = true;
    std::size_t out = 0;
    std::array<std::size_t, 2> in{};
    bool reads = false, someRows = false, recompute = false;
    unsigned salt = 0;
};

class RandomGraphs {
  public:
    RandomGraphs(CommunicatorView comm, unsigned seed, const Executor &executor)
        : random_(seed), world_(comm, seed, 40 + static_cast<index>(seed % 60), 1 + static_cast<int>(seed % 3)),
          executor_(executor) {
        if (executor.onDevice())
            for (GraphWorld::Adjacency *adjacency : {&world_.cellCells, &world_.cellFaces, &world_.faceCells})
                adjacency->toDevice();
        for (int k = 0; k < 8; ++k)
            makeField(k % 2 == 0, k >= 6);
    }

    using Program = std::vector<Step>;

    /// Without `local`, all arrays have ghosts.
    Program makeProgram(bool local = true) {
        Program program;
        const unsigned count = 2 + draw(7);
        while (program.size() < count) {
            const Step step = makeStep();
            if (local || (step.out < 6 && step.in[0] < 6 && step.in[1] < 6))
                program.push_back(step);
        }
        return program;
    }
    Plan compile(const Program &program, const CompileOptions &options) {
        Graph graph("random", world_.comm);
        int number = 0;
        for (const Step &step : program)
            declare(graph, step, number++);
        return graph.compile(executor_, options);
    }
    /// A call after each task reads all of what it wrote, ghosts included; `failing` throws on rank `failingRank`. All
    /// arrays have ghosts.
    Plan compileLooking(const Program &program, const CompileOptions &options) {
        Graph graph("looking", world_.comm);
        seen_.resize(program.size());
        for (std::size_t k = 0; k < program.size(); ++k) {
            declare(graph, program[k], static_cast<int>(k));
            graph.call(fmt::format("look {}", k)).reads(*fields_[program[k].out].pair).run([this, k](const auto &rows) {
                if (static_cast<int>(k) == failing && world_.comm.rank() == failingRank)
                    throw std::runtime_error("injected");
                seen_[k].clear();
                for (index row = 0; row < rows.size(); ++row)
                    seen_[k].push_back(rows(row, width - 1));
            });
        }
        return graph.compile(executor_, options);
    }
    void compareSeen(const Program &program, const std::string &what) {
        for (std::size_t k = 0; k < program.size(); ++k) {
            runOracle(program[k]);
            Field &field = fields_[program[k].out];
            const WorldRows &rows = rowsOf(field);
            ASSERT_EQ(seen_[k].size(), toSize(rows.size()));
            for (index row = 0; row < rows.size(); ++row)
                ASSERT_EQ(seen_[k][toSize(row)], field.row(rows.global[toSize(row)])[width - 1])
                    << what << ": after task " << k << ", row " << row << " of " << rows.owned << " + " << rows.ghosts;
        }
    }
    /// Sets all arrays to what the oracle has.
    void setAnew() {
        for (Field &field : fields_)
            if (field.pair)
                for (index row = 0; row < rowsOf(field).owned; ++row)
                    for (rowsize k = 0; k < width; ++k)
                        (*field.pair->father)(row, k) = field.row(rowsOf(field).global[toSize(row)])[k];
    }
    int failing = -1, failingRank = 0;
    /// All ranks write some rows of a field outside of plans, or only look at it.
    void disturb() {
        Field &field = fields_[draw(6)];
        const bool writes = draw(2) == 0;
        field.pair->toHost();
        const real value = static_cast<real>(draw(100)) / 64;
        if (!writes) {
            (void)std::as_const(*field.pair).view();
            return;
        }
        const WorldRows &rows = rowsOf(field);
        const auto view = field.pair->father->view();
        for (index row = 0; row < rows.owned; row += 3)
            view(row, 0) = value + static_cast<real>(rows.global[toSize(row)]);
        for (int rank = 0; rank < world_.comm.size(); ++rank) { // rows of all ranks in the same way
            const std::vector<index> firsts = world_.comm.allGather(rows.owned > 0 ? rows.global[0] : index{0});
            const std::vector<index> counts = world_.comm.allGather(rows.owned);
            for (index row = 0; row < counts[toSize(rank)]; row += 3)
                field.row(firsts[toSize(rank)] + row)[0] = value + static_cast<real>(firsts[toSize(rank)] + row);
        }
    }
    void runOracle(const Program &program) {
        for (const Step &step : program)
            runOracle(step);
    }
    void compare(const std::string &what) {
        for (std::size_t f = 0; f < fields_.size(); ++f) {
            Field &field = fields_[f];
            const WorldRows &rows = rowsOf(field);
            field.pair ? field.pair->toHost() : field.local->toHost();
            const bool ghosts = field.pair && field.pair->son->pulledFrom() == field.pair->father->version();
            for (index row = 0; row < (ghosts ? rows.size() : rows.owned); ++row)
                for (rowsize k = 0; k < width; ++k) {
                    const real found =
                        field.pair ? std::as_const(*field.pair)(row, k) : std::as_const(*field.local)(row, k);
                    const real expected = field.row(rows.global[toSize(row)])[k];
                    ASSERT_EQ(std::memcmp(&found, &expected, sizeof(real)), 0)
                        << what << ": field " << f << ", row " << row << " of " << rows.owned << " + " << rows.ghosts
                        << ", " << found << " instead of " << expected;
                }
        }
    }

  private:
    unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
    WorldRows &rowsOf(const Field &field) { return field.ofCells ? world_.cells : world_.faces; }
    std::size_t countOf(bool cells) const { return cells ? world_.allCellCells.size() : world_.allFaceCells.size(); }
    void makeField(bool ofCells, bool local) {
        Field &field = fields_.emplace_back();
        field.ofCells = ofCells;
        const WorldRows &rows = rowsOf(field);
        const std::string name = fmt::format("field {}", fields_.size() - 1);
        field.all.resize(countOf(ofCells) * width);
        for (real &value : field.all)
            value = static_cast<real>(draw(1000)) / 512;
        if (local) {
            field.local = std::make_unique<Local>(name, world_.comm);
            field.local->resize(rows.size());
        } else {
            field.pair = std::make_unique<Pair>();
            field.pair->initPair(name, world_.comm);
            field.pair->father->resize(rows.owned);
            field.pair->transAttach();
            field.pair->trans.usePattern(rows.pattern);
            field.pair->trans.createMPITypes();
        }
        for (index row = 0; row < (local ? rows.size() : rows.owned); ++row)
            for (rowsize k = 0; k < width; ++k)
                (local ? (*field.local)(row, k) : (*field.pair->father)(row, k)) =
                    field.row(rows.global[toSize(row)])[k];
    }

    std::size_t anyField(bool ofCells, unsigned below = 8) {
        std::size_t field = 0;
        do
            field = draw(below);
        while (fields_[field].ofCells != ofCells);
        return field;
    }
    Step makeStep() {
        Step step;
        step.overCells = draw(2) == 0;
        step.salt = draw(1U << 30U);
        step.out = anyField(step.overCells);
        step.reads = draw(3) == 0;
        step.someRows = draw(6) == 0;
        step.recompute = draw(2) == 0;
        for (std::size_t &in : step.in)
            do
                in = draw(8);
            while (in == step.out);
        const unsigned kind = draw(8);
        if (kind == 0) {
            step.kind = Step::Swap;
            step.out = anyField(true, 6);
            do
                step.in[0] = anyField(true, 6);
            while (step.in[0] == step.out);
        } else if (kind == 1) {
            step.kind = Step::Adding;
            step.overCells = false;
            step.out = anyField(true, 6);
            step.in[0] = anyField(false);
        }
        return step;
    }
    static bool takes(const Step &step, index global) { return !step.someRows || (global + step.salt) % 3 == 0; }

    const GraphWorld::Adjacency &adjacency(bool from, bool to) const {
        return from ? (to ? world_.cellCells : world_.cellFaces) : world_.faceCells;
    }
    GraphWorld::Adjacency::ConstView viewOf(const GraphWorld::Adjacency &rows) const {
        return executor_.onDevice() ? rows.deviceView<DeviceBackend::CUDA>() : rows.view();
    }
    Look lookAt(const Step &step, std::size_t in, bool odd) const {
        const bool cells = fields_[in].ofCells;
        const bool through = cells != step.overCells || (cells && odd);
        return {viewOf(adjacency(step.overCells, cells)), through};
    }

    template <class TArray>
    RowSelection<TArray> see(TArray &array, const Step &step, std::size_t in, bool odd) {
        if (lookAt(step, in, odd).through)
            return through(array, adjacency(step.overCells, fields_[in].ofCells));
        return {&array};
    }
    void declare(Graph &graph, const Step &step, int number) {
        const std::string name = fmt::format("task {}", number);
        if (step.kind == Step::Swap)
            return graph.swap(*fields_[step.out].pair, *fields_[step.in[0]].pair);
        WorldRows &rows = step.overCells ? world_.cells : world_.faces;
        RowSpace space(step.overCells ? "cells" : "faces", rows);
        Region region = space.rows();
        if (step.someRows) {
            std::vector<index> some;
            for (index row = 0; row < rows.owned; ++row)
                if (takes(step, rows.global[toSize(row)]))
                    some.push_back(row);
            region = space.define("some", some);
        }
        auto builder = graph.task(name, region);
        if (step.recompute)
            builder = std::move(builder).recomputeGhosts();
        if (step.kind == Step::Adding) {
            const auto finish = [&](auto &in) {
                std::move(builder)
                    .reads(in)
                    .adds(through(*fields_[step.out].pair, world_.faceCells))
                    .run(AddingKernel{{viewOf(world_.faceCells), true}});
            };
            return fields_[step.in[0]].pair ? finish(*fields_[step.in[0]].pair) : finish(*fields_[step.in[0]].local);
        }
        const auto withInputs = [&](auto &a, auto &b) {
            auto inputs = std::move(builder).reads(see(a, step, step.in[0], (step.salt & 1U) != 0),
                                                   see(b, step, step.in[1], (step.salt & 2U) != 0));
            const RandomKernel kernel{
                {lookAt(step, step.in[0], (step.salt & 1U) != 0), lookAt(step, step.in[1], (step.salt & 2U) != 0)},
                step.reads};
            const auto finish = [&](auto &out) {
                // a subset that is only written is one whose other rows are left alone
                if (step.reads)
                    std::move(inputs).readsWrites(out).run(kernel);
                else
                    std::move(inputs).writes(out).run(kernel);
            };
            fields_[step.out].pair ? finish(*fields_[step.out].pair) : finish(*fields_[step.out].local);
        };
        const auto second = [&](auto &a) {
            fields_[step.in[1]].pair ? withInputs(a, *fields_[step.in[1]].pair)
                                     : withInputs(a, *fields_[step.in[1]].local);
        };
        fields_[step.in[0]].pair ? second(*fields_[step.in[0]].pair) : second(*fields_[step.in[0]].local);
    }

    void runOracle(const Step &step) {
        Field &out = fields_[step.out];
        if (step.kind == Step::Swap)
            return out.all.swap(fields_[step.in[0]].all);
        for (index row = 0; row < static_cast<index>(countOf(step.overCells)); ++row) {
            if (!takes(step, row))
                continue;
            for (rowsize k = 0; k < width; ++k) {
                if (step.kind == Step::Adding) {
                    const real value = static_cast<real>(static_cast<int>(100 * fields_[step.in[0]].row(row)[k]) % 7);
                    for (const index cell : world_.allFaceCells[toSize(row)])
                        if (cell >= 0)
                            out.row(cell)[k] += value;
                    continue;
                }
                real sum = step.reads ? out.row(row)[k] : 0.125;
                for (const std::size_t i : {0U, 1U}) {
                    Field &in = fields_[step.in[i]];
                    const real factor = i == 0 ? 0.31 : 0.17;
                    const bool through = lookAt(step, step.in[i], (step.salt >> i & 1U) != 0).through;
                    if (!through) {
                        sum = mix(sum, factor, in.row(row)[k]);
                        continue;
                    }
                    const GraphWorld::Lists &lists = !step.overCells ? world_.allFaceCells
                                                     : in.ofCells    ? world_.allCellCells
                                                                     : world_.allCellFaces;
                    for (const index other : lists[toSize(row)])
                        if (other >= 0)
                            sum = mix(sum, factor, in.row(other)[k]);
                }
                out.row(row)[k] = exact(sum);
            }
        }
    }

    std::mt19937 random_; ///< the same on all ranks
    GraphWorld world_;
    Executor executor_;
    std::vector<Field> fields_;
    std::vector<std::vector<real>> seen_; ///< [steps] what calls have read
};

CompileOptions optionsOf(unsigned seed) {
    CompileOptions options;
    options.recompute = std::array{CompileOptions::Recompute::AsDeclared, CompileOptions::Recompute::Never,
                                   CompileOptions::Recompute::WherePossible}[seed % 3];
    options.overlap = seed % 5 != 0;
    options.fuse = seed % 7 != 0;
    options.dropPulls = seed % 4 != 0;
    options.graphs = seed % 6 != 0;
    options.rowsPerChunk = std::array{0, 1, 7, 1000}[seed % 4];
    return options;
}

/// Some graphs read rows of an array without ghosts that no rank with one layer of cells can compute: all ranks are
/// told.
bool compiles(const std::function<void()> &compile) {
    try {
        compile();
        return true;
    } catch (const ArgumentError &error) {
        EXPECT_NE(error.message().find("are not on this rank"), std::string::npos) << error.what();
        return false;
    }
}

void compareWithOracle(const Executor &executor) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    int compiled = 0;
    for (unsigned seed = 1; seed <= 120; seed += executor.onDevice() ? 3U : 1U) {
        RandomGraphs graphs(comm, seed, executor);
        const RandomGraphs::Program program = graphs.makeProgram();
        std::optional<Plan> plan;
        if (!compiles([&] { plan.emplace(graphs.compile(program, optionsOf(seed))); }))
            continue;
        ++compiled;
        for (int run = 0; run < 4; ++run) {
            plan->run();
            graphs.runOracle(program);
            graphs.compare(fmt::format("seed {}, run {}\n{}", seed, run, plan->describe()));
            if (testing::Test::HasFatalFailure())
                return;
            graphs.disturb();
        }
    }
    EXPECT_GT(compiled, executor.onDevice() ? 20 : 60);
}

void takeTurns(const Executor &executor) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (unsigned seed = 1000; seed < 1030; seed += executor.onDevice() ? 3U : 1U) {
        RandomGraphs graphs(comm, seed, executor);
        std::vector<Plan> plans;
        std::vector<RandomGraphs::Program> programs;
        for (unsigned k = 0; k < 3; ++k) {
            const RandomGraphs::Program program = graphs.makeProgram(false);
            if (compiles([&] { plans.push_back(graphs.compile(program, optionsOf(seed + k))); }))
                programs.push_back(program);
        }
        for (std::size_t run = 0; run < 8 && !plans.empty(); ++run) {
            const std::size_t which = (run * run + run / 3) % plans.size();
            plans[which].run();
            graphs.runOracle(programs[which]);
            graphs.compare(fmt::format("seed {}, run {} of plan {}\n{}", seed, run, which, plans[which].describe()));
            if (testing::Test::HasFatalFailure())
                return;
            if (run % 3 == 2)
                graphs.disturb();
        }
    }
}

/// With several transports; a call throws on some rank, then all continue.
void lookAndFail(const Executor &executor) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (unsigned seed = 3000; seed<3024; seed += executor.threads()> 1 ? 3U : 1U) {
        RandomGraphs graphs(comm, seed, executor);
        const RandomGraphs::Program program = graphs.makeProgram(false);
        CompileOptions options = optionsOf(seed);
        options.exchange.transport =
            std::array{TransportKind::Auto, TransportKind::Datatype, TransportKind::Packed}[seed / 2 % 3];
        std::optional<Plan> plan;
        if (!compiles([&] { plan.emplace(graphs.compileLooking(program, options)); }))
            continue;
        for (unsigned run = 0; run < 4; ++run) {
            if (run % 2 == 1) {
                comm.barrier(); // all are through with the run before
                graphs.failing = static_cast<int>((seed * 7 + run) % program.size());
                graphs.failingRank = static_cast<int>((seed / 3 + run) % static_cast<unsigned>(comm.size()));
                bool threw = false;
                try {
                    plan->run();
                } catch (const Error &) { // its own, or of a peer
                    threw = true;
                }
                EXPECT_TRUE(threw || comm.rank() != graphs.failingRank);
                graphs.failing = -1;
                plan->recover();
                graphs.setAnew();
            }
            plan->run();
            const std::string what = fmt::format("seed {}, run {}\n{}", seed, run, plan->describe());
            graphs.compareSeen(program, what);
            graphs.compare(what);
            if (testing::Test::HasFatalFailure())
                return;
        }
    }
}

TEST(RandomGraphs, CallsReadAllAndRunsFailOverTransports) { lookAndFail(Executor::host()); }
TEST(RandomGraphsInThreads, CallsReadAllAndRunsFailOverTransports) { lookAndFail(Executor::hostThreads(2)); }

TEST(RandomGraphs, GiveTheBitsOfTasksRunOneAfterAnother) { compareWithOracle(Executor::host()); }
TEST(RandomGraphs, PlansOfTheSameArraysTakeTurns) { takeTurns(Executor::host()); }

TEST(RandomGraphsInThreads, GiveTheBitsOfTasksRunOneAfterAnother) { compareWithOracle(Executor::hostThreads(3)); }

TEST(RandomGraphsOnDevice, GiveTheBitsOfTasksRunOneAfterAnother) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    compareWithOracle(Executor::device(stream));
}
TEST(RandomGraphsOnDevice, PlansOfTheSameArraysTakeTurns) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    takeTurns(Executor::device(stream));
}

} // namespace
} // namespace DNDS::Task
