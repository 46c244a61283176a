/// @file KernelRows.hpp
/// @brief The rows that tasks see: sets of rows by name, the rows of loops, and the arguments of tasks' kernels, views
/// of the arrays that the task declared, and of nothing else.
///
/// `RowMask` is a set of rows, one bit a row, for the analysis of graphs and the guards of views.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS::Task {

/// A set of rows out of [0, size). Local. Operations on two sets need equal sizes.
class RowMask {
  public:
    RowMask() = default;
    /// No rows of [0, size).
    explicit RowMask(index size) : words_(toSize((size + 63) / 64)), size_(size) {}
    /// The rows [first, last) out of [0, size).
    RowMask(index size, index first, index last) : RowMask(size) { setRange(first, last); }

    /// The limit of row numbers. `count` is the number of rows in the set.
    index size() const noexcept { return size_; }
    /// Whether `row`, of [0, size), is in the set.
    bool test(index row) const noexcept { return (words_[toSize(row) / 64] >> (row % 64) & 1U) != 0; }
    /// Adds a row, or the rows [first, last), all of [0, size).
    void set(index row) noexcept { words_[toSize(row) / 64] |= std::uint64_t{1} << (row % 64); }
    void setRange(index first, index last) noexcept {
        for (; first < last && first % 64 != 0; ++first)
            set(first);
        for (; first + 64 <= last; first += 64)
            words_[toSize(first) / 64] = ~std::uint64_t{0};
        for (; first < last; ++first)
            set(first);
    }
    /// Removes all rows. O(size).
    void clear() noexcept { words_.assign(words_.size(), 0); }

    /// Adds the rows of `other`, or keeps only the rows of `other`. O(size).
    RowMask &operator|=(const RowMask &other) noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            words_[k] |= other.words_[k];
        return *this;
    }
    RowMask &operator&=(const RowMask &other) noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            words_[k] &= other.words_[k];
        return *this;
    }
    /// Removes the rows of `other`.
    RowMask &operator-=(const RowMask &other) noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            words_[k] &= ~other.words_[k];
        return *this;
    }

    /// Whether there are rows in the set; whether some are in both sets. O(size).
    bool any() const noexcept {
        for (const std::uint64_t word : words_)
            if (word != 0)
                return true;
        return false;
    }
    bool intersects(const RowMask &other) const noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            if ((words_[k] & other.words_[k]) != 0)
                return true;
        return false;
    }
    /// Whether all rows of `other` are in this set.
    bool contains(const RowMask &other) const noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            if ((other.words_[k] & ~words_[k]) != 0)
                return false;
        return true;
    }
    /// The number of rows in the set. O(size).
    index count() const noexcept {
        index rows = 0;
        for (const std::uint64_t word : words_)
            rows += std::popcount(word);
        return rows;
    }
    /// Calls `visit(row)` for each row, ascending.
    template <class Visit>
    void forEach(Visit &&visit) const {
        for (std::size_t k = 0; k < words_.size(); ++k)
            for (std::uint64_t word = words_[k]; word != 0; word &= word - 1)
                visit(static_cast<index>(k * 64) + std::countr_zero(word));
    }
    /// The rows of the set, ascending. O(size).
    std::vector<LocalIndex> list() const {
        std::vector<LocalIndex> rows;
        rows.reserve(toSize(count()));
        forEach([&](index row) { rows.push_back(static_cast<LocalIndex>(row)); });
        return rows;
    }

  private:
    /// Bit r % 64 of word r / 64: row r. Bits beyond `size_` are 0, so that words can be compared.
    std::vector<std::uint64_t> words_;
    index size_ = 0;
};

/// The rows that a part of a task declared of one array; checked by builds with DNDS_DEBUG_CHECKS.
/// Made by SplitTasks.cpp for each access of each part, and owned by the part: views point to it for the length of a
/// run.
struct RowGuard {
    RowMask rows;
    std::string task;
    std::string array;
    index owned = 0;
    const char *verb = "reads";
    bool sameRow = false; ///< only the row that the task is at

    /// Throws IndexError, naming task, array and row, if the task did not declare this row. `refuse` always throws
    /// it.
    void check(index row) const {
        if (row < 0 || row >= rows.size() || !rows.test(row)) [[unlikely]]
            refuse(row);
    }
    [[noreturn]] void refuse(index row) const;
    /// The same for element `j` of a row that has `width` elements.
    void checkElement(index row, rowsize j, rowsize width) const {
        if (j < 0 || j >= width) [[unlikely]]
            refuseElement(row, j, width);
    }
    [[noreturn]] void refuseElement(index row, rowsize j, rowsize width) const;
};

/// The rows of an array that a kernel reads or writes. It is used as the array's own view, owned rows and then ghosts:
/// `u(row, k)`, `u(row)`, `u[row]`. Trivially copyable. In programs with DNDS_DEBUG_CHECKS a row that the task did not
/// declare, or an element that a row does not have, throws IndexError on the host, naming task, array and row; not in
/// plans of several threads.
template <class View>
class Rows {
  public:
    Rows() = default;
    /// `guard` may be null; only builds with DNDS_DEBUG_CHECKS read it.
    DNDS_HOST_DEVICE Rows(View view, const RowGuard *guard) : view_(view), guard_(guard) {}

