#include "DNDS/Device/Hooks.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Device {

namespace {

[[noreturn]] void throwAbsent(std::string_view what) {
    throw NotBuiltError(fmt::format("cannot {}: {}", what, unavailableReason()));
}

} // namespace

std::string_view name() { return "absent"; }

bool available() { return false; }

std::string unavailableReason() {
    return "this build of DNDS has no device back end; configure with the cuda preset, or with the emulated preset, "
           "which tests device code without a device";
}

void *allocate(std::size_t /*bytes*/) { throwAbsent("allocate device memory"); }

void deallocate(void * /*pointer*/) noexcept {}

StreamHandle createStream() { throwAbsent("create a stream"); }

void destroyStream(StreamHandle /*stream*/) noexcept {}

void copy(void * /*destination*/, MemorySpace /*destinationSpace*/, const void * /*source*/,
          MemorySpace /*sourceSpace*/, std::size_t /*bytes*/, StreamHandle /*stream*/) {
    throwAbsent("copy between host and device");
}

// Nothing can have been queued: there is nothing to wait for, and callers need not ask which back end they run on.
void synchronize(StreamHandle /*stream*/) {}
void synchronizeAll() {}

void beginKernel(StreamHandle /*stream*/) { throwAbsent("run a kernel"); }
void endKernel(StreamHandle /*stream*/) noexcept {}

} // namespace DNDS::Device
