/// @file Advection.hpp
/// @brief Blobs of several species, each carried by a wind of its own around a periodic box.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Blocks/BlockPack.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Sparse/SparseField.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace SparseAdvection {

using DNDS::BlockView;
using DNDS::index;
using DNDS::real;

/// A species: a blob of height 1 that falls to 0 at `radius`, in a box of side 1.
struct Species {
    std::string name;
    std::array<real, 3> wind;
    std::array<real, 3> centre;
    real radius;
};

/// Three of them, whose ways around the box have different lengths.
std::vector<Species> threeSpecies();
/// Two that fly at each other and one that they become, for `Setup::reaction`.
std::vector<Species> burningSpecies();

struct Setup {
    index blocks = 8; ///< in each direction
    index cells = 8;  ///< cells of a block in each direction
    real courant = 0.4;
    real reaction = 0; ///< rate k of dust + soot -> 2 radical: d(dust)/dt = -k dust soot
    std::vector<Species> species = threeSpecies();

    index cellsAcross() const { return blocks * cells; }
    real cellSize() const { return 1 / static_cast<real>(cellsAcross()); }
    /// Stable for the fastest species.
    real timeStep() const;
    std::shared_ptr<const DNDS::BlockGrid> grid(const DNDS::CommunicatorView &comm) const;
};

/// The height of the blob at a point, at the start.
real blobAt(const Species &species, const std::array<real, 3> &point);

/// One stage of Heun's method: `next` = `keep` old + (1 - keep) (now + dt times what flows in). Limited linear
/// reconstruction (van Leer), upwind fluxes; reads two layers of ghosts of `now`.
void advanceBlock(const BlockView<const real> &now, const BlockView<const real> &old, const BlockView<real> &next,
                  const std::array<real, 3> &courants, real keep);

/// The reaction during `seconds`, explicit: of fields 0 and 1 to field 2, in cells where all are present.
struct React {
    real rate;
    real seconds;
    DNDS_HOST_DEVICE void operator()(const DNDS::BlockCell &c, const DNDS::BlockPackView<real> &u) const {
        real &dust = u(c.block, 0)(c[0], c[1], c[2]);
        real &soot = u(c.block, 1)(c[0], c[1], c[2]);
        const real burnt = seconds * rate * dust * soot;
        dust -= burnt;
        soot -= burnt;
        u(c.block, 2)(c[0], c[1], c[2]) += 2 * burnt;
    }
};

/// "changed by ...", and in which ways: blocks that were freed hold `dropped`, the rest left through faces.
std::string lossText(real before, real after, real dropped);

/// The species on sparse fields: blocks appear ahead of a blob and vanish after it has passed.
class SparseRun {
  public:
    SparseRun(const DNDS::CommunicatorView &comm, const Setup &setup, const DNDS::SparseFieldOptions &thresholds);
    void step();
    /// Seconds that this rank has computed in the last step, without exchanges.
    double stepSeconds() const { return stepSeconds_; }
    /// Moves blocks to other ranks, so that all have about the same number of allocated ones. Collective.
    void rebalance();
    std::vector<DNDS::SparseField<real>> &fields() { return fields_; }
    const std::vector<DNDS::SparseField<real>> &fields() const { return fields_; }
    const std::shared_ptr<const DNDS::BlockGrid> &grid() const { return pattern_->grid(); }
    DNDS::SparseTraffic traffic() const;
    /// Bytes of blocks and messages on this rank, and how many blocks there are of all species.
    double memory() const;
    double allocatedBlocks() const;
    /// Of each species on all ranks. Collective.
    std::vector<real> masses() const;
    /// Amounts lost with freed blocks: as above.
    std::vector<real> dropped() const;

  private:
    void makeExchange();
    void react();

    Setup setup_;
    std::shared_ptr<const DNDS::SparsePattern> pattern_;
    std::vector<DNDS::SparseField<real>> fields_;
    std::vector<DNDS::DroppedSums<real>> dropped_;
    DNDS::BlockPack<real> pack_; ///< all fields
    std::unique_ptr<DNDS::SparseFields> exchange_;
    DNDS::SparseTraffic earlier_; ///< of the exchanges before the last move
    double stepSeconds_ = 0;
};

/// The same on dense fields.
class DenseRun {
  public:
    DenseRun(const DNDS::CommunicatorView &comm, const Setup &setup);
    void step();
    const std::vector<DNDS::BlockField<real>> &fields() const { return now_; }
    double memory() const;
    /// That this rank sends to others in an exchange.
    double bytesSent() const;

  private:
    void exchange();
    void stage(real keep);

    Setup setup_;
    std::shared_ptr<const DNDS::BlockPattern> pattern_;
    std::vector<DNDS::BlockField<real>> now_, old_, next_;
    DNDS::BlockPack<real> pack_; ///< of now_
    DNDS::ExchangeGroup group_;
};

/// The largest difference of the two runs in a cell of this rank. Collective.
real largestDifference(const SparseRun &sparse, const DenseRun &dense);

} // namespace SparseAdvection
