#include "DNDS/Task/GraphModel.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Task {

namespace {

/// Whether an array has rows for all of a space; one without ghosts may have them for the owned rows only.
bool hasRowsOf(const ArrayHandle &array, const RowSpace &space) {
    return array.son() != nullptr ? array.owned() == space.owned() && array.size() == space.size()
                                  : array.size() == space.owned() || array.size() == space.size();
}

/// Whether a row number means the same entity in both: equal counts and one and the same pattern.
bool haveSameRows(const ArrayHandle &one, const ArrayHandle &other) {
    return one.owned() == other.owned() && one.size() == other.size() && one.pattern() == other.pattern();
}

/// An array whose row `r` belongs to row `r` of the loop.
void requireSameRows(const TaskModel &task, const ArrayHandle &array, AccessMode mode) {
    const RowSpace &space = task.loop->space();
    DNDS_CHECK(
        hasRowsOf(array, space), ArgumentError,
        "task '{}' loops over {} owned rows and {} ghosts, but '{}', which it {}, has {} and {}: name the rows, "
        "as in through({}, adjacency), or loop over the rows of '{}' (blocks: make both of one grid and the same "
        "ghosts, with values of cells)",
        task.name, space.owned(), space.size() - space.owned(), array.name(), accessModeName(mode), array.owned(),
        array.size() - array.owned(), array.name(), array.name());
    DNDS_CHECK(
        !space.pattern() || !array.pattern() || space.pattern() == array.pattern(), ArgumentError,
        "task '{}' loops over rows that have other ghosts than '{}', which it {}: their patterns differ. Give both "
        "the same mapping (borrowGGIndexing), or make both of one grid and the same ghosts, with values of cells "
        "(blocks)",
        task.name, array.name(), accessModeName(mode));
}

/// Rules for loops. Only the loop's own row may be written, since other threads and ranks run the other rows at the
/// same time; rows reached through an adjacency may be read or added to.
void requireLoopAccess(const TaskModel &task, const ArrayHandle &array, const ArrayAccess &access) {
    const RowSpace &space = task.loop->space();
    switch (access.range) {
    case AccessRange::SameRow:
        requireSameRows(task, array, access.mode);
        break;
    case AccessRange::Through:
        DNDS_CHECK(access.adjacency.rows == space.size() || access.adjacency.rows == space.owned(), ArgumentError,
                   "task '{}' loops over {} owned rows and {} ghosts, but the adjacency '{}' through which it {} '{}' "
                   "has {} rows",
                   task.name, space.owned(), space.size() - space.owned(), access.adjacency.name,
                   accessModeName(access.mode), array.name(), access.adjacency.rows);
        DNDS_CHECK(access.mode == AccessMode::Reads || access.mode == AccessMode::Adds, ArgumentError,
                   "task '{}' {} '{}' through '{}': rows of others can be read or added to only", task.name,
                   accessModeName(access.mode), array.name(), access.adjacency.name);
        break;
    case AccessRange::Whole:
    case AccessRange::Owned:
    case AccessRange::Region:
        DNDS_CHECK(access.mode == AccessMode::Reads, ArgumentError,
                   "task '{}' {} more rows of '{}' than the one that it works on: loop over these rows", task.name,
                   accessModeName(access.mode), array.name());
        break;
    }
}

/// A call has no row of its own, so there is no row from which an adjacency could start.
void requireCallAccess(const TaskModel &task, const ArrayHandle &array, const ArrayAccess &access) {
    DNDS_CHECK(access.range != AccessRange::Through, ArgumentError,
               "task '{}' {} '{}' through '{}', but a call loops over no rows: name all of the array, or a region",
               task.name, accessModeName(access.mode), array.name(), access.adjacency.name);
}

/// Swapping contents must not change the rows of tasks.
void requireSwappable(const TaskModel &task, const ArrayHandle &one, const ArrayHandle &other) {
    DNDS_CHECK(haveSameRows(one, other), ArgumentError,
               "task '{}': '{}' has {} owned rows and {} ghosts, '{}' has {} and {}, or their mappings differ",
               task.name, one.name(), one.owned(), one.size() - one.owned(), other.name(), other.owned(),
               other.size() - other.owned());
}

/// An array without ghosts has rows for all of the region's space, or for its owned rows.
void requireRegionOf(const TaskModel &task, const ArrayHandle &array, const ArrayAccess &access) {
    if (access.range != AccessRange::Region)
        return;
    const RowSpace &space = access.region->space();
    const auto &rows = access.region->rows();
    bool fits = hasRowsOf(array, space);
    if (fits && rows && array.size() < space.size())
        fits = !rows->intersects(RowMask(space.size(), array.size(), space.size()));
    DNDS_CHECK(fits, ArgumentError,
               "task '{}' {} region '{}' of '{}': the region is one of {} owned rows and {} ghosts, the array has {} "
               "and {}",
               task.name, accessModeName(access.mode), access.region->name(), array.name(), space.owned(),
               space.size() - space.owned(), array.owned(), array.size() - array.owned());
}

} // namespace

