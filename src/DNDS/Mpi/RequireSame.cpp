#include "DNDS/Mpi/FailTogether.hpp"

#include "DNDS/Base/ContentHash.hpp"

#include <array>

namespace DNDS {

bool isSameOnAll(const CommunicatorView &comm, std::uint64_t key) {
    // One reduction instead of two: the complement turns a minimum into a maximum.
    std::array<std::uint64_t, 2> extremes{key, ~key}; // the largest and, inverted, the smallest of all ranks
    comm.allReduce(extremes.data(), 2, MPI_MAX);
    return extremes[0] == ~extremes[1];
}

bool isSameOnAll(const CommunicatorView &comm, std::span<const std::string> texts) {
    ContentHash hash;
    for (const std::string &text : texts) {
        // Sizes, too, so that the ends of texts count: "ab", "c" differs from "a", "bc".
        hash.add(text.size());
        hash.addText(text);
    }
    return isSameOnAll(comm, hash.value());
}

} // namespace DNDS
