/// @file ArrayTransformer.hpp
/// @brief Connects a father (owned rows) with a son (ghost rows): makes the mapping, and pulls and pushes.
#pragma once

#include "DNDS/Array/GhostState.hpp"
#include "DNDS/Array/GhostWatch.hpp"
#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Array/TransformerCore.hpp"
#include "DNDS/Index/GhostMapping.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

namespace DNDS {

/// Ghost exchange of one array. `TArray` is a ParArray or an array derived from one. Move-only.
///
/// Father and son may be of a type that is derived from `TArray`: an ArrayTransformer<ParArray<real, NonUniformSize>>
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
///
/// What is wrong on one rank only is thrown on all by the collective functions, with one exception: a transformer
/// without arrays knows no other ranks, and throws StateError on its own rank.
template <class TArray>
class ArrayTransformer : public TransformerCore {
  public:
    using ArrayType = TArray;

    /// The arrays to connect. Collective over their communicator. Forgets mapping and exchanges of earlier arrays.
    /// Throws ArgumentError on all ranks when one of the two is null on any rank (where both are null, on that rank
    /// only); LayoutError on all ranks when the two are not of one type, derived types counted as such, or when ranks
    /// give arrays of different types.
    void setFatherSon(std::shared_ptr<TArray> father, std::shared_ptr<TArray> son) {
        DNDS_CHECK(father != nullptr || son != nullptr, ArgumentError,
                   "father and son are null: create the arrays first");
        std::shared_ptr<const ExchangePattern *> current;
        std::shared_ptr<GhostWatch> watch = watch_;
        (father ? father : son)->comm().guarded([&] {
            DNDS_CHECK(father != nullptr, ArgumentError, "the father of '{}' is null", son->label());
            DNDS_CHECK(son != nullptr, ArgumentError, "the son of '{}' is null", father->label());
            DNDS_CHECK(father != son, ArgumentError, "'{}' cannot be father and son at once", father->label());
            requireOneType(*father, typeid(*father.get()), *son, typeid(*son.get()));
            current = std::make_shared<const ExchangePattern *>(nullptr);
            if (!watch || !watch->watches(father.get(), son.get()))
                watch = std::make_shared<GhostWatch>(*father, *son);
        });
        agreeOnType(father->comm(), *father, typeid(*father.get()));
        begin(std::move(current));
        father_ = std::move(father);
        son_ = std::move(son);
        watch_ = std::move(watch);
        watch_->forget();
    }

    /// The arrays given to `setFatherSon`; null before. Local.
    const std::shared_ptr<TArray> &father() const noexcept { return father_; }
    const std::shared_ptr<TArray> &son() const noexcept { return son_; }

    /// Numbers the father's rows globally. Collective.
    void createFatherGlobalMapping() {
        const Doing doing("createFatherGlobalMapping of", requireArrays().father_->label());
        father_->createGlobalMapping();
    }

    /// Makes this rank's ghosts: copies of the global rows in `pullRows` (any order, duplicates welcome). Collective.
    /// See GhostMapping::fromPullList for cost and errors. The father's global mapping must exist.
    void createGhostMapping(std::span<const index> pullRows, PeerDiscovery discovery = PeerDiscovery::Auto) {
        const Doing doing("createGhostMapping of", requireArrays().father_->label());
        const auto context = CommunicatorContext::of(father_->comm());
        setMapping(GhostMapping::fromPullList(
            *context,
            [&] {
                requireGlobalMapping();
                return GhostMapping::PullRequest{father_->globalMapping(), pullRows, father_->label()};
            },
            discovery));
    }
    /// Makes ghosts on other ranks: own rows `localRows[starts[r]..starts[r + 1])` are copied to rank r. Collective.
    /// See GhostMapping::fromPushList.
    void createGhostMapping(std::span<const index> localRows, std::span<const index> starts,
                            PeerDiscovery discovery = PeerDiscovery::Auto) {
        const Doing doing("createGhostMapping of", requireArrays().father_->label());
        father_->comm().guarded([&] { requireGlobalMapping(); });
        setMapping(
            GhostMapping::fromPushList(father_->globalMapping(), localRows, starts, discovery, father_->label()));
    }

