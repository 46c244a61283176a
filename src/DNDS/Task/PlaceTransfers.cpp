#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Task/Plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace DNDS::Task {

namespace {

/// A row of a task that needs a row missing on this rank.
struct Lack {
    const ArrayAccess *access;
    index row;
    bool beyondArray; ///< the array has no such row; else the adjacency says that another rank has it
};

/// Looks at all entries of all adjacencies for the given rows: O(rows + entries). Entry -1 means no neighbour,
/// smaller ones a neighbour that is not on this rank. The first row found is reported.
std::optional<Lack> findLack(const GraphModel &graph, const TaskModel &task, const RowMask &rows) {
    std::optional<Lack> lack;
    for (const ArrayAccess &access : task.accesses) {
        const index size = graph.arrays[access.array]->size();
        rows.forEach([&](index row) {
            if (lack)
                return;
            if (access.range == AccessRange::SameRow && row >= size)
                lack = {&access, row, true};
            if (access.range != AccessRange::Through)
                return;
            if (row >= access.adjacency.rows)
                lack = {&access, row, false};
            else
                for (const LocalIndex entry : access.adjacency.row(row))
                    if (entry < -1 || entry >= size)
                        lack = {&access, row, entry >= size};
        });
    }
    return lack;
}

// Three causes: a damaged adjacency, too few layers of ghosts, an array without rows for ghosts.
[[noreturn]] void throwLack(const GraphModel &graph, const TaskModel &task, const Lack &lack) {
    const ArrayHandle &array = *graph.arrays[lack.access->array];
    if (lack.access->range == AccessRange::Through && lack.beyondArray)
        throw IndexError(fmt::format("task '{}': row {} of '{}' names a row that '{}' does not have: it has {}",
                                     task.name, lack.row, lack.access->adjacency.name, array.name(), array.size()));
    if (lack.access->range == AccessRange::Through)
        throw ArgumentError(fmt::format(
            "task '{}' needs row {}, whose neighbours in '{}' are not on this rank, to read '{}': the mesh needs more "
            "layers of ghosts, or the task that reads what it writes has to loop over fewer rows",
            task.name, lack.row, lack.access->adjacency.name, array.name()));
    throw ArgumentError(fmt::format("task '{}' is needed for row {}, a ghost, but '{}' has {} rows: give it rows for "
                                    "ghosts, too",
                                    task.name, lack.row, array.name(), array.size()));
}

/// Whether a task that computes a row on a rank other than its owner may see other values there.
bool dependsOnRank(const GraphModel &graph, const ArrayAccess &access) {
    return access.range != AccessRange::SameRow && access.range != AccessRange::Through &&
           !graph.arrays[access.array]->sameOnAllRanks();
}

/// Walks through a graph, first backwards to find the rows that are needed, as live-variable analysis in compilers does
/// (Aho, Lam, Sethi and Ullman, Compilers, section 9.2.5), then forwards to find stale ghosts.
class Placement {
  public:
    Placement(const GraphModel &graph, const CommunicatorView &comm, const CompileOptions &options, PlanModel &plan)
        : graph_(graph), comm_(comm), options_(options), plan_(plan) {
        for (const auto &array : graph.arrays)
            masks_.emplace_back(array->size());
    }

    /// Fills `taskRows`, `recomputes` and `notes` of the plan. Collective.
    void findRows();
    /// Fills `transfers` and `outcome` of the plan. Collective.
    void findTransfers();

