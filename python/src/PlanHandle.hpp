/// @file PlanHandle.hpp
/// @brief A plan for Python, with the objects that it runs and keeps alive.
#pragma once

#include "Tasks.hpp"

#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Task/Plan.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace DNDS::Python {

/// A plan and its Python objects, which the garbage collector sees here and nowhere else.
struct PlanHandle {
    /// A field that the plan uses, with the ghosts for which it was compiled.
    struct Used {
        Field *field;
        std::shared_ptr<const ExchangePattern> pattern;
        bool entered = false;  ///< some pull depends on what a run finds
        bool finished = false; ///< its pulls are finished, so that those of others are not enough
    };

    std::string name;
    CommPtr comm;
    std::shared_ptr<PythonFailure> failure;
    std::vector<nanobind::object> kept;
    std::vector<Used> fields;
    std::optional<Task::Plan> plan; ///< after `kept`; none once the garbage collector has taken it
    std::shared_ptr<CommunicatorContext> context;
    std::unique_ptr<MessageReduction> written; ///< tells all ranks which fields were written
    bool running = false;

    /// Runs the plan once. Called with Python's lock. On all ranks.
    void run();
    /// Collective.
    void recover();
    /// Throws StateError where the garbage collector has taken it.
    Task::Plan &get();

  private:
    void runOnce();
    /// Throws StateError.
    void requireReady();
    bool isCurrent(const Used &used) const;
    /// Agrees with all ranks on which fields were written since the last run.
    void meet();
};

} // namespace DNDS::Python
