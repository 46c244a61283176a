/// @file SparseTasks.hpp
/// @brief Sparse fields as data of tasks: include it where graphs read and write them.
#pragma once

#include "DNDS/Sparse/SparseField.hpp"
#include "DNDS/Task/Graph.hpp"

#include <concepts>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace DNDS {

/// The blocks of a sparse field as rows of a loop, whose functor is called for the blocks allocated when the loop
/// runs, with the number of the block on this rank and the block's part of each field:
///
///     const auto blocks = blocksOf(dust);
///     exchangeGhosts(step, species);                          // a SparseFields with `dust`
///     step.task("advance", blocks).readsWrites(dust).run([](int, const SparseBlock<real> &u) {
///         advance(std::as_const(u).view(), u.view(1));
///     });
///     swapStages(step, dust, 0, 1);
///
/// The first field that the task names, a sparse one, decides for which blocks the functor is called. Of others it gets
/// a SparseBlock that may be absent; dense fields and arrays are read whole, `reads(whole(wind))`, and passed as a view
/// of the block, or of the array. With threads each takes a block at a time. These loops run on the host; on the device
/// calls `launch` loops over a BlockPack. Local.
Task::RowSpace blocksOf(const SparseFieldCore &field);

/// The exchange of `fields` as two tasks of a graph, which refresh the ghosts of stage 0, allocate and free. Tasks
/// declared between them may read the fields' cells, and do so while messages are in flight; write them before
/// or after. In a plan on the device they wait for all kernels, and exchange the fields where they are, by the
/// program's `toDevice`. `fields` must outlive graph and plans. Local; throw ArgumentError as Graph::call, and
/// finishes for a task since the start that writes the fields.
void startExchangeGhosts(Task::Graph &graph, SparseFields &fields);
void finishExchangeGhosts(Task::Graph &graph, SparseFields &fields);
/// Both, one after the other.
void exchangeGhosts(Task::Graph &graph, SparseFields &fields);

/// `SparseFields::pushGhosts` as two tasks of a graph, or as one after the other. Tasks declared between them may read
/// the fields. As above.
void startPushGhosts(Task::Graph &graph, SparseFields &fields, PushOp op = PushOp::Sum);
void finishPushGhosts(Task::Graph &graph, SparseFields &fields);
void pushGhosts(Task::Graph &graph, SparseFields &fields, PushOp op = PushOp::Sum);

/// `field.swapStages(a, b)` as a task of a graph. Local; runs throw IndexError.
void swapStages(Task::Graph &graph, SparseFieldCore &field, int a, int b);

/// A task's view of one block of a sparse field: the stages of the block. `T` is const where it reads.
template <class T>
class SparseBlock {
    using Field = std::conditional_t<std::is_const_v<T>, const SparseField<std::remove_const_t<T>>, SparseField<T>>;

  public:
    /// Block `local` of this rank. `field` must outlive this.
    SparseBlock(Field &field, int local) : field_(&field), local_(local) {}

    /// Whether the block is allocated.
    bool isAllocated() const { return field_->isAllocated(local_); }
    /// As SparseField::view. Throws StateError if it is absent.
    BlockView<T> view(int stage = 0) const { return field_->view(local_, stage); }
    /// The same for reading.
    BlockView<const T> readView(int stage = 0) const { return std::as_const(*field_).view(local_, stage); }

  private:
    Field *field_;
    int local_;
};

namespace Task {

/// Sparse fields, const or not.
template <class TField>
concept IsSparseField = std::same_as<std::remove_const_t<TField>, SparseField<typename TField::Element>>;

/// A sparse field in a graph: rows without elements, one a block, and no ghosts, as exchanges are calls.
template <IsSparseField TField>
class HandleOf<TField> final : public RowsHandle {
  public:
    /// Refers to the field, which must outlive this.
    explicit HandleOf(TField &field) : RowsHandle(field.rows(), !std::is_const_v<TField>) {}
};

/// A copy of stage 0 of the allocated blocks, for `asyncCall`: a field of its own.
template <IsSparseField TField>
class Snapshot<TField> {
    using Field = std::remove_const_t<TField>;

