/// @file SparseFieldsState.hpp
/// @brief What an exchange of sparse fields is made of. SparseFields.cpp has its steps on the host,
/// SparseFieldsOnDevice.cpp those on the device.
#pragma once

#include "DNDS/Sparse/PeerMessages.hpp"
#include "DNDS/Sparse/PollTimer.hpp"
#include "DNDS/Sparse/SparseDevice.hpp"
#include "DNDS/Sparse/SparseFieldState.hpp"
#include "DNDS/Sparse/SparseFields.hpp"
#include "DNDS/Sparse/SparseMessage.hpp"
#include "DNDS/Transport/RowScatter.hpp"

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {

struct SparseFields::State {
    /// A field with what exchanges need of it.
    struct Member {
        std::shared_ptr<SparseFieldState> field;
        const SparsePattern::Copies *copies = nullptr;
        std::vector<std::byte> defaults; ///< as many as the largest shape has
        BlockBits wanted;                ///< blocks that got something loud and are absent
        BlockBits fresh;                 ///< blocks that this exchange has allocated

        const RowGather &gather(const ChannelEnd &end) const { return copies->gathers[toSize(end.shape)]; }
        const RowScatter &scatter(const ChannelEnd &end) const { return copies->scatters[toSize(end.shape)]; }
        SparseKind kind() const {
            return {field->elements->bits(), field->elements->kind(),
                    static_cast<std::uint32_t>(field->elements->bytes()),
                    static_cast<std::uint32_t>(field->options.components)};
        }
    };
    /// A rim that the device has packed.
    struct Packed {
        std::size_t offset = 0; ///< in pinned memory
        bool loud = false;
    };
    struct Peer {
        std::vector<std::uint64_t> present; ///< of what is sent
        std::size_t mostBytes = 0;          ///< of data to be sent
        bool arrived = false;
        bool usable = false; ///< the message holds bits and data
        bool kept = false;   ///< the message is for later exchanges, too
        bool closed = false; ///< nothing comes any more
    };

    // Set-up.
    State(std::string label, std::span<SparseFieldCore *const> cores);

    // Steps.
    void begin();
    void dropOld() noexcept;
    void abandon() noexcept;
    void build();
    void sendLocal();
    void sendNonLocal();
    std::size_t pack(std::size_t p, SparseHeader::Code code);
    SparseHeader headerOf(SparseHeader::Code code, std::uint64_t dataStart) const {
        return {epoch, signature, code, stages, dataStart};
    }
    void refuse(std::size_t p) noexcept;
    /// Throws MemoryError, which was made beforehand.
    [[noreturn]] void failForMemory() const { std::rethrow_exception(noMemory); }
    /// Throws StateError in a forked child, after MPI_Finalize, and where the communicator was freed.
    void requireUsable() const;
    void checkPeers(double seconds);
    bool receive();
    bool receiveFrom(std::size_t p);
    void accept(std::size_t p);
    void wantLoud(std::size_t p);
    void setLocal(bool freshOnly);
    void setNonLocal(bool freshOnly);
    void unpack(std::size_t p, bool freshOnly);
    void fillAbsent();
    void complete();
    void allocateWanted();
    bool anyFresh() const noexcept;
    void freeEmpty();
    /// Calls `visit(field's member, channel's number, whether its source is there)` for the channels within this rank
    /// whose ghosts are to be filled.
    template <class Visit>
    void forEachBound(bool freshOnly, Visit &&visit) const;
    /// Calls `visit(field, end of the channel)` for ghosts for which nothing came from other ranks.
    template <class Visit>
    void forEachAbsent(Visit &&visit) const;
    /// Calls `visit(field's member, local channel)` for those that may make an absent block be wanted.
    template <class Visit>
    void forEachAsking(Visit &&visit);
    bool packRim(const Member &member, const ChannelEnd &channel, std::byte *to);

    // The same on the device, all channels at a time.
    bool onDevice() const noexcept { return space == MemorySpace::Device; }
    SparseJob jobOf(const Member &member, const ChannelEnd *from, const ChannelEnd *to) const;
    void packOnDevice();
    void sendLocalOnDevice();
    void setLocalOnDevice(bool freshOnly);
    void setNonLocalOnDevice(bool freshOnly);
    void fillFreshOnDevice();
    std::vector<bool> emptyOnDevice();
    /// Remembers the first failure, which is thrown when the exchange is over. `text` says what, if there is memory.
    template <class AnyError, class Text>
    void noteFailure(Text &&text) noexcept {
        if (failure)
            return;
        try {
            throw AnyError(text());
        } catch (...) {
            failure = std::current_exception();
        }
    }
    /// Calls `visit(field, channel, is loud, data)` for all that the message from peer `p` holds.
    template <class Visit>
    void forEachReceived(std::size_t p, Visit &&visit) const;

    std::string name;
    std::string awaited; ///< what peers are to do, for messages: a wait allocates nothing
    std::shared_ptr<const SparsePattern> pattern;
    std::vector<Member> members;
    std::vector<Peer> peers;
    std::unique_ptr<PeerMessages> messages;
    std::vector<std::byte> scratch;        ///< for the largest shape of the widest field
    MemorySpace space = MemorySpace::Host; ///< of all fields in this exchange
    std::unique_ptr<SparseDevice> device;  ///< once they were there
    std::vector<Packed> packed;            ///< in the order of messages
    std::size_t nextPacked = 0;
    std::uint64_t signature = 0;
    std::uint64_t epoch = 0;
    std::uint32_t stages = 0; ///< see SparseHeader
    SparseTraffic traffic;

    bool inFlight = false;
    bool sentLocal = false;
    bool sentNonLocal = false;
    bool localSet = false;
    bool nonLocalSet = false;
    bool incomplete = false; ///< there was no memory for what came; another attempt may succeed
    bool lostLast = false;   ///< the exchange before was given up for that
    bool gaveUp = false;     ///< the exchange before was: its messages may still come
    std::exception_ptr failure;
    std::exception_ptr noMemory; ///< what to throw where there is none to say it
    PollTimer polling;           ///< while a program asks whether all has come
};

template <class Visit>
void SparseFields::State::forEachAsking(Visit &&visit) {
    for (Member &member : members)
        member.field->allocated.forEach([&](int block) {
            for (const std::int32_t k : pattern->localFrom(block)) {
                const LocalChannel &channel = pattern->localChannels()[toSize(k)];
                if (!member.field->allocated.test(channel.to.block) && !member.wanted.test(channel.to.block))
                    visit(member, channel);
            }
        });
}

template <class Visit>
void SparseFields::State::forEachReceived(std::size_t p, Visit &&visit) const {
    const std::vector<ChannelEnd> &channels = pattern->peers()[p].received;
    const std::byte *const from = messages->received(p).data();
    SparseHeader header;
    std::memcpy(&header, from, sparseHeaderBytes);
    const auto *const present = reinterpret_cast<const std::uint64_t *>(from + sparseHeaderBytes);
    const std::size_t words = Bits::words(channels.size() * members.size());
    const std::uint64_t *const loud = present + words;
    std::size_t at = header.dataStart;
    std::size_t number = 0;
    std::size_t lastField = 0;
    Bits::forEach(present, words, [&](std::size_t bit) {
        const std::size_t f = bit / channels.size();
        const ChannelEnd &channel = channels[bit % channels.size()];
        at = f == lastField ? at : alignTo8(at);
        visit(f, channel, Bits::test(loud, number++), from + at);
        at += members[f].gather(channel).bytes();
        lastField = f;
    });
}

template <class Visit>
void SparseFields::State::forEachBound(bool freshOnly, Visit &&visit) const {
    for (const Member &member : members)
        (freshOnly ? member.fresh : member.field->allocated).forEach([&](int block) {
            for (const std::int32_t k : pattern->localTo(block)) {
                const int from = pattern->localChannels()[toSize(k)].from.block;
                visit(member, toSize(k), member.field->allocated.test(from) && !member.fresh.test(from));
            }
        });
}

template <class Visit>
void SparseFields::State::forEachAbsent(Visit &&visit) const {
    for (std::size_t f = 0; f < members.size(); ++f) {
        const Member &member = members[f];
        member.field->allocated.forEach([&](int block) {
            for (const SparsePattern::Place &place : pattern->receivedBy(block)) {
                const auto p = toSize(place.peer);
                if (!peers[p].usable)
                    continue;
                const std::vector<ChannelEnd> &channels = pattern->peers()[p].received;
                const auto *const present =
                    reinterpret_cast<const std::uint64_t *>(messages->received(p).data() + sparseHeaderBytes);
                if (!Bits::test(present, f * channels.size() + toSize(place.channel)))
                    visit(member, channels[toSize(place.channel)]);
            }
        });
    }
}

} // namespace DNDS
