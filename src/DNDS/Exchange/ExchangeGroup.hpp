/// @file ExchangeGroup.hpp
/// @brief Exchanges that are set up once and started again and again.
///
/// - `PersistentExchanges`: a pull and a push of one array
/// - `ExchangeGroup`: several arrays of one pattern in one message a peer
#pragma once

#include "DNDS/Exchange/Exchange.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

/// Holds one exchange: empty, or set up. Move-only.
class PersistentExchange {
  public:
    /// Empty: for pulls, or for pushes.
    explicit PersistentExchange(Direction direction) : direction_(direction) {}

    /// Binds an exchange of the request of `describe`, replacing the previous one. Collective over the ranks of
    /// `context`; throws on all ranks the exceptions of `describe`, and StateError while the previous one is in flight
    /// on any rank; that one stays then. `what` is the name of the arrays, for messages. See Exchange.
    void init(CommunicatorContext &context, std::string_view what, const std::function<ExchangeRequest()> &describe,
              const ExchangeOptions &options = {}, PushOp op = PushOp::Replace);
    /// Drops it. Local. Throws StateError in flight.
    void clear(std::string_view what);

    /// Whether one is set up; and whether it was started and not waited for yet. Local.
    bool made() const noexcept { return exchange_ != nullptr; }
    bool inFlight() const noexcept { return exchange_ && exchange_->inFlight(); }
    /// The exchange. Local. Throws StateError before `init`.
    const std::shared_ptr<Exchange> &get(std::string_view what) const {
        if (!exchange_) [[unlikely]]
            throwMissing(what);
        return exchange_;
    }

  private:
    const char *name() const noexcept { return direction_ == Direction::Pull ? "Pull" : "Push"; }
    [[noreturn]] void throwMissing(std::string_view what) const;
    void requireNotInFlight(std::string_view what) const;

    Direction direction_;
    std::shared_ptr<Exchange> exchange_; ///< flights keep it, too
};

/// The exchanges of an array (`ArrayTransformer`) or of several in one message a peer (`ExchangeGroup`). Their base;
/// move-only.
class PersistentExchanges {
  public:
    /// Prepares pulls for repeated use, replacing earlier ones. Collective. See Exchange for cost and
    /// errors; throws StateError on all ranks while a pull is in flight on any. After an error the earlier one stays.
    /// A group without arrays throws StateError on this rank only, here and below: it knows no other ranks.
    void initPersistentPull(const ExchangeOptions &options = {});
    /// Prepares pushes for repeated use. Collective. As above. Ghosts keep their values after a push, so that the next
    /// one with PushOp::Sum adds them again, unless `options.ghosts` is GhostsAfterPush::Zero.
    void initPersistentPush(PushOp op = PushOp::Replace, const ExchangeOptions &options = {});
    /// Refreshes the son once. Collective; costs a set-up each time, so use persistent pulls in loops. On the device it
    /// runs after the present work of `producer` (see Exchange::start) and is complete on return.
    void pullOnce(const ExchangeOptions &options = {}, Device::StreamHandle producer = nullptr);
    /// Returns the son's rows to their owners once. Collective; costs a set-up each time. Ghosts keep their values, and
    /// another push with PushOp::Sum adds them again: zero them before the next contributions, or ask for
    /// `ExchangeOptions::ghosts = GhostsAfterPush::Zero`.
    void pushOnce(PushOp op = PushOp::Replace, const ExchangeOptions &options = {},
                  Device::StreamHandle producer = nullptr);

    /// Begins to refresh the son. Local; returns at once. Until `waitPersistentPull` the father must not be written and
    /// the son not be used. Throws StateError without `initPersistentPull`, when already started, or when mapping or
    /// rows have changed. On the device it runs after the work then on `producer`; see Exchange::start.
    void startPersistentPull(Device::StreamHandle producer = nullptr) { pull().start(producer); }
    /// Completes the pull: the son equals its owners' rows. Throws StateError without start, or when father or son were
    /// resized or swapped since; RevokedError when another rank has failed. See Exchange.
    void waitPersistentPull() { pull().wait(); }
    /// The same on the device, where later work on `consumer` runs after the pull; see Exchange::wait.
    void waitPersistentPull(Device::StreamHandle consumer) { pull().wait(consumer); }
    /// Drops the persistent pull. Local. Throws StateError in flight.
    void clearPersistentPull() { pull_.clear(exchanged()); }

