#include "DNDS/Link/MessageLink.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Link/MatchedMessage.hpp"
#include "DNDS/Link/NodeMailbox.hpp"
#include "DNDS/Mpi/ArenaNotes.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

/// Runs `allocate`, which makes room for a message of `bytes` bytes. Arenas throw std::bad_alloc, which does not
/// say what for.
template <class Allocate>
auto makeRoom(std::size_t bytes, Allocate &&allocate) {
    try {
        return allocate();
    } catch (const std::bad_alloc &error) {
        throw MemoryError(fmt::format("no room for a message of {} bytes: {}", bytes, error.what()));
    }
}

/// Bytes that follow the size of messages: see `fitsMessage`.
struct MessageBuffer {
    std::unique_ptr<std::byte[]> memory;
    std::size_t capacity = 0;

    std::byte *reserve(std::size_t bytes) {
        if (fitsMessage(capacity, bytes))
            return memory.get();
        memory.reset();
        capacity = 0;
        if (bytes == 0)
            return nullptr;
        memory = makeRoom(bytes, [&] { return std::make_unique_for_overwrite<std::byte[]>(roomForMessage(bytes)); });
        capacity = roomForMessage(bytes);
        return memory.get();
    }
};

} // namespace

/// Both directions to all peers, and the memory that MPI or peers still use after the link is destroyed. Two
/// carriers with one protocol, at most two messages ahead of the reader: with MPI a buffer is free when its send is
/// complete; on a node when the reader has counted the message as taken.
struct MessageLink::State {
    /// The next message of a peer by MPI: not found yet, being received, complete in `in` until `take`.
    enum class Arrival : unsigned char { None, Moving, There };
    /// A send buffer by MPI, free when `request` is null or complete.
    struct Outgoing {
        MessageBuffer buffer;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    struct Peer {
        int rank = 0;
        /// By MPI: used in turn, so that one message can be written while the one before is read.
        std::array<Outgoing, 2> out;
        std::size_t turn = 0; ///< index of the next one
        Arrival arrival = Arrival::None;
        /// By MPI: the message found, the request that receives it, and its memory.
        MatchedMessage matched;
        MPI_Request request = MPI_REQUEST_NULL;
        MessageBuffer in;
        bool drops = false; ///< the next message, after the link was destroyed
        int nodeRank = -1;  ///< set where messages stay on the node
        /// On a node: both set by `connect`, instead of all members above; the outbox in the constructor.
        std::optional<NodeOutbox> outbox;
        std::optional<NodeInbox> inbox;
    };
    std::deque<Peer> peers; ///< MPI knows their addresses
    std::shared_ptr<NodeArena> arena;
    Channel channel;
    std::thread::id maker = std::this_thread::get_id();

