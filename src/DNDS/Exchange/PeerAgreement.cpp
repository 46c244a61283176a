#include "DNDS/Exchange/PeerAgreement.hpp"

#include "DNDS/Base/Attempt.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Mpi/RequestSet.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

namespace DNDS {

/// What MPI reads and writes. One receive a peer is enough: a peer sends the word of the next round when it has this
/// rank's, which was sent after the receive had been started.
struct PeerAgreement::State {
    std::string what;
    Channel channel;
    std::vector<int> peers;
    std::vector<std::uint64_t> words; ///< [peers] of this round, where they have come
    std::vector<std::size_t> missing; ///< peers whose words have not
    RequestSet receives{RequestSet::Kind::Receive}, sends{RequestSet::Kind::Send}; ///< [peers] persistent
    std::uint64_t word = 0;
    std::uint64_t round = 0;
    std::thread::id maker = std::this_thread::get_id();

    void makeRequests() {
        receives.clear();
        sends.clear();
        for (std::size_t k = 0; k < peers.size(); ++k) {
            checkMpi(MPI_Recv_init(&words[k], 1, MPI_UINT64_T, peers[k], channel.tag, channel.comm, receives.add()),
                     "MPI_Recv_init");
            checkMpi(MPI_Send_init(&word, 1, MPI_UINT64_T, peers[k], channel.tag, channel.comm, sends.add()),
                     "MPI_Send_init");
        }
    }
    void begin(std::uint64_t mine) {
        word = mine;
        ++round;
        receives.startAll(); // before the word leaves: see above
        sends.startAll();
        for (std::size_t k = 0; k < peers.size(); ++k)
            missing.push_back(k);
    }
    /// Takes what has come; whether nothing is missing.
    bool look() {
        std::erase_if(missing, [&](std::size_t k) {
            if (!receives.complete(k))
                return false;
            DNDS_CHECK(words[k] == word, StateError,
                       "rank {} and this rank disagree about {} in round {}: its word is {:016x}, this rank's is "
                       "{:016x}",
                       peers[k], what, round, words[k], word);
            return true;
        });
        return missing.empty();
    }
    /// After the object was destroyed: takes the words of this round, so that no message is left over. Whether all are
    /// here.
    bool end() noexcept {
        try {
            const bool received = receives.testAll();
            return sends.testAll() && received;
        } catch (const Error &) { // of MPI: then it may still use the memory
            return false;
        }
    }
    bool settle() noexcept {
        missing.clear();
        return settleRequests(receives, sends);
    }
};

PeerAgreement::PeerAgreement(std::shared_ptr<CommunicatorContext> context, std::string_view what,
                             std::span<const int> peers)
    : context_(std::move(context)) {
    const CommunicatorContext::SetUp setUp(*context_);
    const CommunicatorView comm = context_->comm();
    const Channel channel = context_->nextChannel(); // before anything can fail: ranks stay in step
    comm.guarded([&] {
        setUp.requireAlone();
        auto state = std::make_shared<State>();
        state->what = what;
        state->channel = channel;
        state->peers.assign(peers.begin(), peers.end());
        std::ranges::sort(state->peers);
        state->peers.erase(std::unique(state->peers.begin(), state->peers.end()), state->peers.end());
        std::erase(state->peers, comm.rank());
        state->words.resize(state->peers.size());
        state->missing.reserve(state->peers.size());
        state->makeRequests();
        state_ = std::move(state);
    });
    const OnFailure undo([&] { context_->delist(*this); });
    comm.guarded([&] { context_->enlist(*this); });
}

PeerAgreement::~PeerAgreement() {
    context_->delist(*this);
    if (state_->peers.empty() || !mpiActive())
        return;
    const auto ended = [state = state_.get(), context = context_.get()] {
        return context->revocation().revoked() ? state->settle() : state->end();
    };
    context_->park(state_, ended, state_->maker);
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
    context_->running("agreement about", state_->what, [&] { state_->begin(word); });
}

bool PeerAgreement::look() {
    if (state_->missing.empty())
        return true;
    requireUsable();
    return context_->running("agreement about", state_->what, [&] { return state_->look(); });
}

void PeerAgreement::finish() {
    requireUsable();
    State &state = *state_;
    context_->running("agreement about", state.what, [&] {
        waitUntil(
            *context_, [&] { return state.look() && state.sends.testAll() && state.receives.testAll(); },
            [&] {
                return fmt::format("rank {} to begin round {} of {}",
                                   state.missing.empty() ? state.peers.front() : state.peers[state.missing.front()],
                                   state.round, state.what);
            },
            Looks::AtMpi);
    });
}

bool PeerAgreement::settle() noexcept { return state_->settle(); }

void PeerAgreement::renew() {
    state_->channel = context_->renewed(state_->channel);
    state_->round = 0;
    state_->makeRequests();
}

} // namespace DNDS
