/// @file main.cpp
/// @brief bench_one_sided: operations on a symmetric heap beside MPI's windows, between two ranks of a node, and
/// updates of ghosts beside pushes.
#include "AlignedVector.hpp"
#include "GhostUpdates.hpp"
#include "Measure.hpp"
#include "MpiWindow.hpp"
#include "RunBenchmark.hpp"

#include "DNDS/OneSided/Window.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Bench {

namespace {

constexpr std::size_t maxBytes = std::size_t{1} << 20U;

std::string sized(const char *what, std::size_t bytes) {
    return bytes >= 1024 ? fmt::format("{} {} KiB", what, bytes / 1024) : fmt::format("{} {} B", what, bytes);
}

/// A contestant of whom only rank 0 does something.
template <class Operation>
Contestant byRankZero(CommunicatorView comm, std::string name, int repeats, Operation operation) {
    return {std::move(name),
            {},
            [rank = comm.rank(), repeats, operation] {
                for (int k = 0; rank == 0 && k < repeats; ++k)
                    operation();
            },
            {}};
}

void transfers(Setting &setting, SymmetricHeap &heap, SymmetricPointer<char> inbox, const MpiWindow &allocated,
               const MpiWindow &shared) {
    Table table({"microseconds", "heap", "MPI_Win_allocate (ratio)", "shared window (ratio)",
                 "by hand: a copy, and a fence after a put (ratio)"});
    AlignedVector<char> mine(maxBytes, 'x');
    for (const std::size_t bytes : {8U, 64U, 1024U, 16384U, 65536U, 1048576U}) {
        const int repeats = std::max(2, static_cast<int>(200000 / (bytes + 1000)));
        const auto contestant = [&](const char *name, auto operation) {
            return byRankZero(setting.comm, name, repeats, operation);
        };
        measure(setting, table, sized("put, complete", bytes), repeats,
                {contestant("heap",
                            [&] {
                                heap.put(inbox, mine.data(), bytes, 1);
                                heap.quiet();
                            }),
                 contestant("MPI_Win_allocate", [&] { allocated.put(mine.data(), bytes, 1); }),
                 contestant("shared window", [&] { shared.put(mine.data(), bytes, 1); }),
                 contestant("copy and fence", [&] {
                     std::memcpy(inbox.at(1), mine.data(), bytes);
                     Atomics::fenceSystem();
                 })});
        measure(setting, table, sized("get", bytes), repeats,
                {contestant("heap", [&] { heap.get(mine.data(), inbox, bytes, 1); }),
                 contestant("MPI_Win_allocate", [&] { allocated.get(mine.data(), bytes, 1); }),
                 contestant("shared window", [&] { shared.get(mine.data(), bytes, 1); }),
                 contestant("copy", [&] { std::memcpy(mine.data(), inbox.at(1), bytes); })});
    }
    say(setting.comm, table.text());
}

void atomics(Setting &setting, SymmetricHeap &heap, SymmetricPointer<std::int64_t> word, const MpiWindow &allocated,
             const MpiWindow &shared) {
    Table table({"microseconds", "heap", "MPI_Win_allocate (ratio)", "shared window (ratio)"});
    constexpr int repeats = 500;
    const auto contestant = [&](const char *name, auto operation) {
        return byRankZero(setting.comm, name, repeats, operation);
    };
    std::int64_t seen = 0;
    measure(setting, table, "fetch and add", repeats,
            {contestant("heap", [&] { seen += heap.fetchAdd(word, 1, 1); }),
             contestant("MPI_Win_allocate", [&] { seen += allocated.fetchAdd(1, 1); }),
             contestant("shared window", [&] { seen += shared.fetchAdd(1, 1); })});
    // Open MPI 4's window of one-sided RDMA crashes in compare-and-swap of 8 bytes
    measure(setting, table, "compare and swap", repeats,
            {contestant("heap", [&] { seen += heap.compareSwap(word, 5, 7, 1); }), contestant("", [] {}),
             contestant("shared window", [&] { seen += shared.compareSwap(5, 7, 1); })});
    say(setting.comm, table.text());
}

/// Sums of reals into rank 1's window, by one call for all of them; windows of one rank a node get them as messages.
void batches(Setting &setting, const MpiWindow &allocated, const MpiWindow &shared) {
    const Communicator apart = Communicator::duplicate(setting.comm.handle());
    ::setenv("DNDS_RANKS_PER_NODE", "1", 1); // read at the first use of a communicator
    constexpr std::size_t most = 10000;
    Window messages = Window::allocate(apart.view(), most * sizeof(double), sizeof(double));
    ::unsetenv("DNDS_RANKS_PER_NODE");
    Window mapped = Window::allocate(setting.comm, most * sizeof(double), sizeof(double));
    const bool first = setting.comm.rank() == 0;
    const std::vector<double> ones(most, 1);
    std::vector<double> before(most);
    Table table({"microseconds", "window", "MPI_Win_allocate (ratio)", "shared window (ratio)"});
    const auto compare = [&](const std::string &what, Window &window, LockType lock, std::size_t count, bool gets) {
        const int repeats = std::max(2, static_cast<int>(20000 / (count + 100)));
        const auto contestant = [&](const char *name, auto operation) {
            return byRankZero(setting.comm, name, repeats, operation);
        };
        const auto ours = [&, count, gets] {
            gets ? window.getAccumulate(ones.data(), before.data(), count, 1, 0, AccumulateOp::Sum)
                 : window.accumulate(ones.data(), count, 1, 0, AccumulateOp::Sum);
            window.flush(1);
        };
        const auto theirs = [&](const MpiWindow &mpi) {
            return [&, count, gets] {
                gets ? mpi.getAccumulate(ones.data(), before.data(), count, 1) : mpi.accumulate(ones.data(), count, 1);
            };
        };
        Contestant batch = contestant("window", ours);
        batch.timed = [&window, operate = batch.timed] { // all others serve in the barrier
            operate();
            window.barrier();
        };
        if (first)
            window.lock(lock, 1);
        window.barrier(); // serves the lock
        measure(setting, table, fmt::format("{} {} reals, {}", gets ? "get and add" : "add", count, what), repeats,
                {&window == &messages ? batch : contestant("window", ours),
                 contestant("MPI_Win_allocate", theirs(allocated)), contestant("shared window", theirs(shared))});
        if (first)
            window.unlock(1);
        window.barrier();
    };
    for (const std::size_t count : {std::size_t{1}, std::size_t{10}, std::size_t{1000}, most}) {
        compare("shared lock", mapped, LockType::Shared, count, false);
        compare("exclusive lock", mapped, LockType::Exclusive, count, false);
    }
    compare("shared lock", mapped, LockType::Shared, 1000, true);
    compare("exclusive lock", mapped, LockType::Exclusive, 1000, true);
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, most})
        compare("by messages", messages, LockType::Shared, count, false);
    compare("by messages", messages, LockType::Shared, 1000, true);
    say(setting.comm, table.text());
}

