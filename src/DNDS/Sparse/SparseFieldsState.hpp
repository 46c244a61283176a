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
#include <utility>
#include <vector>

namespace DNDS {

/// An exchange with its channels, messages and counters. A step is: send (pack rims, one message a peer), receive
/// (accept messages), set (fill ghosts, mark wanted blocks), complete (allocate, fill fresh ghosts, free). Both sides,
/// within the rank and between ranks, go through `steps` on their own; only `complete` needs both. Costs depend on
/// allocated blocks, not on all: absent ones are bits in bitmaps, and a null pointer in `sources`. Channels and
/// thresholds are those of Parthenon's sparse variables; one message a peer instead of one a channel is this library's.
struct SparseFields::State final : Recoverable {
    /// A field, and what exchanges know of it.
    struct Member {
        std::shared_ptr<SparseFieldState> field;
        const SparsePattern::Copies *copies = nullptr;
        std::vector<std::byte> defaults; ///< for the largest shape
        BlockBits wanted;                ///< blocks that got a value above the threshold and are absent
        BlockBits fresh;                 ///< blocks that this exchange has allocated
        /// A bit for each channel within this rank: its rim is below the threshold, and not sent. Empty where all are.
        std::vector<std::uint64_t> withheld;

        const RowGather &gather(const ChannelEnd &end) const { return copies->gathers[toSize(end.shape)]; }
        const RowScatter &scatter(const ChannelEnd &end) const { return copies->scatters[toSize(end.shape)]; }
        /// Whether a rim for block `to` of this rank may allocate it. Most rims are for blocks that are there, and need
        /// no pass over their values.
        bool mayWant(int to) const { return !(field->allocated.test(to) || wanted.test(to)); }
        void want(int to) {
            if (mayWant(to))
                wanted.set(to);
        }
        /// Whether a value of a packed rim differs from the default by more than `threshold`.
        bool isAbove(const ChannelEnd &end, const std::byte *rim, real threshold) const {
            const std::size_t count = gather(end).bytes() / field->elements->bytes();
            return field->elements->firstAbove(rim, count, threshold) < count;
        }
    };
    /// The exchange with one peer, by its place in `SparsePattern::peers`. Flags are reset when the exchange ends.
    struct Peer {
        std::vector<std::uint64_t> present; ///< a bit a channel: its block is there
        std::size_t rims = 0;               ///< set bits of `present`, before some are withheld
        std::size_t maxBytes = 0;           ///< bytes of these rims, which bound the data to send
        bool accepted = false;              ///< its header was read: `accept`
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
    void fill(const Member &member, const ChannelEnd &end, const std::byte *rim);
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

    /// Calls `visit(member, number of the local channel, channel)` for those whose rims must be compared with the
    /// threshold: they may have to be withheld, or to allocate a block.
    template <class Visit>
    void forEachAsking(Visit &&visit);
    /// Takes the answer for one of them.
    void judge(Member &member, std::size_t k, bool isAbove) const;
    /// The bits of the message from peer `p`: which channels have carried data.
    const std::uint64_t *present(std::size_t p) const {
        return reinterpret_cast<const std::uint64_t *>(link->received(p).data() + sparseHeaderBytes);
    }
    /// If the block at `end` is absent, marks it as wanted if a value of the rim at `rim`, which has arrived for it, is
    /// above the threshold: now, or for fields on the device by the next `runAsked`, which runs all of its jobs.
    void ask(Member &member, const ChannelEnd &end, const std::byte *rim);
    /// Calls `visit(member, number of the local channel, source, destination)` for the local channels whose ghosts must
    /// be filled: all to allocated blocks or, with `freshOnly`, to fresh ones. Source and destination are the memory of
    /// the blocks at their ends; without data the source is null.
    template <class Visit>
    void forEachBound(bool freshOnly, Visit &&visit);
    /// Calls `visit(member, receiving end)` for ghosts of allocated blocks for which other ranks have sent no data.
    template <class Visit>
    void forEachAbsent(Visit &&visit);
    /// Calls `visit(index of the field, number of the channel, place in the data)` for each rim in the message from
    /// peer `p`. Places are not sent: sender and receiver compute the same ones from the bits.
    template <class Visit>
    void forEachReceived(std::size_t p, Visit &&visit) const;
    bool packRim(const Member &member, const ChannelEnd &channel, std::byte *to);
    /// Whether rims that are not above `withheldBelow` are withheld: in pushes those without deposits, and where
    /// `sendBelowThreshold` is off.
    bool mayWithhold(const Member &member) const { return push || !member.field->options.sendBelowThreshold; }
    real withheldBelow(const Member &member) const { return push ? 0 : member.field->options.allocationThreshold; }
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
    void findLocalDeposits(std::vector<Deposit> &found);
    void findReceivedDeposits(std::size_t p, std::vector<Deposit> &found);
    void apply(const Deposit &deposit, std::vector<std::byte> &lost);
    void applyOnDevice(std::span<const Deposit> deposits);
    /// The ends of the channels of peer `p` at which data leave this rank, and at which they arrive.
    const std::vector<ChannelEnd> &outgoing(std::size_t p) const {
        return push ? pattern->peers()[p].received : pattern->peers()[p].given;
    }
    const std::vector<ChannelEnd> &incoming(std::size_t p) const {
        return push ? pattern->peers()[p].given : pattern->peers()[p].received;
    }
    /// The offset of the data in messages of these channels, in bytes.
    std::size_t dataStartOf(const std::vector<ChannelEnd> &channels) const {
        return sparseHeaderBytes + Bits::words(channels.size() * members.size()) * sizeof(std::uint64_t);
    }
    /// The signature in messages: exchanges and pushes of different operations never match.
    std::uint64_t kind() const { return signature + (push ? 1 + static_cast<std::uint64_t>(*push) : 0); }

