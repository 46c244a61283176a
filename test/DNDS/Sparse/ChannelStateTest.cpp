// All interleavings of the two sides of a channel, step by step.

#include "DNDS/Sparse/ChannelState.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>
#include <vector>

namespace DNDS {
namespace {

using enum ChannelState;

TEST(ChannelState, NonsenseHasNoNextState) {
    int sensible = 0;
    for (const ChannelState state : {Stale, Sending, SendingNull, Received, ReceivedNull})
        for (const ChannelEvent event :
             {ChannelEvent::Send, ChannelEvent::SendNull, ChannelEvent::Receive, ChannelEvent::Discard})
            sensible += stateAfter(state, event).has_value() ? 1 : 0;
    EXPECT_EQ(sensible, 9);
    EXPECT_EQ(stateAfter(Stale, ChannelEvent::Send), Sending);
    EXPECT_EQ(stateAfter(Sending, ChannelEvent::Receive), Received);
    EXPECT_EQ(stateAfter(ReceivedNull, ChannelEvent::Discard), Stale);
    EXPECT_FALSE(stateAfter(Sending, ChannelEvent::Send)) << "the receiver may be reading";
    EXPECT_FALSE(stateAfter(Sending, ChannelEvent::Discard)) << "nothing has come";
}

/// In which order the sides do what they do.
enum class Order { Right, PublishBeforeData, WriteBeforeStale, DiscardBeforeCopy };

/// A channel in memory that both sides see: one word and data of two cells, each step one access.
struct SharedChannel {
    static constexpr int messages = 3;

    ChannelState word = Stale;
    int data[2] = {0, 0};
    int senderStep = 0, sent = 0;
    int receiverStep = 0, received = 0;
    int copy[2] = {0, 0};
    bool wrong = false;

    auto key() const {
        return std::tuple(word, data[0], data[1], senderStep, sent, receiverStep, received, copy[0], copy[1], wrong);
    }
    bool over() const { return received == messages; }

    void event(ChannelEvent what) {
        if (const auto next = stateAfter(word, what))
            word = *next;
        else
            wrong = true;
    }
    /// The possible next states.
    std::vector<SharedChannel> next(Order order) const {
        std::vector<SharedChannel> all;
        if (sent < messages)
            senderMoves(order, all);
        receiverMoves(order, all);
        return all;
    }
    void senderMoves(Order order, std::vector<SharedChannel> &all) const {
        const auto move = [&](auto &&change) {
            change(all.emplace_back(*this));
            ++all.back().senderStep;
        };
        const int publishAt = order == Order::PublishBeforeData ? 1 : 3;
        if (senderStep == 0) {
            if (word != Stale && order != Order::WriteBeforeStale)
                return;
            if (word == Stale) { // nothing to send
                all.push_back(*this);
                all.back().event(ChannelEvent::SendNull);
                ++all.back().sent;
            }
            move([](SharedChannel &) {});
        } else if (senderStep == publishAt) {
            if (word != Stale) {
                if (order == Order::WriteBeforeStale)
                    return; // it waits here instead
            }
            move([](SharedChannel &c) { c.event(ChannelEvent::Send); });
            finishSender(all.back());
        } else {
            const int cell = senderStep - (publishAt == 1 ? 2 : 1);
            move([&](SharedChannel &c) { c.data[cell] = c.sent + 1; });
            finishSender(all.back());
        }
    }
    static void finishSender(SharedChannel &c) {
        if (c.senderStep == 4) {
            c.senderStep = 0;
            ++c.sent;
        }
    }
    void receiverMoves(Order order, std::vector<SharedChannel> &all) const {
        if (receiverStep == 0) {
            if (!isSending(word))
                return;
            all.push_back(*this);
            SharedChannel &c = all.back();
            c.event(ChannelEvent::Receive);
            c.receiverStep = 1;
            return;
        }
        SharedChannel c = *this;
        const bool null = receiverStep == 1 && word == ReceivedNull;
        const int discardAt = order == Order::DiscardBeforeCopy && !null ? 1 : 3;
        if (null || receiverStep == discardAt) {
            c.event(ChannelEvent::Discard);
            c.receiverStep = null ? 4 : receiverStep + 1;
            c.copy[0] = null ? received + 1 : c.copy[0];
            c.copy[1] = null ? received + 1 : c.copy[1];
        } else {
            const int cell = receiverStep - (discardAt == 1 ? 2 : 1);
            c.copy[cell] = data[cell];
            ++c.receiverStep;
        }
        if (c.receiverStep == 4) {
            c.receiverStep = 0;
            ++c.received;
            c.wrong = c.wrong || c.copy[0] != c.received || c.copy[1] != c.received;
        }
        all.push_back(c);
    }
};

struct Verdict {
    bool wrong = false;
    bool stuck = false;
    bool finishes = false;
    std::size_t states = 0;
};

Verdict explore(Order order) {
    Verdict verdict;
    std::set<decltype(SharedChannel().key())> seen;
    std::vector<SharedChannel> open{SharedChannel()};
    while (!open.empty()) {
        const SharedChannel now = open.back();
        open.pop_back();
        if (!seen.insert(now.key()).second)
            continue;
        verdict.wrong = verdict.wrong || now.wrong;
        verdict.finishes = verdict.finishes || now.over();
        if (now.wrong || now.over())
            continue;
        const auto next = now.next(order);
        verdict.stuck = verdict.stuck || next.empty();
        open.insert(open.end(), next.begin(), next.end());
    }
    verdict.states = seen.size();
    return verdict;
}

TEST(ChannelState, SharedWordDeliversInAllInterleavings) {
    const Verdict verdict = explore(Order::Right);
    EXPECT_FALSE(verdict.wrong);
    EXPECT_FALSE(verdict.stuck);
    EXPECT_TRUE(verdict.finishes);
    EXPECT_GT(verdict.states, 30U);
}

TEST(ChannelState, EachWrongOrderIsFound) {
    EXPECT_TRUE(explore(Order::PublishBeforeData).wrong);
    EXPECT_TRUE(explore(Order::WriteBeforeStale).wrong);
    EXPECT_TRUE(explore(Order::DiscardBeforeCopy).wrong);
}

/// Two ranks that send each other one message a step: a replica of each channel at each end, and messages in order.
struct Ranks {
    static constexpr int steps = 4;
    struct Side {
        ChannelState out = Stale;
        ChannelState in = Stale;
        int step = 0;
        int phase = 0; ///< 0: sends, 1: receives, 2: uses
        std::vector<int> inbox;
        auto key() const { return std::tuple(out, in, step, phase, inbox); }
    };
    Side sides[2];
    bool wrong = false;

