/// @file ArrayPair.hpp
/// @brief Father, son and their transformer in one object: a solver's field. Its view has owned rows and ghosts with
/// one index, for kernels.
#pragma once

#include "DNDS/Array/ArrayTransformer.hpp"
#include "DNDS/Base/Types.hpp"

#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace DNDS {

/// A trivially copyable view of father and son: rows [0, fatherSize()) are owned, rows [fatherSize(), size()) are
/// ghosts. `View` is the view type of the arrays. Choosing between the two is a conditional move if the row width is
/// fixed. On the host, with DNDS_DEBUG_CHECKS, access to ghosts that are not current throws: see GhostWatch.
template <class View>
class ArrayPairView {
  public:
    ArrayPairView() = default;
    /// Views of both arrays in one memory. Local, O(1), as all below.
    DNDS_HOST_DEVICE ArrayPairView(View father, View son) : father_(father), son_(son) {}
    /// The same; `ghosts` may be null, and only builds with DNDS_DEBUG_CHECKS read it.
    DNDS_HOST_DEVICE ArrayPairView(View father, View son, const GhostWatch::Access *ghosts)
        : father_(father), son_(son), ghosts_(ghosts) {}

    /// The number of rows, the number of owned ones, and the views of both parts.
    DNDS_HOST_DEVICE index size() const { return father_.size() + son_.size(); }
    DNDS_HOST_DEVICE index fatherSize() const { return father_.size(); }
    DNDS_HOST_DEVICE const View &father() const { return father_; }
    DNDS_HOST_DEVICE const View &son() const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (ghosts_ != nullptr)
            ghosts_->handOut();
#endif
        return son_;
    }

    /// The number of elements of row `i`.
    DNDS_HOST_DEVICE rowsize rowSize(index i) const {
        return isGhost(i) ? son_.rowSize(i - fatherSize()) : father_.rowSize(i);
    }
    /// Element `j` of row `i`, as the arrays' views return it.
    DNDS_HOST_DEVICE decltype(auto) operator()(index i, rowsize j) const {
        const bool ghost = isGhost(i);
        check(ghost);
        const View &part = ghost ? son_ : father_;
        return part(ghost ? i - fatherSize() : i, j);
    }
    DNDS_HOST_DEVICE decltype(auto) operator()(index i) const { return (*this)(i, 0); }
    /// Row `i`, as the arrays' views return it: a pointer, or an Eigen map.
    DNDS_HOST_DEVICE auto operator[](index i) const {
        const bool ghost = isGhost(i);
        check(ghost);
        const View &part = ghost ? son_ : father_;
        return part[ghost ? i - fatherSize() : i];
    }
    DNDS_HOST_DEVICE bool isGhost(index i) const { return i >= father_.size(); }

  private:
    // On the device views carry no checks: kernels cannot throw.
    DNDS_HOST_DEVICE void check([[maybe_unused]] bool ghost) const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (ghost && ghosts_ != nullptr)
            ghosts_->check();
#endif
    }

    View father_;
    View son_;
    const GhostWatch::Access *ghosts_ = nullptr; // in every build: no layout depends on a macro
};

/// The shared pointer to one of a pair's arrays: dereferencing null throws StateError instead of ending the
/// process.
template <class TArray>
class PairArray : public std::shared_ptr<TArray> {
  public:
    using std::shared_ptr<TArray>::shared_ptr;
    /// Shares the array.
    PairArray(std::shared_ptr<TArray> array) noexcept : std::shared_ptr<TArray>(std::move(array)) {} // NOLINT: implicit

    /// The array. Throws StateError if it is null.
    TArray &operator*() const {
        DNDS_CHECK(this->get() != nullptr, StateError,
                   "this pair has no arrays (not initialised, or moved from): call initPair first");
        return *this->get();
    }
    TArray *operator->() const { return &**this; }
};

/// A distributed field with ghosts. Rows [0, father->size()) are owned, the rows after them are ghosts.
///
///     ArrayPair<ParArray<real, 5>> u("u", comm, ownedCells);
///     const std::vector<LocalIndex> sides = u.ghostsFor(reads); // global rows, one's own as well as others'
///     u.pull();                          // refreshes the ghosts; startPull and waitPull to compute meanwhile
///     auto v = u.view();                 // v(cell, k) for owned cells and ghosts alike, as in v(sides[0], k)
///
/// The same in single steps, for fields with other needs:
///
///     ArrayPair<ParArray<real, 5>> u;
///     u.initPair("u", comm);
///     u.father->resize(ownedCells);
///     u.transAttach();
///     u.trans.createFatherGlobalMapping();
///     u.trans.createGhostMapping(neighbourCells);
///     u.trans.createMPITypes();
///     u.trans.initPersistentPull();
template <class TArray = ParArray<real, 1>>
class ArrayPair {
  public:
    using ArrayType = TArray;

