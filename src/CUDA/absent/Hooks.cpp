#include "DNDS/Device/Hooks.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/KernelLoading.hpp"
#include "DNDS/Device/Stream.hpp"

namespace DNDS::Device {

namespace {

// The interface of Device/Device.hpp in builds for the host alone: requests fail with the reason, releases do
// nothing.
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

void requireDevice(std::string_view what) { throwAbsent(what); }
DeviceInfo deviceInfo() { throwAbsent("describe the device"); }
std::string sharedScheduler() { throwAbsent("ask for its scheduler"); }
bool loadsKernelsLazily() { throwAbsent("ask when it loads kernels"); }
void useDevice(int /*number*/) { throwAbsent("choose a device"); }

void *allocate(std::size_t /*bytes*/) { throwAbsent("allocate device memory"); }
void deallocate(void * /*pointer*/) noexcept {}
std::string whyNoAtomics(const std::string & /*identity*/) { throwAbsent("ask for atomic operations"); }
void *allocatePinned(std::size_t /*bytes*/) { throwAbsent("allocate pinned host memory"); }
void deallocatePinned(void * /*pointer*/) noexcept {}
void pin(void * /*pointer*/, std::size_t /*bytes*/) { throwAbsent("pin host memory"); }
void unpin(void * /*pointer*/) noexcept {}

void copy(void * /*destination*/, MemorySpace /*destinationSpace*/, const void * /*source*/,
          MemorySpace /*sourceSpace*/, std::size_t /*bytes*/, StreamHandle /*stream*/) {
    throwAbsent("copy between host and device");
}

SharedHandle share(const void * /*pointer*/) { throwAbsent("share device memory"); }
void *openShared(const SharedHandle & /*handle*/) { throwAbsent("open device memory"); }
void closeShared(void * /*pointer*/) noexcept {}

StreamHandle createStream(Priority /*priority*/) { throwAbsent("create a stream"); }
void destroyStream(StreamHandle /*stream*/) noexcept {}

// Nothing can be queued, so there is nothing to wait for; callers need not check the back end.
void synchronize(StreamHandle /*stream*/) {}
void synchronizeAll() {}
void recordUse(void * /*stream*/) { throwAbsent("record a stream's use of memory"); }

EventHandle createEvent() { throwAbsent("create an event"); }
void destroyEvent(EventHandle /*event*/) noexcept {}
void recordEvent(EventHandle /*event*/, StreamHandle /*stream*/) { throwAbsent("record an event"); }
void waitEvent(StreamHandle /*stream*/, EventHandle /*event*/) { throwAbsent("wait for an event"); }
bool eventReached(EventHandle /*event*/) { throwAbsent("query an event"); }
void synchronizeEvent(EventHandle /*event*/) { throwAbsent("wait for an event"); }

void beginCapture(StreamHandle /*stream*/) { throwAbsent("capture a graph"); }
GraphHandle endCapture(StreamHandle /*stream*/) { throwAbsent("capture a graph"); }
bool isCapturing(StreamHandle /*stream*/) { return false; }
void launchGraph(GraphHandle /*graph*/, StreamHandle /*stream*/) { throwAbsent("launch a graph"); }
void destroyGraph(GraphHandle /*graph*/) noexcept {}
void callHost(StreamHandle /*stream*/, void (* /*function*/)(void *), void * /*argument*/) {
    throwAbsent("queue a call of the host");
}

// The other back ends keep the body. NOLINTNEXTLINE(performance-unnecessary-value-param)
void launchHostKernel(StreamHandle /*stream*/, index /*threads*/, KernelBody /*body*/) { throwAbsent("run a kernel"); }
void checkLaunch(std::string_view /*kernel*/) {}
void beginKernel(StreamHandle /*stream*/) { throwAbsent("run a kernel"); }
void endKernel(StreamHandle /*stream*/) noexcept {}

void *messageAddress(void * /*pointer*/, std::size_t /*bytes*/) { throwAbsent("send device memory"); }
std::string whyNoMessages() { return unavailableReason(); }

} // namespace DNDS::Device
