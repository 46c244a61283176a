/// @file WindowView.hpp
/// @brief Operations of a window in kernels.
#pragma once

#include "DNDS/OneSided/Verbs.hpp"

namespace DNDS {

/// The operations of a `Window` in kernels, each by one thread; put and get also by several (`Lane`). Locks of the host
/// count; one thread of a kernel may take locks if its view allows waiting. Trivially copyable.
///
/// A wrong access is skipped, and the next call of the window on the host throws the first one; operations with a
/// result return 0 then. Each thread completes its own operations; host and kernel do not access the same window
/// between two synchronisations.
class WindowView : public WindowVerbs<WindowView, index> {
  public:
    WindowView() = default;
    /// For `Window::view`: the data, and the memory followed by the window's own words.
    WindowView(const RemoteTable &data, const RemoteTable &words, MemorySpace space)
        : data_(data), words_(words), space_(space) {}

    /// This rank, and the number of ranks.
    DNDS_HOST_DEVICE int rank() const { return data_.rank; }
    DNDS_HOST_DEVICE int ranks() const { return data_.ranks; }
    /// The memory of the window, from which it may be accessed.
    DNDS_HOST_DEVICE MemorySpace residing() const { return space_; }
    /// This rank's memory.
    DNDS_HOST_DEVICE void *own() const { return data_.bases[data_.rank]; }
    /// A rank's memory; its base is null if loads and stores of this kernel do not reach it. For a rank that does not
    /// exist an empty result, and a fault.
    DNDS_HOST_DEVICE WindowShared sharedQuery(int rank) const {
        if (!isRight(data_.check(rank, 0, 0), RemoteCall::Get, rank))
            return {};
        return {data_.bytes[rank], unitOf(rank), data_.bases[rank]};
    }
    /// Loads of this thread see completed operations of others.
    DNDS_HOST_DEVICE void sync() const { Atomics::fenceSystem(); }
    /// Waits for a word that `test` accepts, by one thread of a kernel whose view allows it. False, and a fault, after
    /// some seconds.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool waitUntil(index at, Comparison comparison, T value) const {
        const auto mine = addressOf<T>(RemoteCall::Wait, 1, data_.rank, at, sizeof(T));
        return mine && words_.waitFor(RemoteCall::Wait, data_.rank, static_cast<std::uint64_t>(at) * unitOf(data_.rank),
                                      sizeof(T), [&] { return mine.holds(comparison, value); });
    }

  private:
    friend class WindowVerbs<WindowView, index>;

    /// One of the window's own words at this rank, at an offset from their start.
    template <class T>
    DNDS_HOST_DEVICE T *mine(std::uint64_t at) const {
        return reinterpret_cast<T *>(words_.bases[words_.rank] + words_.behind(words_.rank) + at);
    }
    DNDS_HOST_DEVICE std::uint64_t unitOf(int rank) const { return mine<std::uint64_t>(Units)[rank]; }
    DNDS_HOST_DEVICE std::uint32_t held(int rank) const { return mine<std::uint32_t>(heldAt(words_.ranks))[rank]; }
    DNDS_HOST_DEVICE void setHeld(int rank, std::uint32_t how) const {
        mine<std::uint32_t>(heldAt(words_.ranks))[rank] = how;
    }
    /// Threads of a kernel share their rank's locks.
    DNDS_HOST_DEVICE static constexpr bool isAlone(int /*rank*/) { return false; }
    DNDS_HOST_DEVICE bool isRight(AccessFault fault, RemoteCall call, int rank) const {
        if (fault != AccessFault::None)
            data_.faults->note(fault, call, rank, 0, 0);
        return fault == AccessFault::None;
    }
    DNDS_HOST_DEVICE AccessFault whyNoLocks(int rank) const {
        return words_.maxPolls == 0 ? AccessFault::TimedOut : words_.whyNoAtomics(rank);
    }
    DNDS_HOST_DEVICE KernelRemoteAddress lockOf(int rank) const {
        return addressIn(words_, AccessFault::None, RemoteCall::Atomic, rank, words_.behind(rank), lockBytes);
    }
    template <class Place, class Done>
    DNDS_HOST_DEVICE bool waitForLock(const Place & /*lock*/, int rank, const Done &done) const {
        return words_.waitFor(RemoteCall::Lock, rank, 0, 0, done);
    }
    DNDS_HOST_DEVICE void complete() const { data_.quiet(); }
    DNDS_HOST_DEVICE KernelRemoteAddress address(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset,
                                                 std::uint64_t bytes, std::uint64_t alignment) const {
        if (fault == AccessFault::None)
            fault = data_.check(rank, offset, bytes, alignment);
        return addressIn(data_, fault, call, rank, offset, bytes);
    }

    /// The window's memory, and the memory that its own words follow; often the same.
    RemoteTable data_;
    RemoteTable words_;
    MemorySpace space_ = MemorySpace::Host;
};

} // namespace DNDS
