/// @file SparseField.hpp
/// @brief Fields that have the default value in most blocks: only the other blocks have memory. And the operations that
/// depend on their element type: compare with the default, and fill.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Blocks/BlockView.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Sparse/SparseFields.hpp"
#include "DNDS/Sparse/SparsePattern.hpp"
#include "DNDS/Storage/Array.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace DNDS {

/// The default value of a field, and comparisons of elements with it: one virtual call a rim, so that exchanges are no
/// templates. Immutable.
class SparseElements {
  public:
    SparseElements() = default;
    SparseElements(const SparseElements &) = delete;
    SparseElements &operator=(const SparseElements &) = delete;
    virtual ~SparseElements() = default;

    /// The first of `count` elements that is above the threshold: not (|value - default| <= threshold), so that NaN is
    /// above. At threshold 0 any bits other than the default's are above. `count` if none is. O(count).
    virtual std::size_t firstAbove(const std::byte *from, std::size_t count, real threshold) const noexcept = 0;
    /// Sets `count` elements to the default.
    virtual void fill(std::byte *to, std::size_t count) const noexcept = 0;
    /// Size and type of an element.
    virtual std::size_t bytes() const noexcept = 0;
    virtual ElementKind kind() const noexcept = 0;
    /// Bits of the default, in the lowest bytes.
    virtual std::uint64_t bits() const noexcept = 0;
    /// Type and default, for comparison between ranks; to the bit.
    virtual std::string describe() const = 0;
    /// Whether the default is neither infinite nor NaN.
    virtual bool finiteDefault() const noexcept = 0;
    /// Whether the default changes no value under `op`: 0 for sums, the largest value for minima, infinity if there is
    /// one, and the lowest one for maxima.
    virtual bool isIdentity(PushOp op) const noexcept = 0;
};

/// The same for elements of type `T`.
template <class T>
class SparseElementsOf final : public SparseElements {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8,
                  "sparse fields are of numbers");
    using Bits =
        std::conditional_t<sizeof(T) == 8, std::uint64_t,
                           std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                              std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

  public:
    /// `value` is the default.
    explicit SparseElementsOf(T value) : value_(value) {}

    std::size_t firstAbove(const std::byte *from, std::size_t count, real threshold) const noexcept override {
        const T *values = reinterpret_cast<const T *>(from);
        if (threshold == 0)
            return first(values, count, [wanted = std::bit_cast<Bits>(value_)](T value) {
                return std::bit_cast<Bits>(value) != wanted;
            });
        if constexpr (std::is_integral_v<T>)
            return firstFarther(values, count, threshold);
        else
            return first(values, count, [wanted = static_cast<real>(value_), threshold](T value) {
                return !(std::fabs(static_cast<real>(value) - wanted) <= threshold);
            });
    }
    void fill(std::byte *to, std::size_t count) const noexcept override {
        std::fill_n(reinterpret_cast<T *>(to), count, value_);
    }
    std::size_t bytes() const noexcept override { return sizeof(T); }
    ElementKind kind() const noexcept override { return elementKindOf<T>(); }
    std::uint64_t bits() const noexcept override { return std::bit_cast<Bits>(value_); }
    std::string describe() const override {
        return fmt::format("{} {} ({:x})", elementKindName(elementKindOf<T>()), +value_, std::bit_cast<Bits>(value_));
    }
    bool finiteDefault() const noexcept override { return std::isfinite(static_cast<real>(value_)); }
    bool isIdentity(PushOp op) const noexcept override {
        using Limits = std::numeric_limits<T>;
        constexpr T largest = Limits::has_infinity ? Limits::infinity() : Limits::max();
        constexpr T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        return (op == PushOp::Sum && value_ == T{}) || (op == PushOp::Min && value_ == largest) ||
               (op == PushOp::Max && value_ == lowest);
    }
    /// The default.
    T value() const noexcept { return value_; }

  private:
    /// For integers: exact even if a `real` cannot hold all their digits. The unsigned difference of the larger and the
    /// smaller is right modulo 2^64, hence always.
    std::size_t firstFarther(const T *values, std::size_t count, real threshold) const noexcept {
        constexpr real beyondAll = 18446744073709551616.0; // 2^64
        if (threshold >= beyondAll)
            return count;
        return first(values, count, [wanted = value_, most = static_cast<std::uint64_t>(threshold)](T value) {
            const T larger = std::max(value, wanted);
            const T smaller = std::min(value, wanted);
            return static_cast<std::uint64_t>(larger) - static_cast<std::uint64_t>(smaller) > most;
        });
    }
    /// In chunks of 64 without an exit inside, which compilers vectorise; the last chunk is searched one by one.
    template <class IsAbove>
    static std::size_t first(const T *values, std::size_t count, IsAbove isAbove) noexcept {
        constexpr std::size_t chunk = 64;
        std::size_t i = 0;
        for (; i + chunk <= count; i += chunk) {
            bool above = false;
            for (std::size_t k = 0; k < chunk; ++k)
                above |= isAbove(values[i + k]);
            if (above)
                break;
        }
        while (i < count && !isAbove(values[i]))
            ++i;
        return i;
    }

    T value_;
};

