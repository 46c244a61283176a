// Every order of steps of writers and readers that run an exchange on a node, one of which may stop at any moment, and
// that recover together. The flags are the real ones, NodeEdge and PeerEdge, one call a step; the programs around them
// are those of NodeSharedTransport, DevicePeerTransport and CommunicatorContext::recover. Rows are one number an array,
// which says of what epoch they are; copying takes two steps, between which the copy is torn.

#include "DNDS/Transport/NodeEdge.hpp"
#include "DNDS/Transport/PeerEdge.hpp"
#include "support/ModelChecker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace DNDS {
namespace {

using Byte = std::uint8_t;

constexpr std::size_t maxRanks = 3;
constexpr std::size_t maxEdges = 2;
constexpr Byte torn = 255;

/// The bytes of an edge that are not padding, so that a state can be copied and compared.
struct StoredEdge {
    static constexpr std::size_t line = 128;
    static constexpr std::size_t used = 24; ///< bytes used of each of the two lines

    std::array<std::array<std::byte, used>, 2> lines;
};

/// An edge in memory of its own, from which states are loaded and stored. One thread uses it, so bytes are as good as
/// atomic operations.
template <class Edge>
class EdgeBench {
  public:
    static_assert(sizeof(Edge) == 2 * StoredEdge::line);

    EdgeBench() : edge_(new (memory_) Edge) {}
    EdgeBench(const EdgeBench &) = delete;
    EdgeBench &operator=(const EdgeBench &) = delete;

    /// Calls `act(edge)` and returns its result.
    template <class Act>
    auto on(StoredEdge &stored, Act &&act) {
        for (std::size_t k = 0; k < 2; ++k)
            std::memcpy(memory_ + k * StoredEdge::line, stored.lines[k].data(), StoredEdge::used);
        if constexpr (std::is_void_v<decltype(act(*edge_))>) {
            act(*edge_);
            store(stored);
        } else {
            const auto result = act(*edge_);
            store(stored);
            return result;
        }
    }
    StoredEdge store(const Edge &edge) {
        StoredEdge stored{};
        std::memcpy(memory_, static_cast<const void *>(&edge), sizeof edge);
        store(stored);
        return stored;
    }

  private:
    void store(StoredEdge &stored) const {
        for (std::size_t k = 0; k < 2; ++k)
            std::memcpy(stored.lines[k].data(), memory_ + k * StoredEdge::line, StoredEdge::used);
    }

    alignas(Edge) std::byte memory_[sizeof(Edge)] = {};
    Edge *edge_;
};

/// State of a rank; those before `Settling` are in the program.
enum class At : Byte {
    Idle,    ///< between two epochs
    Opening, ///< NodeShared: `start`, before it opens `edge`; Peer: before it returns `edge`
    Waiting, ///< in the loop of `wait`
    // NodeSharedTransport, on `edge`
    WriteBegin,
    WriteEnd,
    Arrive,
    GatherBegin,
    GatherEnd,
    Offer,
    Withdraw,
    AskTaken,
    Take,
    CopyBegin,
    CopyEnd,
    Taken,
    // DevicePeerTransport
    AskPack,
    Packed,
    // CommunicatorContext::recover
    Settling, ///< before it settles `edge`
    SettlingTaken,
    Meeting,
    Renewing,
    Dead
};

struct EdgeModelState {
    struct Rank {
        At at;
        Byte edge;
        Byte run; ///< 1 after the recovery
        Byte epoch;
        Byte pendingOut; ///< a bit for each edge
        Byte pendingIn;
        Byte offering;
        Byte meetings;
        Byte packing; ///< Peer: 1: waits for readers, 2: the kernel is launched
        Byte reading; ///< Peer
        std::array<Byte, 2> kernels;
        Byte kernelBegun; ///< the first of `kernels`
    };

    std::array<StoredEdge, maxEdges> edges;
    std::array<std::array<Byte, 2>, maxEdges> buffers; ///< writers: offered rows, or packed ones of two epochs
    std::array<Byte, maxEdges> ghosts;                 ///< readers
    std::array<Rank, maxRanks> ranks;
    Byte revoked;
    Byte wrong; ///< a number of `EdgeModel::wrong`
};

enum class Fault : Byte { None, Throws, Dies };

struct EdgeCase {
    const char *name;
    std::size_t ranks;
    struct Ends {
        std::size_t writer, reader;
    };
    std::vector<Ends> edges;
    Byte epochs;
    Byte epochsAfter;     ///< the recovery
    std::uint32_t before; ///< the epoch before the first
    Fault fault;
};

/// Common to the two programs: failures and recovery.
template <class Program, class Edge>
class EdgeModel {
  public:
    using State = EdgeModelState;
    using Rank = State::Rank;
    struct Step {
        Byte rank;
        const char *does;
        Byte edge;
    };

