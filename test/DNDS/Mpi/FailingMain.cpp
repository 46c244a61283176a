// Programs that end by an exception, in every way that a main function can be written: what they print and how they end
// is checked by CTest. `failing_main WAY`

#include "DNDS/Mpi/RunMain.hpp"

#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using DNDS::CommunicatorView;

/// Rank 1 fails, and the others wait for it.
void failOnOneRank(CommunicatorView world) {
    DNDS_CHECK(world.rank() != 1, DNDS::IndexError, "row 7 is missing");
    world.barrier();
}

int withRunMain(int argc, char **argv, const std::string &way) {
    const auto body = [&](CommunicatorView world) {
        if (way == "one_rank")
            failOnOneRank(world);
        if (way == "foreign" && world.rank() == 1)
            throw std::runtime_error("row 7 is missing");
        if (way == "foreign")
            world.barrier();
        if (way == "all_ranks") // agreed on
            world.guarded([&] { DNDS_CHECK(world.rank() != 1, DNDS::DataError, "row 7 is missing"); });
        if (way == "each_rank") // by itself
            throw DNDS::DataError("row 7 is missing");
        if (way == "thread" && world.rank() == 1)
            std::thread([] { throw DNDS::DataError("row 7 is missing"); }).join();
        if (way == "thread")
            world.barrier();
        return way == "returns" ? 3 : 0;
    };
    if (way == "void")
        return DNDS::runMain(argc, argv, [&](CommunicatorView world) { world.barrier(); });
    return DNDS::runMain(argc, argv, body);
}

} // namespace

int main(int argc, char **argv) {
    const std::string way = argc > 1 ? argv[1] : "";
    if (way == "uncaught") {
        const DNDS::MpiSession mpi(argc, argv);
        failOnOneRank(MPI_COMM_WORLD);
        return 0;
    }
    if (way == "caught_outside") {
        try {
            const DNDS::MpiSession mpi(argc, argv);
            failOnOneRank(MPI_COMM_WORLD);
        } catch (const std::exception &) { // the session has ended the job before
            std::puts("caught");
            return 0;
        }
        return 0;
    }
    return withRunMain(argc, argv, way);
}
