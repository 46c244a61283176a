#include "DNDS/Geom/File/NodeTags.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Mpi/SparseExchange.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace DNDS::Geom {

namespace {

int keeperOf(index tag, int ranks) {
    return static_cast<int>(mixBits(static_cast<std::uint64_t>(tag)) % static_cast<std::uint64_t>(ranks));
}

/// Where tag - number is the same for all nodes of all ranks: that difference. Collective.
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

/// Records of `width` numbers, addressed to the keepers of their first number.
RankLists address(std::span<const index> records, std::size_t width, int ranks) {
    std::vector<std::size_t> starts(static_cast<std::size_t>(ranks) + 1, 0);
    for (std::size_t i = 0; i < records.size(); i += width)
        starts[static_cast<std::size_t>(keeperOf(records[i], ranks)) + 1] += width;
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    RankLists lists;
    lists.values.resize(records.size());
    for (std::size_t rank = 0; rank + 1 < starts.size(); rank++)
        if (starts[rank + 1] > starts[rank]) {
            lists.ranks.push_back(static_cast<int>(rank));
            lists.starts.push_back(static_cast<index>(starts[rank + 1]));
        }
    for (std::size_t i = 0; i < records.size(); i += width) {
        std::size_t &at = starts[static_cast<std::size_t>(keeperOf(records[i], ranks))];
        std::copy_n(records.begin() + static_cast<std::ptrdiff_t>(i), width,
                    lists.values.begin() + static_cast<std::ptrdiff_t>(at));
        at += width;
    }
    return lists;
}

using TagNumber = std::pair<index, index>;

/// The nodes whose tags this rank keeps, in the order of tags. Collective.
std::vector<TagNumber> keepTags(CommunicatorView comm, std::span<const index> ownTags, index firstNode,
                                const std::string &origin) {
    std::vector<index> records;
    records.reserve(2 * ownTags.size());
    for (std::size_t i = 0; i < ownTags.size(); i++)
        records.insert(records.end(), {ownTags[i], firstNode + static_cast<index>(i)});
    const RankLists received = sparseExchange(*CommunicatorContext::of(comm), address(records, 2, comm.size()));
    std::vector<TagNumber> kept;
    kept.reserve(received.values.size() / 2);
    for (std::size_t i = 0; i < received.values.size(); i += 2)
        kept.emplace_back(received.values[i], received.values[i + 1]);
    std::sort(kept.begin(), kept.end());
    comm.guarded([&] {
        for (std::size_t i = 1; i < kept.size(); i++)
            DNDS_CHECK(kept[i].first != kept[i - 1].first, DataError,
                       "{}: two nodes, the {}th and the {}th, have the tag {}", origin, kept[i - 1].second + 1,
                       kept[i].second + 1, kept[i].first);
    });
    return kept;
}

} // namespace

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
    const auto context = CommunicatorContext::of(comm);
    const RankLists asked = address(wanted, 1, comm.size());
    RankLists answers = sparseExchange(*context, asked);
    for (index &tag : answers.values) {
        const auto at = std::lower_bound(kept.begin(), kept.end(), TagNumber{tag, std::numeric_limits<index>::min()});
        tag = at != kept.end() && at->first == tag ? at->second : InvalidIndex;
    }
    answers = sparseExchange(*context, answers); // come back in the order asked

    std::vector<TagNumber> known;
    known.reserve(wanted.size());
    for (std::size_t i = 0; i < asked.values.size(); i++)
        known.emplace_back(asked.values[i], answers.values[i]);
    std::sort(known.begin(), known.end());
    for (index &reference : references)
        reference =
            std::lower_bound(known.begin(), known.end(), TagNumber{reference, std::numeric_limits<index>::min()})
                ->second;
}

} // namespace DNDS::Geom