    explicit EdgeModel(const EdgeCase &given) : given_(given) {}

    State first() const {
        State state{};
        for (std::size_t k = 0; k < given_.edges.size(); ++k)
            state.edges[k] = bench_.store(Program::edgeAt(given_.before));
        return state;
    }

    template <class Take>
    void forEachStep(const State &from, Take &&take) const {
        for (std::size_t r = 0; r < given_.ranks; ++r) {
            State next = from;
            const auto done = [&](const char *does, std::size_t edge = noEdge) {
                goOn(next, r);
                take(Step{static_cast<Byte>(r), does, static_cast<Byte>(edge)}, next);
                next = from;
            };
            fail(next, r, done);
            program().stepsOf(from, next, r, done);
            recover(from, next, r, done);
        }
    }

    std::string wrong(const State &state) const {
        for (std::size_t k = 0; k < given_.edges.size(); ++k) {
            const Rank &writer = state.ranks[given_.edges[k].writer], &reader = state.ranks[given_.edges[k].reader];
            if (writer.at > At::SettlingTaken && writer.at != At::Dead && reader.edge == k &&
                (reader.at == At::CopyBegin || reader.at == At::CopyEnd) && (writer.pendingOut >> k & 1U) == 0)
                return "a reader reads offered rows of a writer that has settled";
        }
        const auto isRenewing = [](const Rank &rank) { return rank.at == At::Renewing; };
        const auto isBusy = [](const Rank &rank) {
            return rank.kernels[0] != 0 || (rank.at != At::Meeting && rank.at != At::Renewing);
        };
        const auto ranks = std::span(state.ranks).first(given_.ranks);
        if (std::ranges::any_of(ranks, isRenewing) && std::ranges::any_of(ranks, isBusy))
            return "a rank is not done when all have met";
        constexpr std::array<const char *, 4> texts{"", "a reader has rows of another epoch",
                                                    "a reader takes rows of another epoch",
                                                    "a writer writes after all ranks have met"};
        return texts.at(state.wrong);
    }

    bool mayEnd(const State &state) const {
        const auto all = [&](auto &&is) { return std::ranges::all_of(std::span(state.ranks).first(given_.ranks), is); };
        if (given_.fault == Fault::Dies && !all([](const Rank &rank) { return rank.at != At::Dead; }))
            return all([](const Rank &rank) { return rank.at == At::Dead || rank.at == At::Meeting; });
        return state.revoked == 0 &&
               all([&](const Rank &rank) { return rank.at == At::Idle && rank.epoch == epochsOf(rank); });
    }

    bool isFault(const Step &step) const {
        const std::string_view does = step.does;
        return does == "fails" || does == "dies";
    }

    std::string describe(const Step &step) const {
        std::string text = "rank " + std::to_string(step.rank) + " " + step.does;
        if (step.edge < given_.edges.size())
            text += " " + std::to_string(step.edge);
        return text;
    }

  protected:
    static constexpr std::size_t noEdge = 255;
    static constexpr Byte wrongGhosts = 1, wrongSource = 2, writesTooLate = 3;

