#include "DNDS/Link/MessageLink.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/SharedMemory.hpp"
#include "DNDS/Link/MatchedMessage.hpp"
#include "DNDS/Link/NodeMailbox.hpp"
#include "DNDS/Mpi/ArenaNotes.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <thread>
#include <utility>

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

/// A buffer that grows and shrinks with the messages (`fitsMessage`), so that one large message does not keep its
/// memory for ever. On the host, or on the device.
struct MessageBuffer {
    std::unique_ptr<std::byte[]> memory;
    Device::DeviceBuffer<std::byte> onDevice;
    std::size_t capacity = 0;

    /// Address for the program, or kernels.
    std::byte *data() const noexcept { return memory ? memory.get() : onDevice.data(); }
    /// Address for MPI: on the emulated device it differs.
    void *forMpi() const {
        return memory || capacity == 0 ? memory.get() : Device::messageAddress(onDevice.data(), capacity);
    }
    /// Makes room for `bytes` bytes; the contents are lost if the buffer is replaced. The old one is freed first: both
    /// together might exceed the device's memory.
    void reserve(std::size_t bytes, MemorySpace space) {
        if (fitsMessage(capacity, bytes))
            return;
        *this = {};
        if (bytes == 0)
            return;
        const std::size_t room = roomForMessage(bytes);
        if (space == MemorySpace::Device)
            onDevice = Device::DeviceBuffer<std::byte>(room);
        else
            memory = makeRoom(bytes, [&] { return std::make_unique_for_overwrite<std::byte[]>(room); });
        capacity = room;
    }
};

/// A note in the mailbox of a rank of the node, in place of a message in device memory.
struct DeviceNote {
    Device::SharedHandle memory;
    std::uint64_t bytes = 0;
};

bool operator==(const Device::SharedHandle &a, const Device::SharedHandle &b) noexcept { return a.bytes == b.bytes; }

} // namespace

/// Both directions to all peers, and the memory that MPI or peers still use after the link is destroyed. Two
/// carriers with one protocol, at most two messages ahead of the reader: with MPI a buffer is free when its send is
/// complete; on a node when the reader has counted the message as taken. Mailboxes of messages in device memory hold
/// notes that name the memory: a reader keeps it open, and closes memory that was replaced when it finds its successor.
struct MessageLink::State {
    /// The next message of a peer by MPI: not found yet, being received, complete in `in` until `take`.
    enum class Arrival : unsigned char { None, Moving, There };
    /// One of the two send buffers for a peer. By MPI, it is free when `request` is null or complete. For a rank of the
    /// node, messages in device memory stay here: the mailbox carries a note with the handle, by which the reader opens
    /// the buffer.
    struct Outgoing {
        MessageBuffer buffer;
        MPI_Request request = MPI_REQUEST_NULL;
        /// For a rank of the node: the handle of `buffer`, whether a message has named it, and the previous buffer,
        /// which the reader may have open until it takes a message that names the present one.
        Device::SharedHandle handle;
        bool told = false;
        MessageBuffer before;

        /// Makes room for `bytes` bytes; called when the last message from this buffer was taken. Invariant: at most
        /// two buffers exist, the present one and, if the reader may have it open, its predecessor. That one is freed
        /// when a message that names its successor was taken, as the reader closed it on reading that note.
        void share(std::size_t bytes) {
            if (told)
                before = {};
            if (fitsMessage(buffer.capacity, bytes))
                return;
            MessageBuffer old = std::exchange(buffer, {});
            if (std::exchange(told, false))
                before = std::move(old);
            MessageBuffer next;
            next.reserve(bytes, MemorySpace::Device);
            handle = bytes == 0 ? Device::SharedHandle{} : Device::share(next.data());
            buffer = std::move(next); // after the handle, which may throw: an empty buffer is replaced again
        }
    };
    /// A sender's buffer in device memory that this rank has open, and the size of the message there. It stays open
    /// from message to message, as opening takes a driver call, until a note names another one.
    struct Opened {
        Device::SharedHandle handle;
        Device::SharedMemory memory;
        std::size_t bytes = 0;
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
        /// On a node, instead of the members above except `out` of messages in device memory. The outbox is set by the
        /// constructor, the inbox by `connect`.
        std::optional<NodeOutbox> outbox;
        std::optional<NodeInbox> inbox;
        /// On a node, in device memory: used in turn, as the sender's `out`.
        std::array<Opened, 2> opened;
        std::size_t turnToTake = 0; ///< index of the next message's buffer

