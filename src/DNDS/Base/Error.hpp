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
#pragma once

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
