// What does an iteration of a Krylov method cost, and what do exact sums add? See README.md.

#include "Options.hpp"
#include "Report.hpp"
#include "RunBenchmark.hpp"
#include "Turns.hpp"

#include "DNDS/Linear/BlockJacobi.hpp"
#include "DNDS/Linear/Krylov.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace DNDS::Bench {
namespace {

struct Choice {
    index rows = 200000; ///< total of all ranks, about
    index width = 400;
    int iterations = 60;
    int restart = 30;
    int repetitions = 9;
};

/// Diffusion on a grid of points, five to a row of the matrix, in strips of grid lines; and wind, if it is not 0.
class Problem {
  public:
    Problem(const Choice &choice, CommunicatorView comm) : choice_(choice) {
        const index width = choice.width;
        const index lines = choice.rows / width;
        const index from = lines * comm.rank() / comm.size();
        const index own = (lines * (comm.rank() + 1) / comm.size() - from) * width;
        const index first = from * width;
        const auto neighboursOf = [=](index point) {
            std::vector<index> result;
            for (const auto &[step, there] : {std::pair{index{-1}, point % width > 0},
                                              {index{1}, point % width < width - 1},
                                              {-width, point >= width},
                                              {width, point + width < lines * width}})
                if (there)
                    result.push_back(point + step);
            return result;
        };
        right_.initPair("right-hand side", comm);
        right_.father->resize(own);
        right_.transAttach();
        right_.trans.createFatherGlobalMapping();
        std::vector<index> ghosts;
        for (index row = first; row < first + own; ++row)
            for (const index other : neighboursOf(row))
                if (other < first || other >= first + own)
                    ghosts.push_back(other);
        right_.trans.createGhostMapping(ghosts);
        right_.trans.createMPITypes();
        MatrixPattern::Neighbours lists("neighbours", comm);
        lists.resize(own, [&](index row) { return static_cast<rowsize>(neighboursOf(first + row).size()); });
        for (index row = 0; row < own; ++row) {
            const std::vector<index> others = neighboursOf(first + row);
            for (std::size_t k = 0; k < others.size(); ++k)
                lists[row][static_cast<rowsize>(k)] =
                    static_cast<LocalIndex>(*right_.trans.ghostMapping()->toLocal(others[k]));
            (*right_.father)(row, 0) = static_cast<real>((first + row) % 97) / 97;
        }
        matrix_ =
            std::make_unique<SparseMatrix<>>("diffusion", MatrixPattern::create("grid", right_.trans.pattern(), lists));
        for (index row = 0; row < own; ++row)
            for (const LocalIndex column : matrix_->pattern().columns(row))
                matrix_->add(row, column, column == row ? 4.01 : -1.0);
        x_.clone(right_);
        jacobi_ = std::make_unique<BlockJacobi<1>>(*matrix_);
    }

    void iterate(const std::string &method, bool exact) {
        const KrylovOptions options{
            .relative = 0, .maxIterations = choice_.iterations, .restart = choice_.restart, .exactSums = exact};
        const auto multiply = [this](ArrayDof<1, 1> &d, ArrayDof<1, 1> &y) { matrix_->multiply(d, y); };
        x_.setConstant(0);
        const KrylovResult done = method == "cg"         ? conjugateGradients(multiply, right_, x_, *jacobi_, options)
                                  : method == "bicgstab" ? biCgStab(multiply, right_, x_, *jacobi_, options)
                                                         : gmres(multiply, right_, x_, *jacobi_, options);
        DNDS_CHECK(done.iterations == choice_.iterations, StateError, "{} ended early: {}", method, done.text());
    }

  private:
    const Choice &choice_;
    ArrayDof<1, 1> right_;
    ArrayDof<1, 1> x_;
    std::unique_ptr<SparseMatrix<>> matrix_;
    std::unique_ptr<BlockJacobi<1>> jacobi_;
};

int run(int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Iterations of Krylov methods, with exact sums and without", "bench_linear");
    Choice choice;
    CommonOptions common;
    common.addTo(app);
    app.add_option("--rows", choice.rows, "of the matrix, on all ranks")->capture_default_str();
    app.add_option("--iterations", choice.iterations, "of one solve")->capture_default_str();
    app.add_option("--restart", choice.restart, "of GMRES")->capture_default_str();
    app.add_option("--repeats", choice.repetitions, "solves by each method")->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return *code;
    if (common.quick) {
        choice.rows = std::min<index>(choice.rows, 10000);
        choice.repetitions = 3;
    }
    if (common.pin)
        pinToCore(comm);
    Problem problem(choice, comm);
    const std::vector<std::string> methods{"cg", "bicgstab", "gmres"};
    std::vector<Way> ways;
    for (const std::string &method : methods)
        for (const bool exact : {true, false})
            ways.push_back({method, [&problem, method, exact] { problem.iterate(method, exact); }});
    const std::vector<TurnTimes> times = takeTurns(comm, ways, choice.repetitions);

    Report records;
    Table table({"method", "exact sums: us", "us", "ratio"});
    for (std::size_t k = 0; k < methods.size(); ++k) {
        const double exact = 1e6 * times[2 * k].medianWall() / choice.iterations;
        const double plain = 1e6 * times[2 * k + 1].medianWall() / choice.iterations;
        table.add({methods[k], numberOrDash(exact, 4), numberOrDash(plain, 4), fmt::format("{:.2f}", exact / plain)});
        records.add({{"bench", "linear"},
                     {"ranks", comm.size()},
                     {"method", methods[k]},
                     {"rows", choice.rows},
                     {"exact_microseconds", exact},
                     {"microseconds", plain},
                     {"ratio_to_plain_sums", exact / plain}});
    }
    say(comm, fmt::format("{} rows on {} ranks, {} iterations, the median of {} solves, an iteration\n{}", choice.rows,
                          comm.size(), choice.iterations, choice.repetitions, table.text()));
    if (comm.rank() == 0 && !common.json.empty())
        records.write(common.json);
    return 0;
}

} // namespace
} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_linear", argc, argv, DNDS::Bench::run); }
