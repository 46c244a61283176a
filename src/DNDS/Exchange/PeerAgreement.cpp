#include "DNDS/Exchange/PeerAgreement.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Base/Environment.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Transport/PeerFailure.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

namespace DNDS {

namespace {

/// What both ranks of a pair add to a sum over all ranks: nothing remains where both have the other as peer.
std::uint64_t balanceOf(int rank, int peer) {
    ContentHash hash;
    hash.add(static_cast<std::uint64_t>(std::min(rank, peer)));
    hash.add(static_cast<std::uint64_t>(std::max(rank, peer)));
    return rank < peer ? hash.value() : 0 - hash.value();
}

} // namespace

/// What MPI reads and writes. The messages between two ranks are their words, one a round, and an empty one at the end.
/// One receive a peer is enough: a peer sends the word of the next round when it has this rank's, which was sent after
/// the receive had been started.
struct PeerAgreement::State {
    struct Peer {
        int rank = 0;
        int nodeRank = -1;      ///< on another node: -1
        std::uint64_t word = 0; ///< of this round, when it has come
        bool receiving = false;
        bool left = false;
    };

    State() = default;
    State(const State &) = delete;
    State &operator=(const State &) = delete;
    ~State() {
        if (!mpiActive())
            return;
        for (std::vector<MPI_Request> *requests : {&receives, &sends})
            for (MPI_Request &request : *requests)
                if (request != MPI_REQUEST_NULL)
                    MPI_Request_free(&request);
    }

    void create(const CommunicatorContext &context, const Channel &channel, std::string_view name,
                std::span<const int> ranks);
    /// Sends the word, and expects those of the peers.
    void begin(std::uint64_t mine);
    /// Takes what has come; whether the round is complete.
    bool progress();
    void take(std::size_t k, const MPI_Status &status);
    void startReceive(std::size_t k);
    /// Throws where a peer has another word, or has left.
    void requireAgreement() const;
    /// Throws PeerError where a peer that is waited for has ended, or after too many seconds.
    void checkPeers(double secondsWaited) const;
    /// Tells all peers, once, that no word will follow.
    void leave();
    /// After the object was destroyed: whether nothing moves any more, and all peers have left, too.
    bool ended() noexcept;

    Channel channel;
    std::string what;
    std::vector<Peer> peers;
    std::vector<MPI_Request> receives; ///< persistent, one a peer
    std::vector<MPI_Request> sends;
    std::vector<int> arrived; ///< for MPI_Testsome
    std::vector<MPI_Status> statuses;
    std::shared_ptr<NodeArena> arena;
    bool crowded = false;
    double patience = 0.0;
    std::thread::id maker = std::this_thread::get_id();