    /// Takes a pattern that was made without an array, of as many rows as the father has, and its numbering of rows, if
    /// it has one. Collective; one reduction. Throws StateError on all ranks where the numbers of rows differ on some
    /// rank.
    void usePattern(std::shared_ptr<const ExchangePattern> pattern) {
        requireArrays().father_->comm().guarded([&] {
            DNDS_CHECK(pattern != nullptr, ArgumentError, "'{}' is given a null pattern", father_->label());
            takeNumbering(*pattern);
        });
        setPattern(std::move(pattern));
    }

    /// Shares mapping and pattern of another array with equally many rows. Collective; one reduction.
    template <class TOther>
    void borrowGGIndexing(const ArrayTransformer<TOther> &other) {
        requireArrays().father_->comm().guarded([&] {
            DNDS_CHECK(other.pattern() != nullptr, StateError, "the mapping that '{}' is to borrow does not exist yet",
                       father_->label());
            takeNumbering(*other.pattern());
        });
        setPattern(other.pattern());
    }

    /// Gives the son as many rows as there are ghosts, with the widths, row sizes and shapes of their owners' rows.
    /// Collective. Call it again after row sizes or widths of the father have changed. The son's contents are zero
    /// until pulled. Throws LayoutError on all ranks when run-time widths differ between ranks, StateError for
    /// uncompressed CSR fathers.
    void createMPITypes() {
        const CommunicatorView comm = requireArrays().father_->comm();
        father_->agreeShape();
        std::vector<rowsize> sizes;
        comm.guarded([&] {
            requireMapping("createMPITypes");
            requireSize();
            son_->resize(0);
            son_->compress();
            son_->rehost(sonMemory()); // while it is empty, so that nothing is copied
            son_->adoptShape(*father_);
            if constexpr (isFixedLayout(TArray::layout)) {
                son_->resizeGhosts(pattern()->sonSize(), {});
            } else {
                sizes.resize(static_cast<std::size_t>(father_->size()));
                (void)father_->rowLayout(MemorySpace::Host, Access::Read); // throws unless rows can be exchanged
                for (index i = 0; i < father_->size(); ++i)
                    sizes[static_cast<std::size_t>(i)] = father_->rowSize(i);
            }
        });
        if constexpr (!isFixedLayout(TArray::layout)) {
            sizes = pullRowSizes(std::move(sizes));
            comm.guarded([&] { son_->resizeGhosts(pattern()->sonSize(), sizes); });
        }
        if (father_->hasRowShapes())
            pullRowShapes([&] { return member(); });
        if constexpr (reports)
            watch_->created();
    }

    /// Prepares pulls for repeated use, in place of those prepared before. Collective. See Exchange for cost and
    /// errors; throws StateError on all ranks while a pull is in flight on any. Where it throws, the one before stays.
    void initPersistentPull(const ExchangeOptions &options = {}) {
        const Doing doing("initPersistentPull of", father_ ? father_->label() : "");
        init(
            *context(), Direction::Pull, [&] { return request("initPersistentPull"); }, options);
    }
    /// Prepares pushes for repeated use. Collective. As above. Ghosts keep their values after a push, so that the next
    /// one with PushOp::Sum adds them again, unless `options.ghosts` is GhostsAfterPush::Zero.
    void initPersistentPush(PushOp op = PushOp::Replace, const ExchangeOptions &options = {}) {
        const Doing doing("initPersistentPush of", father_ ? father_->label() : "");
        init(
            *context(), Direction::Push, [&] { return request("initPersistentPush"); }, options, op);
    }
    /// Refreshes the son once. Collective; costs a set-up each time, so use persistent pulls in loops. On the device it
    /// runs after what `producer` holds (see Exchange::start) and is complete when this returns.
    void pullOnce(const ExchangeOptions &options = {}, Device::StreamHandle producer = nullptr) {
        once(
            *context(), Direction::Pull, [&] { return request("pullOnce"); }, options, PushOp::Replace, producer);
    }
    /// Sends the son's rows back once. Collective; costs a set-up each time. Ghosts keep their values, and another push
    /// with PushOp::Sum adds them again: zero them before the next contributions, or ask for
    /// `ExchangeOptions::ghosts = GhostsAfterPush::Zero`.
    void pushOnce(PushOp op = PushOp::Replace, const ExchangeOptions &options = {},
                  Device::StreamHandle producer = nullptr) {
        once(
            *context(), Direction::Push, [&] { return request("pushOnce"); }, options, op, producer);
    }

