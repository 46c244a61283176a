/// @file SparseFieldsState.hpp
/// @brief The parts of an exchange of sparse fields. SparseFields.cpp has its steps on the host,
/// SparseFieldsOnDevice.cpp those on the device, SparsePushes.cpp those of pushes.
#pragma once

#include "DNDS/Link/MessageLink.hpp"
#include "DNDS/Sparse/ExchangeStep.hpp"
#include "DNDS/Sparse/PollTimer.hpp"
#include "DNDS/Sparse/SparseDevice.hpp"
#include "DNDS/Sparse/SparseFieldState.hpp"
#include "DNDS/Sparse/SparseFields.hpp"
#include "DNDS/Sparse/SparseMessage.hpp"
#include "DNDS/Transport/RowScatter.hpp"
#include "DNDS/Transport/TransportTable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

/// An exchange with its channels, messages and counters. A step is: send (pack rims, one message a peer), receive
/// (accept messages, mark wanted blocks), set (fill ghosts), complete (allocate, fill fresh ghosts, free). Both sides,
/// within the rank and between ranks, go through `steps` on their own; only `complete` needs both. Costs depend on
/// allocated blocks, not on all: absent ones are a bit in a bitmap. Channels and thresholds are those
/// of Parthenon's sparse variables; one message a peer instead of one a channel is this library's.
struct SparseFields::State final : Recoverable {
    /// A field, and what exchanges know of it.
    struct Member {
        std::shared_ptr<SparseFieldState> field;
        const SparsePattern::Copies *copies = nullptr;
        std::vector<std::byte> defaults; ///< for the largest shape
        BlockBits wanted;                ///< blocks that got a value above the threshold and are absent
        BlockBits fresh;                 ///< blocks that this exchange has allocated
        /// [blocks] where the bits of a block's channels begin in `localSent`; `nothingSent` for absent blocks
        std::vector<std::uint32_t> sent;
        static constexpr std::uint32_t nothingSent = UINT32_MAX;

        const RowGather &gather(const ChannelEnd &end) const { return copies->gathers[toSize(end.shape)]; }
        const RowScatter &scatter(const ChannelEnd &end) const { return copies->scatters[toSize(end.shape)]; }
        /// Whether a rim for block `to` of this rank must be compared with the threshold: it may have to be withheld,
        /// or to allocate the block. Else it is sent unseen, which saves a pass over most rims.
        bool asks(int to) const {
            return !field->options.sendBelowThreshold || !(field->allocated.test(to) || wanted.test(to));
        }
    };
    /// The exchange with one peer, by its place in `SparsePattern::peers`. Flags are reset when the exchange ends.
    struct Peer {
        std::vector<std::uint64_t> present; ///< a bit a channel: its block is there
        std::size_t maxBytes = 0;           ///< bytes of all present rims, which bound the data to send
        bool accepted = false;              ///< its header and bits were read: `accept`
        bool apart = false;                 ///< its data are a message of their own, of `deviceLink`
        bool arrived = false;               ///< accepted, and its data are there
        std::byte *packed = nullptr;        ///< data to send, packed by the device: pinned, or of `deviceLink`
        const std::byte *data = nullptr;    ///< received data, in the space of the fields after `takeToDevice`
        TransportChoice path;               ///< the transport of messages in device memory
    };
    /// The two groups of channels: the index of `steps`.
    enum Side : std::size_t { Local, NonLocal };

    // Set-up.
    State(std::string label, std::span<SparseFieldCore *const> cores, const Channel &channel,
          const Channel &deviceChannel);
    void choosePaths(std::span<const int> ranks, const Channel &channel);
    std::string describe() const;
    ~State() override;

    // Steps.
    /// Runs `body`, a step of an exchange. What it throws ends the exchange, and revokes the communicator.
    template <class Body>
    decltype(auto) running(std::string_view call, Body &&body);
    bool inFlight() const noexcept { return steps != std::array<ExchangeStep, 2>{}; }
    /// Advances one side. Throws StateError if the call is not allowed now.
    void step(Side side, ExchangeCall call);
    /// On the device its kernels run after the work that `producer` holds.
    void begin(Device::StreamHandle producer);
    void build();
    void sendLocal();
    void sendNonLocal();
    std::size_t sendTo(std::size_t p);
    bool receive(Side side);
    void accept(std::size_t p);
    void set(Side side);
    void setLocal(bool freshOnly);
    void setNonLocal(bool freshOnly);
    void complete();
    /// Returns whether blocks were wanted.
    bool allocateWanted();
    void freeEmpty();
    void endExchange();
    /// Ends an exchange that cannot be completed, and resets all channels.
    void leave() noexcept;
    /// The same without an exception: revokes the communicator, so that peers throw, with `why` in their text.
    void abandon(std::string_view why) noexcept;
    std::string awaited() const;
    bool settle() noexcept override;
    void renew() override;

