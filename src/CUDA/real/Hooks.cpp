// The device itself and its errors.

#include "DNDS/Device/Hooks.hpp"

#include "Check.hpp"
#include "Streams.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/KernelLoading.hpp"

#include <atomic>
#include <mutex>

namespace DNDS::Device {

namespace {

/// Determined once: the answer must not change during a run.
/// Also clears the error, which CUDA would report at the next check of a launch.
const std::string &reasonOnce() {
    static const std::string reason = [] {
        int devices = 0;
        const cudaError_t status = cudaGetDeviceCount(&devices);
        static_cast<void>(cudaGetLastError());
        if (status != cudaSuccess)
            return fmt::format("no CUDA device can be used here: {}; check the driver (nvidia-smi) and "
                               "CUDA_VISIBLE_DEVICES",
                               cudaGetErrorString(status));
        return devices > 0 ? std::string() : std::string("no CUDA device is visible; check CUDA_VISIBLE_DEVICES");
    }();
    return reason;
}

// Visible ones: CUDA_VISIBLE_DEVICES may hide others.
int deviceCount() {
    int count = 0;
    check(cudaGetDeviceCount(&count), "counting devices");
    return count;
}

/// The device of all threads of this process; -1 until one is chosen.
std::atomic<int> chosenDevice{-1};
// Held while the device is chosen, so that threads that start together agree.
std::mutex choosing;

/// Selects the device and initialises it: an exclusive compute mode fails here, and MPI libraries require an
/// initialised device before they start.
void choose(int number) {
    const RelaxedCaptureScope relaxed;
    cudaError_t status = cudaSetDevice(number);
    if (status == cudaSuccess)
        status = cudaFree(nullptr);
    if (status == cudaErrorDevicesUnavailable) {
        static_cast<void>(cudaGetLastError());
        throw StateError(fmt::format(
            "CUDA: device {} cannot be used by this process: its compute mode prohibits that, or is exclusive and "
            "another process uses it (nvidia-smi -q -d COMPUTE). Give each rank a device of its own "
            "(Device::useDevice(rankOnMachine(comm))), start NVIDIA's MPS, or run nvidia-smi -c DEFAULT",
            number));
    }
    check(status, fmt::format("starting to use device {}", number));
    chosenDevice = number;
}

/// Chooses the device at the first use without useDevice, since all ranks of a machine would otherwise take device 0.
/// Keeps a device that the program chose in this thread by cudaSetDevice, except device 0, CUDA's default.
/// Threads that arrive together serialise on `choosing`; the second finds `chosenDevice` set and takes it, so all
/// threads of a process use one device.
int chooseByLauncher(int current) {
    const int count = deviceCount();
    const int number = current != 0 ? current : rankByLauncher() % count;
    {
        const std::scoped_lock lock(choosing);
        if (chosenDevice >= 0) // by another thread
            return chosenDevice;
        choose(number);
    }
    if (number != current)
        warn("DNDS: device {} of {} is used, by this rank's number on its machine ({}): Device::useDevice chooses "
             "another one, if called first",
             number, count, rankByLauncher());
    return number;
}

/// CUDA stores the device per thread, and MPI or PyTorch may set another one at any time.
/// The usual path is one relaxed load and one cudaGetDevice.
void selectDevice() {
    int current = 0;
    check(cudaGetDevice(&current), "asking for the device");
    int chosen = chosenDevice.load(std::memory_order_relaxed);
    if (chosen < 0) [[unlikely]]
        chosen = chooseByLauncher(current);
    if (current != chosen) [[unlikely]]
        check(cudaSetDevice(chosen), fmt::format("choosing device {}", chosen));
}

// The UUID in hexadecimal: equal for one device in all processes, whatever CUDA_VISIBLE_DEVICES numbers it.
std::string identityOf(const cudaDeviceProp &properties) {
    std::string identity;
    for (const char byte : properties.uuid.bytes)
        identity += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return identity;
}

} // namespace

void throwFailure(cudaError_t status, std::string_view what) {
    static_cast<void>(cudaGetLastError()); // clears the error, which the next call would report again
    const std::string message =
        fmt::format("CUDA: {} failed: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status));
    if (status == cudaErrorMemoryAllocation)
        throw MemoryError(message);
    if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorUnsupportedPtxVersion)
        throw NotBuiltError(message + "; configure with -DCMAKE_CUDA_ARCHITECTURES=native on this machine");
    throw StateError(message);
}

std::string_view name() { return "cuda"; }

bool available() { return reasonOnce().empty(); }

std::string unavailableReason() { return reasonOnce(); }

void requireDevice(std::string_view what) {
    DNDS_CHECK(available(), NotBuiltError, "cannot {}: {}", what, unavailableReason());
    selectDevice();
}

// Numbers wrap around, so that programs can give the rank on the machine.
void useDevice(int number) {
    DNDS_CHECK(number >= 0, ArgumentError, "device {} does not exist", number);
    DNDS_CHECK(available(), NotBuiltError, "cannot choose a device: {}", unavailableReason());
    const std::scoped_lock lock(choosing);
    choose(number % deviceCount());
}

DeviceInfo deviceInfo() {
    requireDevice("describe the device");
    DeviceInfo info;
    check(cudaGetDevice(&info.number), "asking for the device");
    info.count = deviceCount();
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, info.number), "describing the device");
    info.name = properties.name;
    info.identity = identityOf(properties);
    info.memoryBytes = properties.totalGlobalMem;
    return info;
}

