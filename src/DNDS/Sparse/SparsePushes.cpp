// Pushes: what blocks have deposited into their ghosts goes to the cells that these stand for.

#include "DNDS/Exchange/Combine.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/Sparse/SparseFieldsState.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

namespace DNDS {

/// The deposit of one block into cells of another one, by one channel.
struct SparseFields::State::Deposit {
    std::size_t field = 0;            ///< in `members`
    ChannelEnd cells;                 ///< the destination, and its block
    std::int32_t depositor = 0;       ///< the other block's number in the grid
    std::size_t channel = 0;          ///< in the list of channels that the two blocks share with others
    const ChannelEnd *from = nullptr; ///< ghosts of this rank
    const std::byte *data = nullptr;  ///< the values, where they are from another rank

    /// The order in which deposits are applied. It does not depend on ranks: lists of channels have those between two
    /// blocks in the same order everywhere.
    auto order() const { return std::tuple(field, cells.block, depositor, channel); }
};

namespace {

/// Combines consecutive cells at `from` with some rows of a block.
void combineRows(const RowList &rows, std::size_t cellBytes, CombineFunction combine, std::byte *block,
                 const std::byte *from) {
    index first = 0;
    index count = 0;
    const auto combineRun = [&] {
        combine(block + toSize(first) * cellBytes, from, toSize(count) * cellBytes);
        from += toSize(count) * cellBytes;
    };
    rows.forEach([&](index row) {
        if (row == first + count) {
            ++count;
            return;
        }
        combineRun();
        first = row;
        count = 1;
    });
    combineRun();
}

} // namespace

void SparseFieldState::clearGhosts(int stage, const std::byte *defaults) const noexcept {
    const auto &scatters = pattern->copies(cellBytes).scatters; // made before: for the exchange, or by the caller
    allocated.forEach([&](int block) {
        const auto clear = [&](const ChannelEnd &end) {
            scatters[toSize(end.shape)].scatter(defaults, memory(block, stage));
        };
        for (const SparsePattern::Place &place : pattern->receivedBy(block))
            clear(pattern->peers()[toSize(place.peer)].received[toSize(place.channel)]);
        for (const std::int32_t k : pattern->localTo(block))
            clear(pattern->localChannels()[toSize(k)].to);
    });
}

void SparseFieldCore::clearGhosts(int stage) {
    DNDS_CHECK(stage >= 0 && stage < options().stages, IndexError, "'{}' has {} stages, none {}", name(),
               options().stages, stage);
    const SparseFieldState &state = this->state();
    state.requireNoFlight("cleared");
    DNDS_CHECK(state.space == MemorySpace::Host, StaleError,
               "the blocks of '{}' are on the device: call toHost() first", name());
    static_cast<void>(state.pattern->copies(state.cellBytes));
    std::vector<std::byte> defaults(toSize(state.pattern->maxCells()) * state.cellBytes);
    state.elements->fill(defaults.data(), defaults.size() / state.elements->bytes());
    state.clearGhosts(stage, defaults.data());
}

void SparseFields::State::startPush(PushOp op) {
    DNDS_CHECK(!inFlight(), StateError, "a push cannot begin: {} is not finished", title);
    for (const Member &member : members) {
        DNDS_CHECK(member.field->space == MemorySpace::Host, StateError,
                   "the blocks of '{}' are on the device: call toHost() before a push", member.field->name);
        DNDS_CHECK(member.field->elements->isIdentity(op), ArgumentError,
                   "the default of '{}', {}, is not the identity of the push: 0 for PushOp::Sum, infinity for Min and "
                   "-infinity for Max (the largest and the lowest integer), no value for Replace. Deposit into a field "
                   "with such a default",
                   member.field->name, member.field->elements->describe());
    }
    begin();
    push = op;
    step(Local, ExchangeCall::Send);
    sendNonLocal();
}

void SparseFields::State::findLocalDeposits(std::vector<Deposit> &found) {
    for (std::size_t f = 0; f < members.size(); ++f) {
        Member &member = members[f];
        const SparseFieldState &field = *member.field;
        field.allocated.forEach([&](int block) {
            for (const std::int32_t k : pattern->localTo(block)) {
                const LocalChannel &channel = pattern->localChannels()[toSize(k)];
                const bool aboveThreshold = packRim(member, channel.to, scratch.data());
                if (!aboveThreshold && !differs(member, channel.to, scratch.data()))
                    continue;
                found.push_back(
                    {f, channel.from, pattern->blocks()[toSize(block)].block, toSize(k), &channel.to, nullptr});
                if (aboveThreshold && !field.allocated.test(channel.from.block))
                    member.wanted.set(channel.from.block);
            }
        });
    }
}

void SparseFields::State::findReceivedDeposits(std::size_t p, std::vector<Deposit> &found) const {
    const std::size_t before = found.size();
    forEachReceived(p, [&](std::size_t f, std::size_t k, bool /*aboveThreshold*/, const std::byte *data) {
        found.push_back({f, incoming(p)[k], 0, k, nullptr, data});
    });
    const std::span<const std::byte> message = link->received(p);
    const std::byte *number = message.data() + message.size() - (found.size() - before) * sizeof(std::int32_t);
    for (std::size_t k = before; k < found.size(); ++k, number += sizeof(std::int32_t))
        std::memcpy(&found[k].depositor, number, sizeof(std::int32_t));
}

/// Combines a deposit with the cells of its block, or reports it as lost, by the values of such a block.
void SparseFields::State::apply(const Deposit &deposit, std::vector<std::byte> &lost) {
    const Member &member = members[deposit.field];
    const SparseFieldState &field = *member.field;
    const int block = deposit.cells.block;
    const std::byte *data = deposit.data;
    if (deposit.from != nullptr) {
        member.gather(*deposit.from).gather(field.memory(deposit.from->block), scratch.data());
        data = scratch.data();
    }
    const auto combine = [&](std::byte *into) {
        combineRows(pattern->rows(deposit.cells.shape), field.cellBytes, combineFunction(field.elements->kind(), *push),
                    into, data);
    };
    if (field.allocated.test(block))
        return combine(field.memory(block));
    if (!field.freeing)
        return;
    lost.resize(field.stageBytes(block)); // within its capacity
    field.elements->fill(lost.data(), lost.size() / field.elements->bytes());
    combine(lost.data());
    field.freeing(block, lost.data());
}

void SparseFields::State::finishPush() {
    DNDS_CHECK(push, StateError, "{} is not a push that has begun: call startPushGhosts first", title);
    std::vector<Deposit> deposits;
    findLocalDeposits(deposits); // while messages are in flight
    waitUntil(
        *context, [&] { return receive(NonLocal); }, [&] { return awaited(); });
    static_cast<void>(receive(Local));
    for (std::size_t p = 0; p < peers.size(); ++p)
        findReceivedDeposits(p, deposits);
    std::ranges::sort(deposits, {}, &Deposit::order);
    static_cast<void>(allocateWanted());
    std::vector<std::byte> lost;
    for (const Deposit &deposit : deposits)
        if (const SparseFieldState &field = *members[deposit.field].field;
            field.freeing && !field.allocated.test(deposit.cells.block))
            lost.reserve(field.stageBytes(deposit.cells.block));
    for (const Deposit &deposit : deposits) // from here on nothing fails
        apply(deposit, lost);
    for (const Member &member : members)
        member.field->clearGhosts(0, member.defaults.data());
    for (const Side side : {Local, NonLocal})
        step(side, ExchangeCall::Set);
    endExchange();
}

} // namespace DNDS
