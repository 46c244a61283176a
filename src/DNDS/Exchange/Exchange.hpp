/// @file Exchange.hpp
/// @brief A pattern bound to arrays by transports: start, compute, wait.
///
/// With the types of exchanges (directions, operations, and paths to peers), and an exchange in flight as an object:
/// leaving its scope waits.
#pragma once

#include "DNDS/Base/HostMemory.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Storage/ArrayView.hpp"
#include "DNDS/Transport/TransportTypes.hpp"

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

/// Combination of pushed ghost rows with the owner's row. Contributions are applied in ascending order of their rank
/// (on blocks: of their block's number), so that results do not depend on the order of arrival. Floating-point sums do
/// depend on the distribution of terms over ranks (blocks); those of `ExactAccumulator` do not. `GhostsAfterPush` sets
/// the ghosts' contents after the push.
enum class PushOp : unsigned char {
    Replace, ///< the last contribution stays: that of the highest rank (on blocks: number of a block)
    Sum,     ///< element-wise sum of the owner's row and all contributions; again at each push
    Min,
    Max
};

/// Contents of ghosts after a push. A push only sends them: a program that adds to ghosts and pushes with PushOp::Sum
/// has to zero them before adding again, or the first contributions are added a second time.
enum class GhostsAfterPush : unsigned char {
    Keep, ///< the pushed values
    Zero  ///< zero, ready for the next contributions; with PushOp::Sum only, as zero changes no sum
};

/// Path of one exchange to one peer.
struct PeerPath {
    int peer = 0;
    TransportKind transport = TransportKind::Auto;
    std::string name;          ///< name of the transport
    std::string why;           ///< the reason for this transport, and for a slot, readable
    std::size_t bytesSent = 0; ///< bytes of each run
    std::size_t bytesReceived = 0;
    /// Bytes of these that pass through a slot, because the peer cannot write them in place as the transport could.
    std::size_t bytesThroughSlot = 0;
    index rowsSent = 0;
    index rowsReceived = 0;
};

/// The copies of the arrays that an exchange moves.
enum class ExchangeSpace : unsigned char {
    Auto, ///< the requested transport's space; else the device's where all arrays are current there, on all ranks,
          ///< when the exchange is made; else the host's
    Host,
    Device
};

/// Choices a caller can make for one exchange.
struct ExchangeOptions {
    TransportKind transport = TransportKind::Auto; ///< Auto also reads the environment variable DNDS_TRANSPORT
    ExchangeSpace space = ExchangeSpace::Auto;
    GhostsAfterPush ghosts = GhostsAfterPush::Keep; ///< for pushes; pulls ignore it
};

/// Direction in which rows move.
enum class Direction : unsigned char {
    Pull, ///< father -> son: refresh ghosts from their owners
    Push  ///< son -> father: return ghost rows to their owners
};

/// One array of an exchange: its name for messages, and functions that find its current rows. They are called at each
/// start, so that a resized, swapped or moved array is noticed; they throw if the array is invalid.
struct ExchangeMember {
    std::string name;
    std::function<void(MemorySpace, Access, RowLayout &into)> father;
    std::function<void(MemorySpace, Access, RowLayout &into)> son;
    /// Whether father and son are current on the device; without it they never are.
    std::function<bool()> onDevice;
    /// The array's present pattern, so that another mapping is noticed; without it, that of the exchange. An
    /// exchange by a restriction of the pattern is one of the array, too.
    std::function<const ExchangePattern *()> pattern;
    /// Called for pulls: `arrived` is false at a start or failure, true when the rows have arrived; `all` is false
    /// for pulls of some ghosts only, and for failed ones. Optional. It does not throw.
    std::function<void(bool arrived, bool all)> pulled = nullptr;
    /// Whether the program was built with DNDS_DEBUG_CHECKS: then `wait` finds host rows that were written after they
    /// were sent, in any build of the library.
    bool checked = false;
};

/// Arguments of an exchange. Arrays have the same names on all ranks: so ranks can tell that they create the same.
struct ExchangeRequest {
    std::shared_ptr<const ExchangePattern> pattern;
    std::vector<ExchangeMember> members;
};

