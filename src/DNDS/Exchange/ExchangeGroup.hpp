/// @file ExchangeGroup.hpp
/// @brief Several arrays of one pattern in one message a peer.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"

#include <memory>
#include <vector>

namespace DNDS {

/// Pulls or pushes several arrays together, which costs one message a peer instead of one an array and peer.
///
///     ExchangeGroup group;
///     group.add(u.trans);  group.add(gradient.trans);    // same pattern: borrowed mappings
///     group.initPersistentPull();
///     group.startPersistentPull();  ...  group.waitPersistentPull();
///
/// Arrays may differ in type and layout. The group keeps them alive. A transformer that got another mapping or other
/// arrays since it was added makes start, and set-up on all ranks, throw StateError: fill a new group then. Move-only.
class ExchangeGroup {
  public:
    /// Adds the array of a transformer. Local. Throws StateError without a mapping, ArgumentError when its pattern is
    /// not that of the arrays added before (share one through borrowGGIndexing). Exchanges already made do not include
    /// it.
    template <class TTransformer>
    void add(const TTransformer &transformer) {
        addMember(transformer.member(), transformer.pattern());
    }
    std::size_t size() const noexcept { return members_.size(); }

    /// As the functions of ArrayTransformer, for all arrays together. The first four are Collective, the others Local.
    /// A second push with PushOp::Sum adds again what ghosts kept, unless `options.ghosts` is GhostsAfterPush::Zero.
    /// A group without arrays throws StateError on this rank only: it knows no other ranks.
    void initPersistentPull(const ExchangeOptions &options = {});
    void initPersistentPush(PushOp op = PushOp::Replace, const ExchangeOptions &options = {});
    void pullOnce(const ExchangeOptions &options = {}, Device::StreamHandle producer = nullptr);
    void pushOnce(PushOp op = PushOp::Replace, const ExchangeOptions &options = {},
                  Device::StreamHandle producer = nullptr);
    void startPersistentPull(Device::StreamHandle producer = nullptr);
    void waitPersistentPull();
    void waitPersistentPull(Device::StreamHandle consumer);
    void clearPersistentPull();
    void startPersistentPush(Device::StreamHandle producer = nullptr);
    void waitPersistentPush();
    void waitPersistentPush(Device::StreamHandle consumer);
    void clearPersistentPush();

    /// How the persistent pull reaches each peer, and the same as a table. Local.
    std::vector<PeerPath> pullPaths() const;
    std::string describePull() const;

  private:
    void addMember(ExchangeMember member, std::shared_ptr<const ExchangePattern> pattern);
    /// Binds an exchange that replaces `before`. Collective; throws on all ranks while that is in flight on any.
    std::unique_ptr<Exchange> make(const std::unique_ptr<Exchange> &before, Direction direction,
                                   const ExchangeOptions &options, PushOp op = PushOp::Replace) const;

    std::shared_ptr<const ExchangePattern> pattern_;
    std::vector<ExchangeMember> members_;
    std::unique_ptr<Exchange> pull_;
    std::unique_ptr<Exchange> push_;
};

} // namespace DNDS