class SparseFields;
struct SparseFieldState;

/// Options of a sparse field besides its name and default value. The same on all ranks.
struct SparseFieldOptions {
    rowsize components = 1; ///< components of a cell, contiguous
    /// Copies of the field that are allocated together: old and new state, or the stages of a Runge-Kutta step.
    /// Exchanges fill the ghosts of stage 0; see `swapStages`.
    int stages = 1;
    /// A neighbour's block is allocated when a value at the rim differs from the default by more than this.
    real allocationThreshold = 0;
    /// A block counts as empty while no value of its stage 0, including ghosts that stand for cells, differs from the
    /// default by more than this. At most the allocation threshold.
    real deallocationThreshold = 0;
    /// A block is freed when it was empty in this number of consecutive exchanges. 0: never.
    int deallocationCount = 5;
    /// Rims below the threshold are sent, too: they fill ghosts of allocated blocks, and allocate none.
    /// Otherwise, ghosts get the default there, and a stencil loses their contribution.
    bool sendBelowThreshold = true;
};

/// The blocks of one sparse field and their allocation: the base of `SparseField`, compiled once for all types;
/// move-only. A rank knows the allocation of its own blocks only; neighbours learn of it from the bits in messages. All
/// functions throw StateError for a field that was moved from.
class SparseFieldCore {
  public:
    /// As given to the constructor: name, pattern, its grid, options, and numbers per cell. Local.
    const std::string &name() const;
    const std::shared_ptr<const SparsePattern> &pattern() const;
    const std::shared_ptr<const BlockGrid> &grid() const { return pattern()->grid(); }
    const SparseFieldOptions &options() const;
    rowsize components() const { return options().components; }

    /// The number of blocks on this rank, allocated or not.
    int blocks() const { return static_cast<int>(pattern()->blocks().size()); }
    /// The number in the grid of the rank's block `local`, and its cells. Throws IndexError if it does not exist.
    const BlockMemory &block(int local) const;

    /// Whether the rank's block `local` has memory. O(1). Throws IndexError if the block does not exist.
    bool isAllocated(int local) const;
    /// The rank's blocks that have memory, ascending. Local.
    std::vector<int> allocatedBlocks() const;
    /// Allocates the block's memory: cells and ghosts of all stages at the default value. True if it had none before.
    /// Local. Throws MemoryError at the pool's limit; StateError during an exchange; IndexError.
    bool allocate(int local);
    /// Frees its memory with its contents. True if it had any. Local. Throws as above.
    bool free(int local);
    /// A number that no two states of allocation in the process share: it changes when blocks are allocated, freed or
    /// moved, and the field is moved to other ranks. Equal numbers: views of the same `place` are still valid. O(1).
    std::uint64_t generation() const;
    /// The place of a stage in the blocks' memory; swaps exchange places. O(1). Throws IndexError.
    int place(int stage) const;
    /// The number of consecutive exchanges in which the block was empty; 0 for absent ones. Local.
    int emptyExchanges(int local) const;
    /// For restarts: sets that number. Local. Throws StateError for an absent block.
    void setEmptyExchanges(int local, int count);

    /// Moves all blocks to the device, or back, and waits. Exchanges then pack, compare and unpack there, in one kernel
    /// for all channels, with the same decisions. Views of the other side throw StaleError. Local,
    /// O(blocks). Throws StateError during an exchange; NotBuiltError, MemoryError.
    void toDevice();
    void toHost();
    MemorySpace space() const;

    /// Keeps the memory of an allocated block for as long as the result lives, even if the block is freed: for views in
    /// languages that count owners. Local. Throws StateError for an absent block.
    std::shared_ptr<const void> keep(int local) const;

