/// @file OpenShmem.cpp
/// @brief bench_openshmem: the operations of bench_one_sided by OpenSHMEM, beside a copy by hand of the same run.
///
/// A program of its own, without DNDS: Open MPI 4.1 crashes when a program that uses OpenSHMEM ends, whether it calls
/// shmem_finalize or not. It ends without, after the others have come, and its launcher complains.
#include <shmem.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::size_t maxBytes = std::size_t{1} << 20U;

/// Median microseconds of one of `repeats` operations over some turns, on this processing element.
template <class Operation>
double time(int repeats, Operation operation) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> turns;
    for (int turn = 0; turn < 21; ++turn) {
        const auto start = Clock::now();
        for (int k = 0; k < repeats; ++k)
            operation();
        turns.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / repeats);
    }
    std::nth_element(turns.begin(), turns.begin() + 10, turns.end());
    return turns[10];
}

void row(const std::string &what, double shmem, double byHand) {
    if (byHand > 0)
        std::printf("%-28s %10.4f %10.4f (%.2f)\n", what.c_str(), shmem, byHand, shmem / byHand);
    else
        std::printf("%-28s %10.4f\n", what.c_str(), shmem);
}

void measure(char *inbox, long *word) {
    std::vector<char> mine(maxBytes, 'x');
    auto *mapped = static_cast<char *>(shmem_ptr(inbox, 1));
    std::printf("%-28s %10s %10s (ratio)\n", "microseconds", "OpenSHMEM", "by hand");
    for (const std::size_t bytes : {8U, 64U, 1024U, 16384U, 65536U, 1048576U}) {
        const int repeats = std::max(2, static_cast<int>(200000 / (bytes + 1000)));
        const std::string size = bytes >= 1024 ? std::to_string(bytes / 1024) + " KiB" : std::to_string(bytes) + " B";
        const auto byHand = [&](auto copy) { return mapped == nullptr ? 0.0 : time(repeats, copy); };
        row("put, complete " + size,
            time(repeats,
                 [&] {
                     shmem_putmem(inbox, mine.data(), bytes, 1);
                     shmem_quiet();
                 }),
            byHand([&] { std::memcpy(mapped, mine.data(), bytes); }));
        row("get " + size, time(repeats, [&] { shmem_getmem(mine.data(), inbox, bytes, 1); }),
            byHand([&] { std::memcpy(mine.data(), mapped, bytes); }));
    }
    long seen = 0;
    row("fetch and add", time(500, [&] { seen += shmem_long_atomic_fetch_add(word, 1, 1); }), 0);
    row("compare and swap", time(500, [&] { seen += shmem_long_atomic_compare_swap(word, 5, 7, 1); }), 0);
    std::printf("(%s)\n", seen != 0 ? "done" : "nothing was seen");
}

} // namespace

int main() {
    shmem_init();
    if (shmem_n_pes() < 2) {
        std::fprintf(stderr, "bench_openshmem needs at least 2 processing elements\n");
        return 1;
    }
    auto *inbox = static_cast<char *>(shmem_malloc(maxBytes));
    auto *word = static_cast<long *>(shmem_malloc(sizeof(long)));
    *word = 0;
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        measure(inbox, word);
    std::fflush(stdout);
    shmem_barrier_all();
    _exit(0);
}
