#include "DNDS/OneSided/RemoteMemory.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/HostMemory.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Device/KernelLoading.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/Revocation.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/OneSided/DeviceAccess.hpp"
#include "DNDS/OneSided/HostProxy.hpp"
#include "DNDS/OneSided/MessageAccess.hpp"
#include "DNDS/OneSided/RemoteAccess.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <utility>

namespace DNDS {

const char *atomicOpName(AtomicOp op) noexcept {
    constexpr std::array<const char *, 9> names{"fetch", "set", "add",  "min",        "max",
                                                "and",   "or",  "swap", "compareSwap"};
    return names[static_cast<std::size_t>(op)];
}

const char *remoteCallName(RemoteCall call) noexcept {
    constexpr std::array<const char *, 8> names{"put",    "get",  "an atomic operation", "a signal", "wait", "lock",
                                                "unlock", "flush"};
    return names[static_cast<std::size_t>(call)];
}

const char *RemoteMemory::runningName(RemoteCall call) noexcept {
    constexpr std::array<const char *, 8> names{"put to",  "get from", "atomic operation on", "signal to",
                                                "wait in", "lock of",  "unlock of",           "completion of"};
    return names[static_cast<std::size_t>(call)];
}

const char *comparisonName(Comparison comparison) noexcept {
    constexpr std::array<const char *, 6> names{"==", "!=", "<", "<=", ">", ">="};
    return names[static_cast<std::size_t>(comparison)];
}

void Detail::copyMany(std::byte *to, const std::byte *from, std::uint64_t bytes) noexcept {
    std::memcpy(to, from, bytes);
}

namespace {

/// Memory begins at a page, so that its addresses in two processes differ by whole pages: `RemoteTable::check`
/// tests the alignment of words by addresses of this process.
constexpr std::size_t pageBytes = 4096;

/// Limit of polls in a kernel's wait: some seconds.
constexpr std::uint64_t maxKernelPolls = std::uint64_t{1} << 24U;

/// A rank's description of its memory, sent to all ranks at set-up: addresses differ between processes, places in the
/// arena do not.
struct Place {
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
    std::uint32_t segment = 0;
    std::int32_t owner = -1; ///< the rank of the node whose part of the arena contains it; -1: none
};

/// Names of a collective call in messages: where a rank has failed, and where ranks make different ones.
struct CallNames {
    const char *running;
    const char *verb;
};
constexpr std::array<CallNames, 8> callNames{{{"construction of", "makes a heap"},
                                              {"construction of", "makes a window"},
                                              {"construction of", "makes a window over rows"},
                                              {"barrier of", "is in a barrier"},
                                              {"allocation in", "allocates"},
                                              {"release of memory in", "frees"},
                                              {"construction of a window over", "makes a window over an allocation"},
                                              {"destruction of", "destroys it"}}};
const CallNames &namesOf(std::uint64_t call) { return callNames[static_cast<std::size_t>(call)]; }

/// Smallest and largest of two ranks' numbers, with the lowest rank of each: commutative and associative, so that
/// all ranks get the same result.
RemoteMemory::Extremes combined(RemoteMemory::Extremes mine, const RemoteMemory::Extremes &theirs) noexcept {
    if (std::pair(theirs.min, theirs.minRank) < std::pair(mine.min, mine.minRank)) {
        mine.min = theirs.min;
        mine.minRank = theirs.minRank;
    }
    if (theirs.max > mine.max || (theirs.max == mine.max && theirs.maxRank < mine.maxRank)) {
        mine.max = theirs.max;
        mine.maxRank = theirs.maxRank;
    }
    return mine;
}

/// Waits until all ranks make this call; `serve` is called meanwhile. Throws ArgumentError on all ranks if they make
/// different ones, which leaves everything as it was.
/// One reduction: O(log ranks) messages. The least and the largest number differ exactly if any two ranks differ, and
/// each comes with a rank for the error.
template <class Serve>
std::array<RemoteMemory::Extremes, 2> meetIn(CommunicatorContext &context, MessageReduction &barrier,
                                             CollectiveCall call, const std::array<std::uint64_t, 2> &mine,
                                             std::string_view name, Serve &&serve) {
    // The call's own number travels with its arguments in one reduction: ranks in different calls meet here and
    // find out, instead of waiting in two barriers.
    const auto number = static_cast<std::uint64_t>(call);
    const char *running = namesOf(number).running;
    const ActivityScope activity(running, name);
    std::array<RemoteMemory::Extremes, 3> all;
    const int rank = context.comm().rank();
    for (std::size_t k = 0; const std::uint64_t brought : {number, mine[0], mine[1]})
        all[k++] = {brought, brought, rank, rank};
    context.running(running, name, [&] {
        barrier.start(std::as_bytes(std::span(all)), combineEach<RemoteMemory::Extremes, combined>);
        waitUntil(
            context,
            [&] {
                serve();
                return barrier.ready();
            },
            [&] { return fmt::format("other ranks to come to the {} '{}'", running, name); });
        std::ranges::copy(barrier.wait(), std::as_writable_bytes(std::span(all)).begin());
    });
    const auto &[calls, first, second] = all;
    DNDS_CHECK(!calls.differ(), ArgumentError,
               "{}: rank {} {}, but rank {} {}: make all ranks call the same in the same order", name, calls.minRank,
               namesOf(calls.min).verb, calls.maxRank, namesOf(calls.max).verb);
    return {first, second};
}

} // namespace

std::array<RemoteMemory::Extremes, 2> RemoteMemory::meetToMake(const std::shared_ptr<CommunicatorContext> &context,
                                                               CollectiveCall call,
                                                               const std::array<std::uint64_t, 2> &mine,
                                                               std::string_view name) {
    // One reduction for all constructors on the communicator, made by the first: ranks that construct different objects
    // meet in it. Not a barrier of MPI, as a rank that waits here must be able to abandon the wait.
    struct Making {
        explicit Making(CommunicatorContext &of) : barrier(of, "what is made") {}
        MessageReduction barrier;
    };
    MessageReduction &barrier = context->attach<Making>([&] { return std::make_shared<Making>(*context); }).barrier;
    return meetIn(*context, barrier, call, mine, name, [] {});
}

RemoteMemory::RemoteMemory(std::shared_ptr<CommunicatorContext> context, std::shared_ptr<std::byte> memory,
                           std::size_t bytes, MemorySpace space, std::string name, std::optional<LentMemory> lent,
                           std::size_t extra)
    : context_(std::move(context)), arena_(context_->node().arena), memory_(std::move(memory)),
      barrier_(*context_, name), serial_(context_->nextSerial()), name_(std::move(name)), space_(space),
      rank_(context_->comm().rank()), exceptions_(std::uncaught_exceptions()) {
    const CommunicatorView &comm = context_->comm();
    // In the order of what depends on what: places of all ranks, a way to ranks that are not mapped (device, or
    // messages if any rank needs them: collective, so all or none), the proxy for kernels, and recovery.
    mapped_.resize(static_cast<std::size_t>(comm.size()));
    bytes_.resize(mapped_.size());
    hostFaults_ = std::make_unique<FaultRecord>();
    faults_ = hostFaults_.get();
    exchangePlaces(bytes, lent);
    if (space == MemorySpace::Device) {
        auto device = std::make_unique<DeviceAccess>(context_, memory_.get(), bytes_, name_);
        faults_ = device->table().faults;
        device_ = device.get();
        remote_ = std::move(device);
    } else if (comm.allReduce(std::ranges::find(mapped_, nullptr) != mapped_.end() ? 1 : 0, MPI_MAX) != 0) {
        // A window of MPI only for ranks with data: memory of words alone (locks) is reached by requests, and MPI's
        // windows are costly to make.
        const bool onlyWords = std::ranges::all_of(bytes_, [](std::uint64_t size) { return size == 0; });
        remote_ = std::make_unique<MessageAccess>(
            context_, name_, memory_.get(),
            onlyWords ? RmaWindow() : RmaWindow(comm, memory_.get(), extra == 0 ? bytes : behind() + extra));
    }
    startProxy();
    const OnFailure undo([&] { context_->delist(*this); });
    comm.guarded([&] { context_->enlist(*this); });
}

std::shared_ptr<std::byte> RemoteMemory::allocate(const CommunicatorContext &context, std::size_t bytes,
                                                  MemorySpace space, const std::string &name) {
    bytes = std::max<std::size_t>(bytes, 1);
    if (space == MemorySpace::Device) {
        Device::requireDevice("make " + name + " in device memory");
        return {static_cast<std::byte *>(Device::allocate(bytes)), Device::deallocate};
    }
    // From the node's arena, if its ranks share one: only that is mapped by others.
    const std::shared_ptr<NodeArena> &arena = context.node().arena;
    const HostMemoryResource resource = arena ? HostMemoryResource(arena) : defaultHostMemory();
    auto *memory = static_cast<std::byte *>(allocateData(*resource, bytes, pageBytes, name));
    return {memory, [resource, bytes](std::byte *mine) { resource->deallocate(mine, bytes, pageBytes); }};
}

RemoteMemory::~RemoteMemory() {
    context_->delist(*this);
    // Together with all ranks; or alone, after a failure and after MPI_Finalize. Then the memory is kept until a
    // recovery finds that all ranks have destroyed theirs.
    const bool passing = std::uncaught_exceptions() > exceptions_ && ranks() > 1;
    if (mpiActive() && context_->alive())
        try {
            if (passing)
                context_->revocation().revoke("its program",
                                              fmt::format("an exception on rank {} destroyed '{}'", rank_, name_));
            if (!context_->revoked() && destroyedOn_ < 0) {
                close();
                return;
            }
        } catch (const std::exception &) { // the other ranks do not come
            context_->revoke(namesOf(static_cast<std::uint64_t>(CollectiveCall::End)).running, name_,
                             std::current_exception());
        }
    proxy_.reset();
    const std::shared_ptr<RemoteAccess> remote = std::move(remote_);
    if (remote) {
        remote->stop();
        context_->enlist(*remote);
    }
    context_->keep(serial_, memory_,
                   [remote, context = context_.get()] { // others, and MPI, may still read and write it
                       if (!remote)
                           return;
                       context->delist(*remote);
                       remote->close();
                   });
}

bool RemoteMemory::settle() noexcept {
    if (proxy_)
        proxy_->stop();
    return true;
}

void RemoteMemory::renew() {
    // All ranks have settled. Faults are dropped: they follow from the failure that was recovered from.
    destroyedOn_ = context_->destroyedOn(serial_);
    if (remote_)
        remote_->renew();
    if (proxy_)
        proxy_->restart();
    for (FaultRecord *record : {faults_, hostFaults_.get()}) // from kernels that waited for failed ranks
        if (record->noted())
            record->take();
}

void RemoteMemory::restore(std::size_t offset, const void *from, std::size_t bytes) {
    // Not by `operate`, which needs a valid communicator: this is called while it recovers.
    if (std::byte *to = mapped(rank_))
        std::memcpy(to + offset, from, bytes);
    else
        remote_->operate({RemoteVerb::Put, rank_, offset, bytes}, from, nullptr, Completion::Now);
}

bool RemoteMemory::serveRemote() noexcept { return remote_->progress(); }

void RemoteMemory::syncRemote() { remote_->sync(); }

/// Serves other ranks before each look: two ranks that wait for each other's answers would hang otherwise.
void RemoteMemory::waitServing(const std::function<bool()> &done, const std::function<std::string()> &what) {
    const auto served = [&] {
        serve();
        return done();
    };
    DNDS::waitUntil(*context_, served, what);
}

/// O(ranks) memory and one gather at set-up; afterwards an access on the node is a load or store without any look-up.
void RemoteMemory::exchangePlaces(std::size_t bytes, const std::optional<LentMemory> &lent) {
    const CommunicatorView &comm = context_->comm();
    const NodeTopology &node = context_->node();
    const bool onHost = space_ == MemorySpace::Host;
    // All ranks are told the place of the memory in the node's arena: each maps the parts of its node's ranks, and
    // reaches the others by `remote_`.
    Place place;
    place.bytes = bytes;
    if (lent)
        place = {bytes, lent->place.offset, lent->place.segment, lent->owner};
    else if (const auto found = onHost && arena_ ? arena_->locate(memory_.get()) : std::nullopt)
        place = {bytes, found->offset, found->segment, arena_->nodeRank()};
    const std::vector<Place> all = comm.allGatherV(std::span<const Place>(&place, 1));
    comm.guarded([&] {
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            bytes_[rank] = all[rank].bytes;
            if (static_cast<int>(rank) == rank_ && onHost)
                mapped_[rank] = memory_.get();
            else if (!arena_ || !node.sameNode(static_cast<int>(rank)) || all[rank].owner < 0)
                continue;
            else if (all[rank].owner == place.owner && all[rank].segment == place.segment) // one mapping for all of it
                mapped_[rank] = memory_.get() + static_cast<std::ptrdiff_t>(all[rank].offset - place.offset);
            else
                mapped_[rank] = arena_->translate(all[rank].owner, {all[rank].segment, all[rank].offset});
        }
    });
}

