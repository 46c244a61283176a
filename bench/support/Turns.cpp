#include "Turns.hpp"

#include "Statistics.hpp"

#include <chrono>
#include <ctime>
#include <thread>

namespace DNDS::Bench {

namespace {

double processorSeconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A barrier whose early ranks sleep, to leave the machine to ranks that still work.
void sleepUntilAllAreHere(CommunicatorView comm) {
    MPI_Request request = MPI_REQUEST_NULL;
    checkMpi(MPI_Ibarrier(comm.handle(), &request), "MPI_Ibarrier");
    int done = 0;
    while (done == 0) {
        checkMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

void takeTurn(CommunicatorView comm, const Way &way, TurnTimes *times) {
    sleepUntilAllAreHere(comm);
    comm.barrier(); // they wake up at different times
    const double processor = processorSeconds();
    const double wall = MPI_Wtime();
    way.timed();
    double spent[2] = {MPI_Wtime() - wall, processorSeconds() - processor};
    sleepUntilAllAreHere(comm);
    comm.allReduce(spent, 2, MPI_MAX);
    if (times != nullptr) {
        times->wall.push_back(spent[0]);
        times->processor.push_back(spent[1]);
    }
}

} // namespace

double TurnTimes::medianWall() const { return median(wall); }
double TurnTimes::medianProcessor() const { return median(processor); }

std::vector<TurnTimes> takeTurns(CommunicatorView comm, std::span<const Way> ways, int turns) {
    std::vector<TurnTimes> times(ways.size());
    for (const Way &way : ways)
        takeTurn(comm, way, nullptr);
    for (int turn = 0; turn < turns; turn++)
        for (std::size_t k = 0; k < ways.size(); k++) {
            const std::size_t which = (k + static_cast<std::size_t>(turn)) % ways.size();
            takeTurn(comm, ways[which], &times[which]);
        }
    return times;
}

} // namespace DNDS::Bench
