/// @file ArrayTransformer.hpp
/// @brief Connects a father (owned rows) with a son (ghost rows): makes the mapping, and pulls and pushes.
#pragma once

#include "DNDS/Array/GhostState.hpp"
#include "DNDS/Array/GhostWatch.hpp"
#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Exchange/PersistentExchanges.hpp"
#include "DNDS/Index/GhostMapping.hpp"

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

/// The part of `ArrayTransformer` that is independent of element types: all but naming the arrays. Its base; move-only.
///
/// Collective functions throw errors of one rank on all ranks, with one exception: a transformer
/// without arrays knows no other ranks, and throws StateError on its own rank.
class ArrayTransformerBase : public PersistentExchanges {
  public:
    /// Numbers the father's rows globally. Collective.
    void createFatherGlobalMapping();

    /// Makes this rank's ghosts: copies of the global rows in `pullRows` (any order, duplicates welcome). Collective.
    /// See GhostMapping::fromPullList for cost and errors. The father's global mapping must exist.
    void createGhostMapping(std::span<const index> pullRows, PeerDiscovery discovery = PeerDiscovery::Auto);
    /// Makes ghosts on other ranks: own rows `localRows[starts[r]..starts[r + 1])` are copied to rank r. Collective.
    /// See GhostMapping::fromPushList.
    void createGhostMapping(std::span<const index> localRows, std::span<const index> starts,
                            PeerDiscovery discovery = PeerDiscovery::Auto);

    /// Takes a pattern that was made without an array, for the father's number of rows, and its numbering of rows, if
    /// it has one. Collective; one reduction. Throws StateError on all ranks if the numbers of rows differ on some
    /// rank.
    void usePattern(std::shared_ptr<const ExchangePattern> pattern);

    /// Shares mapping and pattern of another array with the same number of rows. Collective; one reduction.
    void borrowGGIndexing(const ArrayTransformerBase &other);

    /// Gives the son one row for each ghost, with the width, row size and shape of its owner's row.
    /// Collective. Call it again after row sizes or widths of the father have changed. The son's contents are zero
    /// until pulled. Throws LayoutError on all ranks when run-time widths differ between ranks, StateError for
    /// uncompressed CSR fathers.
    void createMPITypes();

    /// Prepares pulls for repeated use, replacing earlier ones. Collective. See Exchange for cost and
    /// errors; throws StateError on all ranks while a pull is in flight on any. After an error the earlier one stays.
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

    /// This array as part of an exchange of several (`ExchangeGroup`). It keeps father and son alive. Local.
    ExchangeMember member() const;

