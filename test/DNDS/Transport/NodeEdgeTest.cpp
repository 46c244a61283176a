// The flag protocol of node-shared exchanges with threads as ranks: run under the thread sanitizer it shows that rows
// are ordered by the flags alone. The memory is ordinary, the protocol the same.

#include "DNDS/Transport/NodeEdge.hpp"
#include "DNDS/Transport/StreamWriter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

/// Sleeps now and then, yields or spins otherwise.
class Delay {
  public:
    Delay(unsigned seed, unsigned every) : random_(seed), every_(every) {}
    void operator()() {
        if (every_ == 0)
            return;
        const auto draw = static_cast<unsigned>(random_()) % every_;
        if (draw == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(static_cast<unsigned>(random_()) % 50));
        else if (draw < 4)
            std::this_thread::yield();
    }

  private:
    std::minstd_rand random_;
    unsigned every_;
};

template <class Poll>
EdgeState await(Poll &&poll) {
    for (long spin = 0;; ++spin) {
        const EdgeState state = poll();
        if (state != EdgeState::Waiting)
            return state;
        if (spin > 50)
            std::this_thread::yield();
    }
}

struct Pull {
    NodeEdge edge;
    std::array<std::uint64_t, 40> father{};  ///< the writer's
    std::array<std::uint64_t, 40> offered{}; ///< the writer's
    std::array<std::uint64_t, 40> son{};     ///< the reader's
};

/// Offers the rows if the reader is late; returns when they are taken or written.
void writeOrOffer(Pull &pull, std::uint32_t epoch, bool &offers) {
    if (pull.edge.pollOpening(epoch) == EdgeState::Open) {
        pull.son = pull.father;
        pull.edge.arrive(epoch);
        return;
    }
    offers = true;
    pull.offered = pull.father;
    pull.edge.offer(epoch);
    for (;;) {
        ASSERT_EQ(await([&] { return pull.edge.pollOffer(epoch); }), EdgeState::Open);
        if (pull.edge.withdraw(epoch)) {
            pull.son = pull.father;
            pull.edge.arrive(epoch);
            return;
        }
        if (pull.edge.wasTaken(epoch))
            return;
    }
}

void offerEpochs(Pull &pull, std::uint32_t first, std::uint32_t epochs, Delay delay) {
    bool offers = false;
    for (std::uint32_t n = 1; n <= epochs; ++n) {
        for (std::size_t i = 0; i < pull.father.size(); ++i)
            pull.father[i] = std::uint64_t{n} * 100 + i;
        delay();
        writeOrOffer(pull, first + n, offers);
    }
    EXPECT_TRUE(offers);
}

void writeEpochs(Pull &pull, std::uint32_t first, std::uint32_t epochs, bool stream, Delay delay) {
    for (std::uint32_t n = 1; n <= epochs; ++n) {
        const std::uint32_t epoch = first + n;
        for (std::size_t i = 0; i < pull.father.size(); ++i)
            pull.father[i] = std::uint64_t{n} * 100 + i;
        delay();
        ASSERT_EQ(await([&] { return pull.edge.pollOpening(epoch); }), EdgeState::Open);
        delay();
        if (stream) {
            StreamWriter out(reinterpret_cast<std::byte *>(pull.son.data()));
            out.append(reinterpret_cast<const std::byte *>(pull.father.data()), sizeof(pull.father));
            out.finish();
        } else {
            pull.son = pull.father;
        }
        pull.edge.arrive(epoch);
    }
}

void readEpochs(Pull &pull, std::uint32_t first, std::uint32_t epochs, Delay delay) {
    for (std::uint32_t n = 1; n <= epochs; ++n) {
        const std::uint32_t epoch = first + n;
        delay();
        pull.edge.open(epoch);
        delay();
        for (;;) {
            const EdgeState state = await([&] { return pull.edge.pollArrival(epoch); });
            if (state == EdgeState::Open)
                break;
            ASSERT_EQ(state, EdgeState::Offered);
            if (!pull.edge.take(epoch))
                continue;
            pull.son = pull.offered;
            delay();
            pull.edge.taken(epoch);
            break;
        }
        for (std::size_t i = 0; i < pull.son.size(); ++i)
            ASSERT_EQ(pull.son[i], std::uint64_t{n} * 100 + i) << "epoch " << n;
    }
}

enum class Way { Plain, Streamed, Offered };

struct Case {
    const char *name;
    std::uint32_t epochs;
    Way way;
    unsigned writerDelay;
    unsigned readerDelay;
};

class NodeEdgeEpochs : public testing::TestWithParam<Case> {};

TEST_P(NodeEdgeEpochs, everyEpochReadsTheRowsOfThatEpoch) {
    const Case &given = GetParam();
    auto pull = std::make_unique<Pull>();
    // Both sides of the wrap-around of the counters.
    const std::uint32_t first = static_cast<std::uint32_t>(-static_cast<std::int64_t>(given.epochs / 2));
    new (&pull->edge) NodeEdge(first);
    std::thread writer([&] {
        const Delay delay(1, given.writerDelay);
        if (given.way == Way::Offered)
            offerEpochs(*pull, first, given.epochs, delay);
        else
            writeEpochs(*pull, first, given.epochs, given.way == Way::Streamed, delay);
    });
    readEpochs(*pull, first, given.epochs, Delay(2, given.readerDelay));
    writer.join();
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint32_t many = 50'000;
#else
constexpr std::uint32_t many = 200'000;
#endif

INSTANTIATE_TEST_SUITE_P(
    Delays, NodeEdgeEpochs,
    testing::Values(Case{"none", many, Way::Plain, 0, 0}, Case{"writerIsSlow", 4'000, Way::Plain, 8, 0},
                    Case{"readerIsSlow", 4'000, Way::Plain, 0, 8}, Case{"both", 4'000, Way::Plain, 16, 16},
                    Case{"streamed", 20'000, Way::Streamed, 64, 64}, Case{"offered", many, Way::Offered, 0, 0},
                    Case{"offeredByASlowWriter", 20'000, Way::Offered, 16, 0},
                    Case{"offeredToASlowReader", 20'000, Way::Offered, 0, 16},
                    Case{"offeredWithBothSlow", 20'000, Way::Offered, 16, 16}),
    [](const auto &test) { return std::string(test.param.name); });

TEST(NodeEdge, manyEpochsWhoseOffersWereAllTakenAreNotTakenForArrivals) {
    // Three times round the counter in leaps, as 2^33 and more epochs would do in which the writer never arrives
    // itself.
    NodeEdge edge;
    std::uint32_t epoch = NodeEdge::initialEpoch;
    for (int leap = 0; leap < 12; ++leap) {
        SCOPED_TRACE(leap);
        epoch += 1U << 30U;
        edge.open(epoch);
        ASSERT_EQ(edge.pollArrival(epoch), EdgeState::Waiting);
        edge.offer(epoch);
        ASSERT_EQ(edge.pollArrival(epoch), EdgeState::Offered);
        ASSERT_TRUE(edge.take(epoch));
        edge.taken(epoch);
        ASSERT_EQ(edge.pollOffer(epoch), EdgeState::Open);
        EXPECT_EQ(edge.pollArrival(epoch + 1), EdgeState::Waiting);
    }
}

TEST(NodeEdge, flagsOfTheTwoSidesAreOnDifferentCacheLines) {
    EXPECT_GE(sizeof(NodeEdge), 256U);
    EXPECT_EQ(alignof(NodeEdge), 128U);
}

} // namespace
} // namespace DNDS