  public:
    /// Makes the copy equal to `field`: allocates and frees its blocks alike, and copies stage 0. O(cells of allocated
    /// blocks). Throws as SparseField::allocate.
    void take(const Field &field) {
        if (!copy_) {
            SparseFieldOptions options = field.options();
            options.stages = 1;
            copy_.emplace(field.name(), field.pattern(), options, field.defaultValue());
        }
        for (int b = 0; b < field.blocks(); ++b) {
            if (!field.isAllocated(b)) {
                copy_->free(b);
                continue;
            }
            copy_->allocate(b);
            field.copyBlock(b, *copy_);
        }
    }
    /// The copy. Only after `take`.
    const Field &view() const { return *copy_; }

  private:
    std::optional<Field> copy_;
};

/// Calls the functor of a loop for blocks in which the first field is allocated. Allocation is looked up at each run,
/// not when the plan is made: exchanges of the same graph change it.
template <class Kernel, class First, class... Rest>
class SparseLoopBody final : public TaskBody {
  public:
    /// Takes the functor, and arguments that refer to the fields. Throws ArgumentError if one is on other blocks
    /// than the first.
    SparseLoopBody(Kernel kernel, First first, Rest... rest) : kernel_(std::move(kernel)), arguments_(first, rest...) {
        (requireSameBlocks(*first.array, *rest.array), ...);
    }

    void bind(MemorySpace space, std::span<const RowGuard> /*guards*/) override {
        DNDS_CHECK(
            space == MemorySpace::Host, ArgumentError,
            "loops over the blocks of '{}' run on the host: compile for Executor::host(), or launch a loop over a "
            "BlockPack",
            field().name());
    }
    void run(const Executor & /*executor*/, const PartRows &rows, index begin, index end) const override {
        for (index i = begin; i < end; ++i) {
            const int block = static_cast<int>(rows(i));
            if (field().isAllocated(block))
                std::apply([&](const auto &...arguments) { kernel_(block, ofBlock(arguments, block)...); }, arguments_);
        }
    }
    /// Blocks are large: threads take them one by one.
    index rowsPerChunk() const override { return 1; }

  private:
    const auto &field() const { return std::as_const(*std::get<0>(arguments_).array); }
    /// Throws unless block numbers of `other` mean the same blocks.
    template <class Other>
    static void requireSameBlocks(const typename First::Array &field, const Other &other) {
        bool same = true;
        if constexpr (IsSparseField<Other>)
            same = other.pattern() == field.pattern();
        else if constexpr (requires { other.blockPattern(); })
            same = field.grid() != nullptr && other.grid()->signature() == field.grid()->signature();
        DNDS_CHECK(
            same, ArgumentError,
            "a task over the blocks of '{}' names a field on other blocks: sparse fields must be on its pattern, "
            "dense ones on its grid",
            field.name());
    }
    /// The functor's argument for an array: its part in the block, or all of it.
    template <class AnyArgument>
    static typename AnyArgument::View ofBlock(const AnyArgument &argument, int block) {
        if constexpr (requires { argument.template blockView<DeviceBackend::Host>(block); })
            return argument.template blockView<DeviceBackend::Host>(block);
        else
            return argument.template view<DeviceBackend::Host>(nullptr);
    }

    Kernel kernel_;
    std::tuple<First, Rest...> arguments_;
};

template <IsSparseField TField, AccessMode does>
struct TaskArgument<TField, does> {
    static_assert(does != AccessMode::Adds,
                  "tasks over sparse fields write the block that they are at: adds is for meshes");
    using Array = TField;
    static constexpr AccessMode mode = does;
    static constexpr bool adds = false;
    using Element =
        std::conditional_t<mode == AccessMode::Reads, const typename TField::Element, typename TField::Element>;
    using View = SparseBlock<Element>;
    using LoopRow = int;
    template <class Kernel, class... Arguments>
    using Loop = SparseLoopBody<Kernel, Arguments...>;
    /// Calls get the field itself.
    using CallView = std::conditional_t<mode == AccessMode::Reads, const TField &, TField &>;
    TField *array;

    /// Argument of a loop's functor: block `block` of this rank, which may be absent.
    template <DeviceBackend backend>
    View blockView(int block) const {
        static_assert(backend == DeviceBackend::Host);
        return {*array, block};
    }
    /// Argument of a call's functor: the field.
    CallView callView() const { return *array; }
};

} // namespace Task

} // namespace DNDS