  private:
    /// Whether the array can be pulled.
    bool isPair(std::size_t array) const { return graph_.arrays[array]->pattern() != nullptr; }
    /// Whether the task writes rows of an array that no pull can refresh: copies that later tasks read must be
    /// computed here.
    bool writesHere(const ArrayAccess &access) const {
        return access.writes() && access.mode != AccessMode::Adds && !isPair(access.array);
    }
    /// Whether swapped arrays have differently finished ghosts: then ghosts do not move with the contents.
    bool swapsFinished(const TaskModel &swap) const {
        return graph_.isFinished(swap.accesses[0].array) || graph_.isFinished(swap.accesses[1].array);
    }
    /// Whether the program allows the task to compute ghosts in place of a pull. The same on all ranks.
    bool mayRecompute(const TaskModel &task) const;
    RowMask rowsOf(std::size_t t, bool ghostsOfPairs);
    const std::optional<RowMask> &regionOfOwners(std::size_t t);
    void requireCopies(std::size_t t, const RowMask &rows) const;
    void requireWholeSums(const TaskModel &task) const;
    bool readsDiffering(const ArrayAccess &access) const;
    void findDiffering();
    bool differFromOwners(const TaskModel &task, const RowMask &rows) const;
    /// Decides which rows the task computes here, and whether it computes ghosts. Collective.
    void chooseRows(std::size_t t);
    /// Backward step: turns rows needed after the task into rows needed before it.
    void passDemand(std::size_t t);
    /// Appends transfers of `arrays` before (pull) or after (push) the task.
    void addTransfers(std::size_t t, Direction direction, const std::vector<std::size_t> &arrays);
    /// The arrays that must be pulled before the task: some rank would read a stale ghost. Collective if the task
    /// reads pairs.
    std::vector<std::size_t> staleReads(std::size_t t);
    /// Forward step: from the ghosts that are current before the task to the ghosts current after it.
    void passValidity(std::size_t t);
    /// Records the state in which a run leaves each array. Collective.
    void findOutcome();

