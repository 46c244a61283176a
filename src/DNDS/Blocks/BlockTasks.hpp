/// @file BlockTasks.hpp
/// @brief Fields on blocks as data of tasks: include it where graphs read and write them.
#pragma once

#include "DNDS/Blocks/BlockBoundary.hpp"
#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Blocks/BlockRows.hpp"
#include "DNDS/Task/Graph.hpp"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

namespace DNDS {

/// The cells and ghosts of `field` within `widths` of the task's cell: `stencil(u, {1, 1})`, or without corners
/// `stencil(u, GhostWidths{1, 1}.star())`. Local. Throws ArgumentError if the field has fewer ghosts.
template <class TField>
Task::RowSelection<TField> stencil(TField &field, const GhostWidths &widths) {
    return {&field, Task::AccessRange::Through, BlockRows::stencil(field.blockPattern(), widths)};
}

namespace Task {

/// Fields on blocks, const or not.
template <class TField>
concept IsBlockField = std::same_as<std::remove_const_t<TField>, BlockField<typename TField::Element>>;

/// The argument of call functors: views of this rank's blocks. Valid for the call; owns no memory of the field.
template <class T>
class BlockViews {
  public:
    /// Views of all blocks of `field`, whose elements on this rank begin at `memory`.
    template <class TField, class Memory>
    BlockViews(const TField &field, Memory *memory) {
        for (int block = 0; block < field.blocks(); ++block) {
            blocks_.push_back(field.block(block));
            views_.push_back(field.viewOf(memory, blocks_.back()));
        }
    }
    /// The number of this rank's blocks, which `local` counts from 0.
    int blocks() const { return static_cast<int>(views_.size()); }
    /// The block's number in the grid, its cells and its place in memory.
    const BlockMemory &block(int local) const { return blocks_.at(toSize(local)); }
    const BlockView<T> &view(int local) const { return views_.at(toSize(local)); }

  private:
    std::vector<BlockMemory> blocks_;
    std::vector<BlockView<T>> views_;
};

/// A copy of a field, ghosts included: asynchronous calls read it while the field is written. Keeps its allocation.
template <IsBlockField TField>
class Snapshot<TField> {
    using Element = typename TField::Element;

  public:
    /// Copies the elements of cells and ghosts from the host. `field` must outlive this. O(rows). Throws StaleError
    /// where the host is not current.
    void take(const TField &field) {
        const auto rows = field.array().view();
        copy_.assign(rows.data(), rows.data() + toSize(field.array().size() * field.array().rowSize()));
        field_ = &field;
    }
    /// The copy. Only after `take`.
    BlockViews<const Element> view() const { return {*field_, copy_.data()}; }

  private:
    std::vector<Element> copy_;
    const TField *field_ = nullptr; ///< for properties that do not change
};

/// The components of cells, inside or outside.
template <IsBlockField TField>
struct ReducedOf<TField> {
    /// The array with the components, and their number in a cell.
    static const auto &father(const TField &field) { return field.array(); }
    static rowsize columns(const TField &field) { return field.components(); }
    /// The rows of `cells`, or of all cells (null): one list, or one for each component if components are outside.
    static std::shared_ptr<const ReducedLists> lists(const TField &field, const RowMask *cells) {
        return std::make_shared<const ReducedLists>(BlockRows::rowsOfComponents(*field.blockPattern(), cells));
    }
};

/// Lets graphs treat a field as an array with ghosts. Cells and ghosts are rows of one array, which serves as father
/// and as son.
template <IsBlockField TField>
class HandleOf<TField> final : public RowsHandle {
  public:
    /// Refers to the field, which must outlive this.
    explicit HandleOf(TField &field)
        : RowsHandle(std::as_const(field).array(), !std::is_const_v<TField>),
          field_(const_cast<std::remove_const_t<TField> *>(&field)) {} // NOLINT: pulls change no contents of cells

    const ArrayBase *son() const override { return &father(); }
    std::shared_ptr<const ExchangePattern> pattern() const override { return field_->pattern(); }
    ExchangeMember member() const override { return field_->member(); }
    void toDevice() override { field_->toDevice(); }
    void toHost() override { field_->toHost(); }
    void setPulledFrom(std::uint64_t version, std::uint64_t finishedBy) override {
        field_->array().setPulledFrom(version, finishedBy);
    }

