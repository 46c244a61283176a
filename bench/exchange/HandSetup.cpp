/// @file HandSetup.cpp
/// @brief The hand-written set-up, stage by stage.
#include "RawMpi.hpp"
#include "SetupMethod.hpp"

#include <memory>

namespace DNDS::Bench {

std::vector<SetupMethod> handSetups(CommunicatorView comm, const Problem &problem, const double *father, int width) {
    struct State {
        PullPlan plan;
        std::unique_ptr<RawMpi> pull;
    };
    auto state = std::make_shared<State>();
    const auto makePlan = [state, comm, &problem] {
        state->plan = PullPlan::make(comm, problem.offsets, problem.pullList);
    };
    const auto bind = [state, comm, father, width, makePlan] {
        makePlan();
        state->pull = std::make_unique<RawMpi>(comm, state->plan, father, width);
    };
    const auto release = [state] {
        state->pull.reset();
        state->plan = {};
    };
    std::vector<SetupMethod> methods;
    methods.push_back({RawMpiName, "mapping", makePlan, release});
    methods.push_back({RawMpiName, "bound", bind, release});
    methods.push_back({RawMpiName, "first_pull",
                       [state, bind] {
                           bind();
                           state->pull->pull();
                       },
                       release});
    return methods;
}

} // namespace DNDS::Bench