std::string RemoteMemory::path(int rank) const {
    if (mapped(rank) != nullptr)
        return rank == rank_ ? "own memory" : "loads and stores in memory shared on the node";
    if (device_ != nullptr && device_->bases()[static_cast<std::size_t>(rank)] == nullptr)
        return fmt::format("requests to the owner, who copies, by messages of MPI ({})", device_->whyNotReached(rank));
    if (device_ != nullptr)
        return rank == rank_ ? "own device memory" : "device memory opened by this process: kernels and copies";
    const NodeTopology &node = context_->node();
    return fmt::format("MPI for puts and gets, requests to the owner for atomic operations ({})",
                       !node.sameNode(rank) ? "on another node"
                       : !node.arena        ? node.whyNoArena
                                            : "its memory is not in the node's arena");
}

RemoteTable RemoteMemory::table() const {
    return device_ != nullptr ? device_->table() : RemoteTable{mapped_.data(), bytes_.data(), faults_, rank_, ranks()};
}

RemoteTable RemoteMemory::kernelTable(KernelWaits waits) const {
    // Kernels get what the host has, and what only they need: the limit of waits, the proxy, and, if the proxy is
    // forced, no address but this rank's own.
    RemoteTable result = table();
    if (waits == KernelWaits::Yes) {
        const std::string whyNot = device_ != nullptr ? device_->whyNoWaits() : std::string();
        DNDS_CHECK(whyNot.empty(), StateError, "{}: kernels must not wait: {}", name_, whyNot);
        result.maxPolls = maxKernelPolls;
    }
    if (proxy_)
        result.proxy = proxy_->view();
    if (!onlyOwn_.empty())
        result.bases = device_ != nullptr ? deviceOnlyOwn_.data() : onlyOwn_.data();
    return result;
}