    PairArray<TArray> father; ///< the rows this rank owns
    PairArray<TArray> son;    ///< copies of others' rows
    ArrayTransformer<TArray> trans;

    /// No arrays yet: `initPair` makes them. Local.
    ArrayPair() = default;
    /// Owned rows of zeros, numbered consecutively over the ranks: `rows` of them on this rank, and if the layout
    /// needs them their width or sizes, as for `ArrayBase::resize`. Ghosts are made by `ghostsFor`. Collective. Errors
    /// of one rank are thrown on all.
    template <class... Widths>
    ArrayPair(const std::string &name, CommunicatorView comm, index rows, Widths &&...widths) {
        comm.guarded([&] {
            initPair(name, comm);
            father->resize(rows, std::forward<Widths>(widths)...);
        });
        transAttach();
        trans.createFatherGlobalMapping();
    }
    /// The same number of rows as `other`, with its numbering and ghosts, all zero, ready to pull. For rows of one
    /// width, that of `other` if the type leaves it open. Collective. Throws StateError on all ranks if `other` has no
    /// ghosts yet.
    template <class TOther>
    ArrayPair(const std::string &name, const ArrayPair<TOther> &other) {
        static_assert(isFixedLayout(TArray::layout),
                      "rows of sizes of their own: use initPair, resize and borrowGGIndexing");
        const CommunicatorView comm = other.father->comm();
        comm.guarded([&] {
            initPair(name, comm);
            if constexpr (std::is_same_v<TArray, TOther>)
                father->adoptShape(*other.father);
            father->resize(other.father->size());
        });
        transAttach();
        trans.borrowGGIndexing(other.trans);
        trans.createMPITypes();
        trans.initPersistentPull();
    }

    /// Makes ghosts of those global rows of `reads` that other ranks own, and prepares `pull`. Rows come in any order,
    /// with repetitions; owned rows may be among them. Returns their local rows, in the same order: rows of
    /// this rank, or ghosts. Collective. Cost: one message per peer, and as `initPersistentPull`. Throws IndexError on
    /// all ranks if one of them reads a row that does not exist. See GhostMapping for the order of ghosts.
    std::vector<LocalIndex> ghostsFor(std::span<const index> reads) {
        std::vector<index> ghosts;
        father->comm().guarded([&] {
            DNDS_CHECK(father->globalMapping() != nullptr, StateError,
                       "'{}' has no global mapping: call createFatherGlobalMapping first", father->label());
            ghosts = father->globalMapping()->ofOthers(reads);
        });
        trans.createGhostMapping(ghosts);
        trans.createMPITypes();
        trans.initPersistentPull();
        return trans.ghostMapping()->toLocal(reads);
    }

    /// Refreshes the ghosts by the persistent pull that `ghostsFor` or `initPersistentPull` prepared: `pull` at once,
    /// or `startPull`, work on `trans.pattern()->innerRows()`, and `waitPull`. Called on all ranks; errors as
    /// `ArrayTransformer::startPersistentPull`.
    void startPull() { trans.startPersistentPull(); }
    void waitPull() { trans.waitPersistentPull(); }
    void pull() {
        startPull();
        waitPull();
    }

    /// Creates empty father and son; `arguments` begin with the communicator and are passed to the arrays'
    /// constructors. Local.
    template <class... Arguments>
    void initPair(const std::string &name, const Arguments &...arguments) {
        father = std::make_shared<TArray>(name, arguments...);
        son = std::make_shared<TArray>(name + " (ghosts)", arguments...);
    }
    /// Connects father and son; to be repeated after either was replaced. Collective. See
    /// ArrayTransformer::setFatherSon. Throws also LayoutError on all ranks for arrays of a derived type, which a pair
    /// would copy and swap in part only.
    void transAttach() {
        trans.setFatherSon(father, son);
        DNDS_CHECK(typeid(*father.get()) == typeid(TArray), LayoutError,
                   "'{}' is of a type derived from that of its pair: declare the pair with the derived type",
                   father->label()); // on all ranks, which have agreed on the type
    }

    /// Uses the mapping of `primary`, sizes the son and fills it. Collective. This pair's father has its rows already.
    template <class TOther>
    void borrowAndPull(const ArrayPair<TOther> &primary) {
        transAttach();
        trans.borrowGGIndexing(primary.trans);
        trans.createMPITypes();
        trans.pullOnce();
    }

