#include "DNDS/Blocks/BlockGrid.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/RebalancedRuns.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace DNDS {

// Blocks keep their numbers and boxes, so that fields can follow (`hasBlocksOf`) and pushes keep their order. All ranks
// get the costs of all blocks and compute the same runs: see rebalancedRuns.
// Runs of a space-filling curve keep parts compact (Pilkington and Baden, Dynamic partitioning of non-uniform
// structured workloads with spacefilling curves, IEEE TPDS 7, 1996). Only ranks of blocks change, no field moves here.
std::shared_ptr<const BlockGrid> BlockGrid::rebalanced(const CommunicatorView &comm, std::span<const real> mine,
                                                       real imbalance) const {
    return failTogether(comm, [&] {
        DNDS_CHECK(ranks() <= comm.size(), ArgumentError, "the grid has blocks on {} ranks, there are {}", ranks(),
                   comm.size());
        std::vector<int> rankOf;
        std::ranges::transform(blocks_, std::back_inserter(rankOf), &Block::rank);
        rankOf = rebalancedRuns(comm, rankOf, mine, imbalance, "block");
        std::vector<Block> blocks = blocks_;
        for (std::size_t b = 0; b < blocks.size(); ++b)
            blocks[b].rank = rankOf[b];
        return std::shared_ptr<const BlockGrid>(
            new BlockGrid(spaces_, std::move(blocks), connections_, "runs of blocks of nearly equal costs"));
    });
}

} // namespace DNDS
