/// @file BlockPack.hpp
/// @brief Several fields on all blocks of a rank in one view, and loops over their cells in one kernel.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Blocks/BlockRows.hpp"
#include "DNDS/Blocks/BlockView.hpp"
#include "DNDS/Device/ParallelFor.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace DNDS {

/// The fields of a BlockPack on all blocks of this rank, allocated or not. Trivially copyable, for loops and kernels;
/// valid as long as the fields' own views.
template <class T>
class BlockPackView {
  public:
    BlockPackView() = default;
    /// For BlockPack: `views` is [blocks x fields].
    BlockPackView(const BlockView<T> *views, int blocks, int fields)
        : views_(views), blocks_(blocks), fields_(fields) {}

    /// The number of blocks on this rank, and of fields.
    DNDS_HOST_DEVICE int blocks() const { return blocks_; }
    DNDS_HOST_DEVICE int fields() const { return fields_; }
    /// The view of field `field`, in the order in which fields were added, on block `block` of this rank: an empty one
    /// where the field is absent. O(1).
    DNDS_HOST_DEVICE const BlockView<T> &operator()(int block, int field) const {
        DNDS_DEBUG_CHECK(block >= 0 && block < blocks_ && field >= 0 && field < fields_, IndexError,
                         "block {}, field {} of a pack of {} blocks and {} fields", block, field, blocks_, fields_);
        return views_[static_cast<index>(block) * fields_ + field];
    }
    /// Whether the field is present on the block.
    DNDS_HOST_DEVICE bool has(int block, int field) const { return (*this)(block, field).data() != nullptr; }

  private:
    const BlockView<T> *views_ = nullptr;
    int blocks_ = 0;
    int fields_ = 0;
};

/// The cells of some blocks of a rank, without ghosts, one block after another. Trivially copyable.
struct BlockCells {
    const BlockPlace *places = nullptr; ///< [blocks + 1]: the last one begins after all cells
    int blocks = 0;                     ///< those with cells to visit, not all of the rank
    index size = 0;                     ///< number of cells

    /// Cell `i` in [0, size). O(log(blocks)).
    DNDS_HOST_DEVICE BlockCell operator[](index i) const { return places[blockOfRow(places, blocks, i)].cellOf(i); }
};

/// Fields on blocks, and other containers of elements of one type.
template <class TField>
concept HasElements = requires {
    typename TField::Element;
};

/// Fields on the same blocks, dense (BlockField) and sparse (SparseField), in one view. Parthenon calls this a
/// SparsePack; AMReX's `arrays()` of a MultiFab is one of a single field.
///
///     BlockPack<real> pack(fuel, oxygen, smoke);               // numbers 0, 1, 2
///     forEachCell(executor, pack, {0, 1}, Burn{rate});         // where both are: one kernel
///
///     struct Burn {
///         real rate;
///         DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockPackView<real> &u) const {
///             const auto &fuel = u(c.block, 0);
///             const auto &oxygen = u(c.block, 1);
///             const real burnt = rate * fuel(c[0], c[1]) * oxygen(c[0], c[1]);
///             fuel(c[0], c[1]) -= burnt;
///             oxygen(c[0], c[1]) -= burnt;
///             if (u.has(c.block, 2))
///                 u(c.block, 2)(c[0], c[1]) += 2 * burnt;
///         }
///     };
///
/// `T` is const for reading: `BlockPack<const real> old(gas)`. Views are cached: while no block was allocated, freed or
/// moved since, asking costs O(fields), below 0.1 us each; the states between which `swapStages` and `swapData`
/// alternate are kept. Otherwise O(blocks x fields), and on the device a copy of 152 bytes per block and field. Fields
/// must outlive the pack; they may be assigned to (`moved`). Everything is Local.
template <class T>
class BlockPack {
  public:
    /// The pack of these fields, and of their first stages.
    template <HasElements... TFields>
    explicit BlockPack(TFields &...fields) {
        (add(fields), ...);
    }

    /// Adds a field, or one stage of a sparse one. Returns its number.
    template <HasElements TField>
    int add(TField &field, int stage = 0) {
        static_assert(std::is_same_v<typename TField::Element, std::remove_const_t<T>>, "fields of a pack are of T");
        static_assert(std::is_const_v<T> || !std::is_const_v<TField>, "const fields are in a BlockPack<const T>");
        columns_.push_back(columnOf<std::conditional_t<std::is_const_v<T>, const TField, TField>>(field, stage));
        return static_cast<int>(columns_.size()) - 1;
    }

    /// The view on the host, or in the memory of `backend`. Counts as writing to dense fields unless T is const. Throws
    /// StaleError for a field that is not current there, ArgumentError for fields on different blocks, IndexError for a
    /// missing stage, MemoryError.
    BlockPackView<T> view() { return view(MemorySpace::Host); }
    template <DeviceBackend backend>
    BlockPackView<T> deviceView() {
        return view(memorySpaceOf(backend));
    }
    BlockPackView<T> view(MemorySpace space) {
        const auto &table = tableOf(space);
        return {table.data(space), blocksOf(table), fields()};
    }