/// Moves the rows of one or several arrays between ranks, again and again, in one message a peer.
///
///     Exchange exchange(pattern, Direction::Pull, {member});
///     exchange.start();  computeOnInnerRows();  exchange.wait();  computeOnBoundaryRows();
///
/// Any number of exchanges may be in flight, started in different orders on different ranks. An array that was swapped
/// or re-allocated with the same rows is bound again at the next start; one whose rows or mapping changed makes start
/// throw StateError. An error of start, wait or ready on one rank revokes the communicator: the others throw
/// RevokedError until `recover` (docs/reference/errors.md). So does destroying an exchange in flight, which keeps the
/// memory in use until then: rows that come late change ghosts, and nothing else.
///
/// Between start and wait the source must not be written and the destination not be used. The exchange moves the
/// arrays bound at start: wait throws StateError on a rank whose arrays were resized, swapped or moved meanwhile, or
/// written on the other side (host, device), and in programs or libraries built with DNDS_DEBUG_CHECKS if
/// sent host rows were written. It throws after completion.
///
/// If MPI grants MPI_THREAD_MULTIPLE, several threads may each use an exchange; else one thread at a time uses
/// exchanges. Concurrent use throws StateError if it is noticed. Any thread may destroy an exchange that no
/// other uses; without MPI_THREAD_MULTIPLE, MPI calls for that are left to the next set-up on the communicator. In a
/// forked child exchanges are the parent's: there start and wait throw, and destroying is silent.
///
/// An exchange moves either the host's or the device's copies (`ExchangeOptions::space`). On the device, rows are
/// packed and unpacked on a stream of the exchange: its work runs after the work then queued on the stream given to
/// `start`, and work queued later on the stream given to `wait` runs after it. The host waits for messages and for
/// packing, and so for the work queued on the stream given to `start`; for no other kernel:
///
///     boundaryKernel(stream);      exchange.start(stream);
///     innerKernel(otherStream);    exchange.wait(stream);      ghostKernel(stream);
class Exchange {
  public:
    /// Binds the arrays. Collective; all ranks create exchanges of one communicator in the same order. Cost O(rows
    /// exchanged) and two reductions. Throws on all ranks: StateError (arrays do not have the pattern's rows, or
    /// another pattern by now; ranks create different exchanges), LayoutError (ranks, or father and son, disagree on
    /// type, width or sizes; an operation on opaque elements), ArgumentError (options, GhostsAfterPush::Zero with
    /// another operation than a sum, or some ranks ask for rows on the host and others on the device), NotBuiltError
    /// (rows on the device in a build or process without one), MemoryError. StateError on this rank only without a
    /// pattern, which would name the other ranks.
    Exchange(std::shared_ptr<const ExchangePattern> pattern, Direction direction, std::vector<ExchangeMember> members,
             const ExchangeOptions &options = {}, PushOp op = PushOp::Replace);
    /// The same for the request that `describe` returns; its exceptions are thrown on all ranks, at no extra
    /// communication. Collective over the ranks of `context`, which is that of the pattern.
    Exchange(CommunicatorContext &context, Direction direction, const std::function<ExchangeRequest()> &describe,
             const ExchangeOptions &options = {}, PushOp op = PushOp::Replace);
    /// The same on the heap: a rank without memory for it takes part, and so all ranks throw. Collective.
    static std::shared_ptr<Exchange> make(CommunicatorContext &context, Direction direction,
                                          const std::function<ExchangeRequest()> &describe,
                                          const ExchangeOptions &options = {}, PushOp op = PushOp::Replace);
    Exchange(const Exchange &) = delete;
    Exchange &operator=(const Exchange &) = delete;
    ~Exchange();

    /// Begins; does not wait for peers. Local. On the device: `producer` is the stream that last wrote the sent rows,
    /// and last used the destination (null: the default stream), not one captured for a graph unless `capturable()`.
    /// Throws StateError when already started, or when an array changed its rows; StaleError when the
    /// copy that this exchange moves is not current; MemoryError; device errors; RevokedError. After an exception there
    /// is nothing to wait for. StateError if the communicator was freed.
    void start(Device::StreamHandle producer = nullptr);
    /// Completes the exchange: afterwards the host may use the rows, and so may all streams. Ghosts keep the pushed
    /// values, or are zero if requested; after an error they may be either. Throws StateError without start,
    /// or when arrays changed since (see above); RevokedError when another rank has failed, after which ghosts are
    /// stale and owned rows unchanged, after a push too; PeerError when the process of a rank has ended, or
    /// after DNDS_WAIT_TIMEOUT; DataError when pushed padded rows have other sizes than their owner's; device errors.
    /// Afterwards it is no longer in flight. StateError if the communicator was freed: then it stays in flight.
    void wait();
    /// The same for the device, but kernels may still run on return: `consumer` waits for them, the host does
    /// not.
    void wait(Device::StreamHandle consumer);
    /// Whether `wait` would return without waiting for peers; progresses this and the thread's other exchanges, as
    /// `wait` does. For programs that wait for several things at once; `waitUntil` pauses between looks. Local, does
    /// not wait. Throws as `wait`.
    bool ready();
    /// The peers it waits for, as the end of "waited for": "rank 3 to send rows of 'u'". Local; in flight.
    std::string awaited() const;
    bool inFlight() const noexcept;
    /// Number of starts. Local.
    std::uint64_t starts() const noexcept;

    /// Whether all rows are in device memory and move within this rank only, or none move: start and wait(consumer)
    /// are then only device work and may be captured in a graph, after they have run once. Local.
    bool capturable() const;

    /// The copies of the arrays that are moved.
    MemorySpace space() const noexcept { return space_; }

