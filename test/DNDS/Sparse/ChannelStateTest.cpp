// The tables that drive exchanges, entry by entry, and all interleavings of two ranks.

#include "DNDS/Sparse/CommBuffer.hpp"
#include "DNDS/Sparse/ExchangeStep.hpp"

#include "support/ModelChecker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

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

/// Two ranks that send each other one message a step: a replica of each channel at each end, and messages in order.
class RanksModel {
  public:
    static constexpr std::uint8_t steps = 4;
    enum Phase : std::uint8_t { Sends, Receives, Uses };
    struct State {
        struct Side {
            ChannelState out, in;
            std::uint8_t step;
            Phase phase;
            std::array<std::int8_t, 3> inbox; ///< numbers of steps, negative without data; 0: none
        };
        Side sides[2];
        std::uint8_t wrong;
    };
    struct Step {
        int rank;
        const char *does;
    };

    template <class Take>
    void forEachStep(const State &from, Take &&take) const {
        for (int me = 0; me < 2; ++me) {
            State then = from;
            State::Side &side = then.sides[me];
            const auto done = [&](const char *does) {
                take(Step{me, does}, then);
                then = from;
            };
            if (isSending(side.out)) { // MPI has read the data, at any time
                event(then, side.out, ChannelEvent::Release);
                done("is done with what it sent");
            }
            if (side.step == steps)
                continue;
            const auto number = static_cast<std::int8_t>(side.step + 1);
            if (side.phase == Sends && side.out == Stale)
                for (const ChannelEvent what : {ChannelEvent::Send, ChannelEvent::SendNull}) {
                    event(then, side.out, what);
                    auto &inbox = then.sides[1 - me].inbox;
                    const auto place = std::ranges::find(inbox, std::int8_t{0});
                    if (place == inbox.begin() + 2) // two buffers are enough
                        then.wrong = 1;
                    *place = static_cast<std::int8_t>(what == ChannelEvent::Send ? number : -number);
                    side.phase = Receives;
                    done("sends");
                }
            if (side.phase == Receives && side.inbox[0] != 0) {
                event(then, side.in, side.inbox[0] > 0 ? ChannelEvent::Send : ChannelEvent::SendNull);
                event(then, side.in, ChannelEvent::Receive);
                if (side.inbox[0] != number && side.inbox[0] != -number)
                    then.wrong = 1;
                std::shift_left(side.inbox.begin(), side.inbox.end(), 1);
                side.inbox.back() = 0;
                side.phase = Uses;
                done("receives");
            }
            if (side.phase == Uses) {
                event(then, side.in, ChannelEvent::Discard);
                side.phase = Sends;
                ++side.step;
                done("uses what it received");
            }
        }
    }
    std::string wrong(const State &state) const { return state.wrong != 0 ? "replicas differ" : ""; }
    bool isFault(const Step & /*step*/) const { return false; }
    bool mayEnd(const State &state) const { return state.sides[0].step == steps && state.sides[1].step == steps; }
    std::string describe(const Step &step) const { return std::to_string(step.rank) + " " + step.does; }

  private:
    static void event(State &of, ChannelState &state, ChannelEvent what) {
        if (const auto after = stateAfter(state, what))
            state = *after;
        else
            of.wrong = 1;
    }
};

TEST(ChannelStates, ReplicasStayInStepInAllInterleavings) {
    const RanksModel model;
    const test::Exploration found = test::ModelChecker(model).explore(RanksModel::State{}, 100'000);
    EXPECT_EQ(found.violation, "");
    EXPECT_GT(found.ends, 0U);
}

} // namespace
} // namespace DNDS
