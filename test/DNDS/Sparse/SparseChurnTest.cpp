// Blocks that come and go, again and again: nothing may grow. As many steps as fit in 20 s;
// DNDS_TEST_SPARSE_STEPS=1000000 takes so many, however long that lasts.

#include "DNDS/Mpi/Survival.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseFields.hpp"

#include <chrono>
#include <cstdlib>
#include <random>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

/// Two species of different sizes on a few blocks; blocks go after one exchange in which they are empty.
struct Churn {
    std::shared_ptr<const BlockGrid> grid =
        BlockGrid::blocksOf(world(), {"plane", Box({0, 0}, {16, 18}), {true, true}}, {4, 6});
    std::shared_ptr<const SparsePattern> pattern = SparsePattern::make(world(), grid, {1, 1});
    SparseField<real> dust{"dust", pattern, {.stages = 2, .deallocationCount = 1}};
    SparseField<float> soot{"soot", pattern, {.components = 3, .deallocationCount = 2}};
    SparseFields species{"species", {&dust, &soot}};
    std::mt19937_64 draws{seed()}; ///< the same on all ranks

    std::uint64_t draw(std::uint64_t limit) { return draws() % limit; }
    template <class T>
    void change(SparseField<T> &field) {
        const int b = pattern->localOf(static_cast<int>(draw(grid->blocks().size())));
        const std::uint64_t what = draw(4);
        const IndexVector cell{static_cast<index>(draw(4)), static_cast<index>(draw(6))};
        if (b < 0)
            return;
        if (what == 0) {
            field.free(b);
        } else if (what == 1 && field.isAllocated(b)) { // to be freed by exchanges
            const auto u = field.view(b);
            for (index n = 0; n < u.size(); ++n)
                for (rowsize c = 0; c < u.components(); ++c)
                    at(u, {u.indexOf(n, 0), u.indexOf(n, 1)}, c) = 0;
        } else {
            field.allocate(b);
            at(field.view(b), cell, 0) = what == 2 ? T(1) : T(0);
        }
    }
    void step() {
        if (draw(3) == 0)
            species.exchangeGhosts();
        else if (draw(2) == 0)
            change(dust);
        else
            change(soot);
    }
    std::size_t blocksThere() const { return dust.allocatedBlocks().size() + soot.allocatedBlocks().size(); }
    /// Memory of all blocks of both species.
    std::size_t maxBytes() const {
        std::size_t bytes = 0;
        for (const BlockMemory &block : pattern->blocks())
            bytes += roundedSize(toSize(block.rows) * 2 * sizeof(real)) +
                     roundedSize(toSize(block.rows) * 3 * sizeof(float));
        return bytes;
    }
};

// DNDS_TEST_SPARSE_STEPS=NUMBER: blocks come and go for so many steps, instead of 20 s or a million steps.
TEST(SparseChurn, NothingGrows) {
    const char *const asked = std::getenv("DNDS_TEST_SPARSE_STEPS"); // NOLINT(concurrency-mt-unsafe)
    const std::int64_t most = asked != nullptr ? std::atoll(asked) : 1'000'000;
    constexpr double secondsInCi = 20;
    constexpr std::int64_t between = 2000; // looks at memory and clock
    Churn churn;
    const auto begin = std::chrono::steady_clock::now();
    std::size_t residentAtFirst = 0;
    std::size_t buffersAtFirst = 0;
    std::int64_t steps = 0;
    for (bool enough = false; !enough;) {
        for (std::int64_t k = 0; k < between; ++k)
            churn.step();
        steps += between;
        const PoolUse use = churn.pattern->pool().use();
        ASSERT_EQ(use.liveObjects, churn.blocksThere());
        ASSERT_LE(use.peak, churn.maxBytes());
        if (steps == 10 * between) { // all that is used again has been used
            residentAtFirst = residentBytes();
            buffersAtFirst = churn.species.traffic().bufferBytes;
        }
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        const bool late = asked == nullptr && steps > 10 * between && seconds.count() > secondsInCi;
        enough = world().allReduce(steps >= most || late ? 1 : 0, MPI_MAX) != 0;
    }
    const SparseTraffic traffic = churn.species.traffic();
    EXPECT_GT(traffic.exchanges, 0U);
    EXPECT_EQ(traffic.bufferBytes, buffersAtFirst);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which keep memory that was freed
    constexpr std::size_t noise = std::size_t{4} << 20U;            // of MPI and the allocator
    EXPECT_LE(residentBytes(), residentAtFirst + noise);
#endif
    if (world().rank() == 0)
        fmt::print("{} steps, {} exchanges, {} blocks came and {} went by themselves on rank 0; {} kB more than after "
                   "{} steps\n",
                   steps, traffic.exchanges, traffic.allocations, traffic.frees,
                   (static_cast<std::int64_t>(residentBytes()) - static_cast<std::int64_t>(residentAtFirst)) / 1024,
                   10 * between);
}

} // namespace
} // namespace DNDS::test