/// All ranks make a window and destroy it.
void lives(Setting &setting) {
    Table table({"microseconds", "window", "MPI_Win_allocate (ratio)"});
    constexpr int repeats = 5;
    const auto contestant = [&](const char *name, auto operation) {
        return Contestant{name,
                          {},
                          [operation] {
                              for (int k = 0; k < repeats; ++k)
                                  operation();
                          },
                          {}};
    };
    measure(setting, table, "make and destroy a window", repeats,
            {contestant("window", [&] { Window::allocate(setting.comm, 64, 8); }),
             contestant("MPI_Win_allocate", [&] { MpiWindow(setting.comm, 64, MpiWindow::Kind::Allocated); })});
    say(setting.comm, table.text());
}

/// Rounds of ranks 0 and 1: each puts `bytes` and a signal, and waits for the other's.
void rounds(Setting &setting, SymmetricHeap &heap, SymmetricPointer<char> inbox,
            SymmetricPointer<std::uint64_t> signal) {
    Table table({"microseconds a round", "put with signal", "cache lines by hand (ratio)"});
    constexpr int repeats = 200;
    AlignedVector<char> mine(maxBytes, 'x');
    const int rank = setting.comm.rank();
    const int other = 1 - rank;
    std::uint64_t round = 0, handRound = 0;
    for (const std::size_t bytes : {8U, 56U, 1024U}) {
        const auto payload = inbox + static_cast<std::ptrdiff_t>(sizeof(std::uint64_t)); // on the line of the signal
        auto *mySignal = signal.local();
        auto *theirSignal = rank < 2 ? signal.at(other) : nullptr;
        const auto wait = [](const std::uint64_t *word, std::uint64_t value) {
            while (Atomics::loadAcquire(word) != value) {
            }
        };
        measure(setting, table, sized("round", bytes), repeats,
                {{"heap",
                  {},
                  [&] {
                      for (int k = 0; k < repeats && rank < 2; ++k) {
                          ++round;
                          if (rank == 1)
                              heap.waitUntil(signal + 1, Comparison::Equal, round);
                          heap.putSignal(payload, mine.data(), bytes, signal + 1, round, SignalOp::Set, other);
                          if (rank == 0)
                              heap.waitUntil(signal + 1, Comparison::Equal, round);
                      }
                  },
                  {}},
                 {"by hand",
                  {},
                  [&] {
                      for (int k = 0; k < repeats && rank < 2; ++k) {
                          ++handRound;
                          if (rank == 1)
                              wait(mySignal, handRound);
                          Atomics::storeRelease(theirSignal, handRound);
                          if (rank == 0)
                              wait(mySignal, handRound);
                      }
                  },
                  {}}});
    }
    say(setting.comm, table.text());
}

