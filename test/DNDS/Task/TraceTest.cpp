#include "DNDS/Task/Trace.hpp"
#include "DNDS/Task/TraceFile.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "TraceFileReader.hpp"
#include "support/FileSizeLimit.hpp"
#include "support/TemporaryFolder.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace DNDS::Task {
namespace {

using nlohmann::json;
using test::eventsOf;
using test::eventsWith;
using test::expectContains;
using test::FileSizeLimit;
using test::messageOnAll;
using test::TemporaryFolder;
using test::world;

Trace::Span span(std::string_view name, Trace::Kind kind = Trace::Kind::Part, int thread = 0) {
    const double now = Trace::now();
    return {.kind = kind, .name = name, .begin = now, .end = now + 1e-6, .thread = thread};
}

/// The events that all ranks' recordings of `work` leave, which is given a recording that has begun. Collective.
std::vector<json> recorded(const std::string &path, std::size_t capacity, const std::function<void(Trace &)> &work) {
    {
        Trace trace(path, capacity);
        trace.begin(world());
        work(trace);
    }
    world().barrier();
    std::vector<json> events = eventsOf(path);
    world().barrier();
    return events;
}

TEST(Trace, IsNullWithoutTheVariable) { EXPECT_EQ(Trace::active(), nullptr); }

TEST(Trace, AllRanksAreInOneFileThatNamesThem) {
    const TemporaryFolder folder;
    const auto events = recorded(folder.file("trace.json"), 100, [](Trace &trace) {
        trace.record(
            {.kind = Trace::Kind::Part, .name = "flux", .begin = Trace::now(), .end = Trace::now() + 0.002, .rows = 7});
        trace.record({.kind = Trace::Kind::Wait,
                      .name = "state",
                      .begin = Trace::now(),
                      .end = Trace::now() + 0.001,
                      .peer = 3});
    });
    const auto names = eventsWith(events, "name", "process_name");
    ASSERT_EQ(names.size(), static_cast<std::size_t>(world().size()));
    for (int rank = 0; rank < world().size(); ++rank) {
        const auto mine = eventsWith(events, "pid", rank);
        EXPECT_EQ(eventsWith(mine, "name", "process_name")
                      .at(0)["args"]["name"]
                      .get<std::string>()
                      .rfind(fmt::format("rank {} on ", rank), 0),
                  0U);
        EXPECT_EQ(eventsWith(mine, "name", "thread_name").at(0)["args"]["name"], "main thread");
        const json part = eventsWith(mine, "cat", "part").at(0);
        EXPECT_EQ(part["ph"], "X");
        EXPECT_EQ(part["name"], "flux");
        EXPECT_EQ(part["tid"], 0);
        EXPECT_EQ(part["args"], json({{"rows", 7}}));
        EXPECT_NEAR(part["dur"].get<double>(), 2000.0, 100.0);
        EXPECT_EQ(eventsWith(mine, "cat", "wait").at(0)["args"], json({{"peer", 3}}));
    }
}

TEST(Trace, TimesOfRanksAreThoseOfRankZerosClock) {
    const TemporaryFolder folder;
    const auto events = recorded(folder.file("trace.json"), 100, [](Trace &trace) {
        world().barrier();
        const double begin = Trace::now();
        world().barrier();
        trace.record({.kind = Trace::Kind::Part, .name = "between", .begin = begin, .end = Trace::now()});
    });
    // All were between the same two barriers: the last one began before the first one ended.
    double lastBegin = -1.0;
    double firstEnd = std::numeric_limits<double>::infinity();
    for (const json &event : eventsWith(events, "name", "between")) {
        EXPECT_GT(event["ts"].get<double>(), 0.0) << "time 0 is when rank 0 began";
        lastBegin = std::max(lastBegin, event["ts"].get<double>());
        firstEnd = std::min(firstEnd, event["ts"].get<double>() + event["dur"].get<double>());
    }
    EXPECT_LE(lastBegin, firstEnd + 0.01); // numbers have three digits
}

TEST(Trace, PullsAreEventsOfTheirOwnThatMayOverlap) {
    const TemporaryFolder folder;
    const auto events = recorded(folder.file("trace.json"), 100, [](Trace &trace) {
        for (const Trace::Kind kind : {Trace::Kind::Pull, Trace::Kind::Pull, Trace::Kind::Push, Trace::Kind::Copy}) {
            Trace::Span moved = span("state", kind);
            moved.end = moved.begin + 5e-4;
            moved.bytes = 4096;
            trace.record(moved);
        }
    });
    std::set<std::string> ids;
    for (int rank = 0; rank < world().size(); ++rank) {
        const auto mine = eventsWith(events, "pid", rank);
        const auto begins = eventsWith(mine, "ph", "b");
        ASSERT_EQ(begins.size(), 4U);
        EXPECT_EQ(eventsWith(begins, "cat", "pull").size(), 2U);
        for (const json &begin : begins) {
            EXPECT_EQ(begin["args"]["bytes"], 4096);
            const auto ends = eventsWith(eventsWith(mine, "ph", "e"), "id", begin["id"]);
            ASSERT_EQ(ends.size(), 1U);
            EXPECT_NEAR(ends[0]["ts"].get<double>() - begin["ts"].get<double>(), 500.0, 0.01);
            ids.insert(begin["id"].get<std::string>());
        }
    }
    EXPECT_EQ(ids.size(), 4U * static_cast<std::size_t>(world().size())) << "no two pulls have one id";
}

TEST(Trace, NamesMayHoldAnything) {
    const TemporaryFolder folder;
    const std::vector<std::string> names{R"(a "quoted" name)", R"(C:\back\slash)", "line\nbreak\tand\x01",
                                         "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", ""};
    const auto events = recorded(folder.file("trace.json"), 100, [&](Trace &trace) {
        for (const std::string &name : names)
            trace.record(span(name));
    });
    for (const std::string &name : names)
        EXPECT_EQ(eventsWith(eventsWith(events, "cat", "part"), "name", name).size(), toSize(world().size())) << name;
}

TEST(Trace, FullMemoryIsWrittenByWhicheverThreadFillsIt) {
    const TemporaryFolder folder;
    constexpr int threads = 3;
    constexpr int each = 2000;
    const auto events = recorded(folder.file("trace.json"), 64, [](Trace &trace) {
        std::vector<std::thread> workers;
        for (int t = 0; t < threads; ++t)
            workers.emplace_back([&trace, t] {
                const std::string_view name = trace.intern(fmt::format("of thread {}", t));
                for (int k = 0; k < each; ++k)
                    trace.record(span(name, Trace::Kind::Part, t));
            });
        for (std::thread &worker : workers)
            worker.join();
    });
    for (int rank = 0; rank < world().size(); ++rank) {
        const auto mine = eventsWith(events, "pid", rank);
        for (int t = 0; t < threads; ++t) {
            EXPECT_EQ(eventsWith(mine, "name", fmt::format("of thread {}", t)).size(), toSize(each));
            EXPECT_EQ(eventsWith(eventsWith(mine, "tid", t), "name", "thread_name").size(), 1U);
        }
        EXPECT_FALSE(eventsWith(mine, "name", "writing the trace").empty());
    }
}

TEST(Trace, TheFileIsWholeAfterEachWriteAndReplacesAnOlderOne) {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace.json");
    if (world().rank() == 0)
        std::ofstream(path) << std::string(1000000, 'x');
    world().barrier();
    Trace trace(path, 100);
    trace.record(span("too early"));
    trace.begin(world());
    for (int round = 0; round < 3; ++round) {
        trace.record(span("part"));
        trace.flush();
        trace.flush();
        trace.begin(world()); // the file stays
        EXPECT_EQ(eventsWith(eventsOf(path), "name", "part").size(), toSize((round + 1) * world().size()));
        EXPECT_TRUE(eventsWith(eventsOf(path), "name", "too early").empty());
        world().barrier();
    }
}

TEST(Trace, PathsThatCannotBeWrittenThrowOnAllRanks) {
    const TemporaryFolder folder;
    const auto messageOf = [](const std::string &path) {
        return messageOnAll<ArgumentError>([&] { Trace(path).begin(world()); });
    };
    expectContains(messageOf(folder.file("missing/trace.json")), "(DNDS_TRACE) cannot be written: No such file");
    expectContains(messageOf(folder.path()), "it is a folder");
    expectContains(messageOf("/dev/full"), "not a file but a device");
    // Afterwards another path is welcome.
    EXPECT_FALSE(recorded(folder.file("trace.json"), 10, [](Trace &trace) { trace.record(span("x")); }).empty());
}

TEST(Trace, AnotherFileOfThatNameOnAnotherDiskThrows) {
    const TemporaryFolder folder;
    const std::string path = folder.file(fmt::format("trace of {}.json", world().rank()));
    EXPECT_NE(TraceFile::create(path, R"({"ph":"M"})"), nullptr);
    EXPECT_NE(TraceFile::join(path, R"({"ph":"M"})"), nullptr);
    expectContains(test::messageOf<ArgumentError>([&] { TraceFile::join(path, R"({"ph":"M","pid":1})"); }),
                   "rank 0 made another file");
    world().barrier();
}

TEST(Trace, AFullDiskStopsTheRecordingAndNothingElse) {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace.json");
    Trace trace(path, 100);
    trace.begin(world());
    trace.record(span("written"));
    trace.flush();
    world().barrier();
    const auto size = std::filesystem::file_size(path);
    world().barrier();
    testing::internal::CaptureStderr();
    {
        const FileSizeLimit limit(size + 10);
        for (int k = 0; k < 1000; ++k)
            trace.record(span("lost"));
        trace.flush();
    }
    const std::string said = testing::internal::GetCapturedStderr();
    expectContains(said, fmt::format("rank {} stops tracing", world().rank()));
    EXPECT_EQ(said.find("stops"), said.rfind("stops")) << "once";
    world().barrier();
    EXPECT_EQ(eventsWith(eventsOf(path), "name", "written").size(), toSize(world().size()));
    EXPECT_TRUE(eventsWith(eventsOf(path), "name", "lost").empty());
}

TEST(Trace, AForkedChildWritesNothing) {
    const TemporaryFolder folder;
    const auto events = recorded(folder.file("trace.json"), 4, [](Trace &trace) {
        trace.record(span("of the parent"));
        const pid_t child = ::fork();
        if (child == 0) {
            for (int k = 0; k < 100; ++k)
                trace.record(span("of the child"));
            trace.flush();
            ::_exit(0);
        }
        int status = 1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    });
    EXPECT_EQ(eventsWith(events, "name", "of the parent").size(), toSize(world().size()));
    EXPECT_TRUE(eventsWith(events, "name", "of the child").empty());
}

TEST(Trace, GroupsOfRanksThatBeginApartHaveFilesOfTheirOwn) {
    const TemporaryFolder folder;
    const int half = (world().size() + 1) / 2;
    const bool upper = world().rank() >= half;
    const Communicator group = Communicator::split(world(), upper ? 1 : 0, world().rank());
    {
        Trace trace(folder.file("trace.json"), 10);
        if (upper) // later, all: ranks that have begun stay in their file, the others join rank 0's
            trace.begin(group.view());
        trace.begin(world());
        trace.record(span("part"));
    }
    world().barrier();
    const auto lower = eventsOf(folder.file("trace.json"));
    EXPECT_EQ(eventsWith(lower, "name", "part").size(), toSize(half));
    EXPECT_EQ(eventsWith(lower, "name", "process_name").size(), toSize(half));
    if (world().size() > 1) {
        const auto rest = eventsOf(folder.file(fmt::format("trace.rank{}.json", half)));
        EXPECT_EQ(eventsWith(rest, "name", "part").size(), toSize(world().size() - half));
    }
    world().barrier();
}

} // namespace
} // namespace DNDS::Task