    /// The numbers of rows, owned ones and ghosts, and of elements of a row.
    DNDS_HOST_DEVICE index size() const { return view_.size(); }
    DNDS_HOST_DEVICE rowsize rowSize(index row) const { return view_.rowSize(row); }
    /// Element `j` of a row, or its first one; `[]` gives the row as the array's view does.
    DNDS_HOST_DEVICE decltype(auto) operator()(index row, rowsize j) const {
        check(row);
        checkElement(row, j);
        return view_(row, j);
    }
    DNDS_HOST_DEVICE decltype(auto) operator()(index row) const { return (*this)(row, 0); }
    DNDS_HOST_DEVICE auto operator[](index row) const {
        check(row);
        return view_[row];
    }

    /// For code that runs kernels: the row that the task is at. Only builds with DNDS_DEBUG_CHECKS look at it.
    void at(index row) { at_ = row; }

  protected:
    DNDS_HOST_DEVICE const View &view() const { return view_; }

  private:
    DNDS_HOST_DEVICE void check([[maybe_unused]] index row) const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (guard_ != nullptr) {
            guard_->check(row);
            if (guard_->sameRow && at_ >= 0 && row != at_)
                guard_->refuse(row);
        }
#endif
    }

    DNDS_HOST_DEVICE void checkElement([[maybe_unused]] index row, [[maybe_unused]] rowsize j) const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (guard_ != nullptr)
            guard_->checkElement(row, j, view_.rowSize(row));
#endif
    }

    View view_{};
    const RowGuard *guard_ = nullptr; // in every build: no layout depends on a macro
    /// The row that the task is at; -1: unknown, not checked.
    index at_ = -1;
};

/// The row of an array that a kernel writes: the one that the task is at.
template <class View>
class WrittenRows : public Rows<View> {
  public:
    using Rows<View>::Rows;
    /// For code that runs kernels. Not for arrays without ghosts.
    bool isGhost(index row) const requires requires(const View &view) { view.isGhost(row); }
    { return this->view().isGhost(row); }
};

/// The rows of an array that a kernel adds to, and may not read: sums are complete only after the task.
///
/// Each row gets its contributions in ascending order of the rows that the task loops over, in any number of threads
/// and on the device: a thread that computes sums of some rows calls the kernel for all rows that contribute to these,
/// and drops contributions to other rows. So a kernel may run more than once for a row, and must write nothing
/// else.
template <class View>
class AddedRows {
  public:
    AddedRows() = default;
    /// Adds to all rows of `view`, unless narrowed. `guard` is as for Rows.
    DNDS_HOST_DEVICE AddedRows(View view, const RowGuard *guard) : view_(view), last_(view.size()), guard_(guard) {}

    /// Adds to element `j` of `row`.
    template <class T>
    DNDS_HOST_DEVICE void add(index row, rowsize j, const T &value) const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (guard_ != nullptr) {
            guard_->check(row);
            guard_->checkElement(row, j, view_.rowSize(row));
        }
#endif
        if (row >= first_ && row < last_)
            view_(row, j) += value;
    }
    /// Adds to the only element of `row`.
    template <class T>
    DNDS_HOST_DEVICE void add(index row, const T &value) const {
        add(row, 0, value);
    }

    /// For code that runs kernels: leaves out rows outside [first, last).
    DNDS_HOST_DEVICE void narrow(index first, index last) {
        first_ = first;
        last_ = last;
    }

  private:
    View view_{};
    index first_ = 0;
    index last_ = 0;
    const RowGuard *guard_ = nullptr;
};

/// Fetches a row of a view with elements in rows of one width into the processor's caches, for a functor's `prefetch`:
/// see TaskBuilder::run. On the host.
template <class View>
void prefetchRow(const View &view, index row) {
    constexpr index cacheLine = 64;
    const auto *elements = view[row];
    const auto *bytes = reinterpret_cast<const std::byte *>(elements);
    const auto size = static_cast<index>(sizeof(*elements)) * view.rowSize(row);
    for (index offset = 0; offset < size; offset += cacheLine)
        __builtin_prefetch(bytes + offset);
    asm volatile(""); // an effect: GCC drops calls of functions that only prefetch
}

/// A kernel's argument for an array (a pair, or an array without ghosts) that its task reads, writes or adds to.
template <class TArray>
using ReadRows = Rows<decltype(std::declval<const TArray &>().template deviceView<DeviceBackend::Host>())>;
template <class TArray>
using WriteRows = WrittenRows<decltype(std::declval<TArray &>().template deviceView<DeviceBackend::Host>())>;
template <class TArray>
using AddRows = AddedRows<decltype(std::declval<TArray &>().template deviceView<DeviceBackend::Host>())>;

class RowSpace;

/// Some rows of a space, by a name that is the same on all ranks. Copied freely.
class Region {
  public:
    /// The name, and the space whose rows they are. Local.
    const std::string &name() const noexcept { return name_; }
    const RowSpace &space() const noexcept { return *space_; }
    /// The rows on this rank, out of owned rows and ghosts. Null: the owned rows, and the ghosts that other
    /// tasks of the graph need.
    const std::shared_ptr<const RowMask> &rows() const noexcept { return rows_; }

