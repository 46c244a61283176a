/// @file ExchangePattern.hpp
/// @brief Who sends which rows to whom: row numbers only, no data type, no width, no memory.
#pragma once

#include "DNDS/Index/GhostMapping.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// The rows that each pair of ranks exchanges, shared by all arrays of one ghost mapping. Immutable.
class ExchangePattern {
  public:
    /// Local. Cost O(owned rows + ghosts), most of it on first use of `innerRows`.
    explicit ExchangePattern(std::shared_ptr<const GhostMapping> mapping);

    const std::shared_ptr<const GhostMapping> &mapping() const noexcept { return mapping_; }
    CommunicatorContext &context() const noexcept { return *mapping_->global()->context(); }

    index fatherSize() const noexcept { return mapping_->fatherSize(); }
    index sonSize() const noexcept { return mapping_->ghostSize(); }
    /// Ranks that read rows of this rank; the rows of each, ascending.
    const RankLists &readers() const noexcept { return mapping_->readerPeers(); }
    /// Ranks that this rank reads from; the sons' rows of owner k are the range [starts[k], starts[k + 1]).
    const RankLists &owners() const noexcept { return mapping_->ownerPeers(); }

    /// Owned rows that some peer (or this rank itself) needs, ascending. Local. O(owned rows) once, then O(1).
    std::span<const index> boundaryRows() const;
    /// Owned rows that no peer needs, ascending: what to compute while a pull is under way. Cost as `boundaryRows`.
    std::span<const index> innerRows() const;

  private:
    void classifyRows() const;

    std::shared_ptr<const GhostMapping> mapping_;
    mutable bool classified_ = false; ///< many exchanges never ask, and set-up is to be fast
    mutable std::vector<index> boundary_;
    mutable std::vector<index> inner_;
};

} // namespace DNDS
