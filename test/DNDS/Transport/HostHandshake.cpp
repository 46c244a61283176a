#include "DNDS/Transport/HostHandshake.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace DNDS {

namespace {

TransportPlan peersOf(const TransportPlan &plan) {
    std::set<int> peers;
    for (const Outgoing &outgoing : plan.outgoing)
        peers.insert(outgoing.peer);
    for (const Incoming &incoming : plan.incoming)
        peers.insert(incoming.peer);
    TransportPlan both{.channel = plan.channel, .outgoing = {}, .incoming = {}};
    for (const int peer : peers) {
        both.outgoing.emplace_back().peer = peer;
        both.incoming.emplace_back().peer = peer;
    }
    return both;
}

} // namespace

HostHandshake::HostHandshake(const TransportPlan &plan, const TransportSetup &setup, std::shared_ptr<StartOrder> order)
    : peers_(peersOf(plan)), order_(std::move(order)), mine_(peers_.outgoing.size()), theirs_(mine_.size()),
      statuses_(mine_.size()), refused_(peers_, std::vector<std::size_t>(mine_.size(), sizeof(std::uint64_t))),
      watch_(peers_, setup), patience_(setup.patience) {
    for (std::size_t k = 0; k < mine_.size(); ++k) {
        const int peer = peers_.outgoing[k].peer;
        answers_[peer] = false;
        order_->numbers_.try_emplace(peer, 0);
        checkMpi(MPI_Send_init(&mine_[k], 1, mpiTypeOf<std::uint64_t>(), peer, plan.channel.tag, plan.channel.comm,
                               sends_.add()),
                 "MPI_Send_init");
        checkMpi(MPI_Recv_init(&theirs_[k], 1, mpiTypeOf<std::uint64_t>(), peer, plan.channel.tag, plan.channel.comm,
                               receives_.add()),
                 "MPI_Recv_init");
    }
}

void HostHandshake::start() {
    order_->open_.push_back(this);
    open_ = true;
    answered_ = false;
    told_ = false;
    outOfOrder_ = -1;
    failure_.clear();
    for (std::size_t k = 0; k < mine_.size(); ++k)
        mine_[k] = order_->numbers_.at(peers_.outgoing[k].peer)++;
    receives_.startAll();
    sends_.startAll();
}

void HostHandshake::refuse() {
    for (const Outgoing &outgoing : peers_.outgoing)
        ++order_->numbers_.at(outgoing.peer);
    refused_.refuse();
}

bool HostHandshake::mayMove() {
    if (!open_)
        return false;
    if (!answered_) {
        if (!receives_.testAll(statuses_))
            return false;
        answered_ = true;
        for (std::size_t k = 0; k < mine_.size(); ++k) {
            const int peer = peers_.incoming[k].peer;
            const bool refused = RefusedMessages::isRefusal(statuses_[k], 1, mpiTypeOf<std::uint64_t>());
            answers_[peer] = !refused && theirs_[k] == mine_[k];
            if (refused)
                failure_.noteRefused(peer);
            else if (theirs_[k] != mine_[k])
                outOfOrder_ = peer;
        }
    }
    return order_->open_.front() == this;
}

void HostHandshake::moved() noexcept {
    if (std::exchange(open_, false))
        std::erase(order_->open_, this);
}

bool HostHandshake::complete() {
    told_ = told_ || sends_.testAll();
    return refused_.complete() && !open_ && told_;
}

void HostHandshake::throwIfAny() {
    const int other = std::exchange(outOfOrder_, -1);
    DNDS_CHECK(other < 0, StateError,
               "rank {} started another exchange where this rank started this one, and their transport has no tags to "
               "tell them apart: start exchanges that use it in the same order on all ranks",
               other);
    failure_.throwIfAny();
}

void HostHandshake::checkPeers(double secondsWaited) const {
    if (!answered_)
        watch_.check(receives_, peers_.incoming, "start its exchange", secondsWaited);
    else if (open_)
        DNDS_CHECK(
            patience_ <= 0.0 || secondsWaited < patience_, PeerError,
            "waited {:.0f} s (DNDS_WAIT_TIMEOUT) for the rows of this exchange, or of one that was started before "
            "it over the same transport{}",
            secondsWaited, rollCall(watch_.arena()));
}

} // namespace DNDS
