// The program of docs/guides/one_sided.md: each rank puts numbers into the next one's memory and counts at rank 0.
//
//   mpiexec -n 3 one_sided_ring
//
// It ends with exit code 0 only if all numbers and counts are there at the end.

#include "DNDS/Mpi/RunMain.hpp"
#include "DNDS/OneSided/SymmetricHeap.hpp"

#include <fmt/core.h>

#include <array>
#include <cstdint>

namespace {

int run(DNDS::CommunicatorView world) {
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();

    DNDS::SymmetricHeap heap(world, 1 << 20);    // collective: 1 MiB on each rank
    const auto inbox = heap.allocate<double>(3); // collective: the same offset on every rank
    const auto filled = heap.allocate<std::uint64_t>(1);
    const auto count = heap.allocate<std::int64_t>(1);
    *filled.local() = 0; // memory begins with anything
    *count.local() = 0;
    heap.barrier(); // nobody writes before all are ready

    const std::array<double, 3> mine{1.0 * world.rank(), 2.0 * world.rank(), 3.0 * world.rank()};
    heap.putSignal(inbox, mine.data(), mine.size(), filled, 1, DNDS::SignalOp::Set, next);
    heap.waitUntil(filled, DNDS::Comparison::Equal, 1); // the previous rank's numbers are here now

    double sum = 0;
    for (int k = 0; k < 3; ++k)
        sum += inbox.local()[k];
    heap.add(count, static_cast<std::int64_t>(sum), 0); // atomic, in the memory of rank 0
    heap.barrier();                                     // all operations of all ranks are complete

    const std::int64_t total = heap.fetch(count, 0);
    heap.barrier(); // between nodes: no rank waits for an answer of one that is in another collective call
    if (world.rank() == 0)
        fmt::print("{} ranks put {}\n", world.size(), total);
    return sum == 6.0 * previous && total == 3 * world.size() * (world.size() - 1) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