/// A kernel's operations by requests to the host, beside the same kernel's loads and stores.
void throughProxy(Setting &setting, SymmetricHeap &direct, SymmetricPointer<char> there,
                  SymmetricPointer<std::int64_t> directWord) {
    ::setenv("DNDS_ONE_SIDED_PROXY", "1", 1); // read when heaps are made
    SymmetricHeap heap(setting.comm, 2 * maxBytes, MemorySpace::Host, "a heap behind the proxy");
    ::unsetenv("DNDS_ONE_SIDED_PROXY");
    const auto inbox = heap.allocate<char>(maxBytes);
    const auto word = heap.allocate<std::int64_t>(1);
    *word.local() = 0;
    heap.barrier();
    const HeapView proxy = heap.view(), loads = direct.view();
    AlignedVector<char> mine(maxBytes, 'x');
    Table table({"microseconds", "through the proxy", "loads and stores (ratio)"});
    const auto contestant = [&](const char *name, int repeats, auto operation) {
        return byRankZero(setting.comm, name, repeats, operation);
    };
    double put = 0, get = 0;
    for (const std::size_t bytes : {8U, 1024U, 65536U, 1048576U}) {
        const int repeats = std::max(2, static_cast<int>(50000 / (bytes + 1000)));
        const auto count = static_cast<index>(bytes);
        const auto puts = [&mine, count](const HeapView &view, SymmetricPointer<char> to) {
            return [&mine, count, view, to] {
                view.put(to, mine.data(), count, 1);
                view.quiet();
            };
        };
        const auto gets = [&mine, count](const HeapView &view, SymmetricPointer<char> from) {
            return [&mine, count, view, from] { view.get(mine.data(), from, count, 1); };
        };
        put = measure(
            setting, table, sized("put, complete", bytes), repeats,
            {contestant("proxy", repeats, puts(proxy, inbox)), contestant("stores", repeats, puts(loads, there))});
        get = measure(
            setting, table, sized("get", bytes), repeats,
            {contestant("proxy", repeats, gets(proxy, inbox)), contestant("loads", repeats, gets(loads, there))});
    }
    std::int64_t seen = 0;
    measure(setting, table, "fetch and add", 100,
            {contestant("proxy", 100, [&] { seen += proxy.fetchAdd(word, 1, 1); }),
             contestant("loads", 100, [&] { seen += loads.fetchAdd(directWord, 1, 1); })});
    say(setting.comm, table.text());
    say(setting.comm,
        fmt::format("through the proxy, 1 MiB: put {:.2f} GB/s, get {:.2f} GB/s\n\n",
                    static_cast<double>(maxBytes) / put / 1e3, static_cast<double>(maxBytes) / get / 1e3));
    heap.barrier();
}

int run(int argc, char **argv, CommunicatorView comm) {
    NodeSync sync(comm);
    Report report;
    Setting setting{comm, sync, report, {}};
    CLI::App app("Times one-sided operations of rank 0 on the memory of rank 1 beside MPI's windows.",
                 "bench_one_sided");
    setting.common.addTo(app);
    if (const auto code = parse(app, argc, argv, comm))
        return *code;
    DNDS_CHECK(comm.size() >= 2, ArgumentError, "bench_one_sided needs at least 2 ranks");
    if (setting.common.pin)
        pinToCore(comm);
    SymmetricHeap heap(comm, 2 * maxBytes);
    const auto inbox = heap.allocate<char>(maxBytes + 64);
    const auto word = heap.allocate<std::int64_t>(1);
    const auto signal = heap.allocate<std::uint64_t>(2);
    std::memset(signal.local(), 0, 16);
    *word.local() = 0;
    DNDS_CHECK(inbox.at(1) != nullptr && inbox.at(0) != nullptr, StateError, "ranks 0 and 1 share no memory: {}",
               heap.path(comm.rank() == 1 ? 0 : 1));
    heap.barrier();
    {
        const MpiWindow allocated(comm, maxBytes, MpiWindow::Kind::Allocated);
        const MpiWindow shared(comm, maxBytes, MpiWindow::Kind::Shared);
        say(comm, fmt::format("{} ranks, {}, {}\n\n", comm.size(), mpiLibrary(), cpuName()));
        transfers(setting, heap, inbox, allocated, shared);
        atomics(setting, heap, word, allocated, shared);
        batches(setting, allocated, shared);
        lives(setting);
        rounds(setting, heap, inbox, signal);
        throughProxy(setting, heap, inbox, word);
    }
    ghostUpdates(setting);
    if (!setting.common.json.empty() && comm.rank() == 0)
        report.write(setting.common.json);
    heap.barrier();
    return 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_one_sided", argc, argv, DNDS::Bench::run); }
