/// @file RollCall.hpp
/// @brief The activity of each rank, in memory that the others of its node can read.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace DNDS {

class NodeArena;
struct Environment;

/// Seconds since a moment that is the same for all processes of a machine: monotonic and steady.
/// Local; some 20 ns.
inline double monotonicSeconds() noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace Detail {

/// "3.2 s", or "120 s". Local.
std::string secondsText(double seconds);
/// Start of the oldest unreported blocking collective call of this process; 0: none. Local.
double oldestUnreported() noexcept;
/// Marks that call as reported; false if it has ended. Local.
bool markReported(double since) noexcept;
/// The activity of this process. Local.
std::string ownActivity();

} // namespace Detail

/// The latest published activity of a rank. In shared memory: others can read it even if the rank is stopped, or
/// waits in a call that never ends. Zeroed memory means no call. Method: a seqlock (Boehm, Can seqlocks get along with
/// programming language memory models?, MSPC 2012); the writer never waits for readers.
class ActivityRecord {
  public:
    static constexpr std::size_t maxBytes = 192;

    /// Publishes an activity of this process. Local.
    void write(std::string_view text, double since) noexcept;
    struct Activity {
        std::string text; ///< empty: in no call of DNDS
        double since = 0; ///< steady clock of the machine, in seconds; 0: from the start
    };
    /// Reads the activity of any process. Local.
    Activity read() const;
    /// Copies the text to `to`, at most `room` bytes, for signal handlers; returns the size.
    std::size_t copy(char *to, std::size_t room) const noexcept;

  private:
    std::atomic<std::uint32_t> version_; ///< odd while it changes
    /// As Activity::since; between the two changes of the version.
    std::atomic<double> since_;
    std::array<std::atomic<std::uint64_t>, maxBytes / sizeof(std::uint64_t)> words_; ///< the text, ended by 0
};

/// Publishes that this process is in a call, as long as the object lives; nested calls are named after it. Free unless
/// DNDS_WAIT_TIMEOUT or DNDS_ROLL_CALL is set; then some 0.1 us. Local; on any thread.
///
///     const ActivityScope activity("createGhostMapping of", name());
class ActivityScope {
  public:
    /// The texts must outlive the object. `number` is reported unless it is 0.
    explicit ActivityScope(std::string_view call, std::string_view name = {}, std::uint64_t number = 0) noexcept {
        if (on().load(std::memory_order_relaxed)) [[unlikely]]
            enter(call, name, number);
    }
    /// For a blocking collective call of MPI, reported when it lasts longer than DNDS_WAIT_TIMEOUT.
    static ActivityScope collective(std::string_view call) noexcept { return ActivityScope(call, Collective::Yes); }
    ActivityScope(const ActivityScope &) = delete;
    ActivityScope &operator=(const ActivityScope &) = delete;
    ~ActivityScope() {
        if (entered_) [[unlikely]]
            leave();
    }

    /// Whether activities are recorded.
    static std::atomic<bool> &on() noexcept {
        static std::atomic<bool> on{false};
        return on;
    }

  private:
    /// Selects the constructor for blocking calls of MPI, which cannot be left.
    enum class Collective : bool { Yes };
    ActivityScope(std::string_view call, Collective /*kind*/) noexcept : collective_(true) {
        if (on().load(std::memory_order_relaxed)) [[unlikely]]
            enter(call, {}, 0);
    }
    friend double Detail::oldestUnreported() noexcept;
    friend bool Detail::markReported(double since) noexcept;

    /// Adds this call to the thread's list, and publishes; only where activities are recorded.
    void enter(std::string_view call, std::string_view name, std::uint64_t number) noexcept;
    /// Removes it, and publishes the call around it.
    void leave() noexcept;
    /// Writes the process's activity, in which this thread's innermost call is `innermost`.
    static void publish(const ActivityScope *innermost, double since) noexcept;

    /// Whether activities were recorded when the call began: then its end is published, too.
    bool entered_ = false;
    bool collective_ = false;
    mutable bool reported_ = false; ///< guarded by the lock of this process's activities
    /// The call on this thread in which this one is nested.
    const ActivityScope *outer_ = nullptr;
    /// As given to the constructor; the texts are the caller's.
    std::string_view call_, name_;
    std::uint64_t number_ = 0;
    /// Start, by monotonicSeconds; names the call in `markReported`.
    double since_ = 0;
};

namespace Detail {

/// From now on, until `removeActivityRecord`, this process also publishes its activity in `place`. Local.
void addActivityRecord(ActivityRecord &place);
void removeActivityRecord(ActivityRecord &place) noexcept;
/// For DNDS_WAIT_TIMEOUT and DNDS_ROLL_CALL; the latter makes SIGUSR1 write this process's activity to stderr,
/// unless the program has a handler of its own. Local.
void prepareRollCall(const Environment &environment);
/// The same from the process's environment, once MPI runs, before a communicator is used: MpiSession and Python's
/// `import dnds` call it. Does nothing in an invalid environment, which the first communicator reports on all ranks.
/// Local.
void prepareRollCall();

} // namespace Detail

/// The activities of all ranks of this rank's node, equal ones grouped, as the end of a message: "; ranks 0-6:
/// wait for the pull of 'state' for 12 s; rank 7: createGhostMapping of 'u', MPI_Allreduce for 3 s". Empty where
/// nothing is known. Local; maps the memory of ranks that were no peers before.
std::string rollCall(NodeArena *arena);

} // namespace DNDS