    Byte epochsOf(const Rank &rank) const { return rank.run == 0 ? given_.epochs : given_.epochsAfter; }
    /// The number of the epoch that a rank is in, for flags.
    std::uint32_t epochOf(const Rank &rank) const {
        return (rank.run == 0 ? given_.before : Edge::initialEpoch) + rank.epoch;
    }
    /// Its rows.
    static Byte rowsOf(const Rank &rank) {
        return rank.epoch == 0 ? Byte{0} : static_cast<Byte>(16 * rank.run + rank.epoch);
    }
    template <class Act>
    auto on(State &state, std::size_t edge, Act &&act) const {
        return bench_.on(state.edges[edge], act);
    }
    bool writes(std::size_t rank, std::size_t edge) const {
        return edge < given_.edges.size() && given_.edges[edge].writer == rank;
    }
    bool reads(std::size_t rank, std::size_t edge) const {
        return edge < given_.edges.size() && given_.edges[edge].reader == rank;
    }
    Byte edgesOf(std::size_t rank, bool (EdgeModel::*belongs)(std::size_t, std::size_t) const) const {
        Byte bits = 0;
        for (std::size_t k = 0; k < given_.edges.size(); ++k)
            if ((this->*belongs)(rank, k))
                bits |= static_cast<Byte>(1U << k);
        return bits;
    }
    static void clear(Byte &bits, std::size_t edge) { bits &= static_cast<Byte>(~(1U << edge)); }
    static bool has(Byte bits, std::size_t edge) { return (static_cast<unsigned>(bits) >> edge & 1U) != 0; }
    void requireGhosts(State &state, std::size_t edge, Byte rows) const {
        if (state.ghosts[edge] != rows)
            state.wrong = wrongGhosts;
    }
    void writeGhosts(State &state, std::size_t edge, Byte rows) const {
        const Rank &writer = state.ranks[given_.edges[edge].writer], &reader = state.ranks[given_.edges[edge].reader];
        if (reader.run == writer.run && reader.meetings > 1 + 3 * reader.run)
            state.wrong = writesTooLate;
        state.ghosts[edge] = rows;
    }

    const EdgeCase &given_;

  private:
    const Program &program() const { return static_cast<const Program &>(*this); }

    /// A rank continues while its next step is invisible to the others: such a step is not worth a state.
    void goOn(State &state, std::size_t r) const {
        while (isPrivate(state, r)) {
            const State from = state;
            State next = from;
            const auto done = [&](const char * /*does*/, std::size_t /*edge*/ = noEdge) {
                state = next;
                next = from;
            };
            program().stepsOf(from, next, r, done);
            recover(from, next, r, done);
        }
    }
    bool isPrivate(const State &state, std::size_t r) const {
        const Rank &me = state.ranks[r];
        const bool isLast = me.edge == given_.edges.size();
        if (me.at == At::Settling)
            return isLast ? program().settled(state, r) || me.meetings % 3 == 0 : !program().mustSettle(state, r);
        if (me.at == At::Renewing)
            return !isLast && (Program::renewedByWriter ? !writes(r, me.edge) : !reads(r, me.edge));
        return program().isPrivateOfProgram(me, r);
    }

    template <class Done>
    void fail(State &next, std::size_t r, Done &&done) const {
        Rank &me = next.ranks[r];
        if (me.run != 0 || me.at >= At::Settling)
            return;
        if (given_.fault == Fault::Dies) {
            me.at = At::Dead;
            done("dies");
        }
        // Nothing throws between taking an offer and telling so.
        if (given_.fault == Fault::Throws && me.at != At::CopyBegin && me.at != At::CopyEnd && me.at != At::Taken) {
            next.revoked = 1;
            stop(me);
            done("fails");
        }
        const bool dead = std::ranges::any_of(next.ranks, [](const Rank &rank) { return rank.at == At::Dead; });
        if ((next.revoked != 0 || dead) && (me.at == At::Idle || me.at == At::Waiting)) {
            next.revoked = 1;
            stop(me);
            done("looks at the revocation");
        }
    }
    static void stop(Rank &me) {
        me.at = At::Settling;
        me.edge = 0;
    }
    static void meet(Rank &me) {
        me.at = At::Meeting;
        me.edge = 0;
        ++me.meetings;
    }

    template <class Done>
    void recover(const State &from, State &next, std::size_t r, Done &&done) const {
        Rank &me = next.ranks[r];
        switch (me.at) {
        case At::Settling:
        case At::SettlingTaken:
            if (me.edge < given_.edges.size()) {
                if (const char *did = program().settle(next, r))
                    done(did, from.ranks[r].edge);
            } else if (program().settled(next, r) || me.meetings % 3 == 0) {
                meet(me);
                done("comes to a meeting");
            }
            return;
        case At::Meeting:
            for (std::size_t other = 0; other < given_.ranks; ++other)
                if (from.ranks[other].meetings < me.meetings)
                    return;
            if (me.meetings % 3 == 1)
                stop(me);
            else if (me.meetings % 3 == 2)
                me.at = At::Renewing;
            else
                me = Rank{.at = At::Idle,
                          .edge = 0,
                          .run = 1,
                          .epoch = 0,
                          .pendingOut = 0,
                          .pendingIn = 0,
                          .offering = 0,
                          .meetings = me.meetings,
                          .packing = 0,
                          .reading = 0,
                          .kernels = {},
                          .kernelBegun = 0};
            done("leaves a meeting");
            return;
        case At::Renewing:
            if (me.edge < given_.edges.size()) {
                if (Program::renewedByWriter ? writes(r, me.edge) : reads(r, me.edge))
                    on(next, me.edge, [](Edge &edge) { edge.renew(); });
                if (reads(r, me.edge))
                    next.ghosts[me.edge] = 0;
                ++me.edge;
                done("renews edge", from.ranks[r].edge);
            } else {
                if (r == 0)
                    next.revoked = 0;
                meet(me);
                done("comes to the last meeting");
            }
            return;
        default:
            return;
        }
    }

