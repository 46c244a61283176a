#include "DNDS/Geom/File/NodeTags.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace DNDS::Geom {

namespace {

/// Tags may be sparse and clustered: a hash spreads them evenly.
int keeperOf(index tag, int ranks) {
    return static_cast<int>(mixBits(static_cast<std::uint64_t>(tag)) % static_cast<std::uint64_t>(ranks));
}

/// The difference tag - number if it is the same for all nodes of all ranks. Collective.
/// One reduction of two numbers; most files number their nodes without gaps.
/// O(own nodes) time. If the difference is the same everywhere, a tag names its node without a table and without
/// messages.
bool areConsecutive(CommunicatorView comm, std::span<const index> ownTags, index firstNode, index &difference) {
    std::array<index, 2> extremes{std::numeric_limits<index>::max(), std::numeric_limits<index>::max()};
    for (std::size_t i = 0; i < ownTags.size(); i++) {
        const index here = ownTags[i] - firstNode - static_cast<index>(i);
        extremes[0] = std::min(extremes[0], here);
        extremes[1] = std::min(extremes[1], -here);
    }
    comm.allReduce(extremes.data(), 2, MPI_MIN);
    difference = extremes[0];
    return extremes[0] == -extremes[1];
}

using TagNumber = std::pair<index, index>;

/// The nodes whose tags this rank keeps, in the order of tags. Collective.
/// Equal tags meet at one rank, which finds duplicates by sorting.
/// One exchange of two words a node; O(kept log kept) time. Sorted by tag, then number, so the error names the same
/// pair of nodes on any number of ranks if only one tag repeats.
std::vector<TagNumber> keepTags(CommunicatorView comm, std::span<const index> ownTags, index firstNode,
                                const std::string &origin) {
    std::vector<TagNumber> kept;
    for (const auto &[tag, number] : exchangeRecords(
             *CommunicatorContext::of(comm), ownTags.size(),
             [&](std::size_t i) { return keeperOf(ownTags[i], comm.size()); },
             [&](std::size_t i) {
                 return std::array{ownTags[i], firstNode + static_cast<index>(i)};
             }))
        kept.emplace_back(tag, number);
    std::sort(kept.begin(), kept.end());
    comm.guarded([&] {
        for (std::size_t i = 1; i < kept.size(); i++)
            DNDS_CHECK(kept[i].first != kept[i - 1].first, DataError,
                       "{}: nodes {} and {} (in file order) have the same tag {}", origin, kept[i - 1].second + 1,
                       kept[i].second + 1, kept[i].first);
    });
    return kept;
}

} // namespace

// Both ways give the same numbers; consecutive tags need no messages but two reductions.
// With gaps: one exchange for the table and one query for distinct references; O((own nodes + references) log)
// time. A tag without a node becomes InvalidIndex, which the caller reports with the place of the element.
void numberTags(CommunicatorView comm, std::span<const index> ownTags, index firstNode, std::span<index> references,
                const std::string &origin) {
    index difference = 0;
    if (areConsecutive(comm, ownTags, firstNode, difference)) {
        const index nodes = comm.allReduce(static_cast<index>(ownTags.size()), MPI_SUM);
        for (index &reference : references)
            reference =
                reference >= difference && reference - difference < nodes ? reference - difference : InvalidIndex;
        return;
    }
    const std::vector<TagNumber> kept = keepTags(comm, ownTags, firstNode, origin);

    std::vector<index> wanted(references.begin(), references.end());
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    std::vector<index> numbers(wanted.size());
    queryOwners(
        *CommunicatorContext::of(comm), wanted.size(), [&](std::size_t i) { return keeperOf(wanted[i], comm.size()); },
        [&](std::size_t i) { return wanted[i]; },
        [&](index tag, std::vector<index> &reply) {
            const auto at =
                std::lower_bound(kept.begin(), kept.end(), TagNumber{tag, std::numeric_limits<index>::min()});
            reply.push_back(at != kept.end() && at->first == tag ? at->second : InvalidIndex);
        },
        [&](std::size_t i, RecordReader &reader) { numbers[i] = reader.next(); });
    for (index &reference : references)
        reference = numbers[static_cast<std::size_t>(std::lower_bound(wanted.begin(), wanted.end(), reference) -
                                                     wanted.begin())];
}

} // namespace DNDS::Geom
