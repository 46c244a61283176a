// Programs with a main of their own:
//
//   HeapPrograms kill wait|barrier|fetch|lock|proxy    rank 1 is killed while the others wait; they have to notice
//   HeapPrograms stop barrier               rank 1 is stopped instead
//   HeapPrograms thread                     rank 1 computes outside of MPI, and still serves atomic operations
//   HeapPrograms nothread                   rank 1 cannot start a thread: all ranks have to say so

#include "DNDS/OneSided/Window.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <atomic>
#include <cerrno>

#include <dlfcn.h>
#include <pthread.h>

static std::atomic<bool> threadsFail{false};

/// In place of the system's.
extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                              void *argument) {
    if (threadsFail)
        return EAGAIN;
    using Create = int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
    return create(thread, attributes, run, argument);
}
#else
static bool threadsFail = false;
#endif

namespace DNDS {
namespace {

using Clock = std::chrono::steady_clock;

int runEnded(std::string_view when, int signal) {
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
        raise(signal);
    }
    try {
        if (when == "wait")
            heap.waitUntil(word, Comparison::Equal, 1);
        else if (when == "fetch")
            heap.fetchAdd(word, 1, 1);
        else if (when == "lock")
            window.lock(LockType::Shared, 0);
        else if (when == "proxy") {                                      // as a kernel on the host
            std::this_thread::sleep_for(std::chrono::milliseconds(600)); // a thread of rank 1 would serve it
            heap.view().fetchAdd(word, 1, 1);
            heap.checkKernels();
        }
        heap.barrier();
    } catch (const PeerError &error) {
        std::fprintf(stderr, "noticed: %s\n", error.what());
        std::fflush(stderr);
        if (signal == SIGSTOP) // mpiexec waits for it
            MPI_Abort(MPI_COMM_WORLD, 1);
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

int runNoThread() {
    const CommunicatorView world(MPI_COMM_WORLD);
    CommunicatorContext::of(world);
    threadsFail = world.rank() == 1;
    int told = 0;
    try {
        const SymmetricHeap heap(world, 4096);
    } catch (const StateError &error) {
        told = error.message().find("thread that serves other ranks cannot be started") != std::string::npos ? 1 : 0;
    }
    threadsFail = false;
    told = world.allReduce(told, MPI_SUM);
    if (world.rank() == 0)
        std::fprintf(stderr, "%s\n", told == world.size() ? "both ranks know" : "somebody does not know");
    const SymmetricHeap next(world, 4096); // nothing is left of it
    return 0;
}

} // namespace
} // namespace DNDS

int main(int argc, char **argv) {
    const std::string_view program = argc > 1 ? argv[1] : "";
    const std::string_view when = argc > 2 ? argv[2] : "";
    const bool funneled = program == "kill" && when != "proxy";
    DNDS::MpiSession session(argc, argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
    if (program == "nothread")
        return DNDS::runNoThread();
    return program == "thread" ? DNDS::runThread() : DNDS::runEnded(when, program == "stop" ? SIGSTOP : SIGKILL);
}