/// All ranks decide alike where the decision involves collective calls; a rank may lack a proxy for reasons of its own.
void RemoteMemory::startProxy() {
    const bool forced = readEnvironment().oneSidedProxy; // the same on all ranks
    const bool byMessages = device_ != nullptr ? device_->sendsRequests() : remote_ != nullptr;
    if (!forced && !byMessages)
        return;
    // Requests that become messages need a thread that may call MPI: if only one may, it serves in its waits. Outside
    // of `guarded`, as the first call is collective.
    std::shared_ptr<HostProxy::Server> server =
        byMessages && !mpiServesAllThreads() ? HostProxy::serverOfThread() : HostProxy::serverOf(*context_);
    context_->comm().guarded([&] {
        const std::string whyNot = device_ != nullptr ? whyNoDeviceProxy(byMessages) : std::string();
        DNDS_CHECK(!forced || whyNot.empty(), StateError, "{}: DNDS_ONE_SIDED_PROXY=1, but there can be no proxy: {}",
                   name_, whyNot);
        if (!whyNot.empty()) // kernels that need it get the reason
            return;
        if (forced) {
            onlyOwn_.resize(mapped_.size());
            onlyOwn_[static_cast<std::size_t>(rank_)] = memory_.get();
        }
        if (forced && device_ != nullptr)
            deviceOnlyOwn_ = Detail::toDeviceBuffer(onlyOwn_);
        proxy_ = std::make_unique<HostProxy>(
            space_, [this](const RemoteOperation &operation, std::byte *data) { carryOut(operation, data); },
            [this] { hostFaults_->note(AccessFault::Proxy, RemoteCall::Flush, rank_, 0, 0); }, std::move(server));
    });
}