    auto key() const { return std::tuple(sides[0].key(), sides[1].key(), wrong); }
    bool over() const { return sides[0].step == steps && sides[1].step == steps; }
    void event(ChannelState &state, ChannelEvent what) {
        if (const auto after = stateAfter(state, what))
            state = *after;
        else
            wrong = true;
    }
    std::vector<Ranks> next() const {
        std::vector<Ranks> all;
        for (int me = 0; me < 2; ++me) {
            const Side &now = sides[me];
            if (isSending(now.out)) { // MPI has read the data, at any time
                all.push_back(*this);
                all.back().sides[me].out = Stale;
            }
            if (now.step == steps)
                continue;
            if (now.phase == 0 && now.out == Stale)
                for (const ChannelEvent what : {ChannelEvent::Send, ChannelEvent::SendNull}) {
                    Ranks &then = all.emplace_back(*this);
                    then.event(then.sides[me].out, what);
                    then.sides[1 - me].inbox.push_back(what == ChannelEvent::Send ? now.step + 1 : -now.step - 1);
                    then.sides[me].phase = 1;
                }
            if (now.phase == 1 && !now.inbox.empty()) {
                Ranks &then = all.emplace_back(*this);
                Side &side = then.sides[me];
                const int message = now.inbox.front();
                side.inbox.erase(side.inbox.begin());
                then.event(side.in, message > 0 ? ChannelEvent::Send : ChannelEvent::SendNull);
                then.event(side.in, ChannelEvent::Receive);
                then.wrong = then.wrong || (message > 0 ? message : -message) != now.step + 1;
                side.phase = 2;
            }
            if (now.phase == 2) {
                Ranks &then = all.emplace_back(*this);
                then.event(then.sides[me].in, ChannelEvent::Discard);
                then.sides[me].phase = 0;
                ++then.sides[me].step;
            }
        }
        return all;
    }
};

TEST(ChannelState, ReplicasStayInStepInAllInterleavings) {
    std::set<decltype(Ranks().key())> seen;
    std::vector<Ranks> open{Ranks()};
    std::size_t mostInFlight = 0;
    bool finishes = false;
    while (!open.empty()) {
        const Ranks now = open.back();
        open.pop_back();
        if (!seen.insert(now.key()).second)
            continue;
        ASSERT_FALSE(now.wrong);
        finishes = finishes || now.over();
        for (const auto &side : now.sides)
            mostInFlight = std::max(mostInFlight, side.inbox.size());
        const auto next = now.next();
        ASSERT_TRUE(now.over() || !next.empty()) << "stuck";
        open.insert(open.end(), next.begin(), next.end());
    }
    EXPECT_TRUE(finishes);
    EXPECT_EQ(mostInFlight, 2U) << "in a direction: two buffers are enough";
}

} // namespace
} // namespace DNDS
