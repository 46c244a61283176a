/// @file BlockFieldCore.hpp
/// @brief What `BlockField` does that needs no element type: its exchanges, and where it is current.
#pragma once

#include "DNDS/Blocks/BlockPattern.hpp"
#include "DNDS/Exchange/PersistentExchanges.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

/// The ghost exchange of one field on blocks. The base of `BlockField`; move-only.
///
/// Exchanges move the host's or the device's copies: those of the side that the field was last brought to by `toDevice`
/// or `toHost`, the host's at first. So ranks agree without communication, as long as all of them call these.
class BlockFieldCore {
  public:
    /// Whether this was made, not only declared.
    bool made() const noexcept { return data_ != nullptr; }
    const std::shared_ptr<const BlockPattern> &blockPattern() const noexcept { return pattern_; }
    const std::shared_ptr<const BlockGrid> &grid() const noexcept { return pattern_->grid(); }
    /// Who sends which rows to whom. Fields that share it can travel together: `ExchangeGroup::add(field)`.
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_->exchange(); }
    /// This field as part of an exchange of several (`ExchangeGroup`). Local.
    ExchangeMember member() const;

    /// Refreshes all ghosts that stand for cells; others stay as they are. Collective. On the device it runs after what
    /// `producer` holds, and is complete when this returns.
    /// Throws as Exchange; StaleError where the side that is moved is not current.
    void exchangeGhosts(Device::StreamHandle producer = nullptr) {
        startExchangeGhosts(producer);
        finishExchangeGhosts();
    }
    /// Begins to refresh them. Collective the first time on each side, which sets the exchange up; then Local. Until it
    /// is finished, cells without ghosts may be read, not written, and ghosts not be used. Throws as Exchange::start.
    void startExchangeGhosts(Device::StreamHandle producer = nullptr) { ready()->start(producer); }
    /// Completes what was started. Throws as Exchange::wait.
    void finishExchangeGhosts();
    /// The same for the device: what `consumer` gets from now on runs after the exchange.
    void finishExchangeGhosts(Device::StreamHandle consumer);
    /// Start, as an object whose end finishes; see Flight. Collective the first time, as above.
    [[nodiscard]] Flight startGhostFlight(Device::StreamHandle producer = nullptr) { return Flight(ready(), producer); }

    /// Sets up the exchange of the side that the field is on, with these choices, in place of the one before.
    /// Collective. `options.space` is ignored. As ghosts will be written there, it counts as writing on that side: the
    /// other one is stale afterwards, until `toHost` or `toDevice`. Throws as PersistentExchange::init.
    void initExchangeGhosts(const ExchangeOptions &options = {});
    /// How ghosts reach this rank, as a table for people, or by peer. Local. Throws StateError before the first
    /// exchange on this side.
    std::string describeExchange() const;
    std::vector<PeerPath> ghostPaths() const;

    /// Makes the device copies current, and moves exchanges there. The host's stay current until the next exchange, or
    /// set-up of one. Local. Throws as HostDeviceBuffer.
    void toDevice();
    void toDevice(Device::StreamHandle stream);
    /// Makes the host copies current, and moves exchanges there. Local.
    void toHost();
    void toHost(Device::StreamHandle stream);
    /// Where exchanges are.
    MemorySpace side() const noexcept { return side_; }

    /// The name given when the field was made, which messages use.
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
    /// Where the array is allocated: memory that the node's ranks share where some of them send ghosts to this one.
    /// Exchanges do not move it. Local.
    static HostMemoryResource memoryFor(const BlockPattern &pattern);
    const BlockMemory &memoryOf(int local) const;
    void requireMade(SourceLocation where = SourceLocation::current()) const;

  private:
    const ArrayBase &data() const {
        requireMade();
        return *data_;
    }
    PersistentExchange &exchange() { return side_ == MemorySpace::Device ? onDevice_ : onHost_; }
    const PersistentExchange &exchange() const { return side_ == MemorySpace::Device ? onDevice_ : onHost_; }
    const std::shared_ptr<Exchange> &ready();
    Exchange &inFlight();
    const Exchange &bound() const;

    std::shared_ptr<const BlockPattern> pattern_;
    std::shared_ptr<ArrayBase> data_;
    rowsize components_ = 0;
    MemorySpace side_ = MemorySpace::Host;
    PersistentExchange onHost_{Direction::Pull};
    PersistentExchange onDevice_{Direction::Pull};
};

} // namespace DNDS
