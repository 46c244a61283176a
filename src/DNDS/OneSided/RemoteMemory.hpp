/// @file RemoteMemory.hpp
/// @brief A range of memory of each rank that the others read and write: the base of heaps and windows.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Mpi/RollCall.hpp"
#include "DNDS/OneSided/Verbs.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

class DeviceAccess;
class HostProxy;
class RemoteAccess;
class RemoteMemory;

/// Whether kernels may wait for other ranks.
enum class KernelWaits : unsigned char { No, Yes };

using HostRemoteAddress = RemoteAddress<RemoteMemory>;

/// Memory in another rank's part of the node's arena: that rank has allocated it, and frees it.
struct LentMemory {
    int owner; ///< number of that rank on the node
    ArenaLocation place;
};

/// A collective call of a heap or window: ranks compare it in `meet`, so that different calls are an error, not a hang.
enum class CollectiveCall : std::uint8_t {
    MakeHeap,
    MakeWindow,
    MakeGhostWindow,
    Barrier,
    Allocate,
    Free,
    MakeWindowOver, ///< over an allocation of a heap
    End
};

/// Operations on the memory of other ranks, by rank and offset in bytes: loads and stores if the memory is mapped here,
/// `RemoteAccess` otherwise. The guarantees are modelled on OpenSHMEM 1.5 (put, get, fence, quiet, signals), on every
/// path; docs/guides/one_sided.md documents them. Each word has one executor for atomic operations of all ranks: the
/// processors of the node where it is mapped, its owner otherwise. Each rank knows the size of all ranks' memory, and
/// an address for the ranks that it reaches: O(ranks).
///
/// All functions are Local, unless stated. Heaps and windows throw the faults of kernels (`checkKernels`)
/// before accesses, and after `quiet` and `barrier`. They throw, and thereby revoke the communicator,
/// - IndexError for a rank that does not exist, or beyond its memory; ArgumentError for words that are not aligned
/// - PeerError if the process of a rank of this node has ended, or after DNDS_WAIT_TIMEOUT seconds of waiting.
/// RevokedError is thrown if the communicator is revoked: by waits, and by operations other than loads and stores.
/// After `recover` everything can be used as before, with its current bytes.
class RemoteMemory final : public Recoverable {
  public:
    /// Extremes of the numbers that ranks pass to a collective call.
    struct Extremes {
        std::uint64_t min = 0;
        std::uint64_t max = 0;
        std::int32_t minRank = 0; ///< the first rank with the least
        std::int32_t maxRank = 0; ///< the first rank with the largest

        /// Whether ranks passed different numbers.
        bool differ() const noexcept { return min != max; }
    };

    /// Limit of the bytes of a rank.
    static constexpr std::size_t maxBytes = std::numeric_limits<std::ptrdiff_t>::max() / 2;

    /// Memory for the constructor: in `space`; on the host mapped by the other ranks of the node, if they can.
    /// Local. Throws MemoryError, NotBuiltError.
    static std::shared_ptr<std::byte> allocate(const CommunicatorContext &context, std::size_t bytes, MemorySpace space,
                                               const std::string &name);

    /// `bytes` bytes from `memory` in `space` on this rank, which is `lent` where another one allocated it; `name`
    /// is for messages. After them, at a multiple of 128, the caller has `extra` more bytes, equally many on all
    /// ranks, to which `check` refuses access. Collective. Throws on all ranks as `DeviceAccess` and
    /// `MessageAccess` do.
    RemoteMemory(std::shared_ptr<CommunicatorContext> context, std::shared_ptr<std::byte> memory, std::size_t bytes,
                 MemorySpace space, std::string name, std::optional<LentMemory> lent = {}, std::size_t extra = 0);
    /// Collective: completes everything on all ranks, kernels too. During an exception, which revokes the communicator,
    /// where it is revoked, and after MPI_Finalize, it waits for no rank, and memory that others may still use is
    /// kept until all ranks have destroyed theirs and recovered.
    ~RemoteMemory() override;

    /// Waits until all ranks make the call `call`, and returns the extremes of their numbers; `name` is for messages.
    /// Collective. Throws ArgumentError on all ranks if they make different calls.
    static std::array<Extremes, 2> meetToMake(const std::shared_ptr<CommunicatorContext> &context, CollectiveCall call,
                                              const std::array<std::uint64_t, 2> &mine, std::string_view name);

    /// This rank and the number of ranks; the memory space, name and communicator, and the bytes of a rank.
    /// Local.
    int rank() const noexcept { return rank_; }
    int ranks() const noexcept { return static_cast<int>(bytes_.size()); }
    MemorySpace space() const noexcept { return space_; }
    const std::string &name() const noexcept { return name_; }
    CommunicatorContext &context() const noexcept { return *context_; }
    std::size_t bytes(int rank) const noexcept { return bytes_[static_cast<std::size_t>(rank)]; }
    /// This rank's memory, in its space.
    std::byte *own() const noexcept { return memory_.get(); }
    /// Address at which this processor's loads and stores reach a rank's memory; null where they do not.
    std::byte *mapped(int rank) const noexcept { return mapped_[static_cast<std::size_t>(rank)]; }
    /// Path to a rank's memory, readable.
    std::string path(int rank) const;

