/// @file TransformerCore.hpp
/// @brief What `ArrayTransformer` does that needs no element type: the pattern of its exchanges.
#pragma once

#include "DNDS/Exchange/PersistentExchanges.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <functional>
#include <memory>
#include <span>
#include <typeinfo>
#include <vector>

namespace DNDS {

/// The pattern of one father and son, and the persistent exchanges bound to them. The base of `ArrayTransformer`;
/// move-only.
class TransformerCore : public PersistentExchanges {
  public:
    /// The correspondence of ghosts and owned rows; null before `createGhostMapping` or `borrowGGIndexing`, and with a
    /// pattern from lists. Local.
    const std::shared_ptr<const GhostMapping> &ghostMapping() const noexcept;
    /// Who sends which rows to whom; null as above. Arrays that share it can travel together (`ExchangeGroup`). Local.
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_; }
    /// Where sons of this mapping best live: memory that the node's ranks share where some of them own ghosts of this
    /// rank, else null. Sons are allocated there, and exchanges do not move them. Local; there is a mapping.
    HostMemoryResource sonMemory() const;

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
    /// For `ExchangeMember::pattern`: the pattern that is used here at the time of the call. Local.
    std::function<const ExchangePattern *()> currentPattern() const;
    /// Throws StateError unless there is a mapping. Local.
    void requireMapping(const char *what) const;

    /// The sizes of ghost rows, from the sizes of owned rows. Collective.
    std::vector<rowsize> pullRowSizes(std::vector<rowsize> fatherSizes) const;
    /// Refreshes the last part of a son's rows alone, where arrays keep the shape of each row. Collective.
    void pullRowShapes(const std::function<ExchangeMember()> &describe) const;

  private:
    std::shared_ptr<const ExchangePattern> pattern_;
    /// `pattern_` for members of exchanges, which may outlive this; compared with that of an exchange, never looked
    /// into.
    std::shared_ptr<const ExchangePattern *> current_;
};

} // namespace DNDS
