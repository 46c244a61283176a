// Objects that outlive MPI, or a forked child's exit: starting and setting up throw StateError, destructors are
// harmless. A separate program, since MPI ends once; it returns 0 on success, and the test harness limits its run
// time.

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Task/Graph.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using Field = ArrayPair<ParArray<real, 5>>;

int failures = 0;

template <class Call>
void expectStateError(const char *what, Call &&call) {
    try {
        call();
        std::fprintf(stderr, "%s after MPI_Finalize did not throw\n", what);
    } catch (const StateError &error) {
        if (error.message().find("MPI") != std::string::npos)
            return;
        std::fprintf(stderr, "%s after MPI_Finalize: unhelpful message %s\n", what, error.what());
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s after MPI_Finalize threw something else: %s\n", what, error.what());
    }
    ++failures;
}

Field makeField(CommunicatorView comm) {
    Field u;
    u.initPair("u", comm);
    u.father->resize(4);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    const index next = u.father->globalMapping()->begin((comm.rank() + 1) % comm.size());
    const std::vector<index> wanted{next, next + 2};
    u.trans.createGhostMapping(wanted);
    u.trans.createMPITypes();
    return u;
}

/// Destroyed by exit().
std::vector<Field> &staticFields() {
    static std::vector<Field> fields;
    return fields;
}

/// A child that exits as programs do leaves its parent's exchanges alone.
void exitInAChild() {
    for (int k = 0; k < 2; ++k) {
        staticFields().push_back(makeField(MPI_COMM_WORLD));
        staticFields().back().trans.initPersistentPull();
    }
    staticFields().back().trans.startPersistentPull();
    const pid_t child = fork();
    if (child == 0) {
        alarm(10); // it must not wait for anything
        std::exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) {
        std::fprintf(stderr, "the child that exits ended with status %d\n", status);
        ++failures;
    }
    staticFields().back().trans.waitPersistentPull();
    for (Field &field : staticFields()) {
        (*field.father)(0, 0) = 5.0;
        field.trans.startPersistentPull();
        field.trans.waitPersistentPull();
        if ((*field.son)(0, 0) != 5.0) {
            std::fprintf(stderr, "after a child exited the parent's pull brings something else\n");
            ++failures;
        }
    }
}

int run() {
    exitInAChild();
    {
        std::vector<Field> fields;
        for (const TransportKind kind : {TransportKind::Auto, TransportKind::Packed, TransportKind::Datatype}) {
            fields.push_back(makeField(MPI_COMM_WORLD));
            fields.back().trans.initPersistentPull({.transport = kind});
            fields.back().trans.initPersistentPush(PushOp::Sum, {.transport = kind});
            fields.back().trans.startPersistentPull();
            fields.back().trans.waitPersistentPull();
        }
        fields.push_back(makeField(MPI_COMM_WORLD)); // stays in flight
        fields.back().trans.initPersistentPull();
        fields.back().trans.startPersistentPull();
        Communicator own = Communicator::duplicate(MPI_COMM_WORLD); // never freed before MPI ends
        fields.push_back(makeField(own.view()));
        fields.back().trans.initPersistentPull();
        ExchangeGroup group;
        group.add(fields.front().trans);
        group.initPersistentPull();
        const auto context = fields.front().trans.pattern()->mapping()->global()->context();
        Task::Graph graph("ends", MPI_COMM_WORLD);
        graph.task("read", Task::RowSpace("rows", 4, 2, fields.front().trans.pattern()).region("all"))
            .reads(std::as_const(fields.front()))
            .run([](index, const auto &) {});
        Task::Plan plan = graph.compile();
        plan.run(); // its peers' words may be pending

        MPI_Finalize();

        for (std::size_t k = 0; k < 3; ++k) {
            expectStateError("startPersistentPull", [&] { fields[k].trans.startPersistentPull(); });
            expectStateError("startPersistentPush", [&] { fields[k].trans.startPersistentPush(); });
            expectStateError("initPersistentPull", [&] { fields[k].trans.initPersistentPull(); });
            expectStateError("pullOnce", [&] { fields[k].trans.pullOnce(); });
            expectStateError("createFatherGlobalMapping", [&] { fields[k].trans.createFatherGlobalMapping(); });
            expectStateError("createMPITypes", [&] { fields[k].trans.createMPITypes(); });
        }
        expectStateError("group.startPersistentPull", [&] { group.startPersistentPull(); });
        expectStateError("a pair on a communicator of its own", [&] { fields.back().trans.startPersistentPull(); });
        expectStateError("a plan", [&] { plan.run(); });
        expectStateError("CommunicatorView", [] { (void)CommunicatorView(MPI_COMM_WORLD); });
        expectStateError("CommunicatorContext::of", [&] { (void)context->comm(); });
        if (context->alive()) {
            std::fprintf(stderr, "the context of MPI_COMM_WORLD is alive after MPI_Finalize\n");
            ++failures;
        }
        // Local operations still work.
        fields.front().father->resize(9);
        (*fields.front().father)(8, 4) = 1.0;
    }
    return failures == 0 ? 0 : 1;
}

} // namespace
} // namespace DNDS

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    return DNDS::run();
}
