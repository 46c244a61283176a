/// @file Solver.hpp
/// @brief Heat diffusion on the host or on the device, with ghosts sent from device to device.
#pragma once

#include "Diffuse.hpp"

#include "DNDS/Blocks/NdArray.hpp"
#include "DNDS/Device/Stream.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace Heat {

/// One number a direction: x, y, z.
using Triple = std::array<index, 3>;

/// Memory space of a solver, and the transport of its ghosts.
struct Placement {
    DNDS::MemorySpace space = DNDS::MemorySpace::Host;
    DNDS::TransportKind transport = DNDS::TransportKind::Auto;
};

/// Streams of the device: boundary cells and ghosts have priority over inner cells.
struct StreamPair {
    DNDS::Device::Stream boundary{DNDS::Device::Priority::High};
    DNDS::Device::Stream inner;
    DNDS::Device::Event boundaryDone;
    DNDS::Device::Event innerDone;
};

/// A temperature in each cell of a periodic box, which is cut into one block a rank. In memory x runs fastest, so that
/// the array's dimensions are z, y, x. Collective: every rank constructs it, calls `advance` and so on.
class Solver {
  public:
    /// `number` is the diffusion number; up to 1/6 is stable. @throws ArgumentError if a direction has no cells;
    /// NotBuiltError on the device in builds without one.
    Solver(DNDS::CommunicatorView comm, const Triple &cells, real number, const Placement &placement);

    /// This rank's cells (z, y, x), in global numbers; their temperatures are in that order (forEachCell).
    DNDS::Box cells() const { return fields_[0].localCore(); }
    /// Sets this rank's temperatures.
    void set(const std::vector<real> &values);
    /// Queues (on the host: computes) this many steps. In each, inner cells are computed during the exchange.
    void advance(int steps);
    /// Returns when all steps are done on this rank.
    void synchronize();
    /// This rank's temperatures.
    std::vector<real> values();

    /// The parts of the box, and the reason for this cut.
    std::string describe() const { return fields_[0].describe(); }
    /// Path of ghosts from each peer.
    std::vector<DNDS::PeerPath> paths() const { return fields_[0].field().ghostPaths(); }

  private:
    using Field = DNDS::NdArray<real>;
    using Cells = DNDS::Array<LocalIndex, 1>;

    bool onDevice() const { return streams_.has_value(); }
    void listCells();
    template <DNDS::DeviceBackend backend>
    Diffuse kernel(const Field &from, Field &to, const Cells &cells) const;
    void stepOnHost(Field &from, Field &to);
    void stepOnDevice(Field &from, Field &to);

    Field fields_[2]{Field("temperature"), Field("next temperature")}; ///< alternately old and new
    int current_ = 0;
    Cells inner_;    ///< read no ghosts
    Cells boundary_; ///< the others
    real number_;
    std::optional<StreamPair> streams_;
};

} // namespace Heat
