#include "MoveMeasurement.hpp"

#include "DNDS/Blocks/BlockField.hpp"
#include "Statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace DNDS::Bench {

namespace {

constexpr index blocksAlong = 8;
constexpr real dearer = 1.67; ///< by so much that a tenth of the blocks changes sides on two ranks

/// A field that follows costs, which change each time.
class MovingField {
  public:
    MovingField(CommunicatorView comm, index edge, int components)
        : comm_(comm), grid_(BlockGrid::blocksOf(comm, cube(edge), {edge, edge, edge})),
          field_("u", comm, grid_, {.ghosts = {1, 1, 1}, .components = components}) {
        visit([](double &value, index i, index j, index k, rowsize c) { value = valueOf(i, j, k, c); });
        field_.exchangeGhosts();
    }
    void exchange() { field_.exchangeGhosts(); }
    /// Moves the field, its ghosts included, to where the next costs want it, and sets the next exchange up.
    void move() {
        const auto grid = nextGrid();
        field_ = field_.moved(grid);
        field_.initExchangeGhosts();
    }
    /// The same by a new field and a copy of all cells, whose ghosts need an exchange.
    void copy() {
        const auto grid = nextGrid();
        BlockField<double> next("u", comm_, grid, {.ghosts = {1, 1, 1}, .components = field_.components()});
        copyBlocks(field_, next);
        field_ = std::move(next);
        field_.exchangeGhosts();
    }
    void check() {
        comm_.guarded([&] {
            visit([](double &value, index i, index j, index k, rowsize c) {
                DNDS_CHECK(value == valueOf(i, j, k, c), DataError, "a moved block lost cell ({}, {}, {})", i, j, k);
            });
        });
    }
    /// Blocks that the last change of costs moved, of all ranks.
    int moved() const noexcept { return moved_; }

  private:
    static IndexSpace cube(index edge) {
        const index cells = blocksAlong * edge;
        return {"cube", Box({0, 0, 0}, {cells, cells, cells}), {true, true, true}};
    }
    static double valueOf(index i, index j, index k, rowsize c) {
        return static_cast<double>(((i * 1024 + j) * 1024 + k) * 8 + c);
    }
    std::shared_ptr<const BlockGrid> nextGrid() {
        hot_ = !hot_;
        std::vector<real> costs;
        for (const int block : grid_->blocksOfRank(comm_.rank()))
            costs.push_back(hot_ && 2 * block < static_cast<int>(grid_->blocks().size()) ? dearer : 1);
        auto next = grid_->rebalanced(comm_, costs, 0.01);
        moved_ = 0;
        for (std::size_t b = 0; b < next->blocks().size(); ++b)
            moved_ += next->blocks()[b].rank != grid_->blocks()[b].rank ? 1 : 0;
        grid_ = next;
        return next;
    }
    template <class F>
    void visit(F f) {
        for (int b = 0; b < field_.blocks(); ++b) {
            const auto u = field_.view(b);
            for (index i = 0; i < u.extent(0); ++i)
                for (index j = 0; j < u.extent(1); ++j)
                    for (index k = 0; k < u.extent(2); ++k)
                        for (rowsize c = 0; c < field_.components(); ++c)
                            f(u(i, j, k, c), u.global(i, 0), u.global(j, 1), u.global(k, 2), c);
        }
    }

    CommunicatorView comm_;
    std::shared_ptr<const BlockGrid> grid_;
    BlockField<double> field_;
    bool hot_ = false;
    int moved_ = 0;
};

} // namespace

void measureMoves(const Setting &setting, index edge, int components) {
    MovingField field(setting.comm, edge, components);
    const std::array<Contestant, 4> contestants{
        Contestant{"exchange of all ghosts", {}, [&] { field.exchange(); }, {}},
        Contestant{"rebalanced, moved, set up", {}, [&] { field.move(); }, {}},
        Contestant{"the same with an exchange",
                   {},
                   [&] {
                       field.move();
                       field.exchange();
                   },
                   {}},
        Contestant{"rebalanced, copied, exchange", {}, [&] { field.copy(); }, {}}};
    const auto blocks = interleave(setting.comm, setting.sync, contestants, setting.plan);
    field.check();
    for (const Regime regime : {Regime::Near, Regime::Far, Regime::SharedCore, Regime::Unknown}) {
        std::vector<Summary> times;
        for (const auto &own : blocks)
            times.push_back(summarize(own, regime));
        if (std::ranges::all_of(times, [](const Summary &one) { return one.blocks == 0; }))
            continue;
        const std::string name = fmt::format("{} of 512 blocks of {}^3 x {} move", field.moved(), edge, components);
        Table table({fmt::format("{}, {}", name, regimeName(regime)), "us", "min", "/exchange", "reps"});
        for (std::size_t k = 0; k < contestants.size(); ++k) {
            const double ratio = times[k].microseconds / times[0].microseconds;
            Record record;
            record["benchmark"] = "blocks";
            record["case"] = name;
            record["ranks"] = setting.comm.size();
            record["method"] = contestants[k].name;
            record["regime"] = std::string(regimeName(regime));
            record["median_us"] = numberOrNull(times[k].microseconds);
            record["ratio_to_exchange"] = numberOrNull(ratio);
            setting.report.add(std::move(record));
            table.add({"  " + contestants[k].name, numberOrDash(times[k].microseconds),
                       numberOrDash(quantile(times[k].times, 0)), numberOrDash(ratio),
                       fmt::format("{}", times[k].times.size())});
        }
        say(setting.comm, table.text());
    }
}

} // namespace DNDS::Bench
