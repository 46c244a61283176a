#include "DNDS/Device/Hooks.hpp"

#include "DNDS/Base/Error.hpp"

#include <cuda_runtime.h>

namespace DNDS::Device {

namespace {

void check(cudaError_t status, const char *what) {
    if (status == cudaSuccess) [[likely]]
        return;
    static_cast<void>(cudaGetLastError()); // or the next call would report this error again
    const std::string message =
        fmt::format("CUDA: {} failed: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status));
    if (status == cudaErrorMemoryAllocation)
        throw MemoryError(message);
    throw StateError(message);
}

cudaStream_t native(StreamHandle stream) { return reinterpret_cast<cudaStream_t>(stream); }

cudaMemcpyKind kindOf(MemorySpace destination, MemorySpace source) {
    if (destination == MemorySpace::Device)
        return source == MemorySpace::Device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    return source == MemorySpace::Device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

/// Asked once: the answer has to be the same for the whole run.
const std::string &reasonOnce() {
    static const std::string reason = [] {
        int devices = 0;
        const cudaError_t status = cudaGetDeviceCount(&devices);
        static_cast<void>(cudaGetLastError());
        if (status != cudaSuccess)
            return fmt::format("no CUDA device can be used here: {}; check the driver and CUDA_VISIBLE_DEVICES",
                               cudaGetErrorString(status));
        return devices > 0 ? std::string() : std::string("no CUDA device is visible; check CUDA_VISIBLE_DEVICES");
    }();
    return reason;
}

void requireDevice(const char *what) {
    DNDS_CHECK(available(), NotBuiltError, "cannot {}: {}", what, unavailableReason());
}

} // namespace

std::string_view name() { return "cuda"; }

bool available() { return reasonOnce().empty(); }

std::string unavailableReason() { return reasonOnce(); }

void *allocate(std::size_t bytes) {
    requireDevice("allocate device memory");
    if (bytes == 0)
        return nullptr;
    void *pointer = nullptr;
    check(cudaMalloc(&pointer, bytes), fmt::format("allocating {} bytes", bytes).c_str());
    return pointer;
}

// Failures are ignored: at process exit the driver may be gone before the last array.
void deallocate(void *pointer) noexcept {
    if (pointer)
        static_cast<void>(cudaFree(pointer));
}

StreamHandle createStream() {
    requireDevice("create a stream");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    return reinterpret_cast<StreamHandle>(stream);
}

void destroyStream(StreamHandle stream) noexcept {
    if (!stream)
        return;
    static_cast<void>(cudaStreamSynchronize(native(stream)));
    static_cast<void>(cudaStreamDestroy(native(stream)));
}

void copy(void *destination, MemorySpace destinationSpace, const void *source, MemorySpace sourceSpace,
          std::size_t bytes, StreamHandle stream) {
    requireDevice("copy between host and device");
    if (bytes > 0)
        check(cudaMemcpyAsync(destination, source, bytes, kindOf(destinationSpace, sourceSpace), native(stream)),
              "queueing a copy");
}

void synchronize(StreamHandle stream) {
    if (available())
        check(cudaStreamSynchronize(native(stream)), "waiting for a stream");
}

void synchronizeAll() {
    if (available())
        check(cudaDeviceSynchronize(), "waiting for the device");
}

void beginKernel(StreamHandle /*stream*/) {}
void endKernel(StreamHandle /*stream*/) noexcept {}

} // namespace DNDS::Device
