#include "CopyMeasurement.hpp"

#include "DNDS/Blocks/BlockCopy.hpp"
#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Transport/TransportTypes.hpp"
#include "Statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

namespace DNDS::Bench {

namespace {

constexpr const char *OnceName = "memcpy";
constexpr const char *TwiceName = "memcpy twice";

/// The value of a cell; another one in each round.
double valueOf(index i, index j, index k, index edge, int round) {
    return static_cast<double>(((i * edge + j) * edge + k) * 8 + round % 8);
}

/// A copy of the cube with its fields. The fastest dimension is x, the slowest z.
class SlabCopy {
  public:
    SlabCopy(const Setting &setting, std::string name, bool fromZ, std::vector<int> axes, index edge,
             TransportKind kind)
        : name_(fmt::format("{}, {}", name, transportName(kind))), edge_(edge), turned_(!axes.empty()),
          from_("from", setting.comm, slabs(setting.comm, edge, fromZ), {}),
          to_("to", setting.comm, slabs(setting.comm, edge, !fromZ || turned_), {}),
          copy_(makeBlockCopy(from_, to_, {.axes = std::move(axes), .transport = kind})) {}

    const std::string &name() const { return name_; }
    void run() {
        copy_->start();
        copy_->wait();
    }
    void check(CommunicatorView comm, int round) {
        const auto u = from_.view();
        for (index i = 0; i < u.extent(0); ++i)
            for (index j = 0; j < u.extent(1); ++j)
                for (index k = 0; k < u.extent(2); ++k)
                    u(i, j, k) = valueOf(u.global(i, 0), u.global(j, 1), u.global(k, 2), edge_, round);
        run();
        comm.guarded([&] {
            const auto v = std::as_const(to_).view();
            for (index i = 0; i < v.extent(0); ++i)
                for (index j = 0; j < v.extent(1); ++j)
                    for (index k = 0; k < v.extent(2); ++k) {
                        const std::array<index, 3> cell{v.global(i, 0), v.global(j, 1), v.global(k, 2)};
                        const double value = turned_ ? valueOf(cell[2], cell[1], cell[0], edge_, round)
                                                     : valueOf(cell[0], cell[1], cell[2], edge_, round);
                        DNDS_CHECK(v(i, j, k) == value, DataError, "{}: cell ({}, {}, {}) is {}, not {}", name_,
                                   cell[0], cell[1], cell[2], v(i, j, k), value);
                    }
        });
    }

  private:
    static std::shared_ptr<const BlockGrid> slabs(CommunicatorView comm, index edge, bool inZ) {
        const index ranks = comm.size();
        const std::array<index, 3> shape{edge, edge, edge};
        return BlockGrid::cut(
            comm, shape, {},
            {.parts = inZ ? std::vector<index>{ranks, 1, 1} : std::vector<index>{1, 1, ranks}, .ghosts = {}});
    }

    std::string name_;
    index edge_;
    bool turned_;
    BlockField<double> from_;
    BlockField<double> to_;
    std::shared_ptr<Exchange> copy_;
};

void report(const Setting &setting, index edge, std::span<const Contestant> contestants,
            const std::vector<std::vector<Block>> &blocks, double megabytes, Regime regime) {
    std::vector<Summary> times;
    for (const auto &own : blocks)
        times.push_back(summarize(own, regime));
    if (std::ranges::all_of(times, [](const Summary &one) { return one.blocks == 0; }))
        return;
    const auto timeOf = [&](const char *name) {
        const auto found = std::ranges::find(contestants, name, &Contestant::name);
        return times[static_cast<std::size_t>(found - contestants.begin())].microseconds;
    };
    Table table({fmt::format("copy of {}^3 doubles between slabs, {}", edge, regimeName(regime)), "us", "min", "us/MB",
                 "/memcpy", "/memcpy twice", "reps"});
    for (std::size_t k = 0; k < contestants.size(); ++k) {
        const Summary &own = times[k];
        const double once = own.microseconds / timeOf(OnceName);
        const double twice = own.microseconds / timeOf(TwiceName);
        Record record;
        record["benchmark"] = "blocks";
        record["case"] = fmt::format("copy of {}^3", edge);
        record["ranks"] = setting.comm.size();
        record["method"] = contestants[k].name;
        record["regime"] = std::string(regimeName(regime));
        record["median_us"] = numberOrNull(own.microseconds);
        record["us_per_MB"] = numberOrNull(own.microseconds / megabytes);
        record["ratio_to_memcpy"] = numberOrNull(once);
        record["ratio_to_memcpy_twice"] = numberOrNull(twice);
        setting.report.add(std::move(record));
        table.add({"  " + contestants[k].name, numberOrDash(own.microseconds), numberOrDash(quantile(own.times, 0)),
                   numberOrDash(own.microseconds / megabytes), numberOrDash(once), numberOrDash(twice),
                   fmt::format("{}", own.times.size())});
    }
    say(setting.comm, table.text());
}

} // namespace

void measureCopies(const Setting &setting, index edge) {
    std::vector<std::unique_ptr<SlabCopy>> copies;
    std::vector<Contestant> contestants;
    for (const TransportKind kind : setting.transports)
        for (const auto &[name, fromZ, axes] : {std::tuple{"x to z", false, std::vector<int>{}},
                                                {"z to x", true, std::vector<int>{}},
                                                {"x and z exchanged", true, std::vector<int>{2, 1, 0}}}) {
            try { // it throws on all ranks or on none
                copies.push_back(std::make_unique<SlabCopy>(setting, name, fromZ, axes, edge, kind));
            } catch (const Error &error) {
                say(setting.comm, fmt::format("{}: skipped, {}\n", transportName(kind), error.message()));
                continue;
            }
            contestants.push_back({copies.back()->name(), {}, [&copy = *copies.back()] { copy.run(); }, {}});
        }
    const auto each = static_cast<std::size_t>(edge * edge * edge / setting.comm.size());
    const std::vector<double> source(each, 1);
    std::vector<double> buffer(each);
    std::vector<double> target(each);
    const auto copyAll = [each](std::vector<double> &to, const std::vector<double> &from) {
        std::memcpy(to.data(), from.data(), each * sizeof(double));
    };
    contestants.push_back({OnceName, {}, [&] { copyAll(target, source); }, {}});
    contestants.push_back({TwiceName, {}, [&] { copyAll(buffer, source), copyAll(target, buffer); }, {}});
    int round = 0;
    for (const auto &copy : copies)
        copy->check(setting.comm, ++round);
    const auto blocks = interleave(setting.comm, setting.sync, contestants, setting.plan);
    for (const Regime regime : {Regime::Near, Regime::Far, Regime::SharedCore, Regime::Unknown})
        report(setting, edge, contestants, blocks, static_cast<double>(each) * sizeof(double) * 1e-6, regime);
    for (const auto &copy : copies)
        copy->check(setting.comm, ++round);
}

} // namespace DNDS::Bench
