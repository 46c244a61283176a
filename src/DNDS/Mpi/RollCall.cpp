#include "DNDS/Mpi/RollCall.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/CollectiveWatch.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/NodeArena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace DNDS {

std::string Detail::secondsText(double seconds) {
    return seconds < 10 ? fmt::format("{:.1f} s", std::max(0.0, seconds)) : fmt::format("{:.0f} s", seconds);
}

namespace {

/// The places where this process publishes its activity. Never destroyed: arenas may live longer than statics.
struct Places {
    std::mutex mutex;
    std::vector<ActivityRecord *> all;
    std::vector<std::pair<std::thread::id, const ActivityScope *>>
        calls;                      ///< the innermost ones of threads that are in calls
    ActivityRecord own{};           ///< for signal handlers
    std::atomic<double> since{0.0}; ///< likewise; 0 while it changes
    std::atomic<int> rank{-1};      ///< in MPI_COMM_WORLD
    std::atomic<pid_t> process{0};  ///< forked children inherit the handler
};

Places &places() {
    static auto *all = new Places;
    return *all;
}

/// The head of this thread's list of nested calls.
thread_local const ActivityScope *innermostCall = nullptr;

/// A text of at most `room` bytes; the rest is cut off. For signal handlers, too.
template <std::size_t room>
struct FixedText {
    std::array<char, room> bytes; // NOLINT: only written bytes are read
    std::size_t size = 0;

    void add(std::string_view text) {
        const std::size_t count = std::min(text.size(), room - size);
        std::memcpy(bytes.data() + size, text.data(), count);
        size += count;
    }
    void addNumber(std::uint64_t number) {
        std::array<char, 20> digits; // NOLINT: as above
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
        add({digits.data(), static_cast<std::size_t>(end - digits.data())});
    }
    std::string_view text() const { return {bytes.data(), size}; }
};

/// Only what signal handlers may call.
/// All it reads are lock-free atomics: a handler that takes the lock of the thread that it interrupts would never
/// return.
void answerSignal(int /*signal*/) {
    // A forked child has inherited the handler, but speaks for no rank.
    if (places().process.load() != getpid())
        return;
    const int before = errno;
    FixedText<ActivityRecord::maxBytes + 128> line;
    line.add("DNDS: rank ");
    line.addNumber(static_cast<std::uint64_t>(std::max(0, places().rank.load())));
    line.add(" of MPI_COMM_WORLD: ");
    std::array<char, ActivityRecord::maxBytes> text; // NOLINT: as above
    const std::size_t count = places().own.copy(text.data(), text.size());
    line.add(count > 0 ? std::string_view(text.data(), count) : "in no call of DNDS");
    if (const double since = places().since.load(); since > 0) {
        const auto tenths = static_cast<std::uint64_t>(10 * std::max(0.0, monotonicSeconds() - since));
        line.add(" for ");
        line.addNumber(tenths / 10);
        line.add(".");
        line.addNumber(tenths % 10);
        line.add(" s");
    }
    line.add("\n");
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.bytes.data(), line.size);
    errno = before;
}

/// Installs the handler unless the program has one of its own; then it warns, once a process.
void answerSignals() {
    struct sigaction now {};
    sigaction(SIGUSR1, nullptr, &now);
    const bool simple = (now.sa_flags & SA_SIGINFO) == 0;
    if (simple && now.sa_handler == SIG_DFL) {
        now.sa_handler = answerSignal;
        now.sa_flags = SA_RESTART;
        sigemptyset(&now.sa_mask);
        sigaction(SIGUSR1, &now, nullptr);
    } else if (!simple || now.sa_handler != answerSignal) {
        static std::once_flag once;
        std::call_once(once, [] {
            warn("DNDS_ROLL_CALL: the program handles SIGUSR1 by itself, so this rank does not answer it");
        });
    }
}

/// "0-3, 7": ascending ranks, runs joined.
std::string listOf(const std::vector<int> &ranks) {
    std::string text;
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
            ++last;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
        if (last > i)
            text += fmt::format("-{}", ranks[last]);
        i = last + 1;
    }
    return text;
}

/// Ranks that do the same, and since when.
struct Group {
    std::vector<int> ranks;
    std::vector<int> worldRanks; ///< empty where they are the same
    double first = 0, last = 0;
};