    /// Whether a channel within this rank carried data; whether channel bit `bit` of peer `p` did.
    bool hasData(const Member &member, const LocalChannel &channel) const {
        const std::uint32_t sent = member.sent[toSize(channel.from.block)];
        return sent != Member::nothingSent && localSent[sent + toSize(channel.place)];
    }
    bool hasData(std::size_t p, std::size_t bit) const {
        return Bits::test(reinterpret_cast<const std::uint64_t *>(link->received(p).data() + sparseHeaderBytes), bit);
    }
    /// Marks a local channel as sent. A rim above the threshold makes an absent block wanted.
    void sendOn(Member &member, const LocalChannel &channel, bool aboveThreshold) {
        if (aboveThreshold && !member.field->allocated.test(channel.to.block))
            member.wanted.set(channel.to.block);
        localSent.push_back(aboveThreshold || member.field->options.sendBelowThreshold);
    }
    /// Calls `visit(field's member, local channel)` for channels from allocated blocks, in the order of
    /// `localSent`.
    template <class Visit>
    void forEachSending(Visit &&visit);
    /// Calls `visit(member, number of the local channel, whether it carried data)` for the local channels whose ghosts
    /// must be filled: all to allocated blocks or, with `freshOnly`, to fresh ones.
    template <class Visit>
    void forEachBound(bool freshOnly, Visit &&visit);
    /// Calls `visit(member, receiving end)` for ghosts of allocated blocks for which other ranks have sent no data.
    template <class Visit>
    void forEachAbsent(Visit &&visit);
    /// Calls `visit(index of the field, number of the channel, whether it is above the threshold, place in the data)`
    /// for each rim in the message from peer `p`. Places are not sent: sender and receiver compute the same ones from
    /// the bits.
    template <class Visit>
    void forEachReceived(std::size_t p, Visit &&visit) const;
    bool packRim(const Member &member, const ChannelEnd &channel, std::byte *to);
    /// Whether data for peer `p` are messages in device memory.
    bool sendsApart(std::size_t p) const noexcept { return onDevice() && isOnDevice(peers[p].path.kind); }
    static bool isOnDevice(TransportKind kind) noexcept {
        return kind == TransportKind::Peer || kind == TransportKind::Direct;
    }

    // Pushes: the adjoint of an exchange. Messages have the same form and travel the channels backwards, from the
    // ghosts at their ends to the cells at their beginnings.
    void startPush(PushOp op, Device::StreamHandle producer);
    void finishPush();
    struct Deposit;
    /// Whether data of a channel differ from the default in any bit.
    bool differs(const Member &member, const ChannelEnd &channel, const std::byte *data) const {
        const std::size_t count = member.gather(channel).bytes() / member.field->elements->bytes();
        return member.field->elements->firstAbove(data, count, 0) < count;
    }
    void findLocalDeposits(std::vector<Deposit> &found);
    void findReceivedDeposits(std::size_t p, std::vector<Deposit> &found) const;
    void apply(const Deposit &deposit, std::vector<std::byte> &lost);
    void applyOnDevice(std::span<const Deposit> deposits);
    /// The ends of the channels of peer `p` at which data leave this rank, and at which they arrive.
    const std::vector<ChannelEnd> &outgoing(std::size_t p) const {
        return push ? pattern->peers()[p].received : pattern->peers()[p].given;
    }
    const std::vector<ChannelEnd> &incoming(std::size_t p) const {
        return push ? pattern->peers()[p].given : pattern->peers()[p].received;
    }
    /// The signature in messages: exchanges and pushes of different operations never match.
    std::uint64_t kind() const { return signature + (push ? 1 + static_cast<std::uint64_t>(*push) : 0); }

    // The same on the device, all channels at a time.
    bool onDevice() const noexcept { return space == MemorySpace::Device; }
    void packOnDevice();
    void sendLocalOnDevice();
    void setLocalOnDevice(bool freshOnly);
    void takeToDevice();
    void setNonLocalOnDevice(bool freshOnly);
    /// Writes the default to all of a block.
    void fillOnDevice(const Member &member, int block, std::byte *memory);
    std::vector<bool> emptyOnDevice();