    mutable EdgeBench<Edge> bench_;
};

/// NodeSharedTransport: `start`, `progress` until it is true, `settle`. A writer may offer its rows at any time.
class NodeSharedModel : public EdgeModel<NodeSharedModel, NodeEdge> {
  public:
    using EdgeModel::EdgeModel;
    static constexpr bool renewedByWriter = false;
    static NodeEdge edgeAt(std::uint32_t epoch) { return NodeEdge(epoch); }

    template <class Done>
    void stepsOf(const State &from, State &next, std::size_t r, Done &&done) const {
        Rank &me = next.ranks[r];
        const std::size_t k = me.edge;
        const std::uint32_t epoch = epochOf(me);
        const Byte rows = rowsOf(me);
        switch (me.at) {
        case At::Idle:
            if (me.epoch == epochsOf(me))
                return;
            ++me.epoch;
            me.edge = 0;
            me.pendingOut = edgesOf(r, &NodeSharedModel::writes);
            me.pendingIn = edgesOf(r, &NodeSharedModel::reads);
            me.at = At::Opening;
            done("starts");
            return;
        case At::Opening:
            if (k == given_.edges.size()) {
                me.at = At::Waiting;
                done("waits");
                return;
            }
            if (reads(r, k)) {
                Rank before = me; // until now the program has read its ghosts
                --before.epoch;
                requireGhosts(next, k, rowsOf(before));
                on(next, k, [&](NodeEdge &edge) { edge.open(epoch); });
            }
            ++me.edge;
            done("opens", k);
            return;
        case At::Waiting:
            wait(from, next, r, done);
            return;
        case At::WriteBegin:
            writeGhosts(next, k, torn);
            me.at = At::WriteEnd;
            done("begins to write", k);
            return;
        case At::WriteEnd:
            writeGhosts(next, k, rows);
            me.at = At::Arrive;
            done("ends to write", k);
            return;
        case At::Arrive:
            on(next, k, [&](NodeEdge &edge) { edge.arrive(epoch); });
            served(me);
            done("arrives", k);
            return;
        case At::GatherBegin:
            next.buffers[k][0] = torn;
            me.at = At::GatherEnd;
            done("begins to gather", k);
            return;
        case At::GatherEnd:
            next.buffers[k][0] = rows;
            me.at = At::Offer;
            done("ends to gather", k);
            return;
        case At::Offer:
            on(next, k, [&](NodeEdge &edge) { edge.offer(epoch); });
            me.offering |= static_cast<Byte>(1U << k);
            me.at = At::Waiting;
            done("offers", k);
            return;
        case At::Withdraw:
            if (on(next, k, [&](NodeEdge &edge) { return edge.withdraw(epoch); })) {
                clear(me.offering, k);
                me.at = At::WriteBegin;
            } else {
                me.at = At::AskTaken;
            }
            done("withdraws", k);
            return;
        case At::AskTaken:
            if (on(next, k, [&](NodeEdge &edge) { return edge.wasTaken(epoch); }))
                served(me);
            me.at = At::Waiting;
            done("asks whether it was taken", k);
            return;
        case At::Take:
            me.at = on(next, k, [&](NodeEdge &edge) { return edge.take(epoch); }) ? At::CopyBegin : At::Waiting;
            done("takes", k);
            return;
        case At::CopyBegin:
        case At::CopyEnd:
            if (next.buffers[k][0] != rows)
                next.wrong = wrongSource;
            next.ghosts[k] = me.at == At::CopyBegin ? torn : rows;
            me.at = me.at == At::CopyBegin ? At::CopyEnd : At::Taken;
            done("copies", k);
            return;
        case At::Taken:
            on(next, k, [&](NodeEdge &edge) { edge.taken(epoch); });
            clear(me.pendingIn, k);
            me.at = At::Waiting;
            done("has taken", k);
            return;
        default:
            return;
        }
    }

