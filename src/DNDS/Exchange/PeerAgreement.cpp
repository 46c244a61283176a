#include "DNDS/Exchange/PeerAgreement.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace DNDS {

namespace {

/// Ascending, each of them once.
std::vector<int> distinct(std::vector<int> ranks) {
    std::ranges::sort(ranks);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
}

} // namespace

PeerAgreement::PeerAgreement(std::shared_ptr<CommunicatorContext> context, std::string_view what,
                             std::span<const int> peers)
    : context_(std::move(context)) {
    // Local memory first, with an agreement: `connect` waits for peers.
    const CommunicatorContext::SetUp setUp(*context_);
    const CommunicatorView comm = context_->comm();
    const Channel channel = context_->nextChannel(); // before any failure: ranks stay in step
    comm.guarded([&] {
        setUp.requireAlone();
        what_ = what;
        peers_ = distinct({peers.begin(), peers.end()});
        std::erase(peers_, comm.rank());
        missing_.reserve(peers_.size());
        link_.emplace(context_, channel, peers_);
    });
    link_->connect();
    const OnFailure undo([&] { context_->delist(*this); });
    comm.guarded([&] { context_->enlist(*this); });
}

PeerAgreement::~PeerAgreement() {
    context_->delist(*this);
    if (context_->alive()) // messages can arrive
        // These peers send a word of this round, or revoke; it must not reach a later user of the channel.
        for (const std::size_t k : missing_)
            link_->dropNext(k);
}

// Symmetric, as rounds need it: if rank a reads rows of b by a pattern, b lists a among its readers.
std::vector<int> PeerAgreement::peersOf(std::span<const std::shared_ptr<const ExchangePattern>> patterns) {
    std::vector<int> peers;
    for (const auto &pattern : patterns)
        for (const PeerRows *rows : {&pattern->readers(), &pattern->owners()})
            peers.insert(peers.end(), rows->ranks.begin(), rows->ranks.end());
    return distinct(std::move(peers));
}

void PeerAgreement::requireUsable() const {
    requireMpiActive("ranks compare what they do");
    DNDS_CHECK(context_->alive(), StateError, "the communicator of {} was freed: free it after the last use", what_);
}

// A peer sends its word of round n + 1 only after it has received this rank's word of round n. O(peers) messages of 8
// bytes.
void PeerAgreement::begin(std::uint64_t word) {
    // Receives all words of the round before: so no rank is two rounds ahead, and the two buffers of the link
    // suffice without waiting.
    finish();
    context_->running("agreement about", what_, [&] {
        word_ = word;
        ++round_;
        for (std::size_t k = 0; k < peers_.size(); ++k) {
            std::memcpy(link_->prepare(k, sizeof word).data(), &word, sizeof word);
            link_->send(k, sizeof word);
            missing_.push_back(k);
        }
    });
}

bool PeerAgreement::receive() {
    std::erase_if(missing_, [&](std::size_t k) {
        if (!link_->receive(k))
            return false;
        // A peer one round ahead has its next word wait in the link until this one is taken.
        std::uint64_t theirs = 0;
        std::memcpy(&theirs, link_->received(k).data(), sizeof theirs);
        DNDS_CHECK(theirs == word_, StateError,
                   "rank {} and this rank disagree about {} in round {}: its word is {:016x}, this rank's is {:016x}",
                   peers_[k], what_, round_, theirs, word_);
        link_->take(k);
        return true;
    });
    return missing_.empty();
}

bool PeerAgreement::look() {
    if (missing_.empty())
        return true;
    requireUsable();
    return context_->running("agreement about", what_, [&] { return receive(); });
}

void PeerAgreement::finish() {
    requireUsable();
    context_->running("agreement about", what_, [&] {
        waitUntil(
            *context_, [&] { return receive(); },
            [&] { return fmt::format("rank {} to begin round {} of {}", peers_[missing_.front()], round_, what_); });
    });
}

// Words of the failed round need no answer: `renew` gives the link a channel on which none of them arrives.
bool PeerAgreement::settle() noexcept {
    missing_.clear();
    return link_->settle();
}

void PeerAgreement::renew() {
    round_ = 0;
    link_->renew();
}

} // namespace DNDS
