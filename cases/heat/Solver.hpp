/// @file Solver.hpp
/// @brief Heat diffusion on the host or on the device, with ghosts sent from device to device.
#pragma once

#include "Blocks.hpp"
#include "Diffuse.hpp"

#include "DNDS/Device/Event.hpp"
#include "DNDS/Device/Stream.hpp"

#include <optional>
#include <string>
#include <vector>

namespace Heat {

/// Where a solver computes, and the transport of its ghosts.
struct Placement {
    DNDS::MemorySpace space = DNDS::MemorySpace::Host;
    DNDS::TransportKind transport = DNDS::TransportKind::Auto;
};

/// A temperature in each cell of a periodic box. Collective: every rank constructs it, calls `advance` and so on.
class Solver {
  public:
    /// `number` is the diffusion number; up to 1/6 is stable. @throws NotBuiltError on the device if there is none.
    Solver(DNDS::CommunicatorView comm, const Blocks &blocks, real number, const Placement &placement);

    /// Sets this rank's temperatures, in the order of its rows.
    void set(const std::vector<real> &values);
    /// Queues (on the host: computes) this many steps. In each, inner cells are computed during the pull.
    void advance(int steps);
    /// Returns when all steps are done on this rank.
    void synchronize();
    /// This rank's temperatures, in the order of its rows.
    std::vector<real> values();

    index innerCells() const { return inner_.size(); }
    index boundaryCells() const { return boundary_.size(); }
    /// How ghosts reach this rank.
    std::vector<DNDS::PeerPath> paths() const { return fields_[0].trans.pullPaths(); }

  private:
    using Pair = DNDS::ArrayPair<Temperature>;
    using Rows = DNDS::Array<LocalIndex, 1>;

    /// Streams of the device: boundary cells and ghosts have priority over inner cells.
    struct StreamPair {
        DNDS::Device::Stream boundary{DNDS::Device::Priority::High};
        DNDS::Device::Stream inner;
        DNDS::Device::Event boundaryDone;
        DNDS::Device::Event innerDone;
    };

    bool onDevice() const { return streams_.has_value(); }
    template <DNDS::DeviceBackend backend>
    Diffuse kernel(Pair &from, Pair &to, const Rows &cells) const;
    void stepOnHost(Pair &from, Pair &to);
    void stepOnDevice(Pair &from, Pair &to);

    Pair fields_[2]; ///< alternately old and new; both keep their memory, so that exchanges stay bound
    int current_ = 0;
    DNDS::Array<LocalIndex, 6> sides_;
    Rows inner_;
    Rows boundary_;
    real number_;
    std::optional<StreamPair> streams_;
};

} // namespace Heat