    /// Whether it pulls or pushes, and its pattern. Local.
    Direction direction() const noexcept { return direction_; }
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_; }
    /// Path to each peer, ascending; as the arrays lay at the last start, or when it was made. Local.
    std::vector<PeerPath> paths() const;
    /// The same as a readable table: peer, transport and why, rows and bytes. Local.
    std::string describe() const;

  private:
    /// Everything that must outlive the object while bytes are in flight: ExchangeState.hpp.
    /// The destructor does not wait: it leaves the state to the context, until MPI has read the buffers and, if peers
    /// may write to destinations, until the next recovery.
    struct State;

    Exchange(const CommunicatorContext::SetUp &setUp, CommunicatorContext &context, Direction direction,
             const std::function<ExchangeRequest()> &describe, const ExchangeOptions &options, PushOp op);

    /// Chooses transports and lays out messages; may allocate. Local. Returns a signature of the moved
    /// rows.
    std::uint64_t prepare(CommunicatorContext &context, const ExchangeOptions &options);
    /// Counts exchanges from now on, under the name of these arrays. Local.
    void beginCounting(const std::string &names);
    /// Lets transports find their peers. Collective.
    void connect(const CommunicatorView &comm);
    /// Finds the arrays again and passes their addresses to the transports. Local. Throws if rows have changed.
    /// They may have been resized, swapped or moved since the last start. Between the starts of a loop nothing
    /// changes, and the cost is one comparison of addresses and generations a part.
    void rebindChanged();
    template <class Body>
    decltype(auto) running(std::string_view pull, std::string_view push, Body &&body);
    /// Waits for all transports, and lets them end the epoch.
    /// Other exchanges of this thread progress during the wait: ranks that wait for two exchanges in different orders
    /// do not block each other.
    void complete();
    /// All of `wait` within a running call: rows arrive, arrays are checked, pushed rows combined, members
    /// notified.
    /// The order matters: the check comes before the combination, so a push of changed arrays adds nothing. A failure
    /// at any point leaves the exchange in flight, and `finish` abandons it.
    void completeEpoch();
    /// `wait` without the end of work on the device. After an exception the exchange is not in flight.
    /// Abandoning drains the stream and leaves ghosts stale; the communicator is revoked by then, so no peer waits
    /// for this rank.
    void finish();
    void requireCommunicator() const;
    void requireStarted() const;
    /// Name of the first array, for messages.
    const std::string &label() const;
    /// Marks this thread as the user. Throws StateError if another one is.
    ThreadUse::Scope enter() const;
    /// Throws StateError if arrays differ from those at start: see the class.
    /// Detects, and cannot prevent, writes and moves during the exchange. Ranks check alone.
    void requireUnchanged();
    /// Combines the received rows with the owners', and zeroes ghosts if the push does.
    /// The staged rows of all peers are complete by then, and contributions are applied in the order of the pattern's
    /// lists, not of arrival: the same bits in every run.
    void combinePushed();

    /// As given; equal on all ranks of the communicator, which set-up has checked.
    std::shared_ptr<const ExchangePattern> pattern_;
    Direction direction_;
    PushOp op_;
    GhostsAfterPush ghosts_;
    MemorySpace space_ = MemorySpace::Host;
    std::shared_ptr<State> state_; ///< shared with the context if destroyed in flight
    /// As planned; `paths` adds what transports learned when they were bound.
    std::vector<PeerPath> paths_;
};

/// A started pull or push that has to be waited for.
///
///     {
///         const Flight ghosts = u.trans.startPull();
///         computeOnInnerRows();
///     }                                             // the ghosts are there
///
/// The end of the scope waits, also where an exception leaves it, so that no peer is left waiting. It throws the
/// error of `wait`, or the solver would continue with old ghosts; during another exception it throws nothing, and that
/// one propagates. Move-only. It keeps the exchange, and does nothing if the exchange was waited for elsewhere.
class [[nodiscard]] Flight {
  public:
    Flight() = default;
    /// Starts the exchange. Local. Throws as Exchange::start.
    [[nodiscard]] explicit Flight(std::shared_ptr<Exchange> exchange, Device::StreamHandle producer = nullptr);
    Flight(Flight &&) noexcept = default;
    /// Waits for the flight held here. Throws as Exchange::wait.
    Flight &operator=(Flight &&other) noexcept(false); // NOLINT: ending the old flight may fail
    Flight(const Flight &) = delete;
    Flight &operator=(const Flight &) = delete;
    ~Flight() noexcept(false); // NOLINT: see above

    /// Completes the exchange; does nothing the second time, even if the first call threw. Local. See Exchange::wait.
    void wait();
    void wait(Device::StreamHandle consumer);
    /// Whether nothing is left to wait for.
    bool done() const noexcept {
        // Waited for through the exchange itself, perhaps started again since: then that start belongs to another
        // flight.
        return exchange_ == nullptr || !exchange_->inFlight() || exchange_->starts() != start_;
    }

  private:
    std::shared_ptr<Exchange> exchange_;                ///< null once it was waited for
    std::uint64_t start_ = 0;                           ///< number of this start
    int exceptionsBefore_ = std::uncaught_exceptions(); ///< more at the end: the scope is left by an exception
};

} // namespace DNDS
