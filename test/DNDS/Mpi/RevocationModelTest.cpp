// Every order of steps in which ranks on several nodes fail, learn of a failure, stop, and recover. MPI and processes
// cannot be part of such a search, so this is a model of Revocation.cpp and of CommunicatorContext::recover: a step is
// one atomic operation on the record of a node, one message, or one meeting. When they change, it has to change.

#include "support/ModelChecker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {
namespace {

using Byte = std::uint8_t;

enum class At : Byte {
    Running,     ///< in the program: looks now and then, may fail
    Claiming,    ///< `note`: before the compare-and-swap
    Telling,     ///< `note`: before the text is complete
    Listening,   ///< `listen`: was the first of its node to note a notice, and takes the others that are there
    Forwarding,  ///< `forward`
    Throwing,    ///< `throwRevoked`: before it reads whom to name
    Stopped,     ///< out of all calls; the program is about to call `recover`
    Meeting,     ///< `meet`: has come, and waits for the others
    Met,         ///< has left the meeting
    Forgetting,  ///< `forget` of the first rank of a node: before it takes `told` back
    Forgetting2, ///< before it takes `failed` back
    Renewed,     ///< before the third meeting
    Ended        ///< stopped, with no rank left to recover
};

/// Why a rank claims, tells and forwards, which decides its next step.
enum class Why : Byte { Fails, Recovers, Hears, Looks };

template <std::size_t ranks>
struct RevocationState {
    struct Rank {
        At at;
        Why why;
        Byte claims;     ///< the failed rank that it is noting, plus one
        Byte generation; ///< as in Revocation
        Byte forwarded;
        Byte meetings; ///< number entered, over all recoveries
    };
    struct Record { ///< one per node
        Byte failed;
        Byte told;
        Byte text; ///< whose, plus one
    };
    static constexpr std::size_t maxNotices = 3;

    std::array<Rank, ranks> rank;
    std::array<Record, ranks> record; ///< one per node
    /// From a rank to a rank: 8 times the generation plus the failed rank plus one, oldest first; 0: none.
    std::array<std::array<std::array<Byte, maxNotices>, ranks>, ranks> notices;
    std::array<Byte, 3> failedIn;                   ///< per generation: a bit for each rank that has failed
    std::array<std::array<Byte, ranks>, 3> namedOn; ///< per generation and node: rank named by RevokedError, plus one
    Byte failuresLeft;
    Byte wrong; ///< a number of `RevocationModel::wrong`
};

struct RevocationCase {
    const char *name;
    std::vector<std::size_t> nodeOf; ///< node of each rank
    Byte failures;                   ///< at most
    Byte recoveries;
    std::size_t failsFirst; ///< ranks below this one; that others do is the same by symmetry
};

template <std::size_t ranks>
class RevocationModel {
  public:
    using State = RevocationState<ranks>;
    struct Step {
        Byte rank;
        const char *does;
        Byte other;
    };

    explicit RevocationModel(const RevocationCase &given)
        : nodeOf_(given.nodeOf), recoveries_(given.recoveries), failsFirst_(given.failsFirst) {
        for (std::size_t rank = 0; rank < ranks; ++rank) // as in Revocation::connect
            for (std::size_t distance = 1; distance < ranks; distance *= 2)
                for (const std::size_t other : {(rank + distance) % ranks, (rank + ranks - distance) % ranks})
                    if (nodeOf_[other] != nodeOf_[rank])
                        isNeighbour_[rank][other] = true;
    }

    State first(const RevocationCase &given) const {
        State state{};
        state.failuresLeft = given.failures;
        return state;
    }

    template <class Take>
    void forEachStep(const State &from, Take &&take) const {
        for (std::size_t rank = 0; rank < ranks; ++rank)
            stepsOf(from, rank, [&](const char *does, std::size_t other, State next) {
                while (isPrivate(next, rank))
                    stepsOf(State(next), rank, [&](const char *, std::size_t, const State &after) { next = after; });
                dropWhatSaysNothing(next, rank);
                take(Step{static_cast<Byte>(rank), does, static_cast<Byte>(other)}, next);
            });
    }

    std::string wrong(const State &state) const {
        constexpr std::array<const char *, 5> texts{"", "a rank is named that has not failed since the last recovery",
                                                    "two ranks of a node name different ranks",
                                                    "the text is not that of the rank that is named",
                                                    "too many notices"};
        return texts.at(state.wrong);
    }

    /// All ranks continue without a failure, or all have stopped.
    bool mayEnd(const State &state) const {
        for (const auto &rank : state.rank)
            if (rank.generation != state.rank[0].generation ||
                (rank.at != At::Ended && (rank.at != At::Running || state.failedIn[rank.generation] != 0)))
                return false;
        return true;
    }

    bool isFault(const Step &step) const {
        const std::string_view does = step.does;
        return does == "fails" || does == "wants to begin anew";
    }

    std::string describe(const Step &step) const {
        std::string text = "rank " + std::to_string(step.rank) + " " + step.does;
        if (step.other < ranks)
            text += " " + std::to_string(step.other);
        return text;
    }

