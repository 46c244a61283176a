#include "DNDS/Exchange/ExchangeState.hpp"

#include <algorithm>

namespace DNDS {

// Detects, and cannot prevent, writes and moves during an exchange. Ranks check alone; a failure revokes the
// communicator.
void Exchange::requireUnchanged() {
    // Called when rows have arrived: the arrays are looked up again as at start, and compared with the layouts that
    // were moved. O(members); with debug checks O(bytes sent).
    State &state = *state_;
    const bool pull = direction_ == Direction::Pull;
    const auto unchanged = [](const RowLayout &atStart, const RowLayout &now) {
        return sameMemory(atStart, now) && sameRows(atStart, now);
    };
    for (std::size_t m = 0; m < state.members.size(); ++m) {
        const ExchangeMember &member = state.members[m];
        RowLayout &father = state.fathersNow[m];
        RowLayout &son = state.sonsNow[m];
        father.keepsMemory = son.keepsMemory = false; // looked at, not used: two atomic counts a layout less
        try {
            member.father(space_, pull ? Access::Read : Access::Write, father);
            member.son(space_, pull || state.zeroing ? Access::Write : Access::Read, son);
        } catch (const Error &error) {
            throw StateError(fmt::format("'{}' was changed between start and wait of a {}: {}", member.name,
                                         directionName(direction_), error.message()));
        }
        DNDS_CHECK(unchanged(state.fathers[m], father), StateError,
                   "father of '{}' was resized, swapped or moved between start and wait of a {}{}", member.name,
                   directionName(direction_), pull ? ": peers got the rows that it had at start" : "");
        DNDS_CHECK(unchanged(state.sons[m], son), StateError,
                   "son of '{}' was resized, swapped or moved between start and wait of a {}: {}", member.name,
                   directionName(direction_),
                   pull ? "its ghosts arrived in the memory that it had at start"
                        : "owners got the rows that it had at start");
    }
    if (!state.checksSent())
        return;
    // Hashes by peer and part, in the order of the plan: the first that differs names both. A write that stores the
    // same bytes goes unnoticed.
    std::vector<std::uint64_t> now;
    state.hashSent(direction_, now);
    const auto [was, is] = std::ranges::mismatch(state.sent, now);
    if (was == state.sent.end())
        return;
    const auto changed = static_cast<std::size_t>(was - state.sent.begin());
    const std::size_t parts = state.plan.outgoing.front().parts.size();
    // The member to which the part belongs: parts of all members are numbered through.
    std::size_t member = 0;
    for (std::size_t part = changed % parts; part >= static_cast<std::size_t>(state.fathers[member].partCount);
         ++member)
        part -= static_cast<std::size_t>(state.fathers[member].partCount);
    throw StateError(fmt::format("{} of '{}' that rank {} gets were written between start and wait of a {}: it has got "
                                 "what they held at any moment in between",
                                 pull ? "rows" : "ghosts", state.members[member].name,
                                 state.plan.outgoing[changed / parts].peer, directionName(direction_)));
}

} // namespace DNDS