    const GraphModel &graph_;
    const CommunicatorView &comm_;
    const CompileOptions &options_;
    PlanModel &plan_;
    std::vector<RowMask> masks_;     ///< [arrays] backwards: rows that are needed; forwards: ghosts that are current
    std::vector<RowMask> entryNeed_; ///< [arrays] ghosts that are read before the array is written
    std::vector<bool> written_;      ///< [arrays]
    std::vector<bool> differing_;    ///< [arrays] without pattern, whose copies may differ from their owners' rows
    /// [arrays] Some transfer pulls it.
    std::vector<bool> pulled_;
    // Kept over the rounds of findRows, so that each region is pulled once.
    std::map<std::size_t, std::optional<RowMask>> regionsOfOwners_; ///< keyed by task
    /// Of the latest transfers: see Transfer::number.
    index number_ = 0;
};

bool Placement::mayRecompute(const TaskModel &task) const {
    // Loops over a region compute only those ghosts of pairs that the program names.
    if (task.kind != TaskKind::Loop || task.loop->rows() ||
        std::ranges::none_of(task.accesses, [&](const ArrayAccess &a) {
            return a.writes() && a.mode != AccessMode::Adds && isPair(a.array);
        }))
        return false;
    return options_.recompute == CompileOptions::Recompute::WherePossible ||
           (options_.recompute == CompileOptions::Recompute::AsDeclared && task.recomputesGhosts);
}

/// The ghosts that are in their owners' part of the region which the task loops over; none if the region's space has
/// no pattern. Collective the first time.
/// Membership in a region is known to the owner of a row only. Owners mark their rows in a temporary array of 8 bytes
/// a row, and one pull over the space's own pattern tells the ranks that hold copies.
/// No deadlock: whether a rank takes part in the pull depends on a reduction, never on its own rows.
const std::optional<RowMask> &Placement::regionOfOwners(std::size_t t) {
    const auto inserted = regionsOfOwners_.try_emplace(t);
    std::optional<RowMask> &ofOwners = inserted.first->second;
    const Region &region = *graph_.tasks[t].loop;
    const RowSpace &space = region.space();
    if (!inserted.second || comm_.allReduce(space.pattern() ? 1 : 0, MPI_MIN) == 0)
        return ofOwners;
    ArrayPair<ParArray<real, 1>> marks;
    comm_.guarded([&] {
        marks.initPair(fmt::format("rows of region '{}'", region.name()), space.pattern()->context().comm());
        marks.father->resize(space.owned());
        region.rows()->forEach([&](index row) {
            if (row < space.owned())
                (*marks.father)(row, 0) = 1;
        });
    });
    marks.transAttach();
    marks.trans.usePattern(space.pattern());
    marks.trans.createMPITypes();
    marks.trans.pullOnce();
    comm_.guarded([&] {
        RowMask ghosts(space.size());
        for (index row = space.owned(); row < space.size(); ++row)
            if (std::as_const(marks)(row, 0) > 0)
                ghosts.set(row);
        ofOwners = std::move(ghosts);
    });
    return ofOwners;
}

/// The rows that the program names, and the ghosts that later tasks need: of arrays without ghosts, and with
/// `ghostsOfPairs` of the others.
/// O(accesses x rows / 64 + demanded rows).
RowMask Placement::rowsOf(std::size_t t, bool ghostsOfPairs) {
    const TaskModel &task = graph_.tasks[t];
    const RowSpace &space = task.loop->space();
    const auto &named = task.loop->rows();
    RowMask needed(space.size());
    bool writesHere = false;
    for (const ArrayAccess &access : task.accesses) {
        writesHere = writesHere || this->writesHere(access);
        if (access.writes() && access.mode != AccessMode::Adds && (ghostsOfPairs || !isPair(access.array)))
            masks_[access.array].forEach([&](index row) {
                if (row >= space.owned() && row < space.size())
                    needed.set(row);
            });
    }
    RowMask rows = named ? *named : RowMask(space.size(), 0, space.owned());
    if (named && writesHere) {
        const std::optional<RowMask> &ofOwners = regionOfOwners(t);
        comm_.guarded([&] {
            needed -= rows;
            DNDS_CHECK(ofOwners || !needed.any(), ArgumentError,
                       "task '{}' writes an array without ghosts in region '{}', and a later task reads row {}, a copy "
                       "of another rank's: whether it is in the region there is not known, as '{}' has no pattern. "
                       "Make the space from the mesh's cells, nodes or faces",
                       task.name, task.loop->name(), needed.list().front(), space.name());
            if (ofOwners)
                needed &= *ofOwners;
        });
    }
    if (!named || writesHere)
        rows |= needed;
    return rows;
}

/// Throws if this rank would compute copies of other ranks' rows, which are never pulled, from values that differ
/// from their owners'.
void Placement::requireCopies(std::size_t t, const RowMask &rows) const {
    const TaskModel &task = graph_.tasks[t];
    const RowSpace &space = task.loop->space();
    RowMask copies = rows;
    copies -= task.loop->rows() ? *task.loop->rows() : RowMask(space.size(), 0, space.owned());
    // Without rows of other ranks there is nothing to differ.
    if (!copies.any())
        return;
    for (const ArrayAccess &access : task.accesses) {
        if (!access.reads() || !dependsOnRank(graph_, access) || graph_.isTable(access.array))
            continue;
        const auto written = std::ranges::find_if(task.accesses, [&](const ArrayAccess &a) { return writesHere(a); });
        throw ArgumentError(fmt::format(
            "task '{}' reads {} of '{}', which is not the same on all ranks, and writes '{}', which has no ghosts: a "
            "later task reads row {} of it, which another rank would compute otherwise. Give '{}' ghosts, so that they "
            "are pulled",
            task.name,
            access.range == AccessRange::Region  ? "a region"
            : access.range == AccessRange::Owned ? "own rows"
                                                 : "all",
            graph_.arrays[access.array]->name(), graph_.arrays[written->array]->name(), copies.list().front(),
            graph_.arrays[written->array]->name()));
    }
}

/// Throws if a later task reads sums of rows to which other ranks add as well.
void Placement::requireWholeSums(const TaskModel &task) const {
    for (const ArrayAccess &access : task.accesses) {
        if (access.mode != AccessMode::Adds || isPair(access.array))
            continue;
        // Rows of the sums that later tasks read.
        const RowMask &demand = masks_[access.array];
        const std::optional<index> owned = graph_.ownRows(access.array);
        if (!owned || *owned >= demand.size())
            continue;
        RowMask copies(demand.size(), *owned, demand.size());
        copies &= demand;
        DNDS_CHECK(
            !copies.any(), ArgumentError,
            "task '{}' adds to '{}', which has no ghosts, and a later task reads row {} of it, a copy of another "
            "rank's: what other ranks add to it is missing here. Give '{}' ghosts",
            task.name, graph_.arrays[access.array]->name(), copies.list().front(), graph_.arrays[access.array]->name());
    }
}

/// Whether a task that reads it may see ghosts that differ from their owners' rows.
bool Placement::readsDiffering(const ArrayAccess &access) const {
    return access.reads() && (differing_[access.array] || std::ranges::any_of(graph_.finishes, [&](const auto &finish) {
                                  return finish.array == access.array && finish.ghosts.rows()->any();
                              }));
}

/// Finished ghosts reach arrays that no pull can refresh, and from these further ones: a fixed point, of at most as
/// many rounds as arrays. Copies that `requireCopies` and `requireWholeSums` would refuse differ as well.
/// Local, O(rounds x accesses of all tasks). Ranks may differ in the answer, since a region of finished ghosts may be
/// empty on some: `chooseRows` combines the answers by a reduction.
void Placement::findDiffering() {
    differing_.assign(graph_.arrays.size(), false);
    for (bool more = true; more;) {
        more = false;
        for (const TaskModel &task : graph_.tasks) {
            const bool loop = task.kind == TaskKind::Loop;
            const bool spreads = std::ranges::any_of(task.accesses, [&](const ArrayAccess &access) {
                return readsDiffering(access) ||
                       (loop && access.reads() && dependsOnRank(graph_, access) && !graph_.isTable(access.array));
            });
            for (const ArrayAccess &access : task.accesses)
                if ((spreads || (loop && access.mode == AccessMode::Adds)) && access.writes() &&
                    !isPair(access.array) && !graph_.isTable(access.array) && !differing_[access.array])
                    differing_[access.array] = more = true;
        }
    }
}

/// Whether some of the ghosts are periodic images or finished after pulls, or are computed from such: then this rank
/// and the owner see different values.
bool Placement::differFromOwners(const TaskModel &task, const RowMask &rows) const {
    // An image is another place than its original: a kernel that uses positions gives another value.
    const auto &images = task.loop->space().images();
    if (images && rows.intersects(*images))
        return true;
    return std::ranges::any_of(task.accesses, [&](const ArrayAccess &access) {
        return readsDiffering(access) || std::ranges::any_of(graph_.finishes, [&](const PullFinish &finish) {
                   return finish.array == access.array && !access.reads() && rows.intersects(*finish.ghosts.rows());
               });
    });
}

/// Recomputing replaces a message by work on ghosts. It is possible if the functor sees, on this rank, what the owner
/// sees: its inputs exist here and equal the owner's. All ranks must agree (allReduce), since a pull is left out on
/// all of them or on none.
/// Each rank computes the ghosts that its own tasks need. The bits equal the owners', since a functor is a function
/// of the rows that it declares and all of these are equal on both ranks.
void Placement::chooseRows(std::size_t t) {
    const TaskModel &task = graph_.tasks[t];
    bool recomputes = mayRecompute(task);
    if (recomputes && std::ranges::any_of(task.accesses, [&](const auto &a) { return dependsOnRank(graph_, a); })) {
        recomputes = false;
        plan_.notes.push_back(
            fmt::format("'{}' does not compute ghosts: it reads rows that each rank has others of", task.name));
    }
    RowMask rows = rowsOf(t, recomputes);
    const bool cannot = recomputes && (differFromOwners(task, rows) || findLack(graph_, task, rows));
    if (recomputes && comm_.allReduce(cannot ? 1 : 0, MPI_MAX) > 0) {
        recomputes = false; // its inputs are further away than the ghosts of some rank, or elsewhere
        plan_.notes.push_back(fmt::format("'{}' does not compute ghosts: on some rank they need rows which are not "
                                          "there, or are periodic images, or finished after pulls, or differ "
                                          "between ranks",
                                          task.name));
        rows = rowsOf(t, false);
    }
    comm_.guarded([&] {
        requireCopies(t, rows);
        requireWholeSums(task);
        if (const auto lack = findLack(graph_, task, rows))
            throwLack(graph_, task, *lack);
    });
    plan_.recomputes[t] = recomputes;
    plan_.taskRows[t] = std::move(rows);
}

/// For pairs the mask holds ghosts only, as owned rows are always computed; a task that writes one ends the demand,
/// because the next reader's pull or this task's own ghosts satisfy it. For arrays without ghosts it holds all rows;
/// only an unconditional overwrite ends the demand for a row.
/// `masks_` is the live set of the analysis: on entry the rows read by tasks after `t`, on exit the rows read by `t`
/// and later tasks.
void Placement::passDemand(std::size_t t) {
    const TaskModel &task = graph_.tasks[t];
    if (task.kind == TaskKind::Swap) {
        std::swap(masks_[task.accesses[0].array], masks_[task.accesses[1].array]);
        if (swapsFinished(task)) // a pull follows
            for (const ArrayAccess &access : task.accesses)
                masks_[access.array].clear();
        return;
    }
    for (const ArrayAccess &access : task.accesses) {
        RowMask &demand = masks_[access.array];
        if (!access.writes())
            continue;
        if (isPair(access.array))
            demand.clear();                                            // a pull follows, or the task computes them
        else if (access.mode == AccessMode::Writes && task.every == 1) // else the rows are kept in most runs
            demand -= rowsSeen(graph_, task, access, plan_.taskRows[t]);
    }
    for (const ArrayAccess &access : task.accesses)
        if (access.reads()) {
            RowMask seen = rowsSeen(graph_, task, access, plan_.taskRows[t]);
            if (isPair(access.array))
                seen &= RowMask(seen.size(), graph_.arrays[access.array]->owned(), seen.size());
            masks_[access.array] |= seen;
        }
}

/// Arrays without ghosts keep a run's results for the next one: rows read before they are written are needed at the
/// end, too.
/// A fixed point, as for loops in live-variable analysis: `kept` holds the demand at the end of a run and only grows,
/// so the rounds end after at most the sum of the arrays' rows; one or two are usual. A round is O(tasks x (rows +
/// adjacency entries)) and costs a few reductions a task.
void Placement::findRows() {
    findDiffering();
    std::vector<RowMask> kept = masks_;
    for (bool more = true; more;) {
        masks_ = kept;
        plan_.notes.clear();
        plan_.taskRows.assign(graph_.tasks.size(), {});
        plan_.recomputes.assign(graph_.tasks.size(), false);
        for (std::size_t t = graph_.tasks.size(); t-- > 0;) {
            if (graph_.tasks[t].kind == TaskKind::Loop)
                chooseRows(t);
            passDemand(t);
        }
        int grown = 0;
        for (std::size_t a = 0; a < masks_.size(); ++a)
            if (!isPair(a) && !kept[a].contains(masks_[a])) {
                kept[a] |= masks_[a];
                grown = 1;
            }
        more = comm_.allReduce(grown, MPI_MAX) > 0;
    }
}

/// Ranks differ in the ghosts that they need, but a pull is collective among peers, so one rank's stale read makes
/// all ranks pull: one reduction for all arrays of the task.
std::vector<std::size_t> Placement::staleReads(std::size_t t) {
    const TaskModel &task = graph_.tasks[t];
    std::vector<std::size_t> arrays;
    if (task.kind == TaskKind::Swap)
        return arrays;
    std::vector<int> stale;
    for (const ArrayAccess &access : task.accesses) {
        // Only reads of ghosts that a pull can renew.
        if (!access.reads() || !isPair(access.array) || access.range == AccessRange::Owned)
            continue;
        const index owned = graph_.arrays[access.array]->owned();
        RowMask need = rowsSeen(graph_, task, access, plan_.taskRows[t]);
        need &= RowMask(need.size(), owned, need.size());
        if (!written_[access.array])
            entryNeed_[access.array] |= need;
        // A task may read an array in several ways: one pull serves all.
        const auto known = std::ranges::find(arrays, access.array);
        const int isStale = masks_[access.array].contains(need) ? 0 : 1;
        if (known == arrays.end()) {
            arrays.push_back(access.array);
            stale.push_back(isStale);
        } else {
            int &before = stale[static_cast<std::size_t>(known - arrays.begin())];
            before = std::max(before, isStale);
        }
    }
    if (!stale.empty())
        comm_.allReduce(stale.data(), static_cast<int>(stale.size()), MPI_MAX);
    std::vector<std::size_t> pulled;
    for (std::size_t k = 0; k < arrays.size(); ++k)
        if (stale[k] != 0)
            pulled.push_back(arrays[k]);
    return pulled;
}

/// Pulls on one pattern become one transfer; it is conditional only if each of its arrays is. Pushes stay single, as
/// each combines with its own array.
/// O(arrays^2) for a task; local, with the same result on all ranks. Arrays are in the order of declaration, so fused
/// messages have the same members on both ends.
void Placement::addTransfers(std::size_t t, Direction direction, const std::vector<std::size_t> &arrays) {
    if (arrays.empty())
        return;
    ++number_;
    std::vector<Transfer> added;
    for (const std::size_t array : arrays) {
        const auto pattern = graph_.arrays[array]->pattern();
        const bool conditional = direction == Direction::Pull && options_.dropPulls && !written_[array];
        const auto together = std::ranges::find_if(added, [&](const Transfer &transfer) {
            return options_.fuse && transfer.pattern == pattern && direction == Direction::Pull;
        });
        if (together == added.end()) {
            added.push_back({direction, t, {array}, pattern, conditional, 0, number_});
        } else {
            together->arrays.push_back(array);
            together->conditional = together->conditional && conditional;
        }
    }
    plan_.transfers.insert(plan_.transfers.end(), added.begin(), added.end());
}

/// Writing makes all ghosts of a pair stale, except for rows that the task recomputed itself.
/// The reaching-definitions half of the analysis: `masks_` holds the ghosts whose latest values are here.
void Placement::passValidity(std::size_t t) {
    const TaskModel &task = graph_.tasks[t];
    if (task.kind == TaskKind::Swap) {
        const std::size_t a = task.accesses[0].array, b = task.accesses[1].array;
        for (const std::size_t array : {a, b})
            if (!written_[array]) // later readers of these contents take all pulled ghosts for current
                entryNeed_[array] |= masks_[array];
        std::swap(masks_[a], masks_[b]);
        if (swapsFinished(task)) {
            masks_[a].clear();
            masks_[b].clear();
        }
        written_[a] = written_[b] = true;
        return;
    }
    for (const ArrayAccess &access : task.accesses) {
        if (!access.writes())
            continue;
        RowMask &current = masks_[access.array];
        written_[access.array] = true;
        current.clear();
        if (task.kind == TaskKind::Loop && plan_.recomputes[t] && isPair(access.array)) {
            current |= rowsSeen(graph_, task, access, plan_.taskRows[t]);
            current &= RowMask(current.size(), graph_.arrays[access.array]->owned(), current.size());
        }
    }
}

/// At the start of a run no ghost counts as current: the pulls that this causes are conditional, and PlanHistory
/// drops them where earlier runs have left current ghosts.
/// One forward pass: O(tasks x (rows + adjacency entries)) time, one reduction for each task that reads arrays with
/// ghosts, and one at the end. All ranks insert the same transfers in the same order: reductions decide about pulls,
/// the graph alone about pushes.
void Placement::findTransfers() {
    masks_.clear();
    for (const auto &array : graph_.arrays) {
        masks_.emplace_back(array->size());
        entryNeed_.emplace_back(array->size());
    }
    written_.assign(masks_.size(), false);
    pulled_.assign(masks_.size(), false);
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
        // Before the task: pulls, after which all ghosts of the array are current.
        const std::vector<std::size_t> pulled = staleReads(t);
        addTransfers(t, Direction::Pull, pulled);
        for (const std::size_t array : pulled) {
            masks_[array].setRange(graph_.arrays[array]->owned(), masks_[array].size());
            pulled_[array] = true;
        }
        passValidity(t);
        // After the task: pushes of all sums in ghosts.
        std::vector<std::size_t> pushed;
        for (const ArrayAccess &access : graph_.tasks[t].accesses)
            if (access.mode == AccessMode::Adds && isPair(access.array))
                pushed.push_back(access.array);
        addTransfers(t, Direction::Push, pushed);
    }
    findOutcome();
}

