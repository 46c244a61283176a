/// @file SlabMethod.hpp
/// @brief One way of copying a cube from slabs to other slabs, and the baselines among them.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <memory>
#include <string>
#include <utility>

namespace DNDS::Bench {

/// Has memory of its own. Destroying one is collective.
class SlabMethod {
  public:
    explicit SlabMethod(std::string name) : name_(std::move(name)) {}
    SlabMethod(const SlabMethod &) = delete;
    SlabMethod &operator=(const SlabMethod &) = delete;
    virtual ~SlabMethod() = default;

    const std::string &name() const { return name_; }
    /// Collective: complete when it returns, as far as this rank's cells are concerned.
    virtual void run() = 0;
    /// Writes new values, runs and compares. Collective. Throws DataError on all ranks if a value is wrong.
    virtual void check(CommunicatorView comm, int round) = 0;

  private:
    std::string name_;
};

/// Turns of the cube that baselines do as well.
inline constexpr const char *ScatterTurn = "x to z";
inline constexpr const char *TransposeTurn = "y and z exchanged";

/// The value of cell (z, y, x); another one in each round.
double valueOf(index i, index j, index k, index edge, int round);

/// `ScatterTurn` by PETSc: a VecScatter between the vectors of two DMDAs. Null without PETSc. Collective.
std::unique_ptr<SlabMethod> makePetscScatter(CommunicatorView comm, index edge);
/// `TransposeTurn` by FFTW's transpose over MPI, planned with FFTW_MEASURE. Null without FFTW. Collective.
std::unique_ptr<SlabMethod> makeFftwTranspose(CommunicatorView comm, index edge);

} // namespace DNDS::Bench
