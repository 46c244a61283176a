/// @file HostDeviceBuffer.hpp
/// @brief Bytes that live on the host, on the device, or on both: the only place that knows which copy is current.
#pragma once

#include "DNDS/Base/HostMemory.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace DNDS {

/// Contents of new memory.
enum class NewBytes : unsigned char {
    Zero,
    Unset ///< whatever is there: for code that writes all of it
};

/// An owned block of bytes with at most one allocation in each memory space and one validity bit for each.
///
/// Accessors never copy: asking for a stale side throws, `toDevice` and `toHost` bring it up to date, writing one side
/// makes the other stale. At least one side is valid at all times; of a buffer of 0 bytes both are. New bytes are zero,
/// and on the host. `version` numbers the contents. Everything is Local; checks are O(1) and made in every build. Not
/// safe to use from several threads at once.
///
///     HostDeviceBuffer buffer(1024);
///     fillIn(buffer.write(MemorySpace::Host, "u"));
///     buffer.toDevice();
///     launch(buffer.read(MemorySpace::Device, "u"));
class HostDeviceBuffer {
  public:
    /// Alignment in bytes of the allocations in both spaces.
    static constexpr std::size_t alignment = Device::allocationAlignment;

    /// An empty buffer in ordinary memory; allocates nothing.
    HostDeviceBuffer() noexcept : generation_(nextGeneration()) {}

    /// `bytes` bytes on the host, from `resource` (null: ordinary memory).
    /// @throws MemoryError when there is no room.
    explicit HostDeviceBuffer(std::size_t bytes, HostMemoryResource resource = nullptr,
                              NewBytes contents = NewBytes::Zero);

    /// Deep copy of every valid side, in ordinary memory. It waits for copies in flight that toDevice or toHost queued,
    /// but not for kernels: synchronise their streams first.
    HostDeviceBuffer(const HostDeviceBuffer &other);
    /// Deep copy into the memory resource of the left side; keeps allocation and generation where the sizes agree.
    HostDeviceBuffer &operator=(const HostDeviceBuffer &other);
    /// Takes allocation, resource and generation; leaves an empty buffer in ordinary memory with a fresh generation.
    HostDeviceBuffer(HostDeviceBuffer &&other) noexcept;
    HostDeviceBuffer &operator=(HostDeviceBuffer &&other) noexcept;
    ~HostDeviceBuffer();

    /// Exchanges everything, generations and memory resources included. O(1).
    void swap(HostDeviceBuffer &other) noexcept;
    friend void swap(HostDeviceBuffer &a, HostDeviceBuffer &b) noexcept { a.swap(b); }

    /// The size of the allocation, the same in both memories. O(1).
    std::size_t bytes() const noexcept { return bytes_; }

    /// A number that no two allocations in the process share. It moves with the allocation on move and swap, so that
    /// code can check later whether addresses that it remembers still belong to this buffer.
    std::uint64_t generation() const noexcept { return generation_; }

    /// A number that no two contents in the process share, and that grows with each change: equal numbers mean equal
    /// contents. O(1). It changes whenever bytes are handed out for writing or replaced:
    ///
    /// | new number                                         | same number                                     |
    /// |----------------------------------------------------|-------------------------------------------------|
    /// | `write`, `markWritten`, `resize` to another size,  | `read`, `toDevice`, `toHost`, `rehost`, `resize`|
    /// | `renew`; a copy, and what is assigned to           | to the same size; `swap`, move: travels along   |
    ///
    /// It changes when bytes are handed out, not when they are written: code that keeps a pointer, or replays a graph
    /// of kernels, writes unnoticed and has to call `markWritten`.
    std::uint64_t version() const noexcept {
        const std::uint64_t drawn = version_.load(std::memory_order_relaxed);
        return drawn != 0 ? drawn : drawVersion();
    }
    /// Gives the contents a new version: for code that writes them through a pointer obtained earlier. O(1).
    void markWritten() noexcept { version_.store(0, std::memory_order_relaxed); }

    /// The version of the contents from which these were last pulled, 0 for none. It belongs to the contents: `swap`,
    /// moves and `rehost` keep it, copies repeat it, new bytes have none, writing does not change it.
    std::uint64_t pulledFrom() const noexcept { return pulled_[0]; }
    /// Identifies the code that changed them after that pull (rotated periodic images), 0 for none.
    std::uint64_t finishedBy() const noexcept { return pulled_[1]; }
    void setPulledFrom(std::uint64_t version, std::uint64_t finishedBy = 0) noexcept {
        pulled_ = {version, finishedBy};
    }

    /// Whether the copy in `space` is current.
    bool valid(MemorySpace space) const noexcept {
        return bytes_ == 0 || (space == MemorySpace::Host ? hostValid_ : deviceValid_);
    }

    /// The bytes in `space`, for reading; null for 0 bytes. O(1), copies nothing.
    /// @throws StaleError naming `owner` when that side is stale.
    const std::byte *read(MemorySpace space, std::string_view owner) const {
        if (!valid(space)) [[unlikely]]
            throwStale(space, owner);
        return space == MemorySpace::Host ? host_ : device_;
    }