/// A ghost counts as current after the run only if it is so on all ranks: one reduction for all arrays.
void Placement::findOutcome() {
    std::vector<int> holds;
    for (std::size_t a = 0; a < masks_.size(); ++a) {
        const ArrayHandle &array = *graph_.arrays[a];
        holds.push_back(masks_[a].contains(RowMask(array.size(), array.owned(), array.size())) ? 1 : 0);
        holds.push_back(masks_[a].contains(entryNeed_[a]) ? 1 : 0);
    }
    comm_.allReduce(holds.data(), static_cast<int>(holds.size()), MPI_MIN);
    for (std::size_t a = 0; a < masks_.size(); ++a)
        plan_.outcome.push_back(
            {written_[a], pulled_[a], isPair(a) && holds[2 * a] != 0, written_[a] && holds[2 * a + 1] != 0});
}

} // namespace

/// The transfer function of all analyses: the image of a set of rows under an access. O(rows / 64) for same rows and
/// ranges, O(adjacency entries of the rows) through an adjacency.
RowMask rowsSeen(const GraphModel &graph, const TaskModel & /*task*/, const ArrayAccess &access, const RowMask &rows) {
    const ArrayHandle &array = *graph.arrays[access.array];
    RowMask seen(array.size());
    switch (access.range) {
    case AccessRange::SameRow:
        if (rows.size() == seen.size())
            seen |= rows;
        else
            rows.forEach([&](index row) { seen.set(row); }); // the task has no rows beyond the array
        break;
    case AccessRange::Through:
        rows.forEach([&](index row) {
            for (const LocalIndex entry : access.adjacency.row(row))
                if (entry >= 0)
                    seen.set(entry);
        });
        break;
    case AccessRange::Whole:
        seen.setRange(0, array.size());
        break;
    case AccessRange::Owned:
        seen.setRange(0, array.owned());
        break;
    case AccessRange::Region:
        if (access.region->rows())
            access.region->rows()->forEach([&](index row) { seen.set(row); }); // the array has all of them
        else
            seen.setRange(0, access.region->space().owned());
        break;
    }
    return seen;
}

/// Rows first: validity of ghosts depends on which tasks compute ghosts themselves.
void placeTransfers(const GraphModel &graph, const CommunicatorView &comm, const CompileOptions &options,
                    PlanModel &plan) {
    Placement placement(graph, comm, options, plan);
    placement.findRows();
    placement.findTransfers();
}

} // namespace DNDS::Task
