// One rank alone has no memory for the n-th allocation while blocks are set up: all ranks throw, and what was set up
// before still works. This source replaces operator new of the program (support/FailingAllocations.hpp).

#include "DNDS/Blocks/NdArray.hpp"

#include "DNDS/Blocks/BlockCase.hpp"
#include "support/FailingAllocations.hpp"
#include "support/World.hpp"

namespace DNDS::test {
namespace {

TEST(BlocksOutOfMemory, EndsTheSetUpOnAllRanks) {
    if (world().size() > 4)
        GTEST_SKIP() << "runs with fewer ranks tell it, and faster";
    constexpr int samples = 60;
    const IndexSpace space{"box", Box({0, 0}, {12, 10}), {true, false}};
    const auto kept = BlockGrid::blocksOf(world(), space, {4, 5});
    BlockField<real> u("u", world(), kept, {.ghosts = {1, 1}, .components = 2});
    failEverywhere(samples, [&] { (void)BlockGrid::blocksOf(world(), space, {4, 5}); });
    failEverywhere(samples, [&] { (void)BlockGrid::cut(world(), space); });
    failEverywhere(samples, [&] { BlockField<real>("u", world(), kept, {.ghosts = {1, 1}, .components = 2}); });
    failEverywhere(samples, [&] {
        NdArray<float> a("a");
        a.decompose(world(), {12, 10}, 0, {}, {1, 1}, {true, true});
    });
    failEverywhere(
        samples, [&] { u.initExchangeGhosts(); }, Outcome::ThrowsOrDoesWithout);
    expectExchanges(u, modulo(space));
}

} // namespace
} // namespace DNDS::test