    /// One call of `settle` for `edge`, or the next edge; null: nothing can be done.
    const char *settle(State &next, std::size_t r) const {
        Rank &me = next.ranks[r];
        const std::size_t k = me.edge;
        const std::uint32_t epoch = epochOf(me);
        const auto settled = [&] {
            clear(me.pendingOut, k);
            clear(me.offering, k);
            ++me.edge;
            me.at = At::Settling;
        };
        if (!mustSettle(next, r)) {
            settled();
            return "settles";
        }
        if (me.at == At::Settling) {
            if (on(next, k, [&](NodeEdge &edge) { return edge.withdraw(epoch); }))
                settled();
            else
                me.at = At::SettlingTaken;
            return "withdraws, to settle";
        }
        if (on(next, k, [&](NodeEdge &edge) { return edge.wasTaken(epoch); }) ||
            next.ranks[given_.edges[k].reader].at == At::Dead) {
            settled();
            return "sees that it was taken, to settle";
        }
        if (me.meetings % 3 != 0)
            return nullptr;
        ++me.edge; // `recover` calls again after the first meeting
        me.at = At::Settling;
        return "cannot settle";
    }
    bool mustSettle(const State &state, std::size_t r) const {
        const Rank &me = state.ranks[r];
        return has(me.pendingOut, me.edge) && has(me.offering, me.edge);
    }
    bool settled(const State &state, std::size_t r) const { return state.ranks[r].pendingOut == 0; }
    bool isPrivateOfProgram(const Rank &me, std::size_t r) const {
        switch (me.at) {
        case At::Opening:
            return !reads(r, me.edge);
        case At::Waiting:
            return me.pendingOut == 0 && me.pendingIn == 0;
        // A copy has a beginning and an end; beside these there is only the call before the one or after the other.
        case At::WriteBegin:
        case At::Arrive:
        case At::GatherBegin:
        case At::Offer:
        case At::CopyBegin:
        case At::Taken:
            return true;
        default:
            return false;
        }
    }

  private:
    static void served(Rank &me) {
        clear(me.pendingOut, me.edge);
        clear(me.offering, me.edge);
        me.at = At::Waiting;
    }

    template <class Done>
    void wait(const State &from, State &next, std::size_t r, Done &&done) const {
        Rank &me = next.ranks[r];
        const std::uint32_t epoch = epochOf(me);
        if (me.pendingOut == 0 && me.pendingIn == 0) {
            for (std::size_t k = 0; k < given_.edges.size(); ++k)
                if (reads(r, k))
                    requireGhosts(next, k, rowsOf(me));
            me.at = At::Idle;
            done("has all rows");
            return;
        }
        for (std::size_t k = 0; k < given_.edges.size(); ++k) {
            const auto go = [&](At at, const char *does) {
                me.at = at;
                me.edge = static_cast<Byte>(k);
                done(does, k);
            };
            if (has(me.pendingOut, k) && has(me.offering, k)) {
                if (on(next, k, [&](NodeEdge &edge) { return edge.pollOffer(epoch); }) == EdgeState::Open)
                    go(At::Withdraw, "finds the reader ready after its offer");
            } else if (has(me.pendingOut, k)) {
                if (on(next, k, [&](NodeEdge &edge) { return edge.pollOpening(epoch); }) == EdgeState::Open)
                    go(At::WriteBegin, "finds the reader ready");
                go(At::GatherBegin, "does not wait");
            }
            if (has(me.pendingIn, k)) {
                const EdgeState arrival = on(next, k, [&](NodeEdge &edge) { return edge.pollArrival(epoch); });
                if (arrival == EdgeState::Open) {
                    clear(me.pendingIn, k);
                    go(At::Waiting, "sees the rows");
                } else if (arrival == EdgeState::Offered) {
                    go(At::Take, "sees the offer");
                }
            }
            next = from;
        }
    }
};

/// DevicePeerTransport: `start`, `progress` until it is true, `settle`; kernels run one after another, beside the host.
class PeerModel : public EdgeModel<PeerModel, PeerEdge> {
  public:
    using EdgeModel::EdgeModel;
    static constexpr bool renewedByWriter = true;
    static std::size_t slot(std::uint32_t epoch) { return epoch % 2; }
    static const PeerEdge &edgeAt(std::uint32_t epoch) {
        static PeerEdge edge;
        edge.renew();
        for (const std::uint32_t past : {epoch - 1, epoch}) {
            edge.packed(past);
            edge.taken(past);
        }
        return edge;
    }