  private:
    static constexpr std::size_t nobody = 255;
    static constexpr Byte wrongName = 1, differentNames = 2, wrongText = 3, tooManyNotices = 4;

    bool isFirst(std::size_t rank) const {
        for (std::size_t other = 0; other < rank; ++other)
            if (nodeOf_[other] == nodeOf_[rank])
                return false;
        return true;
    }

    using Rank = typename State::Rank;
    /// As in `listen`.
    static void hear(Rank &me, Byte notice) {
        if (notice / 8 != me.generation)
            return;
        me.at = At::Claiming;
        me.why = Why::Hears;
        me.claims = notice % 8;
    }
    /// A notice that changes nothing when it is heard may be heard at once.
    void dropWhatSaysNothing(State &state, std::size_t rank) const {
        if (state.rank[rank].at != At::Running)
            return;
        for (std::size_t sender = 0; sender < ranks; ++sender)
            while (const Byte notice = state.notices[sender][rank][0]) {
                Rank heard = state.rank[rank];
                hear(heard, notice);
                if (std::memcmp(&heard, &state.rank[rank], sizeof heard) != 0)
                    break;
                takeNotice(state, sender, rank);
            }
    }

    bool isAlone(std::size_t rank) const { return std::count(nodeOf_.begin(), nodeOf_.end(), nodeOf_[rank]) == 1; }
    /// Whether the only step of a rank is one that no other rank can tell from the step before: it is not worth a
    /// state.
    bool isPrivate(const State &state, std::size_t rank) const {
        switch (state.rank[rank].at) {
        case At::Stopped:
        case At::Met:
        case At::Renewed:
            return true;
        case At::Forwarding: // what is sent may be seen at any time later
        case At::Throwing:
            return state.record[nodeOf_[rank]].told == 1;
        case At::Claiming:
        case At::Telling:
        case At::Forgetting:
        case At::Forgetting2:
            return isAlone(rank);
        case At::Listening:
            for (const auto &queues : state.notices)
                if (queues[rank][0] != 0)
                    return false;
            return true;
        default:
            return false;
        }
    }

    static Byte takeNotice(State &state, std::size_t from, std::size_t to) {
        auto &queue = state.notices[from][to];
        const Byte notice = queue[0];
        for (std::size_t k = 0; k + 1 < queue.size(); ++k)
            queue[k] = queue[k + 1];
        queue.back() = 0;
        return notice;
    }
    static void send(State &state, std::size_t from, std::size_t to, Byte notice) {
        for (Byte &place : state.notices[from][to])
            if (place == 0) {
                place = notice;
                return;
            }
        state.wrong = tooManyNotices;
    }

    template <class Take>
    void stepsOf(const State &from, std::size_t r, Take &&take) const {
        State next = from;
        auto &me = next.rank[r];
        auto &record = next.record[nodeOf_[r]];
        const auto done = [&](const char *does, std::size_t other = nobody) {
            take(does, other, next);
            next = from;
        };
        const auto forEachNotice = [&](auto &&act) {
            for (std::size_t sender = 0; sender < ranks; ++sender)
                if (from.notices[sender][r][0] != 0) {
                    act(takeNotice(next, sender, r));
                    done("takes a notice of rank", sender);
                }
        };
        switch (me.at) {
        case At::Running:
            if (next.failuresLeft > 0 && (r < failsFirst_ || from.failedIn[0] != 0)) {
                --next.failuresLeft;
                next.failedIn[me.generation] |= static_cast<Byte>(1U << r);
                me.at = At::Claiming;
                me.why = Why::Fails;
                if (me.generation < recoveries_) {
                    me.at = At::Stopped;
                    done("wants to begin anew");
                    --next.failuresLeft;
                    next.failedIn[me.generation] |= static_cast<Byte>(1U << r);
                }
                me.at = At::Claiming;
                me.why = Why::Fails;
                me.claims = static_cast<Byte>(r + 1);
                done("fails");
            }
            forEachNotice([&](Byte notice) { hear(me, notice); });
            if (record.failed != 0) {
                me.at = At::Forwarding;
                me.why = Why::Looks;
                done("sees that the record is set");
            }
            return;
        case At::Claiming:
            if (record.failed == 0) {
                record.failed = me.claims;
                me.at = At::Telling;
                done("is the first to set the record");
            } else {
                // `listen` keeps listening, `revoke` forwards revocations that it did not claim
                me.at = me.why == Why::Hears ? At::Running : At::Forwarding;
                me.claims = 0;
                done("finds the record set");
            }
            return;
        case At::Telling:
            record.text = me.claims;
            record.told = 1;
            me.claims = 0;
            me.at = me.why == Why::Hears ? At::Listening : At::Forwarding;
            done("completes the text");
            return;
        case At::Listening:
            forEachNotice([](Byte) {}); // `note` does nothing any more
            me.at = At::Forwarding;
            done("hears no more");
            return;
        case At::Forwarding:
            if (me.forwarded == 0 && record.told == 0)
                return; // waits for the text
            if (me.forwarded == 0)
                for (std::size_t other = 0; other < ranks; ++other)
                    if (isNeighbour_[r][other])
                        send(next, r, other, static_cast<Byte>(8U * me.generation + record.failed));
            me.forwarded = 1;
            if (me.why == Why::Fails)
                stop(me);
            else if (me.why == Why::Recovers)
                meet(me);
            else
                me.at = At::Throwing;
            done("forwards");
            return;
        case At::Throwing:
            if (record.told == 0)
                return;
            name(next, r);
            stop(me);
            done("throws");
            return;
        case At::Stopped:
            me.at = At::Claiming;
            me.why = Why::Recovers;
            me.claims = static_cast<Byte>(r + 1);
            done("calls recover");
            return;
        case At::Meeting:
            // Before the first recovery channels have the communicator of the notices.
            if (me.meetings % 3 != 0 && me.generation == 0)
                forEachNotice([](Byte) {});
            for (const auto &other : from.rank)
                if (other.meetings < me.meetings)
                    return;
            me.at = me.meetings % 3 == 0 ? At::Running : At::Met;
            done("leaves the meeting");
            return;
        case At::Met:
            if (me.meetings % 3 == 1) {
                meet(me);
                done("comes to the next meeting");
            } else {
                ++me.generation;
                me.forwarded = 0;
                me.at = isFirst(r) ? At::Forgetting : At::Renewed;
                done("begins the next generation");
            }
            return;
        case At::Forgetting:
            record.told = 0;
            me.at = At::Forgetting2;
            done("takes back that it was told");
            return;
        case At::Forgetting2:
            record.failed = 0;
            me.at = At::Renewed;
            done("clears the record");
            return;
        case At::Renewed:
            meet(me);
            done("comes to the last meeting");
            return;
        case At::Ended:
            return;
        }
    }

