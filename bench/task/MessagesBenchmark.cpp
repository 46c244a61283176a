// What messages cost, and pulls of several fields.

#include "Benchmarks.hpp"
#include "HandPull.hpp"
#include "MeshStep.hpp"
#include "Statistics.hpp"

#include <fmt/format.h>

#include <array>
#include <deque>

namespace DNDS::Bench {

std::pair<double, double> medianAndLeast(std::span<const Block> blocks, int steps) {
    std::vector<double> medians;
    double least = std::numeric_limits<double>::infinity();
    for (const Block &block : blocks) {
        medians.push_back(block.microseconds / steps);
        least = std::min(least, *std::ranges::min_element(block.times) / steps);
    }
    return {median(std::move(medians)), least};
}

namespace {

constexpr int fieldCount = 5;
constexpr int tag = 1;

Contestant repeated(int steps, std::string name, std::function<void()> step) {
    return {std::move(name),
            {},
            [steps, step = std::move(step)] {
                for (int k = 0; k < steps; k++)
                    step();
            },
            {}};
}

/// `count` messages of `bytes` bytes each way between ranks 0 and 1 at once.
Contestant exchangeOf(int steps, CommunicatorView comm, int count, int bytes) {
    const auto memory = std::make_shared<std::vector<char>>(2 * static_cast<std::size_t>(count * bytes));
    return repeated(steps, fmt::format("{} x {} B", count, bytes), [comm, count, bytes, memory] {
        if (comm.rank() > 1)
            return;
        std::vector<MPI_Request> requests(2 * static_cast<std::size_t>(count));
        for (std::size_t k = 0; k < requests.size(); k++) {
            char *at = memory->data() + k * static_cast<std::size_t>(bytes);
            const int peer = 1 - comm.rank();
            k < requests.size() / 2 ? MPI_Irecv(at, bytes, MPI_CHAR, peer, tag, comm.handle(), &requests[k])
                                    : MPI_Isend(at, bytes, MPI_CHAR, peer, tag, comm.handle(), &requests[k]);
        }
        checkMpi(MPI_Waitall(2 * count, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    });
}

/// 8 bytes there and back.
Contestant pingPong(int steps, CommunicatorView comm) {
    return repeated(steps, "there and back", [comm] {
        double ball = 0;
        const auto send = [&] { MPI_Send(&ball, 1, MPI_DOUBLE, 1 - comm.rank(), tag, comm.handle()); };
        if (comm.rank() == 0)
            send();
        if (comm.rank() <= 1)
            checkMpi(MPI_Recv(&ball, 1, MPI_DOUBLE, 1 - comm.rank(), tag, comm.handle(), MPI_STATUS_IGNORE),
                     "MPI_Recv");
        if (comm.rank() == 1)
            send();
    });
}

/// The parameters of LogGP, from the least times of exchanges of both ranks.
void measureNetwork(const Setting &setting) {
    constexpr int many = 16, large = 32768; // below the size from which MPI asks before it sends
    const Communicator own = Communicator::duplicate(setting.comm);
    const int steps = setting.steps;
    const std::array all{pingPong(steps, own.view()), exchangeOf(steps, own.view(), 1, 8),
                         exchangeOf(steps, own.view(), many, 8), exchangeOf(steps, own.view(), 1, large)};
    const auto blocks = interleave(setting.comm, setting.sync, all, setting.common.plan);
    std::array<double, 4> us{};
    for (std::size_t k = 0; k < all.size(); k++)
        us[k] = medianAndLeast(blocks[k], setting.steps).second;
    const double overhead = (us[2] - us[1]) / (many - 1);
    const double bandwidth = (large - 8) / (us[3] - us[1]);
    say(setting.comm,
        fmt::format("one way {:.3g} us; an exchange {:.3g} us, each more message {:.3g} us; {:.3g} MB/s\n", us[0] / 2,
                    us[1], overhead, bandwidth));
    setting.report.add({{"benchmark", "network"},
                        {"ranks", setting.comm.size()},
                        {"one_way_us", us[0] / 2},
                        {"latency_us", us[1] - overhead},
                        {"overhead_us", overhead},
                        {"bytes_per_us", bandwidth}});
}

/// Several fields of one number a cell, and ways of pulling all of them.
class Fields {
  public:
    Fields(CommunicatorView comm, const SquareMesh &square) : comm_(Communicator::duplicate(comm)) {
        std::vector<ExchangeMember> members;
        std::vector<HandPull::Field> rows;
        for (int k = 0; k < fieldCount; k++) {
            auto &field = fields_.emplace_back(fmt::format("field {}", k), comm, square.mesh.cells.owned);
            Geom::attachField(field, square.mesh.cells);
            for (index cell = 0; cell < square.mesh.cells.owned; cell++)
                field(cell, 0) = static_cast<real>(1000 * cell + 10 * k + comm.rank());
            members.push_back(field.trans.member());
            rows.push_back({field.father->data(), field.son->data(), 1});
        }
        const auto &pattern = square.mesh.cells.pattern;
        together_ = std::make_unique<Exchange>(pattern, Direction::Pull, members);
        handTogether_ = std::make_unique<HandPull>(*pattern, comm_.view(), tag, rows);
        for (int k = 0; k < fieldCount; k++) {
            const auto at = static_cast<std::size_t>(k);
            single_.push_back(std::make_unique<Exchange>(pattern, Direction::Pull, std::vector{members[at]}));
            handSingle_.push_back(
                std::make_unique<HandPull>(*pattern, comm_.view(), tag + 1 + k, std::vector{rows[at]}));
        }
    }
    std::vector<Contestant> ways(int steps) {
        return {repeated(steps, "MPI by hand, one message", [this] { pull(handTogether_); }),
                repeated(steps, "MPI by hand, a message each", [this] { pullAtOnce(handSingle_); }),
                repeated(steps, "one message", [this] { pull(together_); }),
                repeated(steps, "a message each, at once", [this] { pullAtOnce(single_); }),
                repeated(steps, "a message each, in turn", [this] {
                    for (auto &one : single_)
                        pull(one);
                })};
    }
    /// Whether all ways give the same ghosts. Collective.
    void check(CommunicatorView comm, std::span<const Contestant> ways) {
        std::vector<std::vector<real>> first;
        for (const Contestant &way : ways) {
            for (auto &field : fields_)
                std::fill_n(field.son->data(), field.son->size(), -1.0);
            comm.barrier();
            way.timed();
            std::vector<std::vector<real>> ghosts;
            bool pulled = true;
            for (auto &field : fields_) {
                ghosts.emplace_back(field.son->data(), field.son->data() + field.son->size());
                pulled = pulled && std::ranges::find(ghosts.back(), -1.0) == ghosts.back().end();
            }
            if (first.empty())
                first = ghosts;
            const int wrong = comm.allReduce(pulled && ghosts == first ? 0 : 1, MPI_SUM);
            DNDS_CHECK(wrong == 0, DataError, "'{}' gives wrong ghosts on {} ranks", way.name, wrong);
        }
    }

  private:
    template <class Pull>
    static void pull(std::unique_ptr<Pull> &one) {
        one->start();
        one->wait();
    }
    template <class Pull>
    static void pullAtOnce(std::vector<std::unique_ptr<Pull>> &all) {
        for (auto &one : all)
            one->start();
        for (auto &one : all)
            one->wait();
    }

    Communicator comm_; ///< of pulls by hand
    std::deque<ArrayPair<ParArray<real, 1>>> fields_;
    std::unique_ptr<Exchange> together_;
    std::vector<std::unique_ptr<Exchange>> single_;
    std::unique_ptr<HandPull> handTogether_;
    std::vector<std::unique_ptr<HandPull>> handSingle_;
};

void measureFields(const Setting &setting, index cells, Table &table) {
    const SquareMesh square(setting.comm, cells * setting.comm.size());
    Fields fields(setting.comm, square);
    const std::vector<Contestant> ways = fields.ways(setting.steps);
    fields.check(setting.comm, ways);
    const auto blocks = interleave(setting.comm, setting.sync, ways, setting.common.plan);
    const index ghosts = setting.comm.allReduce(square.mesh.cells.pattern->sonSize(), MPI_MAX);
    for (std::size_t k = 0; k < ways.size(); k++) {
        const auto [us, least] = medianAndLeast(blocks[k], setting.steps);
        table.add({ways[k].name, fmt::to_string(cells), fmt::to_string(ghosts), numberOrDash(us), numberOrDash(least)});
        setting.report.add({{"benchmark", "fields"},
                            {"method", ways[k].name},
                            {"ranks", setting.comm.size()},
                            {"cells_per_rank", cells},
                            {"ghosts", ghosts},
                            {"fields", fieldCount},
                            {"us", numberOrNull(us)},
                            {"least_us", numberOrNull(least)}});
    }
}

} // namespace

void benchmarkMessages(const Setting &setting) {
    if (setting.comm.size() == 1)
        return say(setting.comm, "one rank: no messages\n");
    measureNetwork(setting);
    Table table({fmt::format("pull of {} fields", fieldCount), "cells a rank", "ghosts", "us", "least"});
    for (const index cells : setting.rankCells)
        measureFields(setting, cells, table);
    say(setting.comm, table.text());
}

} // namespace DNDS::Bench
