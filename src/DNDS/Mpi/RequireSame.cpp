#include "DNDS/Mpi/RequireSame.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/BroadcastList.hpp"

#include <array>

namespace DNDS {

bool isSameOnAll(const CommunicatorView &comm, std::uint64_t key) {
    std::array<std::uint64_t, 2> extremes{key, ~key}; // the largest and, inverted, the smallest of all ranks
    comm.allReduce(extremes.data(), 2, MPI_MAX);
    return extremes[0] == ~extremes[1];
}

void requireSame(const CommunicatorView &comm, std::span<const std::string> mine,
                 const std::function<void(std::size_t k, const std::string *first)> &complain) {
    ContentHash hash;
    for (const std::string &text : mine) {
        hash.add(text.size());
        hash.addText(text);
    }
    if (isSameOnAll(comm, hash.value())) [[likely]]
        return;
    std::vector<std::string> first;
    comm.guarded([&] { first.assign(mine.begin(), mine.end()); });
    broadcastStrings(comm, first);
    comm.guarded([&] {
        for (std::size_t k = 0; k < std::max(mine.size(), first.size()); ++k)
            if (k >= mine.size() || k >= first.size() || mine[k] != first[k])
                complain(k, k < first.size() ? &first[k] : nullptr);
    });
}

} // namespace DNDS
