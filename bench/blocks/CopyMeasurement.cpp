#include "CopyMeasurement.hpp"
#include "SlabMethod.hpp"

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Transport/TransportTypes.hpp"
#include "Statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace DNDS::Bench {

namespace {

constexpr const char *OnceName = "memcpy";
constexpr const char *TwiceName = "memcpy twice";

/// Slabs of dimension `from` become slabs of dimension `to`, permuted by `axes`. Dimensions are z, y, x; x is the
/// fastest.
struct SlabTurn {
    const char *name;
    int from;
    int to;
    std::array<int, 3> axes{0, 1, 2};
};
constexpr std::array<SlabTurn, 4> turns{SlabTurn{ScatterTurn, 2, 0}, SlabTurn{"z to x", 0, 2},
                                        SlabTurn{TransposeTurn, 0, 0, {1, 0, 2}},
                                        SlabTurn{"x and z exchanged", 0, 0, {2, 1, 0}}};

/// A copy of the cube with its fields, by the library.
class SlabCopy final : public SlabMethod {
  public:
    SlabCopy(CommunicatorView comm, const SlabTurn &turn, index edge, TransportKind kind)
        : SlabMethod(fmt::format("{}, {}", turn.name, transportName(kind))), edge_(edge), axes_(turn.axes),
          from_("from", comm, slabs(comm, edge, turn.from), {}), to_("to", comm, slabs(comm, edge, turn.to), {}),
          copy_(makeBlockCopy(from_, to_, {.axes = {axes_.begin(), axes_.end()}, .transport = kind})) {}

    void run() override {
        copy_->start();
        copy_->wait();
    }
    void check(CommunicatorView comm, int round) override {
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
                        const double value = valueOf(cell[toSize(axes_[0])], cell[toSize(axes_[1])],
                                                     cell[toSize(axes_[2])], edge_, round);
                        DNDS_CHECK(v(i, j, k) == value, DataError, "{}: cell ({}, {}, {}) is {}, not {}", name(),
                                   cell[0], cell[1], cell[2], v(i, j, k), value);
                    }
        });
    }

  private:
    static std::shared_ptr<const BlockGrid> slabs(CommunicatorView comm, index edge, int dimension) {
        const std::array<index, 3> shape{edge, edge, edge};
        std::vector<index> parts{1, 1, 1};
        parts[toSize(dimension)] = comm.size();
        return BlockGrid::cut(comm, shape, {}, {.parts = parts, .ghosts = {}});
    }

    index edge_;
    std::array<int, 3> axes_;
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

double valueOf(index i, index j, index k, index edge, int round) {
    return static_cast<double>(((i * edge + j) * edge + k) * 8 + round % 8);
}

void measureCopies(const Setting &setting, index edge) {
    std::vector<std::unique_ptr<SlabMethod>> copies;
    for (const TransportKind kind : setting.transports)
        for (const SlabTurn &turn : turns)
            try { // it throws on all ranks or on none
                copies.push_back(std::make_unique<SlabCopy>(setting.comm, turn, edge, kind));
            } catch (const Error &error) {
                say(setting.comm, fmt::format("{}: skipped, {}\n", transportName(kind), error.message()));
            }
    for (auto make : {&makePetscScatter, &makeFftwTranspose})
        if (auto method = make(setting.comm, edge))
            copies.push_back(std::move(method));
    std::vector<Contestant> contestants;
    for (const auto &copy : copies)
        contestants.push_back({copy->name(), {}, [&copy = *copy] { copy.run(); }, {}});
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