    template <class Done>
    void stepsOf(const State &from, State &next, std::size_t r, Done &&done) const {
        Rank &me = next.ranks[r];
        const std::size_t k = me.edge;
        runKernel(next, r, done);
        switch (me.at) {
        case At::Idle:
            if (me.kernels[0] != 0) // `start` waits for what was read last
                return;
            for (std::size_t edge = 0; edge < given_.edges.size(); ++edge)
                if (reads(r, edge))
                    requireGhosts(next, edge, rowsOf(me));
            if (me.epoch == epochsOf(me)) {
                if (next.wrong != 0)
                    done("looks at its ghosts");
                return;
            }
            me.edge = 0;
            me.at = At::Opening;
            done("starts");
            return;
        case At::Opening:
            if (k < given_.edges.size()) {
                if (reads(r, k))
                    on(next, k, [&](PeerEdge &edge) { edge.taken(epochOf(me)); });
                ++me.edge;
                done("gives back", k);
                return;
            }
            ++me.epoch;
            me.pendingOut = edgesOf(r, &PeerModel::writes);
            me.pendingIn = edgesOf(r, &PeerModel::reads);
            me.packing = me.pendingOut != 0 ? waitsForReaders : Byte{0};
            me.reading = me.pendingIn != 0 ? Byte{1} : Byte{0};
            me.at = At::Waiting;
            done("waits");
            return;
        case At::Waiting:
            wait(from, next, r, done);
            return;
        case At::AskPack:
            if (k == given_.edges.size()) {
                launch(me, packs);
                me.packing = launched;
                me.at = At::Waiting;
                done("launches the kernel that packs");
                return;
            }
            if (writes(r, k) && !on(next, k, [&](PeerEdge &edge) { return edge.mayPack(epochOf(me)); }))
                me.at = At::Waiting;
            ++me.edge;
            done("asks whether it may pack", k);
            return;
        case At::Packed:
            if (k == given_.edges.size()) {
                me.packing = 0;
                me.at = At::Waiting;
                done("has packed");
                return;
            }
            if (writes(r, k))
                on(next, k, [&](PeerEdge &edge) { edge.packed(epochOf(me)); });
            ++me.edge;
            done("tells that it has packed", k);
            return;
        default:
            return;
        }
    }

    const char *settle(State &next, std::size_t r) const {
        Rank &me = next.ranks[r];
        if (mustSettle(next, r))
            return nullptr;
        me.packing = me.reading = me.pendingOut = 0;
        me.edge = static_cast<Byte>(given_.edges.size());
        return "settles";
    }
    bool mustSettle(const State &state, std::size_t r) const { return state.ranks[r].kernels[0] != 0; }
    bool settled(const State & /*state*/, std::size_t /*r*/) const { return true; }
    bool isPrivateOfProgram(const Rank &me, std::size_t r) const {
        switch (me.at) {
        case At::Opening:
            return !reads(r, me.edge);
        case At::Waiting:
            return me.packing == 0 && me.reading == 0;
        case At::AskPack:
        case At::Packed:
            return !writes(r, me.edge);
        default:
            return false;
        }
    }

  private:
    static constexpr Byte waitsForReaders = 1, launched = 2;
    static constexpr Byte packs = 1, unpacks = 2;

    static void launch(Rank &me, Byte kernel) { me.kernels[me.kernels[0] == 0 ? 0 : 1] = kernel; }
    static bool isQueued(const Rank &me, Byte kernel) { return me.kernels[0] == kernel || me.kernels[1] == kernel; }

    template <class Done>
    void runKernel(State &next, std::size_t r, Done &&done) const {
        Rank &me = next.ranks[r];
        if (me.kernels[0] == 0)
            return;
        const bool begins = me.kernelBegun == 0, isPacking = me.kernels[0] == packs;
        const Byte rows = rowsOf(me);
        for (std::size_t k = 0; k < given_.edges.size(); ++k) {
            Byte &buffer = next.buffers[k][slot(epochOf(me))];
            if (isPacking && writes(r, k)) {
                buffer = begins ? torn : rows;
            } else if (!isPacking && reads(r, k)) {
                if (buffer != rows)
                    next.wrong = wrongSource;
                next.ghosts[k] = begins ? torn : rows;
            }
        }
        me.kernelBegun = begins ? 1 : 0;
        if (!begins)
            me.kernels = {me.kernels[1], 0};
        done(isPacking ? "packs on its device" : "unpacks on its device");
    }