const char *accessModeName(AccessMode mode) {
    constexpr std::array names{"reads", "writes", "reads and writes", "adds to"};
    return names[static_cast<std::size_t>(mode)];
}

// Arrays are few: a search by the father's address. A later handle through which the array is writable replaces one
// that is const.
std::size_t GraphModel::add(const std::shared_ptr<ArrayHandle> &array) {
    for (std::size_t k = 0; k < arrays.size(); ++k)
        if (&arrays[k]->father() == &array->father()) {
            DNDS_CHECK((arrays[k]->son() == nullptr) == (array->son() == nullptr), ArgumentError,
                       "graph '{}' uses '{}' both with ghosts and without: declare the pair everywhere", name,
                       array->name());
            DNDS_CHECK(arrays[k]->pattern() == array->pattern(), ArgumentError,
                       "graph '{}' uses '{}' with two sets of ghosts: give the second pair a father of its own", name,
                       array->name());
            if (array->writable() && !arrays[k]->writable())
                arrays[k] = array;
            return k;
        }
    arrays.push_back(array);
    return arrays.size() - 1;
}

// At compilation and before each run, as arrays may have changed.
void GraphModel::requireFits(const ReductionModel &reduction) const {
    const ArrayHandle &array = *arrays[reduction.array];
    DNDS_CHECK(!reduction.rows || (*reduction.rows >= 0 && *reduction.rows <= array.owned()), ArgumentError,
               "reduction '{}' is of {} rows, but '{}' has {}", reduction.name, *reduction.rows, array.name(),
               array.owned());
    DNDS_CHECK(reduction.width() == reduction.columns, ArgumentError,
               "reduction '{}' is of {} columns, but rows of '{}' have {} by now: declare it again", reduction.name,
               reduction.columns, array.name(), reduction.width());
}

// A reduction counts each row of the whole mesh once, at its owner.
void GraphModel::requireReducible(const ReductionModel &reduction, const Region &region) const {
    const ArrayHandle &array = *arrays[reduction.array];
    const RowSpace &space = region.space();
    DNDS_CHECK(array.owned() == space.owned() || (array.son() == nullptr && array.size() == space.size()),
               ArgumentError,
               "reduction '{}' is over region '{}' of '{}', which is one of {} owned rows; the array has {}",
               reduction.name, region.name(), array.name(), space.owned(), array.owned());
    // Fields on blocks have their ghosts among their rows: other ghosts, other rows.
    DNDS_CHECK(
        array.son() != &array.father() || !space.pattern() || space.pattern() == array.pattern(), ArgumentError,
        "reduction '{}' is over region '{}', whose blocks have other ghosts or points than '{}': make both of one "
        "grid and the same ghosts, with values of cells",
        reduction.name, region.name(), array.name());
    DNDS_CHECK(!region.rows() || !region.rows()->intersects(RowMask(space.size(), space.owned(), space.size())),
               ArgumentError,
               "reduction '{}' is over region '{}' of '{}', which has ghosts: they count at their owners",
               reduction.name, region.name(), array.name());
}

/// All loops and regions must agree on the number; the first one found is compared with the others. O(accesses of all
/// tasks).
std::optional<index> GraphModel::ownRows(std::size_t array) const {
    std::optional<index> owned;
    const auto take = [&](const TaskModel &task, const RowSpace &space) {
        DNDS_CHECK(
            !owned || *owned == space.owned(), ArgumentError,
            "task '{}' takes '{}', which has no ghosts, for {} own rows, another task for {}: name the own rows, "
            "as in reduce(name, op, array, rows)",
            task.name, arrays[array]->name(), space.owned(), *owned);
        owned = space.owned();
    };
    for (const TaskModel &task : tasks)
        for (const ArrayAccess &access : task.accesses) {
            if (access.array != array)
                continue;
            if (access.range == AccessRange::SameRow && task.loop)
                take(task, task.loop->space());
            if (access.range == AccessRange::Region)
                take(task, access.region->space());
        }
    return owned;
}

