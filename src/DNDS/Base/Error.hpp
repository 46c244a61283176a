/// @file Error.hpp
/// @brief Typed exceptions that say what failed, on which rank and where, and the checks that throw them.
///
/// `DNDS_CHECK` is evaluated in every build and meant for O(1) conditions. `DNDS_DEBUG_CHECK` is evaluated where
/// `DNDS_DEBUG_CHECKS` is defined (debug and sanitizer presets) and meant for element access in kernels and O(n)
/// conditions.
///
/// A program may define `DNDS_DEBUG_CHECKS` for all of its own sources and link a library built without it: no class
/// layout or signature depends on it, only whether inline functions throw. The program's inline functions are checked
/// even if the library has a copy, since the linker takes the program's first.
///
/// - `Failure`, `attempt`: exceptions as values until ranks agree on them; `OnFailure`: clean-up where one passes
/// - `warn`: messages of the library where it cannot throw
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <utility>

// nvcc's host compilation in C++20 fails on fmt 9 without this.
#if defined(__NVCC__) && !defined(FMT_USE_CONSTEXPR)
#define FMT_USE_CONSTEXPR 1
#endif
#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace DNDS {

/// Place of a failed check in the source.
struct SourceLocation {
    const char *file = "";
    int line = 0;
    const char *function = "";

    /// The caller's location when used as a default argument.
    static constexpr SourceLocation current(const char *file = __builtin_FILE(), int line = __builtin_LINE(),
                                            const char *function = __builtin_FUNCTION()) {
        return {file, line, function};
    }
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" // the enumerator Index is not DNDS::Index
/// Kind of failure of an exception. Ranks send it to each other, so that all throw the same type.
enum class ErrorKind : int { Argument, Index, Layout, State, Stale, Data, Memory, Mpi, Peer, NotBuilt, Revoked };
#pragma GCC diagnostic pop

/// The name of `kind` as it appears in messages, for example "IndexError".
std::string_view errorKindName(ErrorKind kind);

/// Base of every exception that DNDS throws. `what()` is the whole message: kind, rank, text and source location.
class Error : public std::runtime_error {
  public:
    /// With the rank that `setErrorRank` gave.
    Error(ErrorKind kind, std::string message, SourceLocation where);

    /// Kind of failure, of a fixed list.
    ErrorKind kind() const noexcept { return kind_; }
    /// The text alone, without kind, rank and location.
    const std::string &message() const noexcept { return message_; }
    /// The rank in MPI_COMM_WORLD that threw, or -1 before DNDS knows it.
    int rank() const noexcept { return rank_; }
    const SourceLocation &where() const noexcept { return where_; }

  private:
    /// As ErrorOf's template argument, for code that handles errors of all kinds.
    ErrorKind kind_;
    std::string message_;
    int rank_;
    SourceLocation where_;
};

/// One exception type per kind, so that callers catch only what they can handle.
template <ErrorKind Kind>
class ErrorOf : public Error {
  public:
    /// Thrown by `DNDS_CHECK` and its like; `where` is the caller.
    explicit ErrorOf(std::string message, SourceLocation where = SourceLocation::current())
        : Error(Kind, std::move(message), where) {}

  protected:
    /// Of a kind of this kind.
    ErrorOf(ErrorKind kind, std::string message, SourceLocation where) : Error(kind, std::move(message), where) {}
};

using ArgumentError = ErrorOf<ErrorKind::Argument>; ///< an argument is outside what the function accepts
using IndexError = ErrorOf<ErrorKind::Index>;       ///< a row or element number is out of range
using LayoutError = ErrorOf<ErrorKind::Layout>;     ///< row layouts, widths or types do not fit each other
using StateError = ErrorOf<ErrorKind::State>;       ///< calls in the wrong order, or on something not set up
using StaleError = ErrorOf<ErrorKind::Stale>;       ///< the requested copy is not current
using DataError = ErrorOf<ErrorKind::Data>;         ///< values received or read contradict each other
using MemoryError = ErrorOf<ErrorKind::Memory>;     ///< out of memory
using MpiError = ErrorOf<ErrorKind::Mpi>;           ///< an MPI call failed
using PeerError = ErrorOf<ErrorKind::Peer>;         ///< another rank failed in an exchange with this one
using NotBuiltError = ErrorOf<ErrorKind::NotBuilt>; ///< this build lacks a back end

/// The communicator was revoked: a running call failed on some rank, which the message names with its call and its own
/// error. `recover`, on all ranks, makes it usable again.
class RevokedError : public PeerError {
  public:
    /// `failedRank`: the first rank that failed, in the communicator; -1 where it is not known.
    RevokedError(std::string message, int failedRank, SourceLocation where = SourceLocation::current())
        : PeerError(ErrorKind::Revoked, std::move(message), where), failedRank_(failedRank) {}

