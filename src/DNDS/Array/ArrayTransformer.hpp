/// @file ArrayTransformer.hpp
/// @brief Connects a father (owned rows) with a son (ghost rows): makes the mapping, and pulls and pushes.
///
/// - `GhostState`: whether ghosts were pulled since this rank last wrote its own rows
/// - `GhostWatch`: the check of each access to a ghost in programs that define DNDS_DEBUG_CHECKS
#pragma once

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

/// State of a rank's ghosts from its own point of view: the version of its own father at their last pull.
///
/// Ranks that run the same program write their fathers between the same pulls, and then this holds for the
/// owners, too. Where only some ranks write, the others do not notice: their ghosts count as current. Writes into
/// the ghosts themselves after the pull are not considered; `ArrayBase::version` of the son tells them.
enum class GhostState : unsigned char {
    NeverPulled, ///< the last pull did not fill these rows: there was none, it is in flight, it failed, or it pulled
                 ///< only some ghosts (ExchangePattern::restrictedTo)
    Stale,       ///< the father was written, or its contents replaced, since the pull started
    Current      ///< the father has the contents that it had when the pull started; or there are no ghosts
};

/// Compares the father's version with that of the last completed pull into `son`. Local, O(1). Non-const access counts
/// as writing even if it only reads; see ArrayBase::version, also for writes that it misses.
inline GhostState ghostStateOf(const ArrayBase &father, const ArrayBase &son) noexcept {
    if (son.size() == 0)
        return GhostState::Current;
    if (son.pulledFrom() == 0)
        return GhostState::NeverPulled;
    return son.pulledFrom() == father.version() ? GhostState::Current : GhostState::Stale;
}

/// Check of ghosts by a view for reading, in code compiled with DNDS_DEBUG_CHECKS.
enum class GhostUse : unsigned char {
    Unchecked, ///< no check: old values are intended
    Checked,   ///< on the host, each access to a ghost: see GhostWatch
    Read       ///< ghosts must be current when the view is taken, on the device, too: StaleError; then as Checked
};

/// Throws StaleError naming the father unless `ghostStateOf` is Current. Local, O(1).
inline void requireCurrentGhosts(const ArrayBase &father, const ArrayBase &son) {
    const GhostState state = ghostStateOf(father, son);
    DNDS_CHECK(state == GhostState::Current, StaleError, "the ghosts of '{}' are {}: pull before reading them",
               father.label(), state == GhostState::NeverPulled ? "never pulled" : "older than the owned rows");
}

/// Decides whether a program may use the ghosts of a pair now. One per transformer, in every build; code compiled
/// with DNDS_DEBUG_CHECKS reports mappings and pulls to it, and checks each access to a ghost through a pair or a
/// pair's view of host memory. All is Local.
///
/// An access throws
///
/// - while a pull of all ghosts is in flight, for reading and writing: StateError;
/// - for reading, if ghosts were never pulled, or if this rank's owned rows have other contents than when the last pull
///   arrived: StaleError.
///
/// It does not throw if only the program can tell: ghosts that the program has written itself or taken for writing,
/// pulls of some ghosts only, pulls that failed, and pulls by code that was compiled without DNDS_DEBUG_CHECKS.
///
/// It compares versions first, and contents (O(owned rows)) only if versions differ: so access that could have written
/// but did not, as by a non-const `view()`, raises no false alarm.
class GhostWatch {
  public:
    /// A view's check before it uses a ghost. Valid as long as the transformer.
    class Access {
      public:
        /// Throws StateError or StaleError, see above. Safe in several threads at once.
        void check() const { watch_.check(writes_); }
        /// The ghosts are handed out as a view of their own, without checks.
        void handOut() const noexcept { watch_.handOut(writes_); }

      private:
        friend class GhostWatch;
        Access(GhostWatch &watch, bool writes) noexcept : watch_(watch), writes_(writes) {}
        GhostWatch &watch_;
        bool writes_;
    };

    /// The watch of these arrays, with ghosts in unknown state.
    GhostWatch(const ArrayBase &father, const ArrayBase &son) noexcept : father_(&father), son_(&son) {}
    /// Views and exchanges point to it.
    GhostWatch(const GhostWatch &) = delete;
    GhostWatch &operator=(const GhostWatch &) = delete;

    /// Whether these are the watched arrays. Compares addresses only.
    bool watches(const ArrayBase *father, const ArrayBase *son) const noexcept {
        return father == father_ && son == son_;
    }

    /// The ghosts are new, and zero.
    void created();
    /// A pull of all ghosts has started.
    void started() noexcept { state_.store(State::InFlight, std::memory_order_relaxed); }
    /// A pull has completed. O(owned rows): keeps their hash.
    void arrived();
    /// Resets to unknown: no checks until the next pull.
    void forget() noexcept { state_.store(State::Unknown, std::memory_order_relaxed); }

    /// Whether nothing has written the ghosts since `created` or `arrived`.
    bool unwritten() const noexcept;
    /// Continues as if nothing had been taken for writing meanwhile: for views that ask `writing()`.
    void keep() noexcept;
    /// Swaps states, after the contents of the arrays were swapped.
    void swap(GhostWatch &other) noexcept;

    /// For views that read ghosts, and for views that may write them.
    const Access &reading() const noexcept { return reading_; }
    const Access &writing() const noexcept { return writing_; }

  private:
    enum class State : unsigned char { Unknown, NeverPulled, InFlight, Pulled };

    /// See Access::check.
    void check(bool writes);
    void handOut(bool writes) noexcept;
    /// Whether the father's contents are those at the last arrival; true where only the device could tell.
    bool sameContents();

    const ArrayBase *father_;
    const ArrayBase *son_;
    std::atomic<State> state_ = State::Unknown;
    std::uint64_t sonVersion_ = 0;                 ///< version of the contents that `state_` describes
    std::atomic<std::uint64_t> fatherVersion_ = 0; ///< version of contents equal to those at the last arrival
    std::uint64_t fatherHash_ = 0;                 ///< hash of these
    bool hashed_ = false;                          ///< false if the host copy was stale
    Access reading_{*this, false};
    Access writing_{*this, true};
};

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
    std::shared_ptr<CommunicatorContext> context() const override;
    /// Throws StateError unless there is a mapping. Local.
    void requireMapping(const char *what) const;
    /// The request of an exchange of this array. Throws StateError without a mapping.
    ExchangeRequest request(const char *what) const override;
    /// The sizes of ghost rows, from the sizes of owned rows. Collective.
    std::vector<rowsize> pullRowSizes(std::vector<rowsize> fatherSizes) const;
    /// Refreshes only the last part of a son's rows, for arrays that keep the shape of each row. Collective.
    void pullRowShapes() const;

    /// The arrays' common part, which keeps the whole arrays alive.
    std::shared_ptr<ArrayBase> father_;
    std::shared_ptr<ArrayBase> son_;
    ParRows *rows_ = nullptr; ///< the father's
    /// Null before a mapping is made, taken or borrowed.
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
