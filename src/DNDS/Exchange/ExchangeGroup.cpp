#include "DNDS/Exchange/ExchangeGroup.hpp"

#include <utility>

namespace DNDS {

namespace {

Exchange &bound(const std::unique_ptr<Exchange> &exchange) {
    DNDS_CHECK(exchange != nullptr, StateError,
               "this group has no persistent exchange in that direction: init it first");
    return *exchange;
}

void requireLanded(const std::unique_ptr<Exchange> &exchange) {
    DNDS_CHECK(!exchange || !exchange->inFlight(), StateError, "this group's exchange is in flight: wait for it first");
}

void clear(std::unique_ptr<Exchange> &exchange) {
    requireLanded(exchange);
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

std::unique_ptr<Exchange> ExchangeGroup::make(const std::unique_ptr<Exchange> &before, Direction direction,
                                              const ExchangeOptions &options, PushOp op) const {
    DNDS_CHECK(!members_.empty(), StateError, "this group has no arrays: add some first");
    return Exchange::make(
        pattern_->context(), direction,
        [&] {
            requireLanded(before);
            return ExchangeRequest{pattern_, members_};
        },
        options, op);
}

void ExchangeGroup::initPersistentPull(const ExchangeOptions &options) {
    pull_ = make(pull_, Direction::Pull, options);
}

void ExchangeGroup::initPersistentPush(PushOp op, const ExchangeOptions &options) {
    push_ = make(push_, Direction::Push, options, op);
}

void ExchangeGroup::pullOnce(const ExchangeOptions &options, Device::StreamHandle producer) {
    const auto exchange = make(nullptr, Direction::Pull, options);
    exchange->start(producer);
    exchange->wait();
}

void ExchangeGroup::pushOnce(PushOp op, const ExchangeOptions &options, Device::StreamHandle producer) {
    const auto exchange = make(nullptr, Direction::Push, options, op);
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
