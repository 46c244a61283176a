/// @file BlockFieldCore.hpp
/// @brief The part of `BlockField` that is independent of the element type: exchanges and residency.
#pragma once

#include "DNDS/Blocks/BlockPattern.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

/// The ghost exchange of one field on blocks. The base of `BlockField`; move-only.
///
/// Exchanges move the copies of the side to which `toDevice` or `toHost` last brought the field, initially the host.
/// Ranks thus agree without communication, as long as all of them call these functions.
class BlockFieldCore {
  public:
    /// False for a field that was only declared, or moved from.
    bool made() const noexcept { return data_ != nullptr; }
    const std::shared_ptr<const BlockPattern> &blockPattern() const noexcept { return pattern_; }
    const std::shared_ptr<const BlockGrid> &grid() const noexcept { return pattern_->grid(); }
    /// The rows that ranks send to each other. Fields with one pattern can share messages: `ExchangeGroup::add(field)`.
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_->exchange(); }
    /// This field as part of an exchange of several (`ExchangeGroup`). Local.
    ExchangeMember member() const;

    /// Refreshes all ghosts that are copies of cells, in a star only those beyond the block in one dimension; the
    /// others keep their values. Collective. On the device the exchange runs after the work in `producer` and is
    /// complete on return. Throws as Exchange, and StaleError if the side that is moved is not current.
    void exchangeGhosts(Device::StreamHandle producer = nullptr) {
        startExchangeGhosts(producer);
        finishExchangeGhosts();
    }
    /// Starts refreshing ghosts. Collective at the first call on each side, which sets the exchange up; else Local.
    /// Until it is finished, cells without ghosts are read-only and ghosts unusable. Throws as Exchange::start.
    void startExchangeGhosts(Device::StreamHandle producer = nullptr) { ready()->start(producer); }
    /// Completes the exchange. Throws as Exchange::wait.
    void finishExchangeGhosts() { inFlight(pulls_, "exchange").wait(); }
    /// The same for the device: work queued on `consumer` from now on runs after the exchange.
    void finishExchangeGhosts(Device::StreamHandle consumer) { inFlight(pulls_, "exchange").wait(consumer); }
    /// Starts, and returns an object whose destructor finishes; see Flight. Collective at the first call, as above.
    [[nodiscard]] Flight startGhostFlight(Device::StreamHandle producer = nullptr) { return Flight(ready(), producer); }

    /// Adds deposits in ghosts to the cells that they are copies of; PushOp::Min and Max take the least or the largest,
    /// Replace the last. After a sum these ghosts are zero, ready for the next deposits; after another operation they
    /// keep their values. Ghosts that are copies of no cell, and corners of a star, take no part and keep theirs.
    /// Copies of a point that blocks share are added to the owner's value and then zero as well: `exchangeGhosts` makes
    /// them equal again. A cell's contributions are applied in the order of their blocks' numbers, and for one block in
    /// the order of its regions (`BlockGrid::ghostRegions`): for given blocks, results have the same bits on any ranks.
    /// Collective. Streams and errors as exchangeGhosts; LayoutError for elements that cannot be added.
    void pushGhosts(PushOp op = PushOp::Sum, Device::StreamHandle producer = nullptr) {
        startPushGhosts(op, producer);
        finishPushGhosts();
    }
    /// Starts a push. Collective at the first call on each side, and whenever `op` differs from that of the previous
    /// call there, since the exchange is then set up again; else Local. Until it is finished, neither cells nor ghosts
    /// are written. Throws as Exchange::start.
    void startPushGhosts(PushOp op = PushOp::Sum, Device::StreamHandle producer = nullptr);
    /// Completes the push. Throws as Exchange::wait.
    void finishPushGhosts() { inFlight(pushes_, "push").wait(); }
    /// The same for the device: work queued on `consumer` from now on runs after the push.
    void finishPushGhosts(Device::StreamHandle consumer) { inFlight(pushes_, "push").wait(consumer); }
    /// Whether `finishPushGhosts` would return without waiting for peers; see Exchange::ready. Local.
    bool pushReady() { return inFlight(pushes_, "push").ready(); }
    /// Whether a push was started and not finished yet. Local.
    bool pushInFlight() const noexcept { return pushes_[0].inFlight() || pushes_[1].inFlight(); }

    /// Sets up the exchange of the field's current side with these options, replacing the previous one. Collective.
    /// `options.space` is ignored. Counts as writing on that side, since ghosts will be written there: the other side
    /// is stale until `toHost` or `toDevice`. Throws as PersistentExchange::init.
    void initExchangeGhosts(const ExchangeOptions &options = {});
    /// The same for pushes of `op`, which do not count as writing. `options.ghosts` is ignored, too. Collective.
    void initPushGhosts(PushOp op = PushOp::Sum, const ExchangeOptions &options = {});
    /// The paths of ghosts to this rank, as a readable table or by peer. Local. Throws StateError before the first
    /// exchange on this side.
    std::string describeExchange() const;
    std::vector<PeerPath> ghostPaths() const;

    /// Makes the device copies current and moves exchanges there. The host copies stay current until the next exchange
    /// or its set-up. Local. Throws as HostDeviceBuffer.
    void toDevice();
    void toDevice(Device::StreamHandle stream);
    /// Makes the host copies current and moves exchanges there. Local.
    void toHost();
    void toHost(Device::StreamHandle stream);
    /// The side on which exchanges run.
    MemorySpace side() const noexcept { return side_; }

    /// The name of the field in messages.
    const std::string &name() const { return data().name(); }
    /// Components of each cell.
    rowsize components() const noexcept { return components_; }

  protected:
    BlockFieldCore() = default;
    BlockFieldCore(BlockFieldCore &&) noexcept = default;
    BlockFieldCore &operator=(BlockFieldCore &&) noexcept = default;
    ~BlockFieldCore() = default;

    /// Takes the array, which has no rows yet. Local.
    void bind(std::shared_ptr<const BlockPattern> pattern, std::shared_ptr<ArrayBase> data, rowsize components);
    /// The resource for the array's memory: shared with the other ranks of the node, so that they can write ghosts and
    /// copies there. Exchanges do not move the array. Local.
    static HostMemoryResource memoryFor(const BlockPattern &pattern);
    /// Throws IndexError if the block does not exist.
    const BlockMemory &memoryOf(int local) const;
    /// Copies all blocks with their ghosts to `into`, which is on the same blocks on other ranks, and brings it to the
    /// same side. Collective.
    void copyTo(BlockFieldCore &into) const;
    /// Throws StateError for a field that was only declared, or moved from.
    void requireMade(SourceLocation where = SourceLocation::current()) const;

  private:
    const ArrayBase &data() const {
        requireMade();
        return *data_;
    }
    /// Exchanges of one direction, on the host and on the device.
    using OfSides = std::array<PersistentExchange, 2>;

    std::size_t sideNumber() const noexcept { return side_ == MemorySpace::Device ? 1 : 0; }
    void init(OfSides &exchanges, ExchangeOptions options, PushOp op);
    /// The pull of the current side, set up if necessary.
    const std::shared_ptr<Exchange> &ready();
    /// The started exchange, on whichever side; on the device if there is one on both. Throws StateError without one.
    Exchange &inFlight(const OfSides &exchanges, const char *what) const;
    /// The pull of the current side. Throws StateError before it is set up.
    const Exchange &bound() const;

    std::shared_ptr<const BlockPattern> pattern_;
    std::shared_ptr<ArrayBase> data_; ///< exchanges share it, and thus survive moves of the field
    rowsize components_ = 0;
    MemorySpace side_ = MemorySpace::Host; ///< the same on all ranks
    OfSides pulls_{PersistentExchange(Direction::Pull), PersistentExchange(Direction::Pull)};
    OfSides pushes_{PersistentExchange(Direction::Push), PersistentExchange(Direction::Push)};
    std::array<PushOp, 2> pushOps_{}; ///< operations with which `pushes_` were set up
};

} // namespace DNDS
