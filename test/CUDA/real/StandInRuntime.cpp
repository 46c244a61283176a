#include "CUDA/real/StandInRuntime.hpp"

#include <cuda.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace DNDS::test {

namespace {

thread_local cudaStreamCaptureMode captureMode = cudaStreamCaptureModeGlobal;

/// Models CUDA calls that may invalidate a capture of another thread.
cudaError_t besideCaptures(const char *call) {
    StandInRuntime &runtime = StandInRuntime::instance();
    if (!runtime.otherThreadCaptures || captureMode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    if (runtime.voidedBy.empty())
        runtime.voidedBy = call;
    return cudaErrorStreamCaptureUnsupported;
}

cudaError_t use(int device) {
    StandInRuntime &runtime = StandInRuntime::instance();
    if (device < 0 || device >= runtime.devices)
        return cudaErrorInvalidDevice;
    return runtime.unavailable.count(device) == 1 ? cudaErrorDevicesUnavailable : cudaSuccess;
}

CUresult loadingMode(CUmoduleLoadingMode *mode) {
    *mode = StandInRuntime::instance().lazy ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

} // namespace

StandInRuntime &StandInRuntime::instance() {
    static auto *runtime = new StandInRuntime;
    return *runtime;
}

int &StandInRuntime::current() {
    thread_local int device = 0;
    return device;
}

cudaStream_t StandInRuntime::newStream() {
    static std::uintptr_t next = 0x1000;
    next += 0x10;
    auto *stream = reinterpret_cast<cudaStream_t>(next); // NOLINT(performance-no-int-to-ptr)
    streams[stream].captured = false;
    return stream;
}

} // namespace DNDS::test

using DNDS::test::besideCaptures;
using DNDS::test::StandInRuntime;

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
    *count = StandInRuntime::instance().devices;
    return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int *device) {
    *device = StandInRuntime::current();
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    const cudaError_t status = DNDS::test::use(device);
    if (status == cudaSuccess)
        StandInRuntime::current() = device;
    return status;
}
cudaError_t cudaDeviceSynchronize() {
    StandInRuntime &runtime = StandInRuntime::instance();
    if (runtime.otherThreadCaptures && runtime.voidedBy.empty())
        runtime.voidedBy = "cudaDeviceSynchronize"; // in any mode
    return runtime.otherThreadCaptures ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned /*version*/,
                                             unsigned long long /*flags*/, cudaDriverEntryPointQueryResult *found) {
    const bool known = std::strcmp(symbol, "cuModuleGetLoadingMode") == 0;
    *function = known ? reinterpret_cast<void *>(&DNDS::test::loadingMode) : nullptr;
    *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    StandInRuntime &runtime = StandInRuntime::instance();
    if (const cudaError_t status = besideCaptures("cudaMalloc"); status != cudaSuccess)
        return status;
    *memory = bytes < (size_t{1} << 30) ? std::aligned_alloc(256, (bytes + 255) / 256 * 256) : nullptr;
    runtime.deviceOf[*memory] = StandInRuntime::current();
    return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
    if (const cudaError_t status = besideCaptures("cudaFree"); status != cudaSuccess)
        return status;
    std::free(memory);
    return DNDS::test::use(StandInRuntime::current());
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    *free = *total = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned /*flags*/, int /*priority*/) {
    *stream = StandInRuntime::instance().newStream();
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    StandInRuntime::instance().streams.erase(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    if (stream == nullptr && StandInRuntime::instance().blockingStreamCaptured)
        return cudaErrorStreamCaptureImplicit;
    const bool captured = StandInRuntime::instance().streams[stream].captured;
    *status = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    if (const cudaError_t status = besideCaptures("cudaStreamQuery"); status != cudaSuccess)
        return status;
    const auto &known = StandInRuntime::instance().streams[stream];
    return known.done == known.queued ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    StandInRuntime::instance().finish(stream);
    return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    std::swap(*mode, DNDS::test::captureMode);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned /*flags*/) {
    static std::uintptr_t next = 0;
    next += 0x10;
    *event = reinterpret_cast<cudaEvent_t>(next); // NOLINT(performance-no-int-to-ptr)
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    StandInRuntime &runtime = StandInRuntime::instance();
    runtime.events[event] = {stream, runtime.streams[stream].queued};
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    StandInRuntime &runtime = StandInRuntime::instance();
    if (const cudaError_t status = besideCaptures("cudaEventQuery"); status != cudaSuccess)
        return status;
    const auto &[stream, end] = runtime.events.at(event);
    const auto found = runtime.streams.find(stream);
    return found == runtime.streams.end() || found->second.done >= end ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    StandInRuntime::instance().events.erase(event);
    return cudaSuccess;
}

} // extern "C"
