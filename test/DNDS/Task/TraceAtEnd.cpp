// Spans of a program's own recording are in the file when MPI has ended, without a call that writes them; and where
// DNDS_TRACE differs between ranks, they learn so when the first communicator is used.

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
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

void work(CommunicatorView comm) {
    Trace *trace = Trace::active();
    trace->begin(comm);
    const double begin = Trace::now();
    trace->record({.kind = Trace::Kind::Part, .name = "last", .begin = begin, .end = Trace::now()});
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
    return failures == 0 ? 0 : 1;
}
