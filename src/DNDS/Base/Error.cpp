#include "DNDS/Base/Error.hpp"

#include "DNDS/Base/LastError.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace DNDS {

namespace {

std::atomic<int> processRank{-1};

/// A copy that allocates nothing: the error may be about memory.
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

Detail::LastError Detail::lastError() noexcept { return {lastWhat.get(), lastMessage.get()}; }

void throwError(ErrorKind kind, std::string message, SourceLocation where) {
    switch (kind) {
    case ErrorKind::Argument:
        throw ArgumentError(std::move(message), where);
    case ErrorKind::Index:
        throw IndexError(std::move(message), where);
    case ErrorKind::Layout:
        throw LayoutError(std::move(message), where);
    case ErrorKind::State:
        throw StateError(std::move(message), where);
    case ErrorKind::Stale:
        throw StaleError(std::move(message), where);
    case ErrorKind::Data:
        throw DataError(std::move(message), where);
    case ErrorKind::Memory:
        throw MemoryError(std::move(message), where);
    case ErrorKind::Mpi:
        throw MpiError(std::move(message), where);
    case ErrorKind::Peer:
        throw PeerError(std::move(message), where);
    case ErrorKind::NotBuilt:
        throw NotBuiltError(std::move(message), where);
    case ErrorKind::Revoked:
        throw RevokedError(std::move(message), -1, where);
    }
    throw Error(kind, std::move(message), where);
}

void setErrorRank(int rank) noexcept { processRank.store(rank, std::memory_order_relaxed); }
int errorRank() noexcept { return processRank.load(std::memory_order_relaxed); }

} // namespace DNDS
