// The steps of exchanges of fields on the device: each looks at all channels at a time.

#include "DNDS/Sparse/SparseFieldsState.hpp"

#include <span>
#include <vector>

namespace DNDS {

/// A copy between rims; without `from` of the default, without `to` none yet.
SparseJob SparseFields::State::jobOf(const Member &member, const ChannelEnd *from, const ChannelEnd *to) const {
    SparseJob job;
    job.elements = member.kind();
    job.threshold = member.field->options.allocationThreshold;
    const auto place = [&](const ChannelEnd &end, auto &memory, const std::uint32_t *&rows) {
        const SparsePattern::DeviceRows &shape = pattern->deviceRows(end.shape);
        memory = member.field->memory(end.block) + toSize(shape.first) * member.field->cellBytes;
        rows = shape.rows;
        job.cells = static_cast<std::uint64_t>(shape.count);
    };
    if (from != nullptr)
        place(*from, job.source, job.sourceRows);
    if (to != nullptr)
        place(*to, job.destination, job.destinationRows);
    return job;
}

void SparseFields::State::sendLocalOnDevice() {
    std::vector<std::int32_t> flags; // -1: not compared
    std::size_t asked = 0;
    forEachSending([&](Member &member, const LocalChannel &channel) {
        const bool asks = member.asks(channel.to.block);
        flags.push_back(asks ? static_cast<std::int32_t>(asked++) : -1);
        if (!asks)
            return;
        SparseJob job = jobOf(member, &channel.from, nullptr);
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

/// Packs and compares what goes to all peers, straight into pinned memory.
void SparseFields::State::packOnDevice() {
    packed.clear();
    nextPacked = 0;
    std::size_t bytes = 0;
    const auto forEachRim = [&](const auto &visit) {
        for (std::size_t p = 0; p < peers.size(); ++p) {
            const std::vector<ChannelEnd> &given = pattern->peers()[p].given;
            forEachChannel(peers[p].present.data(), peers[p].present.size(), given.size(),
                           [&](std::size_t f, std::size_t k) { visit(members[f], given[k]); });
        }
    };
    forEachRim([&](const Member &member, const ChannelEnd &channel) {
        packed.push_back({bytes, false});
        bytes = alignTo8(bytes + member.gather(channel).bytes());
    });
    std::byte *const rims = device->forRims(bytes);
    std::size_t number = 0;
    forEachRim([&](const Member &member, const ChannelEnd &channel) {
        SparseJob job = jobOf(member, &channel, nullptr);
        job.destination = rims + packed[number].offset;
        job.flag = static_cast<std::int32_t>(number++);
        device->add(job);
    });
    const std::span<const std::uint32_t> aboveThreshold = device->run(packed.size());
    for (std::size_t k = 0; k < packed.size(); ++k)
        packed[k].aboveThreshold = aboveThreshold[k] != 0;
}

void SparseFields::State::setLocalOnDevice(bool freshOnly) {
    forEachBound(freshOnly, [&](const Member &member, std::size_t k, bool received) {
        const LocalChannel &channel = pattern->localChannels()[k];
        device->add(jobOf(member, received ? &channel.from : nullptr, &channel.to));
    });
    static_cast<void>(device->run(0));
}

void SparseFields::State::setNonLocalOnDevice(bool freshOnly) {
    std::size_t bytes = 0;
    std::vector<std::size_t> starts;
    for (std::size_t p = 0; p < peers.size(); ++p) {
        starts.push_back(bytes);
        bytes += alignTo8(link->received(p).size());
    }
    std::byte *const there = device->forMessages(bytes);
    if (!freshOnly) // fresh blocks hold the default
        forEachAbsent(
            [&](const Member &member, const ChannelEnd &channel) { device->add(jobOf(member, nullptr, &channel)); });
    for (std::size_t p = 0; p < peers.size(); ++p) {
        const std::span<const std::byte> message = link->received(p);
        Device::copy(there + starts[p], MemorySpace::Device, message.data(), MemorySpace::Host, message.size(),
                     device->stream());
        forEachReceived(p, [&](std::size_t f, std::size_t k, bool /*aboveThreshold*/, const std::byte *data) {
            const Member &member = members[f];
            const ChannelEnd &channel = pattern->peers()[p].received[k];
            if (!(freshOnly ? member.fresh : member.field->allocated).test(channel.block))
                return;
            SparseJob job = jobOf(member, nullptr, &channel);
            job.source = there + starts[p] + (data - message.data());
            device->add(job);
        });
    }
    static_cast<void>(device->run(0));
    Device::synchronize(device->stream()); // copies of messages without any job
}

void SparseFields::State::fillOnDevice(const Member &member, int block, std::byte *memory) {
    SparseJob job;
    job.elements = member.kind();
    job.destination = memory;
    job.cells = member.field->totalBytes(block) / member.field->cellBytes;
    device->add(job);
}

/// For each allocated block of the fields that free any, whether it is below the threshold: as
/// SparseFieldState::isBelow.
std::vector<bool> SparseFields::State::emptyOnDevice() {
    std::size_t number = 0;
    for (const Member &member : members)
        if (const SparseFieldState &field = *member.field; field.options.deallocationCount > 0)
            field.allocated.forEach([&](int block) {
                for (const RowRange &rows : pattern->cellRows(block)) {
                    SparseJob job;
                    job.elements = member.kind();
                    job.source = field.memory(block) + toSize(rows.first) * field.cellBytes;
                    job.cells = static_cast<std::uint64_t>(rows.last - rows.first);
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