  private:
    friend class RowSpace;
    Region(std::string name, std::shared_ptr<const RowSpace> space, std::shared_ptr<const RowMask> rows)
        : name_(std::move(name)), space_(std::move(space)), rows_(std::move(rows)) {}

    std::string name_;
    /// A copy of the program's space, shared by copies of the region.
    std::shared_ptr<const RowSpace> space_;
    std::shared_ptr<const RowMask> rows_;
};

/// Any type with counts of owned rows and ghosts and a pattern that refreshes the ghosts: the cells, nodes or
/// faces of a mesh.
template <class Entities>
concept HasRows = requires(const Entities &entities) {
    { entities.owned } -> std::convertible_to<index>;
    { entities.ghosts } -> std::convertible_to<index>;
    { entities.pattern } -> std::convertible_to<std::shared_ptr<const ExchangePattern>>;
};

/// Rows that tasks loop over: owned ones first, then ghosts.
///
///     RowSpace cells("cells", mesh.cells);
///     const Region inlet = cells.define("inlet", rowsAtTheInlet);
///     graph.task("inflow", inlet) ...        graph.task("update", cells) ...
///
/// Everything is Local; names must be the same on all ranks, which `Graph::compile` checks.
class RowSpace {
  public:
    /// Throws ArgumentError for negative numbers, or numbers that differ from the pattern's.
    RowSpace(std::string name, index owned, index ghosts = 0, std::shared_ptr<const ExchangePattern> pattern = nullptr);
    /// The rows of a mesh's entities: knows which ghosts are images beyond periodic boundaries.
    template <HasRows Entities>
    RowSpace(std::string name, const Entities &entities)
        : RowSpace(std::move(name), entities.owned, entities.ghosts, entities.pattern) {
        if constexpr (requires { entities.images[std::size_t{0}] != 0; }) {
            RowMask images(size());
            for (std::size_t row = 0; row < entities.images.size(); ++row)
                if (entities.images[row] != 0)
                    images.set(static_cast<index>(row));
            images_ = std::make_shared<const RowMask>(std::move(images));
        }
    }

    /// As constructed: name, owned rows, these and ghosts, and the pattern of the ghosts, null without ghosts.
    /// Local.
    const std::string &name() const noexcept { return name_; }
    index owned() const noexcept { return owned_; }
    index size() const noexcept { return owned_ + ghosts_; }
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_; }

    /// Ghosts that lie elsewhere than their owners' rows, null for none: values computed for them differ from
    /// the owner's in the last bits, or by a rotation, so they are always pulled.
    const std::shared_ptr<const RowMask> &images() const noexcept { return images_; }

    /// The rows that a task over the whole space computes: owned ones, and the ghosts that the graph needs.
    Region rows() const;
    /// "owned", "ghosts", "inner" (owned rows that no other rank needs), "boundary" (the other owned ones), "all", or
    /// a region named by `define`. Throws ArgumentError listing the names otherwise. O(rows).
    Region region(const std::string &name) const;
    /// Names a set of rows, in any order; ranks may have none. Throws IndexError for a row that does not exist,
    /// ArgumentError for a name that is taken.
    Region define(const std::string &name, std::span<const index> rows);

  private:
    Region make(const std::string &name, RowMask rows) const;

    std::string name_;
    /// [0, owned_) are rows of this rank, [owned_, owned_ + ghosts_) copies.
    index owned_;
    index ghosts_;
    std::shared_ptr<const ExchangePattern> pattern_;
    std::shared_ptr<const RowMask> images_;
    /// Regions share the masks; a RowSpace is copied into each Region, which costs the map but no mask.
    std::map<std::string, std::shared_ptr<const RowMask>> defined_;
};

/// A row's neighbours in another space, from any container. Entries of -1 mean none; smaller ones mean that this
/// rank does not have the neighbour.
struct Adjacency {
    std::string name;
    index rows = 0;
    std::function<std::span<const LocalIndex>(index row)> row; ///< valid until the next call in this thread
    bool hasItself = false;                                    ///< the row in front of its neighbours
};

/// The same with the row itself in front of its neighbours; only once, even if called again.
Adjacency withItself(Adjacency adjacency);

/// A graph's view of an ArrayAdjacency of local row numbers, or of a pair of such arrays. The array must outlive graph
/// and plans, and keep its rows.
template <class TAdjacency>
Adjacency adjacencyOf(const TAdjacency &adjacency) {
    const auto view = adjacency.view();
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(*view[0].data())>, LocalIndex>,
                  "regions are seen through adjacencies of local row numbers (LocalIndex), such as those of a mesh");
    std::string name;
    if constexpr (requires { adjacency.father->label(); })
        name = adjacency.father->label();
    else
        name = adjacency.label();
    return {std::move(name), view.size(), [view](index row) -> std::span<const LocalIndex> {
                const auto entries = view[row];
                return {entries.data(), static_cast<std::size_t>(entries.size())};
            }};
}

} // namespace DNDS::Task