    /// The cells of the blocks on which all fields `present` are; for {}, on which any field is. For kernels other than
    /// those of forEachCell, such as reductions. Valid and cached as views. Throws as `view`, IndexError for a missing
    /// field.
    BlockCells cells(MemorySpace space, const std::vector<int> &present) {
        const auto &views = tableOf(space);
        std::vector<std::uint64_t> key{columns_.size()};
        key.insert(key.end(), present.begin(), present.end());
        for (std::size_t k = 0; k < state_.size(); k += 2) // the first number of each column: not its memory
            key.push_back(state_[k]);
        const auto &table = places_.get(space, std::move(key), [&] {
            return placesOf({views.data(MemorySpace::Host), blocksOf(views), fields()}, present);
        });
        return {table.data(space), static_cast<int>(table.size) - 1,
                table.data(MemorySpace::Host)[table.size - 1].firstRow};
    }

  private:
    struct Column {
        std::string name;
        /// Two numbers: one changes with the allocated blocks, the other with the place of their memory. Throws if the
        /// field is not current.
        std::function<std::array<std::uint64_t, 2>(MemorySpace)> state;
        std::function<std::uint64_t()> grid;                         ///< a hash, equal for equal blocks
        std::function<std::vector<BlockView<T>>(MemorySpace)> views; ///< [blocks]
    };
    using Tables = KernelTables<BlockView<T>>;

    int fields() const { return static_cast<int>(columns_.size()); }
    int blocksOf(const typename Tables::Table &table) const { return static_cast<int>(table.size / columns_.size()); }

    /// The table of views, [blocks x fields]: made again only when a column's state is new. Asking each column for its
    /// state also checks that fields are current and marks them as written, which must happen at every call.
    /// The key is exact, two numbers a field, not a hash: a table is never taken for that of another state.
    const typename Tables::Table &tableOf(MemorySpace space) {
        DNDS_CHECK(!columns_.empty(), StateError, "a pack has no fields: add some first");
        state_.clear();
        for (const Column &column : columns_)
            for (const std::uint64_t number : column.state(space))
                state_.push_back(number);
        return tables_.get(space, state_, [&] {
            std::vector<BlockView<T>> all;
            for (std::size_t f = 0; f < columns_.size(); ++f) {
                DNDS_CHECK(columns_[f].grid() == columns_[0].grid(), ArgumentError,
                           "'{}' and '{}' are on different blocks: fields of a pack are on one grid", columns_[0].name,
                           columns_[f].name);
                const std::vector<BlockView<T>> mine = columns_[f].views(space);
                all.resize(mine.size() * columns_.size());
                for (std::size_t b = 0; b < mine.size(); ++b) {
                    for (std::size_t e = 0; e < f; ++e)
                        requireSameCells(all[b * columns_.size() + e], mine[b], columns_[e].name, columns_[f].name);
                    all[b * columns_.size() + f] = mine[b];
                }
            }
            return all;
        });
    }

    /// Throws ArgumentError if two fields have different numbers of points on a block: their centrings differ.
    static void requireSameCells(const BlockView<T> &a, const BlockView<T> &b, const std::string &nameOfA,
                                 const std::string &nameOfB) {
        if (a.data() != nullptr && b.data() != nullptr)
            for (int d = 0; d < a.dims(); ++d)
                DNDS_CHECK(a.extent(d) == b.extent(d), ArgumentError,
                           "'{}' and '{}' are at different points of the blocks: fields of a pack have one centring",
                           nameOfA, nameOfB);
    }

    /// The blocks on which all fields `present` are, as consecutive ranges of cells without ghosts, and an end.
    /// O(blocks x fields).
    static std::vector<BlockPlace> placesOf(const BlockPackView<T> &fields, const std::vector<int> &present) {
        for (const int f : present)
            DNDS_CHECK(f >= 0 && f < fields.fields(), IndexError, "a pack has {} fields, none {}", fields.fields(), f);
        std::vector<BlockPlace> places;
        index first = 0;
        for (int b = 0; b < fields.blocks(); ++b) {
            int some = 0; // a present field, whose view gives the extents
            while (some < fields.fields() && !fields.has(b, some))
                ++some;
            if (some == fields.fields() || !std::ranges::all_of(present, [&](int f) { return fields.has(b, f); }))
                continue;
            const BlockView<T> &view = fields(b, some);
            BlockPlace &place = places.emplace_back();
            place.firstRow = first;
            place.block = b;
            place.dims = view.dims();
            for (int d = 0; d < place.dims; ++d)
                place.extents[d] = place.inner[d] = view.extent(d);
            first += view.size();
        }
        places.emplace_back().firstRow = first;
        return places;
    }

