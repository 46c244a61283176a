/// @file RemoteMemory.hpp
/// @brief A range of memory of each rank that the others read and write: what heaps and windows are made of.
#pragma once

#include "DNDS/Base/MemorySpace.hpp"
#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/MessageReduction.hpp"
#include "DNDS/Mpi/PeerMemory.hpp"
#include "DNDS/Mpi/RollCall.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/OneSided/RemoteAccess.hpp"
#include "DNDS/OneSided/Verbs.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
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
class NodeArena;
class RemoteMemory;

/// Whether kernels may wait for other ranks.
enum class KernelWaits : unsigned char { No, Yes };

using HostRemoteAddress = RemoteAddress<RemoteMemory>;

/// Memory that lies in another rank's part of the node's arena.
struct LentMemory {
    int owner; ///< its number on the node
    ArenaLocation place;
};

/// A collective call of a heap or window.
enum class CollectiveCall : std::uint8_t {
    MakeHeap,
    MakeWindow,
    MakeGhostWindow,
    Barrier,
    Allocate,
    Free,
    MakeWindowOver, ///< an allocation of a heap
    End
};

/// Operations on the memory of other ranks, by rank and offset in bytes: loads and stores where the memory is mapped
/// here, `RemoteAccess` elsewhere. docs/guides/one_sided.md says what each promises.
///
/// All functions are Local, unless stated. Heaps and windows throw what a kernel noted (`checkKernels`)
/// before accesses, and after `quiet` and `barrier`. They throw, and revoke the communicator with it,
/// - IndexError for a rank that does not exist, or beyond its memory; ArgumentError for words that are not aligned
/// - PeerError where the process of a rank of this node has ended, or after DNDS_WAIT_TIMEOUT seconds of waiting.
/// They throw RevokedError where the communicator is revoked: waits, and what does not move by loads and stores. After
/// `recover` everything can be used as before, with the bytes that are there.
class RemoteMemory final : public Recoverable {
  public:
    /// Of a number that each rank brings to a collective call.
    struct Extremes {
        std::uint64_t min = 0;
        std::uint64_t max = 0;
        std::int32_t minRank = 0; ///< the first rank that brings the least
        std::int32_t maxRank = 0; ///< the first rank that brings the largest

        /// Whether ranks brought different numbers.
        bool differ() const noexcept { return min != max; }
    };

    /// Bytes of a rank at most.
    static constexpr std::size_t maxBytes = std::numeric_limits<std::ptrdiff_t>::max() / 2;

    /// Memory for the constructor: in `space`, and on the host where the other ranks of the node map it, if they can.
    /// Local. Throws MemoryError, NotBuiltError.
    static std::shared_ptr<std::byte> allocate(const CommunicatorContext &context, std::size_t bytes, MemorySpace space,
                                               const std::string &name);

    /// `bytes` bytes from `memory` in `space` on this rank, which is `lent` where another one allocated it; `name` is
    /// for messages. The caller gets `extra` more bytes, the same number on all ranks, at `RemoteTable::behind`;
    /// `check` refuses accesses to them. Collective. Throws on all ranks what `DeviceAccess` and `MessageAccess` do.
    RemoteMemory(std::shared_ptr<CommunicatorContext> context, std::shared_ptr<std::byte> memory, std::size_t bytes,
                 MemorySpace space, std::string name, std::optional<LentMemory> lent = {}, std::size_t extra = 0);
    /// Collective: completes everything on all ranks, kernels too. While an exception is on its way, which revokes the
    /// communicator, where it is revoked, and after MPI_Finalize, it waits for nobody, and what others may still use is
    /// kept until all ranks have destroyed theirs and recovered.
    ~RemoteMemory() override;

    /// Waits until all ranks make what `call` says, and returns what they bring; `name` is for messages. Collective.
    /// Throws ArgumentError on all ranks where they make different things.
    static std::array<Extremes, 2> meetToMake(const std::shared_ptr<CommunicatorContext> &context, CollectiveCall call,
                                              const std::array<std::uint64_t, 2> &mine, std::string_view name);

