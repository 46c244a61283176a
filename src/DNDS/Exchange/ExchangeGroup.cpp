#include "DNDS/Exchange/ExchangeGroup.hpp"

#include <utility>

namespace DNDS {

namespace {

Exchange &bound(const std::unique_ptr<Exchange> &exchange) {
    DNDS_CHECK(exchange != nullptr, StateError,
               "this group has no persistent exchange in that direction: init it first");
    return *exchange;
}

void clear(std::unique_ptr<Exchange> &exchange) {
    DNDS_CHECK(!exchange || !exchange->inFlight(), StateError, "this group's exchange is in flight: wait for it first");
    exchange.reset();
}

} // namespace

void ExchangeGroup::addMember(ExchangeMember member, std::shared_ptr<const ExchangePattern> pattern) {
    DNDS_CHECK(pattern != nullptr, StateError, "'{}' has no ghost mapping yet", member.name);
    DNDS_CHECK(pattern_ == nullptr || pattern_ == pattern, ArgumentError,
               "'{}' has another mapping than '{}': arrays of a group share one through borrowGGIndexing", member.name,
               members_.empty() ? std::string() : members_.front().name);
    pattern_ = std::move(pattern);
    members_.push_back(std::move(member));
}

std::unique_ptr<Exchange> ExchangeGroup::make(Direction direction, const ExchangeOptions &options, PushOp op) const {
    DNDS_CHECK(!members_.empty(), StateError, "this group has no arrays: add some first");
    return std::make_unique<Exchange>(pattern_, direction, members_, options, op);
}

void ExchangeGroup::initPersistentPull(const ExchangeOptions &options) {
    clear(pull_);
    pull_ = make(Direction::Pull, options, PushOp::Replace);
}

void ExchangeGroup::initPersistentPush(PushOp op, const ExchangeOptions &options) {
    clear(push_);
    push_ = make(Direction::Push, options, op);
}

void ExchangeGroup::pullOnce(const ExchangeOptions &options, Device::StreamHandle producer) {
    const auto exchange = make(Direction::Pull, options, PushOp::Replace);
    exchange->start(producer);
    exchange->wait();
}

void ExchangeGroup::pushOnce(PushOp op, const ExchangeOptions &options, Device::StreamHandle producer) {
    const auto exchange = make(Direction::Push, options, op);
    exchange->start(producer);
    exchange->wait();
}

void ExchangeGroup::startPersistentPull(Device::StreamHandle producer) { bound(pull_).start(producer); }
void ExchangeGroup::waitPersistentPull() { bound(pull_).wait(); }
void ExchangeGroup::waitPersistentPull(Device::StreamHandle consumer) { bound(pull_).wait(consumer); }
void ExchangeGroup::clearPersistentPull() { clear(pull_); }
void ExchangeGroup::startPersistentPush(Device::StreamHandle producer) { bound(push_).start(producer); }
void ExchangeGroup::waitPersistentPush() { bound(push_).wait(); }
void ExchangeGroup::waitPersistentPush(Device::StreamHandle consumer) { bound(push_).wait(consumer); }
void ExchangeGroup::clearPersistentPush() { clear(push_); }

std::vector<PeerPath> ExchangeGroup::pullPaths() const { return bound(pull_).paths(); }
std::string ExchangeGroup::describePull() const { return bound(pull_).describe(); }

} // namespace DNDS