    /// The correspondence of ghosts and owned rows; null before `createGhostMapping` or `borrowGGIndexing`, and with a
    /// pattern from lists. Local.
    const std::shared_ptr<const GhostMapping> &ghostMapping() const noexcept;
    /// Senders, receivers and rows; null as above. Arrays that share it can travel together (`ExchangeGroup`). Local.
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_; }
    /// Best memory for sons of this mapping: memory shared by the node's ranks if some of them own ghosts of this
    /// rank, else null. Sons are allocated there, and exchanges do not move them. Local; there is a mapping.
    HostMemoryResource sonMemory() const;

    /// This rank's knowledge of the son's rows: whether its father was written since the last pull. Local, O(1);
    /// see GhostState for what it cannot know.
    GhostState ghostState() const { return ghostStateOf(*requireArrays().father_, *son_); }
    /// Checks access to the ghosts; null before `setFatherSon`. Local.
    GhostWatch *ghostWatch() const noexcept { return watch_.get(); }

  protected:
    ArrayTransformerBase() = default;
    ArrayTransformerBase(ArrayTransformerBase &&) noexcept = default;
    ArrayTransformerBase &operator=(ArrayTransformerBase &&) noexcept = default;
    ~ArrayTransformerBase() = default;

    /// Connects arrays; see ArrayTransformer. `reports`: the calling code checks access to ghosts.
    void setFatherSon(const std::shared_ptr<ParRows> &father, const std::shared_ptr<ParRows> &son, bool reports);
    const std::shared_ptr<ArrayBase> &father() const noexcept { return father_; }
    const std::shared_ptr<ArrayBase> &son() const noexcept { return son_; }

  private:
    std::string_view exchanged() const noexcept override { return father_ ? father_->label() : "arrays never set"; }
    /// This, or StateError before setFatherSon. Local.
    const ArrayTransformerBase &requireArrays(SourceLocation where = SourceLocation::current()) const;
    /// Throws StateError unless the father has a numbering of its present rows. Local.
    void requireGlobalMapping() const;
    /// Gives the father the pattern's numbering. Throws StateError if the numbers of rows differ. Local.
    void takeNumbering(const ExchangePattern &pattern);
    /// Ghosts of the previous pattern are not pulled ghosts of this one.
    void setPattern(std::shared_ptr<const ExchangePattern> pattern);
    /// The context for setting up exchanges: that of the pattern, else of the father. Collective on its first use.
    std::shared_ptr<CommunicatorContext> context() const;
    /// Throws StateError unless there is a mapping. Local.
    void requireMapping(const char *what) const;
    /// The request of an exchange of this array. Throws StateError without a mapping.
    ExchangeRequest request(const char *what) const;
    /// The sizes of ghost rows, from the sizes of owned rows. Collective.
    std::vector<rowsize> pullRowSizes(std::vector<rowsize> fatherSizes) const;
    /// Refreshes only the last part of a son's rows, for arrays that keep the shape of each row. Collective.
    void pullRowShapes() const;

    std::shared_ptr<ArrayBase> father_;
    std::shared_ptr<ArrayBase> son_;
    ParRows *rows_ = nullptr; ///< the father's
    std::shared_ptr<const ExchangePattern> pattern_;
    /// `pattern_` for members of exchanges, which may outlive this; compared with that of an exchange, never
    /// dereferenced.
    std::shared_ptr<const ExchangePattern *> current_;
    std::shared_ptr<GhostWatch> watch_; ///< exchanges that outlive this report to it, too
    bool reports_ = false;              ///< whether they report
};

/// Ghost exchange of one array. `TArray` is a ParArray or an array derived from one. Move-only.
///
/// Father and son may be of a type derived from `TArray`: an ArrayTransformer<ParArray<real, NonUniformSize>>
/// serves matrix batches as their own transformer does, shapes included.
///
///     ArrayTransformer<ParArray<real, 5>> trans;
///     trans.setFatherSon(father, son);
///     trans.createFatherGlobalMapping();
///     trans.createGhostMapping(globalRowsThatIRead);   // or trans.borrowGGIndexing(otherTransformer)
///     trans.createMPITypes();                          // gives the son its rows
///     trans.initPersistentPull();
///     for (...) {
///         trans.startPersistentPull();                 // compute on inner rows
///         trans.waitPersistentPull();                  // compute on boundary rows
///     }
template <class TArray>
class ArrayTransformer : public ArrayTransformerBase {
  public:
    using ArrayType = TArray;

    /// Sets the arrays to connect. Collective over their communicator. Drops mapping and exchanges of earlier arrays.
    /// Throws ArgumentError on all ranks when one of the two is null on any rank (if both are null, on that rank
    /// only); LayoutError on all ranks when the two are not of one type, including derived types, or when ranks
    /// pass arrays of different types.
    void setFatherSon(const std::shared_ptr<TArray> &father, const std::shared_ptr<TArray> &son) {
#if defined(DNDS_DEBUG_CHECKS)
        ArrayTransformerBase::setFatherSon(father, son, true);
#else
        ArrayTransformerBase::setFatherSon(father, son, false);
#endif
    }

    /// The arrays given to `setFatherSon`; null before. Local.
    std::shared_ptr<TArray> father() const { return std::static_pointer_cast<TArray>(ArrayTransformerBase::father()); }
    std::shared_ptr<TArray> son() const { return std::static_pointer_cast<TArray>(ArrayTransformerBase::son()); }
};

} // namespace DNDS
