/// @file TransformerCore.hpp
/// @brief What `ArrayTransformer` does that needs no element type: mappings, and the life of its exchanges.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

namespace DNDS {

/// The mapping of one father and son, and the persistent exchanges bound to them. The base of `ArrayTransformer`;
/// move-only.
class TransformerCore {
  public:
    /// The correspondence of ghosts and owned rows; null before `createGhostMapping` or `borrowGGIndexing`, and with a
    /// pattern from lists. Local.
    const std::shared_ptr<const GhostMapping> &ghostMapping() const noexcept;
    /// Who sends which rows to whom; null as above. Arrays that share it can travel together (`ExchangeGroup`). Local.
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_; }

    /// Begins to refresh the son. Local; returns at once. Until `waitPersistentPull` the father must not be written and
    /// the son not be used. Throws StateError without `initPersistentPull`, when already started, or when mapping or
    /// rows have changed. On the device it runs after what `producer` holds; see Exchange::start.
    void startPersistentPull(Device::StreamHandle producer = nullptr) { bound(pull_, "Pull").start(producer); }
    /// Completes the pull: the son equals its owners' rows. Throws StateError without start, or when father or son were
    /// resized or swapped since (see Exchange); PeerError when a peer failed.
    void waitPersistentPull() { bound(pull_, "Pull").wait(); }
    /// The same on the device, where what `consumer` gets from now on runs after the pull; see Exchange::wait.
    void waitPersistentPull(Device::StreamHandle consumer) { bound(pull_, "Pull").wait(consumer); }
    /// Forgets the persistent pull. Local. Throws StateError in flight.
    void clearPersistentPull() { clear(pull_, "Pull"); }

    /// Begins to send the son's rows back to their owners. Local; returns at once. Until `waitPersistentPush` neither
    /// father nor son may be written. Throws as `startPersistentPull`. Ghosts keep their values, so that a second sum
    /// adds the first one's contributions again, unless the push was made with GhostsAfterPush::Zero.
    void startPersistentPush(Device::StreamHandle producer = nullptr) { bound(push_, "Push").start(producer); }
    /// Completes the push: the owners' rows have met the copies as the operation says, and ghosts are zero where
    /// GhostsAfterPush::Zero was asked for. Throws also DataError, when pushed padded rows differ in size from their
    /// owner's under an operation.
    void waitPersistentPush() { bound(push_, "Push").wait(); }
    void waitPersistentPush(Device::StreamHandle consumer) { bound(push_, "Push").wait(consumer); }
    /// Forgets the persistent push. Local. Throws StateError in flight.
    void clearPersistentPush() { clear(push_, "Push"); }

    /// A table of how the persistent pull reaches each peer, and why. Local. Throws StateError before
    /// `initPersistentPull`.
    std::string describePull() const { return bound(pull_, "Pull").describe(); }
    /// Whether start and wait of the persistent pull may be captured in a graph; see Exchange::capturable. Local.
    bool canCapturePull() const { return bound(pull_, "Pull").capturable(); }
    /// How the persistent pull reaches each peer. Local. Throws StateError before `initPersistentPull`.
    std::vector<PeerPath> pullPaths() const { return bound(pull_, "Pull").paths(); }
    /// The same for the persistent push.
    std::vector<PeerPath> pushPaths() const { return bound(push_, "Push").paths(); }

  protected:
    TransformerCore() = default;
    TransformerCore(TransformerCore &&) noexcept = default;
    TransformerCore &operator=(TransformerCore &&) noexcept = default;
    ~TransformerCore() = default;

    /// Throws LayoutError unless father and son, whose dynamic types are given, are of one type. Local.
    static void requireOneType(const ArrayBase &father, const std::type_info &fatherType, const ArrayBase &son,
                               const std::type_info &sonType);
    /// Throws LayoutError on all ranks unless all ranks give arrays of one type. Collective; one reduction.
    static void agreeOnType(const CommunicatorView &comm, const ArrayBase &father, const std::type_info &type);
    /// Forgets mapping and exchanges, also for the groups that this was added to; afterwards there may be mappings
    /// again. Local.
    void begin(std::shared_ptr<const ExchangePattern *> current);
    void setMapping(std::shared_ptr<const GhostMapping> mapping);
    void setPattern(std::shared_ptr<const ExchangePattern> pattern);
    /// What ranks set up exchanges with: that of the pattern, else of `comm`. Collective on first use of `comm`.
    std::shared_ptr<CommunicatorContext> contextFor(const CommunicatorView &comm) const;
    /// Binds an exchange of what `describe` names and keeps it in place of the one before. Collective; throws on all
    /// ranks what `describe` throws, and while the one before is in flight on any rank, and keeps that one then.
    void initPull(CommunicatorContext &context, const std::function<ExchangeRequest()> &describe,
                  const ExchangeOptions &options);
    void initPush(CommunicatorContext &context, const std::function<ExchangeRequest()> &describe,
                  const ExchangeOptions &options, PushOp op);
    /// For `ExchangeMember::pattern`: the pattern that is used here at the time of the call. Local.
    std::function<const ExchangePattern *()> currentPattern() const;
    /// Throws StateError unless there is a mapping. Local.
    void requireMapping(const char *what) const;

    /// Where sons of this mapping best live: memory that the node's ranks share where some of them own ghosts of this
    /// rank, else null. Local.
    HostMemoryResource sonMemory() const;
    /// The sizes of ghost rows, from the sizes of owned rows. Collective.
    std::vector<rowsize> pullRowSizes(std::vector<rowsize> fatherSizes) const;
    /// Refreshes the last part of a son's rows alone, where arrays keep the shape of each row. Collective.
    void pullRowShapes(const std::function<ExchangeMember()> &describe) const;

  private:
    static Exchange &bound(const std::unique_ptr<Exchange> &exchange, const char *kind);
    static void requireLanded(const std::unique_ptr<Exchange> &exchange, const char *kind);
    static void clear(std::unique_ptr<Exchange> &exchange, const char *kind);

    std::shared_ptr<const ExchangePattern> pattern_;
    /// `pattern_` for members of exchanges, which may outlive this; compared with that of an exchange, never looked
    /// into.
    std::shared_ptr<const ExchangePattern *> current_;
    std::unique_ptr<Exchange> pull_;
    std::unique_ptr<Exchange> push_;
};

} // namespace DNDS
