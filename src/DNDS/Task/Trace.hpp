/// @file Trace.hpp
/// @brief Records when each rank ran, pulled and waited, into a file for Perfetto and `python -m dnds.trace`.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Task {

class TraceFile;

/// A recording of this process's activities, appended to a file shared by the ranks (docs/guides/tracing.md). A plan
/// has
///
///     if (Trace *trace = Trace::active())   // where it is compiled
///         trace->begin(comm);
///     ...
///     Trace *trace = Trace::active();       // where it runs
///     const double begin = trace ? Trace::now() : 0.0;
///     ...                                   // the part
///     if (trace)
///         trace->record({.kind = Trace::Kind::Part, .name = name, .begin = begin, .end = Trace::now(), .rows = rows});
///
/// Spans are kept in memory of a fixed size, and written when it is full and when MPI_Finalize starts. A rank that ends
/// otherwise (a signal, MPI_Abort) loses its spans since the last write, but none of other ranks. If the file can no
/// longer be written, the rank reports that once on stderr and stops recording.
class Trace {
  public:
    /// Kind of a span. Parts, waits and others are nested or follow each other in a thread; pulls, pushes and copies
    /// run beside them, and get rows of their own.
    enum class Kind { Part, Pull, Push, Wait, Copy, Other };

    struct Span {
        Kind kind = Kind::Other;
        std::string_view name; ///< from `intern`, or of static storage
        double begin = 0.0;    ///< as returned by `now()`
        double end = 0.0;
        index rows = 0; ///< 0: unknown, as for the members below
        std::size_t bytes = 0;
        int peer = -1;  ///< the rank in MPI_COMM_WORLD that was waited for last; -1: unknown
        int thread = 0; ///< 0 for the thread that calls MPI, then workers
    };
    /// Thread numbers of a plan's streams on the device.
    static constexpr int innerStream = 1 << 16, boundaryStream = innerStream + 1;

    /// The recording of this process, into the file named by DNDS_TRACE at the program's start; null if none.
    /// Local, one load. Ranks agree on it: the first use of a communicator throws if their DNDS_TRACE differ.
    static Trace *active() noexcept { return active_; }
    /// The clock of spans, in seconds. Local.
    static double now() noexcept { return monotonicSeconds(); }

    /// A separate recording, for tests: into `path`, with memory for `capacity` spans, twice. Local.
    explicit Trace(std::string path, std::size_t capacity = std::size_t{1} << 14);
    Trace(const Trace &) = delete;
    Trace &operator=(const Trace &) = delete;
    /// Writes the remaining spans. Local.
    ~Trace();

    /// Begins the file, and aligns the clocks of the ranks (`clockOffset` documents the accuracy). The first
    /// time in a process, rank 0 of `comm` replaces the file at the path, and the others join; later it does
    /// nothing. Time 0 is when rank 0 began. If rank 0 of `comm` is another one in MPI_COMM_WORLD, 4 say, the file is
    /// `trace.rank4.json` instead of `trace.json`, so that groups of ranks that begin apart have files of their own.
    /// Collective; a reduction after the first time. Throws ArgumentError on all ranks if one cannot write.
    void begin(CommunicatorView comm);

    /// A copy of `name` that lives as long as the recording, the same for equal names. Local, thread-safe; a look-up,
    /// so once a task rather than once a span.
    std::string_view intern(std::string_view name);

    /// Keeps a span; does nothing before `begin`. Local, thread-safe; a lock and a copy. When memory is full, it
    /// writes: that takes milliseconds and is recorded, too.
    void record(const Span &span) noexcept;

    /// Writes the spans so far. Local, thread-safe.
    void flush() noexcept;

  private:
    static Trace *const active_;
    static Trace *ofEnvironment();
    /// For `begin`: opens the file that rank 0 names. Collective.
    std::unique_ptr<TraceFile> open(CommunicatorView comm);
    /// Takes the recorded spans and writes them; if `onlyFull`, unless another thread did meanwhile.
    void drain(bool onlyFull) noexcept;
    /// Formats `written_` as text, with the name of each new thread. Throws bad_alloc.
    void format();
    void stop(std::string_view reason) noexcept;

    // Fixed at construction; the rest is guarded by the mutexes.
    const std::string path_;
    const std::size_t capacity_;
    std::atomic<bool> recording_ = false;
    std::mutex recordMutex_; ///< guards `spans_` and `names_`; held for a moment
    /// Spans since the last write, at most `capacity_`: reserved by `begin`, so that recording never allocates.
    std::vector<Span> spans_;
    /// Interned names; nodes of a set keep their addresses.
    std::set<std::string, std::less<>> names_;
    std::mutex writeMutex_; ///< guards the members below; locked before `recordMutex_`
    /// Spans being written. It changes places with `spans_`, so threads record on while one writes.
    std::vector<Span> written_;
    std::string text_;
    /// Threads whose names are in the file.
    std::set<int> threads_;
    std::unique_ptr<TraceFile> file_; ///< null before `begin`
    int rank_ = 0;                    ///< in MPI_COMM_WORLD
    int process_ = 0;                 ///< forked children have another one, and record nothing
    double offset_ = 0.0;             ///< from this rank's clock to the file's
    /// `flush` is registered for MPI_Finalize.
    bool atFinalize_ = false;
    std::size_t ids_ = 0; ///< ids of spans that run beside others
};

} // namespace DNDS::Task