  private:
    std::remove_const_t<TField> *field_;
};

/// Adds a call that starts a push of the field of `array`, or without `op` one that finishes the latest such push. It
/// accesses owned rows only, because a pull would overwrite the deposits in ghosts. Local. Throws as GraphModel::add.
void addPush(GraphModel &graph, BlockFieldCore &field, const std::shared_ptr<ArrayHandle> &array,
             std::optional<PushOp> op);

inline namespace DNDS_DEVICE_COMPILATION {

/// A task's functor over cells of blocks as a kernel. O(log blocks) per cell to find the block.
template <class Kernel, class Views>
struct KernelOfBlocks {
    PartRows rows;
    Kernel kernel;
    const BlockPlace *places; ///< [blocks], in the memory of the kernel, as are views
    const Views *views;       ///< [blocks]
    int blocks;
    /// Calls the functor for cell `i` of the part.
    DNDS_HOST_DEVICE void operator()(index i) const {
        const index row = rows(i);
        const int block = blockOfRow(places, blocks, row);
        views[block].call(kernel, places[block].cellOf(row));
    }
};

/// Fills the ghosts of a field that have rules, after each pull of the field.
template <class T, class TFunction>
class BoundaryBody final : public TaskBody {
  public:
    /// Refers to both, which must outlive this.
    BoundaryBody(BlockField<T> &field, const BlockBoundary<T, TFunction> &boundary)
        : field_(&field), boundary_(&boundary) {
        if (Device::available()) // before work is captured
            boundary.timeIn(MemorySpace::Device);
    }
    void bind(MemorySpace /*space*/, std::span<const RowGuard> /*guards*/) override {}
    void run(const Executor &executor, const PartRows & /*rows*/, index /*begin*/, index /*end*/) const override {
        fillGhosts(*field_, *boundary_, executor);
    }
    /// A new time is another mark, so that ghosts filled for the time before are pulled and filled again.
    std::uint64_t inputs() const override {
        return std::bit_cast<std::uint64_t>(*boundary_->timeIn(MemorySpace::Host));
    }
    /// Whether it is of this boundary.
    bool fills(const BlockBoundary<T, TFunction> &boundary) const noexcept { return boundary_ == &boundary; }

  private:
    BlockField<T> *field_;
    const BlockBoundary<T, TFunction> *boundary_;
};

/// A loop's functor with its views, block by block: LoopBody for blocks. `bind` takes new views before each run, since
/// fields may have been swapped or moved to another memory.
/// `bind` costs O(blocks x arguments) and, on the device, a copy of the tables if any address is new.
template <class Kernel, class... Arguments>
class BlockLoopBody final : public TaskBody {
    using Views = KernelTuple<typename Arguments::View...>;
    static_assert(((IsBlockField<typename Arguments::Array> || IsValue<typename Arguments::Array>)&&...),
                  "a task over the cells of blocks reads and writes fields on blocks, and reads Values");

  public:
    /// Takes the functor, and arguments that refer to the fields. Call `bind` before it runs.
    BlockLoopBody(Kernel kernel, Arguments... arguments) : kernel_(std::move(kernel)), arguments_(arguments...) {}

    void bind(MemorySpace space, std::span<const RowGuard> /*guards*/) override {
        places_ = BlockRows::placesOf(*std::get<0>(arguments_).array->blockPattern());
        if (space == MemorySpace::Host)
            return take<DeviceBackend::Host>(std::index_sequence_for<Arguments...>{});
        take<DeviceBackend::CUDA>(std::index_sequence_for<Arguments...>{});
        placesThere_ = placeTables_.get(space, {}, [&] { return places_; }).data(space);
        viewsThere_ = viewTables_.get(space, cells_, [&] { return views_; }).data(space);
    }
    void run(const Executor &executor, const PartRows &rows, index begin, index end) const override {
        if (executor.onDevice())
            launch(executor, end - begin,
                   KernelOfBlocks<Kernel, Views>{rows.from(begin), kernel_, placesThere_, viewsThere_,
                                                 static_cast<int>(places_.size())});
        else if (begin < end)
            loop(rows, begin, end);
    }

  private:
    /// Rows adjacent in memory and in a block are cells along the last dimension: the block is found and the indices
    /// are computed once per line, by division, and then counted up. Works for any list of rows.
    [[gnu::flatten]] void loop(const PartRows &rows, index begin, index end) const {
        const int count = static_cast<int>(places_.size());
        for (index i = begin; i < end;) {
            const index row = rows(i);
            const int block = blockOfRow(places_.data(), count, row);
            const BlockPlace &place = places_[toSize(block)];
            BlockCell cell = place.cellOf(row);
            const int last = place.dims - 1;
            const index most = std::min(end - i, place.inner[last] - cell.at[last]);
            index length = 1;
            while (length < most && rows(i + length) == row + length)
                ++length;
            const Views &views = views_[toSize(block)];
            for (const index stop = cell.at[last] + length; cell.at[last] < stop; ++cell.at[last])
                views.call(kernel_, cell);
            i += length;
        }
    }
    /// Takes views of all arguments on all blocks, and their addresses: on the device, tables are copied again only if
    /// an address is new.
    template <DeviceBackend backend, std::size_t... k>
    void take(std::index_sequence<k...> /*arguments*/) {
        views_.clear();
        cells_.clear();
        for (int block = 0; block < static_cast<int>(places_.size()); ++block) {
            const auto views = std::tuple{std::get<k>(arguments_).template blockView<backend>(block)...};
            views_.push_back({std::get<k>(views)...});
            (cells_.push_back(reinterpret_cast<std::uintptr_t>(std::get<k>(views).data())), ...);
        }
    }
    Kernel kernel_;
    std::tuple<Arguments...> arguments_;
    std::vector<BlockPlace> places_;   ///< [blocks], of the first argument's pattern
    std::vector<Views> views_;         ///< [blocks]
    std::vector<std::uint64_t> cells_; ///< addresses of all views' cells, in order
    KernelTables<BlockPlace> placeTables_;
    KernelTables<Views> viewTables_;
    const BlockPlace *placesThere_ = nullptr; ///< on the device, for the current run
    const Views *viewsThere_ = nullptr;
};

} // namespace DNDS_DEVICE_COMPILATION

/// A field as an argument of a task: `does` decides between const and mutable views. `array` must outlive the graph.
template <IsBlockField TField, AccessMode does>
struct TaskArgument<TField, does> {
    static_assert(does != AccessMode::Adds, "tasks over blocks write the cell that they are at: adds is for meshes");
    using Array = TField;
    static constexpr AccessMode mode = does;
    static constexpr bool adds = false;
    using Element =
        std::conditional_t<mode == AccessMode::Reads, const typename TField::Element, typename TField::Element>;
    using View = BlockView<Element>;
    using LoopRow = BlockCell;
    template <class Kernel, class... Arguments>
    using Loop = BlockLoopBody<Kernel, Arguments...>;
    using CallView = BlockViews<Element>;
    TField *array;

