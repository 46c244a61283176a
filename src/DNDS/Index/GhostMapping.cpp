#include "DNDS/Base/Error.hpp"
#include "DNDS/Index/Mappings.hpp"

#include "DNDS/Index/SortUnique.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

namespace DNDS {

namespace {

/// Thrown on this rank alone unless called within an agreement.
void requireGlobal(const std::shared_ptr<const GlobalMapping> &global) {
    DNDS_CHECK(global != nullptr, StateError, "a ghost mapping needs a global mapping: create the father's first");
}

std::shared_ptr<const GhostMapping> fromRequest(const GhostMapping::PullRequest &request, PeerDiscovery discovery) {
    requireGlobal(request.global);
    return GhostMapping::fromPullList(
        *request.global->context(), [&] { return request; }, discovery);
}

/// Sorted ghosts split by owner. Owners' ranges ascend, so each owner's ghosts are found by one bisection: O(peers
/// (log ranks + log ghosts)).
RankLists splitByOwner(const GlobalMapping &global, std::vector<index> sorted) {
    RankLists lists;
    for (std::size_t at = 0; at < sorted.size();) {
        const int owner = global.owner(sorted[at]).rank;
        const auto last =
            std::lower_bound(sorted.begin() + static_cast<std::ptrdiff_t>(at), sorted.end(), global.end(owner));
        at = static_cast<std::size_t>(last - sorted.begin());
        lists.ranks.push_back(owner);
        lists.starts.push_back(static_cast<index>(at));
    }
    lists.values = std::move(sorted);
    return lists;
}

/// Whether the rows of each list, which ascend, belong to the rank of the list: the first and the last one decide.
/// O(peers).
template <class OwnerOf>
bool areOwned(const GlobalMapping &global, const RankLists &lists, OwnerOf &&ownerOf) {
    for (std::size_t k = 0; k < lists.size(); ++k) {
        const int owner = ownerOf(lists.ranks[k]);
        const auto rows = lists.list(k);
        if (!rows.empty() && (rows.front() < global.begin(owner) || rows.back() >= global.end(owner)))
            return false;
    }
    return true;
}

} // namespace

// Agrees on a mapping by one reduction of four words: whether numbering and name are the same on all ranks, all rows
// belong to their ranks, and no rank has failed. Ranks exchange details only if one of these is false. O(own ghosts).
// Invariant of the result: the reader's list for an owner and the owner's list for that reader hold the same rows in
// the same order. Exchanges rely on it: messages carry no row numbers.
std::shared_ptr<const GhostMapping> GhostMapping::make(CommunicatorContext &context,
                                                       std::shared_ptr<const GlobalMapping> global, RankLists ghosts,
                                                       RankLists wanted, std::string_view name) {
    const CommunicatorView &comm = context.comm();
    const std::uint64_t serial = context.nextSerial();
    // Two numberings of one serial may belong to different communicators.
    const bool owned = areOwned(*global, ghosts, [](int rank) { return rank; }) &&
                       areOwned(*global, wanted, [&](int) { return comm.rank(); });
    std::string mine;
    std::shared_ptr<const GhostMapping> made;
    const std::exception_ptr failure = attempt([&] {
        const std::string of = name.empty() ? std::string() : fmt::format(", '{}'", name);
        mine = fmt::format("numbering {}{}", global->serial(), of);
        for (index &row : wanted.values)
            row -= global->localBegin();
        made.reset(new GhostMapping(std::move(global), serial, std::move(ghosts), std::move(wanted)));
    });
    // The keys of all ranks are equal if the largest key and, inverted, the smallest are.
    const std::uint64_t key = std::hash<std::string>()(mine);
    std::array<std::uint64_t, 4> most{key, ~key, owned ? 0U : 1U, failure ? 1U : 0U};
    comm.allReduce(most.data(), 4, MPI_MAX);
    if (most[3] != 0)
        comm.agree(failure);
    if (most[0] != ~most[1])
        requireSame(comm, std::span(&mine, 1), [&](std::size_t, const std::string *first) {
            throw StateError(
                fmt::format("rank {} makes ghosts of {} where rank 0 makes those of {}: make numberings and ghosts in "
                            "the same order on all ranks",
                            comm.rank(), mine, *first));
        });
    if (most[2] != 0)
        comm.guarded([&] {
            DNDS_CHECK(
                owned, IndexError,
                "ghosts that rank {} makes, or gives, are not rows of their owners: ranks use different numberings",
                comm.rank());
        });
    return made;
}

std::shared_ptr<const GhostMapping> GhostMapping::fromPullList(std::shared_ptr<const GlobalMapping> global,
                                                               std::span<const index> pullRows,
                                                               PeerDiscovery discovery) {
    return fromRequest({std::move(global), pullRows}, discovery);
}

std::shared_ptr<const GhostMapping> GhostMapping::fromRepeatedPullList(std::shared_ptr<const GlobalMapping> global,
                                                                       std::span<const index> pullRows,
                                                                       PeerDiscovery discovery) {
    return fromRequest({std::move(global), pullRows, {}, true}, discovery);
}

// Sorts the list, splits it by owner and sends each owner its part: one sparse exchange, O(n) for n rows. Invariant:
// requests ascend on both ends, so that the ghosts of one owner are contiguous and need no unpacking by index.
std::shared_ptr<const GhostMapping> GhostMapping::fromPullList(CommunicatorContext &context,
                                                               const std::function<PullRequest()> &describe,
                                                               PeerDiscovery discovery) {
    const CommunicatorContext::SetUp setUp(context);
    RankLists ghosts;
    std::shared_ptr<const GlobalMapping> global;
    std::string_view name;
    std::exception_ptr failure;
    try { // here, so that errors name this function
        setUp.requireAlone();
        const PullRequest request = describe();
        global = request.global;
        name = request.name;
        requireGlobal(global);
        DNDS_CHECK(
            global->ranks() == context.comm().size() && global->rank() == context.comm().rank(), ArgumentError,
            "the numbering is one of {} ranks, in which this one is rank {}; the ghosts are for a communicator of "
            "{} ranks: number the rows on the communicator of their array",
            global->ranks(), global->rank(), context.comm().size());
        const std::span<const index> pullRows = request.pullRows;
        DNDS_CHECK(!request.repeats || std::ranges::is_sorted(pullRows), ArgumentError,
                   "a pull list of {} rows with repeats does not ascend", pullRows.size());
        std::vector<index> sorted =
            request.repeats ? std::vector<index>(pullRows.begin(), pullRows.end()) : sortedUnique(pullRows);
        if (!sorted.empty() && !(global->contains(sorted.front()) && global->contains(sorted.back()))) {
            const auto bad =
                std::find_if(pullRows.begin(), pullRows.end(), [&](index row) { return !global->contains(row); });
            throw IndexError(fmt::format("entry {} of the pull list is global row {}, but global rows are 0 to {}",
                                         bad - pullRows.begin(), *bad, global->globalSize() - 1));
        }
        ghosts = splitByOwner(*global, std::move(sorted));
    } catch (...) {
        failure = std::current_exception();
    }
    RankLists wanted = sparseExchange(context, ghosts, discovery, failure);
    return make(context, std::move(global), std::move(ghosts), std::move(wanted), name);
}

// O(pushed rows) and one sparse exchange, the converse of a pull list: each reader receives its ghosts sorted, from
// owners in ascending order of ranks, so its ghosts ascend as a whole.
std::shared_ptr<const GhostMapping> GhostMapping::fromPushList(std::shared_ptr<const GlobalMapping> global,
                                                               std::span<const index> localRows,
                                                               std::span<const index> starts, PeerDiscovery discovery,
                                                               std::string_view name) {
    requireGlobal(global);
    // The converse of a pull list: readers are told their ghosts as global rows, sorted, so that both ends again
    // have the same order. One sparse exchange.
    RankLists given;
    CommunicatorContext &context = *global->context();
    const CommunicatorContext::SetUp setUp(context);
    context.comm().guarded([&] {
        setUp.requireAlone();
        const auto ranks = static_cast<std::size_t>(global->ranks());
        DNDS_CHECK(starts.size() == ranks + 1, ArgumentError, "the push list has {} starts; {} ranks need {}",
                   starts.size(), ranks, ranks + 1);
        DNDS_CHECK(starts.front() == 0 && starts.back() == static_cast<index>(localRows.size()) &&
                       std::is_sorted(starts.begin(), starts.end()),
                   ArgumentError, "the starts of a push list must ascend from 0 to its length {}", localRows.size());
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const auto rows = localRows.subspan(static_cast<std::size_t>(starts[rank]),
                                                static_cast<std::size_t>(starts[rank + 1] - starts[rank]));
            const std::vector<index> sorted = sortedUnique(rows);
            if (sorted.empty())
                continue;
            const index bad = sorted.front() < 0 ? sorted.front() : sorted.back();
            DNDS_CHECK(bad >= 0 && bad < global->localSize(), IndexError,
                       "the push list for rank {} has row {}, but this rank owns {} rows", rank, bad,
                       global->localSize());
            given.append(static_cast<int>(rank), sorted);
        }
        for (index &row : given.values)
            row += global->localBegin();
    });
    RankLists ghosts = sparseExchange(context, given, discovery);
    return make(context, std::move(global), std::move(ghosts), std::move(given), name);
}

