#include "DNDS/Task/Trace.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/AtFinalize.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Task/TraceFile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace DNDS::Task {

namespace {

// In the order of the enumeration.
std::string_view categoryOf(Trace::Kind kind) {
    static constexpr std::array<std::string_view, 6> names{"part", "pull", "push", "wait", "copy", "other"};
    return names[static_cast<std::size_t>(kind)];
}

/// Pulls, pushes and copies overlap with the spans of their thread, which viewers allow for asynchronous events only.
bool runsBesideOthers(Trace::Kind kind) {
    return kind == Trace::Kind::Pull || kind == Trace::Kind::Push || kind == Trace::Kind::Copy;
}

/// Appends `text`, which is UTF-8, as a string of JSON.
void appendQuoted(std::string &out, std::string_view text) {
    out += '"';
    for (const char c : text)
        if (static_cast<unsigned char>(c) < 0x20)
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
        else
            out.append(c == '"' || c == '\\' ? "\\" : "").push_back(c);
    out += '"';
}

/// Starts an event in `out` with the fields common to all events.
void beginEvent(std::string &out, char phase, int rank, int thread, std::string_view name) {
    if (!out.empty())
        out += ",\n";
    fmt::format_to(std::back_inserter(out), R"({{"ph":"{}","pid":{},"tid":{},"name":)", phase, rank, thread);
    appendQuoted(out, name);
}

// Closes the event; fields that do not apply are left out.
void appendArguments(std::string &out, const Trace::Span &span) {
    out += R"(,"args":{)";
    const char *comma = "";
    const auto add = [&](const char *name, auto value) {
        fmt::format_to(std::back_inserter(out), R"({}"{}":{})", std::exchange(comma, ","), name, value);
    };
    if (span.rows != 0)
        add("rows", span.rows);
    if (span.bytes != 0)
        add("bytes", span.bytes);
    if (span.peer >= 0)
        add("peer", span.peer);
    out += "}}";
}

std::string nameOfThread(int thread) {
    return thread == 0                       ? "main thread"
           : thread == Trace::innerStream    ? "device, inner rows"
           : thread == Trace::boundaryStream ? "device, boundary rows and exchanges"
                                             : fmt::format("worker {}", thread);
}

/// Appends an event that names a process or thread.
void appendName(std::string &out, std::string_view what, int rank, int thread, std::string_view name) {
    beginEvent(out, 'M', rank, thread, what);
    out += R"(,"args":{"name":)";
    appendQuoted(out, name);
    out += "}}";
}

/// Formats: docs of Chrome's trace event format. "X" is a complete event with a duration; "b" and "e" are a pair of
/// asynchronous events with an id.
void appendSpan(std::string &out, const Trace::Span &span, int rank, double offset, std::uint64_t id) {
    // Trace viewers count in microseconds.
    const double begin = 1e6 * (span.begin + offset);
    const double end = 1e6 * (std::max(span.end, span.begin) + offset);
    const std::string_view category = categoryOf(span.kind);
    if (!runsBesideOthers(span.kind)) {
        beginEvent(out, 'X', rank, span.thread, span.name);
        fmt::format_to(std::back_inserter(out), R"(,"cat":"{}","ts":{:.3f},"dur":{:.3f})", category, begin,
                       end - begin);
        appendArguments(out, span);
        return;
    }
    const auto add = [&](char phase, double time) {
        beginEvent(out, phase, rank, span.thread, span.name);
        fmt::format_to(std::back_inserter(out), R"(,"cat":"{}","id":"{:#x}","ts":{:.3f})", category, id, time);
    };
    add('b', begin);
    appendArguments(out, span);
    add('e', end);
    out += '}';
}

// Names may fill the buffer: the last byte stays zero.
std::string hostName() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

/// The path for ranks that begin without rank 0 of MPI_COMM_WORLD: `trace.rank4.json` for `trace.json`.
std::string pathOf(const std::string &path, int rank) {
    std::filesystem::path named = std::filesystem::absolute(path);
    if (rank != 0)
        named.replace_filename(fmt::format("{}.rank{}{}", named.stem().string(), rank, named.extension().string()));
    return named.string();
}

} // namespace

/// Initialised before main, so that reading it is one load.
Trace *const Trace::active_ = Trace::ofEnvironment();

Trace *Trace::ofEnvironment() {
    std::string path = traceFile();
    if (path.empty())
        return nullptr;
    return new Trace(std::move(path)); // never deleted: threads may record until the process ends
}

Trace::Trace(std::string path, std::size_t capacity)
    : path_(std::move(path)), capacity_(std::max<std::size_t>(capacity, 2)) {}

Trace::~Trace() { flush(); }

/// Ranks that have begun earlier keep file and clock; new ones get the clock from rank 0 of `comm`. All ranks make
/// the same collective calls.
/// Offsets chain: this rank's clock to rank 0 of `comm`, and that rank's to the file, so that communicators that begin
/// one after another share a time axis.
void Trace::begin(CommunicatorView comm) {
    const bool begun = file_ != nullptr;
    if (comm.allReduce(begun ? 1 : 0, MPI_MIN) == 1)
        return;
    std::unique_ptr<TraceFile> file = open(comm);
    // From this clock to rank 0's, and from there to the file's.
    double offset = begun ? offset_ : -now();
    comm.broadcast(offset);
    offset += clockOffset(comm);
    if (begun)
        return;
    const std::scoped_lock lock(writeMutex_, recordMutex_);
    file_ = std::move(file);
    offset_ = offset;
    process_ = ::getpid();
    recording_.store(true, std::memory_order_relaxed);
}

/// Three steps, each agreed on by all ranks: rank 0 names the file, rank 0 creates it, the others join it and
/// everyone adds its name.
/// The agreement after each step keeps the order: no rank opens the file before rank 0 has truncated it.
std::unique_ptr<TraceFile> Trace::open(CommunicatorView comm) {
    const bool begun = file_ != nullptr;
    int rank = 0;
    std::vector<std::string> ofRankZero; // the path, and the event that identifies the file
    comm.guarded([&] {
        rank = CommunicatorView(MPI_COMM_WORLD).rank();
        if (comm.rank() != 0)
            return;
        const std::string event =
            fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"dnds_trace","args":{{"version":1,"id":"{:x}-{:x}"}}}})",
                        rank, ::getpid(), static_cast<std::uint64_t>(1e9 * now()));
        ofRankZero = begun ? std::vector{file_->path, file_->firstEvent} : std::vector{pathOf(path_, rank), event};
    });
    broadcastStrings(comm, ofRankZero);
    std::unique_ptr<TraceFile> opened;
    comm.guarded([&] {
        if (comm.rank() == 0 && !begun)
            opened = TraceFile::create(ofRankZero[0], ofRankZero[1]);
    });
    comm.guarded([&] {
        if (begun)
            return;
        if (!opened)
            opened = TraceFile::join(ofRankZero[0], ofRankZero[1]);
        std::string name;
        appendName(name, "process_name", rank, 0, fmt::format("rank {} on {}", rank, hostName()));
        const int error = opened->append(name);
        DNDS_CHECK(error == 0, ArgumentError, "the trace '{}' (DNDS_TRACE) cannot be written on {}: {}", opened->path,
                   hostName(), std::generic_category().message(error));
        const std::scoped_lock lock(writeMutex_, recordMutex_);
        spans_.reserve(capacity_);
        written_.reserve(capacity_);
        rank_ = rank;
        if (this == active_ && !std::exchange(atFinalize_, true))
            atFinalize([](void *trace) noexcept { static_cast<Trace *>(trace)->flush(); }, this);
    });
    return opened;
}