    std::uint64_t word = 0;
    std::uint64_t round = 0;
    std::size_t receiving = 0; ///< peers
    bool sent = true;
    bool told = false;                  ///< that this rank has left
    bool ending = false;                ///< words are of no interest any more
    std::optional<std::size_t> failed;  ///< the first peer that has another word, or has left
    std::shared_ptr<State> keptForEver; ///< itself, where there was no memory to park it
};

void PeerAgreement::State::create(const CommunicatorContext &context, const Channel &channelOfItsOwn,
                                  std::string_view name, std::span<const int> ranks) {
    const CommunicatorView &comm = context.comm();
    const NodeTopology &node = context.node();
    channel = channelOfItsOwn;
    what = name;
    arena = node.arena;
    crowded = node.crowded;
    patience = readEnvironment().waitTimeout;
    std::vector<int> sorted(ranks.begin(), ranks.end());
    std::ranges::sort(sorted);
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (const int rank : sorted) {
        DNDS_CHECK(rank >= 0 && rank < comm.size(), IndexError, "there is no rank {} to agree with about {}", rank,
                   what);
        if (rank != comm.rank())
            peers.push_back({rank, arena ? node.nodeRank(rank) : -1});
    }
    receives.assign(peers.size(), MPI_REQUEST_NULL);
    sends.assign(peers.size(), MPI_REQUEST_NULL);
    arrived.resize(peers.size());
    statuses.resize(peers.size());
    for (std::size_t k = 0; k < peers.size(); ++k) {
        checkMpi(MPI_Recv_init(&peers[k].word, 1, MPI_UINT64_T, peers[k].rank, channel.tag, channel.comm, &receives[k]),
                 "MPI_Recv_init");
        checkMpi(MPI_Send_init(&word, 1, MPI_UINT64_T, peers[k].rank, channel.tag, channel.comm, &sends[k]),
                 "MPI_Send_init");
    }
}

void PeerAgreement::State::begin(std::uint64_t mine) {
    word = mine;
    ++round;
    if (peers.empty())
        return;
    for (std::size_t k = 0; k < peers.size(); ++k) // before the word leaves: see above
        startReceive(k);
    checkMpi(MPI_Startall(static_cast<int>(sends.size()), sends.data()), "MPI_Startall");
    sent = false;
}

void PeerAgreement::State::startReceive(std::size_t k) {
    checkMpi(MPI_Start(&receives[k]), "MPI_Start");
    peers[k].receiving = true;
    ++receiving;
}

bool PeerAgreement::State::progress() {
    const int count = static_cast<int>(peers.size());
    if (receiving > 0) {
        int some = 0;
        checkMpi(MPI_Testsome(count, receives.data(), &some, arrived.data(), statuses.data()), "MPI_Testsome");
        for (int k = 0; k < some; ++k)
            take(static_cast<std::size_t>(arrived[static_cast<std::size_t>(k)]), statuses[static_cast<std::size_t>(k)]);
    }
    if (receiving == 0 && !sent) {
        int all = 0;
        checkMpi(MPI_Testall(count, sends.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall");
        sent = all != 0;
    }
    return receiving == 0 && sent;
}

void PeerAgreement::State::take(std::size_t k, const MPI_Status &status) {
    Peer &peer = peers[k];
    peer.receiving = false;
    --receiving;
    int words = 0;
    checkMpi(MPI_Get_count(&status, MPI_UINT64_T, &words), "MPI_Get_count");
    peer.left = words == 0;
    if (ending) {
        if (!peer.left)
            startReceive(k);
    } else if (!failed && (peer.left || peer.word != word)) {
        failed = k;
        leave(); // or peers that agree with this rank would wait for its next word
    }
}

void PeerAgreement::State::requireAgreement() const {
    if (!failed) [[likely]]
        return;
    const Peer &peer = peers[*failed];
    DNDS_CHECK(!peer.left, PeerError, "rank {} has left {} before round {}: it failed there, or has destroyed it",
               peer.rank, what, round);
    throw StateError(
        fmt::format("rank {} and this rank disagree about {} in round {}: its word is {:016x}, this rank's "
                    "is {:016x}",
                    peer.rank, what, round, peer.word, word));
}

void PeerAgreement::State::checkPeers(double secondsWaited) const {
    for (std::size_t k = 0; k < peers.size(); ++k) {
        const Peer &peer = peers[k];
        int taken = 1; // a peer that has ended may have sent its word, and not taken this rank's
        if (!peer.receiving && !sent)
            checkMpi(MPI_Request_get_status(sends[k], &taken, MPI_STATUS_IGNORE), "MPI_Request_get_status");
        if (peer.receiving || taken == 0)
            checkPeer(peer.nodeRank < 0 || arena->alive(peer.nodeRank), peer.rank,
                      fmt::format("{} round {} of {}", peer.receiving ? "begin" : "end", round, what), secondsWaited,
                      patience, arena.get());
    }
}

void PeerAgreement::State::leave() {
    if (std::exchange(told, true))
        return;
    for (const Peer &peer : peers) {
        MPI_Request request = MPI_REQUEST_NULL;
        checkMpi(MPI_Isend(nullptr, 0, MPI_UINT64_T, peer.rank, channel.tag, channel.comm, &request), "MPI_Isend");
        checkMpi(MPI_Request_free(&request), "MPI_Request_free"); // there are no bytes to be kept
    }
}

bool PeerAgreement::State::ended() noexcept {
    try {
        if (!std::exchange(ending, true)) {
            leave();
            for (std::size_t k = 0; k < peers.size(); ++k)
                if (!peers[k].receiving && !peers[k].left)
                    startReceive(k);
        }
        return progress();
    } catch (...) { // MPI may still use the memory
        return false;
    }
}

PeerAgreement::PeerAgreement(std::shared_ptr<CommunicatorContext> context, std::string_view what,
                             std::span<const int> peers)
    : context_(std::move(context)) {
    const CommunicatorContext::SetUp setUp(*context_);
    const CommunicatorView comm = context_->comm();
    const Channel channel = context_->nextChannel(); // before anything can fail: ranks stay in step
    comm.guarded([&] {
        setUp.requireAlone();
        state_ = std::make_shared<State>();
        state_->create(*context_, channel, what, peers);
    });
    std::uint64_t balance = 0;
    for (const State::Peer &peer : state_->peers)
        balance += balanceOf(comm.rank(), peer.rank);
    DNDS_CHECK(comm.allReduce(balance, MPI_SUM) == 0, ArgumentError,
               "the peers of {} are not mutual: where rank a has rank b as peer, b must have a", state_->what);
}

PeerAgreement::~PeerAgreement() {
    State *const state = state_.get();
    if (state->peers.empty() || !mpiActive())
        return;
    try {
        const auto ended = [state] { return state->ended(); };
        if (context_->alive() && mayCallMpi(state->maker))
            context_->park(state_, ended);
        else
            context_->leave(state_, ended);
    } catch (...) { // no memory
        state->keptForEver = state_;
    }
}

std::vector<int> PeerAgreement::peersOf(std::span<const std::shared_ptr<const ExchangePattern>> patterns) {
    std::vector<int> peers;
    for (const auto &pattern : patterns)
        for (const PeerRows *rows : {&pattern->readers(), &pattern->owners()})
            peers.insert(peers.end(), rows->ranks.begin(), rows->ranks.end());
    std::ranges::sort(peers);
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
}

void PeerAgreement::requireUsable() const {
    requireMpiActive("ranks compare what they do");
    DNDS_CHECK(context_->alive(), StateError, "the communicator of {} was freed: free it after the last use",
               state_->what);
}

void PeerAgreement::begin(std::uint64_t word) {
    finish();
    DNDS_CHECK(!state_->told, StateError, "this rank has left {}: make it anew on all ranks", state_->what);
    state_->begin(word);
}

std::optional<int> PeerAgreement::disagreeing() {
    State &state = *state_;
    if (!state.failed && state.receiving > 0) {
        requireUsable();
        state.progress();
    }
    return state.failed ? std::optional(state.peers[*state.failed].rank) : std::nullopt;
}

void PeerAgreement::finish() {
    requireUsable();
    State &state = *state_;
    Backoff backoff(state.channel.comm, state.crowded);
    std::optional<Doing> doing;
    while (!state.progress() && !state.failed) {
        ProgressEngine::progressAll(); // peers may need rows before they begin
        context_->progressParked();
        backoff.pause();
        if (!backoff.longWait())
            continue;
        if (!doing)
            doing.emplace("agreement about", state.what, state.round);
        state.checkPeers(backoff.seconds());
    }
    state.requireAgreement();
}

void PeerAgreement::leave() {
    requireUsable();
    state_->leave();
}

std::uint64_t PeerAgreement::rounds() const noexcept { return state_->round; }

} // namespace DNDS
