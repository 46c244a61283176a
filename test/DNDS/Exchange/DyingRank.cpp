// A rank that ends in the middle of pulls between ranks of a node while the others wait for it. The job must end soon,
// and not well.
//
//   DyingRank exit|kill|throw before|between [device]     (start, or between start and wait)
//   DyingRank exit|kill|throw channel                     (a CommBuffer, after two messages that are still read)

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Sparse/CommBuffer.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

constexpr int dying = 1;

void endAs(std::string_view how) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200)); // the others are in wait by then
    if (how == "exit")
        _exit(0);
    if (how == "kill")
        raise(SIGKILL);
    throw DataError("rank 1 means to fail");
}

void run(std::string_view how, std::string_view when, bool onDevice) {
    const CommunicatorView world(MPI_COMM_WORLD);
    constexpr index rows = 10;
    ArrayPair<ParArray<real, 2>> u;
    u.initPair("u", world);
    u.father->resize(rows);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    std::vector<index> everything(static_cast<std::size_t>(rows * world.size()));
    std::iota(everything.begin(), everything.end(), index{0});
    u.trans.createGhostMapping(everything);
    u.trans.createMPITypes();
    if (onDevice)
        u.toDevice();
    u.trans.initPersistentPull();
    for (int step = 0; step < 5; ++step) {
        const bool now = step == 2 && world.rank() == dying;
        if (now && when == "before")
            endAs(how);
        try {
            u.trans.startPersistentPull();
            if (now && when == "between")
                endAs(how);
            u.trans.waitPersistentPull();
        } catch (const PeerError &error) {
            std::fprintf(stderr, "noticed: %s\n", error.what());
            throw;
        }
    }
}

/// Rank 1 sends to each of the others.
void runChannel(std::string_view how) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const auto context = CommunicatorContext::of(world);
    auto pool = CommBuffer<real>::makePool();
    std::vector<CommBuffer<real>> channels;
    for (int rank = 0; rank < world.size(); ++rank)
        if (rank != dying && (world.rank() == dying || world.rank() == rank))
            channels.emplace_back(5, dying, rank, world, 10, pool);
    for (int step = 0; step < 5; ++step) {
        if (world.rank() == dying && step == 2)
            endAs(how);
        if (step == 1)
            std::this_thread::sleep_for(std::chrono::milliseconds(world.rank() == dying ? 0 : 400));
        try {
            for (auto &channel : channels)
                if (world.rank() == dying) {
                    while (channel.state() != ChannelState::Stale) {
                    }
                    channel.sendNull();
                } else {
                    while (!channel.tryReceive())
                        std::this_thread::yield();
                    channel.stale();
                    std::fprintf(stderr, "received %d\n", step);
                }
        } catch (const PeerError &error) {
            std::fprintf(stderr, "noticed: %s\n", error.what());
            throw;
        }
    }
}

} // namespace
} // namespace DNDS

int main(int argc, char **argv) {
    try {
        const DNDS::MpiSession session(argc, argv);
        const std::string_view when = argc > 2 ? argv[2] : "";
        if (when == "channel")
            DNDS::runChannel(argv[1]);
        else
            DNDS::run(argc > 1 ? argv[1] : "", when, argc > 3);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "caught: %s\n", error.what()); // hardly: the session has ended the job
        return 1;
    }
    std::puts("all ranks came to the end");
    return 0;
}