std::string textOf(const std::string &what, const Group &group, double now) {
    // "for 3 s", or "for 3 s to 12 s" where ranks came at clearly different times.
    const double longest = now - group.first, shortest = now - group.last;
    std::string text = fmt::format("; rank{} {}", group.ranks.size() > 1 ? "s" : "", listOf(group.ranks));
    if (!group.worldRanks.empty())
        text += fmt::format(" ({} of MPI_COMM_WORLD)", listOf(group.worldRanks));
    text += fmt::format(": {}", what.empty() ? "in no call of DNDS" : what);
    if (group.first <= 0)
        return text;
    if (longest > 1.5 * shortest + 0.1)
        return text + fmt::format(" for {} to {}", Detail::secondsText(shortest), Detail::secondsText(longest));
    return text + " for " + Detail::secondsText(longest);
}

} // namespace

void ActivityRecord::write(std::string_view text, double since) noexcept {
    // One writer: callers hold the lock of `Places`. The odd version goes first, and the fence keeps the stores of
    // the text after it; the even one follows with release. `| 1U` also repairs a version left odd.
    const std::uint32_t version = version_.load(std::memory_order_relaxed);
    version_.store(version | 1U, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    std::array<std::uint64_t, maxBytes / sizeof(std::uint64_t)> words{};
    std::memcpy(words.data(), text.data(), std::min(text.size(), maxBytes - 1));
    for (std::size_t k = 0; k < words.size(); ++k)
        words_[k].store(words[k], std::memory_order_relaxed);
    since_.store(since, std::memory_order_relaxed);
    version_.store((version | 1U) + 1U, std::memory_order_release);
}

/// May mix two texts if the writer is at work; `read` notices that by the version, signal handlers accept it. Words
/// are atomic, so there is no data race.
std::size_t ActivityRecord::copy(char *to, std::size_t room) const noexcept {
    std::array<std::uint64_t, maxBytes / sizeof(std::uint64_t)> words{};
    for (std::size_t k = 0; k < words.size(); ++k)
        words[k] = words_[k].load(std::memory_order_relaxed);
    const auto *text = reinterpret_cast<const char *>(words.data());
    const std::size_t size = std::min(strnlen(text, maxBytes), room);
    std::memcpy(to, text, size);
    return size;
}

ActivityRecord::Activity ActivityRecord::read() const {
    Activity latest;
    latest.text.resize(maxBytes);
    std::size_t size = 0;
    for (int attempt = 0; attempt < 1000; ++attempt) { // a rank that was stopped while it wrote stays unreadable
        // Text between two equal, even versions: acquire before it and a fence after it keep the loads between the
        // two.
        const std::uint32_t before = version_.load(std::memory_order_acquire);
        size = copy(latest.text.data(), latest.text.size());
        latest.since = since_.load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before)
            break;
    }
    latest.text.resize(size);
    return latest;
}

void ActivityScope::enter(std::string_view call, std::string_view name, std::uint64_t number) noexcept {
    // A frame of a list on this thread's stack; texts are referred to, not copied, until they are published.
    entered_ = true;
    outer_ = std::exchange(innermostCall, this);
    call_ = call;
    name_ = name;
    number_ = number;
    since_ = monotonicSeconds();
    publish(this, since_);
}

void ActivityScope::leave() noexcept {
    innermostCall = outer_;
    publish(outer_, outer_ != nullptr ? outer_->since_ : monotonicSeconds());
}

/// Rewrites the text of this process from the calls of all its threads, outermost call first, into each place.
/// O(threads + arenas), under one lock: only where activities are recorded at all.
void ActivityScope::publish(const ActivityScope *innermost, double since) noexcept {
    FixedText<ActivityRecord::maxBytes - 1> text;
    const auto addCalls = [&](const ActivityScope *last) {
        std::array<const ActivityScope *, 6> calls{}; // the innermost ones; calls around them are left out
        std::size_t depth = 0;
        for (const ActivityScope *call = last; call != nullptr && depth < calls.size(); call = call->outer_)
            calls[depth++] = call;
        for (const std::size_t most = depth; depth > 0;) {
            const ActivityScope &call = *calls[--depth];
            if (depth + 1 < most)
                text.add(", ");
            text.add(call.call_);
            if (!call.name_.empty()) {
                text.add(" '");
                text.add(call.name_);
                text.add("'");
            }
            if (call.number_ > 0) {
                text.add(" (number ");
                text.addNumber(call.number_);
                text.add(")");
            }
        }
    };
    try { // a lock may fail; then there is no warning
        Places &all = places();
        if (inForkedChild()) // which must not speak for its parent
            return;
        const std::lock_guard lock(all.mutex);
        // Calls of other threads stay until their end, which takes the lock before they go.
        const std::thread::id self = std::this_thread::get_id();
        std::erase_if(all.calls, [&](const auto &call) { return call.first == self; });
        if (innermost != nullptr)
            all.calls.emplace_back(self, innermost);
        for (const auto &[thread, call] : all.calls) {
            if (text.size > 0)
                text.add("; on another thread: ");
            addCalls(call);
            since = std::min(since, call->since_);
        }
        all.since = 0.0;
        all.own.write(text.text(), since);
        all.since = since;
        for (ActivityRecord *place : all.all)
            place->write(text.text(), since);
    } catch (const std::exception &) {
    }
}