    // The same on the device, all channels at a time.
    bool onDevice() const noexcept { return space == MemorySpace::Device; }
    void packOnDevice();
    void sendLocalOnDevice();
    void takeToDevice();
    void askOnDevice(Member &member, const ChannelEnd &end, const std::byte *rim);
    void runAsked();
    /// Writes the default to all of a block.
    void fillOnDevice(const Member &member, int block, std::byte *memory);
    std::vector<bool> emptyOnDevice();

    std::string name;
    std::string title; ///< "the exchange of 'name'", for errors
    std::shared_ptr<const SparsePattern> pattern;
    std::shared_ptr<CommunicatorContext> context;
    std::vector<Member> members;
    std::vector<Peer> peers;
    std::vector<const std::byte *> sources; ///< scratch of `forEachBound`
    std::array<ExchangeStep, 2> steps{};    ///< indexed by Side
    std::optional<PushOp> push;             ///< set in a push
    std::vector<std::int32_t> depositors;   ///< scratch of `sendTo`: numbers of the depositing blocks
    std::unique_ptr<MessageLink> link;
    std::unique_ptr<MessageLink> deviceLink;     ///< messages in device memory; null without devices
    std::exception_ptr whyNotOnDevice;           ///< error for fields on the device: DNDS_TRANSPORT is impossible
    std::vector<std::byte> scratch;              ///< a rim of the largest shape of the widest field
    MemorySpace space = MemorySpace::Host;       ///< the same for all fields in this exchange
    std::unique_ptr<SparseDevice> device;        ///< null until the first exchange there
    std::vector<bool> packedSent;                ///< rims that the device was asked to pack: sent to their peer
    std::size_t nextPacked = 0;                  ///< index of the next one of them
    std::vector<std::pair<Member *, int>> asked; ///< absent blocks, by the flags of the next `runAsked`
    std::uint64_t signature = 0;                 ///< hash of pattern, fields and options: the same on all ranks
    std::uint64_t epoch = 0;                     ///< exchanges begun, since the last recovery
    std::uint64_t stages = 0;                    ///< see SparseHeader
    SparseTraffic traffic;
    PollTimer polling; ///< since the program has begun to ask `receiveBoundBufs`
};

/// O(blocks / 64 + channels of allocated blocks) for each field.
template <class Visit>
void SparseFields::State::forEachAsking(Visit &&visit) {
    for (Member &member : members)
        member.field->allocated.forEach([&](int block) {
            for (const std::int32_t k : pattern->localFrom(block))
                if (const LocalChannel &channel = pattern->localChannels()[toSize(k)];
                    mayWithhold(member) || member.mayWant(channel.to.block))
                    visit(member, toSize(k), channel);
        });
}

/// Decodes a message in one pass, O(channels / 64 + rims): places accumulate as they did when the sender packed.
template <class Visit>
void SparseFields::State::forEachReceived(std::size_t p, Visit &&visit) const {
    const std::vector<ChannelEnd> &channels = incoming(p);
    DataPlaces places;
    forEachChannel(
        present(p), Bits::words(channels.size() * members.size()), channels.size(),
        [&](std::size_t f, std::size_t k) { visit(f, k, places.add(f, members[f].gather(channels[k]).bytes())); });
}

/// Blocks come and go in `complete` only, so that those of the sending step are the allocated ones that are not fresh.
template <class Visit>
void SparseFields::State::forEachBound(bool freshOnly, Visit &&visit) {
    for (const Member &member : members) {
        const SparseFieldState &field = *member.field;
        // Compact: each block is looked up for each of its neighbours, 26 in three dimensions.
        sources.assign(field.blocks.size(), nullptr);
        field.allocated.forEach([&](int block) {
            if (!member.fresh.test(block))
                sources[toSize(block)] = field.memory(block);
        });
        (freshOnly ? member.fresh : field.allocated).forEach([&](int block) {
            std::byte *const to = field.memory(block);
            for (const std::int32_t k : pattern->localTo(block)) {
                const bool withheld = !member.withheld.empty() && Bits::test(member.withheld.data(), toSize(k));
                const int from = pattern->localChannels()[toSize(k)].from.block;
                visit(member, toSize(k), withheld ? nullptr : sources[toSize(from)], to);
            }
        });
    }
}

template <class Visit>
void SparseFields::State::forEachAbsent(Visit &&visit) {
    for (std::size_t f = 0; f < members.size(); ++f)
        members[f].field->allocated.forEach([&](int block) {
            for (const SparsePattern::Place &place : pattern->receivedBy(block)) {
                const std::vector<ChannelEnd> &channels = pattern->peers()[toSize(place.peer)].received;
                const std::size_t k = toSize(place.channel);
                if (!Bits::test(present(toSize(place.peer)), f * channels.size() + k))
                    visit(members[f], channels[k]);
            }
        });
}

} // namespace DNDS