/// Puts, gets and words of ranks that loads and stores do not reach; Fence and Quiet of all ranks.
void RemoteMemory::operate(const RemoteOperation &operation, const void *from, void *to, Lane lane,
                           Completion completion) {
    // Of several lanes the first does it all: the host has no use for more.
    if (lane.number != 0)
        return;
    moving(callOf(operation.verb), [&] {
        // A signal is a fence and an atomic operation: the owner sees the puts before it. Words without results are
        // complete at `quiet` only, whatever the caller asks for.
        RemoteOperation rest = operation;
        if (operation.verb == RemoteVerb::Quiet)
            return remote_->quiet();
        if (operation.verb == RemoteVerb::Fence)
            return remote_->fence();
        if (operation.verb == RemoteVerb::Signal) {
            remote_->fence();
            rest.verb = RemoteVerb::Atomic;
        }
        remote_->operate(rest, from, to, rest.verb == RemoteVerb::Atomic ? Completion::AtQuiet : completion);
    });
}

/// A kernel that waits for the proxy keeps its stream busy. Everything that the proxy calls must run beside that
/// kernel, or both deadlock.
std::string RemoteMemory::whyNoDeviceProxy(bool byMessages) {
#if !defined(DNDS_CUDA_PROXY)
    if (Device::name() == "cuda")
        return "kernels for GPUs are compiled without it: configure DNDS with -DDNDS_CUDA_PROXY=ON";
#endif
    if (Device::available() && Device::loadsKernelsLazily()) // the proxy launches kernels while others wait for it
        return "CUDA loads kernels when they are first launched, which may wait for those that run: start all ranks "
               "with CUDA_MODULE_LOADING=EAGER";
    // The thread that waits for a stream serves no kernel.
    return byMessages && !mpiServesAllThreads()
               ? "ranks are reached by messages, which a thread beside waiting kernels has to send: start MPI with "
                 "MPI_THREAD_MULTIPLE"
               : "";
}

