#include "DNDS/Mpi/NoticeBoard.hpp"

#include <new>

namespace DNDS {

std::size_t NoticeBoard::bytes(int readers) noexcept { return 2 * static_cast<std::size_t>(readers) * sizeof(Note); }

NoticeBoard::NoticeBoard(const void *memory) noexcept
    : notes_(static_cast<Note *>(const_cast<void *>(memory))) {} // only owners publish

NoticeBoard NoticeBoard::make(void *memory, int readers) noexcept {
    const NoticeBoard board(memory);
    for (int n = 0; n < 2 * readers; ++n)
        new (board.notes_ + n) Note;
    return board;
}

void NoticeBoard::publish(int reader, std::uint64_t round, const ArenaLocation &location) noexcept {
    Note &left = note(reader, round);
    left.location = location;
    left.round.store(round + 1, std::memory_order_release);
}

std::optional<ArenaLocation> NoticeBoard::lookUp(int reader, std::uint64_t round) const noexcept {
    const Note &left = note(reader, round);
    if (left.round.load(std::memory_order_acquire) != round + 1)
        return std::nullopt;
    return left.location;
}

} // namespace DNDS
