// Behaviour of a program built for CUDA on a machine without driver or device; started by scripts/compile-cuda.sh.
// It links only the back end, to build in seconds. With a device present, it runs a kernel.

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace {

using namespace DNDS;

struct Square {
    real *x;
    DNDS_HOST_DEVICE void operator()(DNDS::index i) const { x[i] = x[i] * x[i]; }
};

[[noreturn]] void fail(const std::string &what) {
    std::printf("FAILED: %s\n", what.c_str());
    std::exit(1);
}

void expectExplanation(const char *what, const std::function<void()> &call) {
    try {
        call();
    } catch (const NotBuiltError &error) {
        if (error.message().find(Device::unavailableReason()) == std::string::npos)
            fail(std::string(what) + " does not say why: " + error.what());
        return;
    }
    fail(std::string(what) + " did not throw");
}

void runWithoutDevice() {
    const std::string reason = Device::unavailableReason();
    if (reason.find("driver") == std::string::npos && reason.find("CUDA_VISIBLE_DEVICES") == std::string::npos)
        fail("the reason does not say what to look at: " + reason);
    expectExplanation("allocate", [] { static_cast<void>(Device::allocate(8)); });
    expectExplanation("allocatePinned", [] { static_cast<void>(Device::allocatePinned(8)); });
    expectExplanation("Stream", [] { Device::Stream stream; });
    expectExplanation("createEvent", [] { static_cast<void>(Device::createEvent()); });
    expectExplanation("openShared", [] { static_cast<void>(Device::openShared({})); });
    expectExplanation("deviceInfo", [] { static_cast<void>(Device::deviceInfo()); });
    expectExplanation("useDevice", [] { Device::useDevice(0); });
    real x = 3;
    expectExplanation("a kernel", [&] { parallelFor(Executor::device(nullptr), 1, Square{&x}); });
    Device::synchronizeAll(); // nothing can have been queued
    parallelFor(Executor::host(), 1, Square{&x});
    if (x != 9)
        fail("the host did not run the functor");
    std::printf("explained: %s\n", reason.c_str());
}

void runOnDevice() {
    std::array<real, 1000> x{};
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<real>(i);
    const Device::Stream stream;
    auto *memory = static_cast<real *>(Device::allocate(sizeof(x)));
    Device::copy(memory, MemorySpace::Device, x.data(), MemorySpace::Host, sizeof(x), stream);
    parallelFor(Executor::device(stream), x.size(), Square{memory});
    Device::copy(x.data(), MemorySpace::Host, memory, MemorySpace::Device, sizeof(x), stream);
    stream.synchronize();
    Device::deallocate(memory);
    for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] != static_cast<real>(i * i))
            fail("the kernel's results are wrong");
    std::printf("ran a kernel on %s\n", Device::deviceInfo().name.c_str());
}

} // namespace

int main() {
    try {
        Device::available() ? runOnDevice() : runWithoutDevice();
    } catch (const std::exception &error) {
        fail(error.what());
    }
}