    /// This rank and the number of ranks; the memory it lies in, its name, its communicator, and the bytes of a rank.
    /// Local.
    int rank() const noexcept { return rank_; }
    int ranks() const noexcept { return static_cast<int>(bytes_.size()); }
    MemorySpace space() const noexcept { return space_; }
    const std::string &name() const noexcept { return name_; }
    CommunicatorContext &context() const noexcept { return *context_; }
    std::size_t bytes(int rank) const noexcept { return bytes_[static_cast<std::size_t>(rank)]; }
    /// This rank's memory, in its space.
    std::byte *own() const noexcept { return memory_.get(); }
    /// Where loads and stores of this processor reach a rank's memory; null where they do not.
    std::byte *mapped(int rank) const noexcept { return mapped_[static_cast<std::size_t>(rank)]; }
    /// How a rank's memory is reached, for people.
    std::string path(int rank) const;

    /// What loads and stores reach, in memory of `space`; valid as long as this object.
    RemoteTable table() const;
    /// The same for kernels, with the proxy. Views made from it are done with when this object goes. Throws StateError
    /// where kernels are to wait and must not.
    RemoteTable kernelTable(KernelWaits waits) const;
    /// Why kernels in device memory have no proxy to ranks out of their reach (`byMessages`), or to any; empty where
    /// they have. Local.
    static std::string whyNoDeviceProxy(bool byMessages);
    /// Throws what a kernel noted, forgets it, and revokes the communicator.
    void checkKernels() {
        if (faults_->noted() || hostFaults_->noted()) [[unlikely]]
            throwKernelFault();
    }
    /// Runs `body`, which checks what an operation is asked for; what it throws revokes the communicator.
    template <class Body>
    decltype(auto) checked(RemoteCall call, Body &&body) const {
        try {
            return std::forward<Body>(body)();
        } catch (const std::exception &) {
            revokeAndThrow(call);
        }
    }
    /// Revokes the communicator with the exception that is being handled, and throws it on.
    [[noreturn]] void revokeAndThrow(RemoteCall call) const;
    /// Throws what `fault` is for the host: IndexError, ArgumentError, StateError, ..., saying call, rank and bytes.
    [[noreturn]] void throwFault(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset,
                                 std::uint64_t bytes) const;
    /// Throws the same from an operation, and revokes the communicator with it.
    [[noreturn]] void refuse(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset,
                             std::uint64_t bytes) const;
    /// What is wrong with an access to these bytes.
    AccessFault faultOf(int rank, std::uint64_t offset, std::uint64_t bytes, std::uint64_t alignment = 1) const {
        return hostTable().check(rank, offset, bytes, alignment);
    }
    /// Throws IndexError or ArgumentError unless an access to these bytes is right.
    void check(RemoteCall call, int rank, std::uint64_t offset, std::uint64_t bytes,
               std::uint64_t alignment = 1) const {
        if (const AccessFault fault = faultOf(rank, offset, bytes, alignment); fault != AccessFault::None)
            throwFault(fault, call, rank, offset, bytes);
    }

    /// For operations on a rank's memory from an offset on, which is not checked: `check` does that.
    HostRemoteAddress address(int rank, std::uint64_t offset) {
        std::byte *const base = mapped(rank);
        return {base == nullptr ? nullptr : base + offset, this, rank, offset};
    }
    /// The caller's words after a rank's memory, and their offset at this rank.
    std::uint64_t behind() const noexcept { return hostTable().behind(rank_); }
    HostRemoteAddress addressBehind(int rank) { return address(rank, hostTable().behind(rank)); }
    /// Operates on memory that is not mapped here; of several lanes one does it. An exception revokes the communicator.
    void operate(const RemoteOperation &operation, const void *from, void *to, Lane lane = {},
                 Completion completion = Completion::Now);

