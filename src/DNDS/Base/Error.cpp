#include "DNDS/Base/Error.hpp"

#include "DNDS/Base/LastError.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace DNDS {

namespace {

/// The rank in MPI_COMM_WORLD; -1 until MPI runs. Relaxed: it only labels messages.
std::atomic<int> processRank{-1};

/// Text of the latest error of a thread, for messages written where the exception itself is out of reach: a
/// destructor during unwinding, a terminate handler. Allocates nothing, as the error may be about memory; long texts
/// are cut off.
class KeptText {
  public:
    void keep(std::string_view text) noexcept {
        size_ = std::min(text.size(), text_.size());
        std::copy_n(text.data(), size_, text_.data());
    }
    std::string_view get() const noexcept { return {text_.data(), size_}; }

  private:
    std::array<char, 1024> text_{};
    std::size_t size_ = 0;
};
thread_local KeptText lastWhat;
thread_local KeptText lastMessage;

/// The text of what(): kind, rank, message, and the place of the throw without folders and template arguments.
std::string decorate(ErrorKind kind, std::string_view message, const SourceLocation &where) {
    const int rank = errorRank();
    const std::string onRank = rank >= 0 ? fmt::format(" on rank {}", rank) : std::string();
    const char *slash = std::strrchr(where.file, '/');
    std::string_view function = where.function;
    if (!function.starts_with("operator<")) // arguments of templates fill a line without saying anything
        function = function.substr(0, function.find('<'));
    return fmt::format("{}{}: {} [{}:{} in {}]", errorKindName(kind), onRank, message, slash ? slash + 1 : where.file,
                       where.line, function);
}

/// Throws the class that belongs to a kind known only at run time, as it arrives from another rank. Returns if no
/// kind matches.
template <ErrorKind... Kinds>
void throwOneOf(ErrorKind kind, const std::string &message, SourceLocation where) {
    ((kind == Kinds ? throw ErrorOf<Kinds>(message, where) : void()), ...);
}

} // namespace

std::string_view errorKindName(ErrorKind kind) {
    static constexpr std::array<std::string_view, 11> names{
        "ArgumentError", "IndexError", "LayoutError", "StateError",    "StaleError",  "DataError",
        "MemoryError",   "MpiError",   "PeerError",   "NotBuiltError", "RevokedError"};
    return names.at(static_cast<std::size_t>(kind));
}

Error::Error(ErrorKind kind, std::string message, SourceLocation where)
    : std::runtime_error(decorate(kind, message, where)), kind_(kind), message_(std::move(message)), rank_(errorRank()),
      where_(where) {
    lastWhat.keep(what());
    lastMessage.keep(message_);
}

std::pair<std::string_view, std::string_view> Detail::lastError() noexcept {
    return {lastWhat.get(), lastMessage.get()};
}

void throwError(ErrorKind kind, std::string message, SourceLocation where) {
    if (kind == ErrorKind::Revoked)
        throw RevokedError(std::move(message), -1, where);
    using enum ErrorKind;
    throwOneOf<Argument, Index, Layout, State, Stale, Data, Memory, Mpi, Peer, NotBuilt>(kind, message, where);
    throw Error(kind, std::move(message), where);
}

void setErrorRank(int rank) noexcept { processRank.store(rank, std::memory_order_relaxed); }
int errorRank() noexcept { return processRank.load(std::memory_order_relaxed); }

} // namespace DNDS
