// The steps of exchanges and pushes of fields on the device: each looks at all channels at a time.
//
// Messages come in two parts there, except staged ones: the header and its bits, which give the host the places of
// rims, by the host's link; and the packed rims, which only kernels read, by the link in device memory. Both links keep
// the order of messages, so that the two parts of an exchange match. Where no rim is sent there is no second part.
// Fields on the host that send to fields on a device put the data after the header, as staged ones do.

#include "DNDS/Sparse/SparseFieldsState.hpp"

#include <algorithm>
#include <functional>
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

/// All comparisons in one kernel.
void SparseFields::State::sendLocalOnDevice() {
    std::vector<std::pair<Member *, std::size_t>> judged;
    forEachAsking([&](Member &member, std::size_t k, const LocalChannel &channel) {
        SparseJob job = member.field->jobOf(&channel.from, nullptr);
        job.flag = static_cast<std::int32_t>(judged.size());
        device->add(job);
        judged.emplace_back(&member, k);
    });
    const std::span<const std::uint32_t> above = device->run(judged.size());
    for (std::size_t n = 0; n < judged.size(); ++n)
        judge(*judged[n].first, judged[n].second, above[n] != 0);
}

void SparseFields::State::askOnDevice(Member &member, const ChannelEnd &end, const std::byte *rim) {
    SparseJob job;
    job.elements = member.field->kind();
    job.source = rim;
    job.cells = member.gather(end).bytes() / member.field->cellBytes;
    job.flag = static_cast<std::int32_t>(asked.size());
    job.threshold = member.field->options.allocationThreshold;
    device->add(job);
    asked.emplace_back(&member, end.block);
}

void SparseFields::State::runAsked() {
    const std::span<const std::uint32_t> above = device->run(asked.size());
    for (std::size_t n = 0; n < asked.size(); ++n)
        if (above[n] != 0)
            asked[n].first->want(asked[n].second);
    asked.clear();
}

/// Packs the rims for all peers by one kernel, into messages in device memory, or into pinned memory that the host
/// sends. Rims that may be withheld are compared by a kernel before, whose answer decides the places of the others, as
/// data have no gaps. Leaves the answers in `packedSent`, in the order of channels.
/// At most two launches and two waits for the device, whatever the number of peers and rims.
void SparseFields::State::packOnDevice() {
    const auto forEachRim = [&](std::size_t p, const auto &visit) {
        const std::vector<ChannelEnd> &channels = outgoing(p);
        forEachChannel(peers[p].present.data(), peers[p].present.size(), channels.size(),
                       [&](std::size_t f, std::size_t k) {
                           visit(members[f], f, channels[k], members[f].field->jobOf(&channels[k], nullptr));
                       });
    };
    packedSent.clear();
    for (std::size_t p = 0; p < peers.size(); ++p)
        forEachRim(p, [&](const Member &member, std::size_t /*f*/, const ChannelEnd & /*channel*/, SparseJob job) {
            job.flag = static_cast<std::int32_t>(packedSent.size());
            job.threshold = withheldBelow(member);
            packedSent.push_back(!mayWithhold(member));
            if (!packedSent.back())
                device->add(job);
        });
    const std::span<const std::uint32_t> above = device->run(packedSent.size());
    std::transform(packedSent.begin(), packedSent.end(), above.begin(), packedSent.begin(), std::logical_or());
    nextPacked = 0;
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
        forEachRim(p, [&](const Member &member, std::size_t f, const ChannelEnd &channel, SparseJob job) {
            if (!packedSent[nextPacked++])
                return;
            job.destination = peer.packed + places.add(f, member.gather(channel).bytes());
            device->add(job);
        });
    }
    static_cast<void>(device->run(0));
    nextPacked = 0;
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