    /// Argument of a loop's functor: block `block` of this rank in the memory of `backend`. Throws as
    /// BlockField::deviceView.
    template <DeviceBackend backend>
    View blockView(int block) const {
        if constexpr (mode == AccessMode::Reads)
            return std::as_const(*array).template deviceView<backend>(block);
        else
            return array->template deviceView<backend>(block);
    }
    /// The argument of a call's functor: all blocks of this rank, on the host. Throws StaleError.
    CallView callView() const {
        if constexpr (mode == AccessMode::Reads)
            return {*array, std::as_const(*array).array().view().data()};
        else
            return {*array, array->array().view().data()};
    }
};

} // namespace Task

/// `BlockField::pushGhosts` as two tasks of a graph, or as one after the other: adds what a call has deposited into
/// ghosts, which it declares with `Task::owned`, so that no exchange refreshes them first.
///
///     step.call("deposit").readsWrites(Task::owned(charge)).run([&](const Task::BlockViews<real> &all) { ... });
///     pushGhosts(step, charge);
///     step.task("field", cells.cells()).reads(stencil(charge, {1, 1})).writes(e).run(...);   // exchanges ghosts
///
/// Tasks declared between start and finish may read the field's cells. In a plan on the device they wait for all
/// kernels. The first run sets the push up. Local; throw ArgumentError as Graph::call.
template <class T>
void startPushGhosts(Task::Graph &graph, BlockField<T> &field, PushOp op = PushOp::Sum) {
    Task::addPush(graph.model(), field, std::make_shared<Task::HandleOf<BlockField<T>>>(field), op);
}
template <class T>
void finishPushGhosts(Task::Graph &graph, BlockField<T> &field) {
    Task::addPush(graph.model(), field, std::make_shared<Task::HandleOf<BlockField<T>>>(field), {});
}
template <class T>
void pushGhosts(Task::Graph &graph, BlockField<T> &field, PushOp op = PushOp::Sum) {
    startPushGhosts(graph, field, op);
    finishPushGhosts(graph, field);
}

inline namespace DNDS_DEVICE_COMPILATION {

/// `stencil` if ghosts beyond the ends of index spaces are filled by rules, after each exchange that plans of `graph`
/// make: `stencil(step, u, {1, 1}, boundary)`. Tasks that also read `field` by the other `stencil` find these ghosts
/// filled by the latest exchange. Rules are those of the graph's first run; `boundary.setTime` is for each run.
/// `boundary` must outlive graph and plans. Local. Throws ArgumentError also for a boundary of another pattern, and if
/// the graph fills the field's ghosts by another one.
template <class T, class TFunction>
Task::RowSelection<BlockField<T>> stencil(Task::Graph &graph, BlockField<T> &field, const GhostWidths &widths,
                                          const BlockBoundary<T, TFunction> &boundary) {
    using Body = Task::BoundaryBody<T, TFunction>;
    boundary.requireFits(field);
    Task::GraphModel &model = graph.model();
    const std::size_t array = model.add(std::make_shared<Task::HandleOf<BlockField<T>>>(field));
    const auto known = std::ranges::find(model.finishes, array, &Task::PullFinish::array);
    if (known == model.finishes.end()) {
        model.add(Task::PullFinish{array, BlockRows::boundaryGhosts(field.blockPattern()),
                                   std::make_shared<Body>(field, boundary), true});
    } else {
        const auto *body = dynamic_cast<const Body *>(known->body.get());
        DNDS_CHECK(body != nullptr && body->fills(boundary), ArgumentError,
                   "the ghosts of '{}' are filled by two boundaries in graph '{}': use one", field.name(),
                   graph.name());
    }
    return {&field, Task::AccessRange::Through, BlockRows::stencil(field.blockPattern(), widths, true)};
}

} // namespace DNDS_DEVICE_COMPILATION

} // namespace DNDS