void Detail::addActivityRecord(ActivityRecord &place) {
    Places &all = places();
    const std::lock_guard lock(all.mutex);
    // A new arena's record starts with the present activity: it may be long before the next change.
    all.all.push_back(&place);
    const ActivityRecord::Activity now = all.own.read();
    place.write(now.text, now.since);
}

void Detail::removeActivityRecord(ActivityRecord &place) noexcept {
    if (inForkedChild()) // another thread of the parent may have held the lock when it forked
        return;
    Places &all = places();
    const std::lock_guard lock(all.mutex);
    std::erase(all.all, &place);
}

double Detail::oldestUnreported() noexcept {
    // For the watching thread: O(threads in calls), under the lock that a call's end takes, so that no scope is
    // read after its end.
    double oldest = 0;
    Places &all = places();
    const std::lock_guard lock(all.mutex);
    for (const auto &[thread, call] : all.calls)
        if (call->collective_ && !call->reported_ && (oldest <= 0 || call->since_ < oldest))
            oldest = call->since_;
    return oldest;
}

bool Detail::markReported(double since) noexcept {
    Places &all = places();
    const std::lock_guard lock(all.mutex);
    bool found = false;
    for (const auto &[thread, call] : all.calls)
        if (call->collective_ && call->since_ == since)
            found = call->reported_ = true;
    return found;
}

std::string Detail::ownActivity() { return places().own.read().text; }

void Detail::prepareRollCall(const Environment &environment) {
    watchCollectives(environment.waitTimeout);
    if (!environment.rollCall && environment.waitTimeout <= 0)
        return;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    places().rank = rank;
    // The first time in this process: from now on it counts as in no call.
    if (pid_t none = 0; places().process.compare_exchange_strong(none, getpid()))
        places().since = monotonicSeconds();
    ActivityScope::on() = true;
    if (environment.rollCall)
        answerSignals();
}

void Detail::prepareRollCall() {
    try {
        prepareRollCall(readEnvironment());
    } catch (const ArgumentError &) { // the first communicator throws it on all ranks
    }
}

std::string rollCall(NodeArena *arena) {
    if (arena == nullptr || !ActivityScope::on())
        return {};
    // O(ranks of the node): reads each rank's record, which may map its memory first.
    // Reads are not synchronised with each other: the picture may mix moments some microseconds apart.
    const double now = monotonicSeconds();
    // Ranks with the same text are one group; groups are listed by their lowest rank.
    std::map<std::string, Group> groups;
    for (int nodeRank = 0; nodeRank < arena->nodeSize(); ++nodeRank) {
        const auto [text, since] = arena->activity(nodeRank);
        Group &group = groups[text];
        if (group.ranks.empty())
            group.first = group.last = since;
        group.ranks.push_back(arena->rankOf(nodeRank));
        if (const int worldRank = arena->worldRankOf(nodeRank); worldRank >= 0)
            group.worldRanks.push_back(worldRank);
        group.first = std::min(group.first, since);
        group.last = std::max(group.last, since);
    }
    std::map<int, std::string> texts; // by the lowest rank
    for (const auto &[what, group] : groups)
        texts[group.ranks.front()] = textOf(what, group, now);
    std::string text;
    for (const auto &each : texts)
        text += each.second;
    if (arena->hasOthers())
        text += "; ranks of other nodes cannot be seen from here";
    return text;
}

} // namespace DNDS
