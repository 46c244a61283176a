// Small tasks by StarPU: submitted each run, ordered by the data that they declare.

#include "Benchmarks.hpp"

#include <starpu.h>

#include <cstdlib>
#include <memory>

namespace DNDS::Bench {
namespace {

/// StarPU with some workers. They are threads of their own beside the one that submits.
class Runtime {
  public:
    Runtime(const SmallTasks &tasks, int threads)
        : tasks_(tasks), values_(toSize(tasks.tasks) + 1), calls_(values_.size()) {
        setenv("STARPU_SILENT", "1", 0); // NOLINT(concurrency-mt-unsafe)
        starpu_conf conf;
        starpu_conf_init(&conf);
        conf.ncpus = threads;
        conf.ncuda = conf.nopencl = 0;
        DNDS_CHECK(starpu_init(&conf) == 0, StateError, "StarPU does not start with {} workers", threads);
        starpu_codelet_init(&codelet_);
        codelet_.cpu_funcs[0] = [](void **, void *argument) {
            const Call &call = *static_cast<const Call *>(argument);
            call.tasks->task(call.tasks->context, call.number);
        };
        codelet_.nbuffers = 2;
        codelet_.modes[0] = STARPU_R;
        codelet_.modes[1] = STARPU_W;
        handles_.resize(values_.size());
        for (std::size_t k = 0; k < values_.size(); k++) {
            calls_[k] = {&tasks_, static_cast<int>(k)};
            starpu_variable_data_register(&handles_[k], STARPU_MAIN_RAM, reinterpret_cast<std::uintptr_t>(&values_[k]),
                                          sizeof(real));
        }
    }
    Runtime(const Runtime &) = delete;
    ~Runtime() {
        for (starpu_data_handle_t handle : handles_)
            starpu_data_unregister(handle);
        starpu_shutdown();
    }

    void run() {
        for (std::size_t k = 0; k < toSize(tasks_.tasks); k++) {
            starpu_task *task = starpu_task_create();
            task->cl = &codelet_;
            task->cl_arg = &calls_[k];
            task->cl_arg_size = sizeof(Call);
            task->handles[0] = handles_[tasks_.chain ? k : 0];
            task->handles[1] = handles_[k + 1];
            DNDS_CHECK(starpu_task_submit(task) == 0, StateError, "StarPU refuses task {}", k);
        }
        starpu_task_wait_for_all();
    }

  private:
    struct Call {
        const SmallTasks *tasks;
        int number;
    };
    const SmallTasks &tasks_;
    starpu_codelet codelet_{};
    std::vector<real> values_;
    std::vector<Call> calls_;
    std::vector<starpu_data_handle_t> handles_;
};

} // namespace

bool hasStarPu() { return true; }

std::vector<Contestant> starpuContestants(const SmallTasks &tasks, int threads) {
    const auto runtime = std::make_shared<Runtime>(tasks, threads);
    return {{"StarPU", {}, [runtime] { runtime->run(); }, {}}};
}

} // namespace DNDS::Bench
