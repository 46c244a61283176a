/// @file ExchangeState.hpp
/// @brief What an exchange keeps between set-up, start and wait.
#pragma once

#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Exchange/ExchangeCounts.hpp"
#include "DNDS/Exchange/MessagePlan.hpp"
#include "DNDS/Exchange/PushedRows.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Transport/ExchangeStream.hpp"

#include <exception>
#include <optional>
#include <thread>

namespace DNDS {

#if defined(DNDS_DEBUG_CHECKS)
inline constexpr bool debugChecks = true;
#else
inline constexpr bool debugChecks = false;
#endif

/// "pull" or "push".
const char *directionName(Direction direction);

/// Finds the rows of a member now, and checks them against the pattern. Local. Throws StateError or LayoutError.
void locateRows(const ExchangePattern &pattern, Direction direction, MemorySpace space, const ExchangeMember &member,
                RowLayout &father, RowLayout &son);

/// Lets a transport go on; whether it is complete. What fails is not: nobody is there to hear of it.
bool completed(Transport &transport) noexcept;
/// Lets all transports go on; whether all of them are complete.
bool allCompleted(std::span<const std::unique_ptr<Transport>> transports) noexcept;

/// Everything that must stay alive while bytes move.
struct Exchange::State {
    std::vector<ExchangeMember> members;
    std::vector<RowLayout> fathers;
    std::vector<RowLayout> sons;
    std::vector<RowLayout> fathersNow; ///< what `start` finds, until it is accepted; what `wait` finds
    std::vector<RowLayout> sonsNow;
    MessagePlan plan;
    std::vector<std::uint64_t> sent; ///< if `checksSent`: hashes of what leaves, by peer and part
    MemorySpace space = MemorySpace::Host;
    std::shared_ptr<ExchangeStream> stream; ///< on the device
    std::vector<HostDeviceBuffer> stagingOnHost;
    std::vector<Device::DeviceBuffer<std::byte>> stagingOnDevice;
    std::vector<std::byte *> staging;       ///< pushes: where each part arrives, until it is combined
    std::unique_ptr<DeviceCombine> combine; ///< pushes on the device
    std::optional<GhostZeroing> zeroing;    ///< pushes that leave zero ghosts
    std::vector<std::unique_ptr<Transport>> transports;
    PeerKinds kinds;
    bool sonsInArena = false; ///< in memory that the ranks of the node share
    std::thread::id maker = std::this_thread::get_id();
    ThreadUse ownUse;
    ThreadUse *use = &ownUse; ///< or that of the process, where MPI does not serve several threads
    ProgressEngine engine;
    bool bound = true; ///< false after planning or binding failed half-way
    bool inFlight = false;
    std::uint64_t starts = 0;
    std::shared_ptr<ExchangeCounts> counts; ///< null while nothing is counted
    std::exception_ptr failure;             ///< the first one of this epoch, for `wait`
    bool lost = false;                      ///< nothing can be waited for any more in this epoch
    bool refused = false;                   ///< some epoch: what peers sent in it may still be under way
    bool broken = false;                    ///< a peer did not come, or the device failed: bytes may still move
    std::shared_ptr<State> kept;            ///< itself, while nobody else does

    /// Makes room for the rows of one part that will be pushed to this rank.
    void addStaging(std::size_t bytes, const HostMemoryResource &memory);

    /// No longer keeps memory that arrays have given up: the data that arrived is complete. Where kernels may still run
    /// it is kept until the next start.
    void releaseArrays();

    /// Remembers what was caught, unless something has failed before.
    void noteFailure(const std::exception_ptr &caught) noexcept { failure = failure ? failure : caught; }

    /// Looks whether the peers that are waited for are alive; see Exchange::checkPeers.
    void checkPeers(double secondsWaited) noexcept;

    /// Waits for what the stream holds, before somebody handles an error: rows of other peers may still be on their
    /// way.
    void drain() const noexcept;

    void abandon() noexcept;

    /// Gives the sons other memory: rows of peers that come late land in that which they had, and which is kept here.
    /// Not from a thread that the arrays may be in use on another.
    void moveSonsAway(const HostMemoryResource &arena) const noexcept;

    /// Tells the members of a pull that it has started, or that its rows have arrived.
    void tellPulled(Direction direction, const ExchangePattern &pattern, bool arrived) const;

    /// Tells the members of a pull that its rows will not arrive.
    void tellFailed(Direction direction) const noexcept;

    /// Whether `wait` compares the sent rows with those at start: in library or program with debug checks, on the host.
    bool checksSent() const noexcept;

    /// Hashes the host rows that peers get. O(bytes sent).
    void hashSent(Direction direction, std::vector<std::uint64_t> &into) const;

    /// Of all parts, staging buffers included.
    Endpoints endpoints(Direction direction) const;
};

} // namespace DNDS