    /// This rank's puts and atomic operations before it are seen, at each rank, before those after it.
    void fence() {
        Atomics::fenceRelease();
        if (remote_)
            operate({RemoteVerb::Fence}, nullptr, nullptr);
    }
    /// All operations of this rank are complete, those of its kernels through the proxy, too.
    void quiet() {
        if (proxy_)
            drainProxy();
        Atomics::fenceSystem();
        if (remote_)
            operate({RemoteVerb::Quiet}, nullptr, nullptr);
    }
    /// The same, and throws what kernels did wrong: what they noted before comes first.
    void complete() {
        if (remote_)
            checkKernels();
        quiet();
        checkKernels(); // with what the proxy could not carry out
    }
    /// After other ranks have said by another way that their puts are complete, and before loads of what they put.
    void sync() {
        Atomics::fenceSystem();
        if (remote_)
            remote_->sync();
    }
    /// `quiet` on all ranks; afterwards loads see what was put. Throws what a kernel of this rank noted once all have
    /// come. Collective; serves other ranks meanwhile.
    void barrier();
    /// `quiet` on all ranks that call the same; returns what they bring. Collective. Throws ArgumentError on all ranks
    /// where others call something else of this memory, which can be used further.
    std::array<Extremes, 2> meet(CollectiveCall call, const std::array<std::uint64_t, 2> &mine = {});
    /// Serves those that have come; returns whether there were any. Does not wait, but throws RevokedError as waits do.
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
            const auto served = [&] {
                serve();
                return done();
            };
            DNDS::waitUntil(*context_, served, std::forward<What>(what));
        });
    }
    /// Waits until the word in this rank's memory compares as told, and returns it.
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

    /// Writes this rank's own memory. For `renew` of objects that lie in it, when nothing else can be called.
    void restore(std::size_t offset, const void *from, std::size_t bytes);
    bool settle() noexcept override;
    void renew() override;

  private:
    /// "put to", for `CommunicatorContext::running`.
    static const char *runningName(RemoteCall call) noexcept;
    /// Runs what moves through `remote_`, or waits, as `CommunicatorContext::running`, but leaves it to waits to look
    /// for messages of failures. Throws StateError where the communicator was freed.
    template <class Body>
    std::invoke_result_t<Body> moving(RemoteCall call, Body &&body) {
        static_cast<void>(context_->comm());
        if (context_->revocation().revoked()) [[unlikely]]
            requireValid();
        return checked(call, std::forward<Body>(body));
    }
    /// Throws StateError where the communicator was freed, RevokedError where it is revoked.
    void requireValid() {
        static_cast<void>(context_->comm());
        context_->revocation().requireValid();
    }
    /// Throws StateError where a rank has destroyed its part.
    void requireWhole() const {
        DNDS_CHECK(destroyedOn_ < 0, StateError,
                   "{}: rank {} destroyed it before the last recovery: destroy it on all ranks, and make it again",
                   name_, destroyedOn_);
    }
    RemoteTable hostTable() const noexcept {
        return {mapped_.empty() ? nullptr : mapped_.data(), bytes_.data(), nullptr, rank_, ranks()};
    }
    bool serve() noexcept {
        const bool asked = Detail::serveProxies();
        return (remote_ != nullptr && remote_->progress()) || asked;
    }
    void exchangePlaces(std::size_t bytes, const std::optional<LentMemory> &lent);
    void close();
    void startProxy();
    void drainProxy();
    void carryOut(const RemoteOperation &operation, std::byte *data);
    void throwKernelFault();

    std::shared_ptr<CommunicatorContext> context_;
    std::shared_ptr<NodeArena> arena_; ///< keeps mappings alive
    std::shared_ptr<std::byte> memory_;
    MessageReduction barrier_;
    std::uint64_t serial_; ///< of this object, on its communicator
    int destroyedOn_ = -1; ///< a rank where it is gone since a recovery
    std::string name_;
    MemorySpace space_;
    int rank_;
    std::vector<std::byte *> mapped_;
    std::vector<std::uint64_t> bytes_;
    std::unique_ptr<RemoteAccess> remote_;            ///< null where all memory is mapped
    DeviceAccess *device_ = nullptr;                  ///< the same, for device memory
    std::unique_ptr<FaultRecord> hostFaults_;         ///< of kernels on the host and of the proxy
    FaultRecord *faults_ = nullptr;                   ///< of kernels: the same, or in memory that a device reaches
    std::vector<std::byte *> onlyOwn_;                ///< bases for kernels that are to use the proxy
    Device::DeviceBuffer<std::byte *> deviceOnlyOwn_; ///< the same on the device
    std::unique_ptr<HostProxy> proxy_;                ///< null where kernels reach all
    int exceptions_;                                  ///< on their way when this was made
};

} // namespace DNDS