    /// Owned rows and ghosts. Local, as all below. They throw StateError before `initPair`.
    index size() const { return father->size() + son->size(); }
    rowsize rowSize(index i) const {
        return dispatch(*this, i, [](const TArray &a, index row) { return a.rowSize(row); });
    }
    void resizeRow(index i, rowsize width) {
        dispatch(*this, i, [&](TArray &a, index row) { a.resizeRow(row, width); });
    }
    /// Element `j` of row `i`; bounds are always checked, so loops use `view()`.
    decltype(auto) operator()(index i, rowsize j) {
        checkGhost(*this, i);
        return dispatch(*this, i, [&](TArray &a, index row) -> decltype(auto) { return a(row, j); });
    }
    decltype(auto) operator()(index i, rowsize j) const {
        checkGhost(*this, i);
        return dispatch(*this, i, [&](const TArray &a, index row) -> decltype(auto) { return a(row, j); });
    }
    /// Row `i`, as the array returns it: a pointer, or an Eigen map.
    auto operator[](index i) {
        checkGhost(*this, i);
        return dispatch(*this, i, [](TArray &a, index row) { return a[row]; });
    }
    auto operator[](index i) const {
        checkGhost(*this, i);
        return dispatch(*this, i, [](const TArray &a, index row) { return a[row]; });
    }

    /// This rank's knowledge of the ghosts: never pulled, older than the owned rows on this rank, or current. Local,
    /// O(1). See GhostState for what it cannot know.
    GhostState ghostState() const { return ghostStateOf(*father, *son); }
    /// Whether ghosts need a pull: they are not current. Local, O(1).
    bool ghostsAreStale() const { return ghostState() != GhostState::Current; }
    /// Throws StaleError naming the array unless ghosts are current, in every build. Local, O(1).
    void requireCurrentGhosts() const { DNDS::requireCurrentGhosts(*father, *son); }

    /// Owned rows and ghosts as one trivially copyable view of the memory of `backend`. O(1). Throws StaleError. With
    /// DNDS_DEBUG_CHECKS, access to ghosts through a view of host memory throws between start and wait of a pull.
    /// Taking a view counts as writing; a watched son that nothing had written is still unwritten after it.
    template <DeviceBackend backend>
    auto deviceView() {
        GhostWatch *const watch = watchIn<backend>();
        const bool unwritten = watch != nullptr && watch->unwritten();
        ArrayPairView view(father->template deviceView<backend>(), son->template deviceView<backend>(),
                           watch != nullptr ? &watch->writing() : nullptr);
        if (unwritten)
            watch->keep();
        return view;
    }
    /// The same for reading. With DNDS_DEBUG_CHECKS ghosts are checked according to `use`: StaleError and StateError.
    template <DeviceBackend backend>
    auto deviceView([[maybe_unused]] GhostUse use = GhostUse::Checked) const {
#if defined(DNDS_DEBUG_CHECKS)
        if (use == GhostUse::Read)
            requireCurrentGhosts();
#endif
        const TArray &constFather = *father;
        const TArray &constSon = *son;
        const GhostWatch *const watch = use == GhostUse::Unchecked ? nullptr : watchIn<backend>();
        return ArrayPairView(constFather.template deviceView<backend>(), constSon.template deviceView<backend>(),
                             watch != nullptr ? &watch->reading() : nullptr);
    }
    /// The same of host memory.
    auto view() { return deviceView<DeviceBackend::Host>(); }
    auto view(GhostUse use = GhostUse::Checked) const { return deviceView<DeviceBackend::Host>(use); }

    /// Copies both arrays to the device, or back. Waits.
    void toDevice() {
        father->toDevice();
        son->toDevice();
    }
    void toHost() {
        father->toHost();
        son->toHost();
    }

    /// Moves the ghosts right after the owned rows in memory, so that one pointer serves both: for linear solvers
    /// and libraries that take one block of owned and ghost values. For arrays whose rows all have one width. Contents
    /// are kept and persistent exchanges remain valid; earlier pointers and views are invalid. It lasts until father or
    /// son is resized or replaced, a pull of this pair has failed, or, on the device, arrays were resized on the host;
    /// `swapData` moves it along. In device memory it needs `toDevice` before. Local; O(array).
    /// Throws LayoutError for other layouts, MemoryError.
    void makeContiguous(MemorySpace space = MemorySpace::Host) { ArrayBase::joinRows(*father, *son, space); }
    /// Whether the rows are contiguous. Local, O(1).
    bool isContiguous(MemorySpace space = MemorySpace::Host) const {
        return ArrayBase::areJoined(*father, *son, space);
    }
    /// All elements on the host, those of owned rows first. Local, O(1). Throws StateError unless `isContiguous`.
    std::span<typename TArray::Element> elements() { return allOf<typename TArray::Element>(*father, *son); }
    std::span<const typename TArray::Element> elements() const {
        return allOf<const typename TArray::Element>(std::as_const(*father), std::as_const(*son));
    }