// Without MPS, processes take turns on the device: kernels of different ranks never run side by side.
std::string sharedScheduler() {
    constexpr auto mpsEnabled =
        static_cast<cudaDeviceAttr>(133); // cudaDevAttrMpsEnabled, which older drivers do not know
    const int number = deviceInfo().number;
    int mps = 0;
    if (cudaDeviceGetAttribute(&mps, mpsEnabled, number) != cudaSuccess)
        static_cast<void>(cudaGetLastError());
    return mps != 0 ? "MPS of " + mpsFolder() : std::string();
}

// Looked up at run time by name: the driver library is not linked, and old drivers lack the function.
bool loadsKernelsLazily() {
    requireDevice("ask when it loads kernels");
    // Asks the driver: CUDA_MODULE_LOADING only takes effect if it is set before the driver starts.
    void *query = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    check(cudaGetDriverEntryPointByVersion("cuModuleGetLoadingMode", &query, 11070, cudaEnableDefault, &found),
          "asking when kernels are loaded");
#else
    check(cudaGetDriverEntryPoint("cuModuleGetLoadingMode", &query, cudaEnableDefault, &found),
          "asking when kernels are loaded");
#endif
    if (found != cudaDriverEntryPointSuccess)
        return false;       // the driver predates lazy loading
    constexpr int lazy = 2; // CU_MODULE_LAZY_LOADING
    int mode = lazy;
    DNDS_CHECK(reinterpret_cast<int (*)(int *)>(query)(&mode) == 0, StateError,
               "CUDA: the driver does not say when it loads kernels");
    return mode == lazy;
}

// The other rank's device is looked up by its identity, as numbers differ between processes.
std::string whyNoAtomics(const std::string &identity) {
    const DeviceInfo mine = deviceInfo();
    if (identity == mine.identity)
        return {};
    for (int number = 0; number < mine.count; ++number) {
        cudaDeviceProp properties{};
        check(cudaGetDeviceProperties(&properties, number), "describing a device");
        if (identityOf(properties) != identity)
            continue;
        int native = 0;
        check(cudaDeviceGetP2PAttribute(&native, cudaDevP2PAttrNativeAtomicSupported, mine.number, number),
              "asking for atomic operations between devices");
        return native != 0 ? std::string()
                           : fmt::format("devices {} and {} are not connected in a way that has them, such as NVLink",
                                         mine.number, number);
    }
    return "its device is not visible to this process, so that CUDA cannot be asked: let CUDA_VISIBLE_DEVICES name the "
           "devices of all ranks of the node, and choose by Device::useDevice";
}

// Called by parallelFor in code that the host compiler made.
void launchHostKernel(StreamHandle /*stream*/, index /*threads*/, KernelBody /*body*/) {
    requireDevice("run a kernel");
    throw NotBuiltError("this kernel was compiled for the host only: move the call of parallelFor to a .cu file and "
                        "list it with dnds_kernel_sources, so that nvcc compiles it");
}

void checkLaunch(std::string_view kernel) { check(cudaGetLastError(), kernel); }

// The driver orders and guards kernels: nothing to do here, other than on the emulated device.
void beginKernel(StreamHandle /*stream*/) {}
void endKernel(StreamHandle /*stream*/) noexcept {}

void *messageAddress(void *pointer, std::size_t /*bytes*/) { return pointer; }
std::string whyNoMessages() { return {}; }

} // namespace DNDS::Device
