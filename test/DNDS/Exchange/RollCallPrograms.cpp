// Ranks that wait for one that does not come say where all are: roll_call_programs HOW
//
// Rank 2 of 3 goes elsewhere (wanders), stops, ends, or computes (computes, reversed: in a communicator of other
// ranks), or comes late to collective calls (late). Rank 0 of 2 comes late, and passes through such calls by itself
// meanwhile (passes), or holds a lock for good that the sink of its warnings waits for (locked). On asking (signal;
// early: before anything of DNDS is used), ranks tell it by themselves, their children do not (child).

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using Row = DNDS::index;

namespace {

using Pair = DNDS::ArrayPair<DNDS::ParArray<double, 1>>;

Pair ring(DNDS::CommunicatorView world, const char *name) {
    Pair u;
    u.initPair(name, world);
    u.father->resize(2);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    const Row rows = 2 * world.size();
    const std::vector<Row> ghosts{(2 * world.rank() + 2) % rows, (2 * world.rank() + rows - 1) % rows};
    u.trans.createGhostMapping(ghosts);
    u.trans.createMPITypes();
    u.trans.initPersistentPull();
    return u;
}

void goElsewhere(const std::string &how, DNDS::CommunicatorView world) {
    if (how == "stops")
        std::raise(SIGSTOP);
    else if (how == "ends")
        _exit(0);
    else if (how == "wanders") {
        Pair other;
        other.initPair("other", world);
        other.father->resize(2);
        other.transAttach();
        other.trans.createFatherGlobalMapping();
    }
    for (;;) // until the others end the job
        std::this_thread::sleep_for(std::chrono::seconds(1));
}

void askChild() {
    const pid_t child = fork();
    if (child == 0) {
        std::raise(SIGUSR1);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    std::puts(WIFEXITED(status) ? "the child lives" : "the child was killed");
}

} // namespace

int main(int argc, char **argv) {
    const int code = DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView all) {
        const std::string how = argc > 1 ? argv[1] : "";
        if (how == "early")
            std::raise(SIGUSR1);
        if (how == "child")
            askChild();
        if (how == "early" || how == "child")
            return 0;
        const DNDS::Communicator other =
            DNDS::Communicator::split(all, 0, how == "reversed" ? -all.rank() : all.rank());
        const DNDS::CommunicatorView world = how == "reversed" ? other.view() : all;
        Pair u = ring(world, "state");
        if (how == "late") {
            const auto beLate = [&] {
                if (world.rank() == 2)
                    std::this_thread::sleep_for(std::chrono::seconds(4));
            };
            beLate();
            world.barrier();
            beLate();
            world.allReduce(1, MPI_SUM);
            return 0;
        }
        if (how == "locked") {
            static auto *const held = new std::mutex; // never destroyed: a thread waits for it
            if (world.rank() == 0) {
                held->lock();
                DNDS::setWarningSink([](std::string_view) {
                    std::puts("the sink waits");
                    std::fflush(stdout);
                    const std::lock_guard lock(*held);
                });
            } else {
                std::this_thread::sleep_for(std::chrono::seconds(3));
            }
            world.barrier();
            return 0;
        }
        if (how == "passes") {
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(6);
            while (world.rank() == 0 && std::chrono::steady_clock::now() < end)
                DNDS::CommunicatorView(MPI_COMM_SELF).allReduce(1, MPI_SUM);
            world.allReduce(1, MPI_SUM);
            return 0;
        }
        const std::vector<Row> processes = world.allGather(static_cast<Row>(getpid()));
        if (how == "signal") {
            world.barrier(); // all ranks have left the previous call
            if (world.rank() == 0)
                for (const Row process : processes)
                    kill(static_cast<pid_t>(process), SIGUSR1);
            world.barrier();
            return 0;
        }
        u.trans.startPersistentPull();
        u.trans.waitPersistentPull();
        if (world.rank() == 2)
            goElsewhere(how, world);
        try {
            u.trans.startPersistentPull();
            u.trans.waitPersistentPull();
        } catch (const DNDS::PeerError &error) {
            if (world.rank() == 0)
                std::fputs(fmt::format("noticed: {}\n", error.message()).c_str(), stdout);
            std::fflush(stdout);
        }
        if (world.rank() == 0) {
            for (const int rank : {1, 2}) // MPI_Abort may wait for a rank that is stopped
                kill(static_cast<pid_t>(processes[static_cast<std::size_t>(rank)]), SIGKILL);
            _exit(0);
        }
        for (;;)
            std::this_thread::sleep_for(std::chrono::seconds(1));
        return 1;
    });
    std::puts("MPI has ended");
    return code;
}