    /// Exchanges two stages of all blocks: old and new. Local, O(1); all ranks call it alike: the next exchange throws
    /// StateError between ranks whose stages 0 differ. Throws IndexError; StateError during an exchange.
    void swapStages(int a, int b);

    /// Refreshes the ghosts of stage 0, allocates blocks and frees them, as `SparseFields` for this field alone.
    /// Collective the first time, then between peers. Throws as there.
    void exchangeGhosts(Device::StreamHandle producer = nullptr);
    /// The other way: what blocks have added to the ghosts of stage 0 goes to the cells that these stand for, as
    /// `SparseFields::pushGhosts` for this field alone. Collective the first time, then between peers. Throws as there.
    void pushGhosts(PushOp op = PushOp::Sum, Device::StreamHandle producer = nullptr);
    /// Sets the ghosts that stand for cells to the default, in all blocks: before deposits for a push, if an exchange,
    /// or `swapStages`, has filled them. A push clears those of stage 0 itself. Local, O(ghosts); waits for the device.
    /// Throws IndexError; MemoryError; StateError during an exchange.
    void clearGhosts(int stage = 0);
    /// The exchange of this field alone, for its steps. Collective the first time.
    SparseFields &exchange();

    /// Calls `visit(local, first byte of stage 0)` for each block that an exchange frees, just before: to
    /// count losses, see `DroppedSums`. And for each deposit that a push drops: `local` is the absent block that it was
    /// for, and its memory would be this with the deposit alone. `visit` must not throw, and replaces the previous one;
    /// empty: none. Local. Throws StateError during an exchange.
    void onFree(std::function<void(int local, const std::byte *stage0)> visit);

    /// For task graphs: stands for the field there, a row without elements for each block, allocated or not.
    Array<std::uint8_t, 0> &rows() const;
    /// The same for `Task::changed`.
    void markWritten();

    /// Bytes of the pool used by blocks of this field on this rank: see `roundedSize`. Local, O(blocks).
    std::size_t memoryBytes() const;

  protected:
    SparseFieldCore(std::string name, std::shared_ptr<const SparsePattern> pattern, const SparseFieldOptions &options,
                    std::unique_ptr<const SparseElements> elements);
    SparseFieldCore(SparseFieldCore &&) noexcept;
    SparseFieldCore &operator=(SparseFieldCore &&) noexcept;
    ~SparseFieldCore();

    /// The first byte of an allocated block in `space`. Throws IndexError, StateError for an absent one,
    /// StaleError if blocks are in the other space.
    std::byte *memoryOf(int local, int stage, MemorySpace space) const;
    /// Stage 0 of an allocated block on the host: a copy in `memory`, made larger, where blocks are on the device.
    const std::byte *stageOnHost(int local, std::vector<std::byte> &memory) const;
    const SparseElements &elements() const;
    /// Copies all blocks to `into`, which is on the same blocks on other ranks and has none yet: all stages, counters,
    /// and the side. Collective, within `failTogether`.
    void copyTo(SparseFieldCore &into) const;

  private:
    friend class SparseFields;

    /// Throws StateError if this was moved from.
    SparseFieldState &state() const;

    std::shared_ptr<SparseFieldState> state_; ///< shared with exchanges
    std::unique_ptr<SparseFields> alone_;     ///< the exchange of this field alone; null until it is used
};

/// A field on the blocks of a grid, each of which is allocated or absent as a whole; absent blocks have the default
/// value everywhere. Exchanges send the rims of allocated blocks only, allocate a block when a value above the
/// threshold arrives at its rim, and free blocks that have stayed empty: the sparse variables of Parthenon. Which
/// blocks are allocated depends on values alone, not on ranks.
///
///     const auto pattern = SparsePattern::make(comm, grid, {2, 2, 2});
///     SparseField<real> dust("dust", pattern, {.stages = 2, .allocationThreshold = 1e-8,
///                                              .deallocationThreshold = 1e-9});
///     dust.allocate(b);                                     // and fill in the start
///     dust.exchangeGhosts();
///     for (const int b : dust.allocatedBlocks())
///         advance(std::as_const(dust).view(b), dust.view(b, 1));
///     dust.swapStages(0, 1);
///
/// An exchange may allocate and free blocks: take new views after it. Fields on one pattern (species) share one message
/// a peer: `SparseFields`. Making a field is Local; all ranks give the same arguments, which is checked when the
/// exchange is made. Memory is on the host, or on the device after `toDevice`.
template <class T>
class SparseField : public SparseFieldCore {
  public:
    using Element = T;

