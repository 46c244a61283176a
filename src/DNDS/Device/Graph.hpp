/// @file Graph.hpp
/// @brief Device work that is captured once and launched many times.
#pragma once

#include "DNDS/Base/Attempt.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <memory>
#include <utility>

namespace DNDS::Device {

/// Kernels and copies captured from a stream and from streams joined to it by events. Replaying costs one launch.
/// Move-only; Local.
///
///     const auto step = Device::Graph::capture(stream, [&] {
///         parallelFor(Executor::device(stream), faces, flux);
///         parallelFor(Executor::device(stream), cells, update);
///     });
///     for (int i = 0; i < steps; ++i)
///         step.launch(stream);
///
/// Kernel arguments and addresses are those of the capture: numbers that change from step to step belong in device
/// memory. Nothing may be allocated, waited for or sent while capturing, and memory that the graph uses must stay.
class Graph {
  public:
    /// Empty; cannot be launched.
    Graph() = default;

    /// Captures what `work` queues on `stream`, which must not be the default stream. Nothing runs. If `work` throws,
    /// the capture ends. @throws StateError if something cannot be captured.
    template <class Work>
    static Graph capture(StreamHandle stream, Work &&work) {
        beginCapture(stream);
        {
            const OnFailure undo([&] { // the active exception says more than that of the capture
                static_cast<void>(attempt([&] { destroyGraph(endCapture(stream)); }));
            });
            std::forward<Work>(work)();
        }
        Graph graph;
        graph.handle_.reset(endCapture(stream));
        return graph;
    }

    /// Whether there is a graph to launch.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /// Queues the graph as one entry of `stream`. @throws ArgumentError for an empty graph.
    void launch(StreamHandle stream) const { launchGraph(handle_.get(), stream); }

  private:
    std::unique_ptr<GraphImpl, EndBy<destroyGraph>> handle_;
};

} // namespace DNDS::Device
