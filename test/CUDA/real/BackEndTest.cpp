// Tests src/CUDA/real against stand-ins for the CUDA runtime: device selection, reuse of memory, and captures of graphs
// by other threads. Says nothing about real drivers.

#include "CUDA/real/StandInRuntime.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Device/KernelLoading.hpp"
#include "DNDS/Device/Stream.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace DNDS::Device {
namespace {

using test::StandInRuntime;

StandInRuntime &runtime() { return StandInRuntime::instance(); }

/// The device on which DNDS allocates now.
int deviceOfNewMemory() {
    void *memory = allocate(std::size_t{40} << 20); // a slab of its own
    const int device = runtime().deviceOf.at(memory);
    deallocate(memory);
    return device;
}

/// Runs `work` in a process in which nothing has used a device yet, and which reports what fails there.
template <class Work>
void inFreshProcess(const Work &work) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            work();
            std::exit(testing::Test::HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
}

TEST(CudaDeviceChoiceDeathTest, FirstUseTakesTheDeviceOfTheLocalRankAndSaysSoOnce) {
    inFreshProcess([] {
        runtime().devices = 4;
        ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", "6", 1);
        std::vector<std::string> said;
        setWarningSink([&](std::string_view text) { said.emplace_back(text); });
        EXPECT_EQ(deviceOfNewMemory(), 2);
        std::thread([] { EXPECT_EQ(deviceOfNewMemory(), 2) << "in other threads, too"; }).join();
        ASSERT_EQ(said.size(), 1U);
        EXPECT_NE(said[0].find("device 2 of 4"), std::string::npos) << said[0];
        EXPECT_NE(said[0].find("Device::useDevice"), std::string::npos) << said[0];
    });
}

TEST(CudaDeviceChoiceDeathTest, FirstUseKeepsADeviceThatTheProgramSet) {
    inFreshProcess([] {
        runtime().devices = 4;
        ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", "2", 1);
        setWarningSink([](std::string_view text) { ADD_FAILURE() << text; });
        cudaSetDevice(3);
        EXPECT_EQ(deviceOfNewMemory(), 3);
        std::thread([] { EXPECT_EQ(deviceOfNewMemory(), 3); }).join();
    });
}

TEST(CudaDeviceChoiceDeathTest, DeviceThatOthersSetInAThreadIsNoticed) {
    inFreshProcess([] {
        runtime().devices = 4;
        useDevice(1);
        EXPECT_EQ(deviceOfNewMemory(), 1);
        cudaSetDevice(3); // as PyTorch or MPI may
        EXPECT_EQ(deviceOfNewMemory(), 1);
        EXPECT_EQ(StandInRuntime::current(), 1) << "and kernels that follow run there";
    });
}

TEST(CudaDeviceChoiceDeathTest, ExclusiveDeviceIsExplainedAtTheFirstUse) {
    inFreshProcess([] {
        runtime().devices = 2;
        runtime().unavailable = {0};
        try {
            const Stream stream; // allocates nothing
            ADD_FAILURE() << "no error";
        } catch (const StateError &error) {
            EXPECT_NE(error.message().find("device 0"), std::string::npos) << error.message();
            EXPECT_NE(error.message().find("exclusive"), std::string::npos) << error.message();
            EXPECT_NE(error.message().find("useDevice"), std::string::npos) << error.message();
        }
        useDevice(1);
        const Stream stream;
        EXPECT_EQ(deviceOfNewMemory(), 1);
    });
}

TEST(CudaKernelLoading, IsWhatTheDriverSays) {
    runtime().lazy = true;
    EXPECT_TRUE(loadsKernelsLazily());
    runtime().lazy = false;
    EXPECT_FALSE(loadsKernelsLazily());
}

class CudaPool : public testing::Test {
  protected:
    ~CudaPool() override { // later tests get back what this one freed
        for (auto &[stream, state] : runtime().streams)
            state.done = state.queued.load();
        runtime().otherThreadCaptures = false;
        runtime().voidedBy.clear();
    }
};

TEST_F(CudaPool, MemoryThatAUsersStreamUsesIsNotGivenOutAgain) {
    cudaStream_t user = runtime().newStream();
    void *memory = allocate(1000);
    runtime().queue(user);
    recordUse(user);
    deallocate(memory);
    void *other = allocate(1000);
    EXPECT_NE(other, memory) << "the user's kernel may still write there";
    runtime().finish(user);
    EXPECT_EQ(allocate(1000), memory);
}

TEST_F(CudaPool, LastUseOfAStreamCounts) {
    cudaStream_t user = runtime().newStream();
    void *memory = allocate(1000);
    runtime().queue(user);
    recordUse(user);
    runtime().finish(user);
    runtime().queue(user);
    recordUse(user);
    deallocate(memory);
    EXPECT_NE(allocate(1000), memory);
}

TEST_F(CudaPool, DestroyedStreamsAreNotAsked) {
    cudaStream_t user = runtime().newStream();
    void *memory = allocate(1000);
    runtime().queue(user);
    recordUse(user);
    cudaStreamDestroy(user);
    deallocate(memory);
    EXPECT_EQ(allocate(1000), memory) << "the stand-in has run its work";
}

TEST_F(CudaPool, UseOfACapturedStreamIsRefused) {
    cudaStream_t user = runtime().newStream();
    runtime().streams[user].captured = true;
    EXPECT_THROW(recordUse(user), StateError);
}

TEST_F(CudaPool, MemoryWaitsForTheDefaultStreamWhileItMustNotBeAsked) {
    void *memory = allocate(1000);
    runtime().blockingStreamCaptured = true;
    deallocate(memory);
    EXPECT_NE(allocate(1000), memory);
    runtime().blockingStreamCaptured = false;
    EXPECT_EQ(allocate(1000), memory);
}

TEST_F(CudaPool, GraphsOfOtherThreadsAreNotVoided) {
    const Stream stream;
    const auto own = reinterpret_cast<cudaStream_t>(stream.handle());
    runtime().queue(own);
    void *memory = allocate(1000);
    runtime().otherThreadCaptures = true;
    deallocate(memory);                            // asks streams and records events
    void *large = allocate(std::size_t{40} << 20); // asks events, and takes a slab
    deallocate(large);
    EventHandle event = createEvent();
    recordEvent(event, stream);
    EXPECT_FALSE(eventReached(event));
    std::thread device([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        runtime().finish(own);
    });
    EXPECT_THROW(allocate(std::size_t{1} << 40), MemoryError); // waits for what was freed, and frees slabs
    device.join();
    destroyEvent(event);
    EXPECT_EQ(runtime().voidedBy, "");
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << "the thread's own mode is left as it was";
    cudaThreadExchangeStreamCaptureMode(&mode);
}

} // namespace
} // namespace DNDS::Device
