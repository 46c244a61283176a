/// @file ExchangeGroup.hpp
/// @brief Several arrays of one pattern in one message a peer.
#pragma once

#include "DNDS/Exchange/PersistentExchanges.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

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

    /// As the functions of ArrayTransformer, for all arrays together. Collective. A second push with PushOp::Sum adds
    /// the ghosts' kept values again, unless `options.ghosts` is GhostsAfterPush::Zero. A group without arrays throws
    /// StateError on this rank only: it knows no other ranks.
    void initPersistentPull(const ExchangeOptions &options = {});
    void initPersistentPush(PushOp op = PushOp::Replace, const ExchangeOptions &options = {});
    void pullOnce(const ExchangeOptions &options = {}, Device::StreamHandle producer = nullptr);
    void pushOnce(PushOp op = PushOp::Replace, const ExchangeOptions &options = {},
                  Device::StreamHandle producer = nullptr);

  private:
    /// Checks the pattern, and appends. Local.
    void addMember(ExchangeMember member, std::shared_ptr<const ExchangePattern> pattern);
    CommunicatorContext &context() const;
    ExchangeRequest request() const { return {pattern_, members_}; }
    std::string_view exchanged() const noexcept override { return names_; }

    /// The first member's, and so that of all.
    std::shared_ptr<const ExchangePattern> pattern_;
    std::vector<ExchangeMember> members_;
    std::string names_; ///< names of all members
};

} // namespace DNDS