    /// Whether the next message of the peer is there.
    bool receive(Peer &peer) const {
        // Matched first, received when there is memory: if that cannot be allocated, the message stays matched, and
        // a later call tries again.
        if (peer.arrival == Arrival::None) {
            if (!peer.matched.find(peer.rank, channel))
                return false;
            peer.matched.receive(peer.in.reserve(peer.matched.bytes()), peer.request);
            peer.arrival = Arrival::Moving;
        }
        if (peer.arrival == Arrival::Moving && isComplete(peer.request))
            peer.arrival = Arrival::There;
        return peer.arrival == Arrival::There;
    }
    /// Whether MPI uses none of this memory any more. What peers of the node have sent counts as taken.
    bool settle() noexcept {
        bool all = true;
        for (Peer &peer : peers) {
            const std::exception_ptr failure = attempt([&] { // no memory for a message now; an error of MPI
                if (peer.inbox)
                    peer.inbox->takeAll();
                for (Outgoing &out : peer.out)
                    all = isComplete(out.request) && all;
                if (peer.matched.isFound() || peer.arrival == Arrival::Moving) // its sender may wait
                    all = receive(peer) && all;
            });
            all = all && !failure;
        }
        return all;
    }
    /// Whether neither MPI nor another rank uses it any more.
    bool finished(bool revoked) noexcept {
        bool settled = settle();
        for (Peer &peer : peers)
            if (peer.drops && !revoked && !peer.outbox) { // else the next communicator of this number might get it
                static_cast<void>(attempt([&] { peer.drops = !receive(peer); }));
                settled = settled && !peer.drops;
            }
        return settled &&
               std::ranges::all_of(peers, [](const Peer &peer) { return !peer.outbox || peer.outbox->isEmpty(); });
    }
};

MessageLink::MessageLink(std::shared_ptr<CommunicatorContext> context, const Channel &channel,
                         std::span<const int> peers)
    : context_(std::move(context)), state_(std::make_shared<State>()) {
    // The carrier follows from the topology and from settings that are the same on all ranks: both ends of a pair
    // choose alike without a message.
    state_->channel = channel;
    const NodeTopology &node = context_->node();
    const std::string transport = readEnvironment().transport; // the same on all ranks
    if (transport.empty() || transport == "auto" || transport == "node-shared")
        state_->arena = node.arena;
    for (const int rank : peers) {
        State::Peer &peer = state_->peers.emplace_back();
        peer.rank = rank;
        if (state_->arena && node.sameNode(rank)) {
            peer.nodeRank = node.nodeRank(rank);
            peer.outbox.emplace(state_->arena);
        }
    }
}

MessageLink::~MessageLink() {
    // Inboxes close first: a sender must not wait for a reader that does not exist any more. The rest is parked
    // until MPI has sent what is in flight and readers of the node have taken it.
    if (mpiActive() && !inForkedChild())
        for (State::Peer &peer : state_->peers)
            peer.inbox.reset(); // its writer does not wait then
    context_->park(
        state_, [state = state_.get(), context = context_.get()] { return state->finished(context->revoked()); },
        state_->maker);
}

void MessageLink::connect() {
    // Each rank tells the peers of its node where it writes for them, and learns where to read: one note each way.
    // Peers are mutual, so the notes match.
    ArenaNotes notes;
    const CommunicatorView &comm = context_->comm();
    comm.guarded([&] {
        for (const State::Peer &peer : state_->peers)
            if (peer.outbox) {
                notes.tell(peer.rank, peer.outbox->location());
                notes.expect(peer.rank);
            }
    });
    notes.exchange(state_->channel);
    comm.guarded([&] {
        std::size_t k = 0;
        for (State::Peer &peer : state_->peers)
            if (peer.outbox)
                peer.inbox.emplace(state_->arena, peer.nodeRank, notes.heard(k++));
    });
}

std::span<std::byte> MessageLink::prepare(std::size_t k, std::size_t bytes) {
    State::Peer &peer = state_->peers[k];
    State::Outgoing &out = peer.out[peer.turn];
    // Two messages may be in flight: this waits for the one before the last, which is in the buffer to be written
    // next.
    waitUntil(
        *context_, [&] { return peer.outbox ? peer.outbox->isReady() : isComplete(out.request); },
        [&] { return fmt::format("rank {} to take a message", peer.rank); });
    if (peer.outbox)
        return {makeRoom(bytes, [&] { return peer.outbox->prepare(bytes); }), bytes};
    return {out.buffer.reserve(bytes), bytes};
}

void MessageLink::send(std::size_t k, std::size_t bytes) {
    State::Peer &peer = state_->peers[k];
    if (peer.outbox)
        return peer.outbox->send(bytes);
    State::Outgoing &out = peer.out[peer.turn];
    const ByteCount size(bytes);
    checkMpi(MPI_Isend(out.buffer.memory.get(), size.count(), size.type(), peer.rank, state_->channel.tag,
                       state_->channel.comm, &out.request),
             "MPI_Isend");
    peer.turn = 1 - peer.turn;
}

bool MessageLink::receive(std::size_t k) {
    State::Peer &peer = state_->peers[k];
    return peer.inbox ? peer.inbox->isThere() : state_->receive(peer);
}

std::span<const std::byte> MessageLink::received(std::size_t k) const {
    const State::Peer &peer = state_->peers[k];
    if (peer.inbox)
        return peer.inbox->message();
    return {peer.in.memory.get(), peer.matched.bytes()};
}

void MessageLink::take(std::size_t k) {
    State::Peer &peer = state_->peers[k];
    if (peer.inbox)
        peer.inbox->take();
    peer.arrival = State::Arrival::None;
}

void MessageLink::dropNext(std::size_t k) noexcept { state_->peers[k].drops = true; }

bool MessageLink::settle() noexcept { return state_->settle(); }

void MessageLink::renew() {
    // All ranks have settled: nothing of the old channel is in flight, and counters of mailboxes start over on both
    // sides.
    state_->channel = context_->renewed(state_->channel);
    for (State::Peer &peer : state_->peers) {
        peer.arrival = State::Arrival::None;
        peer.turn = 0;
        if (peer.outbox)
            peer.outbox->renew();
        if (peer.inbox)
            peer.inbox->renew();
    }
}

std::size_t MessageLink::bufferBytes() const noexcept {
    std::size_t bytes = 0;
    for (const State::Peer &peer : state_->peers)
        bytes += peer.in.capacity + peer.out[0].buffer.capacity + peer.out[1].buffer.capacity +
                 (peer.outbox ? peer.outbox->bytes() : 0);
    return bytes;
}

} // namespace DNDS
