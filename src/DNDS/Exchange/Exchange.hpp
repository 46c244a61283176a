/// @file Exchange.hpp
/// @brief A pattern bound to arrays by transports: start, compute, wait.
#pragma once

#include "DNDS/Base/HostMemory.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Exchange/ExchangeTypes.hpp"
#include "DNDS/Storage/RowLayout.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

/// Which way rows go.
enum class Direction : unsigned char {
    Pull, ///< father -> son: refresh ghosts from their owners
    Push  ///< son -> father: send ghost rows back to their owners
};

/// One array of an exchange: its name for messages, and how to find its rows now. The functions are called at each
/// start, so that a resized, swapped or moved array is noticed; they throw what is wrong with the array.
struct ExchangeMember {
    std::string name;
    std::function<void(MemorySpace, Access, RowLayout &into)> father;
    std::function<void(MemorySpace, Access, RowLayout &into)> son;
    /// Whether father and son are current on the device; without it they never are.
    std::function<bool()> onDevice;
    /// The pattern that the array has now, so that another mapping is noticed; without it, that of the exchange. An
    /// exchange by a restriction of it is one of the array, too.
    std::function<const ExchangePattern *()> pattern;
    /// Told of pulls: `arrived` is false when one starts or has failed, true when its rows have arrived; `all` is false
    /// for pulls of some ghosts only, and for those that failed. Optional. It does not throw.
    std::function<void(bool arrived, bool all)> pulled = nullptr;
    /// Whether the program was built with DNDS_DEBUG_CHECKS: then `wait` finds host rows that were written after they
    /// were sent, however the library was built.
    bool checked = false;
};

/// What an exchange binds. Arrays have the same names on all ranks: that is how ranks tell that they create the same.
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
/// or re-allocated with the same rows is bound anew at the next start; one whose rows or mapping changed makes start
/// throw StateError. What start, wait or ready throws on one rank revokes the communicator: the others throw
/// RevokedError, and `recover` goes on (docs/reference/errors.md). So does destroying an exchange in flight, which
/// keeps the memory in use until then: rows that come late change ghosts, and nothing else.
///
/// Between start and wait the source must not be written and the destination not be used. What moves is what was bound
/// at start: wait throws StateError on a rank whose arrays were resized, swapped or moved meanwhile, or written on the
/// other side (host, device), and where the program or the library is built with DNDS_DEBUG_CHECKS also one whose sent
/// host rows were written. It throws when all is complete.
///
/// Where MPI grants MPI_THREAD_MULTIPLE, several threads may each use an exchange; else one thread at a time uses
/// exchanges. Using one beside another thread throws StateError where it is noticed. Any thread may destroy one that no
/// other uses; without MPI_THREAD_MULTIPLE, what that needs of MPI is left to the next set-up on the communicator. In a
/// forked child exchanges are the parent's: there start and wait throw, and destroying is silent.
///
/// An exchange moves either the host's or the device's copies (`ExchangeOptions::space`). On the device, rows are
/// packed and unpacked on a stream of the exchange: what it does runs after what the stream given to `start` held then,
/// and what is queued later on the stream given to `wait` runs after it. The host waits for messages and for packing,
/// and so for what the stream given to `start` held; for no other kernel:
///
///     boundaryKernel(stream);      exchange.start(stream);
///     innerKernel(otherStream);    exchange.wait(stream);      ghostKernel(stream);
class Exchange {
  public:
    /// Binds. Collective; all ranks create their exchanges of one communicator in the same order. Cost O(rows
    /// exchanged) and two reductions. Throws on all ranks: StateError (arrays do not have the pattern's rows, or
    /// another pattern by now; ranks create different exchanges), LayoutError (ranks, or father and son, disagree on
    /// type, width or sizes; an operation on opaque elements), ArgumentError (options, GhostsAfterPush::Zero with
    /// another operation than a sum, or some ranks ask for rows on the host and others on the device), NotBuiltError
    /// (rows on the device where there is none), MemoryError. StateError on this rank only without a pattern, which
    /// would name the other ranks.
    Exchange(std::shared_ptr<const ExchangePattern> pattern, Direction direction, std::vector<ExchangeMember> members,
             const ExchangeOptions &options = {}, PushOp op = PushOp::Replace);
    /// The same for what `describe` names when called; what it throws is thrown on all ranks, at no extra
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