    /// Exchanges the contents of two pairs in O(1), as solvers do with old and new states; persistent exchanges of both
    /// stay usable and move the new contents. Collective in effect: swap on all ranks. Throws StateError when the
    /// pairs' mappings differ.
    void swapData(ArrayPair &other) {
        TArray &otherFather = *other.father;
        DNDS_CHECK(trans.pattern() == other.trans.pattern(), StateError,
                   "'{}' and '{}' cannot be swapped: their mappings differ", father->label(), otherFather.label());
        father->swapData(otherFather);
        son->swapData(*other.son);
        if (trans.ghostWatch() != nullptr && other.trans.ghostWatch() != nullptr)
            trans.ghostWatch()->swap(*other.trans.ghostWatch());
    }
    /// Makes this a deep copy of `other` with its own arrays and the same mapping. Collective. Persistent exchanges
    /// are not copied: call `initPersistentPull` where they are needed.
    void clone(const ArrayPair &other) {
        std::shared_ptr<TArray> ofFather;
        std::shared_ptr<TArray> ofSon;
        other.father->comm().guarded([&] {
            ofFather = std::make_shared<TArray>(*other.father);
            ofSon = std::make_shared<TArray>(*other.son);
            if (other.trans.pattern() != nullptr)
                ofSon->rehost(other.trans.sonMemory()); // while it has no views
        });
        father = std::move(ofFather);
        son = std::move(ofSon);
        transAttach();
        if (other.trans.pattern() != nullptr)
            trans.borrowGGIndexing(other.trans);
        son->setPulledFrom(other.ghostsAreStale() ? other.son->pulledFrom() : father->version(),
                           other.son->finishedBy());
    }
    /// A hash of the contents of both arrays on this rank. O(array).
    std::uint64_t hash() const { return father->hash() * 31 + son->hash(); }
    /// Expires when this pair is destroyed, even if others share its arrays.
    std::weak_ptr<const void> lifetime() const { return lifetime_.watch(); }

  private:
    /// The check of ghosts in the memory of `backend` with DNDS_DEBUG_CHECKS; else null.
    template <DeviceBackend backend>
    GhostWatch *watchIn() const {
#if defined(DNDS_DEBUG_CHECKS)
        if constexpr (backend == DeviceBackend::Host)
            if (GhostWatch *watch = trans.ghostWatch(); watch != nullptr && watch->watches(father.get(), son.get()))
                return watch;
#endif
        return nullptr;
    }
    // Empty in builds without the checks.
    template <class Self>
    static void checkGhost([[maybe_unused]] Self &self, [[maybe_unused]] index i) {
#if defined(DNDS_DEBUG_CHECKS)
        if (const GhostWatch *watch = self.template watchIn<DeviceBackend::Host>(); watch && i >= self.father->size())
            (std::is_const_v<Self> ? watch->reading() : watch->writing()).check();
#endif
    }
    template <class Element, class Arrays>
    static std::span<Element> allOf(Arrays &father, Arrays &son) {
        DNDS_CHECK(ArrayBase::areJoined(father, son, MemorySpace::Host), StateError,
                   "the ghosts of '{}' do not lie behind its owned rows: call makeContiguous (again, if an array was "
                   "resized)",
                   father.label());
        Element *owned = father.data();
        Element *ghosts = son.data(); // both, as both may be written
        return {owned != nullptr ? owned : ghosts, static_cast<std::size_t>(father.dataSize() + son.dataSize())};
    }
    template <class Self, class Function>
    static decltype(auto) dispatch(Self &self, index i, Function &&function) {
        using Target = std::conditional_t<std::is_const_v<Self>, const TArray, TArray>;
        const index owned = self.father->size();
        DNDS_CHECK(i >= 0 && i < owned + self.son->size(), IndexError,
                   "'{}': row {} is outside {} owned rows and {} ghosts", self.father->label(), i, owned,
                   self.son->size());
        Target &target = i < owned ? *self.father : *self.son;
        return function(target, i < owned ? i : i - owned);
    }

    /// For graphs, which refer to the pair and not to its arrays.
    Lifetime lifetime_;
};

/// A pair like another one: see the constructor.
template <class TArray>
ArrayPair(const std::string &, const ArrayPair<TArray> &) -> ArrayPair<TArray>;

} // namespace DNDS
