// Parts by oneTBB's own means.

#include "Benchmarks.hpp"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <memory>

namespace DNDS::Bench {

std::vector<Contestant> tbbContestants(const PartLoop &loop, int threads) {
    const auto arena = std::make_shared<tbb::task_arena>(threads);
    return {{"parallel_for",
             {},
             [=, &loop] {
                 arena->execute([&] {
                     for (int part = 0; part < loop.parts; part++)
                         tbb::parallel_for(tbb::blocked_range<index>(0, loop.chunks, 1),
                                           [&](const tbb::blocked_range<index> &range) {
                                               for (index c = range.begin(); c < range.end(); c++)
                                                   loop.chunk(loop.context, c);
                                           });
                 });
             },
             {}},
            {"task_group",
             {},
             [=, &loop] {
                 arena->execute([&] {
                     for (int part = 0; part < loop.parts; part++) {
                         tbb::task_group group;
                         for (index c = 0; c < loop.chunks; c++)
                             group.run([&loop, c] { loop.chunk(loop.context, c); });
                         group.wait();
                     }
                 });
             },
             {}}};
}

} // namespace DNDS::Bench
