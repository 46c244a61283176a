// Programs with a main of their own:
//
//   HeapPrograms kill wait|barrier|fetch|lock    rank 1 is killed while the others wait; they have to notice
//   HeapPrograms thread                     rank 1 computes outside of MPI, and still serves atomic operations

#include "DNDS/OneSided/Window.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

namespace DNDS {
namespace {

using Clock = std::chrono::steady_clock;

int runKilled(std::string_view when) {
    const CommunicatorView world(MPI_COMM_WORLD);
    SymmetricHeap heap(world, 4096);
    const auto word = heap.allocate<std::int64_t>(1);
    *word.local() = 0;
    Window window = Window::allocate(world, 8, 8);
    if (when == "lock" && world.rank() == 1)
        window.lock(LockType::Exclusive, 0);
    heap.barrier();
    if (world.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200)); // the others wait by then
        raise(SIGKILL);
    }
    try {
        if (when == "wait")
            heap.waitUntil(word, Comparison::Equal, 1);
        else if (when == "fetch")
            heap.fetchAdd(word, 1, 1);
        else if (when == "lock")
            window.lock(LockType::Shared, 0);
        heap.barrier();
    } catch (const PeerError &error) {
        std::fprintf(stderr, "noticed: %s\n", error.what());
        std::fflush(stderr);
        std::_Exit(1); // MPI could not end well
    }
    return 0;
}

int runThread() {
    const CommunicatorView world(MPI_COMM_WORLD);
    SymmetricHeap heap(world, 4096);
    const auto word = heap.allocate<std::int64_t>(1);
    *word.local() = 0;
    heap.barrier();
    constexpr std::chrono::milliseconds computing(1500);
    const auto start = Clock::now();
    if (world.rank() == 1) {
        while (Clock::now() - start < computing) {
        }
    } else {
        for (int k = 0; k < 10; ++k)
            heap.fetchAdd(word, 1, 1);
        const auto taken = std::chrono::duration<double>(Clock::now() - start).count();
        std::fprintf(stderr, "served after %.3f s: %s\n", taken, taken < 1.0 ? "while computing" : "too late");
    }
    heap.barrier();
    return heap.getValue(word, 1) == 10 * (world.size() - 1) ? 0 : 1;
}

} // namespace
} // namespace DNDS

int main(int argc, char **argv) {
    const std::string_view program = argc > 1 ? argv[1] : "";
    DNDS::MpiSession session(argc, argv, program == "thread" ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED);
    return program == "thread" ? DNDS::runThread() : DNDS::runKilled(argc > 2 ? argv[2] : "");
}
