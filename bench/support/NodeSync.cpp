#include "NodeSync.hpp"

#include "Statistics.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <new>
#include <sched.h>
#include <vector>

namespace DNDS::Bench {

namespace {

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// Spins `spins` times, then gives the core away between looks, and calls `nowAndThen`.
template <class Condition, class NowAndThen>
void waitFor(Condition condition, int spins, NowAndThen nowAndThen) {
    constexpr int looks = 64;
    for (int spin = 0; !condition(); ++spin) {
        if (spin < spins)
            pause();
        else
            sched_yield();
        if (spin >= spins && spin % looks == 0)
            nowAndThen();
    }
}

template <class Condition>
void waitFor(Condition condition, int spins) {
    waitFor(condition, spins, [] {});
}

} // namespace

std::string_view regimeName(Regime regime) {
    constexpr std::array<std::string_view, 5> names{"near", "far", "shared core", "mixed", "unknown"};
    return names[static_cast<std::size_t>(regime)];
}

Regime regimeOf(double before, double after, double nearBelow) {
    if (std::isnan(before) || std::isnan(after))
        return Regime::Unknown;
    const auto regime = [&](double latency) {
        constexpr double farBelow = 2000.0;
        return latency < nearBelow ? Regime::Near : latency < farBelow ? Regime::Far : Regime::SharedCore;
    };
    return regime(before) == regime(after) ? regime(before) : Regime::Mixed;
}

int pinToCore(CommunicatorView comm) {
    const Communicator node = Communicator::splitNode(comm);
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return -1;
    std::vector<std::size_t> cores;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &allowed))
            cores.push_back(core);
    const std::size_t core = cores[static_cast<std::size_t>(node.view().rank()) % cores.size()];
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    return sched_setaffinity(0, sizeof(own), &own) == 0 ? static_cast<int>(core) : -1;
}

/// Two lines apart each, because processors fetch lines in pairs.
struct NodeSync::Lines {
    alignas(128) std::atomic<int> arrived{0};
    alignas(128) std::atomic<unsigned> generation{0};
    alignas(128) std::atomic<unsigned> ping{0};
    alignas(128) std::atomic<unsigned> pong{0};
    alignas(128) double latency = NotMeasured;
};

NodeSync::NodeSync(CommunicatorView comm) : comm_(comm) {
    const Communicator node = Communicator::splitNode(comm);
    if (comm.allReduce(node.view().size(), MPI_MIN) != comm.size())
        return;
    constexpr std::size_t slack = alignof(Lines);
    const auto bytes = static_cast<MPI_Aint>(comm.rank() == 0 ? sizeof(Lines) + slack : 0);
    void *base = nullptr;
    checkMpi(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm.handle(), static_cast<void *>(&base), &window_),
             "MPI_Win_allocate_shared");
    MPI_Aint size = 0;
    int unit = 0;
    checkMpi(MPI_Win_shared_query(window_, 0, &size, &unit, static_cast<void *>(&base)), "MPI_Win_shared_query");
    // Page-aligned mappings put the aligned address at the same offset on every rank.
    auto space = static_cast<std::size_t>(size);
    lines_ = static_cast<Lines *>(std::align(alignof(Lines), sizeof(Lines), base, space));
    if (comm.rank() == 0)
        new (lines_) Lines;
    comm.barrier();
}

NodeSync::~NodeSync() {
    // Freeing is collective: where this rank alone has an exception, it would wait for the others.
    if (window_ != MPI_WIN_NULL && std::uncaught_exceptions() == exceptions_)
        MPI_Win_free(&window_);
}

void NodeSync::barrier() {
    if (lines_ == nullptr)
        return comm_.barrier();
    const unsigned generation = lines_->generation.load(std::memory_order_acquire);
    if (lines_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == comm_.size()) {
        lines_->arrived.store(0, std::memory_order_relaxed);
        lines_->generation.store(generation + 1, std::memory_order_release);
    } else {
        // A rank that has received its rows may still be sending others theirs: its MPI has to be called.
        waitFor([&] { return lines_->generation.load(std::memory_order_acquire) != generation; }, 100,
                [&] {
                    int any = 0;
                    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.handle(), &any, MPI_STATUS_IGNORE);
                });
    }
}

double NodeSync::probe() {
    constexpr int batches = 15;
    constexpr unsigned trips = 16;
    constexpr int spins = 20000;
    if (lines_ == nullptr || comm_.size() < 2)
        return NotMeasured;
    barrier();
    if (comm_.rank() == 0) {
        std::vector<double> oneWay;
        for (int batch = 0; batch < batches; ++batch) {
            const auto start = std::chrono::steady_clock::now();
            for (unsigned trip = 0; trip < trips; ++trip) {
                const unsigned flag = ++round_;
                lines_->ping.store(flag, std::memory_order_release);
                waitFor([&] { return lines_->pong.load(std::memory_order_acquire) == flag; }, spins);
            }
            const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
            oneWay.push_back(elapsed.count() / (2.0 * trips));
        }
        lines_->latency = median(std::move(oneWay));
    } else if (comm_.rank() == 1) {
        for (unsigned trip = 0; trip < batches * trips; ++trip) {
            const unsigned flag = ++round_;
            waitFor([&] { return lines_->ping.load(std::memory_order_acquire) == flag; }, spins);
            lines_->pong.store(flag, std::memory_order_release);
        }
    }
    barrier();
    return lines_->latency;
}

} // namespace DNDS::Bench