// Arrays without ghosts that all tasks take as a whole.
// O(accesses of all tasks). Plans neither pull such an array nor compare it between ranks: a task may read it and still
// compute ghosts, so equal contents on all ranks are the program's duty.
bool GraphModel::isTable(std::size_t array) const {
    return arrays[array]->son() == nullptr && std::ranges::none_of(tasks, [&](const TaskModel &task) {
               return std::ranges::any_of(task.accesses, [&](const ArrayAccess &access) {
                   return access.array == array && access.range != AccessRange::Whole;
               });
           });
}

/// Arrays with ghosts know their owned rows. For others the graph's loops tell; tables that no loop defines are an
/// error rather than a guess, since counting copies of other ranks' rows would give wrong sums silently.
void GraphModel::findReducedRows() {
    for (ReductionModel &reduction : reductions) {
        const ArrayHandle &array = *arrays[reduction.array];
        if (reduction.lists || reduction.rows || array.son() != nullptr)
            continue;
        reduction.rows = ownRows(reduction.array);
        DNDS_CHECK(reduction.rows, ArgumentError,
                   "reduction '{}' is of '{}', which has no ghosts and over which the graph has no loop: which of its "
                   "{} rows are copies of other ranks' is not known. Give the number of own rows: reduce(name, op, "
                   "array, rows)",
                   reduction.name, array.name(), array.size());
    }
}

/// A ghost's contributions are computed by its owner, too, and pushed: only owned rows may add, or sums would count
/// twice.
void GraphModel::requireOwnTerms(const TaskModel &task) const {
    if (task.kind != TaskKind::Loop || !task.loop->rows())
        return;
    const RowSpace &space = task.loop->space();
    for (const ArrayAccess &access : task.accesses)
        DNDS_CHECK(access.mode != AccessMode::Adds || !arrays[access.array]->pattern() ||
                       !task.loop->rows()->intersects(RowMask(space.size(), space.owned(), space.size())),
                   ArgumentError,
                   "task '{}' adds to '{}' over region '{}', which has ghosts: what they add would count twice, as "
                   "their owners add it, too. Loop over owned rows only",
                   task.name, arrays[access.array]->name(), task.loop->name());
}

/// The pairwise checks are O(accesses^2) for each task; accesses are few.
/// Local. Called when the task is declared and again by compileGraph, since arrays may have been resized meanwhile.
void GraphModel::requireFits(const TaskModel &task) const {
    DNDS_CHECK(task.every >= 1, ArgumentError, "task '{}' cannot run every {} runs", task.name, task.every);
    DNDS_CHECK(!task.name.empty(), ArgumentError, "a task of graph '{}' has no name", name);
    for (const ArrayAccess &access : task.accesses) {
        const ArrayHandle &array = *arrays[access.array];
        if (task.kind == TaskKind::Loop)
            requireLoopAccess(task, array, access);
        if (task.kind == TaskKind::Call)
            requireCallAccess(task, array, access);
        requireRegionOf(task, array, access);
        DNDS_CHECK(access.mode == AccessMode::Reads || array.writable(), ArgumentError,
                   "task '{}' {} '{}', which is const", task.name, accessModeName(access.mode), array.name());
        DNDS_CHECK(access.mode == AccessMode::Reads || !task.async, ArgumentError,
                   "task '{}' {} '{}', but it runs asynchronously, on copies: it can read only", task.name,
                   accessModeName(access.mode), array.name());
        DNDS_CHECK(access.mode != AccessMode::Adds || task.kind == TaskKind::Loop, ArgumentError,
                   "task '{}' adds to '{}' without looping over rows: declare that it reads and writes it", task.name,
                   array.name());
    }
    // Two accesses to one array must both read. Tasks that add run their functor once for each chunk of targets, so a
    // second write beside the sums would happen more than once.
    for (std::size_t a = 0; a < task.accesses.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) {
            const ArrayAccess &one = task.accesses[a], &other = task.accesses[b];
            const bool writes = one.mode != AccessMode::Reads || other.mode != AccessMode::Reads;
            DNDS_CHECK(one.array != other.array || !writes, ArgumentError,
                       "task '{}' {} '{}' and {} it, too: what it reads would depend on the order of rows. Declare "
                       "once that it reads and writes its own row, or write another array",
                       task.name, accessModeName(other.mode), arrays[one.array]->name(), accessModeName(one.mode));
            DNDS_CHECK(one.mode != AccessMode::Adds || other.mode != AccessMode::Adds ||
                           haveSameRows(*arrays[one.array], *arrays[other.array]),
                       ArgumentError, "task '{}' adds to '{}' and '{}', which have different rows: make it two tasks",
                       task.name, arrays[other.array]->name(), arrays[one.array]->name());
            DNDS_CHECK(task.kind != TaskKind::Loop ||
                           (one.mode == AccessMode::Adds) == (other.mode == AccessMode::Adds) ||
                           one.mode == AccessMode::Reads || other.mode == AccessMode::Reads,
                       ArgumentError,
                       "task '{}' adds to one array and writes another: its functor may run more than once for a row. "
                       "Make it two tasks",
                       task.name);
        }
    if (task.kind == TaskKind::Swap)
        requireSwappable(task, *arrays[task.accesses[0].array], *arrays[task.accesses[1].array]);
    for (const ArrayAccess &access : task.accesses) {
        const ArrayHandle &array = *arrays[access.array];
        DNDS_CHECK(
            access.mode != AccessMode::Adds || array.pattern() || !task.loop || task.loop->rows() ||
                !task.loop->space().pattern(),
            ArgumentError,
            "task '{}' adds to '{}', which has no ghosts: what the rows of other ranks add would be missing. Give "
            "it ghosts, or loop over a region of rows that this rank has",
            task.name, array.name());
    }
}