/// Runs on the proxy's thread, or in a wait. Its exceptions end the proxy.
void RemoteMemory::carryOut(const RemoteOperation &operation, std::byte *data) {
    requireValid(); // kernels need not wait for failed ranks
    // As a call of the host would do it; operands and results share the slot's data.
    const HostRemoteAddress there = address(operation.rank, operation.offset);
    std::byte *const base = mapped(operation.rank);
    switch (operation.verb) {
    case RemoteVerb::Put:
        return there.put(0, data, operation.bytes);
    case RemoteVerb::Get:
        return there.get(0, data, operation.bytes);
    case RemoteVerb::Signal:
        return there.signal(operation.request.operand, operation.request.op == AtomicOp::Add);
    case RemoteVerb::Fence:
        return fence();
    case RemoteVerb::Quiet:
        Atomics::fenceSystem();
        if (remote_)
            operate(operation, nullptr, nullptr);
        return;
    case RemoteVerb::Atomic:
    case RemoteVerb::FetchAtomic:
        break;
    }
    if (base == nullptr)
        return operate(operation, data, operation.isAnswered() ? data : nullptr);
    Atomics::applyEach(base + operation.offset, operation.request, data, data, operation.bytes);
}

void RemoteMemory::drainProxy() { proxy_->drain(); }

