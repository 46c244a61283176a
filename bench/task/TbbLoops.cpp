// Parts by oneTBB's own means.

#include "Benchmarks.hpp"

#include <oneapi/tbb/flow_graph.h>
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

std::vector<Contestant> flowContestants(const SmallTasks &tasks, int threads) {
    using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;
    struct Flow {
        tbb::task_arena arena;
        std::unique_ptr<tbb::flow::graph> graph;
        std::unique_ptr<tbb::flow::broadcast_node<tbb::flow::continue_msg>> start;
        std::vector<std::unique_ptr<Node>> nodes;
        explicit Flow(int count) : arena(count) {}
    };
    const auto flow = std::make_shared<Flow>(threads);
    flow->arena.execute([&] {
        flow->graph = std::make_unique<tbb::flow::graph>();
        flow->start = std::make_unique<tbb::flow::broadcast_node<tbb::flow::continue_msg>>(*flow->graph);
        for (int k = 0; k < tasks.tasks; k++) {
            flow->nodes.push_back(std::make_unique<Node>(
                *flow->graph, [&tasks, k](const tbb::flow::continue_msg &) { tasks.task(tasks.context, k); }));
            if (tasks.chain && k > 0)
                tbb::flow::make_edge(*flow->nodes[static_cast<std::size_t>(k) - 1], *flow->nodes.back());
            else
                tbb::flow::make_edge(*flow->start, *flow->nodes.back());
        }
    });
    return {{"flow graph",
             {},
             [flow] {
                 flow->arena.execute([&] {
                     flow->start->try_put(tbb::flow::continue_msg());
                     flow->graph->wait_for_all();
                 });
             },
             {}}};
}

} // namespace DNDS::Bench