    /// Begins; does not wait for peers. Local. On the device: `producer` is the stream that last wrote what is sent and
    /// last used what arrives (null: the default stream), not one that is captured for a graph unless `capturable()`.
    /// Throws StateError when already started, or when an array changed its rows; StaleError when the copy that this
    /// exchange moves is not the current one; MemoryError; what the device reports; RevokedError. Nothing has to be
    /// waited for then. StateError where the communicator was freed.
    void start(Device::StreamHandle producer = nullptr);
    /// Completes what `start` began: afterwards the host may use the rows, and so may all streams. Ghosts keep what was
    /// pushed, or are zero if that was asked for; where it throws they may be either. Throws StateError without start,
    /// or when arrays changed since (see above); RevokedError when another rank has failed, after which ghosts are
    /// stale and owned rows are what they were, after a push too; PeerError when the process of a rank has ended, or
    /// after DNDS_WAIT_TIMEOUT; DataError when pushed padded rows have other sizes than their owner's; what the device
    /// reports. Afterwards it is no longer in flight. StateError where the communicator was freed: then it stays so.
    void wait();
    /// The same for the device, but kernels may still run when it returns: `consumer` waits for them, the host does
    /// not.
    void wait(Device::StreamHandle consumer);
    /// Whether `wait` would return without waiting for peers; lets this and the thread's other exchanges go on, as
    /// `wait` does. For programs that wait for several things at once; `Waiting` pauses between looks. Local, does not
    /// wait. Throws as `wait`.
    bool ready();
    /// Whom it waits for, as the end of "waited for": "rank 3 to send rows of 'u'". Local; in flight.
    std::string awaited() const;
    bool inFlight() const noexcept;
    /// How often it was started. Local.
    std::uint64_t starts() const noexcept;

    /// Whether rows of the device move within this rank only, or none do: then start and wait(consumer) are nothing but
    /// device work and may be captured in a graph, after they have run once. Local.
    bool capturable() const;

    /// Which copies of the arrays are moved.
    MemorySpace space() const noexcept { return space_; }

    /// Whether it pulls or pushes, and between which rows. Local.
    Direction direction() const noexcept { return direction_; }
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_; }
    /// How each peer is reached, ascending; as the arrays lay at the last start, or when it was made. Local.
    std::vector<PeerPath> paths() const;
    /// The same as a table for people: peer, transport and why, rows and bytes. Local.
    std::string describe() const;

  private:
    struct State;

    Exchange(const CommunicatorContext::SetUp &setUp, CommunicatorContext &context, Direction direction,
             const std::function<ExchangeRequest()> &describe, const ExchangeOptions &options, PushOp op);

    /// Chooses transports and lays out messages, in memory that it may take. Local. Returns the signature of what
    /// moves.
    std::uint64_t prepare(CommunicatorContext &context, const ExchangeOptions &options);
    /// Where exchanges are counted, under the name of these arrays. Local.
    void beginCounting(const std::string &names);
    /// Lets transports find their peers. Collective.
    void connect(const CommunicatorView &comm);
    /// Finds the arrays again and tells the transports where they are now. Local. Throws where rows have changed.
    void rebindChanged();
    template <class Body>
    decltype(auto) running(std::string_view pull, std::string_view push, Body &&body);
    void complete();
    void completeEpoch();
    void finish();
    void requireCommunicator() const;
    void requireStarted() const;
    const std::string &label() const;
    /// Marks this thread as the user. Throws StateError where another one is.
    ThreadUse::Scope enter() const;
    void requireUnchanged();
    void combinePushed();

    std::shared_ptr<const ExchangePattern> pattern_;
    Direction direction_;
    PushOp op_;
    GhostsAfterPush ghosts_;
    MemorySpace space_ = MemorySpace::Host;
    std::shared_ptr<State> state_; ///< shared with the context when it is destroyed in flight
    std::vector<PeerPath> paths_;
};

} // namespace DNDS
