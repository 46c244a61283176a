// The steps of exchanges and pushes of fields on the device: each looks at all channels at a time.
//
// Messages come in two parts there, except staged ones: the header and its bits, which the host needs to allocate
// blocks, by the host's link; and the packed rims, which only kernels read, by the link in device memory. Both links
// keep the order of messages, so that the two parts of an exchange match. Where no rim is sent there is no second part.
// Fields on the host that send to fields on a device put the data after the header, as staged ones do.

#include "DNDS/Sparse/SparseFieldsState.hpp"

#include <span>
#include <utility>
#include <vector>

namespace DNDS {

/// Addresses are looked up here, for each exchange again: blocks move when they are freed and allocated.
SparseJob SparseFieldState::jobOf(const ChannelEnd *from, const ChannelEnd *to, int stage) const {
    SparseJob job;
    job.elements = kind();
    job.threshold = options.allocationThreshold;
    const auto place = [&](const ChannelEnd &end, auto &at, const std::uint32_t *&rows) {
        const SparsePattern::DeviceRows &shape = pattern->deviceRows(end.shape);
        at = memory(end.block, stage) + toSize(shape.first) * cellBytes;
        rows = shape.rows;
        job.cells = static_cast<std::uint64_t>(shape.count);
    };
    if (from != nullptr)
        place(*from, job.source, job.sourceRows);
    if (to != nullptr)
        place(*to, job.destination, job.destinationRows);
    return job;
}

/// Two passes over the channels in the same order: one collects comparisons, whose flags the second reads after a
/// single kernel.
void SparseFields::State::sendLocalOnDevice() {
    std::vector<std::int32_t> flags; // -1: not compared
    std::size_t asked = 0;
    forEachSending([&](Member &member, const LocalChannel &channel) {
        const bool asks = member.asks(channel.to.block);
        flags.push_back(asks ? static_cast<std::int32_t>(asked++) : -1);
        if (!asks)
            return;
        SparseJob job = member.field->jobOf(&channel.from, nullptr);
        job.flag = flags.back();
        device->add(job);
    });
    const std::span<const std::uint32_t> aboveThreshold = device->run(asked);
    std::size_t next = 0;
    forEachSending([&](Member &member, const LocalChannel &channel) {
        const std::int32_t flag = flags[next++];
        sendOn(member, channel, flag >= 0 && aboveThreshold[toSize(flag)] != 0);
    });
}

/// Packs and compares the rims for all peers, into messages in device memory, or into pinned memory that the host
/// sends. Usually one kernel does both. Rims that may be withheld are compared by a kernel before, whose answer decides
/// the places of the others, as data have no gaps. Leaves the answers in `packedSent` and `packedAbove`, in the order
/// of channels.
/// At most two launches and two waits for the device, whatever the number of peers and rims.
void SparseFields::State::packOnDevice() {
    std::size_t number = 0;
    const auto forEachRim = [&](std::size_t p, const auto &visit) { // with a job that compares
        const std::vector<ChannelEnd> &channels = outgoing(p);
        forEachChannel(peers[p].present.data(), peers[p].present.size(), channels.size(),
                       [&](std::size_t f, std::size_t k) {
                           const ChannelEnd &channel = channels[k];
                           SparseJob job = members[f].field->jobOf(&channel, nullptr);
                           job.flag = static_cast<std::int32_t>(number++);
                           visit(f, channel, job);
                       });
    };
    const auto compareInto = [&](std::vector<bool> &into) {
        const std::span<const std::uint32_t> flags = device->run(number);
        into.assign(flags.begin(), flags.end());
        number = nextPacked = 0;
    };
    // First kernel: only rims that may be withheld. Deposits are withheld if all of their bits are the default's, hence
    // the threshold of 0.
    const auto mayStay = [&](std::size_t f) { return push || !members[f].field->options.sendBelowThreshold; };
    for (std::size_t p = 0; p < peers.size(); ++p)
        forEachRim(p, [&](std::size_t f, const ChannelEnd & /*channel*/, SparseJob &job) {
            job.threshold = push ? 0 : job.threshold;
            if (mayStay(f))
                device->add(job);
        });
    compareInto(packedSent);
    // Second kernel: packs the rims that are sent, and compares all of them with the threshold for allocation.
    std::size_t pinnedBytes = 0;
    const auto roomFor = [&](const Peer &peer) { return alignTo8(peer.maxBytes) + 8 * members.size(); };
    for (std::size_t p = 0; p < peers.size(); ++p)
        pinnedBytes += sendsApart(p) ? 0 : roomFor(peers[p]);
    std::byte *pinned = device->forRims(pinnedBytes);
    for (std::size_t p = 0; p < peers.size(); ++p) {
        Peer &peer = peers[p];
        if (!sendsApart(p))
            peer.packed = std::exchange(pinned, pinned + roomFor(peer));
        else if (peer.maxBytes > 0)
            peer.packed = deviceLink->prepare(p, roomFor(peer)).data();
        DataPlaces places;
        forEachRim(p, [&](std::size_t f, const ChannelEnd &channel, SparseJob &job) {
            if (!mayStay(f))
                packedSent[number - 1] = true;
            if (!packedSent[number - 1])
                return;
            job.destination = peer.packed + places.add(f, members[f].gather(channel).bytes());
            device->add(job);
        });
    }
    compareInto(packedAbove);
}

/// From block to block, without a buffer between them.
/// Jobs of a run are in no order: they read cells and write ghosts, and each ghost has one source, so none conflict.
void SparseFields::State::setLocalOnDevice(bool freshOnly) {
    forEachBound(freshOnly, [&](const Member &member, std::size_t k, bool received) {
        const LocalChannel &channel = pattern->localChannels()[k];
        device->add(member.field->jobOf(received ? &channel.from : nullptr, &channel.to));
    });
    static_cast<void>(device->run(0));
}

/// Makes `data` of all peers device memory: that of messages in device memory, or copies of staged data.
/// One allocation for all peers, each part at a multiple of 8 bytes, so that kernels load aligned elements. Copies are
/// queued on the stream of the kernels that read them.
void SparseFields::State::takeToDevice() {
    const auto stagedBytes = [&](std::size_t p) {
        const std::span<const std::byte> message = link->received(p);
        return peers[p].apart ? 0 : toSize(message.data() + message.size() - peers[p].data);
    };
    std::size_t bytes = 0;
    for (std::size_t p = 0; p < peers.size(); ++p)
        bytes += alignTo8(stagedBytes(p));
    std::byte *there = device->forMessages(bytes);
    for (std::size_t p = 0; p < peers.size(); ++p) {
        if (peers[p].apart) {
            peers[p].data = deviceLink->received(p).data();
        } else {
            const std::size_t staged = stagedBytes(p);
            Device::copy(there, MemorySpace::Device, peers[p].data, MemorySpace::Host, staged, device->stream());
            peers[p].data = std::exchange(there, there + alignTo8(staged));
        }
    }
}

void SparseFields::State::setNonLocalOnDevice(bool freshOnly) {
    if (!freshOnly) { // fresh blocks hold the default, and messages are on the device
        takeToDevice();
        forEachAbsent([&](const Member &member, const ChannelEnd &channel) {
            device->add(member.field->jobOf(nullptr, &channel));
        });
    }
    for (std::size_t p = 0; p < peers.size(); ++p)
        forEachReceived(p, [&](std::size_t f, std::size_t k, bool /*aboveThreshold*/, std::size_t at) {
            const Member &member = members[f];
            const ChannelEnd &channel = pattern->peers()[p].received[k];
            if (!(freshOnly ? member.fresh : member.field->allocated).test(channel.block))
                return;
            SparseJob job = member.field->jobOf(nullptr, &channel);
            job.source = peers[p].data + at;
            device->add(job);
        });
    static_cast<void>(device->run(0));
    Device::synchronize(device->stream()); // copies of messages without any job
}

/// A job without a source: the default.
void SparseFields::State::fillOnDevice(const Member &member, int block, std::byte *memory) {
    SparseJob job;
    job.elements = member.field->kind();
    job.destination = memory;
    job.cells = member.field->totalBytes(block) / member.field->cellBytes;
    device->add(job);
}

/// For each allocated block of the fields that free any, whether it is below the threshold: the answers of
/// SparseFieldState::isBelow. One flag a block, which all of its rows share; without a witness, as one kernel over all
/// cells takes less time than asking block by block.
/// One launch, which reads every allocated cell: bound by memory bandwidth, not by the number of blocks.
std::vector<bool> SparseFields::State::emptyOnDevice() {
    std::size_t number = 0;
    for (const Member &member : members)
        if (const SparseFieldState &field = *member.field; field.options.deallocationCount > 0)
            field.allocated.forEach([&](int block) {
                for (const IndexRange &rows : pattern->cellRows(block)) {
                    SparseJob job;
                    job.elements = member.field->kind();
                    job.source = field.memory(block) + toSize(rows.begin) * field.cellBytes;
                    job.cells = static_cast<std::uint64_t>(rows.size());
                    job.flag = static_cast<std::int32_t>(number);
                    job.threshold = field.options.deallocationThreshold;
                    device->add(job);
                }
                ++number;
            });
    const std::span<const std::uint32_t> above = device->run(number);
    std::vector<bool> empty;
    for (const std::uint32_t flag : above)
        empty.push_back(flag == 0);
    return empty;
}

} // namespace DNDS
