// Pushes: deposits in ghosts are combined with the cells that these stand for, as particle-in-cell codes do with charge
// (SumBoundary of AMReX's MultiFab). Messages are those of exchanges, sent backwards. Deposits for a cell are applied
// in the order of the depositing blocks' numbers, whatever rank they are on: sums of floating-point numbers have the
// same bits on any number of ranks. That needs all deposits before the first is applied, and the number of the
// depositor in messages.

#include "DNDS/Device/RowKernels.hpp"
#include "DNDS/Exchange/Combine.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/Sparse/SparseFieldsState.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

namespace DNDS {

/// The deposit of one block into cells of another one, by one channel.
struct SparseFields::State::Deposit {
    std::size_t field = 0;            ///< in `members`
    ChannelEnd cells;                 ///< destination: a block of this rank, and the cells there
    std::int32_t depositor = 0;       ///< the other block's number in the grid
    std::size_t channel = 0;          ///< in the list of channels that the two blocks share with others
    const ChannelEnd *from = nullptr; ///< ghosts that hold the values, if the depositor is on this rank
    const std::byte *data = nullptr;  ///< the values, if they are from another rank

    /// The order in which deposits are applied. It does not depend on ranks: lists of channels have those between two
    /// blocks in the same order everywhere.
    auto order() const { return std::tuple(field, cells.block, depositor, channel); }
};

namespace {

/// Combines packed cells at `from` with some rows of a block, run by run.
/// Runs let `combine` vectorise. Rows of a deposit are distinct, so the order of runs does not matter.
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

/// Ghosts that stand for cells get the default, the neutral element of pushes; those at walls belong to the program.
/// O(ghosts of allocated blocks).
void SparseFieldState::clearGhosts(int stage, const std::byte *defaults, SparseDevice *device) const {
    const auto &scatters = pattern->copies(cellBytes).scatters;
    allocated.forEach([&](int block) {
        const auto clear = [&](const ChannelEnd &end) {
            if (device != nullptr)
                device->add(jobOf(nullptr, &end, stage));
            else
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
    if (state.space == MemorySpace::Device) {
        SparseDevice device;
        state.clearGhosts(stage, nullptr, &device);
        static_cast<void>(device.run(0));
        return;
    }
    std::vector<std::byte> defaults(toSize(state.pattern->maxCells()) * state.cellBytes);
    state.elements->fill(defaults.data(), defaults.size() / state.elements->bytes());
    state.clearGhosts(stage, defaults.data(), nullptr);
}

void SparseFields::State::startPush(PushOp op, Device::StreamHandle producer) {
    DNDS_CHECK(!inFlight(), StateError, "a push cannot begin: {} is not finished", title);
    for (const Member &member : members)
        DNDS_CHECK(member.field->elements->isIdentity(op), ArgumentError,
                   "the default of '{}', {}, is not the identity of the push: 0 for PushOp::Sum, infinity for Min and "
                   "-infinity for Max (the largest and the lowest integer), no value for Replace. Deposit into a field "
                   "with such a default",
                   member.field->name, member.field->elements->describe());
    begin(producer);
    push = op;
    step(Local, ExchangeCall::Send);
    sendNonLocal();
}

/// Finds deposits within the rank, without copying them: blocks whose ghosts are still the default deposit nothing.
/// Marks absent blocks that get a value above the threshold. On the device one or two comparisons a rim, all in one
/// kernel.
void SparseFields::State::findLocalDeposits(std::vector<Deposit> &found) {
    const auto forEachGhosts = [&](const auto &visit) {
        for (std::size_t f = 0; f < members.size(); ++f)
            members[f].field->allocated.forEach([&](int block) {
                for (const std::int32_t k : pattern->localTo(block))
                    visit(f, block, toSize(k), pattern->localChannels()[toSize(k)]);
            });
    };
    std::span<const std::uint32_t> flags; // two for each: differs, above
    std::size_t next = 0;
    if (onDevice()) {
        forEachGhosts([&](std::size_t f, int /*block*/, std::size_t /*k*/, const LocalChannel &channel) {
            SparseJob job = members[f].field->jobOf(&channel.to, nullptr);
            job.flag = static_cast<std::int32_t>(next + 1);
            if (members[f].mayWant(channel.from.block))
                device->add(job);
            job.flag = static_cast<std::int32_t>(next);
            job.threshold = 0;
            device->add(job);
            next += 2;
        });
        flags = device->run(std::exchange(next, 0));
    }
    forEachGhosts([&](std::size_t f, int block, std::size_t k, const LocalChannel &channel) {
        Member &member = members[f];
        const std::size_t flag = std::exchange(next, next + 2);
        if (!onDevice())
            member.gather(channel.to).gather(member.field->memory(block), scratch.data());
        if (onDevice() ? flags[flag] == 0 : !member.isAbove(channel.to, scratch.data(), 0))
            return;
        found.push_back({f, channel.from, pattern->blocks()[toSize(block)].block, k, &channel.to, nullptr});
        if (onDevice() && flags[flag + 1] != 0)
            member.want(channel.from.block);
        else if (!onDevice())
            ask(member, channel.from, scratch.data());
    });
}

/// Finds the deposits in the message from peer `p`; the depositors' numbers are its last bytes.
/// The depositor's number is sent since the receiver's channel names only its own block.
void SparseFields::State::findReceivedDeposits(std::size_t p, std::vector<Deposit> &found) {
    const std::size_t before = found.size();
    forEachReceived(p, [&](std::size_t f, std::size_t k, std::size_t at) {
        found.push_back({f, incoming(p)[k], 0, k, nullptr, peers[p].data + at});
        ask(members[f], incoming(p)[k], peers[p].data + at);
    });
    const std::span<const std::byte> message = link->received(p);
    const std::byte *number = message.data() + message.size() - (found.size() - before) * sizeof(std::int32_t);
    for (std::size_t k = before; k < found.size(); ++k, number += sizeof(std::int32_t))
        std::memcpy(&found[k].depositor, number, sizeof(std::int32_t));
}

/// Combines a deposit with the cells of its block. If the block stays absent the deposit is lost: it is reported to
/// `freeing` as the values of a block of defaults with this deposit alone, so that losses are counted exactly. `lost`
/// has room for that block.
void SparseFields::State::apply(const Deposit &deposit, std::vector<std::byte> &lost) {
    const Member &member = members[deposit.field];
    const SparseFieldState &field = *member.field;
    const int block = deposit.cells.block;
    const bool there = field.allocated.test(block);
    if (there ? onDevice() : !field.freeing)
        return;
    const std::byte *data = deposit.data;
    // On the device `apply` handles lost deposits only: they are few, and their blocks are copied one by one.
    if (deposit.from != nullptr) {
        const std::byte *from = field.memory(deposit.from->block);
        if (onDevice()) {
            lost.resize(field.stageBytes(deposit.from->block));
            field.copyToHost(lost.data(), from, lost.size());
            from = lost.data();
        }
        member.gather(*deposit.from).gather(from, scratch.data());
        data = scratch.data();
    } else if (onDevice()) {
        field.copyToHost(scratch.data(), data, member.gather(deposit.cells).bytes());
        data = scratch.data();
    }
    const auto combine = [&](std::byte *into) {
        combineRows(pattern->rows(deposit.cells.shape), field.cellBytes, combineFunction(field.elements->kind(), *push),
                    into, data);
    };
    if (there)
        return combine(field.memory(block));
    lost.resize(field.stageBytes(block)); // within its capacity
    field.elements->fill(lost.data(), lost.size() / field.elements->bytes());
    combine(lost.data());
    field.freeing(block, lost.data());
}

/// Combines deposits, in their order, with the cells of allocated blocks: the first of each block in one kernel, then
/// the second of each, and so on.
/// Deposits are sorted, so deposit number k of a block is in round k and rounds run one after another: each cell gets
/// its deposits in the order of the host, to the bit. Launches: the largest number of deposits of one block.
void SparseFields::State::applyOnDevice(std::span<const Deposit> deposits) {
    const Device::Combination combination = *push == PushOp::Min   ? Device::Combination::Min
                                            : *push == PushOp::Max ? Device::Combination::Max
                                                                   : Device::Combination::Sum;
    // Jobs of one run are in no order, and two deposits for one block may meet in a cell: so no run has two of a block.
    // A box has up to 26 deposits, one a neighbour, of which most are for edges and corners: few cells.
    std::vector<std::vector<const Deposit *>> rounds;
    std::size_t first = 0; // of the same block
    for (std::size_t k = 0; k < deposits.size(); ++k) {
        const Deposit &deposit = deposits[k];
        if (deposit.field != deposits[first].field || deposit.cells.block != deposits[first].cells.block)
            first = k;
        if (!members[deposit.field].field->allocated.test(deposit.cells.block))
            continue;
        rounds.resize(std::max(rounds.size(), k - first + 1));
        rounds[k - first].push_back(&deposit);
    }
    for (const auto &round : rounds) {
        for (const Deposit *deposit : round) {
            SparseJob job = members[deposit->field].field->jobOf(deposit->from, &deposit->cells);
            job.source = deposit->from != nullptr ? job.source : deposit->data;
            job.combination = static_cast<std::int32_t>(combination);
            device->add(job);
        }
        static_cast<void>(device->run(0));
    }
}

/// Completes a push in an order that keeps errors harmless on the host: find all deposits, allocate all blocks or none,
/// reserve memory for reports, and only then change cells. Ghosts are cleared last, since local deposits are read from
/// them.
/// Cost beside the exchange: O(d log d) for the d deposits of this rank, and memory for their descriptions; values stay
/// in messages and ghosts until they are applied.
void SparseFields::State::finishPush() {
    DNDS_CHECK(push, StateError, "{} is not a push that has begun: call startPushGhosts first", title);
    std::vector<Deposit> deposits;
    findLocalDeposits(deposits); // while messages are in flight
    waitUntil(
        *context, [&] { return receive(NonLocal); }, [&] { return awaited(); });
    static_cast<void>(receive(Local));
    if (onDevice())
        takeToDevice();
    for (std::size_t p = 0; p < peers.size(); ++p)
        findReceivedDeposits(p, deposits);
    if (onDevice())
        runAsked();
    std::ranges::sort(deposits, {}, &Deposit::order);
    static_cast<void>(allocateWanted());
    std::vector<std::byte> lost;
    for (const Deposit &deposit : deposits)
        if (const SparseFieldState &field = *members[deposit.field].field;
            field.freeing && !field.allocated.test(deposit.cells.block))
            lost.reserve(field.stageBytes(deposit.cells.block));
    if (onDevice()) {
        applyOnDevice(deposits);
        Device::synchronize(device->stream()); // copies of messages without any job
    }
    for (const Deposit &deposit : deposits) // from here on nothing fails on the host
        apply(deposit, lost);
    for (const Member &member : members)
        member.field->clearGhosts(0, member.defaults.data(), onDevice() ? device.get() : nullptr);
    if (onDevice())
        static_cast<void>(device->run(0));
    for (const Side side : {Local, NonLocal})
        step(side, ExchangeCall::Set);
    endExchange();
}

} // namespace DNDS
