// Exchanges destroyed by another thread or by a forked child.

#include "FieldCase.hpp"
#include "RingField.hpp"

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

template <class Body>
void forEachTransport(Body &&body) {
    for (const TransportKind kind : allTransports()) {
        SCOPED_TRACE(transportName(kind));
        const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
        body(comm.view(), ExchangeOptions{.transport = kind});
    }
}

std::vector<RealField> preparedFields(CommunicatorView comm, const ExchangeOptions &options, int count) {
    std::vector<RealField> fields;
    for (int k = 0; k < count; ++k) {
        fields.push_back(ringField("field", comm));
        fields.back().trans.initPersistentPull(options);
        fill(fields.back(), k);
    }
    return fields;
}

TEST(Threads, WhatNeedsMpiWaitsForTheThreadThatMayCallIt) {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    forEachTransport([&](CommunicatorView comm, const ExchangeOptions &options) {
        std::vector<RealField> doomed = preparedFields(comm, options, 2);
        doomed[1].trans.startPersistentPull();
        comm.barrier();
        const std::weak_ptr<void> idle = doomed[0].son;
        const std::weak_ptr<void> moving = doomed[1].son;
        std::thread([&] { doomed.clear(); }).join();
        if (level != MPI_THREAD_MULTIPLE) {
            EXPECT_FALSE(idle.expired()) << "its requests are MPI's";
        }
        recover(comm); // an exchange was abandoned in flight
        for (int round = 0; round < 50 && !(idle.expired() && moving.expired()); ++round) {
            RealField later = ringField("later", comm);
            later.trans.initPersistentPull(options);
            expectPullWorks(later, round);
        }
        EXPECT_TRUE(idle.expired());
        EXPECT_TRUE(moving.expired());
    });
}

TEST(Threads, ExchangesDestroyedAfterTheirCommunicatorDoNoHarm) {
    forEachTransport([](CommunicatorView, const ExchangeOptions &options) {
        std::optional<Communicator> comm = Communicator::duplicate(MPI_COMM_WORLD);
        std::vector<RealField> doomed = preparedFields(comm->view(), options, 4);
        doomed[1].trans.startPersistentPull();
        comm.reset();
        std::thread([&] { doomed.clear(); }).join();
    });
}

/// Checks made by a forked child: its exit status, 0 for success.
template <class Body>
int forked(Body &&body) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20); // it must not wait for anything
        body();
        _exit(99);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + status;
}

TEST(Forks, AChildDestroysNothingOfItsParent) {
    forEachTransport([](CommunicatorView comm, const ExchangeOptions &options) {
        std::vector<RealField> fields = preparedFields(comm, options, 3);
        fields[2].trans.startPersistentPull();
        EXPECT_EQ(forked([&] {
                      fields.clear();
                      _exit(0);
                  }),
                  0);
        fields[2].trans.waitPersistentPull();
        EXPECT_EQ(wrongGhosts(fields[2], 2), 0);
        for (int version = 1; version < 4; ++version)
            for (RealField &field : fields)
                expectPullWorks(field, version);
    });
}

TEST(Forks, AChildIsToldThatExchangesAreItsParents) {
    RealField u = ringField();
    u.trans.initPersistentPull();
    fill(u, 1);
    u.trans.startPersistentPull();
    const auto refused = [&](auto &&call) {
        try {
            call();
        } catch (const StateError &error) {
            return error.message().find("forked child") != std::string::npos;
        }
        return false;
    };
    EXPECT_EQ(forked([&] {
                  if (!refused([&] { u.trans.waitPersistentPull(); }))
                      _exit(1);
                  if (!refused([&] { u.trans.startPersistentPull(); }))
                      _exit(2);
                  if (!refused([&] { u.trans.pullOnce(); }))
                      _exit(3);
                  if (!refused([&] { (void)u.father->globalSize(); }))
                      _exit(4);
                  const auto copy = std::make_unique<ParArray<real, 5>>(*u.son); // work on one's own is fine
                  _exit(copy->size() == u.son->size() ? 0 : 5);                  // peers still write rows
              }),
              0);
    u.trans.waitPersistentPull();
    EXPECT_EQ(wrongGhosts(u, 1), 0);
}

} // namespace
} // namespace DNDS