    void stop(Rank &me) const { me.at = me.generation < recoveries_ ? At::Stopped : At::Ended; }
    static void meet(Rank &me) {
        me.at = At::Meeting;
        ++me.meetings;
    }
    void name(State &state, std::size_t r) const {
        const std::size_t node = nodeOf_[r];
        const Byte generation = state.rank[r].generation, named = state.record[node].failed;
        Byte &first = state.namedOn[generation][node];
        if (named == 0 || (static_cast<unsigned>(state.failedIn[generation]) >> (named - 1U) & 1U) == 0)
            state.wrong = wrongName;
        else if (first != 0 && first != named)
            state.wrong = differentNames;
        else if (state.record[node].text != named)
            state.wrong = wrongText;
        first = named;
    }

    std::vector<std::size_t> nodeOf_;
    Byte recoveries_;
    std::size_t failsFirst_;
    std::array<std::array<bool, ranks>, ranks> isNeighbour_{};
};

class RevocationOrders : public testing::TestWithParam<RevocationCase> {};

template <std::size_t ranks>
test::Exploration explored(const RevocationCase &given) {
    constexpr std::size_t maxStates = 3'000'000;
    const RevocationModel<ranks> model(given);
    return test::ModelChecker(model).explore(model.first(given), maxStates);
}

TEST_P(RevocationOrders, StopAllRanksAndNothingOldAfterARecovery) {
    const RevocationCase &given = GetParam();
    const test::Exploration found = given.nodeOf.size() == 2   ? explored<2>(given)
                                    : given.nodeOf.size() == 3 ? explored<3>(given)
                                    : given.nodeOf.size() == 4 ? explored<4>(given)
                                                               : explored<6>(given);
    EXPECT_EQ(found.violation, "");
    EXPECT_GT(found.ends, 0U);
    RecordProperty("states", std::to_string(found.states));
    std::printf("%s: %zu states, %zu steps\n", given.name, found.states, found.steps);
}

INSTANTIATE_TEST_SUITE_P(Nodes, RevocationOrders,
                         testing::Values(RevocationCase{"twoRanksOnOneNode", {0, 0}, 4, 2, 2},
                                         RevocationCase{"twoNodes", {0, 1}, 4, 2, 1}, //
                                         RevocationCase{"threeRanksOnTwoNodes", {0, 0, 1}, 3, 2, 3},
                                         RevocationCase{"threeNodes", {0, 1, 2}, 4, 2, 1},
                                         RevocationCase{"threeRanksAndOne", {0, 0, 0, 1}, 2, 1, 4},
                                         RevocationCase{"fourRanksOnTwoNodes", {0, 0, 1, 1}, 2, 1, 2},
                                         RevocationCase{"fourNodes", {0, 1, 2, 3}, 2, 1, 1},
                                         RevocationCase{
                                             "sixNodes", {0, 1, 2, 3, 4, 5}, 2, 0, 1}, // not all are neighbours
                                         // Rank 2 has no neighbour on the other node.
                                         RevocationCase{"fiveRanksAndOne", {0, 0, 0, 0, 0, 1}, 5, 0, 6}),
                         [](const auto &test) { return std::string(test.param.name); });

} // namespace
} // namespace DNDS