void RemoteMemory::throwFault(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset,
                              std::uint64_t bytes) const {
    // One text for each fault, for calls of the host and for the notes of kernels: both have the same five numbers.
    const char *name = remoteCallName(call);
    const bool ofRank = bytes == 0 && offset == 0; // locks and the like, or nothing at the beginning
    const std::string what =
        ofRank ? fmt::format("{}: {} on rank {}", name_, name, rank)
               : fmt::format("{}: {} of {} bytes at offset {} of rank {}", name_, name, bytes, offset, rank);
    switch (fault) {
    case AccessFault::Rank:
        throw IndexError(fmt::format("{}: ranks are 0 to {}", what, ranks() - 1));
    case AccessFault::Range:
        throw IndexError(rank >= 0 && rank < ranks()
                             ? fmt::format("{}: beyond the end, which is at {}", what, this->bytes(rank))
                             : what + ": beyond the end");
    case AccessFault::Freed:
        throw StateError(what + ": this memory was freed");
    case AccessFault::Foreign:
        throw ArgumentError(what + ": the pointer is null, or belongs to another heap");
    case AccessFault::Alignment:
        throw ArgumentError(what + ": atomic operations need words at multiples of their size");
    case AccessFault::Unreachable:
        throw StateError(
            fmt::format("{}: this one is out of reach of a kernel's loads and stores, and there is no proxy "
                        "({}): use the call on the host",
                        what, whyNoDeviceProxy(true)));
    case AccessFault::NotLocked:
        DNDS_CHECK(rank != anyRank, StateError, "{}: {}: no rank is locked: call lock or lockAll first", name_, name);
        throw StateError(what + ": the window is not locked for this rank: call lock or lockAll first");
    case AccessFault::Locked:
        throw StateError(what + ": this rank has a lock of it already: unlock it first");
    case AccessFault::NoAtomics:
        throw StateError(
            fmt::format("{}: this rank's GPU does not change words of that rank's memory atomically{}: use "
                        "puts and signals that are set, or a heap in host memory",
                        what, device_ != nullptr ? " (" + device_->whyNoAtomics(rank) + ")" : ""));
    case AccessFault::Real:
        throw ArgumentError(what + ": And and Or are for integers");
    case AccessFault::Stride:
        throw ArgumentError(what + ": a stride is 0 or less: give at least 1");
    case AccessFault::TimedOut:
        throw PeerError(what + ": the word did not become what was waited for");
    case AccessFault::Proxy:
        throw PeerError(what + ": the proxy did not carry it out in a minute or so");
    case AccessFault::None:
        break;
    }
    throw StateError(what + ": no fault");
}

void RemoteMemory::refuse(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset,
                          std::uint64_t bytes) const {
    try {
        throwFault(fault, call, rank, offset, bytes);
    } catch (const Error &) {
        revokeAndThrow(call);
    }
}

void RemoteMemory::revokeAndThrow(RemoteCall call) const {
    context_->revoke(runningName(call), name_, std::current_exception());
    throw;
}

void RemoteMemory::throwKernelFault() {
    // The device's record first; the host's own holds faults of host kernels and of the proxy.
    const KernelFault seen = (faults_->noted() ? faults_ : hostFaults_.get())->take();
    checked(seen.call, [&] {
        if (seen.fault == AccessFault::Proxy && proxy_)
            proxy_->rethrow();
        try {
            throwFault(seen.fault, seen.call, seen.rank, seen.offset, seen.bytes);
        } catch (const Error &error) {
            throwError(error.kind(), "in a kernel: " + error.message() +
                                         (seen.others == 0 ? std::string()
                                                           : fmt::format(" ({} more accesses were wrong, and skipped)",
                                                                         seen.others)));
        }
    });
}

void RemoteMemory::barrier() {
    meet(CollectiveCall::Barrier);
    checkKernels(); // only now: the others must not wait for a rank with failed kernels
}

std::array<RemoteMemory::Extremes, 2> RemoteMemory::meet(CollectiveCall call,
                                                         const std::array<std::uint64_t, 2> &mine) {
    // Order: this rank's operations are complete before it meets the others, and theirs are visible to it
    // afterwards.
    static_cast<void>(context_->comm()); // throws if it was freed
    requireWhole();
    quiet();
    const auto seen = meetIn(*context_, barrier_, call, mine, name_, [this] { serve(); });
    sync();
    return seen;
}

/// In this order: kernels of this rank end; all ranks complete and meet, after which no new request arrives; the proxy
/// ends; mappings and windows are closed; on devices a second meeting, before any rank frees its memory.
void RemoteMemory::close() {
    if (device_ != nullptr)
        Device::synchronizeAll(); // kernels in flight may still use the memory of any rank
    meet(CollectiveCall::End);
    if (faults_->noted() || hostFaults_->noted() || faults_->unreported() != 0)
        warn("{}: a kernel of rank {} did wrong, and nobody asked (checkKernels)", name_, rank_);
    proxy_.reset();
    if (!remote_)
        return;
    remote_->close();
    if (device_ != nullptr)
        meet(CollectiveCall::End); // no rank frees memory that another rank has open
    remote_.reset();
}

} // namespace DNDS
