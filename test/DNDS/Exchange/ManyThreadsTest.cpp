// One context, several threads: arrays made and destroyed on any of them, an exchange on each. MPI runs with
// MPI_THREAD_MULTIPLE; FunneledThreadsTest.cpp has what is an error without.

#include "DeviceCase.hpp"
#include "FieldCase.hpp"
#include "OnThreads.hpp"
#include "RingField.hpp"

#include "DNDS/Exchange/Report.hpp"
#include "DNDS/Mpi/NodeArena.hpp"

#include <atomic>
#include <latch>
#include <optional>

namespace DNDS {
namespace {

using namespace DNDS::test;

class ManyThreads : public testing::Test {
  protected:
    void SetUp() override {
        if (!mpiServesAllThreads())
            GTEST_SKIP() << "needs an MPI that grants MPI_THREAD_MULTIPLE";
    }

    static constexpr int threads = 4;
    const Communicator comm_ = Communicator::duplicate(MPI_COMM_WORLD);
};

/// One for each thread, set up in order on this one. Collective.
std::vector<RealField> fieldsFor(int threads, CommunicatorView comm, const ExchangeOptions &options = {}) {
    std::vector<RealField> fields;
    for (int k = 0; k < threads; ++k) {
        fields.push_back(ringField("field " + std::to_string(k), comm, ringRows + k));
        fields.back().trans.initPersistentPull(options);
    }
    return fields;
}

/// Versions of the contents of the field of one thread.
int versionOf(int thread, int round) { return 1000 * thread + round; }

TEST_F(ManyThreads, PullAndPushEveryLayout) {
    forEachTransport([&](const ExchangeOptions &options) {
        FieldCases fields = allFieldCases();
        for (const auto &field : fields) {
            field->create(PullLists::withEmptyAndLonelyRanks());
            field->initPull(options.transport);
            field->initPush(PushOp::Replace, options.transport);
        }
        onThreads(static_cast<int>(fields.size()), [&](int k) {
            FieldCase &field = *fields[static_cast<std::size_t>(k)];
            for (int round = 1; round <= 40; ++round) {
                const auto version = static_cast<std::uint64_t>(versionOf(k, round));
                field.clearSon();
                field.fillFather(version);
                field.trans().startPersistentPull();
                field.trans().waitPersistentPull();
                field.expectSon(version);
                field.fillSon(version);
                field.trans().startPersistentPush();
                field.trans().waitPersistentPush();
                field.expectFather(version, version, PushOp::Replace);
            }
        });
    });
}

TEST_F(ManyThreads, MoveRowsOfTheDevice) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    for (const TransportKind kind : deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        std::vector<RealField> fields;
        for (int k = 0; k < threads; ++k) {
            fields.push_back(ringField("field " + std::to_string(k), comm_.view(), ringRows + k));
            fields.back().toDevice();
            fields.back().trans.initPersistentPull({.transport = kind});
        }
        onThreads(threads, [&](int k) {
            RealField &field = fields[static_cast<std::size_t>(k)];
            for (int round = 1; round <= 20; ++round) {
                refill(field, versionOf(k, round));
                pull(field);
                expectGhosts(field, versionOf(k, round));
            }
        });
    }
}

TEST_F(ManyThreads, MakeAndDestroyArraysWhileOthersPull) {
    std::vector<RealField> fields = fieldsFor(2, comm_.view());
    const auto memory = fields[0].trans.pattern()->context().node().arena; // null where ranks share none
    onThreads(threads, [&](int k) {
        for (int round = 1; round <= 200; ++round) {
            if (k < 2) {
                RealField &field = fields[static_cast<std::size_t>(k)];
                fill(field, versionOf(k, round));
                pull(field);
                ASSERT_EQ(wrongGhosts(field, versionOf(k, round)), 0);
                continue;
            }
            ParArray<real, DynamicSize> array("of thread " + std::to_string(k), comm_.view());
            array.resize(10 + round % 7, 3);
            if (round % 2 == 0 && memory)
                array.rehost(memory);
            array(9, 2) = round;
            auto copy = std::make_unique<ParArray<real, DynamicSize>>(array);
            const ParArray<real, DynamicSize> moved = std::move(*copy);
            copy.reset();
            ASSERT_EQ(moved(9, 2), round);
            ASSERT_EQ(moved.comm().size(), worldSize());
        }
    });
}

TEST_F(ManyThreads, DestroyExchangesWhileOthersPull) {
    forEachTransport([&](const ExchangeOptions &options) {
        std::vector<RealField> fields = fieldsFor(2, comm_.view(), options);
        std::vector<RealField> doomed = fieldsFor(20, comm_.view(), options);
        for (std::size_t k = 0; k < doomed.size(); k += 3)
            pull(doomed[k]);
        onThreads(threads, [&](int k) {
            for (std::size_t d = 0; k >= 2 && d < doomed.size(); ++d)
                if (static_cast<int>(d) % 2 == k - 2)
                    doomed[d] = RealField();
            for (int round = 1; k < 2 && round <= 50; ++round) {
                RealField &field = fields[static_cast<std::size_t>(k)];
                fill(field, versionOf(k, round));
                pull(field);
                ASSERT_EQ(wrongGhosts(field, versionOf(k, round)), 0);
            }
        });
        RealField later = ringField("later", comm_.view());
        later.trans.initPersistentPull(options);
        expectPullWorks(later, 7);
    });
}

TEST_F(ManyThreads, SetUpOnOneThreadWhileOthersPull) {
    std::vector<RealField> fields = fieldsFor(threads - 1, comm_.view());
    onThreads(threads, [&](int k) {
        for (int round = 1; round <= 30; ++round)
            if (k == 0) {
                RealField field = ringField("another", comm_.view());
                field.trans.initPersistentPull();
                expectPullWorks(field, round);
            } else {
                RealField &field = fields[static_cast<std::size_t>(k) - 1];
                fill(field, versionOf(k, round));
                pull(field);
                ASSERT_EQ(wrongGhosts(field, versionOf(k, round)), 0);
            }
    });
}

TEST_F(ManyThreads, SetUpAtTheSameTimeOnCommunicatorsOfTheirOwn) {
    std::vector<Communicator> comms;
    for (int k = 0; k < threads; ++k)
        comms.push_back(Communicator::duplicate(comm_.view()));
    onThreads(threads, [&](int k) {
        for (int round = 1; round <= 10; ++round) {
            RealField field = ringField("u", comms[static_cast<std::size_t>(k)].view());
            field.trans.initPersistentPull();
            expectPullWorks(field, versionOf(k, round));
        }
    });
}

TEST_F(ManyThreads, AllMayBeTheFirstOnACommunicator) {
    for (int round = 0; round < 20; ++round) {
        const Communicator fresh = Communicator::duplicate(comm_.view());
        std::vector<std::optional<ParArray<real, 1>>> arrays(threads);
        std::vector<std::shared_ptr<CommunicatorContext>> contexts(threads);
        std::latch ready(threads);
        onThreads(threads, [&](int k) {
            ready.arrive_and_wait();
            arrays[static_cast<std::size_t>(k)].emplace("u", fresh.view());
            contexts[static_cast<std::size_t>(k)] = CommunicatorContext::of(fresh.view());
        });
        for (const auto &array : arrays)
            EXPECT_NO_THROW((void)array->comm()) << "it takes the communicator for freed";
        for (const auto &context : contexts)
            EXPECT_EQ(context, contexts.front());
    }
}

TEST_F(ManyThreads, HandExchangesOver) {
    forEachTransport([&](const ExchangeOptions &options) {
        std::vector<RealField> fields = fieldsFor(1, comm_.view(), options);
        RealField handed = ringField("handed over", comm_.view());
        Exchange exchange(handed.trans.pattern(), Direction::Pull, {handed.trans.member()}, options);
        for (int round = 1; round <= 50; ++round) {
            fill(fields[0], round);
            fill(handed, round);
            exchange.start();
            fields[0].trans.startPersistentPull();
            std::thread other([&] { // while this thread waits, which progresses its own exchanges
                while (round % 2 == 0 && !exchange.ready())
                    std::this_thread::yield();
                exchange.wait();
            });
            fields[0].trans.waitPersistentPull();
            other.join();
            ASSERT_EQ(wrongGhosts(fields[0], round) + wrongGhosts(handed, round), 0) << "round " << round;
        }
    });
}

TEST_F(ManyThreads, AskAPatternForItsRows) {
    for (int round = 0; round < 20; ++round) {
        const RealField field = ringField("u", comm_.view(), 1000);
        std::latch ready(threads);
        std::atomic<std::size_t> rows = 0;
        onThreads(threads, [&](int) {
            ready.arrive_and_wait();
            rows += field.trans.pattern()->innerRows().size() + field.trans.pattern()->boundaryRows().size();
        });
        EXPECT_EQ(rows, threads * 1000U);
    }
}

TEST_F(ManyThreads, AreCountedTogether) {
    countExchanges(true);
    std::vector<RealField> fields;
    for (int k = 0; k < threads; ++k) {
        fields.push_back(ringField("counted by threads", comm_.view()));
        fields.back().trans.initPersistentPull();
    }
    onThreads(threads, [&](int k) {
        for (int round = 0; round < 100; ++round)
            pull(fields[static_cast<std::size_t>(k)]);
    });
    countExchanges(false);
    const Report counted = report(comm_.view());
    const ExchangeReport *const pulls = counted.find("pull of 'counted by threads'");
    ASSERT_NE(pulls, nullptr);
    EXPECT_EQ(pulls->runs, threads * 100U);
}

TEST_F(ManyThreads, TwoInOneExchangeAreAnError) {
    RealField field = ringField("shared", comm_.view());
    BlockedStart blocked(field);
    std::thread starter([&] { blocked.exchange().start(); });
    blocked.awaitEntry();
    expectContains(messageOf<StateError>([&] { blocked.exchange().start(); }),
                   "the pull of 'shared' is in use by another thread");
    expectContains(messageOf<StateError>([&] { blocked.exchange().wait(); }), "in use by another thread");
    blocked.letGo();
    starter.join();
    blocked.exchange().wait();
    fill(field, 3);
    blocked.exchange().start();
    blocked.exchange().wait();
    EXPECT_EQ(wrongGhosts(field, 3), 0);
}

TEST_F(ManyThreads, TwoInSetUpsAreTheSameErrorOnAllRanks) {
    const CommunicatorView comm = comm_.view();
    (void)CommunicatorContext::of(comm);
    std::array<int, 2> failures{};
    for (int round = 0; round < 200; ++round) {
        std::latch ready(2);
        onThreads(2, [&](int k) {
            ready.arrive_and_wait();
            try {
                (void)GlobalMapping::create(comm, 3);
            } catch (const StateError &error) {
                expectContains(error.what(), "two threads are in collective set-up calls of one communicator");
                ++failures[static_cast<std::size_t>(k)];
            }
        });
    }
    const int all = failures[0] + failures[1];
    EXPECT_EQ(comm.allReduce(all, MPI_MIN), comm.allReduce(all, MPI_MAX));
    EXPECT_NO_THROW((void)GlobalMapping::create(comm, 3));
}

TEST_F(ManyThreads, ASetUpWaitsForThatOfAnotherThread) {
    const auto context = CommunicatorContext::of(comm_.view());
    bool alone = true;
    while (alone) { // until the other one has come too early
        std::latch come(1);
        std::atomic<bool> over = false;
        std::optional<CommunicatorContext::SetUp> first(*context);
        EXPECT_NO_THROW(first->requireAlone());
        std::thread other([&] {
            come.count_down();
            const CommunicatorContext::SetUp second(*context);
            EXPECT_TRUE(over);
            alone = second.alone();
            if (!alone) {
                EXPECT_THROW(second.requireAlone(), StateError);
            }
        });
        come.wait();
        std::this_thread::yield();
        over = true;
        first.reset();
        other.join();
    }
    EXPECT_NO_THROW(CommunicatorContext::SetUp(*context).requireAlone());
}

} // namespace
} // namespace DNDS
