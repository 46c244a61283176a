/// @file LineSolver.hpp
/// @brief Implicit heat steps by lines in each direction; the field changes its cut so that lines are whole.
#pragma once

#include "Lines.hpp"
#include "Solver.hpp"

#include "DNDS/Blocks/BlockField.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace Heat {

/// A temperature in each cell of a periodic box, as `Solver`, in steps that are implicit in one direction after the
/// other (locally one-dimensional: Yanenko, The Method of Fractional Steps, 1971), and so stable for any diffusion
/// number. Lines in x and y are solved on slabs in z; then all cells move to slabs in y, where lines in z are whole,
/// and back. Each move is a `makeBlockCopy`, prepared once. Collective.
class LineSolver {
  public:
    /// Throws as `Solver`.
    LineSolver(DNDS::CommunicatorView comm, const Triple &cells, real number, const Placement &placement);

    /// As the functions of `Solver`.
    DNDS::Box cells() const { return slabs_.localCore(); }
    void set(const std::vector<real> &values);
    void advance(int steps);
    void synchronize();
    std::vector<real> values();
    std::string describe() const { return slabs_.describe(); }
    std::vector<DNDS::PeerPath> paths() const { return there_->paths(); }

  private:
    using Field = DNDS::NdArray<real>;
    using Factors = DNDS::Array<real, factorCount>;

    void factorLine(int along, index cells);
    void solve(Field &field, int along);
    void move(DNDS::Exchange &copy);

    real number_;
    std::optional<DNDS::Device::Stream> stream_; ///< on the device
    Field slabs_{"temperature"};                 ///< cut in z
    Field turned_{"temperature in slabs of y"};
    std::array<Factors, 3> factors_; ///< of lines in z, y, x
    std::shared_ptr<DNDS::Exchange> there_, back_;
};

} // namespace Heat