    /// The first rank that failed, in the communicator that was revoked; -1 where it is not known.
    int failedRank() const noexcept { return failedRank_; }

  private:
    int failedRank_;
};

/// Throws the exception type of `kind`.
[[noreturn]] void throwError(ErrorKind kind, std::string message, SourceLocation where = SourceLocation::current());

/// Sets the rank that errors report. Called by the MPI layer; Local.
void setErrorRank(int rank) noexcept;
/// The rank given to `setErrorRank`, or -1.
int errorRank() noexcept;

} // namespace DNDS

/// Throws `ErrorType` with a message in fmt syntax unless `condition` holds. The message is built only on failure.
#define DNDS_CHECK(condition, ErrorType, ...)                                                                          \
    do {                                                                                                               \
        if (!(condition)) [[unlikely]]                                                                                 \
            throw ErrorType(fmt::format(__VA_ARGS__), ::DNDS::SourceLocation::current());                              \
    } while (false)

#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
#define DNDS_DEBUG_CHECK(condition, ErrorType, ...) DNDS_CHECK(condition, ErrorType, __VA_ARGS__)
#else
#define DNDS_DEBUG_CHECK(condition, ErrorType, ...)                                                                    \
    do {                                                                                                               \
    } while (false)
#endif

namespace DNDS {

/// Runs `body`; returns what it throws, null where that is nothing. For set-up calls, in which a rank that has failed
/// still comes to the next agreement, for destructors and for what C functions call. Local.
template <class Body>
[[nodiscard]] std::exception_ptr attempt(Body &&body) noexcept {
    try {
        std::forward<Body>(body)();
        return nullptr;
    } catch (...) {
        return std::current_exception();
    }
}

/// The same; keeps the exception in `failure` unless something is kept there. Local.
template <class Body>
void attempt(std::exception_ptr &failure, Body &&body) noexcept {
    std::exception_ptr thrown = attempt(std::forward<Body>(body));
    if (!failure)
        failure = std::move(thrown);
}

/// Whether `failure` is an exception of this type. Local.
template <class Kind>
bool holds(const std::exception_ptr &failure) noexcept {
    try {
        if (failure)
            std::rethrow_exception(failure);
        return false;
    } catch (const Kind &) {
        return true;
    } catch (...) {
        return false;
    }
}

/// The text of an exception.
struct Failure {
    ErrorKind kind = ErrorKind::State; ///< for exceptions of other libraries: Memory for std::bad_alloc, else State
    std::string message;               ///< the text alone
    std::string function;              ///< the place of the throw; empty for exceptions of other libraries
};

/// Describes an exception; an empty text for null. Local.
Failure describeFailure(const std::exception_ptr &failure);

/// Calls `undo`, which does not throw, where its scope is left by an exception. Local.
template <class Undo>
class OnFailure {
  public:
    explicit OnFailure(Undo undo) : undo_(std::move(undo)) {} ///< Its scope begins.
    OnFailure(const OnFailure &) = delete;
    OnFailure &operator=(const OnFailure &) = delete;
    ~OnFailure() {
        // Counted, not asked with std::uncaught_exception: the scope may lie in a destructor that itself runs while
        // another exception unwinds the stack, and only an exception of this scope concerns it.
        if (std::uncaught_exceptions() > before_)
            undo_();
    }

  private:
    Undo undo_;
    /// Exceptions in flight in this thread when the scope began.
    int before_ = std::uncaught_exceptions();
};

/// Takes the text of a warning, one or more lines without the last line's end; it says which rank where that matters.
/// It may be called on any thread, also on several at a time and on threads of DNDS itself, which it must not
/// end. What it throws is dropped.
using WarningSink = std::function<void(std::string_view text)>;

/// Gives this rank's warnings to `sink` from now on, say to a logger; with an empty one they go again where they go at
/// the start: to stderr, or where the user says by DNDS_WARNINGS (docs/reference/settings.md). Failures that end the
/// job go to stderr always. Local, thread-safe.
///
///     DNDS::setWarningSink([](std::string_view text) { spdlog::warn(text); });
///     DNDS::setWarningSink([](std::string_view) {}); // silence
void setWarningSink(WarningSink sink);

/// Says `text`. Local, thread-safe.
void warn(std::string_view text) noexcept;

/// Says a formatted text of up to 2,000 characters, of which no memory is allocated. Local, thread-safe.
template <class... Args>
void warn(fmt::format_string<Args...> format, Args &&...args) noexcept {
    try {
        std::array<char, 2000> text;
        const auto end = fmt::format_to_n(text.data(), text.size(), format, std::forward<Args>(args)...).out;
        warn(std::string_view(text.data(), static_cast<std::size_t>(end - text.data())));
    } catch (...) { // an argument that cannot be formatted
        const fmt::string_view plain = format;
        warn(std::string_view(plain.data(), plain.size()));
    }
}

} // namespace DNDS
