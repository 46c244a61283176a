#include "DNDS/Sparse/PeerMessages.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Sparse/MatchedMessage.hpp"
#include "DNDS/Sparse/NodeMailbox.hpp"
#include "DNDS/Transport/PeerFailure.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace DNDS {

namespace {

/// Bytes that follow the size of messages: see `fitsMessage`.
struct MessageBuffer {
    std::unique_ptr<std::byte[]> memory;
    std::size_t capacity = 0;

    void reserve(std::size_t bytes) {
        if (fitsMessage(capacity, bytes))
            return;
        memory.reset();
        capacity = 0;
        if (bytes == 0)
            return;
        try {
            memory = std::make_unique_for_overwrite<std::byte[]>(roomForMessage(bytes));
        } catch (const std::bad_alloc &) {
            throw MemoryError(fmt::format("no room for a message of {} bytes", bytes));
        }
        capacity = roomForMessage(bytes);
    }
};

/// The first message to a peer on the node: where it finds this rank's outbox.
struct Greeting {
    std::uint64_t hasOutbox = 0; ///< 0: there was no room for one, and messages come
    std::uint64_t segment = 0;
    std::uint64_t offset = 0;
};

} // namespace

struct PeerMessages::Buffers {
    enum class Arrival : unsigned char { None, Moving, There };
    struct Outgoing {
        alignas(16) std::array<std::byte, mostNoteBytes> small; ///< so that short messages never lack memory
        MessageBuffer large;
        std::byte *prepared = nullptr;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    /// A short message beside the others.
    struct Note {
        std::array<std::byte, mostNoteBytes> bytes;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    struct Peer {
        int rank = 0;
        std::array<Outgoing, 2> out;
        Note note;
        Note farewell;
        bool saidFarewell = false;
        std::size_t turn = 0; ///< which of them is next
        Arrival state = Arrival::None;
        MatchedMessage matched;
        MPI_Request request = MPI_REQUEST_NULL;
        MessageBuffer in;

        int nodeRank = -1;   ///< where messages may stay on the node
        bool greets = false; ///< its greeting has not come yet
        Note greeting;       ///< of this rank
        std::optional<NodeOutbox> outbox;
        std::optional<NodeInbox> inbox;
    };
    std::deque<Peer> peers; ///< MPI knows their addresses
    std::shared_ptr<NodeArena> arena;
    bool ended = false; ///< the communicator was freed: nothing can be found any more
    Channel channel;
    std::array<std::byte, mostNoteBytes> farewell{};
    std::size_t farewellBytes = 0;
    std::thread::id maker = std::this_thread::get_id();
    std::shared_ptr<Buffers> keptForEver; ///< itself, where there was no memory to park it
    Buffers *keptBefore = nullptr;        ///< the one that was kept before it: leak checkers find all
    static inline std::atomic<Buffers *> keptLast{nullptr};

    /// Keeps `buffers` until the process ends. Needs no memory.
    static void keep(const std::shared_ptr<Buffers> &buffers) noexcept {
        buffers->keptForEver = buffers;
        buffers->keptBefore = keptLast.load();
        while (!keptLast.compare_exchange_weak(buffers->keptBefore, buffers.get())) {
        }
    }