    /// The memory that loads and stores reach, in memory of `space`; valid as long as this object.
    RemoteTable table() const;
    /// The same for kernels, with the proxy. Its views are invalid after the end of this object. Throws StateError
    /// if kernels are to wait and must not.
    RemoteTable kernelTable(KernelWaits waits) const;
    /// Why kernels in device memory have no proxy to ranks out of their reach (`byMessages`), or to any; empty if they
    /// have one. Local.
    static std::string whyNoDeviceProxy(bool byMessages);
    /// Throws the fault that a kernel recorded, clears it, and revokes the communicator.
    void checkKernels() {
        if (faults_->noted() || hostFaults_->noted()) [[unlikely]]
            throwKernelFault();
    }
    /// Runs `body`, which checks an operation's arguments; its exceptions revoke the communicator.
    template <class Body>
    decltype(auto) checked(RemoteCall call, Body &&body) const {
        try {
            return std::forward<Body>(body)();
        } catch (const std::exception &) {
            revokeAndThrow(call);
        }
    }
    /// Revokes the communicator with the exception being handled, and rethrows it.
    [[noreturn]] void revokeAndThrow(RemoteCall call) const;
    /// Throws the host's error for `fault`: IndexError, ArgumentError, StateError, ..., naming call, rank and bytes.
    [[noreturn]] void throwFault(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset,
                                 std::uint64_t bytes) const;
    /// Throws the same from an operation, and revokes the communicator with it.
    [[noreturn]] void refuse(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset,
                             std::uint64_t bytes) const;
    /// The fault of an access to these bytes.
    AccessFault faultOf(int rank, std::uint64_t offset, std::uint64_t bytes, std::uint64_t alignment = 1) const {
        return hostTable().check(rank, offset, bytes, alignment);
    }
    /// Throws IndexError or ArgumentError unless an access to these bytes is allowed.
    void check(RemoteCall call, int rank, std::uint64_t offset, std::uint64_t bytes,
               std::uint64_t alignment = 1) const {
        if (const AccessFault fault = faultOf(rank, offset, bytes, alignment); fault != AccessFault::None)
            throwFault(fault, call, rank, offset, bytes);
    }

    /// Address of a rank's memory from an offset on, for operations; unchecked: call `check` before.
    HostRemoteAddress address(int rank, std::uint64_t offset) {
        std::byte *const base = mapped(rank);
        return {base == nullptr ? nullptr : base + offset, this, rank, offset};
    }
    /// The caller's words after a rank's memory, unchecked: their offset at this rank, and their address at any.
    std::uint64_t behind() const noexcept { return hostTable().behind(rank_); }
    HostRemoteAddress addressBehind(int rank) { return address(rank, hostTable().behind(rank)); }
    /// Operates on memory that is not mapped here; the first of several lanes does all of it. An exception revokes the
    /// communicator.
    void operate(const RemoteOperation &operation, const void *from, void *to, Lane lane = {},
                 Completion completion = Completion::Now);

    /// This rank's earlier puts and atomic operations are seen, at each rank, before its later ones. One instruction
    /// for mapped memory; with an MPI window, which orders nothing, as costly as `quiet`.
    void fence() {
        Atomics::fenceRelease();
        if (remote_)
            operate({RemoteVerb::Fence}, nullptr, nullptr);
    }
    /// Completes all operations of this rank, including operations of its kernels through the proxy. In this order: the
    /// proxy's requests become operations of the host; the fence covers stores; messages and the window are waited for.
    void quiet() {
        if (proxy_)
            drainProxy();
        Atomics::fenceSystem();
        if (remote_)
            operate({RemoteVerb::Quiet}, nullptr, nullptr);
    }
    /// The same, and throws errors of kernels: recorded faults first, as a failed kernel explains whatever `quiet`
    /// would throw.
    void complete() {
        if (remote_)
            checkKernels();
        quiet();
        checkKernels(); // includes failures of the proxy
    }
    /// Acquires: call it after other ranks have signalled by other means that their puts are complete, and before loads
    /// of the data.
    void sync() {
        Atomics::fenceSystem();
        if (remote_)
            syncRemote();
    }
    /// `quiet` on all ranks; afterwards loads see all puts. Throws this rank's kernel faults once all ranks are
    /// here. Collective; serves other ranks meanwhile.
    void barrier();
    /// `quiet` on all ranks in the same call; returns the extremes of their numbers. Collective. Throws ArgumentError
    /// on all ranks if others are in another call of this memory, which stays usable.
    std::array<Extremes, 2> meet(CollectiveCall call, const std::array<std::uint64_t, 2> &mine = {});
    /// Serves waiting requests; true if there were any. Does not wait, but throws RevokedError as waits do.
    bool progress() {
        requireValid();
        return serve();
    }
    /// Serves others until `done` returns true; `what` is as for DNDS::waitUntil.
    template <class What, class Done>
    void waitFor(RemoteCall call, What &&what, Done &&done) {
        const ActivityScope activity(runningName(call), name_);
        requireWhole();
        moving(call, [&] {
            if (done())
                return;
            waitServing(std::ref(done), [&]() -> std::string {
                if constexpr (std::is_invocable_v<What>)
                    return what();
                else
                    return std::string(what);
            });
        });
    }
    /// Waits until the word in this rank's memory satisfies the comparison, and returns it.
    template <AtomicWord T>
    T waitUntil(std::size_t offset, Comparison comparison, T value) {
        T seen{};
        const auto what = [&] {
            return fmt::format("other ranks to set the word at offset {} of '{}', which is {} and is to be {} {}",
                               offset, name_, +seen, comparisonName(comparison), +value);
        };
        waitFor(RemoteCall::Wait, what, [&] {
            seen = address(rank_, offset).fetchAtomic(0, AtomicOp::Fetch, T{});
            return holds(seen, comparison, value);
        });
        sync();
        return seen;
    }