    /// Local. Throws ArgumentError for impossible options.
    SparseField(std::string name, std::shared_ptr<const SparsePattern> pattern, const SparseFieldOptions &options = {},
                T defaultValue = T{})
        : SparseFieldCore(std::move(name), std::move(pattern), options,
                          std::make_unique<SparseElementsOf<T>>(defaultValue)) {}

    /// The value of all cells of absent blocks.
    T defaultValue() const { return static_cast<const SparseElementsOf<T> &>(elements()).value(); }

    /// A view of the rank's block `local`, which is allocated. O(1). Throws IndexError; StateError for one that is not;
    /// StaleError where blocks are on the device.
    BlockView<T> view(int local, int stage = 0) { return viewAs<T>(local, stage, MemorySpace::Host); }
    BlockView<const T> view(int local, int stage = 0) const { return viewAs<const T>(local, stage, MemorySpace::Host); }
    /// The same for kernels of `backend`. Throws StaleError where blocks are in the other space.
    template <DeviceBackend backend>
    BlockView<T> deviceView(int local, int stage = 0) {
        return viewAs<T>(local, stage, memorySpaceOf(backend));
    }
    template <DeviceBackend backend>
    BlockView<const T> deviceView(int local, int stage = 0) const {
        return viewAs<const T>(local, stage, memorySpaceOf(backend));
    }

    /// Stage 0 of a block on the host, wherever blocks are: on the device a copy in `memory`, which grows as needed;
    /// waits for it, not for streams of the program. O(block) there. Throws IndexError; StateError for absent blocks.
    BlockView<const T> hostView(int local, std::vector<std::byte> &memory) const {
        const BlockMemory &here = block(local);
        return {reinterpret_cast<const T *>(stageOnHost(local, memory)),
                here.cells,
                here.extent,
                components(),
                components(),
                1};
    }

    /// Copies stage 0 of a block, ghosts included, to that of `to`, a field on the same pattern; allocated in both.
    /// On the host. Local. Throws StateError where it is not, StaleError where blocks are on the device.
    void copyBlock(int local, SparseField &to) const {
        const std::size_t bytes = toSize(block(local).rows) * toSize(components()) * sizeof(T);
        std::memcpy(to.memoryOf(local, 0, MemorySpace::Host), memoryOf(local, 0, MemorySpace::Host), bytes);
    }

    /// The same field on the blocks of `to`, which have other ranks: see `BlockGrid::rebalanced`, and for clusters
    /// `Geom::repartitionTargets`. What is allocated, all components of all stages, ghosts included, counters of empty
    /// exchanges, name, options, default and side are the same, so that a run continues with the same bits; this field
    /// is unchanged:
    ///
    ///     dust = dust.moved(pattern);
    ///
    /// Exchanges (`SparseFields`), task graphs, `onFree` and limits of the pool are the program's to set again;
    /// `DroppedSums::follow` keeps the sums. Collective. Needs the memory of both fields, and of the messages. Throws
    /// on all ranks ArgumentError for a pattern of other blocks or ghosts; StateError during an exchange; MemoryError.
    SparseField moved(const std::shared_ptr<const SparsePattern> &to) const {
        return failTogether(pattern()->context()->comm(), [&] {
            SparseField result(name(), to, options(), defaultValue());
            copyTo(result);
            return result;
        });
    }

  private:
    template <class U>
    BlockView<U> viewAs(int local, int stage, MemorySpace space) const {
        const BlockMemory &memory = block(local);
        return {reinterpret_cast<U *>(memoryOf(local, stage, space)),
                memory.cells,
                memory.extent,
                components(),
                components(),
                1};
    }
};

namespace Detail {

/// Frees all blocks of a field, and calls `fill`, which allocates on the host; then moves the field to its memory
/// space.
template <class T, class Fill>
void refill(SparseField<T> &field, Fill &&fill) {
    const MemorySpace space = field.space();
    for (int b = 0; b < field.blocks(); ++b)
        field.free(b);
    field.toHost();
    fill();
    if (space == MemorySpace::Device)
        field.toDevice();
}

} // namespace Detail

} // namespace DNDS
