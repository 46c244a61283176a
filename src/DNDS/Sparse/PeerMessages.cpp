#include "DNDS/Sparse/PeerMessages.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Transport/Backoff.hpp"
#include "DNDS/Transport/PeerFailure.hpp"

#include <array>
#include <deque>
#include <new>
#include <thread>
#include <utility>

namespace DNDS {

namespace {

/// Bytes that grow, by some more than asked for.
struct MessageBuffer {
    std::unique_ptr<std::byte[]> memory;
    std::size_t capacity = 0;

    void reserve(std::size_t bytes) {
        if (bytes <= capacity)
            return;
        const std::size_t more = bytes + bytes / 4;
        memory.reset();
        capacity = 0;
        try {
            memory = std::make_unique_for_overwrite<std::byte[]>(more);
        } catch (const std::bad_alloc &) {
            throw MemoryError(fmt::format("no room for a message of {} bytes", bytes));
        }
        capacity = more;
    }
};

} // namespace

struct PeerMessages::Buffers {
    enum class Arrival : unsigned char { None, Matched, Moving, There };
    struct Outgoing {
        alignas(16) std::array<std::byte, 64> small; ///< so that short messages never lack memory
        MessageBuffer large;
        std::byte *prepared = nullptr;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    struct Peer {
        int rank = 0;
        std::array<Outgoing, 2> out;
        std::size_t turn = 0; ///< which of them is next
        Arrival state = Arrival::None;
        MPI_Message matched = MPI_MESSAGE_NULL;
        MPI_Request request = MPI_REQUEST_NULL;
        MessageBuffer in;
        std::size_t bytes = 0;
    };
    std::deque<Peer> peers; ///< MPI knows their addresses
    std::thread::id maker = std::this_thread::get_id();
    std::shared_ptr<Buffers> keptForEver; ///< itself, where there was no memory to park it

    static bool complete(MPI_Request &request) {
        int done = 1;
        if (request != MPI_REQUEST_NULL)
            checkMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        return done != 0;
    }
    /// Whether MPI needs nothing of this any more.
    bool idle() noexcept {
        try {
            bool all = true;
            for (Peer &peer : peers) {
                for (Outgoing &out : peer.out)
                    all = complete(out.request) && all;
                all = complete(peer.request) && all;
            }
            return all;
        } catch (...) {
            return false;
        }
    }
};

PeerMessages::PeerMessages(std::shared_ptr<CommunicatorContext> context, const Channel &channel,
                           std::span<const int> peers)
    : context_(std::move(context)), channel_(channel), buffers_(std::make_shared<Buffers>()),
      crowded_(context_->node().crowded), patience_(readEnvironment().waitTimeout) {
    for (const int rank : peers)
        buffers_->peers.emplace_back().rank = rank;
}

PeerMessages::~PeerMessages() {
    if (!mpiActive() || inForkedChild())
        return;
    Buffers *const buffers = buffers_.get();
    try {
        const bool mayAsk = mayCallMpi(buffers->maker);
        if (mayAsk && buffers->idle())
            return;
        const auto idle = [buffers] { return buffers->idle(); };
        if (context_->alive() && mayAsk)
            context_->park(buffers_, idle);
        else
            context_->leave(buffers_, idle);
    } catch (...) { // no memory
        buffers->keptForEver = buffers_;
    }
}

std::span<std::byte> PeerMessages::prepare(std::size_t k, std::size_t bytes) {
    Buffers::Peer &peer = buffers_->peers[k];
    Buffers::Outgoing &out = peer.out[peer.turn];
    Backoff backoff(channel_.comm, crowded_);
    while (!Buffers::complete(out.request)) {
        backoff.pause();
        if (backoff.longWait())
            checkPeer(k, "take a message", backoff.seconds());
    }
    if (bytes > out.small.size())
        out.large.reserve(bytes);
    out.prepared = bytes > out.small.size() ? out.large.memory.get() : out.small.data();
    return {out.prepared, bytes};
}

void PeerMessages::send(std::size_t k, std::size_t bytes) {
    Buffers::Peer &peer = buffers_->peers[k];
    Buffers::Outgoing &out = peer.out[peer.turn];
    const ByteCount size(bytes);
    checkMpi(MPI_Isend(out.prepared, size.count(), size.type(), peer.rank, channel_.tag, channel_.comm, &out.request),
             "MPI_Isend");
    peer.turn = 1 - peer.turn;
}

bool PeerMessages::receive(std::size_t k) {
    using Arrival = Buffers::Arrival;
    Buffers::Peer &peer = buffers_->peers[k];
    if (peer.state == Arrival::None) {
        int found = 0;
        MPI_Status status;
        checkMpi(MPI_Improbe(peer.rank, channel_.tag, channel_.comm, &found, &peer.matched, &status), "MPI_Improbe");
        if (found == 0)
            return false;
        MPI_Count bytes = 0;
        checkMpi(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
        peer.bytes = static_cast<std::size_t>(bytes);
        peer.state = Arrival::Matched;
    }
    if (peer.state == Arrival::Matched) {
        peer.in.reserve(peer.bytes);
        const ByteCount size(peer.bytes);
        checkMpi(MPI_Imrecv(peer.in.memory.get(), size.count(), size.type(), &peer.matched, &peer.request),
                 "MPI_Imrecv");
        peer.state = Arrival::Moving;
    }
    if (peer.state == Arrival::Moving && Buffers::complete(peer.request))
        peer.state = Arrival::There;
    return peer.state == Arrival::There;
}

std::span<const std::byte> PeerMessages::received(std::size_t k) const {
    const Buffers::Peer &peer = buffers_->peers[k];
    return {peer.in.memory.get(), peer.bytes};
}

void PeerMessages::take(std::size_t k) { buffers_->peers[k].state = Buffers::Arrival::None; }

void PeerMessages::checkPeer(std::size_t k, std::string_view what, double secondsWaited) const {
    const NodeTopology &node = context_->node();
    const int rank = buffers_->peers[k].rank;
    const bool alive = !node.arena || !node.sameNode(rank) || node.arena->alive(node.nodeRank[toSize(rank)]);
    DNDS::checkPeer(alive, rank, what, secondsWaited, patience_);
}

std::size_t PeerMessages::bufferBytes() const noexcept {
    std::size_t bytes = 0;
    for (const Buffers::Peer &peer : buffers_->peers)
        bytes += peer.in.capacity + peer.out[0].large.capacity + peer.out[1].large.capacity;
    return bytes;
}

} // namespace DNDS
