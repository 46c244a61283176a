#include "GhostUpdates.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/OneSided/GhostWindow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace DNDS::Bench {

namespace {

constexpr index ownedRows = 200000;
constexpr index ghostRows = 20000;
constexpr ExchangeOptions zeroGhosts{.ghosts = GhostsAfterPush::Zero};

using Rows = ArrayPair<ParArray<real, 1>>;

/// Rows with ghosts spread over all other ranks' rows.
Rows makeRows(CommunicatorView comm) {
    Rows rows;
    rows.initPair("sums", comm);
    rows.father->resize(ownedRows);
    std::vector<index> ghosts;
    std::mt19937_64 random(7 + static_cast<unsigned>(comm.rank()));
    std::uniform_int_distribution<index> any(0, ownedRows * (comm.size() - 1) - 1);
    for (index k = 0; k < ghostRows; ++k)
        ghosts.push_back((ownedRows * (comm.rank() + 1) + any(random)) % (ownedRows * comm.size()));
    rows.trans.setFatherSon(rows.father, rows.son);
    rows.trans.createFatherGlobalMapping();
    rows.trans.createGhostMapping(ghosts);
    rows.trans.createMPITypes();
    return rows;
}

/// The steps of all ways, which draw the same ghosts.
class Updates {
  public:
    explicit Updates(CommunicatorView comm)
        : rows_(makeRows(comm)), window_(rows_),
          all_(rows_.trans.pattern(), Direction::Push, members(), zeroGhosts, PushOp::Sum) {}

    /// Draws `count` ghosts of a step, and zeroes all rows.
    void draw(index count) {
        std::mt19937_64 random(static_cast<unsigned>(count));
        std::uniform_int_distribution<index> any(0, rows_.son->size() - 1);
        drawn_.resize(toSize(count));
        for (index &ghost : drawn_)
            ghost = any(random);
        std::fill_n(rows_.father->view().data(), rows_.father->size(), real{0});
        std::fill_n(rows_.son->view().data(), rows_.son->size(), real{0});
    }
    void byCalls() {
        for (const index ghost : drawn_)
            window_.accumulate(window_.ghost(ghost), 0, 1);
        window_.barrier();
    }
    void byKernel() {
        const auto view = window_.view();
        for (const index ghost : drawn_)
            view.accumulate(view.ghost(ghost), 0, 1);
        window_.barrier();
    }
    /// All ghosts travel.
    void byPushOfAll() {
        addToSon();
        all_.start();
        all_.wait();
    }
    /// The list of the ghosts that were hit is made, and pushed.
    void byNewList() {
        addToSon();
        const auto some = rows_.trans.pattern()->restrictedTo(drawn_);
        Exchange push(some, Direction::Push, members(), zeroGhosts, PushOp::Sum);
        push.start();
        push.wait();
    }
    /// Checks that `steps` steps of all ranks have arrived. Collective.
    void check(CommunicatorView comm, const char *way, std::size_t steps) {
        real sum = 0;
        const auto father = rows_.father->view();
        for (index row = 0; row < father.size(); ++row)
            sum += father(row, 0);
        const real expected = static_cast<real>(drawn_.size() * steps) * comm.size();
        const real found = comm.allReduce(sum, MPI_SUM);
        DNDS_CHECK(found == expected, StateError, "{}: {} of {} updates arrived", way, found, expected);
    }

  private:
    std::vector<ExchangeMember> members() { return {rows_.trans.member()}; }
    void addToSon() {
        auto son = rows_.son->view();
        for (const index ghost : drawn_)
            son(ghost, 0) += 1;
    }

    Rows rows_;
    GhostWindow<real> window_;
    Exchange all_;
    std::vector<index> drawn_;
};

} // namespace

void ghostUpdates(Setting &setting) {
    Updates updates(setting.comm);
    Table table({fmt::format("microseconds a step, {} ghosts a rank", ghostRows), "GhostWindow in a kernel",
                 "calls on the host (ratio)", "push of all ghosts (ratio)", "list of the step, and push (ratio)"});
    using Step = void (Updates::*)();
    constexpr std::array<std::pair<const char *, Step>, 4> ways{{{"GhostWindow in a kernel", &Updates::byKernel},
                                                                 {"calls on the host", &Updates::byCalls},
                                                                 {"push of all ghosts", &Updates::byPushOfAll},
                                                                 {"list of the step, and push", &Updates::byNewList}}};
    for (const index count : {100, 1000, 10000}) {
        std::vector<Contestant> contestants;
        for (const auto &[name, step] : ways) {
            updates.draw(count);
            setting.comm.barrier(); // windows write into others' rows
            (updates.*step)();
            (updates.*step)();
            updates.check(setting.comm, name, 2);
            setting.comm.barrier();
            contestants.push_back({name, {}, [&updates, step = step] { (updates.*step)(); }, {}});
        }
        measure(setting, table, fmt::format("{} updates a rank", count), 1, contestants);
    }
    say(setting.comm, table.text());
}

} // namespace DNDS::Bench
