#include "DNDS/Task/KernelRows.hpp"

#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace DNDS::Task {

RowSpace::RowSpace(std::string name, index owned, index ghosts, std::shared_ptr<const ExchangePattern> pattern)
    : name_(std::move(name)), owned_(owned), ghosts_(ghosts), pattern_(std::move(pattern)) {
    DNDS_CHECK(owned >= 0 && ghosts >= 0, ArgumentError, "'{}' cannot have {} owned rows and {} ghosts", name_, owned,
               ghosts);
    DNDS_CHECK(size() <= std::numeric_limits<LocalIndex>::max(), ArgumentError,
               "'{}' has {} rows: a rank has at most {}", name_, size(), std::numeric_limits<LocalIndex>::max());
    DNDS_CHECK(!pattern_ || (pattern_->fatherSize() == owned && pattern_->sonSize() == ghosts), ArgumentError,
               "'{}' has {} owned rows and {} ghosts, but its pattern has {} and {}", name_, owned, ghosts,
               pattern_ ? pattern_->fatherSize() : 0, pattern_ ? pattern_->sonSize() : 0);
}

/// Regions own copies of the space, so that the program's object may end before the graph.
Region RowSpace::make(const std::string &name, RowMask rows) const {
    return {name, std::make_shared<const RowSpace>(*this), std::make_shared<const RowMask>(std::move(rows))};
}

// Without a mask: the rows depend on the graph (see Region::rows).
Region RowSpace::rows() const { return {name_, std::make_shared<const RowSpace>(*this), nullptr}; }

/// Masks of the general regions are made at each call: O(rows / 64), and O(rows) for "inner" and "boundary", whose rows
/// come from the pattern. These two divide the owned rows: a row is in "boundary" if a ghost of some rank copies it.
Region RowSpace::region(const std::string &name) const {
    // Names of the program's own regions differ from the general ones: `define` checks that.
    if (const auto found = defined_.find(name); found != defined_.end())
        return {name, std::make_shared<const RowSpace>(*this), found->second};
    if (name == "owned")
        return make(name, RowMask(size(), 0, owned_));
    if (name == "ghosts")
        return make(name, RowMask(size(), owned_, size()));
    if (name == "all")
        return make(name, RowMask(size(), 0, size()));
    if (name == "inner" || name == "boundary") {
        RowMask rows(size());
        // Without a pattern no row is sent: all owned rows are inner.
        if (!pattern_ && name == "inner")
            rows.setRange(0, owned_);
        if (pattern_)
            for (const index row : name == "inner" ? pattern_->innerRows() : pattern_->boundaryRows())
                rows.set(row);
        return make(name, std::move(rows));
    }
    std::vector<std::string> names{"owned", "ghosts", "inner", "boundary", "all"};
    for (const auto &[defined, rows] : defined_)
        names.push_back(defined);
    throw ArgumentError(fmt::format("'{}' has no region '{}': it has {}", name_, name, fmt::join(names, ", ")));
}

// Regions that were made before keep working: they own a copy of the space.
Region RowSpace::define(const std::string &name, std::span<const index> rows) {
    for (const char *taken : {"owned", "ghosts", "all", "inner", "boundary"})
        DNDS_CHECK(name != taken, ArgumentError, "'{}' is a region of every space: choose another name", name);
    DNDS_CHECK(!defined_.contains(name), ArgumentError, "'{}' has a region '{}' already", name_, name);
    // Repeated rows count once.
    RowMask mask(size());
    for (const index row : rows) {
        DNDS_CHECK(row >= 0 && row < size(), IndexError, "region '{}' of '{}': row {} is outside [0, {})", name, name_,
                   row, size());
        mask.set(row);
    }
    defined_.emplace(name, std::make_shared<const RowMask>(std::move(mask)));
    return region(name);
}

/// A buffer for each thread, since parts run in several threads; the result is valid until the thread's next call.
/// O(neighbours) for each row asked for, as the list is copied.
Adjacency withItself(Adjacency adjacency) {
    // A second call changes nothing.
    if (std::exchange(adjacency.hasItself, true))
        return adjacency;
    adjacency.name += " and itself";
    adjacency.row = [of = std::move(adjacency.row)](index row) -> std::span<const LocalIndex> {
        thread_local std::vector<LocalIndex> both;
        both.assign(1, static_cast<LocalIndex>(row));
        const std::span<const LocalIndex> others = of(row);
        both.insert(both.end(), others.begin(), others.end());
        return both;
    };
    return adjacency;
}

} // namespace DNDS::Task