// Once for each name and plan: spans then hold views only.
std::string_view Trace::intern(std::string_view name) {
    const std::lock_guard lock(recordMutex_);
    // Nodes of the set never move, so views stay valid.
    const auto found = names_.find(name);
    return found != names_.end() ? *found : *names_.emplace(name).first;
}

/// When the memory is full, the thread writes it and tries again; another thread may have filled it meanwhile, hence
/// the loop.
/// O(1) under a lock, amortised: the thread that finds the memory full pays for the write of all threads' spans.
void Trace::record(const Span &span) noexcept {
    if (!recording_.load(std::memory_order_relaxed))
        return;
    const auto keep = [this](const Span &kept) {
        const std::lock_guard lock(recordMutex_);
        const bool room = spans_.size() < capacity_;
        if (room)
            spans_.push_back(kept); // within the reserved size
        return room;
    };
    while (!keep(span)) {
        const double begin = now();
        drain(true);
        keep({.name = "writing the trace", .begin = begin, .end = now(), .thread = span.thread});
    }
}

void Trace::flush() noexcept { drain(false); }

/// Both mutexes are held for the swap only; recording continues during the write. Children of fork
/// drop their spans, as the file belongs to the parent.
/// Double buffering: O(spans) copies in `record`, one formatting pass and one append for each `capacity_` spans. Lock
/// order is `writeMutex_`, then `recordMutex_`, everywhere, so that the two cannot deadlock.
void Trace::drain(bool onlyFull) noexcept {
    const std::lock_guard writing(writeMutex_);
    {
        const std::lock_guard recording(recordMutex_);
        if (spans_.empty() || (onlyFull && spans_.size() < capacity_))
            return;
        spans_.swap(written_);
    }
    if (recording_.load(std::memory_order_relaxed) && process_ == ::getpid()) {
        try {
            format();
            if (const int error = text_.empty() ? 0 : file_->append(text_); error != 0)
                stop(std::generic_category().message(error));
        } catch (const std::exception &error) {
            stop(error.what());
        }
    }
    written_.clear();
}

// A thread is named when its first span is written.
void Trace::format() {
    text_.clear();
    for (const Span &span : written_) {
        if (threads_.insert(span.thread).second)
            appendName(text_, "thread_name", rank_, span.thread, nameOfThread(span.thread));
        // Unique in this file; exact as a double, which some viewers use.
        const std::uint64_t id = (static_cast<std::uint64_t>(rank_) << 32U) + ids_++;
        appendSpan(text_, span, rank_, offset_, id);
    }
}

// A failed trace must not end the program.
void Trace::stop(std::string_view reason) noexcept {
    recording_.store(false, std::memory_order_relaxed);
    warn("rank {} stops tracing: '{}' cannot be written: {}", rank_, file_->path, reason);
}

} // namespace DNDS::Task