    static bool complete(MPI_Request &request) {
        int done = 1;
        if (request != MPI_REQUEST_NULL)
            checkMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        return done != 0;
    }
    void send(const Peer &peer, std::span<const std::byte> bytes, MPI_Request &request) const {
        const ByteCount size(bytes.size());
        checkMpi(MPI_Isend(bytes.data(), size.count(), size.type(), peer.rank, channel.tag, channel.comm, &request),
                 "MPI_Isend");
    }
    void send(const Peer &peer, std::span<const std::byte> bytes, Note &note) const {
        std::ranges::copy(bytes, note.bytes.begin());
        send(peer, std::span(note.bytes).first(bytes.size()), note.request);
    }
    /// Makes an outbox for a peer on the node, and tells it.
    void greet(Peer &peer, int nodeRank);
    /// Whether the peer's greeting has come.
    bool wasGreeted(Peer &peer) const;
    bool receive(Peer &peer) const;
    bool receiveMessage(Peer &peer) const;
    /// Whether the message that is there is the peer's last one.
    bool isFarewell(const Peer &peer) const {
        return farewellBytes > 0 && peer.matched.bytes() == farewellBytes &&
               std::equal(farewell.begin(), farewell.begin() + farewellBytes, peer.in.memory.get());
    }
    bool close(Peer &peer) const;
    /// For the time after the object: says farewell, and takes what peers send up to their own. Whether MPI needs
    /// nothing of this any more.
    bool close() noexcept {
        try {
            bool all = true;
            for (Peer &peer : peers)
                all = close(peer) && all;
            return all;
        } catch (...) { // no memory for a message now; an error of MPI
            return false;
        }
    }
};

void PeerMessages::Buffers::greet(Peer &peer, int nodeRank) {
    peer.in.reserve(sizeof(Greeting)); // where it comes there may be no memory
    peer.nodeRank = nodeRank;
    peer.greets = true;
    Greeting greeting;
    try {
        const ArenaLocation at = peer.outbox.emplace(arena).location();
        greeting = {1, at.segment, at.offset};
    } catch (const std::bad_alloc &) {
        peer.outbox.reset();
    }
    send(peer, std::as_bytes(std::span(&greeting, 1)), peer.greeting);
}

bool PeerMessages::Buffers::wasGreeted(Peer &peer) const {
    if (!peer.greets)
        return true;
    if (!receiveMessage(peer))
        return false;
    Greeting greeting;
    std::memcpy(&greeting, peer.in.memory.get(), sizeof greeting);
    if (greeting.hasOutbox != 0) {
        if (!arena->alive(peer.nodeRank)) // which `checkPeer` says
            return false;
        peer.inbox.emplace(arena, peer.nodeRank,
                           ArenaLocation{static_cast<std::uint32_t>(greeting.segment), greeting.offset});
    }
    peer.state = Arrival::None;
    peer.greets = false;
    return true;
}

/// Whether the next message of the peer is there.
bool PeerMessages::Buffers::receive(Peer &peer) const {
    if (!wasGreeted(peer))
        return false;
    if (!peer.inbox)
        return receiveMessage(peer);
    if (!peer.inbox->isThere())
        return false;
    try {
        (void)peer.inbox->message();
        return true;
    } catch (const MemoryError &) {
        if (arena->alive(peer.nodeRank))
            throw;
        return false; // it cannot be mapped any more; `checkPeer` says so
    }
}

bool PeerMessages::Buffers::receiveMessage(Peer &peer) const {
    if (peer.state == Arrival::None) {
        if (!peer.matched.find(peer.rank, channel))
            return false;
        peer.in.reserve(peer.matched.bytes());
        peer.matched.receive(peer.in.memory.get(), peer.request);
        peer.state = Arrival::Moving;
    }
    if (peer.state == Arrival::Moving && complete(peer.request))
        peer.state = Arrival::There;
    return peer.state == Arrival::There;
}

bool PeerMessages::Buffers::close(Peer &peer) const {
    if (farewellBytes > 0 && !peer.saidFarewell) {
        if (!peer.outbox)
            send(peer, std::span(farewell).first(farewellBytes), peer.farewell);
        peer.saidFarewell = !peer.outbox || peer.outbox->sendNote(std::span(farewell).first(farewellBytes));
    }
    bool all = complete(peer.farewell.request) && complete(peer.note.request) && complete(peer.greeting.request);
    for (Outgoing &out : peer.out)
        all = complete(out.request) && all;
    if (peer.outbox)
        all = peer.outbox->isEmpty() && (peer.saidFarewell || farewellBytes == 0) && all;
    if (ended && peer.state == Arrival::None && !peer.matched.isFound() && peer.greets)
        return all;
    if (!wasGreeted(peer))
        return false;
    if (peer.inbox) { // its writer waits for nobody then
        peer.inbox->close();
        return all;
    }
    if (farewellBytes == 0) // what was found has to be received: its sender may wait for that
        return ((peer.state == Arrival::None && !peer.matched.isFound()) || receive(peer)) && all;
    while (receive(peer) && !isFarewell(peer))
        peer.state = Arrival::None;
    return peer.state == Arrival::There && all;
}

PeerMessages::PeerMessages(std::shared_ptr<CommunicatorContext> context, const Channel &channel,
                           std::span<const int> peers)
    : context_(std::move(context)), channel_(channel), buffers_(std::make_shared<Buffers>()),
      crowded_(context_->node().crowded), patience_(readEnvironment().waitTimeout) {
    buffers_->channel = channel;
    const NodeTopology &node = context_->node();
    const std::string transport = readEnvironment().transport; // the same on all ranks
    if (transport.empty() || transport == "auto" || transport == "node-shared")
        buffers_->arena = node.arena;
    for (const int rank : peers) {
        Buffers::Peer &peer = buffers_->peers.emplace_back();
        peer.rank = rank;
        if (buffers_->arena && node.sameNode(rank))
            buffers_->greet(peer, node.nodeRank(rank));
    }
}

void PeerMessages::setFarewell(std::span<const std::byte> bytes) noexcept {
    std::ranges::copy(bytes, buffers_->farewell.begin());
    buffers_->farewellBytes = bytes.size();
}

PeerMessages::~PeerMessages() {
    if (!mpiActive() || inForkedChild())
        return;
    Buffers *const buffers = buffers_.get();
    try {
        const bool mayAsk = mayCallMpi(buffers->maker);
        if (!context_->alive()) { // what goes through it has ended with it
            buffers->farewellBytes = 0;
            buffers->ended = true;
        }
        if (mayAsk && buffers->close())
            return;
        const auto closed = [buffers] { return buffers->close(); };
        if (context_->alive() && mayAsk)
            context_->park(buffers_, closed);
        else
            context_->leave(buffers_, closed);
    } catch (...) { // no memory
        Buffers::keep(buffers_);
    }
}

std::span<std::byte> PeerMessages::prepare(std::size_t k, std::size_t bytes) {
    Buffers::Peer &peer = buffers_->peers[k];
    Buffers::Outgoing &out = peer.out[peer.turn];
    Backoff backoff(channel_.comm, crowded_);
    while (peer.outbox ? !peer.outbox->isReady() : !Buffers::complete(out.request)) {
        backoff.pause();
        if (backoff.longWait())
            checkPeer(k, "take a message", backoff.seconds());
    }
    if (peer.outbox)
        try {
            return {peer.outbox->prepare(bytes), bytes};
        } catch (const std::bad_alloc &error) {
            throw MemoryError(fmt::format("no room for a message of {} bytes: {}", bytes, error.what()));
        }
    out.large.reserve(bytes > out.small.size() ? bytes : 0);
    out.prepared = bytes > out.small.size() ? out.large.memory.get() : out.small.data();
    return {out.prepared, bytes};
}

void PeerMessages::send(std::size_t k, std::size_t bytes) {
    Buffers::Peer &peer = buffers_->peers[k];
    if (peer.outbox)
        return peer.outbox->send(bytes);
    Buffers::Outgoing &out = peer.out[peer.turn];
    buffers_->send(peer, {out.prepared, bytes}, out.request);
    peer.turn = 1 - peer.turn;
}

bool PeerMessages::sendNote(std::size_t k, std::span<const std::byte> bytes) noexcept {
    Buffers::Peer &peer = buffers_->peers[k];
    if (peer.outbox)
        return peer.outbox->sendNote(bytes);
    try {
        if (!Buffers::complete(peer.note.request))
            return false;
        buffers_->send(peer, bytes, peer.note);
        return true;
    } catch (...) { // an error of MPI, which the next call reports
        return false;
    }
}

bool PeerMessages::receive(std::size_t k) { return buffers_->receive(buffers_->peers[k]); }

std::span<const std::byte> PeerMessages::received(std::size_t k) const {
    const Buffers::Peer &peer = buffers_->peers[k];
    if (peer.inbox)
        return peer.inbox->message();
    return {peer.in.memory.get(), peer.matched.bytes()};
}

void PeerMessages::take(std::size_t k) {
    Buffers::Peer &peer = buffers_->peers[k];
    if (peer.inbox)
        peer.inbox->take();
    peer.state = Buffers::Arrival::None;
}

bool PeerMessages::staysOnNode(std::size_t k) const noexcept { return buffers_->peers[k].outbox.has_value(); }

void PeerMessages::checkPeer(std::size_t k, std::string_view what, double secondsWaited) const {
    const NodeTopology &node = context_->node();
    const int rank = buffers_->peers[k].rank;
    const bool alive = !node.arena || !node.sameNode(rank) || node.arena->alive(node.nodeRank(rank));
    DNDS::checkPeer(alive, rank, what, secondsWaited, patience_, node.arena.get());
}

std::size_t PeerMessages::bufferBytes() const noexcept {
    std::size_t bytes = 0;
    for (const Buffers::Peer &peer : buffers_->peers)
        bytes += peer.in.capacity + peer.out[0].large.capacity + peer.out[1].large.capacity +
                 (peer.outbox ? peer.outbox->bytes() : 0);
    return bytes;
}

} // namespace DNDS