    /// Erases the type of a field. Sparse fields (with `isAllocated`) have views of allocated blocks only; dense fields
    /// have one allocation, whose generation stands for all views. The closures refer to the field.
    template <class TField>
    static Column columnOf(TField &field, int stage) {
        if constexpr (requires { field.isAllocated(0); })
            return {field.name(),
                    [&field, stage](MemorySpace /*space*/) {
                        return std::array{field.generation(), static_cast<std::uint64_t>(field.place(stage))};
                    },
                    [&field] {
                        std::uint64_t key = field.grid() ? field.grid()->signature() : field.pattern()->signature();
                        for (int b = 0; b < field.blocks() && !field.grid(); ++b) // clusters may be on any ranks
                            key = key * 1099511628211U ^ static_cast<std::uint64_t>(field.block(b).block);
                        return key;
                    },
                    [&field, stage](MemorySpace space) {
                        std::vector<BlockView<T>> views(toSize(field.blocks()));
                        for (const int b : field.allocatedBlocks())
                            views[toSize(b)] = space == MemorySpace::Host
                                                   ? field.view(b, stage)
                                                   : field.template deviceView<DeviceBackend::CUDA>(b, stage);
                        return views;
                    }};
        else
            return {field.name(),
                    [&field, stage](MemorySpace space) {
                        DNDS_CHECK(stage == 0, IndexError, "'{}' has no stages but 0, none {}", field.name(), stage);
                        auto &array = field.array();
                        if (space == MemorySpace::Host) // must be current, and may be written
                            (void)array.view();
                        else
                            (void)array.template deviceView<DeviceBackend::CUDA>();
                        // The pattern: fields on one grid have other points with another centring.
                        return std::array{field.pattern()->serial(), array.generation()};
                    },
                    [&field] { return field.grid()->signature(); },
                    [&field](MemorySpace space) {
                        std::vector<BlockView<T>> views;
                        for (int b = 0; b < field.blocks(); ++b)
                            views.push_back(space == MemorySpace::Host
                                                ? field.view(b)
                                                : field.template deviceView<DeviceBackend::CUDA>(b));
                        return views;
                    }};
    }

    std::vector<Column> columns_;      ///< [fields]
    Tables tables_;                    ///< views, keyed by `state_`
    KernelTables<BlockPlace> places_;  ///< places, keyed by present fields and the blocks of all fields
    std::vector<std::uint64_t> state_; ///< the numbers of all columns at the last call
};

inline namespace DNDS_DEVICE_COMPILATION {

/// A functor over the cells of a pack as a kernel.
template <class T, class Functor>
struct KernelOfPack {
    Functor functor;
    BlockPackView<T> fields;
    BlockCells cells;

    /// Calls the functor for cell `i`.
    DNDS_HOST_DEVICE void operator()(index i) const { functor(cells[i], fields); }
    /// Calls it for the cells [begin, end), line by line along the last dimension: one division per dimension and line
    /// instead of per cell, and an inner loop that compilers can vectorise.
    [[gnu::flatten]] void loop(index begin, index end) const {
        const Functor mine = functor; // known not to change while fields are written
        const BlockPackView<T> u = fields;
        const BlockPlace *place = cells.places + blockOfRow(cells.places, cells.blocks, begin);
        for (index i = begin; i < end;) {
            while (i >= place[1].firstRow)
                ++place;
            const BlockCell first = place->cellOf(i);
            const int last = place->dims - 1;
            const index length = std::min(end - i, place->inner[last] - first[last]);
            for (index n = 0; n < length; ++n) {
                BlockCell cell = first;
                for (int d = 0; d < maxBlockDims; ++d) // constant indices, so that the cell is in registers
                    cell.at[d] += d == last ? n : 0;
                mine(cell, u);
            }
            i += length;
        }
    }
};

/// Calls `functor(cell, view of the pack)` for the cells of all blocks on which all fields `present` are, in any order,
/// possibly concurrently: in one kernel on the device, in equal parts by the threads of the host. See BlockPack. Local;
/// as `parallelFor`, and throws as `BlockPack::cells`. A captured graph reads the tables of its capture: run the
/// loop once before, which makes them, and capture again after blocks were allocated, freed or moved.
template <class T, class Functor>
void forEachCell(const Executor &executor, BlockPack<T> &pack, const std::vector<int> &present,
                 const Functor &functor) {
    const KernelOfPack<T, Functor> kernel{functor, pack.view(executor.space()), pack.cells(executor.space(), present)};
    const index count = kernel.cells.size;
    if (executor.onDevice())
        return parallelFor(executor, count, kernel);
    const index parts = std::min<index>(executor.threads(), count);
    Launch::runOnHost(executor.threads(), parts,
                      [&](index part) { kernel.loop(count * part / parts, count * (part + 1) / parts); });
}
/// The same for all blocks on which any field is.
template <class T, class Functor>
void forEachCell(const Executor &executor, BlockPack<T> &pack, const Functor &functor) {
    forEachCell(executor, pack, {}, functor);
}

} // namespace DNDS_DEVICE_COMPILATION

} // namespace DNDS
