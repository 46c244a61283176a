#include "DNDS/Index/Mappings.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace DNDS {

namespace {

/// Replaces the number of rows of a rank that has failed.
constexpr index failed = std::numeric_limits<index>::min();

} // namespace

// One allgather of a word a rank, then a prefix sum on each: O(ranks) time and memory, as of PETSc's PetscLayout.
std::shared_ptr<const GlobalMapping> GlobalMapping::create(CommunicatorView comm, index localRows) {
    auto context = CommunicatorContext::of(comm);
    const CommunicatorContext::SetUp setUp(*context);
    const std::uint64_t serial = context->nextSerial(); // before a rank can fail alone: ranks stay in step
    // All ranks see all sizes, so that each finds the same error, if any, without another agreement.
    const std::vector<index> sizes = context->comm().allGather(setUp.alone() ? localRows : failed);
    if (std::ranges::find(sizes, failed) != sizes.end())
        context->comm().guarded([&] { setUp.requireAlone(); });
    std::vector<index> offsets(sizes.size() + 1, 0);
    for (std::size_t r = 0; r < sizes.size(); ++r) {
        DNDS_CHECK(sizes[r] >= 0, ArgumentError, "rank {} owns {} rows; a number of rows cannot be negative", r,
                   sizes[r]);
        DNDS_CHECK(sizes[r] <= std::numeric_limits<index>::max() - offsets[r], ArgumentError,
                   "the rows up to rank {} exceed 2^63 - 1", r);
        offsets[r + 1] = offsets[r] + sizes[r];
    }
    return std::shared_ptr<const GlobalMapping>(
        new GlobalMapping(std::move(context), serial, comm.rank(), std::move(offsets)));
}

std::vector<index> GlobalMapping::ofOthers(std::span<const index> rows) const {
    std::vector<index> others;
    std::ranges::copy_if(rows, std::back_inserter(others), [&](index row) { return !isLocal(row); });
    return others;
}

OwnedRow GlobalMapping::owner(index global) const {
    DNDS_CHECK(contains(global), IndexError, "global row {} is outside 0 to {}", global, globalSize() - 1);
    // The last rank that begins at the row or before: ranks without rows begin where the next one does, and are
    // skipped.
    const auto above = std::upper_bound(offsets_.begin(), offsets_.end(), global);
    const auto rank = static_cast<int>(above - offsets_.begin()) - 1;
    return {rank, global - begin(rank)};
}

index GlobalMapping::toGlobal(int rank, index row) const {
    DNDS_CHECK(rank >= 0 && rank < ranks(), IndexError, "rank {} is outside 0 to {}", rank, ranks() - 1);
    DNDS_CHECK(row >= 0 && row < size(rank), IndexError, "rank {} has no row {}: it owns {} rows", rank, row,
               size(rank));
    return begin(rank) + row;
}

} // namespace DNDS
