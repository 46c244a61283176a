#include "DNDS/Index/GhostMapping.hpp"

#include "DNDS/Index/SortUnique.hpp"

#include <algorithm>

namespace DNDS {

namespace {

void requireGlobal(const std::shared_ptr<const GlobalMapping> &global) {
    DNDS_CHECK(global != nullptr, StateError, "a ghost mapping needs a global mapping: create the father's first");
}

/// Sorted ghosts split by owner.
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

} // namespace

std::shared_ptr<const GhostMapping> GhostMapping::fromPullList(std::shared_ptr<const GlobalMapping> global,
                                                               std::span<const index> pullRows,
                                                               PeerDiscovery discovery) {
    requireGlobal(global);
    return fromPullList(
        *global->context(),
        [&] {
            return PullRequest{global, pullRows};
        },
        discovery);
}

std::shared_ptr<const GhostMapping> GhostMapping::fromPullList(CommunicatorContext &context,
                                                               const std::function<PullRequest()> &describe,
                                                               PeerDiscovery discovery) {
    RankLists ghosts;
    std::shared_ptr<const GlobalMapping> global;
    std::exception_ptr failure;
    try {
        const PullRequest request = describe();
        global = request.global;
        requireGlobal(global);
        const std::span<const index> pullRows = request.pullRows;
        std::vector<index> sorted = sortedUnique(pullRows);
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
    for (index &row : wanted.values)
        row -= global->localBegin();
    return std::shared_ptr<const GhostMapping>(
        new GhostMapping(std::move(global), std::move(ghosts), std::move(wanted)));
}

std::shared_ptr<const GhostMapping> GhostMapping::fromRepeatedPullList(std::shared_ptr<const GlobalMapping> global,
                                                                       std::span<const index> pullRows,
                                                                       PeerDiscovery discovery) {
    requireGlobal(global);
    RankLists ghosts;
    std::exception_ptr failure;
    try {
        DNDS_CHECK(std::is_sorted(pullRows.begin(), pullRows.end()), ArgumentError,
                   "a pull list of {} rows with repeats does not ascend", pullRows.size());
        DNDS_CHECK(pullRows.empty() || (global->contains(pullRows.front()) && global->contains(pullRows.back())),
                   IndexError, "the pull list has rows {} to {}, but global rows are 0 to {}", pullRows.front(),
                   pullRows.back(), global->globalSize() - 1);
        ghosts = splitByOwner(*global, {pullRows.begin(), pullRows.end()});
    } catch (...) {
        failure = std::current_exception();
    }
    RankLists wanted = sparseExchange(*global->context(), ghosts, discovery, failure);
    for (index &row : wanted.values)
        row -= global->localBegin();
    return std::shared_ptr<const GhostMapping>(
        new GhostMapping(std::move(global), std::move(ghosts), std::move(wanted)));
}

std::shared_ptr<const GhostMapping> GhostMapping::fromPushList(std::shared_ptr<const GlobalMapping> global,
                                                               std::span<const index> localRows,
                                                               std::span<const index> starts, PeerDiscovery discovery) {
    requireGlobal(global);
    RankLists given;
    CommunicatorContext &context = *global->context();
    context.comm().guarded([&] {
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
    for (index &row : given.values)
        row -= global->localBegin();
    return std::shared_ptr<const GhostMapping>(
        new GhostMapping(std::move(global), std::move(ghosts), std::move(given)));
}

std::optional<index> GhostMapping::findGhost(index global) const noexcept {
    const auto found = std::lower_bound(ghosts_.values.begin(), ghosts_.values.end(), global);
    if (found == ghosts_.values.end() || *found != global)
        return std::nullopt;
    return found - ghosts_.values.begin();
}

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

std::vector<LocalIndex> GhostMapping::toLocal(std::span<const index> global) const {
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
