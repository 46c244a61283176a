/// @file Region.hpp
/// @brief Named sets of rows: the rows of loops, and the rows of arrays that tasks see.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Task/KernelRows.hpp"

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace DNDS::Task {

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