std::optional<index> GhostMapping::findGhost(index global) const noexcept {
    // Sorted by owner, then by row: that is by row, since owners' ranges ascend with their ranks.
    const auto found = std::lower_bound(ghosts_.values.begin(), ghosts_.values.end(), global);
    if (found == ghosts_.values.end() || *found != global)
        return std::nullopt;
    return found - ghosts_.values.begin();
}

// Owned rows win over a ghost of an own row (periodic meshes): the owned one is current without a pull.
std::optional<index> GhostMapping::toLocal(index global) const noexcept {
    if (global_->isLocal(global))
        return global - global_->localBegin();
    const auto ghost = findGhost(global);
    if (!ghost)
        return std::nullopt;
    return fatherSize() + *ghost;
}

index GhostMapping::toGlobal(index local) const {
    DNDS_CHECK(local >= 0 && local < fatherSize() + ghostSize(), IndexError,
               "local row {} is outside 0 to {} ({} owned rows, then {} ghosts)", local, fatherSize() + ghostSize() - 1,
               fatherSize(), ghostSize());
    return local < fatherSize() ? global_->localBegin() + local
                                : ghosts_.values[static_cast<std::size_t>(local - fatherSize())];
}

// One bisection an entry; adjacency is translated once per mesh, so no hash table is kept.
std::vector<LocalIndex> GhostMapping::toLocal(std::span<const index> global) const {
    // Checked once for the whole list: afterwards every local number fits 32 bits.
    DNDS_CHECK(fatherSize() + ghostSize() <= std::numeric_limits<LocalIndex>::max(), ArgumentError,
               "{} owned rows and {} ghosts do not fit 32-bit local numbers", fatherSize(), ghostSize());
    std::vector<LocalIndex> local(global.size());
    for (std::size_t i = 0; i < global.size(); ++i) {
        const auto row = toLocal(global[i]);
        DNDS_CHECK(row.has_value(), IndexError,
                   "entry {} is global row {}, which this rank neither owns nor has as a ghost", i, global[i]);
        local[i] = static_cast<LocalIndex>(*row);
    }
    return local;
}

} // namespace DNDS
