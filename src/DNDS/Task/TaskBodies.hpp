/// @file TaskBodies.hpp
/// @brief Type erasure: from arrays and functors with types to the bodies and handles of a graph.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Task/GraphModel.hpp"

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace DNDS::Task {

/// Arrays with ghosts.
template <class TArray>
concept IsPair = requires(TArray &array) {
    array.father;
    array.son;
    array.trans;
};

/// Access of reductions to an array.
/// Specialised for arrays of other kinds, such as fields on blocks.
template <class TArray>
struct ReducedOf {
    /// The array with the owned rows, and the numbers in each of its rows.
    static const auto &father(const TArray &array) {
        if constexpr (IsPair<TArray>)
            return *array.father;
        else
            return array;
    }
    static rowsize columns(const TArray &array) { return father(array).rowSize(); }
    /// The owned rows of `rows` (null: all of them), or null for all rows of the father.
    static std::shared_ptr<const ReducedLists> lists(const TArray & /*array*/, const RowMask *rows) {
        return rows == nullptr ? nullptr : std::make_shared<const ReducedLists>(ReducedLists{rows->list()});
    }
};

/// Handles of arrays without ghosts.
/// Specialised for pairs, values, fields on blocks and sparse fields.
template <class TArray>
class HandleOf final : public RowsHandle {
  public:
    /// Refers to the array, which must outlive this.
    explicit HandleOf(TArray &array) : RowsHandle(array, !std::is_const_v<TArray>) {}
};

/// Handles of arrays with ghosts.
template <IsPair TArray>
class HandleOf<TArray> final : public ArrayHandle {
    using Mutable = std::remove_const_t<TArray>;

  public:
    /// Refers to the pair, which must outlive this.
    explicit HandleOf(TArray &pair) : pair_(&pair), name_(pair.father->label()), lifetime_(pair.lifetime()) {}

    std::string_view name() const override { return name_; }
    bool alive() const override { return !lifetime_.expired(); }
    const ArrayBase &father() const override { return *pair_->father; }
    const ArrayBase *son() const override { return pair_->son.get(); }
    std::shared_ptr<const ExchangePattern> pattern() const override { return pair_->trans.pattern(); }
    ExchangeMember member() const override { return pair_->trans.member(); }
    bool writable() const override { return !std::is_const_v<TArray>; }
    // Copies between host and device change no contents.
    void toDevice() override { const_cast<Mutable *>(pair_)->toDevice(); } // NOLINT
    void toHost() override { const_cast<Mutable *>(pair_)->toHost(); }     // NOLINT
    void markWritten() override { pair_->father->markWritten(); }
    void setPulledFrom(std::uint64_t version, std::uint64_t finishedBy) override {
        pair_->son->setPulledFrom(version, finishedBy);
    }

  private:
    TArray *pair_;
    std::string name_; ///< for messages even after the end of the pair
    std::weak_ptr<const void> lifetime_;
};

/// An array and a task's access to it, as a type.
template <class TArray, AccessMode does>
struct TaskArgument {
    using Array = TArray;
    static constexpr AccessMode mode = does;
    using View = std::conditional_t<mode == AccessMode::Reads, ReadRows<TArray>,
                                    std::conditional_t<mode == AccessMode::Adds, AddRows<TArray>, WriteRows<TArray>>>;
    static constexpr bool adds = mode == AccessMode::Adds;
    /// Argument of the functors of calls.
    using CallView = View;
    TArray *array;

    /// Argument of a call's functor: the rows on the host, all of which it may use. Throws StaleError.
    CallView callView() const { return view<DeviceBackend::Host>(nullptr); }
    /// Argument of a loop's functor: the rows in the memory of `backend`. `guard` is as for Rows. Throws StaleError.
    template <DeviceBackend backend>
    View view(const RowGuard *guard) const {
        // Ghosts are not checked by the pair: the plan knows which ones are current.
        const auto viewOf = [](auto &rows) {
            if constexpr (mode == AccessMode::Reads)
                return std::as_const(rows).template deviceView<backend>();
            else
                return rows.template deviceView<backend>();
        };
        if constexpr (IsPair<TArray>)
            return {ArrayPairView(viewOf(*array->father), viewOf(*array->son)), guard};
        else
            return {viewOf(*array), guard};
    }
};

/// A copy of a task's input, in memory of its own.
/// Memory is kept from one copy to the next.
template <class TArray>
class Snapshot {
    using Rows = std::remove_cvref_t<decltype(ReducedOf<TArray>::father(std::declval<const TArray &>()))>;

  public:
    /// Copies the array, with its ghosts if it has some. O(array).
    void take(const TArray &array) {
        if constexpr (IsPair<TArray>) {
            father_ = *array.father;
            son_ = *array.son;
        } else {
            father_ = array;
        }
    }
    /// The copy, on the host. Only after `take`.
    ReadRows<TArray> view() const {
        if constexpr (IsPair<TArray>)
            return {ArrayPairView(std::as_const(*father_).view(), std::as_const(*son_).view()), nullptr};
        else
            return {std::as_const(*father_).view(), nullptr};
    }

  private:
    std::optional<Rows> father_, son_;
};

inline namespace DNDS_DEVICE_COMPILATION {

/// Views by value, trivially copyable if each view is (a std::tuple never is).
/// A recursive list: `call` peels off one view after another and passes all of them to the functor, in the order of
/// declaration.
template <class... Views>
struct KernelTuple {
    /// At the end of the list, `call` calls the functor with the row and all views before; the others do nothing.
    template <class Kernel, class Row, class... Before>
    DNDS_HOST_DEVICE void call(const Kernel &kernel, const Row &row, const Before &...before) const {
        kernel(row, before...);
    }
    void at(index /*row*/) {}
    DNDS_HOST_DEVICE void narrow(index /*first*/, index /*last*/) {}
    bool allOwned(index /*last*/) const { return true; }
    void assumeOwned(index /*row*/) const {}
};
template <class First, class... Rest>
struct KernelTuple<First, Rest...> {
    First first{};
    KernelTuple<Rest...> rest{};

    /// Calls `kernel(row, views...)`.
    template <class Kernel, class Row, class... Before>
    DNDS_HOST_DEVICE void call(const Kernel &kernel, const Row &row, const Before &...before) const {
        rest.call(kernel, row, before..., first);
    }
    /// Whether no row up to `last` is a ghost of a written array, where that row is the row of the loop.
    bool allOwned(index last) const {
        if constexpr (requires { first.isGhost(last); })
            return !first.isGhost(last) && rest.allOwned(last);
        else
            return rest.allOwned(last);
    }
    /// Lets the compiler drop the choice between owned rows and ghosts.
    void assumeOwned(index row) const {
        if constexpr (requires { first.isGhost(row); })
            if (first.isGhost(row))
                __builtin_unreachable();
        rest.assumeOwned(row);
    }
    /// Passes the row that the task is at to views that need it; the rows [begin, end) whose sums are computed.
    void at(index row) {
        if constexpr (requires { first.at(row); })
            first.at(row);
        rest.at(row);
    }
    DNDS_HOST_DEVICE void narrow(index begin, index end) {
        if constexpr (requires { first.narrow(begin, end); })
            first.narrow(begin, end);
        rest.narrow(begin, end);
    }
};

/// A task's functor over rows as a kernel.
template <class Kernel, class Views>
struct KernelOfRows {
    PartRows rows;
    Kernel kernel;
    Views views;
    /// Calls the functor for row `i` of the part.
    DNDS_HOST_DEVICE void operator()(index i) const { views.call(kernel, rows(i)); }
};

/// The same of functors that add.
/// One device thread a target. It gathers, so there are no conflicts between threads, and the order of additions is
/// that of the host.
/// Work: one call of the functor for each pair of a target and a row that adds to it.
template <class Kernel, class Views>
struct KernelOfSums {
    Contributions sums;
    Kernel kernel;
    Views views;
    /// Computes the sums of target `i`: calls the functor for each row that adds to it.
    DNDS_HOST_DEVICE void operator()(index i) const {
        Views mine = views;
        mine.narrow(sums.targets[i], sums.targets[i] + 1);
        for (LocalIndex k = sums.starts[i]; k < sums.starts[i + 1]; ++k)
            mine.call(kernel, sums.rows[k]);
    }
};

/// Runs a kernel of `count` rows on the device. Throws ArgumentError if it cannot be copied there.
template <class OfRows>
void launch(const Executor &executor, index count, const OfRows &kernel) {
    if constexpr (std::is_trivially_copyable_v<OfRows>)
        parallelFor(executor, count, kernel);
    else
        throw ArgumentError("the functor of a task on the device must be trivially copyable: views and numbers, no "
                            "arrays");
}

/// A loop's functor with its views.
/// On the host the loop is compiled with functor and views inlined: one virtual call a chunk, none a row.
template <class Kernel, class... Arguments>
class LoopBody final : public TaskBody {
    using Views = KernelTuple<typename Arguments::View...>;
    static constexpr bool adds = (Arguments::adds || ...);
    static constexpr bool prefetches = requires(const Kernel &kernel, const typename Arguments::View &...views) {
        kernel.prefetch(index{}, views...);
    };

  public:
    /// Takes the functor, and arguments that refer to the arrays. Call `bind` before it runs.
    LoopBody(Kernel kernel, Arguments... arguments) : kernel_(std::move(kernel)), arguments_(arguments...) {}

    void bind(MemorySpace space, std::span<const RowGuard> guards) override {
        if (space == MemorySpace::Host)
            take<DeviceBackend::Host>(guards, std::index_sequence_for<Arguments...>{});
        else
            take<DeviceBackend::CUDA>({}, std::index_sequence_for<Arguments...>{});
    }
    // Rows ascend and owned rows come first, so the last row of the chunk tells whether it has ghosts.
    void run([[maybe_unused]] const Executor &executor, const PartRows &rows, index begin, index end) const override {
        if constexpr (!adds) // sums on the device are computed by `runAdding`
            if (executor.onDevice())
                return launch(executor, end - begin, KernelOfRows<Kernel, Views>{rows.from(begin), kernel_, views_});
        if (begin < end && views_.allOwned(rows(end - 1)))
            loop<true>(rows, begin, end);
        else
            loop<false>(rows, begin, end);
    }
    void runAdding([[maybe_unused]] const PartRows &rows, [[maybe_unused]] index first,
                   [[maybe_unused]] index last) const override {
        if constexpr (adds) {
            Views mine = views_;
            mine.narrow(first, last);
            for (index i = 0; i < rows.count; ++i)
                mine.call(kernel_, rows(i));
        }
    }
    void runAdding([[maybe_unused]] const Executor &executor,
                   [[maybe_unused]] const Contributions &sums) const override {
        if constexpr (adds)
            launch(executor, sums.count, KernelOfSums<Kernel, Views>{sums, kernel_, views_});
    }

  private:
    /// The loop itself. `owned`: no row of [begin, end) is a ghost, so the compiler may drop the branch between owned
    /// rows and ghosts in views of pairs.
    template <bool owned>
    [[gnu::flatten]] void loop(const PartRows &rows, index begin, index end) const {
        for (index i = begin; i < end; ++i) {
            const index row = rows(i);
            if constexpr (prefetches)
                if (constexpr index lead = 16; i + lead < end)
                    views_.call([this](const auto &...arguments) { kernel_.prefetch(arguments...); }, rows(i + lead));
            if constexpr (owned)
                views_.assumeOwned(row);
#if defined(DNDS_DEBUG_CHECKS)
            Views mine = views_;
            mine.at(row);
            mine.call(kernel_, row);
#else
            views_.call(kernel_, row);
#endif
        }
    }
    /// Takes one view of each argument, each with its guard, if there are guards.
    template <DeviceBackend backend, std::size_t... k>
    void take(std::span<const RowGuard> guards, std::index_sequence<k...> /*arguments*/) {
        views_ = {std::get<k>(arguments_).template view<backend>(guards.empty() ? nullptr : &guards[k])...};
    }

    Kernel kernel_;
    std::tuple<Arguments...> arguments_;
    Views views_{};
};

/// Body of a loop over the rows of the arrays in `Arguments`: arrays of other kinds than rows name their own.
template <class Kernel, class... Arguments>
struct LoopOf {
    using Row = index;
    using Body = LoopBody<Kernel, Arguments...>;
};
template <class Kernel, class First, class... Rest>
requires requires { typename First::LoopRow; }
struct LoopOf<Kernel, First, Rest...> {
    using Row = typename First::LoopRow;
    using Body = typename First::template Loop<Kernel, First, Rest...>;
};

} // namespace DNDS_DEVICE_COMPILATION

} // namespace DNDS::Task