void GraphModel::add(TaskModel task) {
    requireFits(task);
    tasks.push_back(std::move(task));
}

// Between start and finish messages may read boundary rows and write ghosts at any time, so tasks there may only read
// owned rows of the exchanged arrays.
// Declaration order is program order, so the check of the tasks declared after the start covers all tasks that a plan
// may run in between.
std::shared_ptr<CalledExchange> GraphModel::startedExchange(const void *of, bool pushes,
                                                            std::span<const std::size_t> exchanged) const {
    const auto isStart = [&](const TaskModel &task) {
        return task.startsExchange && task.exchange->of == of && task.exchange->pushes == pushes;
    };
    const auto last = std::ranges::find_if(tasks.rbegin(), tasks.rend(), isStart);
    if (last == tasks.rend())
        return nullptr;
    const auto fits = [&](const ArrayAccess &access) {
        const bool owned = access.range == AccessRange::SameRow || access.range == AccessRange::Owned;
        return std::ranges::find(exchanged, access.array) == exchanged.end() ||
               (access.mode == AccessMode::Reads && (owned || arrays[access.array]->pattern() == nullptr));
    };
    for (const TaskModel &task : std::span(last.base(), tasks.end()))
        for (const ArrayAccess &access : task.accesses)
            DNDS_CHECK(fits(access), ArgumentError,
                       "task '{}' writes '{}' or reads its ghosts between the start and the finish of their {}: "
                       "declare it before the start or after the finish",
                       task.name, arrays[access.array]->name(), pushes ? "push" : "exchange");
    return last->exchange;
}

// A finishing kernel may change ghosts only.
void GraphModel::add(PullFinish finish) {
    const ArrayHandle &array = *arrays[finish.array];
    const RowSpace &space = finish.ghosts.space();
    DNDS_CHECK(array.pattern() != nullptr, ArgumentError, "'{}' is never pulled: it has no ghosts", array.name());
    DNDS_CHECK(space.owned() == array.owned() && space.size() == array.size(), ArgumentError,
               "pulls of '{}' are finished on region '{}' of {} rows, but the array has {}", array.name(),
               finish.ghosts.name(), space.size(), array.size());
    DNDS_CHECK(!space.pattern() || space.pattern() == array.pattern(), ArgumentError,
               "pulls of '{}' are finished on region '{}', whose rows have other ghosts: give both the same mapping "
               "(borrowGGIndexing)",
               array.name(), finish.ghosts.name());
    DNDS_CHECK(finish.ghosts.rows() && !finish.ghosts.rows()->intersects(RowMask(space.size(), 0, space.owned())),
               ArgumentError, "pulls of '{}' are finished on region '{}', which has owned rows", array.name(),
               finish.ghosts.name());
    finishes.push_back(std::move(finish));
}

} // namespace DNDS::Task