    /// Writes this rank's own memory. For `renew` of objects in it, when no other function can be called.
    void restore(std::size_t offset, const void *from, std::size_t bytes);
    bool settle() noexcept override;
    void renew() override;

  private:
    /// "put to", for `CommunicatorContext::running`.
    static const char *runningName(RemoteCall call) noexcept;
    /// Runs operations through `remote_`, or waits, as `CommunicatorContext::running`, without its look for notices of
    /// failures, which costs more than a short operation: waits look. Throws StateError if the communicator was freed.
    template <class Body>
    std::invoke_result_t<Body> moving(RemoteCall call, Body &&body) {
        static_cast<void>(context_->comm());
        if (context_->revoked()) [[unlikely]]
            requireValid();
        return checked(call, std::forward<Body>(body));
    }
    /// Throws StateError if the communicator was freed, RevokedError if it is revoked.
    void requireValid() {
        static_cast<void>(context_->comm());
        context_->requireValid();
    }
    /// Throws StateError if a rank has destroyed its part.
    void requireWhole() const {
        DNDS_CHECK(destroyedOn_ < 0, StateError,
                   "{}: rank {} destroyed it before the last recovery: destroy it on all ranks, and make it again",
                   name_, destroyedOn_);
    }
    /// For checks of the host's accesses: without a record of faults, as the host throws.
    RemoteTable hostTable() const noexcept {
        return {mapped_.empty() ? nullptr : mapped_.data(), bytes_.data(), nullptr, rank_, ranks()};
    }
    /// Serves requests of this rank's kernels and of other ranks; true if there were any.
    bool serve() noexcept {
        const bool asked = Detail::serveProxies();
        return (remote_ != nullptr && serveRemote()) || asked;
    }
    bool serveRemote() noexcept;
    void syncRemote();
    /// Serves others until `done` returns true.
    void waitServing(const std::function<bool()> &done, const std::function<std::string()> &what);
    /// Tells all ranks this rank's memory, and maps theirs: fills in `mapped_` and `bytes_`. Collective.
    void exchangePlaces(std::size_t bytes, const std::optional<LentMemory> &lent);
    /// The normal end: all ranks complete, meet, and free. Collective.
    void close();
    /// Makes the proxy if kernels need it, or DNDS_ONE_SIDED_PROXY asks for it. Collective.
    void startProxy();
    /// Waits for the requests that kernels have made.
    void drainProxy();
    /// For the proxy: carries out a kernel's request, as the host's own call would be.
    void carryOut(const RemoteOperation &operation, std::byte *data);
    void throwKernelFault();

    std::shared_ptr<CommunicatorContext> context_;
    std::shared_ptr<NodeArena> arena_; ///< keeps mappings alive
    /// This rank's memory, shared with its owner; kept by the context if the object is destroyed after a failure.
    std::shared_ptr<std::byte> memory_;
    /// For `meet`: unlike a barrier of MPI it can be abandoned.
    MessageReduction barrier_;
    std::uint64_t serial_; ///< number of this object, the same on all ranks
    int destroyedOn_ = -1; ///< a rank that has destroyed it since a recovery
    std::string name_;
    MemorySpace space_;
    int rank_;
    /// [ranks] address in this process, or null where loads and stores do not reach; and the number of bytes.
    std::vector<std::byte *> mapped_;
    std::vector<std::uint64_t> bytes_;
    std::unique_ptr<RemoteAccess> remote_;            ///< null if all memory is mapped
    DeviceAccess *device_ = nullptr;                  ///< `remote_` for device memory, else null
    std::unique_ptr<FaultRecord> hostFaults_;         ///< faults of kernels on the host and of the proxy
    FaultRecord *faults_ = nullptr;                   ///< faults of kernels: the same, or on the device
    std::vector<std::byte *> onlyOwn_;                ///< bases for kernels that must use the proxy
    Device::DeviceBuffer<std::byte *> deviceOnlyOwn_; ///< the same on the device
    std::unique_ptr<HostProxy> proxy_;                ///< null if kernels reach all ranks
    int exceptions_;                                  ///< in flight at construction; more in the destructor: unwinding
};

} // namespace DNDS