    /// Begins to return the son's rows to their owners. Local; returns at once. Until `waitPersistentPush` neither
    /// father nor son may be written. Throws as `startPersistentPull`. Ghosts keep their values, so that a second sum
    /// adds the first one's contributions again, unless the push was made with GhostsAfterPush::Zero.
    void startPersistentPush(Device::StreamHandle producer = nullptr) { push().start(producer); }
    /// Completes the push: the owners' rows are combined with the copies as the operation says, and ghosts are zero
    /// with GhostsAfterPush::Zero. Throws also DataError, when pushed padded rows differ in size from their
    /// owner's under an operation.
    void waitPersistentPush() { push().wait(); }
    void waitPersistentPush(Device::StreamHandle consumer) { push().wait(consumer); }
    /// Drops the persistent push. Local. Throws StateError in flight.
    void clearPersistentPush() { push_.clear(exchanged()); }

    /// Starts, as an object whose end waits; see Flight. Local. They throw as `startPersistentPull`.
    [[nodiscard]] Flight startPull(Device::StreamHandle producer = nullptr) { return Flight(bound(pull_), producer); }
    [[nodiscard]] Flight startPush(Device::StreamHandle producer = nullptr) { return Flight(bound(push_), producer); }

    /// A table of the persistent pull's path to each peer, with reasons. Local. Throws StateError before
    /// `initPersistentPull`.
    std::string describePull() const { return pull().describe(); }
    /// Whether start and wait of the persistent pull may be captured in a graph; see Exchange::capturable. Local.
    bool canCapturePull() const { return pull().capturable(); }
    /// Whether the persistent pull or push was started and not waited for yet. Local.
    bool inFlight() const noexcept { return pull_.inFlight() || push_.inFlight(); }
    /// Path of the persistent pull to each peer. Local. Throws StateError before `initPersistentPull`.
    std::vector<PeerPath> pullPaths() const { return pull().paths(); }

  protected:
    PersistentExchanges() = default;
    PersistentExchanges(PersistentExchanges &&) noexcept = default;
    PersistentExchanges &operator=(PersistentExchanges &&) noexcept = default;
    ~PersistentExchanges() = default;

    /// Drops pull and push, even in flight: see Exchange. Local.
    void forget();
    /// Sets up, moves once, and drops. Collective.
    static void once(CommunicatorContext &context, Direction direction,
                     const std::function<ExchangeRequest()> &describe, const ExchangeOptions &options, PushOp op,
                     Device::StreamHandle producer);

  private:
    /// Name of the arrays in messages. Local.
    virtual std::string_view exchanged() const noexcept = 0;
    /// The context for setting up exchanges. Throws StateError without arrays, on this rank alone.
    virtual std::shared_ptr<CommunicatorContext> context() const = 0;
    /// What is exchanged, for the function named `what`; called within the set-up, so that its errors are those of all
    /// ranks.
    virtual ExchangeRequest request(const char *what) const = 0;

    /// The name is asked for only where there is an error to report.
    const std::shared_ptr<Exchange> &bound(const PersistentExchange &exchange) const {
        return exchange.get(exchange.made() ? std::string_view() : exchanged());
    }
    Exchange &pull() const { return *bound(pull_); }
    Exchange &push() const { return *bound(push_); }

    /// Each empty until its init.
    PersistentExchange pull_{Direction::Pull};
    PersistentExchange push_{Direction::Push};
};

/// Pulls or pushes several arrays together, which costs one message a peer instead of one an array and peer.
///
///     ExchangeGroup group;
///     group.add(u.trans);  group.add(gradient.trans);    // same pattern: borrowed mappings
///     group.initPersistentPull();
///     group.startPersistentPull();  ...  group.waitPersistentPull();    // the functions of PersistentExchanges
///
/// Arrays may differ in type and layout. The group keeps them alive. If a transformer's mapping or arrays were replaced
/// since it was added, start, and set-up on all ranks, throw StateError: fill a new group then. Move-only.
class ExchangeGroup : public PersistentExchanges {
  public:
    /// Adds the array of a transformer. Local. Throws StateError without a mapping, ArgumentError when its pattern is
    /// not that of the other arrays (share one through borrowGGIndexing). Existing exchanges do not include
    /// it.
    template <class TTransformer>
    void add(const TTransformer &transformer) {
        addMember(transformer.member(), transformer.pattern());
    }
    std::size_t size() const noexcept { return members_.size(); }

  private:
    /// Checks the pattern, and appends. Local.
    void addMember(ExchangeMember member, std::shared_ptr<const ExchangePattern> pattern);
    std::string_view exchanged() const noexcept override { return names_; }
    std::shared_ptr<CommunicatorContext> context() const override;
    ExchangeRequest request(const char *) const override { return {pattern_, members_}; }

    /// The first member's, and so that of all.
    std::shared_ptr<const ExchangePattern> pattern_;
    /// In the order of `add`: equal on all ranks, as messages hold their parts in this order.
    std::vector<ExchangeMember> members_;
    std::string names_; ///< names of all members
};

} // namespace DNDS