        /// Reads the note in the inbox, and opens the buffer that it names unless that is open. Its predecessor is
        /// closed first, which lets the sender free it.
        void open() {
            DeviceNote note;
            std::memcpy(static_cast<void *>(&note), inbox->message().data(), sizeof note);
            Opened &here = opened[turnToTake];
            if (!(here.handle == note.memory)) {
                here = {};
                // Before the memory is opened: from now on a sender that ends keeps it.
                inbox->hold(true);
                here.memory = Device::SharedMemory(note.memory);
                here.handle = note.memory;
            }
            here.bytes = note.bytes;
        }
        /// Closes the opened buffers, which lets the sender free them. Kernels that read them have run.
        void close() noexcept {
            opened = {};
            inbox->hold(false);
        }
    };
    std::deque<Peer> peers;                ///< MPI knows their addresses
    MemorySpace space = MemorySpace::Host; ///< memory of all messages
    std::shared_ptr<NodeArena> arena;
    Channel channel;
    std::thread::id maker = std::this_thread::get_id();

    /// Whether the next message of the peer is there.
    /// O(1), never waits. States of an arrival: None (probed for), Moving (its receive is in flight), There, and None
    /// again after `take`. One message of a peer at a time, so messages are received in the order of their sends.
    bool receive(Peer &peer) const {
        // Matched first, received when there is memory: if that cannot be allocated, the message stays matched, and
        // a later call tries again.
        if (peer.arrival == Arrival::None) {
            if (!peer.matched.find(peer.rank, channel))
                return false;
            peer.in.reserve(peer.matched.bytes(), space);
            peer.matched.receive(static_cast<std::byte *>(peer.in.forMpi()), peer.request);
            peer.arrival = Arrival::Moving;
        }
        if (peer.arrival == Arrival::Moving && isComplete(peer.request))
            peer.arrival = Arrival::There;
        return peer.arrival == Arrival::There;
    }
    /// Whether MPI uses none of this memory any more; called again until then. Messages that were found are received,
    /// as a large send completes only with its receive and the sender may wait for it. Messages of ranks of the node
    /// count as taken, unread.
    bool settle() noexcept {
        bool all = true;
        for (Peer &peer : peers) {
            const std::exception_ptr failure = attempt([&] { // no memory for a message now; an error of MPI
                if (peer.inbox) {
                    peer.close();
                    peer.inbox->takeAll();
                }
                for (Outgoing &out : peer.out)
                    all = isComplete(out.request) && all;
                if (peer.matched.isFound() || peer.arrival == Arrival::Moving) // its sender may wait
                    all = receive(peer) && all;
            });
            all = all && !failure;
        }
        return all;
    }
    /// Whether neither MPI nor another rank uses this memory any more: `settle`, then the messages that `dropNext` has
    /// announced, then all readers of the node have to take their messages.
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
                         std::span<const int> peers, std::span<const TransportKind> onDevice)
    : context_(std::move(context)), state_(std::make_shared<State>()) {
    // The carrier follows from the topology and from settings that are the same on all ranks: both ends of a pair
    // choose alike without a message.
    state_->channel = channel;
    const NodeTopology &node = context_->node();
    const std::string transport = readEnvironment().transport; // the same on all ranks
    const bool byMailbox = transport.empty() || transport == "auto" || transport == "node-shared";
    state_->arena = node.arena;
    state_->space = onDevice.empty() ? MemorySpace::Host : MemorySpace::Device;
    for (const int rank : peers) {
        const std::size_t k = state_->peers.size();
        State::Peer &peer = state_->peers.emplace_back();
        peer.rank = rank;
        if (onDevice.empty() ? byMailbox && node.arena && node.sameNode(rank) : onDevice[k] == TransportKind::Peer) {
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
            if (peer.inbox) {
                peer.close();
                peer.inbox.reset(); // its writer does not wait then
            }
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

// O(1) while the buffer fits. Message n waits until message n - 2 was taken (within a node) or sent: neighbours may
// be a step apart, and each peer costs two buffers of memory.
std::span<std::byte> MessageLink::prepare(std::size_t k, std::size_t bytes) {
    State::Peer &peer = state_->peers[k];
    State::Outgoing &out = peer.out[peer.turn];
    // Two messages may be in flight: this waits for the one before the last, which is in the buffer to be written
    // next.
    waitUntil(
        *context_, [&] { return peer.outbox ? peer.outbox->isReady() : isComplete(out.request); },
        [&] { return fmt::format("rank {} to take a message", peer.rank); });
    if (peer.outbox && state_->space == MemorySpace::Host)
        return {makeRoom(bytes, [&] { return peer.outbox->prepare(bytes); }), bytes};
    // Replacing the buffer is safe here: nothing in flight uses this one of the two.
    peer.outbox ? out.share(bytes) : out.buffer.reserve(bytes, state_->space);
    return {out.buffer.data(), bytes};
}

// O(1), does not wait: one release store within a node, one MPI_Isend elsewhere. The ring, or MPI's order of messages
// on one channel, keeps the order of a pair.
void MessageLink::send(std::size_t k, std::size_t bytes) {
    State::Peer &peer = state_->peers[k];
    if (peer.outbox && state_->space == MemorySpace::Host)
        return peer.outbox->send(bytes);
    State::Outgoing &out = peer.out[peer.turn];
    if (peer.outbox) {
        const DeviceNote note{out.handle, bytes};
        std::memcpy(makeRoom(sizeof note, [&] { return peer.outbox->prepare(sizeof note); }), &note, sizeof note);
        peer.outbox->send(sizeof note);
        out.told = true;
    } else {
        const ByteCount size(bytes);
        checkMpi(MPI_Isend(out.buffer.forMpi(), size.count(), size.type(), peer.rank, state_->channel.tag,
                           state_->channel.comm, &out.request),
                 "MPI_Isend");
    }
    peer.turn = 1 - peer.turn;
}

bool MessageLink::receive(std::size_t k) {
    State::Peer &peer = state_->peers[k];
    if (!peer.inbox)
        return state_->receive(peer);
    const bool isThere = peer.inbox->isThere();
    if (isThere && state_->space == MemorySpace::Device)
        peer.open();
    return isThere;
}

std::span<const std::byte> MessageLink::received(std::size_t k) const {
    const State::Peer &peer = state_->peers[k];
    if (!peer.inbox)
        return {peer.in.data(), peer.matched.bytes()};
    if (state_->space == MemorySpace::Host)
        return peer.inbox->message();
    const State::Opened &here = peer.opened[peer.turnToTake];
    return {here.memory.as<const std::byte>(), here.bytes};
}

void MessageLink::take(std::size_t k) {
    State::Peer &peer = state_->peers[k];
    if (peer.inbox)
        peer.inbox->take();
    peer.turnToTake = 1 - peer.turnToTake;
    peer.arrival = State::Arrival::None;
}

void MessageLink::dropNext(std::size_t k) noexcept { state_->peers[k].drops = true; }

bool MessageLink::settle() noexcept { return state_->settle(); }

// Local, between two meetings of a recovery, so no peer polls a mailbox or has a buffer open meanwhile.
void MessageLink::renew() {
    // All ranks have settled: nothing of the old channel is in flight, and counters of mailboxes start over on both
    // sides.
    state_->channel = context_->renewed(state_->channel);
    for (State::Peer &peer : state_->peers) {
        peer.arrival = State::Arrival::None;
        peer.turn = peer.turnToTake = 0;
        for (State::Outgoing &out : peer.out) { // readers have closed all
            out.told = false;
            out.before = {};
        }
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
                 peer.out[0].before.capacity + peer.out[1].before.capacity + (peer.outbox ? peer.outbox->bytes() : 0);
    return bytes;
}

} // namespace DNDS