    /// The bytes in `space`, for writing: the other side becomes stale, the version moves. O(1), copies nothing.
    /// @throws StaleError naming `owner` when that side is stale.
    std::byte *write(MemorySpace space, std::string_view owner) {
        if (!valid(space)) [[unlikely]]
            throwStale(space, owner);
        hostValid_ = space == MemorySpace::Host;
        deviceValid_ = !hostValid_;
        markWritten();
        return space == MemorySpace::Host ? host_ : device_;
    }

    /// Makes the device copy current and waits until it is. Does nothing if it is already.
    /// @throws NotBuiltError without a device back end, MemoryError when the device has no room.
    void toDevice();
    /// The same without waiting: the copy is queued on `stream`, and so must be whatever reads it. Keep the host side
    /// unwritten until the stream was synchronised.
    void toDevice(Device::StreamHandle stream);

    /// Makes the host copy current and waits until it is. Does nothing if it is already, and needs no device then.
    void toHost();
    /// The same without waiting: the host may read the bytes once `stream` was synchronised.
    void toHost(Device::StreamHandle stream);

    /// Changes the size: keeps the common prefix, zeroes the rest. The same size changes nothing; any other
    /// reallocates, and the host side is the valid one afterwards (where only the device side was valid, it is copied
    /// to the host).
    void resize(std::size_t bytes);

    /// Starts over: `bytes` zero bytes in a new allocation, and so a new generation, even where the size does not
    /// change.
    void renew(std::size_t bytes);

    /// Moves the host allocation into `resource` (null: ordinary memory) and keeps the contents and the device side.
    /// Does nothing if it is there already; otherwise there is a new generation. The resource is kept alive and is
    /// used by later reallocations.
    void rehost(HostMemoryResource resource);

    /// Moves the sides of two buffers in `space` into one allocation, `back` directly after `front`, and keeps contents
    /// and resources. The memory is that of `back`, which begins at a multiple of `alignment`; `front` is aligned only
    /// if its size is a multiple, too. Both get new generations. Lasts until either is reallocated. O(bytes); does
    /// nothing if one of them is empty.
    /// @throws MemoryError when there is no room: then nothing has changed.
    static void join(HostDeviceBuffer &front, HostDeviceBuffer &back, MemorySpace space);
    /// Whether `back` lies directly after `front` in `space`, or one of them is empty. O(1).
    static bool areJoined(const HostDeviceBuffer &front, const HostDeviceBuffer &back, MemorySpace space) noexcept;

    /// Shares ownership of the allocation in `space`, for exchanges in flight: it outlives resizing and destruction of
    /// the buffer until the last holder releases it. Null without allocation.
    std::shared_ptr<const void> hold(MemorySpace space) const noexcept {
        return space == MemorySpace::Host ? hostOwner_ : deviceOwner_;
    }

    /// The resource of host memory; null for ordinary memory.
    const HostMemoryResource &resource() const noexcept { return resource_; }

  private:
    static std::uint64_t nextGeneration() noexcept;
    std::uint64_t drawVersion() const noexcept;
    [[noreturn]] static void throwStale(MemorySpace space, std::string_view owner);

    static std::shared_ptr<std::byte> allocateHost(std::size_t bytes, const HostMemoryResource &resource,
                                                   NewBytes contents = NewBytes::Zero);
    static std::shared_ptr<std::byte> allocateDevice(std::size_t bytes);
    /// Allocates the device side unless it exists.
    void ensureDevice();
    /// Replaces one side's memory, without copying contents.
    void placeAt(std::shared_ptr<std::byte> place, MemorySpace space) noexcept;
    /// Copies the contents in `space`, if they are valid there, to memory of that space.
    void copyWithin(MemorySpace space, std::byte *to) const;
    /// Repeats every valid side of a buffer of the same size.
    void copyContents(const HostDeviceBuffer &other);
    struct CopiesInFlight;
    /// Queues a copy to the other side and remembers that no call has waited for it.
    void queueCopy(MemorySpace to, Device::StreamHandle stream);
    /// Waits for the queued copies, but not for later work on their streams.
    void finishCopies() const;
    /// Holds `stream` back until the copies in flight have ended.
    void followCopies(Device::StreamHandle stream) const;
    /// Waits for copies in flight and frees both sides.
    void release() noexcept;

    std::shared_ptr<std::byte> hostOwner_; ///< shared with transfers in progress
    std::byte *host_ = nullptr;            ///< `hostOwner_.get()`, saves a load
    std::shared_ptr<std::byte> deviceOwner_;
    std::byte *device_ = nullptr; ///< `deviceOwner_.get()`; null if there is no device side
    std::size_t bytes_ = 0;
    /// Of the host side, present and future; null: ordinary memory.
    HostMemoryResource resource_;
    std::uint64_t generation_;
    /// At least one is true; both after a copy that nothing has written since.
    bool hostValid_ = true;
    bool deviceValid_ = false;
    /// 0 if written since the last query; drawn by the query, so that writing costs one store.
    mutable std::atomic<std::uint64_t> version_ = 0;
    std::array<std::uint64_t, 2> pulled_{}; ///< `pulledFrom` and `finishedBy`
    /// Copies not yet waited for, null for none: memory may be freed or copied only after a wait.
    mutable std::shared_ptr<CopiesInFlight> inFlight_;
};

} // namespace DNDS
