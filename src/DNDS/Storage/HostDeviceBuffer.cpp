#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Stream.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

namespace DNDS {

/// For each stream that copies, an event after its last copy. Destroyed streams have completed their work.
struct HostDeviceBuffer::CopiesInFlight {
    struct Copy {
        Device::StreamHandle stream;
        Device::Event end;
    };
    std::vector<Copy> copies;

    // There are few streams: a search in order is enough.
    const Device::Event &endOn(Device::StreamHandle stream) {
        for (const Copy &copy : copies)
            if (copy.stream == stream)
                return copy.end;
        return copies.emplace_back(Copy{stream, {}}).end;
    }
};

// 64 bits do not run out; 0 is left for "none".
std::uint64_t HostDeviceBuffer::nextGeneration() noexcept {
    static std::atomic<std::uint64_t> counter{0};
    return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

// The first reader after a write draws the number; others that read at the same time get the same one.
std::uint64_t HostDeviceBuffer::drawVersion() const noexcept {
    static std::atomic<std::uint64_t> counter{0};
    const std::uint64_t drawn = counter.fetch_add(1, std::memory_order_relaxed) + 1;
    std::uint64_t present = 0; // set by another thread that reads the same contents
    return version_.compare_exchange_strong(present, drawn, std::memory_order_relaxed) ? drawn : present;
}

void HostDeviceBuffer::throwStale(MemorySpace space, std::string_view owner) {
    if (space == MemorySpace::Host)
        throw StaleError(
            fmt::format("{}: the host copy is stale, the device holds newer values; call toHost() first", owner));
    throw StaleError(fmt::format(
        "{}: the device copy is stale or was never made, the host holds newer values; call toDevice() first", owner));
}

// The deleter keeps the resource alive, as transfers may hold the memory longer than the buffer.
std::shared_ptr<std::byte> HostDeviceBuffer::allocateHost(std::size_t bytes, const HostMemoryResource &resource,
                                                          NewBytes contents) {
    if (bytes == 0)
        return nullptr;
    // With zeros, each page is first touched by the thread that allocates.
    const HostMemoryResource memory = resource ? resource : defaultHostMemory();
    void *pointer = allocateData(*memory, bytes, alignment, "host memory");
    if (contents == NewBytes::Zero)
        std::memset(pointer, 0, bytes);
    return {static_cast<std::byte *>(pointer),
            [memory, bytes](std::byte *freed) { memory->deallocate(freed, bytes, alignment); }};
}

HostDeviceBuffer::HostDeviceBuffer(std::size_t bytes, HostMemoryResource resource, NewBytes contents)
    : resource_(std::move(resource)), generation_(nextGeneration()) {
    hostOwner_ = allocateHost(bytes, resource_, contents);
    host_ = hostOwner_.get();
    bytes_ = bytes;
}

HostDeviceBuffer::HostDeviceBuffer(const HostDeviceBuffer &other) : HostDeviceBuffer(other.bytes_) {
    copyContents(other);
}

HostDeviceBuffer &HostDeviceBuffer::operator=(const HostDeviceBuffer &other) {
    if (this != &other) {
        if (bytes_ != other.bytes_)
            renew(other.bytes_);
        copyContents(other);
    }
    return *this;
}

HostDeviceBuffer::HostDeviceBuffer(HostDeviceBuffer &&other) noexcept : HostDeviceBuffer() { swap(other); }

HostDeviceBuffer &HostDeviceBuffer::operator=(HostDeviceBuffer &&other) noexcept {
    if (this != &other) {
        HostDeviceBuffer taken(std::move(other));
        swap(taken);
    }
    return *this;
}

HostDeviceBuffer::~HostDeviceBuffer() { release(); }

// Memory does not move: pointers, copies in flight and holders stay valid.
void HostDeviceBuffer::swap(HostDeviceBuffer &other) noexcept {
    std::swap(host_, other.host_);
    hostOwner_.swap(other.hostOwner_);
    std::swap(device_, other.device_);
    deviceOwner_.swap(other.deviceOwner_);
    std::swap(bytes_, other.bytes_);
    std::swap(resource_, other.resource_);
    std::swap(generation_, other.generation_);
    std::swap(hostValid_, other.hostValid_);
    std::swap(deviceValid_, other.deviceValid_);
    version_ = other.version_.exchange(version_);
    std::swap(pulled_, other.pulled_);
    inFlight_.swap(other.inFlight_);
}

// The event is made before the copy is queued, so that a failure to make it leaves nothing unobserved.
// The copy is asynchronous. Its event lets later users of that side come after it: streams by `followCopies`, the
// host by `finishCopies`.
void HostDeviceBuffer::queueCopy(MemorySpace to, Device::StreamHandle stream) {
    const Device::Event *end = nullptr;
    if (!Device::isCapturing(stream)) { // in a graph, nothing runs now; memory that it names must stay anyway
        if (!inFlight_)
            inFlight_ = std::make_shared<CopiesInFlight>();
        end = &inFlight_->endOn(stream);
    }
    if (to == MemorySpace::Device)
        Device::copy(device_, to, host_, MemorySpace::Host, bytes_, stream);
    else
        Device::copy(host_, to, device_, MemorySpace::Device, bytes_, stream);
    if (end != nullptr)
        end->record(stream);
}

// A side is current as soon as its copy is queued: work on another stream than the copy's must come after it.
void HostDeviceBuffer::followCopies(Device::StreamHandle stream) const {
    if (inFlight_ && !Device::isCapturing(stream)) // a graph may not wait for work outside
        for (const CopiesInFlight::Copy &copy : inFlight_->copies)
            copy.end.holdBack(stream);
}

void HostDeviceBuffer::finishCopies() const {
    if (!inFlight_)
        return;
    const std::shared_ptr<CopiesInFlight> finished = std::exchange(inFlight_, nullptr);
    std::exception_ptr failure; // waits for all copies, even after a failure
    for (const CopiesInFlight::Copy &copy : finished->copies)
        attempt(failure, [&] { copy.end.synchronize(); });
    if (failure)
        std::rethrow_exception(failure);
}

// Waits for copies in flight, which would otherwise write to freed memory.
void HostDeviceBuffer::release() noexcept {
    try {
        finishCopies();
    } catch (const Error &) { // the device is lost and no longer writes to this memory
    }
    deviceOwner_.reset();
    hostOwner_.reset();
    host_ = nullptr;
    device_ = nullptr;
    bytes_ = 0;
}

// Device::deallocate frees after all work queued before it: kernels in flight need no wait here.
std::shared_ptr<std::byte> HostDeviceBuffer::allocateDevice(std::size_t bytes) {
    return {static_cast<std::byte *>(Device::allocate(bytes)), Device::deallocate};
}

// Uninitialised: callers fill all of it.
void HostDeviceBuffer::ensureDevice() {
    if (device_ == nullptr)
        placeAt(allocateDevice(bytes_), MemorySpace::Device);
}

// Frees the old memory of that side, unless others hold it.
void HostDeviceBuffer::placeAt(std::shared_ptr<std::byte> place, MemorySpace space) noexcept {
    (space == MemorySpace::Host ? host_ : device_) = place.get();
    (space == MemorySpace::Host ? hostOwner_ : deviceOwner_) = std::move(place);
}

// Waits, since the caller frees the source.
void HostDeviceBuffer::copyWithin(MemorySpace space, std::byte *to) const {
    if (space == MemorySpace::Host) {
        if (hostValid_)
            std::memcpy(to, host_, bytes_);
    } else if (deviceValid_) {
        Device::copy(to, space, device_, space, bytes_, nullptr);
        Device::synchronize(nullptr);
    }
}

// Adjacent addresses may also be chance, which serves as well.
bool HostDeviceBuffer::areJoined(const HostDeviceBuffer &front, const HostDeviceBuffer &back,
                                 MemorySpace space) noexcept {
    if (front.bytes_ == 0 || back.bytes_ == 0)
        return true;
    const std::byte *first = space == MemorySpace::Host ? front.host_ : front.device_;
    return first != nullptr && first + front.bytes_ == (space == MemorySpace::Host ? back.host_ : back.device_);
}

// A gap before `front` makes `back` start aligned. Both share the block's ownership, so either may be freed first.
// O(bytes of both). Adjacent in `space` only; the other side of each stays where it is. Nothing moves if one of them
// is empty.
void HostDeviceBuffer::join(HostDeviceBuffer &front, HostDeviceBuffer &back, MemorySpace space) {
    if (areJoined(front, back, space))
        return;
    front.finishCopies();
    back.finishCopies();
    const std::size_t gap = (alignment - front.bytes_ % alignment) % alignment;
    const std::size_t all = gap + front.bytes_ + back.bytes_;
    const std::shared_ptr<std::byte> block =
        space == MemorySpace::Host ? allocateHost(all, back.resource_) : allocateDevice(all);
    std::byte *const first = block.get() + gap;
    front.copyWithin(space, first);
    back.copyWithin(space, first + front.bytes_);
    front.placeAt({block, first}, space);
    back.placeAt({block, first + front.bytes_}, space);
    // Code that remembers addresses notices the move.
    front.generation_ = nextGeneration();
    back.generation_ = nextGeneration();
}

// A copy has both sides if the original has, and needs no later transfer.
// O(bytes) for each valid side, with a wait for the device.
void HostDeviceBuffer::copyContents(const HostDeviceBuffer &other) {
    markWritten();
    pulled_ = other.pulled_;
    if (bytes_ == 0)
        return;
    finishCopies();
    other.finishCopies();
    // The host may be stale: each valid side is copied from its own.
    if (other.deviceValid_) {
        ensureDevice();
        Device::copy(device_, MemorySpace::Device, other.device_, MemorySpace::Device, bytes_, nullptr);
        Device::synchronize(nullptr);
    }
    if (other.hostValid_)
        std::memcpy(host_, other.host_, bytes_);
    hostValid_ = other.hostValid_;
    deviceValid_ = other.deviceValid_;
}

void HostDeviceBuffer::toDevice(Device::StreamHandle stream) {
    // checked first, so that a rank without rows fails like all others
    DNDS_CHECK(Device::available(), NotBuiltError, "{}", Device::unavailableReason());
    if (valid(MemorySpace::Device))
        return followCopies(stream);
    ensureDevice();
    queueCopy(MemorySpace::Device, stream);
    deviceValid_ = true;
}

void HostDeviceBuffer::toDevice() {
    toDevice(nullptr);
    finishCopies();
}

void HostDeviceBuffer::toHost(Device::StreamHandle stream) {
    // Nothing to copy; values that the host has written stay.
    if (valid(MemorySpace::Host))
        return followCopies(stream);
    queueCopy(MemorySpace::Host, stream);
    hostValid_ = true;
}

void HostDeviceBuffer::toHost() {
    toHost(nullptr);
    finishCopies();
}

// The new buffer is on the host only; a device side is made again by the next toDevice.
// O(kept bytes) and one allocation. The old memory lives until the new contents are complete.
void HostDeviceBuffer::resize(std::size_t bytes) {
    if (bytes == bytes_)
        return;
    finishCopies();
    HostDeviceBuffer resized(bytes, resource_);
    if (const std::size_t common = std::min(bytes, bytes_); common > 0) {
        if (hostValid_) {
            std::memcpy(resized.host_, host_, common);
        } else {
            Device::copy(resized.host_, MemorySpace::Host, device_, MemorySpace::Device, common, nullptr);
            Device::synchronize(nullptr);
        }
    }
    swap(resized);
}

// Swapping leaves the old contents to the destructor, which waits for copies.
void HostDeviceBuffer::renew(std::size_t bytes) {
    HostDeviceBuffer renewed(bytes, resource_);
    swap(renewed);
}

// The device side is taken over as it is; only host memory moves.
// O(bytes) and one allocation. A device side stays valid, so nothing is sent to the device again.
void HostDeviceBuffer::rehost(HostMemoryResource resource) {
    if (resource == resource_)
        return;
    finishCopies();
    HostDeviceBuffer moved(bytes_, std::move(resource));
    if (hostValid_ && bytes_ > 0)
        std::memcpy(moved.host_, host_, bytes_);
    std::swap(moved.device_, device_);
    moved.deviceOwner_.swap(deviceOwner_);
    moved.hostValid_ = hostValid_;
    moved.deviceValid_ = deviceValid_;
    moved.version_ = version_.load();
    moved.pulled_ = pulled_;
    swap(moved);
}

} // namespace DNDS
