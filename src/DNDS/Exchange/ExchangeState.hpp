/// @file ExchangeState.hpp
/// @brief State of an exchange between set-up, start and wait.
#pragma once

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Exchange/ExchangeCounts.hpp"
#include "DNDS/Exchange/MessagePlan.hpp"
#include "DNDS/Exchange/PushedRows.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Transport/ExchangeStream.hpp"

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

/// Everything that must stay alive while bytes are in flight.
struct Exchange::State : Recoverable {
    std::vector<ExchangeMember> members;
    /// One layout a member, with references to its memory while in flight. Transports are bound to `fathers` and
    /// `sons`.
    std::vector<RowLayout> fathers;
    std::vector<RowLayout> sons;
    std::vector<RowLayout> fathersNow; ///< layouts found by `start`, until accepted; layouts found by `wait`
    std::vector<RowLayout> sonsNow;
    /// The messages that peers have agreed on in set-up; a new plan must not differ for them (`sameAs`).
    MessagePlan plan;
    std::vector<std::uint64_t> sent; ///< if `checksSent`: hashes of the sent rows, by peer and part
    MemorySpace space = MemorySpace::Host;
    std::shared_ptr<ExchangeStream> stream; ///< on the device
    Device::StreamHandle streamHandle() const noexcept { return stream ? stream->stream.handle() : nullptr; }
    /// Owners of the staging buffers, in the memory space of the exchange; `staging` points into them.
    std::vector<HostDeviceBuffer> stagingOnHost;
    std::vector<Device::DeviceBuffer<std::byte>> stagingOnDevice;
    std::vector<std::byte *> staging;       ///< pushes: receive buffer of each part, until it is combined
    std::unique_ptr<DeviceCombine> combine; ///< pushes on the device
    std::optional<GhostZeroing> zeroing;    ///< pushes that leave zero ghosts
    std::vector<std::unique_ptr<Transport>> transports;
    /// The transport to each peer, as chosen in set-up.
    PeerKinds kinds;
    /// The thread that may call MPI for it, and the members' callbacks, in destructors.
    std::thread::id maker = std::this_thread::get_id();
    /// Notices two threads at a time.
    ThreadUse ownUse;
    ThreadUse *use = &ownUse; ///< or that of the process, if MPI does not serve several threads
    /// While in flight and `needsProgress`: other waits of the thread move these rows, too.
    ProgressEngine engine;
    /// Transitions: Unbound to Idle by binding (set-up, start); Idle to InFlight by start; InFlight to Idle by
    /// wait, by a failure, or when the object is destroyed; any to Unbound by `renew` and by a failed binding.
    enum class Stage : unsigned char {
        Unbound, ///< transports lack the arrays' addresses: planning or binding failed half-way, or it was renewed
        Idle,
        InFlight
    };
    Stage stage = Stage::Idle;
    /// The exchange's direction: the state may outlive the exchange.
    Direction moves = Direction::Pull;
    std::uint64_t starts = 0;
    std::shared_ptr<ExchangeCounts> counts; ///< null while counting is off
    bool needsProgress = false;             ///< also while this rank waits for other exchanges
    bool pollsMpi = false;                  ///< `progress` calls MPI
    std::shared_ptr<CommunicatorContext> context;
    /// For messages of all transports; renewed by a recovery.
    Channel channel;

    ~State() override;
    /// For a recovery, called until it returns true: each call also lets cancelled receives complete. Members are
    /// told once that their rows will not arrive.
    bool settle() noexcept override;
    /// The channel changes, so transports are bound again at the next start.
    void renew() override;
    /// Whether peers may write to destinations in spite of `settle`, until the communicator has recovered.
    bool exposed() const noexcept;

    /// Allocates a receive buffer for one part of the pushed rows.
    void addStaging(std::size_t bytes, const HostMemoryResource &memory);

    /// Drops references to memory that arrays no longer use: the received data is complete. If kernels may still run
    /// it is kept until the next start.
    void releaseArrays();

    /// Waits for the work queued on the stream, before an error is handled: rows of other peers may still be in
    /// flight.
    void drain() const noexcept;

    /// Makes progress; true when all is complete.
    bool progress() const;

    /// Ends an epoch that has failed.
    void abandon(Direction direction) noexcept;

    /// Notifies the members of a pull that it has started, or that its rows have arrived.
    /// `arrived` is false at the start, before any byte moves, and true at the end: ghosts count as stale in between.
    void notifyPulled(Direction direction, const ExchangePattern &pattern, bool arrived) const;

    /// Notifies the members of a pull that its rows will not arrive.
    void notifyFailed(Direction direction) const noexcept;

    /// Whether `wait` compares the sent rows with those at start: in library or program with debug checks, on the host.
    bool checksSent() const noexcept;

    /// Hashes the host rows that peers get. O(bytes sent).
    /// One hash a peer and part, in the order of the plan. A write of equal values is not found.
    void hashSent(Direction direction, std::vector<std::uint64_t> &into) const;

    /// Endpoints of all parts, staging buffers included.
    Endpoints endpoints(Direction direction) const;
};

} // namespace DNDS