    std::string name;
    std::string title; ///< "the exchange of 'name'", for errors
    std::shared_ptr<const SparsePattern> pattern;
    std::shared_ptr<CommunicatorContext> context;
    std::vector<Member> members;
    std::vector<Peer> peers;
    /// Written by `sendOn` in the order of fields, allocated blocks and their channels; `Member::sent` indexes it.
    std::vector<std::uint8_t> localSent;  ///< for each channel within this rank from an allocated block: it has data
    std::array<ExchangeStep, 2> steps{};  ///< indexed by Side
    std::optional<PushOp> push;           ///< set in a push
    std::vector<std::int32_t> depositors; ///< scratch of `sendTo`: numbers of the depositing blocks
    std::unique_ptr<MessageLink> link;
    std::unique_ptr<MessageLink> deviceLink; ///< messages in device memory; null without devices
    std::exception_ptr whyNotOnDevice;       ///< error for fields on the device: DNDS_TRANSPORT is impossible
    std::vector<std::byte> scratch;          ///< a rim of the largest shape of the widest field
    MemorySpace space = MemorySpace::Host;   ///< the same for all fields in this exchange
    std::unique_ptr<SparseDevice> device;    ///< null until the first exchange there
    std::vector<bool> packedAbove;           ///< rims that the device has packed: above the threshold
    std::vector<bool> packedSent;            ///< the same: sent to their peer
    std::size_t nextPacked = 0;              ///< index of the next result of the two above
    std::uint64_t signature = 0;             ///< hash of pattern, fields and options: the same on all ranks
    std::uint64_t epoch = 0;                 ///< exchanges begun, since the last recovery
    std::uint64_t stages = 0;                ///< see SparseHeader
    SparseTraffic traffic;
    PollTimer polling; ///< since the program has begun to ask `receiveBoundBufs`
};

/// O(blocks + channels of allocated blocks) for each field. Sending and setting must see the same allocated blocks,
/// since places in `localSent` follow from them; blocks are allocated and freed in `complete` only.
template <class Visit>
void SparseFields::State::forEachSending(Visit &&visit) {
    std::uint32_t number = 0;
    for (Member &member : members) {
        std::ranges::fill(member.sent, Member::nothingSent);
        member.field->allocated.forEach([&](int block) {
            const std::span<const std::int32_t> channels = pattern->localFrom(block);
            member.sent[toSize(block)] = number;
            number += static_cast<std::uint32_t>(channels.size());
            for (const std::int32_t k : channels)
                visit(member, pattern->localChannels()[toSize(k)]);
        });
    }
}

/// Decodes a message in one pass, O(channels / 64 + rims): bit k of the second bitmap belongs to the k-th set bit of
/// the first, and places accumulate as they did when the sender packed.
template <class Visit>
void SparseFields::State::forEachReceived(std::size_t p, Visit &&visit) const {
    const std::vector<ChannelEnd> &channels = incoming(p);
    const std::byte *const from = link->received(p).data();
    const auto *const present = reinterpret_cast<const std::uint64_t *>(from + sparseHeaderBytes);
    const std::size_t words = Bits::words(channels.size() * members.size());
    const std::uint64_t *const aboveThreshold = present + words;
    DataPlaces places;
    std::size_t number = 0;
    forEachChannel(present, words, channels.size(), [&](std::size_t f, std::size_t k) {
        visit(f, k, Bits::test(aboveThreshold, number++), places.add(f, members[f].gather(channels[k]).bytes()));
    });
}

template <class Visit>
void SparseFields::State::forEachBound(bool freshOnly, Visit &&visit) {
    for (const Member &member : members)
        (freshOnly ? member.fresh : member.field->allocated).forEach([&](int block) {
            for (const std::int32_t k : pattern->localTo(block))
                visit(member, toSize(k), hasData(member, pattern->localChannels()[toSize(k)]));
        });
}

template <class Visit>
void SparseFields::State::forEachAbsent(Visit &&visit) {
    for (std::size_t f = 0; f < members.size(); ++f)
        members[f].field->allocated.forEach([&](int block) {
            for (const SparsePattern::Place &place : pattern->receivedBy(block)) {
                const std::vector<ChannelEnd> &channels = pattern->peers()[toSize(place.peer)].received;
                const std::size_t k = toSize(place.channel);
                if (!hasData(toSize(place.peer), f * channels.size() + k))
                    visit(members[f], channels[k]);
            }
        });
}

} // namespace DNDS
