#include "DNDS/Device/Hooks.hpp"

#include "EmulatedMemory.hpp"

#include <cstring>
#include <deque>
#include <mutex>
#include <set>

namespace DNDS::Device {

namespace {

/// A copy that was queued and not yet run, in addresses that the host may touch.
struct PendingCopy {
    std::byte *destination;
    const std::byte *source;
    std::size_t bytes;

    void run() const { std::memmove(destination, source, bytes); }
};

} // namespace

struct StreamImpl {
    std::deque<PendingCopy> pending;
};

namespace {

/// The emulated device of this process. It is never destroyed: arrays with static storage may outlive anything else.
struct EmulatedDevice {
    EmulatedMemory memory;
    std::mutex mutex; ///< guards the streams
    StreamImpl defaultStream;
    std::set<StreamImpl *> streams{&defaultStream};

    static EmulatedDevice &instance() {
        static auto *device = new EmulatedDevice;
        return *device;
    }

    StreamImpl &resolve(StreamHandle stream) { return stream ? *stream : defaultStream; }

    static void run(StreamImpl &stream) {
        for (const PendingCopy &copy : stream.pending)
            copy.run();
        stream.pending.clear();
    }
};

} // namespace

std::string_view name() { return "emulated"; }

bool available() { return true; }

std::string unavailableReason() { return {}; }

void *allocate(std::size_t bytes) { return bytes == 0 ? nullptr : EmulatedDevice::instance().memory.allocate(bytes); }

void deallocate(void *pointer) noexcept {
    if (!pointer)
        return;
    synchronizeAll();
    EmulatedDevice::instance().memory.deallocate(pointer);
}

StreamHandle createStream() {
    EmulatedDevice &device = EmulatedDevice::instance();
    const std::scoped_lock lock(device.mutex);
    auto *stream = new StreamImpl;
    device.streams.insert(stream);
    return stream;
}

void destroyStream(StreamHandle stream) noexcept {
    if (!stream)
        return;
    EmulatedDevice &device = EmulatedDevice::instance();
    const std::scoped_lock lock(device.mutex);
    EmulatedDevice::run(*stream);
    device.streams.erase(stream);
    delete stream;
}

void copy(void *destination, MemorySpace destinationSpace, const void *source, MemorySpace sourceSpace,
          std::size_t bytes, StreamHandle stream) {
    if (bytes == 0)
        return;
    EmulatedDevice &device = EmulatedDevice::instance();
    PendingCopy pending{};
    pending.destination = destinationSpace == MemorySpace::Device ? device.memory.alias(destination, bytes)
                                                                  : static_cast<std::byte *>(destination);
    pending.source = sourceSpace == MemorySpace::Device ? device.memory.alias(source, bytes)
                                                        : static_cast<const std::byte *>(source);
    pending.bytes = bytes;
    const std::scoped_lock lock(device.mutex);
    device.resolve(stream).pending.push_back(pending);
}

void synchronize(StreamHandle stream) {
    EmulatedDevice &device = EmulatedDevice::instance();
    const std::scoped_lock lock(device.mutex);
    EmulatedDevice::run(device.resolve(stream));
}

void synchronizeAll() {
    EmulatedDevice &device = EmulatedDevice::instance();
    const std::scoped_lock lock(device.mutex);
    for (StreamImpl *stream : device.streams)
        EmulatedDevice::run(*stream);
}

void beginKernel(StreamHandle stream) {
    synchronize(stream);
    EmulatedDevice::instance().memory.open();
}

void endKernel(StreamHandle /*stream*/) noexcept { EmulatedDevice::instance().memory.close(); }

} // namespace DNDS::Device
