// The tables that drive exchanges, entry by entry, and all interleavings of two ranks.

#include "DNDS/Sparse/ChannelState.hpp"
#include "DNDS/Sparse/ExchangeStep.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace DNDS {
namespace {

using enum ChannelState;

/// A table as text: a line an event, a letter the state after it in each state, '-' for nonsense.
template <std::size_t events, std::size_t states, class After>
std::string tableOf(const std::string &letters, After &&after) {
    std::string table;
    for (std::size_t event = 0; event < events; ++event) {
        for (std::size_t state = 0; state < states; ++state) {
            const auto next = after(state, event);
            table += next ? letters[static_cast<std::size_t>(*next)] : '-';
        }
        table += ' ';
    }
    return table;
}

std::optional<ChannelState> channelAfter(std::size_t state, std::size_t event) {
    return stateAfter(static_cast<ChannelState>(state), static_cast<ChannelEvent>(event));
}

TEST(ChannelStates, TheTableOfChannels) {
    // States: t stale, s sending, n sendingNull, r received, u receivedNull.
    EXPECT_EQ((tableOf<channelEvents, channelStates>("tsnru", channelAfter)), "s---- n---- truru ---tt -tt-- ");
}

TEST(ChannelStates, TheTableOfExchanges) {
    // Steps: r at rest, s sent, a arrived, t set.
    const auto after = [](std::size_t step, std::size_t call) {
        return stepAfter(static_cast<ExchangeStep>(step), static_cast<ExchangeCall>(call));
    };
    EXPECT_EQ((tableOf<exchangeCalls, exchangeSteps>("rsat", after)), "s--- -aat --t- ---r ");
}

TEST(ChannelStates, ManyChannelsFollowTheTable) {
    ChannelStates channels;
    channels.resize(4);
    channels.send(1, ChannelEvent::Send, "u");
    channels.send(2, ChannelEvent::SendNull, "u");
    const auto now = [&] { return std::vector{channels[0], channels[1], channels[2], channels[3]}; };
    EXPECT_EQ(now(), (std::vector{Stale, Sending, SendingNull, Stale}));
    test::expectContains(
        test::messageOf<StateError>([&] { channels.send(2, ChannelEvent::Send, "the channels of u"); }),
        "send on the channels of u, which is sendingNull");
    EXPECT_THROW(channels.end(ChannelEvent::Discard, "u"), StateError) << "nothing was received";
    channels.reset();
    EXPECT_EQ(now(), std::vector(4, Stale));
    for (const ChannelEvent end : {ChannelEvent::Discard, ChannelEvent::Release}) {
        channels.send(0, ChannelEvent::Send, "u");
        channels.send(3, ChannelEvent::SendNull, "u");
        if (end == ChannelEvent::Discard) {
            channels.advanceAll(ChannelEvent::Receive, "u");
            EXPECT_TRUE(channels.hasData(0, "u"));
            EXPECT_FALSE(channels.hasData(1, "u")) << "nothing was sent";
            EXPECT_EQ(now(), (std::vector{Received, ReceivedNull, Stale, ReceivedNull}));
        }
        channels.end(end, "u");
        EXPECT_EQ(now(), std::vector(4, Stale));
    }
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
                all.back().event(all.back().sides[me].out, ChannelEvent::Release);
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

TEST(ChannelStates, ReplicasStayInStepInAllInterleavings) {
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