    /// This array as part of an exchange of several (`ExchangeGroup`). It keeps father and son alive. Local.
    ExchangeMember member() const {
        requireArrays();
        return {
            std::string(father_->label()),
            [father = father_](MemorySpace space, Access access, RowLayout &into) {
                father->rowLayout(space, access, into);
            },
            [son = son_, watch = watch_](MemorySpace space, Access access, RowLayout &into) {
                const bool unwritten = reports && watch->unwritten();
                son->rowLayout(space, access, into);
                if (unwritten) // set-up takes them for writing; pulls report themselves
                    watch->keep();
            },
            [father = father_, son = son_] {
                return father->valid(MemorySpace::Device) && son->valid(MemorySpace::Device);
            },
            currentPattern(),
            [father = father_, son = son_, watch = watch_, sent = std::uint64_t{0}](bool arrived, bool all) mutable {
                if (!arrived) // after a pull of some ghosts the others may be older: nothing is known of the whole
                    sent = all ? father->version() : 0;
                son->setPulledFrom(arrived ? sent : 0);
                if (!all || !reports)
                    watch->forget();
                else if (arrived)
                    watch->arrived();
                else
                    watch->started();
            },
            reports};
    }

    /// What this rank knows of the son's rows: whether its father was written since they were last pulled. Local, O(1);
    /// see GhostState for what it cannot know.
    GhostState ghostState() const {
        requireArrays();
        return ghostStateOf(*father_, *son_);
    }
    /// What checks access to the ghosts; null before `setFatherSon`. Local.
    GhostWatch *ghostWatch() const noexcept { return watch_.get(); }

  private:
    /// Whether this code reports to the watch.
#if defined(DNDS_DEBUG_CHECKS)
    static constexpr bool reports = true;
#else
    static constexpr bool reports = false;
#endif

    std::string_view exchanged() const noexcept override { return father_ ? father_->label() : "arrays never set"; }
    const ArrayTransformer &requireArrays(SourceLocation where = SourceLocation::current()) const {
        if (!father_ || !son_) [[unlikely]]
            throw StateError(
                "this transformer has no father and son (never set, or moved from): call setFatherSon first", where);
        return *this;
    }
    void takeNumbering(const ExchangePattern &pattern) {
        if (pattern.mapping())
            father_->setGlobalMapping(pattern.mapping()->global());
        DNDS_CHECK(father_->size() == pattern.fatherSize(), StateError, "'{}' has {} rows, but the pattern has {}",
                   father_->label(), father_->size(), pattern.fatherSize());
    }
    void requireSize() const {
        DNDS_CHECK(father_->size() == pattern()->fatherSize(), StateError,
                   "the father of '{}' has {} rows, but its mapping was made for {}: make the mapping again",
                   father_->label(), father_->size(), pattern()->fatherSize());
    }
    void requireGlobalMapping() const {
        DNDS_CHECK(father_->globalMapping() != nullptr, StateError,
                   "'{}' has no global mapping: call createFatherGlobalMapping first", father_->label());
        DNDS_CHECK(father_->globalMapping()->localSize() == father_->size(), StateError,
                   "'{}' was resized from {} to {} rows after its global mapping was made: make it again",
                   father_->label(), father_->globalMapping()->localSize(), father_->size());
    }
    /// As those of the core; ghosts of the mapping before are none of this one.
    void setMapping(std::shared_ptr<const GhostMapping> mapping) {
        TransformerCore::setMapping(std::move(mapping));
        son_->setPulledFrom(0);
        watch_->forget();
    }
    void setPattern(std::shared_ptr<const ExchangePattern> pattern) {
        TransformerCore::setPattern(std::move(pattern));
        son_->setPulledFrom(0);
        watch_->forget();
    }
    std::shared_ptr<CommunicatorContext> context() const { return contextFor(requireArrays().father_->comm()); }
    ExchangeRequest request(const char *what) const {
        requireMapping(what);
        return {pattern(), {member()}};
    }

    std::shared_ptr<TArray> father_;
    std::shared_ptr<TArray> son_;
    std::shared_ptr<GhostWatch> watch_; ///< exchanges that outlive this report to it, too
};

} // namespace DNDS