    template <class Done>
    void wait(const State &from, State &next, std::size_t r, Done &&done) const {
        Rank &me = next.ranks[r];
        if (me.packing == 0 && me.reading == 0) {
            me.at = At::Idle;
            done("has all rows");
            return;
        }
        bool mayPack = me.packing == waitsForReaders;
        for (std::size_t k = 0; k < given_.edges.size(); ++k)
            mayPack = mayPack && (!writes(r, k) ||
                                  on(next, k, [&](PeerEdge &edge) { return edge.mayPack(epochOf(from.ranks[r])); }));
        if (mayPack) { // else asking changes nothing
            me.edge = 0;
            me.at = At::AskPack;
            done("begins to ask whether it may pack");
        }
        if (me.packing == launched && !isQueued(me, packs)) {
            me.edge = 0;
            me.at = At::Packed;
            done("sees that the kernel has packed");
        }
        for (std::size_t k = 0; k < given_.edges.size(); ++k)
            if (has(me.pendingIn, k) &&
                on(next, k, [&](PeerEdge &edge) { return edge.poll(epochOf(me)); }) == EdgeState::Open) {
                clear(me.pendingIn, k);
                done("sees the rows", k);
            }
        if (me.reading != 0 && me.pendingIn == 0) {
            launch(me, unpacks);
            me.reading = 0;
            done("launches the kernel that unpacks");
        }
    }
};

class EdgeOrders : public testing::TestWithParam<EdgeCase> {};

template <class Model>
void expectRightInAllOrders(const EdgeCase &given) {
    constexpr std::size_t maxStates = 3'000'000;
    const Model model(given);
    const test::Exploration found = test::ModelChecker(model).explore(model.first(), maxStates);
    EXPECT_EQ(found.violation, "");
    EXPECT_GT(found.ends, 0U);
    testing::Test::RecordProperty("states", std::to_string(found.states));
    std::printf("%s: %zu states, %zu steps\n", given.name, found.states, found.steps);
}

TEST_P(EdgeOrders, OfNodeSharedExchangesEndWithTheRowsOfTheEpoch) {
    expectRightInAllOrders<NodeSharedModel>(GetParam());
}

TEST_P(EdgeOrders, OfDevicePeerExchangesEndWithTheRowsOfTheEpoch) {
    if (GetParam().fault == Fault::Dies)
        GTEST_SKIP() << "nothing waits for a device of another rank";
    expectRightInAllOrders<PeerModel>(GetParam());
}

constexpr std::uint32_t initial = EpochFlag::initialEpoch, beforeWrap = static_cast<std::uint32_t>(-2);

INSTANTIATE_TEST_SUITE_P(
    Failures, EdgeOrders,
    testing::Values(EdgeCase{"twoRanksWithoutFailure", 2, {{0, 1}}, 6, 1, beforeWrap, Fault::None},
                    EdgeCase{"twoRanks", 2, {{0, 1}}, 4, 4, initial, Fault::Throws},
                    EdgeCase{"twoRanksAtTheWrap", 2, {{0, 1}}, 4, 4, beforeWrap, Fault::Throws},
                    EdgeCase{"twoRanksBothWays", 2, {{0, 1}, {1, 0}}, 3, 3, beforeWrap, Fault::Throws},
                    EdgeCase{"oneWriterTwoReaders", 3, {{0, 1}, {0, 2}}, 3, 1, beforeWrap, Fault::Throws},
                    EdgeCase{"twoWritersOneReader", 3, {{1, 0}, {2, 0}}, 3, 1, beforeWrap, Fault::Throws},
                    EdgeCase{"threeRanksInARow", 3, {{0, 1}, {1, 2}}, 3, 1, initial, Fault::Throws},
                    EdgeCase{"processesOfTwoRanksEnd", 2, {{0, 1}}, 4, 1, beforeWrap, Fault::Dies},
                    EdgeCase{"processesOfThreeRanksEnd", 3, {{0, 1}, {0, 2}}, 3, 1, beforeWrap, Fault::Dies}),
    [](const auto &test) { return std::string(test.param.name); });

} // namespace
} // namespace DNDS
