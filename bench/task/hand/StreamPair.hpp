/// @file StreamPair.hpp
/// @brief The streams of a step on the device, and the graphs from which its parts are replayed.
#pragma once

#include "StepKernels.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Algorithms.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include <span>
#include <string>
#include <vector>

namespace HandWritten {

using DNDS::index;
using DNDS::real;

/// Counts of how device work of steps was started.
struct GraphUse {
    index graphs = 0;   ///< number captured
    index launches = 0; ///< launches of graphs
    /// All stages of a step are one graph: no rows are exchanged with other ranks.
    bool wholeSteps = false;
    std::string whyNot; ///< why kernels are started one by one; empty if graphs are used
};

/// Two streams: kernels without ghosts run on `inner`; everything else and pulls on `boundary`, with high priority.
/// Device work between two calls for an exchange is a *part* of a step: run directly the first time, captured the
/// second time, replayed from then on. Numbers that change from step to step are in device memory. Local.
class StreamPair {
  public:
    /// For `cells` time steps. `graphs`: false starts kernels one by one.
    StreamPair(index cells, bool graphs);
    StreamPair(const StreamPair &) = delete;
    StreamPair &operator=(const StreamPair &) = delete;
    ~StreamPair() { finish(); } // graphs and memory may be in use

    /// Waits for both streams, ignoring errors.
    void finish() noexcept;
    /// Makes each stream wait for the other's queued work.
    void join() const {
        DNDS::Device::runAfter(inner, boundary);
        DNDS::Device::runAfter(boundary, inner);
    }

    DNDS::Device::Stream inner;
    DNDS::Device::Stream boundary{DNDS::Device::Priority::High};

    /// Runs, captures or replays a part: `work` queues on `stream`; if it also uses the other stream, it begins and
    /// ends with `runAfter`. Nested parts belong to the outer one. If graphs cannot be captured, `use().whyNot` says so
    /// from then on, and `work` runs directly.
    template <class Work>
    void run(std::size_t part, DNDS::Device::StreamHandle stream, const Work &work);

    const GraphUse &use() const noexcept { return use_; }
    void setWholeSteps() noexcept { use_.wholeSteps = true; }

    /// Queues on `inner`: finds the smallest of `timeSteps`, none of them NaN. Can be captured.
    void findSmallest(std::span<const real> timeSteps);
    /// The last result; waits.
    real smallest();

    /// For kernels: what was given to `set`, in device memory.
    Euler::StepLength length() const { return {DNDS::ArrayView<const real, 2>(numbers_.data() + 1, 1, {}), nullptr}; }
    void set(real length, bool alike);
    /// Queues on `inner` the copy of the length to the device. Can be captured.
    void sendLength();

  private:
    struct Part {
        bool known = false; ///< ran once, so that nothing is initialised during capture
        DNDS::Device::Graph graph;
    };

    DNDS::Device::Minimum minimum_;
    DNDS::HostDeviceBuffer pinned_;               ///< on the host: the smallest time step, the length
    DNDS::Device::DeviceBuffer<real> numbers_{3}; ///< the same on the device
    std::span<real> mail_;                        ///< `pinned_`, as numbers
    std::vector<Part> parts_;
    bool within_ = false; ///< a part
    GraphUse use_;
};

template <class Work>
void StreamPair::run(std::size_t part, DNDS::Device::StreamHandle stream, const Work &work) {
    if (within_ || !use_.whyNot.empty())
        return work();
    if (parts_.size() <= part)
        parts_.resize(part + 1);
    Part &mine = parts_[part];
    if (!mine.graph) {
        within_ = true;
        try {
            if (mine.known) {
                mine.graph = DNDS::Device::Graph::capture(stream, work);
                use_.graphs++;
            } else {
                work();
                mine.known = true;
            }
        } catch (const DNDS::StateError &error) {
            within_ = false;
            if (!mine.known)
                throw;
            use_.whyNot = error.message();
            return work();
        } catch (...) {
            within_ = false;
            throw;
        }
        within_ = false;
    }
    if (!mine.graph)
        return;
    mine.graph.launch(stream);
    use_.launches++;
}

} // namespace HandWritten
