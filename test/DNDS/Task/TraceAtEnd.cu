// Spans of a program's own recording are in the file when MPI has ended, without a call that writes them, those of
// device work as well; and where DNDS_TRACE differs between ranks, they learn so when the first communicator is used.

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Task/Graph.hpp"
#include "DNDS/Task/Trace.hpp"

#include "TraceFileReader.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace DNDS;
using Task::Trace;

namespace {

int failures = 0;

void expect(bool condition, const char *what) {
    if (condition)
        return;
    std::fprintf(stderr, "trace_at_end: not so: %s\n", what);
    ++failures;
}

constexpr int runs = 4; ///< directly, captured, and from graphs
constexpr int runsInThreads = 100;

struct AddOne {
    template <class Rows>
    DNDS_HOST_DEVICE void operator()(DNDS::index row, const Rows &rows) const {
        rows(row) += 1;
    }
};

void workOnDevice(CommunicatorView comm) {
    ParArray<real, 1> u("u", comm);
    u.resize(50);
    Task::Graph graph("steps", comm);
    graph.task("on device", Task::RowSpace("rows", 50)).readsWrites(u).run(AddOne{});
    const Device::Stream stream;
    Task::Plan plan = graph.compile(Executor::device(stream));
    for (int run = 0; run < runs; ++run)
        plan.run();
}

/// Parts of two chunks, so often that not all of them are the worker's.
void workInThreads(CommunicatorView comm) {
    ParArray<real, 1> u("u", comm);
    u.resize(2);
    Task::Graph graph("steps", comm);
    graph.task("in threads", Task::RowSpace("rows", 2)).readsWrites(u).run(AddOne{});
    Task::Plan plan = graph.compile(Executor::hostThreads(2), {.rowsPerChunk = 1});
    for (int run = 0; run < runsInThreads; ++run)
        plan.run();
}

void work(CommunicatorView comm) {
    Trace *trace = Trace::active();
    trace->begin(comm);
    const double begin = Trace::now();
    trace->record({.kind = Trace::Kind::Part, .name = "last", .begin = begin, .end = Trace::now()});
    workInThreads(comm);
    if (Device::available())
        workOnDevice(comm);
    if (comm.rank() == 0) { // ranks that differ
        ::setenv("DNDS_TRACE", "/somewhere/else.json", 1);
        if (comm.size() == 1)
            return;
    }
    std::string what;
    try {
        CommunicatorContext::of(Communicator::duplicate(comm).view());
    } catch (const ArgumentError &error) {
        what = error.what();
    }
    expect(comm.size() == 1 || what.find("DNDS_TRACE") != std::string::npos, "ranks say that DNDS_TRACE differs");
}

} // namespace

int main(int argc, char **argv) {
    const std::string path = readEnvironment().trace;
    if (Trace::active() == nullptr) {
        std::fprintf(stderr, "trace_at_end: give it DNDS_TRACE\n");
        return 1;
    }
    int ranks = 0;
    {
        const MpiSession session(argc, argv);
        const CommunicatorView comm(MPI_COMM_WORLD);
        ranks = comm.size();
        work(comm);
    }
    const auto last = test::eventsWith(test::eventsOf(path), "name", "last");
    expect(static_cast<int>(last.size()) == ranks, "the spans of all ranks are in the file");
    const auto chunks = test::eventsWith(test::eventsOf(path), "name", "in threads");
    expect(static_cast<int>(chunks.size()) == 2 * runsInThreads * ranks, "each chunk is in the file");
    expect(!test::eventsWith(chunks, "tid", 0).empty(), "some of them by the calling thread");
    for (const auto &chunk : chunks)
        expect(chunk["tid"] == 0 || chunk["tid"] == 1, "and the others by worker 1");
    if (Device::available()) {
        const auto parts = test::eventsWith(test::eventsOf(path), "name", "on device");
        expect(static_cast<int>(parts.size()) == runs * ranks, "each run's part on the device is in the file");
        for (const auto &part : parts)
            expect(part["tid"] == Trace::innerStream && part["args"]["rows"] == 50, "where and how many rows");
    }
    return failures == 0 ? 0 : 1;
}
